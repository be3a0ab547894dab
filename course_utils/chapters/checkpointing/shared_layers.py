"""Layers that several GPUs share, in four ways: by matrices, layers, tokens, or experts.

All of it runs on a CPU. `sending.Links` counts the bytes that a GPU would have to send.
"""

from collections.abc import Mapping, Sequence
from functools import partial

import torch
from einops import rearrange
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

from course_utils.chapters.checkpointing import sending
from course_utils.chapters.checkpointing.sending import Links
from course_utils.core.accountant import (
    Mixture,
    Model,
    attention_matrices,
    feed_forward_matrices,
)
from course_utils.subjects.models.layers import normal_matrix
from course_utils.subjects.models.mixture import Experts

Layer = Mapping[str, Float[Tensor, "_ _"]]  # matrices by the accountant's names
Activations = Float[Tensor, "b s h"]
SPLIT_BY_ROWS = ("out", "down")  # their inputs are shared, so that their results have to be added


def drawn_layers(m: Model, generator: torch.Generator) -> list[Layer]:
    """Return the matrices of each layer, drawn from a normal distribution."""
    shapes = attention_matrices(m) | feed_forward_matrices(m, m.inner)
    layers = []
    for _ in range(m.layers):
        layer = {}
        for name, (inputs, outputs) in shapes.items():
            layer[name] = normal_matrix(
                inputs, outputs, fan_in=inputs, dtype=torch.float32, generator=generator
            )
        layers.append(layer)
    return layers


def run_layers(m: Model, layers: Sequence[Layer], x: Activations) -> Activations:
    """Return the layers' result on one GPU."""
    for layer in layers:
        x = x + _attention(m, layer, x)
        x = x + _feed_forward(layer, x)
    return x


def _normed(x: Activations) -> Activations:
    """Return x with RMSNorm, without a weight."""
    return functional.rms_norm(x, x.shape[-1:])


def _attention(m: Model, layer: Layer, x: Activations) -> Activations:
    """Return what the heads in `layer`, all or some of the model's, add to x."""
    tokens = x.shape[1]
    sees = torch.ones(tokens, tokens, dtype=torch.bool).tril()
    return _attended(m, layer, _normed(x), _kept(m, layer, _normed(x)), sees)


def _kept(m: Model, layer: Layer, normed: Activations) -> Float[Tensor, "b s numbers"]:
    """Return what other tokens need of each token: what a cache would have of it.

    Positions are left out, because they change no size.
    """
    if m.latent:
        return normed @ layer["key and value down"]
    return torch.cat([normed @ layer["key"], normed @ layer["value"]], dim=-1)


def _attended(
    m: Model,
    layer: Layer,
    normed: Activations,
    kept: Float[Tensor, "b t numbers"],
    sees: Bool[Tensor, "s t"],
) -> Activations:
    """Return what attention adds to tokens, if they look at those of which `kept` has numbers."""
    if m.latent:
        queries, keys, values = _latent_heads(m, layer, normed, kept)
    else:
        heads = [normed @ layer["query"], *kept.chunk(2, dim=-1)]
        queries, keys, values = (
            rearrange(part, "b s (a d) -> b a s d", d=m.head_width) for part in heads
        )
    mixed = functional.scaled_dot_product_attention(
        queries, keys, values, attn_mask=sees, enable_gqa=True
    )
    return rearrange(mixed, "b a s d -> b s (a d)") @ layer["out"]


