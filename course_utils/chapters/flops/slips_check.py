"""What natural slips lead to in the exercises of notebook 04, beside the mistakes in `check`.

Each function yields wrong answers with the advice; the first arguments are those of a case.
"""

import math

from course_utils.core.accountant import Model
from course_utils.core.predict import shape_of
from course_utils.core.say import Number
from course_utils.engine.judging import Answers


def of_n(c: Number, e: Number, peak: Number) -> Answers:
    """Yield wrong sizes of matrices from right equations, and sizes from a wrong roof."""
    roof = c / (2 - 1 / e)
    n_cubed = roof * peak / 2
    brackets = "Python takes ** before /, so write the exponent in brackets: (1 / 3)."
    yield n_cubed / 3, brackets  # n_cubed ** 1 / 3
    yield 2 * n_cubed / 3, brackets
    yield (4 * n_cubed) ** (1 / 3), "2n³ are the FLOPs, so n³ is half of that, not twice."
    yield (
        (roof / 2) ** (1 / 3),
        "The roof time is in seconds. FLOPs are seconds times FLOP/s: the peak is missing.",
    )
    times = "c is (2 - 1/e) roof times, so it has to be divided to give the roof time."
    yield (c * (2 - 1 / e) * peak / 2) ** (1 / 3), times
    yield roof, "That is the roof time, in seconds. Which n has a product that takes so long?"


def of_days(flops: Number, gpus: int, peak: Number, share: Number) -> Answers:
    """Yield wrong days."""
    seconds = flops / gpus / peak / share
    days = seconds / 86_400
    yield 1 / seconds / 86_400, "That is upside down: work is divided by speed."
    yield 1 / seconds, "That is upside down: work is divided by speed."
    whole = "Return the days as they are: nothing is rounded."
    yield math.floor(days), whole
    yield round(days), whole
    a_day = "A day has 24 hours of 60 minutes of 60 seconds."
    yield seconds / 24, a_day
    yield seconds / 24 / 60, a_day
    yield days * 100, "share is a fraction, not a percentage: 40 % is 0.4."
    yield days / 365, "That is in years. Days are wanted."
    yield days * share / (1 - share), "share is what is reached of the peak, not what is lost."
    brackets = "a / b * c is (a / b) * c: put what you divide by in brackets."
    yield seconds * (peak * share) ** 2, brackets  # flops / gpus * peak * share


def of_forward_flops(m: Model, batch: int, sequence: int, right: int) -> Answers:
    """Yield wrong FLOPs of a forward pass, of which `right` are the right ones."""
    by_part = shape_of(m).forward_flops(batch, sequence)
    tokens = batch * sequence
    yield (
        by_part["matrices"] // m.layers,
        "Those are the matrices of one layer. There are m.layers layers, attention's two products, "
        "and the product with the vocabulary.",
    )
    output = by_part["output"]
    yield (
        right - output + output // tokens,
        "Each token has a product with the vocabulary, not only the last one.",
    )
    yield (
        by_part["matrices"] // m.layers + output,
        "There are m.layers layers, and each has attention's two products, too.",
    )
    yield (
        right - by_part["attention"] + by_part["attention"] // sequence,
        "Each of the S tokens is paired with all S of its sequence: S × S pairs.",
    )
    of_a_layer = (by_part["matrices"] + by_part["attention"]) // m.layers
    yield of_a_layer + output, "There are m.layers layers."
    yield of_a_layer, "There are m.layers layers, and then the product with the vocabulary."
    matrices = 7 if m.gated else 6
    yield (
        right + (matrices - 1) * by_part["attention"],
        "A layer has attention once, and not once for each matrix.",
    )
