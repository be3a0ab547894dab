"""The exercise of notebook 5 that is a term of the accountant: the bytes that a layer keeps."""

from dataclasses import replace

from course_utils.chapters import by_torch
from course_utils.chapters.gradients.kept_tensors import what_is_counted
from course_utils.chapters.gradients.parts import as_in_gpt2, of_layer_bytes
from course_utils.chapters.small_models import GPT, LLAMA, QWEN, case_in_words
from course_utils.core.accountant import BYTES, Model
from course_utils.engine.judging import Answers, function
from course_utils.engine.judging.parts import Told

NUMBERS = "That is how many numbers are kept. Their bytes are wanted."
OF_GPT2 = (
    "16 · S · H holds only for layers like GPT-2's, where m.inner is 4 * m.width, and queries and "
    "keys are as wide as the model. Take each tensor's size from the picture: fields of m."
)

# A model, the batch, the sequence and the dtype.
LAYERS = [
    # With these sizes, no two of the usual slips give the same sum, and no slip gives that of two.
    (replace(QWEN, width=260, heads=6, head_width=22, inner=416), 5, 16, "bf16"),
    (LLAMA, 1, 96, "bf16"),
    (GPT, 2, 64, "fp32"),
]


# The tolerance is for the statistics of the two LayerNorms, which the term leaves out: two numbers
# a token in each, together 0.098 % of a layer at a width of 256.
@function(
    LAYERS,
    tolerance=0.001,
    case_words=case_in_words,
    parts=Told(of_layer_bytes, what_is_counted),
    unit="bytes",
    hints=(
        "Go through the layer in the order in which it runs, and ask of each operation what its "
        "gradient multiplies by: that is what is kept. Count numbers for one token first.",
        "A normalisation keeps its input, and the next products keep its result. Attention "
        "keeps queries, keys, values and its result; keys and values have m.kv_heads heads.",
        "The feed-forward keeps 4 * m.inner numbers with a gate, and 2 * m.inner without. All these"
        " take BYTES[dtype] each. The row sums, m.heads for each token, take 4 bytes each.",
    ),
)
def layer_bytes(m: Model, batch: int, sequence: int, dtype: str) -> Answers:
    """The check of a reader's layer_bytes(m, batch, sequence, dtype): bytes that autograd keeps."""
    right = by_torch.layer_bytes(m, batch, sequence, dtype)
    yield (
        right,
        "It agrees with what autograd keeps of three layers, without LayerNorm's statistics.",
    )
    bytes_each = BYTES[dtype]
    of_a_number = batch * sequence * bytes_each  # the bytes of one number for each token
    row_sums = batch * sequence * m.heads  # how many there are
    without_row_sums = right - row_sums * BYTES["fp32"]
    yield (
        without_row_sums,
        "Attention keeps one fp32 number for each row of scores: batch × heads × sequence.",
    )
    yield (
        without_row_sums + row_sums * bytes_each,
        "The row sums are in fp32 whatever the dtype: 4 bytes each.",
    )
    of_width = m.width * of_a_number  # the bytes of a tensor as wide as the model
    yield (
        right - 2 * of_width,
        "A normalisation keeps its input, and the next product its result: 4 tensors of m.width.",
    )
    yield (
        right - of_width,
        "One tensor of the model's width is missing: of both normalisations, input and result.",
    )
    yield from _of_queries_and_keys(m, right, of_a_number)
    gate = 2 * m.inner * of_a_number if m.gated else 0  # two tensors that only a gate adds
    yield (
        right - gate,
        "A gated feed-forward keeps four tensors of its inner width, the other one two.",
    )
    scores = row_sums * sequence * bytes_each
    yield (
        without_row_sums + scores,
        "Fused attention does not keep the scores, but only one number for each row of them.",
    )
    yield from _of_units(m, batch, sequence, dtype)


def _of_queries_and_keys(m: Model, right: int, of_a_number: int) -> Answers:
    """Yield wrong counts of a layer's bytes, by mistakes with the tensors that attention keeps.

    `right` is the right count. `of_a_number` has the bytes of one number for each token.
    """
    queries = m.heads * m.head_width * of_a_number
    keys = m.kv_heads * m.head_width * of_a_number
    yield right - queries, "Attention keeps queries, keys, values and its result."
    norm_inputs = 0
    tensors_like_keys = 2  # keys and values
    if m.head_norms:
        norm_inputs = queries + keys
        tensors_like_keys = 3  # also the keys before they are normalised
    # With as many heads as the queries have, each of these tensors would be as large as they are.
    yield (
        right + tensors_like_keys * (queries - keys),
        "Keys and values have only kv_heads heads.",
    )
    yield right - norm_inputs, "If m.head_norms, their inputs are kept, too."
    yield (
        right - 2 * keys,
        "Keys and values are kept, too: other gradients multiply by them.",
    )


def _of_units(m: Model, batch: int, sequence: int, dtype: str) -> Answers:
    """Yield wrong counts of a layer's bytes in numbers, of one sequence or of all layers.

    Those after them take the notebook's 16 · S · H for a rule about every layer.
    """
    right = by_torch.layer_bytes(m, batch, sequence, dtype)
    bytes_each = BYTES[dtype]
    row_sums = batch * sequence * m.heads
    without_row_sums = right - row_sums * BYTES["fp32"]
    yield right // bytes_each, NUMBERS
    yield without_row_sums // bytes_each + row_sums, NUMBERS
    yield without_row_sums // bytes_each + row_sums * BYTES["fp32"], NUMBERS
    yield right // batch, "That is for one sequence; there are `batch` of them."
    yield right * m.layers, "That is for all layers. What one layer keeps is wanted."
    for wrong in as_in_gpt2(m, batch, sequence, dtype):
        yield wrong, OF_GPT2
