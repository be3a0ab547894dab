"""What a model has and what it computes: the accountant's `parameters`, `forward_flops` and `days`."""

from dataclasses import replace

from course_utils.accountant import by_torch
from course_utils.accountant.accountant import Model
from course_utils.accountant.shapes import transformer
from course_utils.checks.judging import Answers, function
from course_utils.quantities import Number

# A GPT-2, a Llama with shared heads, and a Qwen whose heads are wider than its width over their number.
ALL = ("query", "key", "value", "out", "up", "down")
GPT = Model(2, 256, 4, 4, 64, 1024, 2100, 96, False, ALL, norm_vectors=2, learned_positions=True, tied=True)
LLAMA = Model(layers=3, width=96, heads=6, kv_heads=2, head_width=16, inner=256, vocabulary=900, context=96)
QWEN = Model(2, 96, 4, 1, 32, 200, 800, 96, biases=ALL[:3], head_norms=True, tied=True)
EACH = [(m,) for m in (GPT, LLAMA, QWEN)]


def shapes(m: Model) -> dict[str, tuple[int, int]]:
    """The (inputs, outputs) of each matrix of a layer, as torch builds it."""
    weights = {name.split(".")[1]: p for name, p in by_torch.layer(m).named_parameters() if "weight" in name}
    return {name: tuple(weight.shape) for name, weight in weights.items() if weight.ndim == 2}


# In this order, no two of the listed mistakes give the same number of parameters.
@function([(LLAMA,), (replace(QWEN, kv_heads=2),), (GPT,)])
def parameters(m: Model) -> Answers:
    """A reader's parameters(m): how many the whole model has."""
    right = sum(p.numel() for p in by_torch.model(m).parameters())
    parts, norm = transformer(m).parameters_by_part, m.norm_vectors * m.width
    table, layer = m.vocabulary * m.width, transformer(m).parameters_of_a_layer
    yield right, "As torch counts them, for a GPT-2, a Llama and a Qwen."
    yield parts["matrices"], "Embeddings, biases and normalisations have parameters, too."
    one_layer = "That has one layer's matrices; there are m.layers layers."
    yield parts["matrices"] // m.layers, one_layer
    yield right - (m.layers - 1) * layer, one_layer
    once = "The embedding and the last normalisation come once, not in each layer."
    yield m.layers * (right - (m.layers - 1) * layer), once
    yield right + (m.layers - 1) * norm, once
    yield right - norm, "After the last layer comes one more normalisation."
    yield right - m.layers * norm, "A layer has two normalisations."
    yield right - parts["normalisations"], "A normalisation has norm_vectors × width parameters."
    yield right - 2 * m.layers * norm, "Each layer has two normalisations, beside the last one."
    of_vectors = "LayerNorm has a weight and a bias: m.norm_vectors vectors, in each normalisation."
    for normalisations in (2 * m.layers + 1, 2 * m.layers, 1):
        yield right - normalisations * (m.norm_vectors - 1) * m.width, of_vectors
    yield from _of_head_norms(m, right)
    yield from _of_biases(m, right)
    yield right + table * m.tied, "If m.tied, the embedding serves as output, too: count it once."
    two_tables = "If it is not tied, there are two tables: the embedding and the output matrix."
    yield right - table * (not m.tied), two_tables
    yield right - table * (2 - m.tied), "The embedding has a row of the width for each token."
    learned = m.context * m.width
    a_row = "Learned positions have a row of the width for each place of the context."
    yield right - parts["positions"], a_row
    yield right - parts["positions"] + m.context * m.learned_positions, a_row
    yield (
        right + learned * (not m.learned_positions),
        "Positions have parameters only if m.learned_positions.",
    )


def _of_head_norms(m: Model, right: int) -> Answers:
    of_one, heads = m.layers * m.head_width, m.heads + m.kv_heads
    only_if = "Only if m.head_norms has a layer 2 × head_width more."
    yield right + 2 * of_one * (not m.head_norms), only_if
    missing = "If m.head_norms, a layer has 2 × head_width more: queries and keys have one vector each."
    yield right - 2 * of_one * m.head_norms, missing
    yield right - of_one * m.head_norms, missing
    all_heads = "All heads share the vector of m.head_norms: 2 × head_width, however many heads there are."
    yield right + (heads - 2) * of_one * m.head_norms, all_heads


def _of_biases(m: Model, right: int) -> Answers:
    by_name = shapes(m)
    inputs, outputs = (sum(by_name[name][side] for name in m.biases) for side in (0, 1))
    without = right - m.layers * outputs
    of_outputs = "A matrix that m.biases names has a bias: a number for each output."
    yield without, of_outputs
    yield without + m.layers * inputs, of_outputs
    yield without + m.layers * len(m.biases) * m.width, of_outputs
    all_outputs = sum(shape[1] for shape in by_name.values())
    yield without + m.layers * all_outputs, "Only the matrices that m.biases names have a bias."


