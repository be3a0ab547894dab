"""Exercises in *Beyond* of notebook 05; `check` imports them by name, and has the others.

For one case, an exercise yields the right answer first, and then what tempting mistakes lead to.
Each has a sentence: why it is right, or the advice on the mistake.
"""

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional

from course_utils.chapters import by_torch
from course_utils.chapters.gradients.drawn import drawn
from course_utils.chapters.small_models import GPT, LLAMA, QWEN, model_in_words
from course_utils.core.accountant import BYTES, Model
from course_utils.core.say.language import translated
from course_utils.engine.judging import Answers, function, outcome

# Each case has one argument: how many targets count in each part of a batch. Padding does not
# count, so a part that is all padding has none.
COUNTS = [([6, 2],), ([4, 4, 4],), ([5],), ([7, 0, 1],), ([1024, 800, 3, 64],)]


# The tolerance is for answers that are computed in fp32.
@function(
    COUNTS,
    tolerance=1e-6,
    hints=(
        "A part's mean is its sum divided by its own count. What is wanted is the sum over all "
        "parts, divided by the count of all.",
        "Multiply a part's mean by its count, and you have its sum.",
    ),
)
def part_shares(counts: Sequence[int]) -> Answers:
    """The check of a reader's part_shares(counts): the factor of each part's mean loss."""
    total = sum(counts)
    parts = len(counts)
    yield (
        [count / total for count in counts],
        "Each part weighs as much as its targets: their share of all that count.",
    )
    yield (
        [1 / parts] * parts,
        "That weighs every part alike. A target of a short part would count for more than another.",
    )
    yield (
        [1 / total] * parts,
        "That is the factor of a part's sum. Its mean has been divided by its own count already.",
    )
    # With a part that has no targets, these two divide by 0: the outcome is the error.
    yield (
        outcome(lambda: [1 / count for count in counts]),
        "A mean has been divided by its part's count already: multiply by the count again.",
    )
    yield (
        outcome(lambda: [total / count for count in counts]),
        "That is upside down: a part with few targets weighs little.",
    )
    yield (
        [parts * count / total for count in counts],
        "Right if the parts were averaged afterwards, as over GPUs. Here they are added.",
    )
    yield (
        [count / max(counts) for count in counts],
        "Divide by all targets that count, and not by those of the longest part.",
    )
    yield [count // total for count in counts], "// drops what follows the point: use /."
    yield list(counts), "Those are the counts. What share of all targets is each?"


# Shapes of x, y, w1 and w2; in the first case all are square, so that no shape tells a transpose.
TWO_LAYERS = [
    ((3, 3), (3, 3), (3, 3), (3, 3)),
    ((4, 3), (4, 2), (3, 5), (5, 2)),
    ((7, 6), (7, 1), (6, 4), (4, 1)),
]


@function(
    lambda: drawn(TWO_LAYERS, seed=5),
    tolerance=1e-4,
    gives=("w1.grad", "w2.grad"),
    hints=(
        "Go forward first, and give a name to what goes into the ReLU and to what comes out of it. "
        "Then go back, one layer at a time, as in turn 1.",
        "The gradient of the result is (result - y). w2 has multiplied what came out of the ReLU.",
        "Where its input was above 0, ReLU passes the gradient on as it is. Elsewhere it passes 0.",
    ),
)
def two_layers_backward(x: Tensor, y: Tensor, w1: Tensor, w2: Tensor) -> Answers:
    """The check of a reader's two_layers_backward(x, y, w1, w2): the gradients of w1 and w2."""
    first, second = _by_autograd(x, y, w1, w2)
    yield (first, second), "In three sizes they are the gradients that autograd finds."
    before = x @ w1  # what goes into the ReLU
    after = functional.relu(before)  # what comes out of it
    error = after @ w2 - y
    unmasked = error @ w2.T  # the gradient of `after`
    yield (
        (x.T @ unmasked, second),
        "The gradient has to go back through the ReLU: it passes only where its input was above 0.",
    )
    linear_error = before @ w2 - y
    yield (
        (x.T @ (linear_error @ w2.T), before.T @ linear_error),  # as if there were no ReLU
        "Between the layers is a ReLU. Go forward through it, and back through it, too.",
    )
    yield (
        outcome(lambda: (x.T @ (error @ w2 * (before > 0)), second)),
        "Back through w2, the gradient is multiplied by w2 transposed.",
    )
    by_its_own_sign = functional.relu(unmasked)
    yield (
        (x.T @ by_its_own_sign, second),
        "Not the gradient's own sign decides where it passes, but that of the ReLU's input.",
    )
    yield (
        (x.T @ (unmasked * after), second),
        "ReLU's derivative is 0 or 1. It is not ReLU's result.",
    )
    yield (first, before.T @ error), "w2 has multiplied what came out of the ReLU."
    yield (
        _by_autograd(x, torch.zeros_like(y), w1, w2),
        "The loss compares the result with y, so its gradient is (result - y).",
    )
    yield (2 * first, 2 * second), "The loss is half of the squares' sum: the 2 cancels."
    yield (first / len(x), second / len(x)), "The loss is a sum over the rows, and no mean."
    yield (-first, -second), "The other sign: the loss's gradient has that of (result - y)."
    yield (second, first), "The gradient of w1 comes first."
    yield (first.T, second.T), "A gradient has the same shape as its matrix: transpose both."


def _by_autograd(x: Tensor, y: Tensor, w1: Tensor, w2: Tensor) -> tuple[Tensor, ...]:
    """Return the gradients of w1 and w2 of half the sum of squares of relu(x w1) w2 - y."""
    weights = [w.clone().requires_grad_() for w in (w1, w2)]
    hidden = functional.relu(x @ weights[0])
    loss = (hidden @ weights[1] - y).pow(2).sum() / 2
    return torch.autograd.grad(loss, weights)


# Shapes of x and of g, the gradient of x w. In the first case both are square, so that no shape
# tells rows from columns.
ROWS = [
    ((3, 3), (3, 3)),
    ((5, 4), (5, 2)),
    ((1, 6), (1, 3)),
]


@function(
    lambda: drawn(ROWS, seed=6),
    tolerance=1e-5,
    hints=(
        "Row i alone has the gradient x[i, j] · g[i, k]. Square it, and sum over j and k.",
        "The sum over j and k of x[i, j]² · g[i, k]² is a product of two sums.",
    ),
)
def row_norms(x: Tensor, g: Tensor) -> Answers:
    """The check of a reader's row_norms(x, g): the norm of each row's own gradient of w."""
    own_gradients = [torch.outer(row, gradient) for row, gradient in zip(x, g, strict=True)]
    right = torch.stack([gradient.norm() for gradient in own_gradients])
    yield right, "A row's own gradient is x[i] times g[i], so the two norms are multiplied."
    yield right**2, "Those are the squares of the norms: take the root."
    yield (
        x.norm(dim=1) + g.norm(dim=1),
        "Each number of x[i] multiplies each one of g[i], so the norms are multiplied, not added.",
    )
    yield (
        (x.T @ g).norm(),
        "That is the norm of the sum over all rows. One norm for each row is wanted.",
    )
    yield (
        outcome(lambda: x.norm(dim=0) * g.norm(dim=0)),
        "Those are the norms of the columns. Each row has its numbers along dim=1.",
    )
    yield (
        outcome(lambda: (x * g).norm(dim=1)),
        "Each number of x[i] meets each one of g[i], and not only the one in its own place.",
    )
    yield (
        outcome(lambda: (x * g).sum(1)),
        "That is the dot product of x[i] and g[i]. The gradient of w is their outer product.",
    )
    yield (
        x.abs().sum(1) * g.abs().sum(1),
        "Those are sums of absolute values. The norm is the root of the sum of squares.",
    )
    yield x.norm(dim=1), "That is the norm of the row. Its gradient is the row times g[i]."


# The tolerance lets the answer be a whole number.
@function(
    [(LLAMA,), (GPT,), (QWEN,)],
    tolerance=0.005,
    case_words=lambda m: translated("For {model}", model=model_in_words(m)),
    hints=(
        "Count numbers for one token. In turn 3 they were the same for every token. The scores "
        "are `sequence` numbers in each head.",
        "Find the sequence at which m.heads * sequence is as much as all that turn 3 counts, "
        "without the row sums. All of it is in the same dtype.",
    ),
)
def even_length(m: Model) -> Answers:
    """The check of a reader's even_length(m): at that length, half of what is kept is scores."""
    others = _numbers_beside_scores(m)  # of one token
    right = others / m.heads
    yield right, "There each token has as many scores as all its other numbers."
    # The right equation is m.heads * sequence = others. Each wrong answer solves another one.
    yield others, "Each token has its scores in every head: divide by m.heads."
    yield (
        right / 2,
        "Half means as many scores as all other numbers. They are kept once, in the same dtype.",
    )
    yield 2 * right, "All scores are kept, also those that the causal mask hides."
    yield (
        right**0.5,
        "A token has m.heads * sequence scores. All tokens together have the square of that "
        "length, but they have the other numbers that many times, too.",
    )
    yield 16 * m.width / m.heads, "16 holds for GPT-2's kind. Other layers keep other numbers."
    queries = m.heads * m.head_width
    keys = m.kv_heads * m.head_width
    yield (
        (others + 2 * (queries - keys)) / m.heads,
        "Keys and values have only m.kv_heads heads.",
    )
    norm_inputs = queries + keys if m.head_norms else 0
    yield (others - norm_inputs) / m.heads, "If m.head_norms, their inputs are kept, too."
    of_gate = 2 * m.inner if m.gated else 0  # two tensors that only a gate adds
    yield (
        (others - of_gate) / m.heads,
        "A gated feed-forward keeps four tensors of its inner width, the other one two.",
    )
    row_sums = m.heads * BYTES["fp32"] // BYTES["bf16"]  # in bf16 numbers: 2 for each fp32 sum
    yield (
        (others + row_sums) / m.heads,
        "The row sums belong to fused attention. Explicit attention keeps the scores instead.",
    )
    # Of a gated feed-forward autograd keeps four tensors of this width, of a plain one two.
    inside = (4 if m.gated else 2) * m.inner
    yield (others - inside) / m.heads, "What the feed-forward keeps belongs to the layer, too."


def _numbers_beside_scores(m: Model) -> int:
    """Return how many numbers autograd keeps of a layer for each token, beside the scores."""
    tokens = 32  # any number does, since each token has as many numbers as any other
    kept = by_torch.layer_bytes(m, 1, tokens, "bf16")
    # In place of the scores, fused attention keeps a sum in fp32 for each token and head.
    row_sums = BYTES["fp32"] * m.heads
    numbers = (kept // tokens - row_sums) // BYTES["bf16"]
    if m.norm_vectors == 2:
        # The accountant's term leaves out what LayerNorm keeps beside its input, a mean and a
        # deviation. There are two of these norms. (RMSNorm keeps neither.)
        numbers -= 2 * 2
    return numbers
