"""Attention: each position reads the positions before it."""

from collections.abc import Callable, Collection

import torch
from einops import rearrange
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

from course_utils.subjects.models.layers import Linear

# From one position to the next, the first pair of numbers turns by 1 radian, and the last pair, the
# slowest, by almost 1 / base radians.
ROTARY_BASE = 10_000  # as in the paper on rotary positions, arXiv 2104.09864


def attention(
    q: Float[Tensor, "b a s d"], k: Float[Tensor, "b kv s d"], v: Float[Tensor, "b kv s d"]
) -> Float[Tensor, "b a s d"]:
    """Return softmax(q kᵀ / √d) v, with all S × S scores in memory.

    No position reads a later one. There may be fewer heads of keys and values than of queries; then
    several heads of queries, `shared` of them, read the same keys and values.
    """
    s, d = q.shape[-2:]
    # The queries of heads that share their keys are put one below the other, as rows of one matrix.
    # So one product computes the scores of all these heads, and no key is copied.
    rows = rearrange(q, "b (kv shared) s d -> b kv (shared s) d", kv=k.shape[1])
    scores = rearrange(rows @ k.mT * d**-0.5, "b kv (shared s) t -> b kv shared s t", s=s)
    # -inf where a position would read a later one, which is above the diagonal; 0 elsewhere.
    later = torch.full((s, s), -torch.inf, dtype=q.dtype, device=q.device).triu(1)
    weights = rearrange((scores + later).softmax(-1), "b kv shared s t -> b kv (shared s) t")
    return rearrange(weights @ v, "b kv (shared s) d -> b (kv shared) s d", s=s)


def fused_attention(
    q: Float[Tensor, "b a s d"], k: Float[Tensor, "b kv s d"], v: Float[Tensor, "b kv s d"]
) -> Float[Tensor, "b a s d"]:
    """Return the same as `attention`, by one kernel, which never has all scores in memory."""
    return functional.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)


def rotation(s: int, d: int, like: Tensor) -> Float[Tensor, "2 s half"]:
    """Return cosine and sine of the angle of pair i, position × base^(-2i/D), for s positions.

    `d` is the width of a head, D. The result is on the device of `like`, and in its dtype.
    """
    turns = ROTARY_BASE ** -(torch.arange(0, d, 2, device=like.device) / d)
    angles = torch.outer(torch.arange(s, device=like.device), turns)
    return torch.stack([angles.cos(), angles.sin()]).to(like.dtype)


def rotated(
    x: Float[Tensor, "b s a d"], rotation: Float[Tensor, "2 s half"]
) -> Float[Tensor, "b s a d"]:
    """Return x with each pair of numbers turned by its angle, in each head and at each position.

    Number i of a head's first half is a pair with number i of the second half.
    """
    # Of shape (s, 1, half) each: the dimension of 1 stands for the heads, which all turn alike.
    cos, sin = rotation[:, :, None]
    first, second = x.chunk(2, -1)
    return torch.cat([first * cos - second * sin, second * cos + first * sin], -1)


def recomputed_attention(
    q: Float[Tensor, "b a s d"],
    k: Float[Tensor, "b kv s d"],
    v: Float[Tensor, "b kv s d"],
    *,
    early_stop: bool = True,
) -> Float[Tensor, "b a s d"]:
    """Return the same as `attention`, but autograd keeps only q, k and v.

    The backward pass computes the scores a second time. With `early_stop`, torch's default, that
    ends as soon as all that the backward pass needs is there.
    """
    return checkpoint(
        attention, q, k, v, use_reentrant=False, preserve_rng_state=False, early_stop=early_stop
    )


class Attention(nn.Module):
    """Queries, keys and values; attention in each head; and one more matrix product.

    `biases` names the matrices that have a bias, of "query", "key", "value" and "out". `head_norm`
    makes the normalisation of a head's queries and of its keys; by default there is none. The other
    options are Linear's.
    """

    def __init__(
        self,
        width: int,
        heads: int,
        kv_heads: int,
        head_width: int,
        *,
        fused: bool,
        biases: Collection[str] = (),
        head_norm: Callable[[], nn.Module] = nn.Identity,
        **options: object,
    ) -> None:
        super().__init__()
        self.head_width = head_width
        self.attend = fused_attention if fused else attention
        queries = heads * head_width
        keys = kv_heads * head_width
        self.query = Linear(width, queries, biases="query" in biases, **options)
        self.key = Linear(width, keys, biases="key" in biases, **options)
        self.value = Linear(width, keys, biases="value" in biases, **options)
        self.out = Linear(queries, width, biases="out" in biases, **options)
        self.query_norm = head_norm()
        self.key_norm = head_norm()

    def forward(
        self, x: Float[Tensor, "b s h"], turn: Float[Tensor, "2 s half"] | None = None
    ) -> Float[Tensor, "b s h"]:
        """Return the output, with the width of x; `turn` is what `rotation` returns."""
        q = self._in_heads(self.query(x))
        k = self._in_heads(self.key(x))
        v = self._in_heads(self.value(x))
        # A tensor is freed when its name gets another value or its function returns, and
        # `predict.timeline` relies on when that is. One line gives q and k new values, so both old
        # ones are freed together. What attention returns for each head is a name of `_attended`
        # alone, so it is freed before `out` multiplies.
        q, k = self._normed(q, k)
        if turn is not None:
            q, k = _turned(q, k, turn)
        return self.out(self._attended(q, k, v))

    def _attended(
        self,
        q: Float[Tensor, "b s a d"],
        k: Float[Tensor, "b s kv d"],
        v: Float[Tensor, "b s kv d"],
    ) -> Float[Tensor, "b s queries"]:
        """Return the result of attention in each head, with the heads side by side again."""
        result = self.attend(_heads_first(q), _heads_first(k), _heads_first(v))
        return rearrange(result, "b a s d -> b s (a d)")

    def _normed(
        self, q: Float[Tensor, "b s a d"], k: Float[Tensor, "b s kv d"]
    ) -> tuple[Float[Tensor, "b s a d"], Float[Tensor, "b s kv d"]]:
        """Return the normalised queries and keys, or the given ones if nothing normalises them."""
        return self.query_norm(q), self.key_norm(k)

    def _in_heads(self, x: Float[Tensor, "b s _"]) -> Float[Tensor, "b s a d"]:
        """Return x with the numbers of each position cut into heads of `head_width` numbers."""
        return rearrange(x, "b s (a d) -> b s a d", d=self.head_width)


def _turned(
    q: Float[Tensor, "b s a d"], k: Float[Tensor, "b s kv d"], turn: Float[Tensor, "2 s half"]
) -> tuple[Float[Tensor, "b s a d"], Float[Tensor, "b s kv d"]]:
    """Return the queries and the keys, rotated by the angles of their positions."""
    return rotated(q, turn), rotated(k, turn)


def _heads_first(x: Float[Tensor, "b s a d"]) -> Float[Tensor, "b a s d"]:
    """Return x in the order that attention takes: each head has all positions together."""
    return rearrange(x, "b s a d -> b a s d")
