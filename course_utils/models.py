"""The course's subjects, written out to be read: a deep linear model, a transformer's layer, a GPT, a Llama.

Every matrix is drawn from a normal distribution with variance 1 / its input's width, by a generator that may
be given; biases begin at 0. No numbers are drawn anywhere else.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise

import torch
from einops import rearrange
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

Generator = torch.Generator | None  # None is torch's own, which everybody shares
NONLINEARITIES: Mapping[str, Callable[[Tensor], Tensor]] = {
    "relu": functional.relu,
    "tanh": torch.tanh,
    "gelu": functional.gelu,
    "silu": functional.silu,
}
ROTARY_BASE = 10_000  # in radians, the slowest pair turns by almost 1 / base from one position to the next


def drawn(
    rows: int, columns: int, variance_of: int, dtype: torch.dtype, generator: Generator
) -> nn.Parameter:
    """A matrix with variance 1 / variance_of: drawn in fp32, so that every dtype begins with the same numbers."""
    numbers = torch.empty(rows, columns, dtype=torch.float32).normal_(generator=generator)
    return nn.Parameter((numbers / max(variance_of, 1) ** 0.5).to(dtype))


class Linear(nn.Module):
    """x W + b, with W of shape (D, K)."""

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
        self.weight = drawn(inputs, outputs, inputs, dtype, generator)
        self.bias = nn.Parameter(torch.zeros(outputs, dtype=dtype)) if biases else None

    def forward(self, x: Float[Tensor, "*batch inputs"]) -> Float[Tensor, "*batch outputs"]:
        """Multiply, and add the bias if there is one."""
        product = x @ self.weight
        return product if self.bias is None else product + self.bias


class MLP(nn.Module):
    """x W1 W2 ... WL: a deep linear model, or with a nonlinearity between its layers more than that."""

    def __init__(
        self,
        widths: Sequence[int],
        *,
        nonlinearity: str | None = None,
        biases: bool = False,
        dtype: torch.dtype = torch.float32,
        generator: Generator = None,
    ) -> None:
        super().__init__()
        if nonlinearity is not None and nonlinearity not in NONLINEARITIES:
            known = ", ".join(NONLINEARITIES)
            raise ValueError(f"{nonlinearity!r} is no nonlinearity here. There are: {known}, or None.")
        self.between = NONLINEARITIES[nonlinearity] if nonlinearity else None
        self.layers = nn.ModuleList(
            Linear(d, k, biases=biases, dtype=dtype, generator=generator) for d, k in pairwise(widths)
        )

    def forward(self, x: Float[Tensor, "*batch inputs"]) -> Float[Tensor, "*batch outputs"]:
        """One layer after the other."""
        for number, layer in enumerate(self.layers):
            x = layer(x if not number or self.between is None else self.between(x))
        return x


# Attention.


def attention(
    q: Float[Tensor, "b a s d"], k: Float[Tensor, "b kv s d"], v: Float[Tensor, "b kv s d"]
) -> Float[Tensor, "b a s d"]:
    """softmax(q kᵀ / √d) v, each position looking at those up to its own; all S × S scores are in memory."""
    s, d = q.shape[-2:]
    # Heads that share their keys stand one below the other: one product for all of them, and no key is copied.
    rows = rearrange(q, "b (kv shared) s d -> b kv (shared s) d", kv=k.shape[1])
    scores = rearrange(rows @ k.mT * d**-0.5, "b kv (shared s) t -> b kv shared s t", s=s)
    later = torch.full((s, s), -torch.inf, dtype=q.dtype, device=q.device).triu(1)
    weights = rearrange((scores + later).softmax(-1), "b kv shared s t -> b kv (shared s) t")
    return rearrange(weights @ v, "b kv (shared s) d -> b (kv shared) s d", s=s)


def fused_attention(
    q: Float[Tensor, "b a s d"], k: Float[Tensor, "b kv s d"], v: Float[Tensor, "b kv s d"]
) -> Float[Tensor, "b a s d"]:
    """The same in one kernel, which never has all scores in memory."""
    return functional.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)


def rotation(s: int, d: int, like: Tensor) -> Float[Tensor, "2 s half"]:
    """Cosine and sine of position × base^(-2i/D): the angle of pair i."""
    turns = ROTARY_BASE ** -(torch.arange(0, d, 2, device=like.device) / d)
    angles = torch.outer(torch.arange(s, device=like.device), turns)
    return torch.stack([angles.cos(), angles.sin()]).to(like.dtype)


def rotated(x: Float[Tensor, "b s a d"], rotation: Float[Tensor, "2 s half"]) -> Float[Tensor, "b s a d"]:
    """Each number of the first half turned together with its partner in the second."""
    (cos, sin), (first, second) = rotation[:, :, None], x.chunk(2, -1)
    return torch.cat([first * cos - second * sin, second * cos + first * sin], -1)


def recomputed_attention(
    q: Float[Tensor, "b a s d"],
    k: Float[Tensor, "b kv s d"],
    v: Float[Tensor, "b kv s d"],
    *,
    early_stop: bool = True,
) -> Float[Tensor, "b a s d"]:
    """`attention` again, but autograd keeps q, k and v alone, and the scores are computed once more on the way back."""
    return checkpoint(
        attention, q, k, v, use_reentrant=False, preserve_rng_state=False, early_stop=early_stop
    )


class Attention(nn.Module):
    """Queries, keys and values; what the heads make of them; one more product. The options are Linear's."""

    def __init__(self, width: int, heads: int, kv_heads: int, *, fused: bool, **options: object) -> None:
        super().__init__()
        self.head_width = width // heads
        self.mix = fused_attention if fused else attention
        kv_width = kv_heads * self.head_width
        self.query = Linear(width, width, **options)
        self.key, self.value = Linear(width, kv_width, **options), Linear(width, kv_width, **options)
        self.out = Linear(width, width, **options)

    def forward(
        self, x: Float[Tensor, "b s h"], turn: Float[Tensor, "2 s half"] | None = None
    ) -> Float[Tensor, "b s h"]:
        """Split into heads, let positions look at each other, and put the heads side by side again."""
        q, k, v = (
            rearrange(project(x), "b s (a d) -> b s a d", d=self.head_width)
            for project in (self.query, self.key, self.value)
        )
        if turn is not None:
            q, k = rotated(q, turn), rotated(k, turn)
        q, k, v = (rearrange(each, "b s a d -> b a s d") for each in (q, k, v))
        return self.out(rearrange(self.mix(q, k, v), "b a s d -> b s (a d)"))


