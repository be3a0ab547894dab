"""The exercises of notebook 04.

In some cases a listed mistake equals the right answer. It explains a reader's error only if it
agrees with what their function returned in every case so far.
"""

from dataclasses import replace

from course_utils.chapters import by_torch
from course_utils.chapters.flops import parameter_slips_check, parts, slips_check
from course_utils.chapters.flops.beyond_check import (  # noqa: F401  exercises, too
    best_size,
    busy_share,
    fitted_roof,
    name_of_f32,
    smallest_batch,
    utilisation,
)
from course_utils.chapters.flops.serving_check import cache_bytes  # noqa: F401
from course_utils.chapters.flops.transposed import HALVES, transposition_s
from course_utils.chapters.small_models import (
    GPT,
    LLAMA,
    QWEN,
    QWEN_HALF_BILLION,
    case_in_words,
)
from course_utils.core.accountant import Model
from course_utils.core.predict import shape_of
from course_utils.core.say import Number
from course_utils.core.say.language import translated
from course_utils.engine.judging import Answers, NotYetError, function
from course_utils.engine.judging.sentences import number_in_full

# By the forecast, a product takes c + roof / e. Given are c in seconds, e, and the peak in FLOP/s.
FORECASTS = [
    (5.5e-6, 0.77, 989.5e12),
    (6e-6, 0.66, 2250e12),
    (9e-6, 0.82, 125e12),
]


def _read_n(result: object, *_: Number) -> object:
    """Return the reader's n; NotYetError for what Python gives as the root of a negative number."""
    if isinstance(result, complex):
        raise NotYetError(
            "That is no real number, because your roof time is below zero. Solve "
            "c + roof / e = 2 · roof for the roof once more, and mind the signs."
        )
    return result


@function(
    FORECASTS,
    tolerance=2e-3,
    read=_read_n,
    case_words=lambda c, e, peak: translated(
        "With c = {c} µs, e = {e} and a peak of {peak} TFLOP/s",
        c=f"{1e6 * c:g}",
        e=f"{e:g}",
        peak=f"{peak / 1e12:g}",
    ),
    unit="rows",
    hints=(
        "Write the sentence as an equation: c + roof / e = 2 · roof. Only the roof is unknown.",
        "The roof is c / (2 - 1 / e), in seconds. Times the peak, those are the product's FLOPs.",
        "2n³ are these FLOPs. Divide by 2, and take the cube root: ** (1 / 3).",
    ),
)
def half_of_the_peak(c: Number, e: Number, peak: Number) -> Answers:
    """The check of a reader's half_of_the_peak(c, e, peak): the n at which a product reaches it."""
    # An n × n product takes c + roof / e seconds. The roof is the time of its FLOPs at the peak, c
    # is what any kernel takes, and e the share of the peak that large products reach.
    right = 1  # counted up to the first whole n; the tolerance allows for a fraction
    while _forecast_rate(right, c, e, peak) < peak / 2:
        right += 1
    yield (
        right,
        "Twice the roof is c + roof / e, so the roof is c / (2 - 1/e). "
        "Times the peak, that is 2n³.",
    )
    during_c = c * peak  # the FLOPs that could be done in the time of c
    only_c = (during_c / 2) ** (1 / 3)
    yield only_c, "There the roof is as long as c. The forecast divides the roof by e, too."
    of_large = (during_c * e / 2) ** (1 / 3)  # from c + roof / e = 2 · roof / e
    yield of_large, "That is half of what large products get. Half of the peak takes a larger n."
    times_e = (during_c / 2 / (2 - e)) ** (1 / 3)  # from c + roof · e = 2 · roof
    yield times_e, "Large products get a share of the speed: divide the roof by e."
    twice_n_cubed = during_c / (2 - 1 / e)  # the right number of FLOPs
    yield (
        twice_n_cubed ** (1 / 3),
        "An n × n product has 2n³ FLOPs: each multiplication comes with an addition.",
    )
    n_cubed = twice_n_cubed / 2
    yield n_cubed, "That is n³. Take the cube root."
    yield n_cubed ** (1 / 2), "FLOPs grow as n³: take the cube root, and not the square root."
    yield from slips_check.of_n(c, e, peak)


def _forecast_rate(n: int, c: Number, e: Number, peak_flop_per_sec: Number) -> Number:
    """Return the FLOP/s of a product of n × n matrices that takes c + roof / e seconds."""
    flops = 2 * n**3
    return flops / (c + flops / peak_flop_per_sec / e)


