"""Networks whose layers are matrix products, one behind the other: their FLOPs."""

from collections.abc import Sequence
from itertools import pairwise

from course_utils.core.predict.operations import check_sizes, matmul_flops
from course_utils.core.say import Ledger


def mlp_flops(batch: int, widths: Sequence[int], *, input_grad: bool = False) -> Ledger:
    """Return the FLOPs of a forward and a backward pass, with a batch of B.

    `widths` are those of the input and of each layer's result. Each weight takes 2B forward, 2B for
    its own gradient, and 2B for the gradient of its layer's input. The data needs no gradient, so
    the first layer omits that last product unless `input_grad` is set.

    >>> mlp_flops(1024, [256, 256, 64])
                    FLOPs
    forward   167,772,160
    backward  201,326,592
    total     369,098,752
    """
    if len(widths) < 2:
        raise ValueError(
            "A network needs at least two widths, its input's and its output's; "
            f"got {list(widths)}."
        )
    # `check_sizes` names the wrong width in its message by the key, such as "width 0".
    sizes = {f"width {place}": width for place, width in enumerate(widths)}
    check_sizes(**sizes)
    layers = [matmul_flops(batch, d, k) for d, k in pairwise(widths)]
    forward = sum(layers)
    backward = 2 * forward
    if not input_grad:
        backward -= layers[0]
    return Ledger({"forward": forward, "backward": backward}, unit="FLOPs")
