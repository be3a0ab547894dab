"""The exercises of notebook 05."""

from collections.abc import Callable, Sequence
from itertools import accumulate, pairwise

import torch
from einops import einsum
from torch import Tensor, nn

from course_utils.chapters import by_torch
from course_utils.chapters.small_models import GPT, LLAMA, QWEN
from course_utils.core import measure, predict
from course_utils.core.accountant import BYTES, Model
from course_utils.engine.judging import Answers, NotYetError, call, function, objection, outcome
from course_utils.engine.judging.agreement import agree
from course_utils.engine.judging.sentences import name_of, stopped

# Shapes of x, w and g; in the first case all are square, so that no shape tells a wrong index.
ONE_LAYER = [((3, 3), (3, 3), (3, 3)), ((5, 4), (4, 2), (5, 2)), ((1, 2), (2, 6), (1, 6))]


def _drawn(
    shapes_by_case: Sequence[Sequence[tuple[int, int]]], seed: int
) -> list[tuple[Tensor, ...]]:
    draw = torch.Generator().manual_seed(seed)
    return [
        tuple(torch.randn(shape, generator=draw) for shape in shapes) for shapes in shapes_by_case
    ]


@function(lambda: _drawn(ONE_LAYER, seed=4), tolerance=1e-5)
def layer_backward(x: Tensor, w: Tensor, g: Tensor) -> Answers:
    """(gradient of w, gradient of x) of a layer x w, where g is the gradient of its result."""
    right = einsum(x, g, "i j, i k -> j k"), einsum(w, g, "j k, i k -> i j")
    yield (
        right,
        "w.grad = xᵀ g is a sum over the rows, x.grad = g wᵀ a sum over the layer's outputs.",
    )
    of_w, of_x = right
    yield (of_x, of_w), "The gradient of w comes first."
    yield (of_w / len(x), of_x), "The gradient of w is a sum over the rows, not a mean."
    no_transpose = outcome(lambda: (x @ g, g @ w))
    yield (
        no_transpose,
        "Check which index is summed: in w.grad the rows i, in x.grad the outputs k.",
    )
    first_alone = outcome(lambda: (of_w, g @ w))
    yield first_alone, "x.grad[i, j] sums w[j, k] · g[i, k] over k: it is g times w transposed."
    over_i = outcome(lambda: (of_w, einsum(w, g, "i j, i k -> i j")))
    yield (
        over_i,
        "i counts the rows of the data, and w has none: x.grad[i, j] sums w[j, k] · g[i, k] over k.",
    )
    yield (einsum(g, x, "i k, i j -> k j"), of_x), "w.grad has the shape of w: transpose it."
    yield of_w, "Two gradients are wanted: of w and of x."
    yield (
        (of_w.T, of_x.T),
        "Both are transposed: a gradient has the shape of what it is the gradient of.",
    )


@function([(16, [8, 4, 4, 2]), (4, [3, 5]), (64, [512, 2048, 2048, 10])])
def step_flops(batch: int, widths: Sequence[int]) -> Answers:
    """FLOPs of one training step, forward and backward, of a deep linear model on plain data."""
    right = predict.mlp_flops(batch, widths).total
    yield right, "Three products in each layer, without the first layer's gradient of the data."
    layers = [2 * batch * d * k for d, k in pairwise(widths)]
    yield (
        3 * sum(layers),
        "That is the rule of 6. The first layer reads plain data, and skips a product.",
    )
    yield right - sum(layers), "That is the backward pass; the forward pass belongs to a step, too."
    yield sum(layers), "That is the forward pass alone."
    yield 3 * sum(layers) - layers[-1], "It is the first layer that skips a product, not the last."
    yield (
        3 * sum(layers[1:]),
        "The first layer still runs forward, and its weights want their gradient.",
    )
    yield right // 2, "Each multiplication comes with an addition: 2 FLOPs."
    yield right // batch, "That is for one row; there are `batch` of them."


# A batch in parts: judged by the gradients, and by how many rows wait for their backward pass at one time.

ROWS = 24
MORE_THAN_A_PART = 1.8  # times: a copy of a part's rows is 1.6 of what it keeps, two parts are 2
ONLY_LAST = "only the last part's gradients are left. backward() adds: set nothing to zero between the parts."
LossOf = Callable[[Tensor], Tensor]
Accumulate = Callable[[nn.Module, LossOf, Tensor, int], object]


def ours(model: nn.Module, loss_of: LossOf, batch: Tensor, parts: int) -> None:
    """Forward and backward for one part after the other, each loss divided by their number."""
    for part in batch.chunk(parts):
        (loss_of(model(part)) / parts).backward()


@objection(
    "In 4, 1, 2 and 8 parts the gradients are those of the whole batch, one part at a time.",
    ours=ours,
)
def accumulated(answer: Accumulate) -> None:
    """Leave in `.grad` the gradient of the whole batch's mean loss, with one part's activations at a time."""
    for parts in (4, 1, 2, 8):
        if words := _complaint(answer, parts):
            raise NotYetError(
                f"{name_of(answer)}, with {ROWS} rows in {parts} part{'s' * (parts > 1)}: {words}"
            )


