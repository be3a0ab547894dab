"""A transformer whose feed-forwards may be mixtures of experts, and whose attention latent.

Attention is fused, and looks at all tokens before: windows are not written out here.
"""

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
        tokens = x.flatten(0, 1)
        chances = self.router(tokens).softmax(-1)
        shares, chosen = chances.topk(self.used)  # for each token, its experts and their shares
        mixed = torch.zeros_like(tokens)
        for number, expert in enumerate(self.experts):
            its_tokens, place = torch.where(chosen == number)
            result = expert(tokens[its_tokens]) * shares[its_tokens, place, None]
            mixed = mixed.index_add(0, its_tokens, result)
        if self.shared is not None:
            mixed = mixed + self.shared(tokens)
        return mixed.view_as(x)


class LatentAttention(nn.Module):
    """Attention whose keys and values are made from a short vector of each token, its latent.

    A cache would keep the latent and the part of the key that carries the position. The options
    are Linear's.
    """

    def __init__(self, width: int, heads: int, latent: Latent, **options: object) -> None:
        super().__init__()
        self.latent = latent
        queries = heads * (latent.content_width + latent.position_width)
        options = {**options, "biases": False}
        dtype = options.get("dtype", torch.float32)
        if latent.query_rank:
            self.query = nn.Sequential(
                Linear(width, latent.query_rank, **options),
                normalisation(latent.query_rank, True, False, dtype),
                Linear(latent.query_rank, queries, **options),
            )
        else:
            self.query = Linear(width, queries, **options)
        self.down = Linear(width, latent.rank + latent.position_width, **options)
        self.norm = normalisation(latent.rank, True, False, dtype)
        made = heads * (latent.content_width + latent.value_width)
        self.up = Linear(latent.rank, made, **options)
        self.out = Linear(heads * latent.value_width, width, **options)

    def forward(
        self, x: Float[Tensor, "b s h"], turn: Float[Tensor, "2 s half"]
    ) -> Float[Tensor, "b s h"]:
        latent = self.latent
        parts = [latent.content_width, latent.position_width]
        queries = rearrange(self.query(x), "b s (a d) -> b s a d", d=sum(parts))
        content, position = queries.split(parts, -1)
        queries = torch.cat([content, rotated(position, turn)], -1)

        kept, position = self.down(x).split([latent.rank, latent.position_width], -1)
        position = rotated(position[:, :, None], turn)  # one for all heads
        made = latent.content_width + latent.value_width
        made = rearrange(self.up(self.norm(kept)), "b s (a d) -> b s a d", d=made)
        content, values = made.split([latent.content_width, latent.value_width], -1)
        position = position.expand(*content.shape[:-1], -1)
        keys = torch.cat([content, position], -1)

        result = functional.scaled_dot_product_attention(
            queries.transpose(1, 2), keys.transpose(1, 2), values.transpose(1, 2), is_causal=True
        )
        return self.out(rearrange(result, "b a s d -> b s (a d)"))


class MixtureBlock(nn.Module):
    """A layer: x + attention(norm(x)), then x + feed_forward(norm(x)).

    With `dense`, its feed-forward is no mixture, even if the model has one.
    """

    def __init__(self, m: Model, *, dense: bool, **options: object) -> None:
        super().__init__()
        dtype = options.get("dtype", torch.float32)
        self.norm1 = normalisation(m.width, True, False, dtype)
        self.norm2 = normalisation(m.width, True, False, dtype)
        if m.latent:
            self.attention = LatentAttention(m.width, m.heads, m.latent, **options)
        else:
            self.attention = Attention(
                m.width,
                m.heads,
                m.kv_heads,
                m.head_width,
                fused=True,
                biases=m.biases,
                **options,
            )
        experts = {"gated": m.gated, "biases": m.biases}
        if m.mixture and not dense:
            self.feed_forward = Experts(m.width, m.mixture, **experts, **options)
        else:
            self.feed_forward = FeedForward(m.width, m.inner, **experts, **options)

    def forward(
        self, x: Float[Tensor, "b s h"], turn: Float[Tensor, "2 s half"]
    ) -> Float[Tensor, "b s h"]:
        x = x + self.attention(self.norm1(x), turn)
        return x + self.feed_forward(self.norm2(x))


class MixtureTransformer(nn.Module):
    """A transformer with experts or latent attention, from tokens to logits.

    >>> sizes = {"layers": 2, "width": 8, "heads": 2, "kv_heads": 1, "head_width": 4}
    >>> mixture = Mixture(experts=4, used=2, inner=6, dense_layers=1)
    >>> m = Model(**sizes, inner=16, vocabulary=11, context=6, mixture=mixture)
    >>> MixtureTransformer(m)(torch.zeros(2, 5, dtype=torch.int64)).shape
    torch.Size([2, 5, 11])
    """

    def __init__(self, m: Model, **options: object) -> None:
        super().__init__()
        dtype = options.setdefault("dtype", torch.float32)
        generator = options.setdefault("generator", None)
        self.turned_width = m.latent.position_width if m.latent else m.head_width
        self.tokens = normal_matrix(m.vocabulary, m.width, m.width, dtype, generator)
        self.blocks = nn.ModuleList()
        for number in range(m.layers):
            dense = m.mixture is None or number < m.mixture.dense_layers
            self.blocks.append(MixtureBlock(m, dense=dense, **options))
        self.norm = normalisation(m.width, True, False, dtype)
        self.output = None
        if not m.tied:
            self.output = normal_matrix(m.vocabulary, m.width, m.width, dtype, generator)

    def forward(self, ids: Int[Tensor, "b s"]) -> Float[Tensor, "b s vocabulary"]:
        x = functional.embedding(ids, self.tokens)
        turn = rotation(ids.shape[1], self.turned_width, x)
        for block in self.blocks:
            x = block(x, turn)
        output = self.tokens if self.output is None else self.output
        return self.norm(x) @ output.T
