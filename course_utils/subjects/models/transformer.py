"""A transformer: its layer, recomputed layers, and the whole model."""

from collections.abc import Iterable
from functools import partial

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

from course_utils.core.accountant import Model
from course_utils.core.predict import shape_of
from course_utils.subjects.models.heads import Attention, rotation
from course_utils.subjects.models.layers import Generator, normal_matrix, normalisation
from course_utils.subjects.models.mixture import feed_forward, is_dense


class Block(nn.Module):
    """A transformer's layer: x + attention(norm(x)), then x + feed_forward(norm(x)).

    It is layer `number` of the model, counted from 0: in a mixture, the first ones may be dense.
    With `fused`, attention is one kernel, and with `fused_norm` each RMSNorm.
    """

    def __init__(
        self,
        m: Model,
        *,
        number: int = 0,
        fused: bool = False,
        fused_norm: bool = False,
        dtype: torch.dtype = torch.float32,
        generator: Generator = None,
    ) -> None:
        super().__init__()
        shape = shape_of(m)
        options = {"dtype": dtype, "generator": generator}
        has_norm_bias = shape.norm_vectors == 2  # a weight and a bias
        layer_norm = partial(
            normalisation, shape.width, shape.rms_norm, has_norm_bias, dtype, fused=fused_norm
        )
        head_norm = nn.Identity  # returns the queries and keys as they are
        if shape.head_norms:
            head_norm = partial(  # without biases
                normalisation, shape.head_width, shape.rms_norm, False, dtype, fused=fused_norm
            )
        self.norm1 = layer_norm()
        self.norm2 = layer_norm()
        self.attention = Attention(
            shape.width,
            shape.heads,
            shape.kv_heads,
            shape.head_width,
            fused=fused,
            biases=shape.biases,
            head_norm=head_norm,
            **options,
        )
        self.feed_forward = feed_forward(shape, dense=is_dense(shape, number), **options)

    def forward(
        self, x: Float[Tensor, "b s h"], turn: Float[Tensor, "2 s half"] | None = None
    ) -> Float[Tensor, "b s h"]:
        x = x + self.attention(self.norm1(x), turn)
        return x + self.feed_forward(self.norm2(x))


def recomputed(
    blocks: Iterable[nn.Module],
    x: Tensor,
    segment: int,
    *also: Tensor | None,  # what each block takes besides x, such as the rotation of positions
    early_stop: bool = True,
    preserve_rng_state: bool = True,
) -> Tensor:
    """Return blocks[-1](... blocks[0](x, *also), *also), where each segment keeps only its input.

    A segment is `segment` blocks. In the backward pass it runs a second time: with `early_stop`,
    only until all that the backward pass needs is there; with `preserve_rng_state`, with the same
    random numbers as the first time. If `segment` is 0, there are no segments, and everything is
    kept.
    """
    if segment < 0:
        raise ValueError(
            f"A segment is a number of blocks, or 0 for no recomputing; got {segment}."
        )
    blocks = list(blocks)
    if not segment:
        return _through(blocks, x, *also)
    for begin in range(0, len(blocks), segment):
        x = checkpoint(
            _through,
            blocks[begin : begin + segment],
            x,
            *also,
            use_reentrant=False,
            early_stop=early_stop,
            preserve_rng_state=preserve_rng_state,
        )
    return x


def _through(blocks: Iterable[nn.Module], x: Tensor, *also: Tensor | None) -> Tensor:
    """Return x after all blocks, one after the other."""
    for block in blocks:
        x = block(x, *also)
    return x


def _cross_entropy(logits: Tensor, targets: Tensor) -> Tensor:
    return functional.cross_entropy(logits.float(), targets)


def _loss_of_piece(x: Tensor, output: Tensor, targets: Tensor) -> Tensor:
    """Return the piece's sum of cross-entropies, which `loss` divides by all pieces' tokens.

    `x` is the hidden state of the piece's tokens, a row for each, and `output` the output matrix.
    """
    return functional.cross_entropy((x @ output.T).float(), targets, reduction="sum")


