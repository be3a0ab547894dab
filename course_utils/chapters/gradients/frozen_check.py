"""The exercises of notebook 05 in which some layers are frozen."""

from collections.abc import Collection, Iterable, Sequence
from itertools import pairwise

import torch
from torch import nn

from course_utils.chapters.gradients.parts import of_frozen_flops
from course_utils.core import measure
from course_utils.core.accountant import BYTES
from course_utils.engine.judging import Answers, function

# A batch, the widths, and the layers that are not trained, counted from 0.
# In the first case, layers 0 and 2 are frozen. Both run forward, but only layer 2 passes a gradient
# on, because layer 1 before it is trained. So whoever forgets that a frozen layer runs
# forward, and whoever forgets that it may pass a gradient on, get different numbers.
FROZEN = [
    (8, [4, 6, 5, 3, 7], (0, 2)),
    (8, [4, 6, 5, 3, 7], (2,)),
    (8, [4, 6, 5, 3, 7], (0,)),
    (8, [4, 6, 5, 3, 7], ()),
    (8, [4, 6, 5, 3, 7], (0, 1)),
    (8, [4, 6, 5, 3, 7], (1, 3)),
    (8, [4, 6, 5, 3, 7], (0, 1, 2, 3)),
]


@function(
    FROZEN,
    parts=of_frozen_flops,
    unit="FLOPs",
    hints=(
        "Go through the layers in order. Each one runs forward. Decide which ones need a weight "
        "gradient, and which ones an input gradient.",
        "A layer needs an input gradient if any layer before it is trained, whether or not it is "
        "trained itself.",
    ),
)
def frozen_flops(batch: int, widths: Sequence[int], frozen: Collection[int]) -> Answers:
    """The check of a reader's frozen_flops(batch, widths, frozen): a step's FLOPs."""
    right = _counted_flops(batch, widths, frozen)
    yield (
        right,
        "It agrees with torch, with layers frozen at the front, inside, at the end, and all.",
    )
    layers = [2 * batch * d * k for d, k in pairwise(widths)]
    forward = sum(layers)
    trained = [flops for number, flops in enumerate(layers) if number not in frozen]
    of_weights = sum(trained)
    of_first_trained = trained[0] if trained else 0
    # A layer's weight gradient, and its input gradient, take as many FLOPs as its forward pass.
    of_frozen = forward - of_weights
    of_all_but_first = forward - layers[0]
    # A step is the forward pass, then weight gradients, then input gradients.
    yield (
        forward + of_weights + of_weights,
        "A frozen layer passes the gradient on if one before it is trained. "
        "The first trained layer has nobody to pass it to.",
    )
    yield (
        forward + of_weights + (of_weights - of_first_trained),
        "A frozen layer passes the gradient on if one before it is trained.",
    )
    yield (
        forward + of_weights + of_all_but_first,
        "An input gradient is wanted only if a layer before is trained.",
    )
    yield forward + forward + of_all_but_first, "A frozen layer has no weight gradient."
    still_runs = "A frozen layer still runs forward."
    yield of_weights + of_weights + of_weights, still_runs
    yield right - of_frozen, still_runs
    yield right - forward, "That is the backward pass; the forward pass belongs to a step, too."
    yield forward, "That is the forward pass alone."
    yield right // 2, "Each multiplication comes with an addition: 2 FLOPs."
    yield right // batch, "That is for one row; there are `batch` of them."


def _network(widths: Sequence[int], frozen: Collection[int], nonlinearity: str) -> nn.Sequential:
    """Return an MLP without biases, in which the layers in `frozen` need no gradient.

    `nonlinearity` is "relu" or "gelu", which stands between the layers, or "" for none.
    """
    network = nn.Sequential()
    for number, (inputs, outputs) in enumerate(pairwise(widths)):
        if number > 0 and nonlinearity:  # there is none before the first layer
            network.append(nn.ReLU() if nonlinearity == "relu" else nn.GELU())
        layer = nn.Linear(inputs, outputs, bias=False)
        layer.requires_grad_(number not in frozen)
        network.append(layer)
    return network


def _counted_flops(batch: int, widths: Sequence[int], frozen: Collection[int]) -> int:
    """Return the FLOPs that torch counts of a step on plain data."""
    network = _network(widths, frozen, "")

    def step() -> None:
        result = network(torch.zeros(batch, widths[0]))
        if result.requires_grad:  # which it does not if all layers are frozen
            result.sum().backward()

    return measure.flops(step).total


# As for the FLOPs, with the nonlinearity.
KEPT = [
    (8, [4, 6, 5, 3, 7], (0,), "relu"),
    (8, [4, 6, 5, 3, 7], (2,), "relu"),
    (8, [4, 6, 5, 3, 7], (), "relu"),
    (8, [4, 6, 5, 3, 7], (), "gelu"),
    (8, [4, 6, 5, 3, 7], (0, 2), "gelu"),
    (8, [4, 6, 5, 3, 7], (1, 3), "gelu"),
    (8, [4, 6, 5, 3, 7], (1, 2, 3), "relu"),
    (8, [4, 6, 5, 3, 7], (0, 1, 2), "gelu"),
    (8, [4, 6, 5, 3, 7], (0, 1, 2, 3), "relu"),
]


