"""The exercises of notebook 04."""

import math
import random
from collections.abc import Iterator, Mapping
from statistics import fmean

from course_utils import machines, predict
from course_utils.checks.judging import Answers, function, value
from course_utils.datasheets import MACHINES
from course_utils.machines import Size
from course_utils.quantities import Number


@function([(4, 8, 5), (1024, 256, 64), (1, 4096, 4096), (3, 1, 7)])
def product_flops(b: int, d: int, k: int) -> Answers:
    """FLOPs of (B, D) @ (D, K)."""
    right = sum(2 * d for _ in range(b)) * k  # for each of B × K results: D products, each added to the sum
    yield right, "2BDK: each of B × D × K cubes is one multiplication and one addition."
    yield b * d * k, "That is how many multiplications there are. Each is followed by an addition."
    yield b * k * (2 * d - 1), "That is the exact count. Hardware starts from zero, so 2D for each result."
    yield 2 * (b * d + d * k), "That counts the numbers of both matrices. Count the cubes in the box."
    yield b * d + d * k + b * k, "Those are the numbers that are moved. Count the cubes in the box."
    yield 2 * b * d * d * k, "D counts once: it is the same D in both matrices."
    yield 2 * b * k, "Each result is a sum of D products, and not of one."


@value(wanted="the FLOPs of the cheaper order")
def cheaper_order() -> Answers:
    """FLOPs of A @ B @ v in the cheaper order, for two 1,000 × 1,000 matrices and a column."""
    square, column = predict.matmul_flops(1000, 1000, 1000), predict.matmul_flops(1000, 1000, 1)
    right = 2 * column
    yield right, "A @ (B @ v): two products of 2 × 1000 × 1000. The other order costs 500.5 times that."
    yield square + column, "That is (A @ B) @ v, with a product of two matrices. Start from the other end."
    yield 2 * 1000 * 1999, "That is the exact count. By the convention, a product is 2BDK."
    yield square, "That is A @ B, which the cheaper order never computes."
    yield column, "That is one of two products, or multiplications alone. Each comes with an addition."


@value(wanted="days, within 1 %", tolerance=0.01)
def days() -> Answers:
    """GPT-3's 300 billion tokens on 1,024 A100s at half their peak, in days."""
    right = predict.training_days(174.6e9, 300e9, MACHINES["A100 SXM"], 1024, 0.5)
    yield right, "6 × 174.6e9 × 300e9 / (1024 × 312e12 × 0.5) seconds, and 86,400 of them a day."
    yield right / 2, "That is at full peak, or with the sparse rate. Half of 312 TFLOP/s is what counts."
    at_sparse_peak = right / 4
    yield at_sparse_peak, "That is the sparse rate at full peak: dense is 312 TFLOP/s, and half of it counts."
    yield right / 3, "That is the forward pass alone: training takes 6 FLOPs for each parameter and token."
    yield right * predict.SECONDS_PER_DAY, "That is in seconds."
    yield right * 24, "That is in hours."
    yield right * 1024, "That is on one A100."


OF_TRAINING = [  # parameters, tokens, GPUs, FLOP/s of one, the share that is reached
    *((70e9, 15e12, 1024, 989.5e12, 0.5), (174.6e9, 300e9, 1024, 312e12, 0.25)),
    (8e9, 1e12, 64, 989.5e12, 0.4),
]


@function(OF_TRAINING, tolerance=1e-6)
def training_days(
    parameters: Number, tokens: Number, gpus: int, peak_flop_per_sec: Number, share: Number
) -> Answers:
    """Days of a training run: its FLOPs over what all GPUs do in a day."""
    seconds = 6 * parameters * tokens / (gpus * peak_flop_per_sec * share)
    right = seconds / predict.SECONDS_PER_DAY
    yield right, "6PN FLOPs, over GPUs × peak × share, and 86,400 seconds a day."
    yield seconds, "That is in seconds. A day has 86,400."
    yield right * 24, "That is in hours. A day has 24."
    yield right / 3, "That is the forward pass alone: training takes 6 FLOPs for each parameter and token."
    yield right * 2 / 3, "That is the backward pass alone, 4PN. The forward pass adds 2PN."
    yield right * share, "That is at full peak. Only the share of it is reached, so it takes longer."
    yield right * share**2, "A smaller share takes longer: divide by it, as by the peak."
    yield right * gpus, "That is on one GPU."


