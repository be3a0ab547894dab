"""Exercises in *Beyond* of notebook 04; `check` imports them by name, and has the others.

For one case, an exercise yields the right answer first, and then what tempting mistakes lead to.
Each has a sentence: why it is right, or the advice on the mistake.
"""

import math
import random
from collections.abc import Iterator, Sequence
from statistics import fmean, median

from course_utils.core import predict
from course_utils.core.say import Number, rate_text
from course_utils.core.say.language import translated
from course_utils.engine.judging import Answers, function, value


def _lower_case(answer: object) -> object:
    """Return a string in lower case, without spaces around it; any other answer unchanged."""
    return answer.strip().lower() if isinstance(answer, str) else answer


@value(wanted="the name of a format, in quotes", read=_lower_case)
def name_of_f32() -> Answers:
    """The format in which an H100 multiplies what a compiler calls f32."""
    yield "tf32", "tf32: fp32's range, 11 significant bits, on tensor cores. 403 of 494.5 TFLOP/s."
    yield "fp32", "Then it would be six times as fast as the fp32 units."
    yield "bf16", "bf16's own products are twice as fast on the same GPU."
    yield "fp16", "No compiler may do that by itself: fp16 ends at 65,504, and fp32 does not."
    yield "fp64", "That is twice as wide, and the sheet promises no more for it than for fp32."


# Runs: tokens a second on each GPU, parameters, layers, width, tokens of a sequence, and the peak
# in FLOP/s. The first two are torchtitan's on A100s, the last is llm.c's on H100s.
RUNS = [
    (2_973.0, 8_030_261_248, 32, 4_096, 8_192, 312e12),
    (331.0, 70_553_706_496, 80, 8_192, 8_192, 312e12),
    (47_687.5, 1_557_686_400, 48, 1_600, 1_024, 989.5e12),
]


def _run_in_words(
    tokens_per_sec: Number, parameters: int, layers: int, width: int, sequence: int, peak: Number
) -> str:
    """Return the beginning of a verdict, which names the case that the reader's function got wrong.

    The sizes have one letter each, since the six parameters' full names would fill the verdict.
    """
    model = f"P = {parameters:,}, L = {layers}, H = {width:,}, S = {sequence:,}"
    return translated(
        "For {rate} tokens/s, {model} and a peak of {peak}",
        rate=f"{tokens_per_sec:,.6g}",
        model=model,
        peak=rate_text(peak),
    )


@function(
    RUNS,
    tolerance=1e-6,
    case_words=_run_in_words,
    hints=(
        "Begin with the FLOPs of one token: 6 for each parameter, and those of attention.",
        "Forward, a token's query meets `sequence` keys and then as many values: 4 · width · "
        "sequence FLOPs in each layer. Training takes three times that.",
        "Times the tokens per second, these are FLOP/s. Divide by the peak.",
    ),
)
def utilisation(
    tokens_per_sec: Number,
    parameters: int,
    layers: int,
    width: int,
    sequence: int,
    peak: Number,
) -> Answers:
    """The check of a reader's utilisation(…): a run's MFU, with all pairs of tokens counted."""
    seconds = sequence / tokens_per_sec  # that a sequence takes
    without_attention = predict.training_flops(parameters, sequence)  # 6PN, for one sequence
    # Attention has two products: queries × keys, and scores × values.
    forward_of_a_layer = 2 * predict.matmul_flops(sequence, width, sequence)
    attention = 3 * layers * forward_of_a_layer  # training takes three forward passes
    right = (without_attention + attention) / seconds / peak
    yield (
        right,
        "Three runs: 6P + 12 · L · H · S FLOPs for each token, times tokens per second, "
        "over the dense peak.",
    )
    for wrong_attention, advice in _wrong_attention_flops(attention, layers, sequence):
        yield (without_attention + wrong_attention) / seconds / peak, advice
    yield (
        right * 4 / 3,
        "That counts the forward pass twice, as if it were recomputed. MFU counts it once.",
    )
    yield right / 3, "That is the forward pass alone. Training takes three times as much."
    yield right * 2 / 3, "That is the backward pass alone. The forward pass counts, too."
    yield right * peak, "Those are FLOP/s. The MFU is their share of the peak: divide by it."
    yield 100 * right, "That is in percent. Return the share, such as 0.5 for a half."
    yield 1 / right, "That is turned round: divide the FLOP/s of the model by the peak."
    yield (
        right / tokens_per_sec,
        "Those are the FLOPs of one token, over the peak: multiply by the tokens per second, too.",
    )
    yield (
        right / tokens_per_sec**2,  # FLOPs per token / tokens per second, over the peak
        "FLOPs per token times tokens per second are FLOP/s: multiply.",
    )