class Transformer(nn.Module):
    """A transformer, from tokens to a logit for each possible next token.

    The `Model` may describe a GPT-2, a Llama, a mixture of experts, or another transformer.
    `recompute` is the number of first layers that are recomputed, or True for all of them; they are
    recomputed in segments of `segment` layers. With `fused`, attention is one kernel, and with
    `fused_norm` each RMSNorm.

    >>> ids = torch.zeros(2, 5, dtype=torch.int64)
    >>> sizes = {"layers": 1, "width": 8, "heads": 2, "kv_heads": 1, "head_width": 4}
    >>> small = Model(**sizes, inner=16, vocabulary=11, context=6)
    >>> Transformer(small)(ids).shape
    torch.Size([2, 5, 11])
    """

    def __init__(
        self,
        m: Model,
        *,
        recompute: bool | int = False,
        segment: int = 1,
        fused: bool = False,
        fused_norm: bool = False,
        dtype: torch.dtype = torch.float32,
        generator: Generator = None,
    ) -> None:
        super().__init__()
        shape = shape_of(m)
        width = shape.width
        options = {"dtype": dtype, "generator": generator}
        self.context = shape.context
        self.head_width = shape.head_width
        self.rotary = shape.rotary
        # How many layers are recomputed, from the first one on. False counts as 0.
        self.recomputed = shape.layers if recompute is True else recompute
        self.segment = segment

        def rows(number: int) -> nn.Parameter:
            """Return a matrix with a row for each token or position."""
            return normal_matrix(number, width, fan_in=width, **options)

        self.tokens = rows(shape.vocabulary)
        self.positions = rows(shape.context) if shape.learned_positions else None
        self.blocks = nn.ModuleList()
        kernels = {"fused": fused, "fused_norm": fused_norm}
        for number in range(shape.layers):
            self.blocks.append(Block(shape, number=number, **kernels, **options))
        has_norm_bias = shape.norm_vectors == 2  # a weight and a bias
        self.norm = normalisation(width, shape.rms_norm, has_norm_bias, dtype, fused=fused_norm)
        self.output = None if shape.tied else rows(shape.vocabulary)

    def forward(self, ids: Int[Tensor, "b s"]) -> Float[Tensor, "b s vocabulary"]:
        """Return the logits: `hidden` times the output matrix."""
        return self.hidden(ids) @ self.output_matrix.T

    def loss(
        self, ids: Int[Tensor, "b s"], targets: Int[Tensor, " tokens"], pieces: int = 1
    ) -> Float[Tensor, ""]:
        """Return the mean cross-entropy, in fp32.

        `targets` has the next token of each position, row after row. With several pieces, only the
        logits of one piece are in memory at a time, and each piece is computed a second time in the
        backward pass.
        """
        if pieces == 1:
            return _cross_entropy(self(ids).flatten(0, 1), targets)
        rows = self.hidden(ids).flatten(0, 1)
        losses = []
        for piece, wanted in zip(rows.chunk(pieces), targets.chunk(pieces), strict=True):
            loss = checkpoint(
                _loss_of_piece,
                piece,
                self.output_matrix,
                wanted,
                use_reentrant=False,
                preserve_rng_state=False,
            )
            losses.append(loss)
        return torch.stack(losses).sum() / len(targets)

    @property
    def output_matrix(self) -> nn.Parameter:
        """The matrix that gives the logits: the model's own, or the token embedding if tied."""
        return self.tokens if self.output is None else self.output

    def hidden(self, ids: Int[Tensor, "b s"]) -> Float[Tensor, "b s h"]:
        """Return the hidden state after the last normalisation, to go to the output matrix."""
        s = ids.shape[1]
        if s > self.context:
            raise ValueError(f"The model was built for {self.context} positions; got {s} tokens.")
        x = functional.embedding(ids, self.tokens)
        if self.positions is not None:
            x = x + self.positions[:s]
        turn = rotation(s, self.head_width, x) if self.rotary else None
        # The first layers are recomputed, the others kept. A layer draws no random numbers, so
        # preserve_rng_state is not needed.
        first_blocks = self.blocks[: self.recomputed]
        x = recomputed(first_blocks, x, self.segment, turn, preserve_rng_state=False)
        for block in self.blocks[self.recomputed :]:
            x = block(x, turn)
        return self.norm(x)
