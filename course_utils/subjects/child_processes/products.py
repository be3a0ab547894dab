"""Matrix products, ready to be timed.

A product that runs can't be interrupted. So a product that may take long is timed in a process of
its own, which can be killed: `process.steps_of` runs `timing_steps` and `einsum_timing_steps`.
"""

import math
from collections.abc import Callable, Mapping, Sequence

import torch

from course_utils.core import einsums, measure
from course_utils.core.einsums import Einsum, Tree
from course_utils.core.measure import MeasurementProgress, Timing, internals
from course_utils.core.measure.results import Steps
from course_utils.core.say import Number
from course_utils.core.say.language import template

DTYPES = ("fp64", "fp32", "tf32", "bf16", "fp16", "fp8")
BLOCK = 2**22  # the most random numbers that are drawn for a tensor; a larger one repeats them
_FIRST_CALL = MeasurementProgress(
    0, template("The first call runs; nobody can tell how far it is.")
)


def matmul_call(b: int, d: int, k: int, dtype: str, device: str = "cpu") -> Callable[[], object]:
    """Return the product of a (b, d) and a (d, k) matrix as a call without arguments.

    The matrices have normally distributed numbers, because on constant ones a GPU takes less power
    and runs faster. ValueError if the device has no products in that dtype.
    """
    if dtype not in DTYPES:
        raise ValueError(f"No product in {dtype!r} here. There are: {', '.join(DTYPES)}.")
    if dtype == "tf32":
        return _tf32_call(b, d, k, device)
    if dtype == "fp8":
        return _fp8_call(b, d, k, device)
    # NVIDIA's GPUs multiply bf16 from compute capability 8.0 on. Every GPU of theirs has at least
    # (0, 0), so the first question is only whether it is one of theirs.
    if dtype == "bf16" and _is_nvidia(device, (0, 0)) and not _is_nvidia(device, (8, 0)):
        raise ValueError(
            "This GPU has no units for bf16. torch computes it in fp32, and that time says nothing."
        )
    torch_dtype = measure.DTYPES[dtype]
    x = _random((b, d), torch_dtype, device)
    w = _random((d, k), torch_dtype, device)
    # Each call writes its result here, so that no call has to allocate memory.
    out = torch.empty(b, k, device=device, dtype=torch_dtype)
    return lambda: torch.mm(x, w, out=out)


def _random(shape: Sequence[int], dtype: torch.dtype, device: str) -> torch.Tensor:
    """Return a tensor of normally distributed numbers.

    A large tensor repeats one random block, because drawing numbers takes long.
    """
    if dtype == torch.float64 and torch.device(device).type == "mps":
        raise ValueError("Apple's GPUs have no fp64.")
    numbers = torch.empty(math.prod(shape), dtype=dtype, device=device)
    block = torch.randn(min(len(numbers), BLOCK), device=device).to(dtype)
    for part in numbers.split(BLOCK):
        part.copy_(block[: len(part)])
    return numbers.view(tuple(shape))


def _tf32_call(b: int, d: int, k: int, device: str) -> Callable[[], object]:
    """Return the product in tf32 as a call: an fp32 product for which torch may use tf32."""
    if not _is_nvidia(device, (8, 0)):
        raise ValueError(
            "tf32 is a way in which NVIDIA's tensor cores multiply; this device has none."
        )
    product = matmul_call(b, d, k, "fp32", device)

    def call() -> object:
        """Multiply while tf32 is allowed, and set torch's switch back."""
        before = torch.backends.cuda.matmul.allow_tf32
        torch.backends.cuda.matmul.allow_tf32 = True
        try:
            return product()
        finally:
            torch.backends.cuda.matmul.allow_tf32 = before

    return call


def _is_nvidia(device: str, capability: tuple[int, int]) -> bool:
    """Whether the device is an NVIDIA GPU of at least that compute capability.

    torch calls AMD's GPUs cuda, too, but these do not count.
    """
    if torch.device(device).type != "cuda" or torch.version.hip:
        return False
    return torch.cuda.get_device_capability(device) >= capability


