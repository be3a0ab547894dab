"""FLOPs by torch's own counter.

Missing formulas are added, and a matrix product that would count as 0 raises an error.
"""

import math
import re
from collections import ChainMap, Counter
from collections.abc import Callable, Sequence

import torch
from torch.utils.flop_counter import conv_flop_count, flop_registry, shape_wrapper

from course_utils.core.measure import internals
from course_utils.core.say import Ledger

# Names of operations that multiply and add. An operation with such a name and without a formula is
# refused, so that a new torch's operations are not counted as 0. The parts with ?! or ?<! leave out
# names that only look alike: gamma, cummax, cummin, dummy, mvlgamma, convert, sqrt, weight, detach.
_PRODUCT = re.compile(
    r"mm(?!a|ax|in|y)|mv(?!l)|matmul|dot|addr|combination|[cp]dist|euclidean|linear|conv(?!ert)"
    r"|attention|transformer|rnn|lstm|gru|fft"
    r"|solve|inv|chol|qr(?!t)|(^|_)lu(_|$)|ldl|lstsq|svd|(?<!w)eig|det(?!ach)|householder"
    r"|matrix_exp"
)
_NO_PRODUCT = re.compile(
    r"erfinv|freq|thnn_fused|upsample"  # element-wise, or interpolation
    r"|unpack|reorder|flatten_weight|slice_inverse"  # copies
)


def flops(fn: Callable[[], object]) -> Ledger:
    """Count 2 FLOPs for every multiply-add that torch really ran, by operation.

    Matrix products, convolutions and attention count; element-wise operations, reductions and
    optimizers do not. An operation that multiplies and adds, and for which torch's counter would
    count 0, raises an error.

    >>> flops(lambda: torch.ones(8, 3) @ torch.ones(3, 5)).total
    240
    """
    with _FlopCounter() as counter:
        fn()
    return Ledger(counter.by_operation, unit="FLOPs")


class _FlopCounter(internals.Mode):
    """Counts like torch's FlopCounterMode, but sets no hooks on the modules that run meanwhile."""

    def __init__(self) -> None:
        super().__init__()
        self.by_operation: Counter[str] = Counter()

    def run(self, func: Callable[..., object], args: tuple, kwargs: dict[str, object]) -> object:
        """Run the operation, and count it, or each of its parts if torch composes it of others."""
        # As in torch's own counter: prim.device computes nothing and cannot be taken apart.
        if func is not torch.ops.prim.device.default:
            # An operation composed of others comes here whole in inference mode only; otherwise
            # autograd has taken it apart before. While `run` runs, torch has left this mode, so the
            # mode is entered once more: then torch calls `run` for each part.
            with self:
                result = func.decompose(*args, **kwargs)
            if result is not NotImplemented:
                return result
        operation = func.overloadpacket  # aten.mm, if func is its overload aten.mm.default
        name = str(operation).removeprefix("aten.")
        _refuse_what_would_be_0(func, name, args)
        result = func(*args, **kwargs)
        if operation in _FORMULAS:  # a formula takes the operation's arguments and its result
            self.by_operation[name] += _FORMULAS[operation](*args, **kwargs, out_val=result)
        return result


def _refuse_what_would_be_0(func: Callable[..., object], name: str, args: tuple) -> None:
    """Raise a ValueError if the operation multiplies and adds, but would be counted as 0.

    A product with a sparse matrix is refused, too, since it would count as one without zeros.
    """
    has_formula = func.overloadpacket in _FORMULAS
    # By its name: `mm` and `cdist` multiply and add, for example, and `gamma` does not.
    is_product = _PRODUCT.search(name) and not _NO_PRODUCT.search(name)
    # The formula of mm takes shapes alone, so it would count the zeros that are not multiplied.
    is_sparse_product = "mm" in name and any(map(_is_sparse, args))
    # No quantized operation has a formula. `_PRODUCT` was made for torch.ops.aten's names, and may
    # miss a product among other names, so all are refused.
    is_quantized = func.namespace == "quantized"
    if (is_product and not has_formula) or is_sparse_product or is_quantized:
        raise ValueError(
            f"torch's counter has no formula for {name!r} and would say 0. If a vector is the "
            "reason, give it a second dimension, as in x @ w[:, None]; otherwise count this "
            "operation by hand."
        )


def _is_sparse(arg: object) -> bool:
    return isinstance(arg, torch.Tensor) and arg.layout != torch.strided


def _convolution_backward(
    grad_out: Sequence[int], x: Sequence[int], w: Sequence[int], *others: object, **_: object
) -> int:
    """Return as many FLOPs as the forward pass for each wanted gradient, except the bias's.

    The arguments are the operation's own, with a shape in place of each tensor. torch's own formula
    forgets the groups; here the shape of w has them, (outputs, inputs / groups, ...).
    """
    _bias, _stride, _padding, _dilation, transposed, _output_padding, _groups, wanted = others
    # `wanted` says of x, w and the bias whether its gradient is asked for, as [True, True, False].
    # The gradient of the bias is a sum, and no product.
    gradients_by_product = wanted[:2].count(True)
    return gradients_by_product * conv_flop_count(x, w, grad_out, transposed=transposed)


def _attention(
    q: Sequence[int], k: Sequence[int], v: Sequence[int], *_others: object, **_: object
) -> int:
    """Return the FLOPs of two products for each head of the query, also if heads share their keys.

    q, k and v are shapes: (batch, heads, sequence, width).
    """
    scores = math.prod(q[:3]) * k[2]  # one for each query and key
    return 2 * scores * (q[3] + v[3])


def _attention_backward(
    _grad: Sequence[int],
    q: Sequence[int],
    k: Sequence[int],
    v: Sequence[int],
    *_others: object,
    **_: object,
) -> int:
    """Return the FLOPs of five products, not four, because the kernel computes the scores again.

    Three of them are as wide as a key, two as a value. q, k and v are shapes: (batch, heads,
    sequence, width).
    """
    scores = math.prod(q[:3]) * k[2]  # one for each query and key
    return 2 * scores * (3 * q[3] + 2 * v[3])


_IN_PLACE = {  # operations without a formula in torch's counter, and those that cost the same
    torch.ops.aten.addmm_: torch.ops.aten.addmm,
    torch.ops.aten.baddbmm_: torch.ops.aten.baddbmm,
}

# The formula of each operation. Of several, the first counts, so ours come before torch's.
# `shape_wrapper` gives a formula the shapes of the tensors.
_FORMULAS: ChainMap[object, Callable[..., int]] = ChainMap(
    {operation: flop_registry[other] for operation, other in _IN_PLACE.items()},
    dict.fromkeys(internals.ATTENTION, shape_wrapper(_attention)),
    dict.fromkeys(internals.ATTENTION_BACKWARD, shape_wrapper(_attention_backward)),
    {torch.ops.aten.convolution_backward: shape_wrapper(_convolution_backward)},
    flop_registry,
)
