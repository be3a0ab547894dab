"""Networks of layers x W, one after the other."""

from collections.abc import Sequence
from itertools import pairwise

from course_utils.core.predict.operations import check_sizes, matmul_flops
from course_utils.core.say import Ledger


def mlp_flops(batch: int, widths: Sequence[int], *, input_grad: bool = False) -> Ledger:
    """Forward 2B for each weight; backward 2B for its gradient, and 2B for the input's.

    Plain data needs no gradient, so the first layer has no product for it, unless `input_grad` asks for one.

    >>> mlp_flops(1024, [256, 256, 64])
                    FLOPs
    forward   167,772,160
    backward  201,326,592
    total     369,098,752
    """
    if len(widths) < 2:
        raise ValueError(
            f"A network needs at least two widths, its input's and its output's; got {list(widths)}."
        )
    check_sizes(**{f"width {place}": width for place, width in enumerate(widths)})
    first, *more = [matmul_flops(batch, d, k) for d, k in pairwise(widths)]
    forward = first + sum(more)
    return Ledger(
        {"forward": forward, "backward": 2 * forward - first * (not input_grad)}, unit="FLOPs"
    )
