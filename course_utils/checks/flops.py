"""The exercises of notebook 04."""

import math
import random
from collections.abc import Mapping

from course_utils import machines, predict
from course_utils.checks.verdict import Verdict, judge_function, judge_value
from course_utils.datasheets import MACHINES
from course_utils.machines import Size
from course_utils.quantities import Number


def cheaper_order(answer: object) -> Verdict:
    """FLOPs of A @ B @ v in the cheaper order, for two 1,000 × 1,000 matrices and a column."""
    column_first = 2 * predict.matmul_flops(1000, 1000, 1)
    matrices_first = predict.matmul_flops(1000, 1000, 1000) + predict.matmul_flops(1000, 1000, 1)
    return judge_value(
        answer,
        column_first,
        wanted="the FLOPs of the cheaper order",
        tempting={
            matrices_first: "That is (A @ B) @ v, with a product of two matrices. Start from the other end.",
            2 * 1000 * 1000 * 1999 // 1000: "That is the exact count. By the convention, a product is 2BDK.",
            predict.matmul_flops(1000, 1000, 1000): "That is A @ B, which the cheaper order never computes.",
            column_first // 2: "That is one product, or multiplications alone. There are two products, "
            "and each multiplication comes with an addition.",
        },
        because="A @ (B @ v): two products of 2 × 1000 × 1000 × 1. The other order costs 500.5 times as much.",
    )


def days(answer: object) -> Verdict:
    """GPT-3's 300 billion tokens on 1,024 A100s at half their peak, in days."""
    a100 = MACHINES["A100 SXM"]
    expected = predict.training_days(174.6e9, 300e9, a100, 1024, 0.5)
    return judge_value(
        answer,
        expected,
        wanted="days, within 1 %",
        tolerance=0.01,
        tempting={
            expected
            / 2: "That is at full peak, or with the sparse rate. Half of 312 TFLOP/s is what counts.",
            expected
            / 4: "That is with the sparse rate and at full peak: dense is 312 TFLOP/s, and half of it counts.",
            expected
            / 3: "That is the forward pass alone: training takes 6 FLOPs for each parameter and token.",
            expected * predict.SECONDS_PER_DAY: "That is in seconds.",
            expected * 24: "That is in hours.",
            expected * 1024: "That is on one A100.",
        },
        because="6 × 174.6e9 × 300e9 / (1024 × 312e12 × 0.5) seconds, and 86,400 of them a day.",
    )


