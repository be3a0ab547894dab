"""A transformer whose feed-forwards may be mixtures of experts, and whose attention latent.

Attention is fused, and looks at all tokens before: windows are not written out here.
"""

from functools import partial

import torch
from einops import rearrange
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional

from course_utils.core.accountant import Latent, Mixture, Model
from course_utils.subjects.models.heads import Attention, rotated, rotation
from course_utils.subjects.models.layers import FeedForward, Linear, normal_matrix, normalisation


class Experts(nn.Module):
    """A mixture of experts: for each token, a router picks a few feed-forwards and weighs them.

    If the mixture has a shared expert, its result is added for every token. `biases` names the
    matrices of an expert that have a bias. The options are Linear's.
    """

    def __init__(
        self,
        width: int,
        mixture: Mixture,
        *,
        gated: bool = True,
        biases: tuple[str, ...] = (),
        **options: object,
    ) -> None:
        super().__init__()
        self.used = mixture.used
        self.router = Linear(width, mixture.experts, biases=mixture.router_bias, **options)
        self.experts = nn.ModuleList()
        for _ in range(mixture.experts):
            expert = FeedForward(width, mixture.inner, gated=gated, biases=biases, **options)
            self.experts.append(expert)
        self.shared = None
        if mixture.shared_inner:
            self.shared = FeedForward(
                width, mixture.shared_inner, gated=gated, biases=biases, **options
            )

    def forward(self, x: Float[Tensor, "b s h"]) -> Float[Tensor, "b s h"]:
        """Return for each token the sum of its experts' results, each times the expert's share."""
        tokens = x.flatten(0, 1)
        chances = self.router(tokens).softmax(-1)
        # Both have a row for each token, with a column for each of its `used` experts.
        shares, chosen = chances.topk(self.used)
        mixed = torch.zeros_like(tokens)
        for number, expert in enumerate(self.experts):
            # The rows and the columns of `chosen` that name this expert.
            its_tokens, columns = torch.where(chosen == number)
            its_shares = shares[its_tokens, columns, None]  # a column: one for each row
            result = expert(tokens[its_tokens]) * its_shares
            mixed = mixed.index_add(0, its_tokens, result)  # adds the results to their tokens' rows
        if self.shared is not None:
            mixed = mixed + self.shared(tokens)
        return mixed.view_as(x)


def feed_forward(m: Model, *, dense: bool, **options: object) -> nn.Module:
    """Return a layer's feed-forward: the model's mixture, or with `dense` an ordinary one.

    The options are Linear's.
    """
    kind = {"gated": m.gated, "biases": m.biases}  # of each feed-forward, expert or not
    if dense:
        return FeedForward(m.width, m.inner, **kind, **options)
    return Experts(m.width, m.mixture, **kind, **options)


def is_dense(m: Model, number: int) -> bool:
    """Whether layer `number` has an ordinary feed-forward: in a mixture, the first ones do."""
    return m.mixture is None or number < m.mixture.dense_layers


class LatentAttention(nn.Module):
    """Attention whose keys and values are made from a short vector of each token, its latent.

    A cache would keep the latent and the part of the key that carries the position. With
    `fused_norm`, the normalisation of a latent is one kernel. The other options are Linear's.
    """

    def __init__(
        self,
        width: int,
        heads: int,
        latent: Latent,
        *,
        fused_norm: bool = False,
        **options: object,
    ) -> None:
        super().__init__()
        self.latent = latent
        query_numbers = heads * (latent.content_width + latent.position_width)
        options = {**options, "biases": False}
        dtype = options.get("dtype", torch.float32)
        norm = partial(normalisation, rms_norm=True, biases=False, dtype=dtype, fused=fused_norm)
        if latent.query_rank:
            self.query = nn.Sequential(
                Linear(width, latent.query_rank, **options),
                norm(latent.query_rank),
                Linear(latent.query_rank, query_numbers, **options),
            )
        else:
            self.query = Linear(width, query_numbers, **options)
        # Makes the latent, and the part of the key that carries the position.
        self.down = Linear(width, latent.rank + latent.position_width, **options)
        self.norm = norm(latent.rank)
        # Makes each head's values, and the rest of its key, from the latent.
        key_and_value_numbers = heads * (latent.content_width + latent.value_width)
        self.up = Linear(latent.rank, key_and_value_numbers, **options)
        self.out = Linear(heads * latent.value_width, width, **options)

    def forward(
        self, x: Float[Tensor, "b s h"], turn: Float[Tensor, "2 s half"]
    ) -> Float[Tensor, "b s h"]:
        """Return the output, with the width of x; `turn` is what `rotation` returns.

        A query and a key have a part with the content, and a part that is rotated by the position.
        """
        latent = self.latent
        query_parts = [latent.content_width, latent.position_width]
        queries = rearrange(self.query(x), "b s (a d) -> b s a d", d=sum(query_parts))
        query_content, query_position = queries.split(query_parts, -1)
        queries = torch.cat([query_content, rotated(query_position, turn)], -1)

        kept, key_position = self.down(x).split([latent.rank, latent.position_width], -1)
        key_position = rotated(key_position[:, :, None], turn)  # one for all heads
        made_parts = [latent.content_width, latent.value_width]  # what each head makes of `kept`
        made = rearrange(self.up(self.norm(kept)), "b s (a d) -> b s a d", d=sum(made_parts))
        key_content, values = made.split(made_parts, -1)
        key_position = key_position.expand(*key_content.shape[:-1], -1)
        keys = torch.cat([key_content, key_position], -1)

        result = functional.scaled_dot_product_attention(
            queries.transpose(1, 2), keys.transpose(1, 2), values.transpose(1, 2), is_causal=True
        )
        return self.out(rearrange(result, "b a s d -> b s (a d)"))