class FeedForward(nn.Module):
    """gelu(x W1) W2, or gated, as in SwiGLU: (silu(x Wg) × (x W1)) W2. The options are Linear's."""

    def __init__(self, width: int, inner: int, *, gated: bool, **options: object) -> None:
        super().__init__()
        self.gate = Linear(width, inner, **options) if gated else None
        self.up, self.down = Linear(width, inner, **options), Linear(inner, width, **options)

    def forward(self, x: Float[Tensor, "*batch h"]) -> Float[Tensor, "*batch h"]:
        """Each position by itself."""
        if self.gate is None:
            return self.down(functional.gelu(self.up(x)))
        return self.down(functional.silu(self.gate(x)) * self.up(x))


class MLPBlock(nn.Module):
    """x + gelu(x W1) W2, H → 4H → H without biases: the feed-forward half of a transformer's layer."""

    def __init__(
        self, width: int, *, dtype: torch.dtype = torch.float32, generator: Generator = None
    ) -> None:
        super().__init__()
        options = {"biases": False, "dtype": dtype, "generator": generator}
        self.feed_forward = FeedForward(width, 4 * width, gated=False, **options)

    def forward(self, x: Float[Tensor, "*batch h"]) -> Float[Tensor, "*batch h"]:
        """One addition."""
        return x + self.feed_forward(x)


class Block(nn.Module):
    """A transformer's layer: x + attention(norm(x)), then x + feed_forward(norm(x))."""

    def __init__(
        self,
        width: int,
        heads: int,
        *,
        feed_forward: int | None = None,
        biases: bool = True,
        kv_heads: int | None = None,
        gated: bool = False,
        rms_norm: bool = False,
        fused: bool = False,
        dtype: torch.dtype = torch.float32,
        generator: Generator = None,
    ) -> None:
        super().__init__()
        options = {"biases": biases, "dtype": dtype, "generator": generator}
        inner = 4 * width if feed_forward is None else feed_forward
        self.norm1, self.norm2 = (normalisation(width, rms_norm, biases, dtype) for _ in range(2))
        self.attention = Attention(width, heads, kv_heads or heads, fused=fused, **options)
        self.feed_forward = FeedForward(width, inner, gated=gated, **options)

    def forward(
        self, x: Float[Tensor, "b s h"], turn: Float[Tensor, "2 s half"] | None = None
    ) -> Float[Tensor, "b s h"]:
        """Both additions."""
        x = x + self.attention(self.norm1(x), turn)
        return x + self.feed_forward(self.norm2(x))