def smallest_batch(answer: object) -> Verdict:
    """The least B at which (B, D) @ (D, K) in bf16 is bound by arithmetic."""

    def oracle(d: int, k: int, flop_per_sec: Number, bytes_per_sec: Number) -> int:
        b = 1
        while 2 * b * d * k / flop_per_sec < 2 * (b * d + d * k + b * k) / bytes_per_sec:
            b += 1
        return b

    def ridge_itself(d: int, k: int, flop_per_sec: Number, bytes_per_sec: Number) -> int:
        return -int(-flop_per_sec // bytes_per_sec)

    def rounded_down(d: int, k: int, flop_per_sec: Number, bytes_per_sec: Number) -> int:
        return oracle(d, k, flop_per_sec, bytes_per_sec) - 1

    def without_result(d: int, k: int, flop_per_sec: Number, bytes_per_sec: Number) -> int:
        ridge = flop_per_sec / bytes_per_sec
        return math.ceil(ridge * d * k / (d * k - ridge * d))

    def four_bytes(d: int, k: int, flop_per_sec: Number, bytes_per_sec: Number) -> int:
        b = 1
        while 2 * b * d * k / flop_per_sec < 4 * (b * d + d * k + b * k) / bytes_per_sec:
            b += 1
        return b

    def not_rounded(d: int, k: int, flop_per_sec: Number, bytes_per_sec: Number) -> Number:
        ridge = flop_per_sec / bytes_per_sec
        return ridge * d * k / (d * k - ridge * (d + k))

    machines_at_hand = [MACHINES[name] for name in ("H100 SXM", "A100 SXM", "L4")]
    cases = [
        (d, k, m.peak("bf16"), float(m.bytes_per_sec))
        for m in machines_at_hand
        for d, k in ((4096, 4096), (4096, 16384), (2048, 8192))
    ]
    return judge_function(
        answer,
        oracle,
        cases,
        tempting={
            ridge_itself: "That is the ridge. Input and result are read and written too, so it takes a larger B.",
            rounded_down: "One less, and memory is the limit still: round up.",
            without_result: "The result has to be written, too.",
            four_bytes: "That is with 4 bytes for each number, or without the additions. bf16 takes 2 bytes; an addition is a FLOP.",
            not_rounded: "A batch is a whole number: round up.",
        },
        because="Nine layers on three machines, against a loop that tries B = 1, 2, 3, ...",
    )


def utilisation(answer: object) -> Verdict:
    """MFU of a training run with attention counted, from tokens per second."""

    def oracle(
        tokens_per_sec: Number, parameters: Number, layers: int, width: int, sequence: int, peak: Number
    ) -> Number:
        return (6 * parameters + 12 * layers * width * sequence) * tokens_per_sec / peak

    def without_attention(
        rate: Number, parameters: Number, layers: int, width: int, sequence: int, peak: Number
    ) -> Number:
        return 6 * parameters * rate / peak

    def forward_attention(
        rate: Number, parameters: Number, layers: int, width: int, sequence: int, peak: Number
    ) -> Number:
        return (6 * parameters + 4 * layers * width * sequence) * rate / peak

    def forward_only(
        rate: Number, parameters: Number, layers: int, width: int, sequence: int, peak: Number
    ) -> Number:
        return oracle(rate, parameters, layers, width, sequence, peak) / 3

    def squared(
        rate: Number, parameters: Number, layers: int, width: int, sequence: int, peak: Number
    ) -> Number:
        return (6 * parameters + 12 * layers * width * sequence**2) * rate / peak

    def percent(
        rate: Number, parameters: Number, layers: int, width: int, sequence: int, peak: Number
    ) -> Number:
        return 100 * oracle(rate, parameters, layers, width, sequence, peak)

    def halved(
        rate: Number, parameters: Number, layers: int, width: int, sequence: int, peak: Number
    ) -> Number:
        return (6 * parameters + 6 * layers * width * sequence) * rate / peak

    def achieved(
        rate: Number, parameters: Number, layers: int, width: int, sequence: int, peak: Number
    ) -> Number:
        return peak * oracle(rate, parameters, layers, width, sequence, peak)

    cases = [
        (3_500.0, 8e9, 32, 4096, 8192, 989.5e12),
        (1_000.0, 70e9, 80, 8192, 8192, 989.5e12),
        (200_000.0, 124e6, 12, 768, 1024, 312e12),
    ]
    return judge_function(
        answer,
        oracle,
        cases,
        tolerance=1e-6,
        tempting={
            without_attention: "That leaves attention out. Add 12 · L · H · S for each token.",
            forward_attention: "Attention has a backward pass too: 3 × 4 = 12, not 4.",
            forward_only: "That is the forward pass alone; training takes three times that.",
            achieved: "That is what it does in FLOP/s. As a share of the peak, please.",
            percent: "As a share, not in per cent.",
            halved: "That is masked attention. Count it unmasked here.",
            squared: "S² is for a whole sequence. Here everything is per token, so one S remains.",
        },
        because="Three runs: (6P + 12·L·H·S) FLOPs for each token, over the dense peak.",
    )


def fitted_roofline(answer: object) -> Verdict:
    """A reader's (peak, bandwidth) from measured points, which lie on the roof or below it."""

    def oracle(points: list[tuple[Number, Number]]) -> tuple[Number, Number]:
        return max(rate for _, rate in points), max(rate / x for x, rate in points)

    def first_and_last(points: list[tuple[Number, Number]]) -> tuple[Number, Number]:
        points = sorted(points)
        return points[-1][1], points[0][1] / points[0][0]

    def means(points: list[tuple[Number, Number]]) -> tuple[Number, Number]:
        high = sorted(points)[len(points) // 2 :]
        low = sorted(points)[: len(points) // 2]
        return sum(rate for _, rate in high) / len(high), sum(rate / x for x, rate in low) / len(low)

    def lowest(points: list[tuple[Number, Number]]) -> tuple[Number, Number]:
        return max(rate for _, rate in points), min(rate / x for x, rate in points)

    def one_mean(points: list[tuple[Number, Number]]) -> tuple[Number, Number]:
        return (
            sum(rate for _, rate in points) / len(points),
            sum(rate / x for x, rate in points) / len(points),
        )

    def swapped(points: list[tuple[Number, Number]]) -> tuple[Number, Number]:
        peak, bandwidth = oracle(points)
        return bandwidth, peak

    return judge_function(
        answer,
        oracle,
        [(points,) for points in _clouds()],
        tolerance=0.01,
        tempting={
            first_and_last: "The outermost points need not lie on the roof. Every point says: the roof is no lower.",
            means: "A mean lies below the roof, since a measurement can only fall short of it. Take the highest.",
            lowest: "The lowest is a point far to the right, or one that fell short. Each point says: no lower than this.",
            one_mean: "A mean lies below the roof, since a measurement can only fall short of it. Take the highest.",
            swapped: "That is (bandwidth, peak). The peak comes first.",
        },
        because="Three made-up machines, whose roofs are known. On a real one this finds the cache where products fit into it.",
    )


def impossible_products(answer: object) -> Verdict:
    """The products among published ones that are faster than a dense peak allows, in the order of the table."""

    def oracle(seconds_by_size: Mapping[Size, Number], peak: Number) -> list[Size]:
        return [(b, d, k) for (b, d, k), seconds in seconds_by_size.items() if 2 * b * d * k / seconds > peak]

    def without_additions(seconds_by_size: Mapping[Size, Number], peak: Number) -> list[Size]:
        return oracle(seconds_by_size, 2 * peak)

    def of_the_sparse_rate(seconds_by_size: Mapping[Size, Number], peak: Number) -> list[Size]:
        return oracle(seconds_by_size, peak / 2)

    def the_possible(seconds_by_size: Mapping[Size, Number], peak: Number) -> list[Size]:
        return [size for size in seconds_by_size if size not in oracle(seconds_by_size, peak)]

    def how_many(seconds_by_size: Mapping[Size, Number], peak: Number) -> int:
        return len(oracle(seconds_by_size, peak))

    def rates(seconds_by_size: Mapping[Size, Number], peak: Number) -> list[Number]:
        return [2 * math.prod(size) / seconds_by_size[size] for size in oracle(seconds_by_size, peak)]

    h100, v100 = (machines.recordings()[name] for name in ("H100 SXM, by OpenXLA", "V100 SXM2, by DeepBench"))
    cases = [
        (Published(h100.as_published("fp8")), MACHINES["H100 SXM"].peak("fp8")),
        (Published(h100.as_published("bf16")), MACHINES["H100 SXM"].peak("bf16")),
        (Published(v100.as_published("fp16")), MACHINES["V100 PCIe"].peak("fp16")),
    ]
    return judge_function(
        answer,
        oracle,
        cases,
        tempting={
            without_additions: "A product has 2BDK FLOPs: each multiplication comes with an addition.",
            of_the_sparse_rate: "The peak that is passed is dense already. Do not halve it.",
            the_possible: "Those can be. Wanted are the others.",
            how_many: "That is how many. Wanted are their sizes.",
            rates: "Those are their rates. Wanted are their sizes, as (B, D, K).",
        },
        because="Six of OpenXLA's in fp8, none in bf16; and one of DeepBench's, had that V100 been a PCIe card.",
    )


def name_of_f32(answer: object) -> Verdict:
    """The format in which an H100 multiplies what a compiler calls f32."""
    return judge_value(
        answer,
        "tf32",
        wanted="the name of a format, in quotes",
        tempting={
            "fp32": "Then it would be six times as fast as its units can be.",
            "bf16": "bf16's own products are twice as fast on the same GPU.",
            "fp16": "No compiler may do that by itself: fp16 ends at 65,504, and fp32 does not.",
            "fp64": "That is twice as wide, and the sheet promises no more for it than for fp32.",
        },
        because="tf32: fp32's reach and 11 bits of each number, on the tensor cores. 403 of 494.5 TFLOP/s.",
    )


class Published(dict):
    """Seconds by size, that show themselves briefly."""

    def __repr__(self) -> str:
        return f"{{{len(self)} products}}"


class Cloud(list):
    """Points under a roof, that show themselves briefly."""

    def __repr__(self) -> str:
        return f"[{len(self)} points]"


def _clouds() -> list[Cloud]:
    """(FLOPs per byte, FLOP/s) under roofs that are met at places, and fallen short of at most."""
    draw = random.Random(4)
    clouds = []
    for peak, bandwidth in ((1e11, 2.5e10), (9.895e14, 3.35e12), (2e12, 1e11)):
        ridge = peak / bandwidth
        intensities = [ridge * 2 ** draw.uniform(-6, 6) for _ in range(60)]
        points = Cloud((x, min(peak, x * bandwidth) * draw.uniform(0.3, 1)) for x in intensities)
        points[7], points[23] = (ridge / 5, bandwidth * ridge / 5), (ridge * 4, peak)
        clouds.append(points)
    return clouds
