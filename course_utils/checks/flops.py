"""The exercises of notebook 04."""

from course_utils.checks.accountant import days, forward_flops, parameters  # noqa: F401  terms of the accountant
from course_utils.checks.judging import Answers, function, value
from course_utils.quantities import Number

# c in seconds, e, FLOP/s of the peak
FORECASTS = [(5.5e-6, 0.77, 989.5e12), (6e-6, 0.66, 2250e12), (9e-6, 0.82, 125e12)]


@function(FORECASTS, tolerance=2e-3)
def half_of_the_peak(c: Number, e: Number, peak_flop_per_sec: Number) -> Answers:
    """The n from which on n × n matrices multiply at half of the peak, by c + roof / e; arithmetic is the limit."""
    right = 1
    while 2 * right**3 / (c + 2 * right**3 / peak_flop_per_sec / e) < peak_flop_per_sec / 2:
        right += 1
    yield (
        right,
        "Twice the roof is c + roof / e, so the roof is c / (2 - 1/e). Times the peak, that is 2n³.",
    )
    priced = c * peak_flop_per_sec  # what could be done in the time of c
    only_c = (priced / 2) ** (1 / 3)
    yield only_c, "There the roof is as long as c. The forecast divides the roof by e, too."
    of_large = (priced * e / 2) ** (1 / 3)
    yield of_large, "That is half of what large products get. Half of the peak takes a larger n."
    yield (priced / 2 / (2 - e)) ** (1 / 3), "Large products get a share of the speed: divide the roof by e."
    cubed = priced / (2 - 1 / e)
    yield cubed ** (1 / 3), "An n × n product has 2n³ FLOPs: each multiplication comes with an addition."
    yield cubed / 2, "That is n³. Take the cube root."
    yield (cubed / 2) ** (1 / 2), "FLOPs grow as n³: take the cube root, and not the square root."


# Seconds, each of half a product and its transposition: as OpenXLA has them, and made up.
HALVES = [(56.705e-6, 17.872e-6, 11.056e-6), (56e-6, 16e-6, 9e-6), (45e-6, 24e-6, 6.5e-6)]


@function(HALVES, tolerance=1e-4)
def square_alone(square: Number, wide: Number, narrow: Number) -> Answers:
    """The square's product alone, from times that are each half of a product and a transposition."""
    least, most = 0.0, 2 * wide
    while most - least > 1e-12:  # seconds; the wide and the narrow product alone take the same time
        transposition = (least + most) / 2
        is_too_short = 2 * wide - transposition > 2 * narrow - transposition / 8
        least, most = (transposition, most) if is_too_short else (least, transposition)
    right = 2 * square - transposition
    yield right, "Twice the time, less a transposition, which is 16/7 of the difference of the other two."
    yield 2 * square, "That is the product and the transposition. Take the transposition off."
    yield square, "That is what the table says: half of a product and a transposition."
    yield square - transposition, "A time of the table is half of the two. Double it first."
    yield 2 * (square - wide + narrow), "The narrow factor is transposed, too: that takes off 7/8 of it."
    yield right + transposition / 2, "The two times differ by half of their transpositions' difference."
    yield transposition, "That is the transposition. Return the time of the product."


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