def recomputed(
    blocks: Iterable[nn.Module],
    x: Tensor,
    segment: int,
    *,
    early_stop: bool = True,
    preserve_rng_state: bool = True,
) -> Tensor:
    """blocks[-1](... blocks[0](x)), where each segment of so many blocks keeps its input alone.

    On the way back a segment runs once more, with the random numbers of its first run if `preserve_rng_state`.
    A segment of 0 is none: everything is kept. The segments are those that `predict.BlockStack` counts.
    """
    if segment < 0:
        raise ValueError(f"A segment is a number of blocks, or 0 for no recomputing; got {segment}.")
    blocks = list(blocks)
    if not segment:
        return nn.Sequential(*blocks)(x)
    options = {"early_stop": early_stop, "preserve_rng_state": preserve_rng_state}
    for begin in range(0, len(blocks), segment):
        x = checkpoint(nn.Sequential(*blocks[begin : begin + segment]), x, use_reentrant=False, **options)
    return x


def normalisation(width: int, rms_norm: bool, biases: bool, dtype: torch.dtype) -> nn.Module:
    """torch's own LayerNorm or RMSNorm, both with weights of 1."""
    if rms_norm:
        return nn.RMSNorm(width, eps=1e-5, dtype=dtype)
    return nn.LayerNorm(width, bias=biases, dtype=dtype)


class Transformer(nn.Module):
    """From tokens to a number for each possible next token. By default a GPT-2, and with other options a Llama.

    The sizes have the names that `predict.Transformer` gives them: `Transformer(**vars(shape))` builds it.

    >>> ids = torch.zeros(2, 5, dtype=torch.int64)
    >>> Transformer(layers=1, width=8, heads=2, vocabulary=11, context=6)(ids).shape
    torch.Size([2, 5, 11])
    """

    def __init__(
        self,
        layers: int,
        width: int,
        heads: int,
        vocabulary: int,
        context: int,
        *,
        learned_positions: bool = True,
        tied_output: bool = True,
        rotary: bool = False,
        recompute: bool = False,
        feed_forward: int | None = None,
        biases: bool = True,
        kv_heads: int | None = None,
        gated: bool = False,
        rms_norm: bool = False,
        fused: bool = False,
        dtype: torch.dtype = torch.float32,
        generator: Generator = None,
    ) -> None:
        super().__init__()
        self.context, self.head_width = context, width // heads
        self.rotary, self.recompute = rotary, recompute
        block = {"feed_forward": feed_forward, "biases": biases, "kv_heads": kv_heads, "gated": gated}
        block |= {"rms_norm": rms_norm, "fused": fused, "dtype": dtype, "generator": generator}
        self.tokens = drawn(vocabulary, width, width, dtype, generator)
        self.positions = drawn(context, width, width, dtype, generator) if learned_positions else None
        self.blocks = nn.ModuleList(Block(width, heads, **block) for _ in range(layers))
        self.norm = normalisation(width, rms_norm, biases, dtype)
        self.output = None if tied_output else drawn(vocabulary, width, width, dtype, generator)

    def forward(self, ids: Int[Tensor, "b s"]) -> Float[Tensor, "b s vocabulary"]:
        """Look the tokens up, run the layers, and compare with every token's row of the output matrix."""
        s = ids.shape[1]
        if s > self.context:
            raise ValueError(f"The model was built for {self.context} positions; got {s} tokens.")
        x = functional.embedding(ids, self.tokens)
        if self.positions is not None:
            x = x + self.positions[:s]
        turn = rotation(s, self.head_width, x) if self.rotary else None
        for block in self.blocks:
            # Recomputing keeps a layer's input alone, and runs the layer once more on the way back. A layer draws
            # no numbers, so no generator has to be kept for it.
            if self.recompute:
                x = checkpoint(block, x, turn, use_reentrant=False, preserve_rng_state=False)
            else:
                x = block(x, turn)
        return self.norm(x) @ (self.tokens if self.output is None else self.output).T
