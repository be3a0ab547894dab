"""A transformer: its layer, recomputed layers, and the whole model."""

from collections.abc import Iterable

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

from course_utils.subjects.models.heads import Attention, rotation
from course_utils.subjects.models.layers import FeedForward, Generator, normal_matrix, normalisation


class Block(nn.Module):
    """A transformer's layer: x + attention(norm(x)), then x + feed_forward(norm(x))."""

    def __init__(
        self,
        width: int,
        heads: int,
        *,
        feed_forward: int | None = None,
        biases: bool = True,
        qkv_biases: bool = False,
        kv_heads: int | None = None,
        head_width: int | None = None,
        head_norms: bool = False,
        gated: bool = False,
        rms_norm: bool = False,
        fused: bool = False,
        fused_norm: bool = False,
        dtype: torch.dtype = torch.float32,
        generator: Generator = None,
    ) -> None:
        super().__init__()
        options = {"biases": biases, "dtype": dtype, "generator": generator}
        inner = 4 * width if feed_forward is None else feed_forward
        head_width = head_width or width // heads

        def norm(size: int = width) -> nn.Module:
            return normalisation(size, rms_norm, biases, dtype, fused=fused_norm)

        of_heads = {"head_norm": lambda: norm(head_width)} if head_norms else {}
        self.norm1, self.norm2 = norm(), norm()
        self.attention = Attention(
            *(width, heads, kv_heads or heads, head_width),
            **{"fused": fused, "qkv_biases": qkv_biases} | of_heads | options,
        )
        self.feed_forward = FeedForward(width, inner, gated=gated, **options)

    def forward(
        self, x: Float[Tensor, "b s h"], turn: Float[Tensor, "2 s half"] | None = None
    ) -> Float[Tensor, "b s h"]:
        x = x + self.attention(self.norm1(x), turn)
        return x + self.feed_forward(self.norm2(x))


def recomputed(
    blocks: Iterable[nn.Module],
    x: Tensor,
    segment: int,
    *also: Tensor | None,
    early_stop: bool = True,
    preserve_rng_state: bool = True,
) -> Tensor:
    """blocks[-1](... blocks[0](x, *also), *also), where each segment of blocks keeps only its input.

    On the way back a segment runs once more, with the random numbers of its first run if `preserve_rng_state`.
    A segment of 0 is none: everything is kept.
    """
    if segment < 0:
        raise ValueError(f"A segment is a number of blocks, or 0 for no recomputing; got {segment}.")
    blocks = list(blocks)
    if not segment:
        return _through(blocks, x, *also)
    options = {"early_stop": early_stop, "preserve_rng_state": preserve_rng_state}
    for begin in range(0, len(blocks), segment):
        x = checkpoint(_through, blocks[begin : begin + segment], x, *also, use_reentrant=False, **options)
    return x


def _through(blocks: Iterable[nn.Module], x: Tensor, *also: Tensor | None) -> Tensor:
    for block in blocks:
        x = block(x, *also)
    return x


def _cross_entropy(logits: Tensor, targets: Tensor) -> Tensor:
    return functional.cross_entropy(logits.float(), targets)


def _loss_of_piece(x: Tensor, output: Tensor, targets: Tensor) -> Tensor:
    return functional.cross_entropy((x @ output.T).float(), targets, reduction="sum")


class Transformer(nn.Module):
    """From tokens to a number for each possible next token. By default a GPT-2, and with other options a Llama.

    The sizes have the names that `predict.Transformer` gives them: `Transformer(**vars(shape))` builds it. What the
    model itself has no use for is `Block`'s. `recompute` is all layers, or how many of the first, in segments of so many.

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
        recompute: bool | int = False,
        segment: int = 1,
        biases: bool = True,
        head_width: int | None = None,
        rms_norm: bool = False,
        fused_norm: bool = False,
        dtype: torch.dtype = torch.float32,
        generator: Generator = None,
        **block: int | None,
    ) -> None:
        super().__init__()
        self.context, self.head_width = context, head_width or width // heads
        self.rotary, self.recomputed = rotary, layers if recompute is True else recompute
        self.segment = segment
        block |= {"head_width": head_width, "biases": biases, "rms_norm": rms_norm, "fused_norm": fused_norm}
        block |= {"dtype": dtype, "generator": generator}
        self.tokens = normal_matrix(vocabulary, width, width, dtype, generator)
        self.positions = normal_matrix(context, width, width, dtype, generator) if learned_positions else None
        self.blocks = nn.ModuleList(Block(width, heads, **block) for _ in range(layers))
        self.norm = normalisation(width, rms_norm, biases, dtype, fused=fused_norm)
        self.output = None if tied_output else normal_matrix(vocabulary, width, width, dtype, generator)

    def forward(self, ids: Int[Tensor, "b s"]) -> Float[Tensor, "b s vocabulary"]:
        """The logits: `hidden` times the output matrix."""
        return self.hidden(ids) @ self.output_matrix.T

    def loss(
        self, ids: Int[Tensor, "b s"], targets: Int[Tensor, " tokens"], pieces: int = 1
    ) -> Float[Tensor, ""]:
        """Cross-entropy in fp32. In pieces, the logits of one are in memory, and once more on the way back."""
        if pieces == 1:
            return _cross_entropy(self(ids).flatten(0, 1), targets)
        rows = self.hidden(ids).flatten(0, 1)
        options = {"use_reentrant": False, "preserve_rng_state": False}
        parts = zip(rows.chunk(pieces), targets.chunk(pieces), strict=True)
        losses = [checkpoint(_loss_of_piece, x, self.output_matrix, wanted, **options) for x, wanted in parts]
        return torch.stack(losses).sum() / len(targets)

    @property
    def output_matrix(self) -> nn.Parameter:
        """Of the shape of the token embedding, which it is if they are tied."""
        return self.tokens if self.output is None else self.output

    def hidden(self, ids: Int[Tensor, "b s"]) -> Float[Tensor, "b s h"]:
        """What the output matrix reads: look the tokens up, run the layers, normalise."""
        s = ids.shape[1]
        if s > self.context:
            raise ValueError(f"The model was built for {self.context} positions; got {s} tokens.")
        x = functional.embedding(ids, self.tokens)
        if self.positions is not None:
            x = x + self.positions[:s]
        turn = rotation(s, self.head_width, x) if self.rotary else None
        # A layer draws no numbers, so no generator has to be kept for it.
        again = self.blocks[: self.recomputed]
        x = recomputed(again, x, self.segment, turn, preserve_rng_state=False)
        for block in self.blocks[self.recomputed :]:
            x = block(x, turn)
        return self.norm(x)