ROOFS = [  # FLOPs per byte, FLOP/s, bytes/s: on both sides of the ridge
    *((1.0, 989.5e12, 3.35e12), (1365.0, 989.5e12, 3.35e12)),
    *((0.25, 1e11, 2.5e10), (40.0, 1e11, 2.5e10)),
]


@function(ROOFS, tolerance=1e-9)
def roof(intensity: Number, peak_flop_per_sec: Number, bytes_per_sec: Number) -> Answers:
    """The most FLOP/s that a machine can reach at that many FLOPs per byte."""
    byte_s = 1 / bytes_per_sec
    seconds_of_a_byte = max(intensity / peak_flop_per_sec, byte_s)  # its FLOPs, and fetching it
    right = intensity / seconds_of_a_byte
    yield right, "The smaller of the peak and of intensity × bytes/s."
    fetched = intensity * bytes_per_sec
    larger, divided = max(peak_flop_per_sec, fetched), min(peak_flop_per_sec, bytes_per_sec / intensity)
    yield larger, "At 1 FLOP per byte, memory is slower than the peak. The smaller limit counts."
    yield fetched, "That is the slope alone, which rises for ever. The peak limits it."
    added = intensity / (intensity / peak_flop_per_sec + byte_s)
    yield added, "That adds the two times. A machine fetches while it multiplies: only the longer one counts."
    yield divided, "FLOPs per byte times bytes/s are FLOP/s: multiply."
    share = right / peak_flop_per_sec
    yield share, "That is the share of the peak. Return it in FLOP/s."
    unmultiplied = peak_flop_per_sec if right == peak_flop_per_sec else bytes_per_sec
    yield unmultiplied, "Below the ridge it is intensity × bytes/s: each byte brings that many FLOPs."


MODELS = [(12, 768, 50257, 1024), (96, 12288, 50257, 2048), (80, 8192, 128256, 8192)]


@function(MODELS)
def transformer_flops(layers: int, width: int, vocabulary: int, sequence: int) -> Answers:
    """FLOPs of training GPT-2's kind of model on one sequence, attention unmasked."""
    square, up = (sequence, width, width), (sequence, width, 4 * width)
    products = 4 * [square] + 2 * [up] + 2 * [(sequence, width, sequence)]  # of one layer
    layer = sum(predict.matmul_flops(*product) for product in products)
    output = predict.matmul_flops(sequence, width, vocabulary)
    right = 3 * (layers * layer + output)
    yield right, "3 · (24LH²S + 4S²HL + 2VHS): six matrices and two products of activations in each layer."
    yield right // 3, "That is the forward pass alone. The backward pass takes twice as much again."
    attention = layers * 4 * sequence**2 * width
    yield right - 3 * attention, "That leaves attention out: 4SH for each token and layer."
    yield right - 2 * attention, "Attention has a backward pass, too: the 3 belongs before all of it."
    yield right - 3 * output, "That leaves out the output: V rows of H numbers for each token."
    yield right - 2 * output, "The output has a backward pass, too: the 3 belongs before all of it."
    yield right - 3 * attention // 2, "Attention has two products: scores, and scores times values."
    yield right // sequence, "That is for one token. A sequence has S of them."
    yield right // 2, "Each weight is multiplied and added: 24H², and not 12H², for each token."
    yield 3 * (layer + output), "That is one layer. There are L of them."
    yield 3 * layers * (layer + output), "The output comes once, after all layers."
    yield right - 3 * output + 3 * output // sequence, "Every token goes through the output: times S."
    yield right - 3 * attention + 3 * attention // sequence, "Attention is 4SH for each of S tokens."
    yield 2 * right // 3, "That is the backward pass alone; the forward pass counts, too."


