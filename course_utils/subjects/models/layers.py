"""Layers that work on each position by itself: matrices, feed-forwards, normalisations."""

from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import pairwise

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.autograd.function import FunctionCtx
from torch.nn import functional

Generator = torch.Generator | None  # None stands for torch's own, which all code shares
NONLINEARITIES: Mapping[str, Callable[[Tensor], Tensor]] = {
    "relu": functional.relu,
    "tanh": torch.tanh,
    "gelu": functional.gelu,
    "silu": functional.silu,
}


def normal_matrix(
    rows: int, columns: int, fan_in: int, dtype: torch.dtype, generator: Generator
) -> nn.Parameter:
    """Return a parameter of normally distributed numbers, with variance 1 / fan_in.

    `fan_in` is how many numbers each output of the matrix adds up. The numbers are drawn in fp32,
    so that a model begins with the same ones in every dtype, apart from rounding.
    """
    numbers = torch.empty(rows, columns, dtype=torch.float32).normal_(generator=generator)
    divisor = max(fan_in, 1)  # a matrix with no inputs has no numbers to divide
    scaled = numbers / divisor**0.5
    return nn.Parameter(scaled.to(dtype))


class Linear(nn.Module):
    """x W + b, with W of shape (D, K): inputs by outputs, which torch.nn.Linear has transposed."""

    def __init__(
        self,
        inputs: int,
        outputs: int,
        *,
        biases: bool = True,
        dtype: torch.dtype = torch.float32,
        generator: Generator = None,
    ) -> None:
        super().__init__()
        self.weight = normal_matrix(inputs, outputs, inputs, dtype, generator)
        self.bias = nn.Parameter(torch.zeros(outputs, dtype=dtype)) if biases else None

    def forward(self, x: Float[Tensor, "*batch inputs"]) -> Float[Tensor, "*batch outputs"]:
        """Multiply, and add the bias if there is one."""
        product = x @ self.weight
        return product if self.bias is None else product + self.bias


class MLP(nn.Module):
    """x W1 W2 ... WL: a deep linear model, or with a nonlinearity between its layers.

    `widths` has the width of the input and then that of each layer's output, such as (20, 64, 19)
    for two layers. The options are Linear's.
    """

    def __init__(
        self,
        widths: Sequence[int],
        *,
        nonlinearity: str | None = None,
        biases: bool = False,
        **options: torch.dtype | Generator,
    ) -> None:
        super().__init__()
        if nonlinearity is not None and nonlinearity not in NONLINEARITIES:
            known = ", ".join(NONLINEARITIES)
            raise ValueError(
                f"{nonlinearity!r} is no nonlinearity here. There are: {known}, or None."
            )
        self.nonlinearity = NONLINEARITIES[nonlinearity] if nonlinearity else None
        self.layers = nn.ModuleList()
        for inputs, outputs in pairwise(widths):
            self.layers.append(Linear(inputs, outputs, biases=biases, **options))

    def forward(self, x: Float[Tensor, "*batch inputs"]) -> Float[Tensor, "*batch outputs"]:
        """Apply the layers, with the nonlinearity before each layer but the first."""
        for number, layer in enumerate(self.layers):
            if number > 0:
                x = self._activated(x)
            x = layer(x)
        return x

    def _activated(self, x: Float[Tensor, "*batch d"]) -> Float[Tensor, "*batch d"]:
        return x if self.nonlinearity is None else self.nonlinearity(x)


class FeedForward(nn.Module):
    """gelu(x W1) W2, or gated, as in SwiGLU: (silu(x Wg) × (x W1)) W2.

    `biases` names the matrices that have a bias, of "gate", "up" and "down". The options are
    Linear's.
    """

    def __init__(
        self,
        width: int,
        inner: int,
        *,
        gated: bool,
        biases: Collection[str] = (),
        **options: object,
    ) -> None:
        super().__init__()
        self.gate = Linear(width, inner, biases="gate" in biases, **options) if gated else None
        self.up = Linear(width, inner, biases="up" in biases, **options)
        self.down = Linear(inner, width, biases="down" in biases, **options)

    def forward(self, x: Float[Tensor, "*batch h"]) -> Float[Tensor, "*batch h"]:
        if self.gate is None:
            return self.down(functional.gelu(self.up(x)))
        return self.down(functional.silu(self.gate(x)) * self.up(x))


class MLPBlock(nn.Module):
    """x + gelu(x W1) W2, H → 4H → H without biases: half a layer of a transformer.

    The options are Linear's.
    """

    def __init__(self, width: int, **options: torch.dtype | Generator) -> None:
        super().__init__()
        self.feed_forward = FeedForward(width, 4 * width, gated=False, **options)

    def forward(self, x: Float[Tensor, "*batch h"]) -> Float[Tensor, "*batch h"]:
        return x + self.feed_forward(x)


