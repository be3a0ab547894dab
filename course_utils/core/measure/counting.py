"""FLOPs by torch's own counter. Missing formulas are added; what would count as 0 raises an error."""

import math
import re
from collections import ChainMap, Counter
from collections.abc import Callable, Sequence

import torch
from torch.utils.flop_counter import conv_flop_count, flop_registry, shape_wrapper

from course_utils.core.measure import internals
from course_utils.core.say import Ledger

# What multiplies and adds, by the name of the operation. What looks like it and has no formula is refused, so that
# an operation that comes with a new torch is not counted as 0.
_PRODUCT = re.compile(
    r"mm(?!a|ax|in|y)|mv(?!l)|matmul|dot|addr|combination|[cp]dist|euclidean|linear|conv(?!ert)"
    r"|attention|transformer|rnn|lstm|gru|fft|solve|inv|chol|qr(?!t)|(^|_)lu(_|$)|ldl|lstsq|svd|(?<!w)eig"
    r"|det(?!ach)|householder|matrix_exp"
)
_NO_PRODUCT = re.compile(
    r"erfinv|freq|thnn_fused|upsample"  # element-wise, or interpolation
    r"|unpack|reorder|flatten_weight|slice_inverse"  # copies
)


def flops(fn: Callable[[], object]) -> Ledger:
    """2 FLOPs for every multiply-add that torch's matrix products, convolutions and attention really ran, by operation.

    Element-wise operations, reductions and optimizers count 0. What multiplies and adds where torch's
    counter would say 0 raises an error.

    >>> flops(lambda: torch.ones(8, 3) @ torch.ones(3, 5)).total
    240
    """
    with _FlopCounter() as counter:
        fn()
    return Ledger(counter.by_operation, unit="FLOPs")


class _FlopCounter(internals.Mode):
    """Counts like torch's FlopCounterMode, but puts no hooks on the modules that run in this process."""

    def __init__(self) -> None:
        super().__init__()
        self.by_operation: Counter[str] = Counter()

    def run(self, func: Callable[..., object], args: tuple, kwargs: dict[str, object]) -> object:
        """Run the operation, or its parts if it has any, and count."""
        if func is not torch.ops.prim.device.default:
            with self:  # in inference mode an operation comes before it is taken into its parts
                result = func.decompose(*args, **kwargs)
            if result is not NotImplemented:
                return result
        operation = func.overloadpacket
        name = str(operation).removeprefix("aten.")
        _refuse_what_would_be_0(func, name, args)
        result = func(*args, **kwargs)
        if operation in _FORMULAS:
            self.by_operation[name] += _FORMULAS[operation](*args, **kwargs, out_val=result)
        return result


def _refuse_what_would_be_0(func: Callable[..., object], name: str, args: tuple) -> None:
    sparse = any(isinstance(arg, torch.Tensor) and arg.layout != torch.strided for arg in args)
    known = func.overloadpacket in _FORMULAS or _NO_PRODUCT.search(name)
    if (
        (_PRODUCT.search(name) and not known)
        or func.namespace == "quantized"
        or (sparse and "mm" in name)
    ):
        raise ValueError(
            f"torch's counter has no formula for {name!r} and would say 0. If a vector is the reason, give it "
            "a second dimension, as in x @ w[:, None]; otherwise count this operation by hand."
        )


def _convolution_backward(
    grad_out: Sequence[int], x: Sequence[int], w: Sequence[int], *others: object, **_: object
) -> int:
    """The forward pass's count for each gradient except the bias's. torch's own formula forgets the groups."""
    _bias, _stride, _padding, _dilation, transposed, _output_padding, _groups, wanted = others
    return conv_flop_count(x, w, grad_out, transposed=transposed) * sum(wanted[:2])


def _attention(
    q: Sequence[int], k: Sequence[int], v: Sequence[int], *_others: object, **_: object
) -> int:
    """Two products for each head of the query, also where several share a head of the key."""
    return 2 * math.prod(q[:3]) * k[2] * (q[3] + v[3])


def _attention_backward(
    _grad: Sequence[int],
    q: Sequence[int],
    k: Sequence[int],
    v: Sequence[int],
    *_others: object,
    **_: object,
) -> int:
    """Five products where a formula would have four: the kernel computes the scores anew."""
    return 2 * math.prod(q[:3]) * k[2] * (3 * q[3] + 2 * v[3])


_IN_PLACE = {
    torch.ops.aten.addmm_: torch.ops.aten.addmm,
    torch.ops.aten.baddbmm_: torch.ops.aten.baddbmm,
}

# From an operation to its formula: ours, and then torch's.
_FORMULAS: ChainMap[object, Callable[..., int]] = ChainMap(
    {operation: flop_registry[other] for operation, other in _IN_PLACE.items()},
    dict.fromkeys(internals.ATTENTION, shape_wrapper(_attention)),
    dict.fromkeys(internals.ATTENTION_BACKWARD, shape_wrapper(_attention_backward)),
    {torch.ops.aten.convolution_backward: shape_wrapper(_convolution_backward)},
    flop_registry,
)