def _complaint(answer: Accumulate, parts: int) -> str:
    model, batch = _model_and_batch()
    weights = [*model.parameters()]
    before = [p.detach().clone() for p in weights]
    data = batch, batch.chunk(parts)[-1]
    whole, last = ([*torch.autograd.grad(_loss(model(rows)), weights)] for rows in data)
    rows: list[int] = []  # that go forward, and below 0 those that go backward

    def went_forward(_: nn.Module, __: object, result: Tensor) -> None:
        many = len(result)
        rows.append(many)
        if result.requires_grad:  # a hook that held the result itself would keep it
            result.register_hook(lambda _: rows.append(-many))

    stopped_with: list[BaseException | None] = []

    def attempt() -> None:
        _, error = call(lambda: answer(model, _loss, batch, parts))
        stopped_with.append(error)

    with model.register_forward_hook(went_forward):
        kept = measure.saved_bytes_over_time(attempt, exclude=[*weights, batch])
    (error,) = stopped_with
    if error:
        return f"it {stopped(answer, error)}"
    if not all(map(torch.equal, weights, before)):
        return "the weights have moved. The optimizer's step comes later; here only gradients are wanted."
    found = [p.grad for p in weights]
    if any(gradient is None for gradient in found):
        return "no gradients are left in .grad: call .backward() on each part's loss, and set nothing to zero after it."
    if not agree(found, whole, 1e-4):
        return _how_they_differ(found, whole, last, parts)
    if (most := max(accumulate(rows), default=0)) > ROWS // parts:
        return f"the activations of {most} rows are kept at one time. Call .backward() for each part before the next."
    if max(kept) > MORE_THAN_A_PART * _bytes_of_a_part(parts):
        return "the activations of parts that went backward are still there. Leave out retain_graph=True."
    return ""


def _how_they_differ(
    found: list[Tensor], whole: list[Tensor], last: list[Tensor], parts: int
) -> str:
    """What explains gradients that are not those of the whole batch: a factor, or that only the last part is in them."""
    for factor, of, words in (
        (
            parts,
            whole,
            f"the gradients are {parts} times too large: divide each part's loss by that.",
        ),
        (1 / parts, whole, f"the gradients are {parts} times too small: divide by {parts} once."),
        (1, last, ONLY_LAST),
        (1 / parts, last, ONLY_LAST),
    ):
        if agree(found, [factor * gradient for gradient in of], 1e-4):
            return words
    return "the gradients differ from those of the whole batch."


def _bytes_of_a_part(parts: int) -> int:
    """What autograd keeps at most if one part is forgotten before the next."""
    model, batch = _model_and_batch()
    exclude = [*model.parameters(), batch]
    return max(
        measure.saved_bytes_over_time(lambda: ours(model, _loss, batch, parts), exclude=exclude)
    )


def _model_and_batch() -> tuple[nn.Module, Tensor]:
    with torch.random.fork_rng(devices=()):
        torch.manual_seed(3)
        model = nn.Sequential(nn.Linear(6, 4), nn.GELU(), nn.Linear(4, 2))
        return model, torch.randn(ROWS, 6)


def _loss(results: Tensor) -> Tensor:
    return results.pow(2).sum(-1).mean()


# The accountant's term.


# LayerNorm keeps two numbers a token for its statistics: 0.09 % of a layer, at a width of 256.
@function([(QWEN, 3, 32, "bf16"), (LLAMA, 1, 96, "bf16"), (GPT, 2, 64, "fp32")], tolerance=0.001)
def layer_bytes(m: Model, batch: int, sequence: int, dtype: str) -> Answers:
    """A reader's layer_bytes(m, batch, sequence, dtype): what autograd keeps of one layer, attention fused."""
    right, n, tokens = (
        by_torch.layer_bytes(m, batch, sequence, dtype),
        BYTES[dtype],
        batch * sequence,
    )
    sizes = (m.heads * m.head_width, m.kv_heads * m.head_width, m.inner, m.width)
    (queries, keys, inner, width), rows = (
        (size * tokens * n for size in sizes),
        4 * tokens * m.heads,
    )
    yield (
        right,
        "As the storages that autograd keeps of three layers; LayerNorm's statistics are left out.",
    )
    yield (
        right - rows,
        "Attention keeps one fp32 number for each row of scores: batch × heads × sequence.",
    )
    yield right - rows + rows * n // 4, "The row sums are in fp32 whatever the dtype: 4 bytes each."
    yield (
        right - 2 * width,
        "A normalisation keeps its input, and the next product its result: 4 of the width.",
    )
    yield (
        right - width,
        "One of the model's width is missing: two normalisations, an input and a result each.",
    )
    yield right - queries, "Of attention are kept: queries, keys, values, and its result."
    yield (
        right + (2 + m.head_norms) * (queries - keys),
        "Keys and values have kv_heads heads, and not all.",
    )
    yield right - (queries + keys) * m.head_norms, "If m.head_norms, their inputs are kept, too."
    yield (
        right - 2 * keys,
        "Keys and values are kept, too: both are needed for the other's gradient.",
    )
    gated = "A gated feed-forward keeps four tensors of its inner width, the other one two."
    yield right - 2 * inner * m.gated, gated
    yield right // n, "That is how many numbers are kept. Their bytes are wanted."
    scores = tokens * sequence * m.heads * n
    yield right - rows + scores, "Fused attention does not keep the scores: one number a row alone."