def _wrong_attention_flops(right: int, layers: int, sequence: int) -> Answers:
    """Yield wrong counts of attention's FLOPs, each with advice.

    `right` is the right count of a training step on one sequence, in all layers. The reader counts
    for one token, so the advice speaks of one: a count that is off by some factor for a token is
    off by the same factor for the sequence.
    """
    yield 0, "That leaves attention out: 12 · layers · width · sequence more for each token."
    yield right / 3, "Attention has a backward pass, too, which takes twice its forward pass."
    yield (
        right / 2,
        "That is half of attention. It has two products, and here all pairs of tokens count.",
    )
    yield (
        right * sequence,
        "A whole sequence has S² pairs. One token meets S keys, so one S remains.",
    )
    yield right / layers, "That is the attention of one layer. Each layer has it."
    yield right / sequence, "A token meets the keys of all `sequence` tokens."


# The right answer is √(FLOPs / (6 · tokens per parameter)). Whoever forgets a factor under the root
# gets the right answer times the root of that factor.
@function(
    [(5.88e23, 20), (3.14e23, 25.0), (2.4e21, 200)],
    tolerance=1e-6,
    hints=(
        "Training takes 6PN FLOPs. The tokens N are P times tokens_per_parameter.",
        "So flops = 6 · P · P · tokens_per_parameter, and only P is unknown.",
    ),
)
def best_size(flops: Number, tokens_per_parameter: Number) -> Answers:
    """The check of a reader's best_size(…): the parameters on which these FLOPs are well spent."""
    # Found by bisection, and not by the formula that a reader writes: the FLOPs grow with P.
    least = 0.0
    most = flops  # certainly more parameters than so many FLOPs can train
    for _ in range(200):  # so often that no float is left between the two
        right = (least + most) / 2
        if predict.training_flops(right, right * tokens_per_parameter) < flops:
            least = right
        else:
            most = right
    yield right, "P is the square root of flops / (6 · tokens_per_parameter)."
    yield (
        right * tokens_per_parameter,
        "Those are the tokens. For the parameters, put what you divide by in brackets: "
        "(6 * tokens_per_parameter).",
    )
    yield (
        right**2,
        "That is P². The tokens grow with the parameters, so FLOPs grow as P²: take the root.",
    )
    yield (
        right * math.sqrt(6),
        "Each parameter and token takes 6 FLOPs in training: divide by 6, too.",
    )
    yield right * math.sqrt(3), "2 FLOPs are the forward pass alone. Training takes 6."
    yield (
        right * math.sqrt(tokens_per_parameter),
        "That has one token for each parameter. There are tokens_per_parameter.",
    )
    root_last = "Take the root last: of flops / (6 · tokens_per_parameter) as a whole."
    # The root is taken too early: of all FLOPs, of FLOPs / 6, or of FLOPs / tokens_per_parameter.
    yield right / math.sqrt(6 * tokens_per_parameter), root_last
    yield right / math.sqrt(tokens_per_parameter), root_last
    yield right / 6**0.5, root_last
    yield right**2 / 2, "x ** 1 / 2 is (x ** 1) / 2. Write x ** 0.5, or math.sqrt(x)."


# The sides of a result and of a tile, and a GPU's cores. The first case takes 22 waves, and
# no two mistakes give the same number there. Three others have an A100's or an H100's cores.
IN_TILES = [
    (400, 1000, 128, 64, 3),
    (1793, 1793, 256, 128, 108),
    (1024, 1024, 256, 128, 132),
    (4096, 2176, 256, 128, 132),
    (300, 1000, 128, 64, 10),
]