def _layers() -> Iterator[tuple[int, int, Number, Number]]:
    """D, K, a machine's peak FLOP/s and its bytes/s."""
    for machine in (MACHINES["H100 SXM"], MACHINES["A100 SXM"], MACHINES["L4"]):
        for d, k in ((4096, 4096), (4096, 16384), (2048, 8192)):
            yield d, k, machine.peak("bf16"), float(machine.bytes_per_sec)


@function(_layers)
def smallest_batch(d: int, k: int, flop_per_sec: Number, bytes_per_sec: Number) -> Answers:
    """The least B at which (B, D) @ (D, K) in bf16 is bound by arithmetic."""

    def least(number_bytes: int) -> int:
        b = 1
        while 2 * b * d * k / flop_per_sec < number_bytes * (b * d + d * k + b * k) / bytes_per_sec:
            b += 1
        return b

    right, ridge = least(2), flop_per_sec / bytes_per_sec
    yield right, "Nine layers on three machines, against a loop that tries B = 1, 2, 3, ..."
    at_ridge = math.ceil(ridge)
    yield at_ridge, "That is the ridge. Input and result are read and written too, so it takes a larger B."
    yield right - 1, "At that B, memory is still the limit: round up."
    yield math.ceil(ridge * d * k / (d * k - ridge * d)), "The result has to be written, too."
    yield least(4), "bf16 takes 2 bytes a number, not 4; and an addition is a FLOP, too."
    yield ridge * d * k / (d * k - ridge * (d + k)), "A batch is a whole number: round up."
    yield ridge, "That is the ridge. Input and result are read and written too; and a batch is whole."


RUNS = [
    *((3_500.0, 8e9, 32, 4096, 8192, 989.5e12), (1_000.0, 70e9, 80, 8192, 8192, 989.5e12)),
    (200_000.0, 124e6, 12, 768, 1024, 312e12),
]


@function(RUNS, tolerance=1e-6)
def utilisation(
    tokens_per_sec: Number, parameters: Number, layers: int, width: int, sequence: int, peak: Number
) -> Answers:
    """MFU of a training run with attention counted, from tokens per second."""

    def share(attention_products: int) -> Number:
        attention = attention_products * layers * width * sequence
        return (6 * parameters + attention) * tokens_per_sec / peak

    right = share(12)
    yield right, "Three runs: (6P + 12·L·H·S) FLOPs for each token, over the dense peak."
    yield share(0), "That leaves attention out. Add 12 · L · H · S for each token."
    yield share(4), "Attention has a backward pass too: 3 × 4 = 12, not 4."
    yield right / 3, "That is the forward pass alone; training takes three times that."
    yield peak * right, "That is what it does in FLOP/s. As a share of the peak, please."
    yield 100 * right, "As a share, not in per cent."
    yield share(6), "That is masked attention. Count it unmasked here."
    squared = share(12 * sequence)
    yield squared, "S² is for a whole sequence. Here everything is per token, so one S remains."
    by_ratio = 6 * parameters * (1 + sequence / (6 * width)) * tokens_per_sec / peak
    yield by_ratio, "S/(6H) assumes 12H² in a layer. These models differ: add 12 · L · H · S."


class Cloud(list):
    """Points under a roof. They are shown briefly in a verdict."""

    def __repr__(self) -> str:
        return f"[{len(self)} points]"