def _fp8_call(b: int, d: int, k: int, device: str) -> Callable[[], object]:
    """Return the product in fp8 as a call; the product's result is in bf16."""
    if not _is_nvidia(device, (8, 9)):
        raise ValueError(
            "This device has no units for NVIDIA's fp8; an H100, an L4 or an RTX 4090 has."
        )
    if b % 16 or d % 16 or k % 16:
        raise ValueError(
            f"torch multiplies fp8 in sizes that are multiples of 16; got {b}, {d} and {k}."
        )
    x = _random((b, d), torch.float8_e4m3fn, device)
    # The second operand has to lie column by column in memory.
    w = _random((k, d), torch.float8_e4m3fn, device).t()
    one = torch.ones((), device=device)  # a scale that changes nothing
    return lambda: internals.scaled_mm(x, w, scale_a=one, scale_b=one, out_dtype=torch.bfloat16)


def einsum_call(
    pattern: str, sizes: Mapping[str, int], tree: Tree | list, dtype: str, device: str = "cpu"
) -> Callable[[], object]:
    """Return an einsum of normally distributed numbers as a call without arguments.

    `sizes` has the size of each dimension. Operands are multiplied two at a time, in the order of
    the tree, which is an operand's number or a pair of trees: with ((0, 2), 1), the first operand
    is multiplied with the third, and the result with the second.
    """
    einsum = einsums.parsed(pattern)
    operands = []
    for names in einsum.operands:
        shape = [sizes[name] for name in names]
        operands.append(_random(shape, measure.DTYPES[dtype], device))
    return lambda: product_in_order(einsum, tree, operands)


def product_in_order(
    einsum: Einsum, tree: Tree | list, operands: Sequence[torch.Tensor]
) -> torch.Tensor:
    """Return the einsum of the operands, computed two at a time, in the order of the tree."""
    if isinstance(tree, int):  # there is one operand only
        return torch.einsum(einsum.equation, *operands)

    def needed(part: Tree | list) -> tuple[str, ...]:
        """Return a part's dimensions that the result or an operand outside the part has, too.

        The other dimensions are summed over when the part is multiplied. An operand by itself keeps
        all its dimensions.
        """
        if isinstance(part, int):
            return einsum.operands[part]
        leaves = _leaves(part)
        inside = set()
        outside = set(einsum.output)
        for number, names in enumerate(einsum.operands):
            if number in leaves:
                inside |= set(names)
            else:
                outside |= set(names)
        return tuple(sorted(inside & outside))  # a set has no order of its own

    def product(part: Tree | list, names: tuple[str, ...]) -> torch.Tensor:
        """Return the product of a part's operands, a tensor with the dimensions `names`.

        Both of its factors are computed first, in the same way.
        """
        if isinstance(part, int):
            return operands[part]
        left, right = part
        left_names = needed(left)
        right_names = needed(right)
        equation = Einsum((left_names, right_names), names).equation
        return torch.einsum(equation, product(left, left_names), product(right, right_names))

    return product(tree, einsum.output)


def _leaves(tree: Tree | list) -> set[int]:
    """Return the numbers of the operands that are in the tree."""
    if isinstance(tree, int):
        return {tree}
    left, right = tree
    return _leaves(left) | _leaves(right)


def timing_steps(
    b: int, d: int, k: int, dtype: str, *, device: str = "cpu", at_most_s: Number = 2.0
) -> Steps[Timing]:
    """Time a (b, d) @ (d, k) product: yield the measurement's progress, and return the timing."""
    yield _FIRST_CALL
    call = matmul_call(b, d, k, dtype, device)
    return (yield from measure.timing_steps(call, device=device, at_most_s=at_most_s))


def einsum_timing_steps(
    pattern: str,
    sizes: Mapping[str, int],
    tree: Tree | list,
    dtype: str,
    *,
    device: str = "cpu",
    at_most_s: Number = 2.0,
) -> Steps[Timing]:
    """Time an einsum: yield the measurement's progress, and return the timing."""
    yield _FIRST_CALL
    call = einsum_call(pattern, sizes, tree, dtype, device)
    return (yield from measure.timing_steps(call, device=device, at_most_s=at_most_s))