class MixtureBlock(nn.Module):
    """A layer: x + attention(norm(x)), then x + feed_forward(norm(x)).

    With `dense`, its feed-forward is no mixture, even if the model has one. With `fused_norm`, each
    RMSNorm is one kernel.
    """

    def __init__(
        self, m: Model, *, dense: bool, fused_norm: bool = False, **options: object
    ) -> None:
        super().__init__()
        dtype = options.get("dtype", torch.float32)
        norm = partial(normalisation, rms_norm=True, biases=False, dtype=dtype, fused=fused_norm)
        self.norm1 = norm(m.width)
        self.norm2 = norm(m.width)
        if m.latent:
            self.attention = LatentAttention(
                m.width, m.heads, m.latent, fused_norm=fused_norm, **options
            )
        else:
            head_norm = nn.Identity  # returns the queries and keys as they are
            if m.head_norms:
                head_norm = partial(norm, m.head_width)
            self.attention = Attention(
                m.width,
                m.heads,
                m.kv_heads,
                m.head_width,
                fused=True,
                biases=m.biases,
                head_norm=head_norm,
                **options,
            )
        self.feed_forward = feed_forward(m, dense=dense, **options)

    def forward(
        self, x: Float[Tensor, "b s h"], turn: Float[Tensor, "2 s half"]
    ) -> Float[Tensor, "b s h"]:
        x = x + self.attention(self.norm1(x), turn)
        return x + self.feed_forward(self.norm2(x))


def _refuse_what_is_not_built(m: Model) -> None:
    """Raise a ValueError if the model has parts that a MixtureTransformer would leave out."""
    missing = []
    if m.window_layers:
        missing.append("windows")
    if m.sinks:
        missing.append("sinks")
    if m.norms_per_layer != 2:
        missing.append("four normalisations in a layer")
    if m.norm_vectors != 1:
        missing.append("LayerNorm")
    if m.learned_positions:
        missing.append("learned positions")
    if m.latent and m.head_norms:
        missing.append("normalised heads with latent attention")
    if missing:
        raise ValueError(
            f"MixtureTransformer does not build {', '.join(missing)}. It builds RMSNorm, twice in "
            "a layer, rotated positions, and attention to all tokens before: choose a model with "
            "these alone."
        )


class MixtureTransformer(nn.Module):
    """A transformer with experts or latent attention, from tokens to logits.

    A model with other parts, such as windows, is refused with a sentence.

    >>> sizes = {"layers": 2, "width": 8, "heads": 2, "kv_heads": 1, "head_width": 4}
    >>> mixture = Mixture(experts=4, used=2, inner=6, dense_layers=1)
    >>> m = Model(**sizes, inner=16, vocabulary=11, context=6, mixture=mixture)
    >>> MixtureTransformer(m)(torch.zeros(2, 5, dtype=torch.int64)).shape
    torch.Size([2, 5, 11])
    """

    def __init__(self, m: Model, *, fused_norm: bool = False, **options: object) -> None:
        super().__init__()
        _refuse_what_is_not_built(m)
        # The defaults are set in `options`, too, because each block gets these.
        dtype = options.setdefault("dtype", torch.float32)
        generator = options.setdefault("generator", None)
        self.turned_width = m.latent.position_width if m.latent else m.head_width
        table = partial(
            normal_matrix, m.vocabulary, m.width, fan_in=m.width, dtype=dtype, generator=generator
        )
        self.tokens = table()
        self.blocks = nn.ModuleList()
        for number in range(m.layers):
            dense = is_dense(m, number)
            block = MixtureBlock(m, dense=dense, fused_norm=fused_norm, **options)
            self.blocks.append(block)
        self.norm = normalisation(
            m.width, rms_norm=True, biases=False, dtype=dtype, fused=fused_norm
        )
        self.output = None
        if not m.tied:
            self.output = table()

    def forward(self, ids: Int[Tensor, "b s"]) -> Float[Tensor, "b s vocabulary"]:
        x = functional.embedding(ids, self.tokens)
        turn = rotation(ids.shape[1], self.turned_width, x)
        for block in self.blocks:
            x = block(x, turn)
        output = self.tokens if self.output is None else self.output
        return self.norm(x) @ output.T