# Five layers first: in a model of two, half of attention is that of one layer.
@function([(replace(LLAMA, layers=5), 1, 64), (QWEN, 2, 16), (GPT, 3, 32)])
def forward_flops(m: Model, batch: int, sequence: int) -> Answers:
    """A reader's forward_flops(m, batch, sequence): one forward pass, all S × S scores counted."""
    right, tokens = by_torch.step(m, batch, sequence).flops["forward"], batch * sequence
    parts = transformer(m).forward_flops(batch, sequence)
    output = parts["output"]
    yield right, "As torch counts three models, to the last FLOP."
    yield right // 2, "A multiplication comes with an addition: 2 FLOPs."
    yield right // batch, "That is for one sequence of the batch."
    yield 3 * right, "That is a training step. The forward pass alone is wanted."
    all_layers = "There are m.layers layers."
    yield (right - output) // m.layers + output, all_layers
    yield right - (m.layers - 1) * parts["matrices"] // m.layers, all_layers
    of_all = 2 * tokens * transformer(m).parameters
    only_matrices = "Only matrices are multiplied: no bias, no normalisation, no row that is looked up"
    yield of_all, f"{only_matrices}. And attention is missing."
    yield of_all + parts["attention"], f"{only_matrices}."
    yield right - output, "The last product compares with every token of the vocabulary."
    yield (
        right - output + output // sequence,
        "Each token has a product with the vocabulary, not the last alone.",
    )
    yield right + (m.layers - 1) * output, "The product with the vocabulary comes once, after the last layer."
    look_up = "To look up a row of the embedding is no product: it counts 0."
    yield right + output, look_up
    for wrong, advice in _of_scores(m, batch, sequence, parts["attention"]):
        yield right - parts["attention"] + wrong, advice


def _of_scores(m: Model, batch: int, sequence: int, scores: int) -> Answers:
    """Wrong counts of attention's two products."""
    yield 0, "Attention multiplies, too: queries by keys, and scores by values."
    half = "That is half of attention: it has two products, of all S × S pairs, and each multiply-add is 2 FLOPs."
    yield scores // 2, half
    masked = "Count all S × S pairs, those of a mask, too."
    yield scores * (sequence + 1) // (2 * sequence), masked
    yield scores * (sequence - 1) // (2 * sequence), masked
    yield scores // 4, "Attention has two products, and each multiply-add is 2 FLOPs: 4 in all."
    yield scores // m.layers, "Each of the m.layers layers has its attention, not one of them."
    yield scores // m.heads, "Each of the m.heads heads has these two products."
    over_heads = "Scores go over heads × head_width numbers."
    yield scores * m.width // (m.heads * m.head_width), over_heads
    yield scores * m.width // m.head_width, over_heads
    of_keys = "Each head of the queries has scores, also where keys are shared."
    yield scores * m.kv_heads // m.heads, of_keys
    of_itself = "A token attends to its own sequence alone: batch × S × S pairs."
    yield scores * batch, of_itself
    yield scores // batch, of_itself


@function(
    [(6.3e24, 1024, 989.5e12, 0.5), (3.14e23, 1024, 312e12, 0.35), (8.64e4, 1, 1.0, 1.0)], tolerance=1e-9
)
def days(flops: Number, gpus: int, peak: Number, share: Number) -> Answers:
    """A reader's days(flops, gpus, peak, share): how long so many FLOPs take."""
    seconds = flops / gpus / peak / share
    right = seconds / 3600 / 24
    yield right, "All GPUs together reach gpus × peak × share, and a day has 86,400 seconds."
    yield seconds, "That is in seconds. A day has 86,400."
    yield seconds / 60, "That is in minutes. A day has 1,440."
    yield seconds / 3600, "That is in hours. A day has 24."
    yield seconds * 86_400, "Seconds are divided by 86,400, not multiplied, to give days."
    yield right * share, "That is at the full peak. A run reaches a share of it, and takes longer."
    yield right * share**2, "That is multiplied by the share. Divide by it: a smaller share takes longer."
    yield right * gpus, "That is for one GPU. They work at the same time."
    yield right * gpus**2, "More GPUs take fewer days: divide by them."
    brackets = "a / b * c is (a / b) * c: put what you divide by in brackets."
    yield right * (peak * share) ** 2, brackets
    yield right * (gpus * peak * share) ** 2, brackets