def _latent_heads(
    m: Model, layer: Layer, normed: Activations, kept: Float[Tensor, "b t numbers"]
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the queries, keys and values of latent attention, each of shape (b, a, s, d)."""
    latent = m.latent
    if latent.query_rank:
        queries = normed @ layer["query down"] @ layer["query up"]
    else:
        queries = normed @ layer["query"]
    queries = rearrange(queries, "b s (a d) -> b a s d", a=m.heads)
    short, of_position = kept.split([latent.rank, latent.position_width], dim=-1)
    made = rearrange(short @ layer["key and value up"], "b t (a d) -> b a t d", a=m.heads)
    content, values = made.split([latent.content_width, latent.value_width], dim=-1)
    of_position = of_position[:, None].expand(-1, m.heads, -1, -1)  # one for all heads
    return queries, torch.cat([content, of_position], dim=-1), values


def _feed_forward(layer: Layer, x: Activations) -> Activations:
    """Return what the feed-forward in `layer`, the whole one or a part of it, adds to x."""
    normed = _normed(x)
    inside = functional.silu(normed @ layer["gate"]) * (normed @ layer["up"])
    return inside @ layer["down"]


# By matrices: tensor parallel.


def share_of(layer: Layer, gpu: int, gpus: int) -> Layer:
    """Return the part of each matrix that a GPU has: some of its heads and of its inner width."""
    share = {}
    for name, matrix in layer.items():
        dimension = 0 if name in SPLIT_BY_ROWS else 1
        share[name] = matrix.tensor_split(gpus, dimension)[gpu]
    return share


def run_tensor_parallel(
    m: Model, layers: Sequence[Layer], x: Activations, links: Links
) -> list[Activations]:
    """Return the layers' result, of which each GPU has a copy; each has a share of each matrix."""
    copies = [x] * links.gpus
    for layer in layers:
        shares = [share_of(layer, gpu, links.gpus) for gpu in range(links.gpus)]
        for part in (partial(_attention, m), _feed_forward):
            inputs = sending.shared(links, copies)
            terms = [part(share, own) for share, own in zip(shares, inputs, strict=True)]
            added = sending.summed(links, terms)
            copies = [copy + term for copy, term in zip(copies, added, strict=True)]
    return copies


# By layers: a pipeline.


def run_pipeline(m: Model, layers: Sequence[Layer], x: Activations, links: Links) -> Activations:
    """Return the layers' result; each GPU has some of the layers, and sends its result on."""
    size = len(layers) // links.gpus
    for gpu in range(links.gpus):
        x = run_layers(m, layers[gpu * size : (gpu + 1) * size], x)
        if gpu + 1 < links.gpus:
            x = sending.moved(x, links, gpu, gpu + 1)
    return x


# By tokens: context parallel.


def run_context_parallel(
    m: Model, layers: Sequence[Layer], x: Activations, links: Links
) -> list[Float[Tensor, "b part h"]]:
    """Return the layers' result for each GPU's part of the tokens.

    A GPU does not keep what it has gathered of other tokens, so the backward pass gathers again.
    """
    own = list(x.chunk(links.gpus, dim=1))
    for layer in layers:
        added = checkpoint(_context_attention, m, layer, links, *own, use_reentrant=False)
        own = [tokens + term for tokens, term in zip(own, added, strict=True)]
        own = [tokens + _feed_forward(layer, tokens) for tokens in own]
    return own


def _context_attention(
    m: Model, layer: Layer, links: Links, *own: Activations
) -> list[Activations]:
    """Return what attention adds to each GPU's tokens, which look at those of all GPUs."""
    parts = [rearrange(_kept(m, layer, _normed(tokens)), "b s n -> s b n") for tokens in own]
    gathered = sending.gathered_with_gradients(links, parts)
    size = own[0].shape[1]
    all_see = torch.ones(links.gpus * size, links.gpus * size, dtype=torch.bool).tril()
    added = []
    for gpu, tokens in enumerate(own):
        kept = rearrange(gathered[gpu], "t b n -> b t n")
        sees = all_see[gpu * size : (gpu + 1) * size]
        added.append(_attended(m, layer, _normed(tokens), kept, sees))
    return added


# By experts: expert parallel.


def drawn_experts(width: int, mixture: Mixture, generator: torch.Generator) -> Experts:
    """Return a mixture of experts, drawn from normal distributions."""
    return Experts(width, mixture, generator=generator)


def run_expert_parallel(
    experts: Experts, rows: Sequence[Float[Tensor, "tokens h"]], links: Links
) -> list[Float[Tensor, "tokens h"]]:
    """Return the mixture's result for each GPU's own tokens; each GPU has some of the experts.

    A token's row goes to each of its experts, and the expert's result comes back.
    """
    on_each = len(experts.experts) // links.gpus
    results = []
    for gpu, own in enumerate(rows):
        shares, chosen = experts.router(own).softmax(-1).topk(experts.used)
        mixed = torch.zeros_like(own)
        for number, expert in enumerate(experts.experts):
            its_tokens, columns = torch.where(chosen == number)
            home = number // on_each  # the GPU that has this expert
            there = sending.moved(own[its_tokens], links, gpu, home)
            back = sending.moved(expert(there), links, home, gpu)
            mixed = mixed.index_add(0, its_tokens, back * shares[its_tokens, columns, None])
        results.append(mixed)
    return results