@function(
    KEPT,
    unit="bytes",
    hints=(
        "Ask of each layer's input: is it multiplied by in the backward pass? "
        "A weight gradient multiplies by it, and only a trained layer has one.",
        "A nonlinearity keeps something only if the gradient has to come back through it: "
        "if a layer before it is trained.",
        "What ReLU keeps is the next layer's input, so count it once. What GELU keeps is its own "
        "input, which is another tensor of the same width.",
    ),
)
def frozen_bytes(
    batch: int, widths: Sequence[int], frozen: Collection[int], nonlinearity: str
) -> Answers:
    """The check of a reader's frozen_bytes(…): what autograd keeps with some layers frozen."""
    right = _kept_bytes(batch, widths, frozen, nonlinearity)
    yield (
        right,
        "It agrees with autograd, with layers frozen at the front, inside, and at the end.",
    )
    yield from _mistaken_bytes(batch, widths, frozen, nonlinearity)
    last = BYTES["fp32"] * batch * widths[-1]
    yield right + last, "No gradient here multiplies by the last result."
    yield right // BYTES["fp32"], "That is how many numbers are kept. In fp32 each takes 4 bytes."
    yield right // batch, "That is for one row; there are `batch` of them."


def _mistaken_bytes(
    batch: int, widths: Sequence[int], frozen: Collection[int], nonlinearity: str
) -> Answers:
    """Yield the wrong counts of bytes that typical mistakes give, each with advice on it."""

    def kept(inputs_of: Iterable[int], before: Iterable[int], kind: str = nonlinearity) -> int:
        """Return the bytes that some layers' inputs and the nonlinearities before layers take."""
        counted = [*inputs_of, *before]  # GELU keeps its own input beside the next layer's
        if kind == "relu":  # it keeps its result, which is the next layer's input: counted once
            counted = set(counted)
        return BYTES["fp32"] * batch * sum(widths[number] for number in counted)

    layers = range(len(widths) - 1)
    others = layers[1:]  # those with a nonlinearity before them
    trained = [number for number in layers if number not in frozen]
    after_trained = [number for number in others if trained and number > trained[0]]
    yield (
        kept(layers, others),
        "That is what is kept if all layers are trained. "
        "A frozen layer has no weight gradient, which would multiply by its input.",
    )
    yield (
        kept(trained, []),
        "After a trained layer, a nonlinearity keeps something, too: "
        "the gradient has to come back through it.",
    )
    yield kept(trained, after_trained, "relu"), "GELU keeps its own input, not the next layer's."
    yield (
        kept(trained, after_trained, "gelu"),
        "ReLU's result is the next layer's input: count it once.",
    )
    yield (
        kept(trained, others),
        "A nonlinearity keeps nothing if no layer before it is trained: no gradient comes so far.",
    )
    # As if every layer after the first trained one kept its input, whether it is trained or not.
    yield (
        kept([*trained[:1], *after_trained], after_trained),
        "To pass a gradient on, a frozen layer multiplies by its weights, and not by its input.",
    )


def _kept_bytes(
    batch: int, widths: Sequence[int], frozen: Collection[int], nonlinearity: str
) -> int:
    """Return the bytes that autograd keeps when data go through that need no gradient."""
    network = _network(widths, frozen, nonlinearity)
    data = torch.zeros(batch, widths[0])
    return measure.saved_bytes(lambda: network(data), exclude=network.parameters())


# The inputs and outputs of a matrix.
MATRICES = [(768, 3072), (12, 12), (4096, 4096), (8192, 28672), (5, 7)]


@function(
    MATRICES,
    hints=(
        "For one token, the matrix itself takes 2 * inputs * outputs FLOPs in each product, and "
        "the pair of rank r takes 2 * r * (inputs + outputs).",
        "Beside the pair, the frozen matrix saves one product of three. The pair may cost as much "
        "as that product, in three products of its own.",
    ),
)
def largest_rank(inputs: int, outputs: int) -> Answers:
    """The check of a reader's largest_rank(inputs, outputs): up to it, LoRA costs no more FLOPs."""
    full = 2 * inputs * outputs  # FLOPs of one product with the matrix, for one token
    right = 0
    # Each product in training takes 2 * inputs * outputs FLOPs or the pair's: two products with the
    # frozen matrix, forward and for the gradient to pass on, and three with the pair, against three
    # where the whole matrix is trained.
    while 2 * full + 3 * _pair_flops(inputs, outputs, right + 1) <= 3 * full:
        right += 1
    yield right, "The frozen matrix saves one product, and the pair takes three small ones."
    yield (
        inputs * outputs / (3 * (inputs + outputs)),
        "A rank is a whole number: of those that cost no more, the largest.",
    )
    yield right + 1, "At that rank the pair costs more than it saves: round down."
    yield (
        inputs * outputs // (inputs + outputs),
        "At that rank the pair has as many weights as the matrix. Its three products then take as "
        "much as three of the matrix's, and only one is saved.",
    )
    yield (
        inputs * outputs // (2 * (inputs + outputs)),
        "The pair is trained: it takes three products, and not two.",
    )
    yield (
        2 * inputs * outputs // (3 * (inputs + outputs)),
        "The frozen matrix takes two products: it also passes the gradient on.",
    )
    two_matrices = "The pair has two matrices, inputs × rank and rank × outputs."
    # 3 * 2 * r * inputs FLOPs, of one matrix alone, may be 2 * inputs * outputs.
    yield outputs // 3, two_matrices
    yield inputs // 3, two_matrices
    yield min(inputs, outputs), "That is the largest rank that the matrix itself can have."


def _pair_flops(inputs: int, outputs: int, rank: int) -> int:
    """Return the FLOPs of the narrow pair's forward pass, for one token."""
    down = 2 * inputs * rank
    up = 2 * rank * outputs
    return down + up