@function(HALVES, tolerance=1e-4)
def square_alone(square: Number, wide: Number, narrow: Number) -> Answers:
    """The check of a reader's square_alone(…): the time of a square's product by itself."""
    transposition = transposition_s(wide, narrow)  # T, in the equations above
    right = 2 * square - transposition
    yield (
        right,
        "Twice the time, less a transposition, which is 16/7 of the difference of the other two.",
    )
    yield 2 * square, "That is the product and the transposition. Take the transposition off."
    yield square, "That is what the table says: half of a product and a transposition."
    yield right / 2, "Nothing is doubled yet: the table's times are halves, so return twice that."
    yield square - transposition, "A time of the table is half of the two. Double it first."
    only_of_wide = 2 * (wide - narrow)  # T, if the narrow factor were not transposed
    yield (
        2 * square - only_of_wide,
        "The narrow factor is transposed, too, in an eighth of the time. So what you take off is "
        "only 7/8 of a transposition.",
    )
    half_of_it = transposition / 2  # 8/7 · (wide - narrow): the times of the table are not doubled
    yield (
        2 * square - half_of_it,
        "The two times differ by half of their transpositions' difference.",
    )
    yield transposition, "That is the transposition. Return the time of the product."


# The accountant's terms.


# In this order, no two of the listed mistakes give the same number of parameters.
@function(
    [(QWEN_HALF_BILLION,), (LLAMA,), (replace(QWEN, layers=3),), (GPT,)],
    case_words=case_in_words,
    parts=parts.of_parameters,
    unit="parameters",
    hints=(
        "What comes once is outside of m.layers * layer: the embedding, the output table, "
        "the positions and the last normalisation.",
        "Some models have head norms: if m.head_norms, add 2 * m.head_width to layer, one vector "
        "for the queries and one for the keys.",
        "Count the rows of the width: m.vocabulary, once more unless m.tied, and m.context if "
        "m.learned_positions. Then return m.layers * layer + rows * m.width + norm.",
    ),
)
def parameters(m: Model) -> Answers:
    """The check of a reader's parameters(m): how many parameters the whole model has."""
    right = sum(p.numel() for p in by_torch.model(m).parameters())
    shape = shape_of(m)
    matrices = shape.parameters_by_part["matrices"]
    other_layers = (m.layers - 1) * shape.parameters_of_a_layer  # of all layers but one
    yield right, "It agrees with torch's count for a GPT-2, a Llama and a Qwen."
    yield matrices, "Embeddings, biases and normalisations have parameters, too."
    one_layer = "That has one layer's matrices; there are m.layers layers."
    yield matrices // m.layers, one_layer
    yield right - other_layers, one_layer
    yield from parameter_slips_check.of_norms(m, right, other_layers)
    yield from parameter_slips_check.of_head_norms(m, right)
    yield from parameter_slips_check.of_biases(m, right)
    yield from parameter_slips_check.of_tables(m, right)
    yield from parameter_slips_check.of_positions(m, right)
    yield from parameter_slips_check.of_the_whole(m, right)


# The first has no sizes of 1 or 2: in a model of two layers, half of attention is that of a layer.
@function(
    [(replace(LLAMA, layers=5), 9, 32), (QWEN, 2, 16), (GPT, 3, 32)],
    case_words=case_in_words,
    parts=parts.of_forward_flops,
    unit="FLOPs",
    hints=(
        "Each token takes 2 FLOPs for each weight of a layer.",
        "For one head, queries × keys is a product of (S, head_width) and (head_width, S): "
        "2 · S · S · head_width FLOPs. Scores × values takes as many.",
        "The layers come m.layers times; 2 * tokens * m.width * m.vocabulary comes once.",
    ),
)
def forward_flops(m: Model, batch: int, sequence: int) -> Answers:
    """The check of a reader's forward_flops(…): a forward pass, with all S × S scores counted."""
    right = by_torch.step(m, batch, sequence).flops["forward"]
    shape = shape_of(m)
    by_part = shape.forward_flops(batch, sequence)
    output = by_part["output"]
    attention = by_part["attention"]
    other_layers_matrices = (m.layers - 1) * by_part["matrices"] // m.layers
    yield right, "It agrees with torch's count of three models, to the last FLOP."
    yield right // 2, "A multiplication comes with an addition: 2 FLOPs."
    yield right // batch, "That is for one sequence of the batch."
    yield 3 * right, "That is a training step. The forward pass alone is wanted."
    all_layers = "There are m.layers layers."
    yield (right - output) // m.layers + output, all_layers
    yield right - other_layers_matrices, all_layers
    of_all_parameters = 2 * batch * sequence * shape.parameters
    yield (
        of_all_parameters,
        "Only matrices are multiplied: no bias, no normalisation, no row that is looked up. "
        "And attention is missing.",
    )
    yield (
        of_all_parameters + attention,
        "Only matrices are multiplied: no bias, no normalisation, no row that is looked up.",
    )
    yield right - output, "The last product compares with every token of the vocabulary."
    yield (
        right - output + output // sequence,
        "Each token has a product with the vocabulary, not only the last one.",
    )
    yield (
        right + (m.layers - 1) * output,
        "The product with the vocabulary comes once, after the last layer.",
    )
    yield from slips_check.of_forward_flops(m, batch, sequence, right)
    yield right + output, "Looking up a row of the embedding is not a product, so it counts 0."
    for wrong_attention, advice in _of_attention(m, batch, sequence, attention):
        yield right - attention + wrong_attention, advice


