"""Networks of layers x W, one after the other: FLOPs layer by layer, and what autograd keeps of them."""

from collections.abc import Collection, Sequence
from itertools import pairwise

from course_utils.predict.operations import check_sizes, dtype_bytes, matmul_flops
from course_utils.quantities import Ledger

# What autograd keeps for a nonlinearity's gradient: its input, or its result, which the next layer keeps anyway.
KEEPS = {"relu": "result", "tanh": "result", "gelu": "input", "silu": "input"}


def mlp_flops(
    batch: int, widths: Sequence[int], *, input_grad: bool = False, frozen: Collection[int] = ()
) -> Ledger:
    """Forward 2B for each weight; backward 4B, but 2B in the first layer if the input needs no gradient.

    Frozen layers, counted from 0, need no gradient for their weights.

    >>> mlp_flops(1024, [256, 256, 64])
                    FLOPs
    forward   167,772,160
    backward  201,326,592
    total     369,098,752
    """
    layers = mlp_flops_by_layer(batch, widths, input_grad=input_grad, frozen=frozen)
    forward = sum(layer["forward"] for layer in layers)
    return Ledger({"forward": forward, "backward": sum(layer.total for layer in layers) - forward}, "FLOPs")


def mlp_flops_by_layer(
    batch: int, widths: Sequence[int], *, input_grad: bool = False, frozen: Collection[int] = ()
) -> list[Ledger]:
    """2BDK in each layer for forward, for the weight's gradient and for the input's, where they are needed.

    A weight's gradient is needed unless its layer is frozen; an input's only if something before it still
    needs one: a layer that is not frozen, or with `input_grad` the data itself.

    >>> mlp_flops_by_layer(1024, [256, 256, 64])[0]
                           FLOPs
    forward          134,217,728
    weight gradient  134,217,728
    input gradient             0
    total            268,435,456
    """
    layers = _layers(widths)
    wrong = [layer for layer in frozen if layer not in range(len(layers))]
    if wrong:
        raise ValueError(f"The layers are 0 to {len(layers) - 1}, so {wrong[0]!r} cannot be frozen.")
    ledgers, needed_before = [], input_grad
    for layer, (d, k) in enumerate(layers):
        flops, trained = matmul_flops(batch, d, k), layer not in frozen
        gradients = {"weight gradient": flops * trained, "input gradient": flops * needed_before}
        ledgers.append(Ledger({"forward": flops, **gradients}, unit="FLOPs"))
        needed_before = needed_before or trained
    return ledgers


def mlp_activation_bytes(
    batch: int, widths: Sequence[int], *, nonlinearity: str | None = None, dtype: str = "fp32"
) -> Ledger:
    """B × width × bytes of a number, for each layer's input, and for each input of a GELU or SiLU.

    ReLU and tanh take their gradient from their result, which is the next layer's input: kept once, for both.

    >>> mlp_activation_bytes(32, [64, 256, 64], nonlinearity="gelu")
                               bytes
    inputs of layers          40,960
    inputs of nonlinearities  32,768
    total                     73,728
    """
    if nonlinearity is not None and nonlinearity not in KEEPS:
        raise ValueError(f"{nonlinearity!r} is no nonlinearity here. There are: {', '.join(KEEPS)}, or None.")
    check_sizes(batch=batch)
    inputs = [d for d, _ in _layers(widths)]
    row = batch * dtype_bytes(dtype)
    again = inputs[1:] if nonlinearity and KEEPS[nonlinearity] == "input" else []
    kept = {"inputs of layers": row * sum(inputs), "inputs of nonlinearities": row * sum(again)}
    return Ledger(kept, unit="bytes")


def _layers(widths: Sequence[int]) -> list[tuple[int, int]]:
    if len(widths) < 2:
        raise ValueError(
            f"A network needs at least two widths, its input's and its output's; got {list(widths)}."
        )
    check_sizes(**{f"width {place}": width for place, width in enumerate(widths)})
    return list(pairwise(widths))