@function(
    IN_TILES,
    tolerance=1e-6,
    hints=(
        "How many tiles cover the result? Round up on each side: math.ceil(rows / tile_rows).",
        "How many waves are that? math.ceil(tiles / cores).",
        "In each wave, every core could compute tile_rows · tile_columns numbers. "
        "The result has rows · columns.",
    ),
)
def busy_share(rows: int, columns: int, tile_rows: int, tile_columns: int, cores: int) -> Answers:
    """The check of a reader's busy_share(…): the part of the GPU's work that a result needs."""
    # Tiles and waves are counted one by one, and not by the formula that a reader writes.
    tiles = 0
    for _row in range(0, rows, tile_rows):
        for _column in range(0, columns, tile_columns):
            tiles += 1
    waves = 0
    waiting = tiles
    while waiting > 0:  # in each wave, every core takes one of the waiting tiles
        waiting -= cores
        waves += 1
    needed = rows * columns  # the numbers of the result
    of_a_tile = tile_rows * tile_columns  # the numbers of a tile
    right = needed / (waves * cores * of_a_tile)
    yield right, "Five results: rows · columns, over waves · cores · the numbers of a tile."
    for wrong_tiles, advice in _wrong_tile_counts(rows, columns, tile_rows, tile_columns):
        yield needed / (math.ceil(wrong_tiles / cores) * cores * of_a_tile), advice
    whole_waves = max(tiles // cores, 1)  # at least 1, so as not to divide by 0
    yield (
        needed / (whole_waves * cores * of_a_tile),
        "The last wave counts, even if it is not full: round tiles / cores up, and not down.",
    )
    yield (
        needed / (tiles * of_a_tile),
        "The last wave takes as long as the others, however few tiles it has: round up.",
    )
    yield (
        tiles / (waves * cores),
        "That counts tiles. Those at the edge are partly empty: count the result's numbers.",
    )
    yield waves, "Those are the waves. Return the share of their work that the result needs."
    yield 1 / right, "That is turned round: what is needed comes first, over what is computed."
    yield 100 * right, "That is in percent. Return the share, such as 0.5 for a half."
    yield right * cores, "In each wave, every core takes a tile: divide by the cores, too."
    yield (
        right * of_a_tile,
        "A core computes a whole tile in a wave: divide by the numbers of a tile, too.",
    )


def _wrong_tile_counts(rows: int, columns: int, tile_rows: int, tile_columns: int) -> Answers:
    """Yield wrong counts of the tiles that cover a result, each with the advice on it."""
    yield (
        rows * columns / (tile_rows * tile_columns),
        "A tile at the edge takes as long as a whole one: round up on each side.",
    )
    # A side shorter than the tile's is taken as one tile, so that no division by 0 follows.
    of_the_edge = "What is left at the edge takes tiles, too: always round up on each side."
    yield max(1, rows // tile_rows) * max(1, columns // tile_columns), of_the_edge
    yield max(1, round(rows / tile_rows)) * max(1, round(columns / tile_columns)), of_the_edge
    yield (
        math.ceil(rows / tile_columns) * math.ceil(columns / tile_rows),
        "The sides of the tile are swapped: rows go with tile_rows.",
    )


Product = tuple[Number, Number, Number]  # its FLOPs, the bytes that it moves, and its seconds


def _products() -> Iterator[tuple[list[Product]]]:
    """Yield a case for each of three invented GPUs: its only argument is a list of 40 products.

    Five of the products are on the roof, and the others take longer.
    """
    draw = random.Random(4)
    # The peak of each GPU in FLOP/s, and its bandwidth in bytes/s.
    for peak, bandwidth in ((9.9e14, 3.4e12), (1.2e14, 9e11), (1e11, 2.5e10)):
        products = []
        for number in range(40):
            nbytes = 10 ** draw.uniform(6, 9)  # from a megabyte to a gigabyte
            # FLOPs per byte from 1/64 of the ridge, which is peak / bandwidth, to 64 times as many.
            flops = nbytes * peak / bandwidth * 2 ** draw.uniform(-6, 6)
            roof_s = max(flops / peak, nbytes / bandwidth)
            is_on_the_roof = number % 8 == 5  # products 5, 13, 21, 29 and 37
            slowdown = 1 if is_on_the_roof else draw.uniform(1.05, 3)
            products.append((flops, nbytes, roof_s * slowdown))
        yield (products,)


def _in_words(products: Sequence[Product]) -> str:
    """Return the beginning of a verdict, which names the case that went wrong."""
    return translated("For {count} products of an invented GPU", count=len(products))


@function(
    _products,
    tolerance=1e-6,
    case_words=_in_words,
    gives=("peak", "bandwidth"),
    hints=(
        "No product is faster than the roof, so the peak is at least as high as each one's FLOP/s.",
        "Each product's flops / seconds is at most the peak, and its nbytes / seconds at most "
        "the bandwidth. Return the largest of each.",
    ),
)
def fitted_roof(products: Sequence[Product]) -> Answers:
    """The check of a reader's fitted_roof(products): (peak, bandwidth), as far as they show."""
    rates = [flops / seconds for flops, _, seconds in products]
    bandwidths = [nbytes / seconds for _, nbytes, seconds in products]
    right = max(rates), max(bandwidths)
    yield right, "Three invented GPUs. Each product shows what the GPU can at least do."
    yield right[::-1], "That is (bandwidth, peak). The peak comes first."
    fastest = rates.index(right[0])  # the place of the product that shows the peak
    of_one = "The product that shows the peak does not show the bandwidth: look for each by itself."
    yield (rates[fastest], bandwidths[fastest]), of_one
    all_seconds = [seconds for _, _, seconds in products]
    shortest = all_seconds.index(min(all_seconds))
    yield (
        (rates[shortest], bandwidths[shortest]),
        "That product takes the least time because it has little to do. Compare rates.",
    )
    # In a roofline plot, the intensity is the horizontal axis.
    intensities = [flops / nbytes for flops, nbytes, _ in products]
    rightmost = intensities.index(max(intensities))
    leftmost = intensities.index(min(intensities))
    yield (
        (rates[rightmost], bandwidths[leftmost]),
        "The outermost products need not lie on the roof. Look at all of them.",
    )
    below = "That is an average, which lies below the roof, as no product lies above it."
    yield (fmean(rates), fmean(bandwidths)), below
    yield (median(rates), median(bandwidths)), below
    yield (
        (right[0], min(bandwidths)),
        "The least bandwidth is that of a compute-bound product. Take the largest.",
    )
    yield (
        (max(flops for flops, _, _ in products), max(nbytes for _, nbytes, _ in products)),
        "Those are FLOPs and bytes. Divide each by the product's seconds.",
    )


# D, K, the bytes of a weight, the peak in FLOP/s, and the bandwidth in bytes/s.
LAYERS = [
    (2048, 8192, 0.5, 989.5e12, 3.35e12),
    (4096, 16384, 1, 312e12, 2.039e12),
    (8192, 8192, 0.5, 121e12, 300e9),
    (4096, 4096, 2, 989.5e12, 3.35e12),
]


@function(
    LAYERS,
    hints=(
        "The bytes are 2 · B · D for x, weight_bytes · D · K for the weights, 2 · B · K for y.",
        "Write it as an equation: 2 · B · D · K / peak = bytes / bandwidth. "
        "Bring all that has a B to one side.",
        "B = ridge · weight_bytes · D · K / (2 · (D · K - ridge · (D + K))), with ridge = "
        "peak / bandwidth. Round up with math.ceil.",
    ),
)
def smallest_batch(
    d: int, k: int, weight_bytes: Number, peak: Number, bandwidth: Number
) -> Answers:
    """The check of a reader's smallest_batch(…): from which B on a layer is compute-bound."""

    def least(of_a_weight: Number, of_x: Number, of_y: Number, flops: int = 2) -> int:
        """Return the least B at which the layer is compute-bound, by trying 1, 2, 3 and so on.

        Given are the bytes of one number of the weights, of x and of y, and a multiply-add's FLOPs.
        """
        b = 1
        while True:
            compute_s = flops * b * d * k / peak
            moved_bytes = of_x * b * d + of_a_weight * d * k + of_y * b * k
            if compute_s >= moved_bytes / bandwidth:
                return b
            b += 1

    right = least(weight_bytes, 2, 2)  # x and y are in bf16, which takes 2 bytes a number
    yield right, "Four layers, against a loop that tries B = 1, 2, 3 and so on."
    yield least(2, 2, 2), "Only x and y take 2 bytes a number. A weight takes weight_bytes."
    in_bf16 = "x and y stay in bf16: 2 bytes a number, whatever a weight takes."
    yield least(weight_bytes, weight_bytes, weight_bytes), in_bf16
    moved = "x and y are moved, too: 2 · B · D and 2 · B · K bytes."
    yield least(weight_bytes, 0, 0), moved
    yield least(weight_bytes, 2, 0), "The result y is written: 2 · B · K bytes more."
    yield least(weight_bytes, 0, 2), "The input x is read: 2 · B · D bytes more."
    ridge = peak / bandwidth
    of_the_ridge = "That is the ridge, in FLOPs per byte. Write down FLOPs and bytes of this layer."
    yield math.ceil(ridge), of_the_ridge
    yield ridge, of_the_ridge
    yield right - 1, "At that B the layer is still memory-bound: round up."
    # At this B, before it is rounded, arithmetic and memory take equally long.
    exact = ridge * weight_bytes * d * k / (2 * (d * k - ridge * (d + k)))
    yield exact, "A batch is a whole number: round up."
    other_sign = ridge * weight_bytes * d * k / (2 * (d * k + ridge * (d + k)))
    of_the_sign = "The bytes of x and y change sides, and so their sign: D · K - ridge · (D + K)."
    yield math.ceil(other_sign), of_the_sign
    yield other_sign, of_the_sign
    yield least(weight_bytes, 2, 2, flops=1), "A multiply-add is 2 FLOPs."