def _of_attention(m: Model, batch: int, sequence: int, right: int) -> Answers:
    """Yield wrong counts of attention's FLOPs; `right` is the right count, of all layers."""
    yield 0, "Attention multiplies, too: queries by keys, and scores by values."
    yield (
        right // 2,
        "That is half of attention: one of its two products is missing, each lacks its factor 2, "
        "or half of the S × S pairs are left out.",
    )
    # A mask leaves S × (S + 1) / 2 pairs, or S × (S - 1) / 2 without those of a token with itself.
    masked = "Count all S × S pairs, those of a mask, too."
    yield right * (sequence + 1) // (2 * sequence), masked
    yield right * (sequence - 1) // (2 * sequence), masked
    yield right // 4, "Attention has two products, and each multiply-add is 2 FLOPs: 4 in all."
    yield right // m.layers, "Each of the m.layers layers has an attention of its own."
    of_one_head = right // m.heads
    yield of_one_head, "Each of the m.heads heads has these two products."
    # m.width is taken for the width of all heads together, or for that of each head: it stands
    # where heads × head_width belongs, or where head_width belongs.
    over_heads = "Scores go over heads × head_width numbers."
    width_for_all_heads = right * m.width // (m.heads * m.head_width)
    yield width_for_all_heads, over_heads
    width_for_each_head = right * m.width // m.head_width
    yield width_for_each_head, over_heads
    yield (
        right * m.kv_heads // m.heads,
        "Each head of the queries has scores of its own, even where heads share their keys.",
    )
    yield right * batch, "A token attends to its own sequence alone: batch × S × S pairs."
    yield right // batch, "Each sequence of the batch has S × S pairs of its own."


def _run_in_words(flops: Number, gpus: int, peak: Number, share: Number) -> str:
    """Return the beginning of a verdict's sentence, in units for people.

    >>> _run_in_words(6.3e24, 1024, 989.5e12, 0.4)
    'For 6.3 × 10^24 FLOPs on 1,024 GPUs of 989.5 TFLOP/s, of which 40 % are reached'
    """
    return translated(
        "For {flops} FLOPs on {gpus} GPUs of {peak} TFLOP/s, of which {share} % are reached",
        flops=number_in_full(flops),
        gpus=f"{gpus:,}",
        peak=f"{peak / 1e12:g}",
        share=f"{100 * share:g}",
    )


@function(
    [
        (6.3e24, 1024, 989.5e12, 0.4),  # with a share of 0.5, a stray 2 would look like it
        (3.14e23, 1024, 312e12, 0.35),
        (1.8e22, 48, 2250e12, 0.3),
    ],
    tolerance=1e-9,
    case_words=_run_in_words,
    unit="days",
    hints=(
        "Begin with the FLOPs that all GPUs together reach in a second.",
        "The FLOPs divided by that are seconds. Divide by SECONDS_PER_DAY, too.",
    ),
)
def days(flops: Number, gpus: int, peak: Number, share: Number) -> Answers:
    """The check of a reader's days(flops, gpus, peak, share): how many days the FLOPs take."""
    seconds = flops / gpus / peak / share
    right = seconds / 3600 / 24
    yield right, "All GPUs together reach gpus × peak × share, and a day has 86,400 seconds."
    yield seconds, "That is in seconds. A day has 86,400."
    yield seconds / 60, "That is in minutes. A day has 1,440."
    yield seconds / 3600, "That is in hours. A day has 24."
    yield seconds * 86_400, "Seconds are divided by 86,400, not multiplied, to give days."
    yield right * share, "That is at the full peak. A run reaches a share of it, and takes longer."
    yield (
        right * share**2,
        "That is multiplied by the share. Divide by it: a smaller share takes longer.",
    )
    yield right * gpus, "That is for one GPU. They work at the same time."
    yield right * gpus**2, "More GPUs take fewer days: divide by them."
    brackets = "a / b * c is (a / b) * c: put what you divide by in brackets."
    yield right * (peak * share) ** 2, brackets  # flops / gpus * peak * share
    yield right * (gpus * peak * share) ** 2, brackets  # flops / 86_400 * gpus * peak * share
    yield from slips_check.of_days(flops, gpus, peak, share)