_PIECES = 4  # the backward pass of OneKernelRMSNorm computes a quarter of the rows at a time
# The two kernels are registered as operations of torch, torch.ops.course.rms_norm and
# torch.ops.course.rms_norm_backward. So whatever counts operations counts each of them as one,
# whatever runs inside it. Below, "CompositeExplicitAutograd" registers a function for all devices,
# and leaves its gradient to _OneKernel.
_KERNELS = torch.library.Library("course", "FRAGMENT")
_KERNELS.define("rms_norm(Tensor x, Tensor weight, float eps) -> Tensor")
_KERNELS.define(
    "rms_norm_backward(Tensor gradient, Tensor x, Tensor weight, float eps) -> (Tensor, Tensor)"
)


class OneKernelRMSNorm(nn.RMSNorm):
    """torch's RMSNorm, but autograd keeps only its input.

    torch's own kernel for GPUs also keeps 1 / √(mean of x² + ε) of each row.
    """

    def forward(self, x: Float[Tensor, "*batch h"]) -> Float[Tensor, "*batch h"]:
        """Return the same numbers as RMSNorm, to the last bit."""
        return _OneKernel.apply(x, self.weight, self.eps)


class _OneKernel(torch.autograd.Function):
    """RMSNorm for autograd: one kernel forward, which saves x and the weight, and one backward."""

    @staticmethod
    def forward(ctx: FunctionCtx, x: Tensor, weight: Tensor, eps: float) -> Tensor:
        ctx.save_for_backward(x, weight)
        ctx.eps = eps
        return torch.ops.course.rms_norm(x, weight, eps)

    @staticmethod
    def backward(ctx: FunctionCtx, gradient: Tensor) -> tuple[Tensor, Tensor, None]:
        """Return the gradients of x and of the weight, by the second kernel."""
        x, weight = ctx.saved_tensors
        of_x, of_weight = torch.ops.course.rms_norm_backward(gradient, x, weight, ctx.eps)
        return of_x, of_weight, None  # autograd wants one for each argument; eps has none


@torch.library.impl(_KERNELS, "rms_norm", "CompositeExplicitAutograd")
def _rms_norm(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    return functional.rms_norm(x, x.shape[-1:], weight, eps)


@torch.library.impl(_KERNELS, "rms_norm_backward", "CompositeExplicitAutograd")
def _rms_norm_backward(
    gradient: Tensor, x: Tensor, weight: Tensor, eps: float
) -> tuple[Tensor, Tensor]:
    """Return the gradients of x and of the weight, for x / √(mean of x² + ε) × weight.

    Everything is computed from x, in at least fp32, and in _PIECES pieces, to hold less at a time.
    """
    wide = torch.promote_types(x.dtype, torch.float32)
    of_x = torch.empty_like(x)
    of_weight = torch.zeros_like(weight, dtype=wide)
    width = x.shape[-1]
    # The pieces of of_x are views, so writing into them fills of_x.
    pieces = zip(
        x.reshape(-1, width).chunk(_PIECES),
        gradient.reshape(-1, width).chunk(_PIECES),
        of_x.reshape(-1, width).chunk(_PIECES),
        strict=True,
    )
    for rows, grad, of_rows in pieces:
        rows = rows.to(wide)
        grad = grad.to(wide)
        scale = torch.rsqrt(rows.pow(2).mean(-1, keepdim=True) + eps)
        normed = rows * scale
        of_weight += (grad * normed).sum(0)
        of_normed = grad * weight  # the gradient of `normed`
        # `scale` depends on x, too. That takes off the part of the gradient that is along `normed`.
        along_row = (of_normed * normed).mean(-1, keepdim=True)
        of_rows.copy_(scale * (of_normed - normed * along_row))
    return of_x, of_weight.to(weight.dtype)


def normalisation(
    width: int, rms_norm: bool, biases: bool, dtype: torch.dtype, *, fused: bool = False
) -> nn.Module:
    """Return a LayerNorm or, with `rms_norm`, an RMSNorm, whose weights are 1.

    `biases` says whether a LayerNorm has a bias; an RMSNorm has none. A LayerNorm is one kernel in
    any case, and an RMSNorm only if `fused` is set.
    """
    if not rms_norm:
        return nn.LayerNorm(width, bias=biases, dtype=dtype)
    make = OneKernelRMSNorm if fused else nn.RMSNorm
    return make(width, eps=1e-5, dtype=dtype)  # 1e-5 is also the default of torch's LayerNorm