def _clouds() -> Iterator[tuple[Cloud]]:
    """Points (FLOPs per byte, FLOP/s): a few lie on a roof, most lie below it."""
    draw = random.Random(4)
    for peak, bandwidth in ((1e11, 2.5e10), (9.895e14, 3.35e12), (2e12, 1e11)):
        ridge = peak / bandwidth
        intensities = [ridge * 2 ** draw.uniform(-6, 6) for _ in range(60)]
        points = Cloud((x, min(peak, x * bandwidth) * draw.uniform(0.3, 1)) for x in intensities)
        points[7], points[23] = (ridge / 5, bandwidth * ridge / 5), (ridge * 4, peak)
        yield (points,)


@function(_clouds, tolerance=0.01)
def fitted_roofline(points: list[tuple[Number, Number]]) -> Answers:
    """A reader's (peak, bandwidth) from measured points, which lie on the roof or below it."""
    rates, bandwidths = zip(*((rate, rate / x) for x, rate in sorted(points)), strict=True)
    right = peak, bandwidth = max(rates), max(bandwidths)
    yield right, "Three invented roofs. On a real machine, products that fit into the cache show its roof."
    outermost = rates[-1], bandwidths[0]
    yield outermost, "The outermost points need not lie on the roof. Every point says: the roof is no lower."
    half = len(points) // 2
    for means in ((fmean(rates[half:]), fmean(bandwidths[:half])), (fmean(rates), fmean(bandwidths))):
        yield means, "A mean lies below the roof, as no measurement lies above it. Take the highest."
    lowest = peak, min(bandwidths)
    yield lowest, "The lowest one is of a point far to the right, or below the roof. Take the highest."
    yield (bandwidth, peak), "That is (bandwidth, peak). The peak comes first."


class Published(dict):
    """Seconds by size. They are shown briefly in a verdict."""

    def __repr__(self) -> str:
        return f"{{{len(self)} products}}"


HELD_AGAINST_A_PEAK = [  # a recording's products, and whose peak
    *(("H100 SXM, by OpenXLA", dtype, "H100 SXM") for dtype in ("fp8", "bf16")),
    ("V100 SXM2, by DeepBench", "fp16", "V100 PCIe"),
]


def _published() -> Iterator[tuple[Published, Number]]:
    for recording, dtype, machine in HELD_AGAINST_A_PEAK:
        seconds_by_size = machines.recordings()[recording].as_published(dtype)
        yield Published(seconds_by_size), MACHINES[machine].peak(dtype)


@function(_published)
def impossible_products(seconds_by_size: Mapping[Size, Number], peak: Number) -> Answers:
    """The products among published ones that are faster than a dense peak allows, in the order of the table."""
    rates = {size: 2 * math.prod(size) / seconds for size, seconds in seconds_by_size.items()}
    right = [size for size, rate in rates.items() if rate > peak]
    yield right, "Six of OpenXLA's in fp8, none in bf16; one of DeepBench's, if its V100 were a PCIe card."
    without_additions = [size for size, rate in rates.items() if rate > 2 * peak]
    yield without_additions, "A product has 2BDK FLOPs: each multiplication comes with an addition."
    of_half = [size for size, rate in rates.items() if rate > peak / 2]
    yield of_half, "The peak that is passed is dense already. Do not halve it."
    yield [size for size in rates if size not in right], "Those are possible. Return the others."
    yield len(right), "That is their number. Return their sizes."
    yield [rates[size] for size in right], "Those are their rates. Return their sizes, as (B, D, K)."


@value(
    wanted="the name of a format, in quotes",
    read=lambda answer: answer.strip().lower() if isinstance(answer, str) else answer,
)
def name_of_f32() -> Answers:
    """The format in which an H100 multiplies what a compiler calls f32."""
    yield "tf32", "tf32: fp32's range, 11 significant bits, on tensor cores. 403 of 494.5 TFLOP/s."
    yield "fp32", "Then it would be six times as fast as the fp32 units."
    yield "bf16", "bf16's own products are twice as fast on the same GPU."
    yield "fp16", "No compiler may do that by itself: fp16 ends at 65,504, and fp32 does not."
    yield "fp64", "That is twice as wide, and the sheet promises no more for it than for fp32."
