"""An accountant of training: the bytes, the FLOPs and the days that a transformer takes.

    python accountant.py config.json --gpus 1024 --tokens 15e12

It trains nothing, because the model's shape is enough. This is how it counts:

- A multiply-add is 2 FLOPs. Only matrix products count. All S × S scores of attention are among
  them, even those that a causal mask throws away; where a layer has a window, S × window.
- Its bytes are those of fused attention, which never stores the scores. The backward pass of
  fused attention computes them a second time, and that second time is not counted.
"""

import argparse
import json
import math
import os
import sys
from dataclasses import dataclass, replace

BYTES = {
    "fp64": 8,
    "fp32": 4,
    "fp16": 2,
    "bf16": 2,
    "fp8": 1,
    "int64": 8,
    "int32": 4,
    "int8": 1,
    "bool": 1,
}
# How many numbers an optimizer keeps for each parameter.
OPTIMIZER_NUMBERS = {"sgd": 0, "momentum": 1, "adamw": 2}
# The first stage of ZeRO that shards each part.
SHARDED_FROM = {"optimizer": 1, "master": 1, "gradients": 2, "parameters": 3}
LOGIT_BYTES = 12  # for each logit, the loss holds three fp32 numbers
SECONDS_PER_DAY = 86_400
# Llama 3's 405B lost 419 times in 54 days on 16,384 H100s: arXiv 2407.21783, section 3.3.4.
GPU_DAYS_PER_FAILURE = 54 * 16_384 / 419
SAVE_S = 60  # seconds that one save takes: assumed
RESTART_S = 300  # seconds from a failure until the run goes on: assumed
PEAK = 989.5e12  # dense FLOP/s of an H100 SXM in 16 bits: NVIDIA's data sheet
LONGEST = 8192  # tokens of a sequence, unless --sequence gives another number: assumed
BANDWIDTH = 3.35e12  # bytes a second from an H100 SXM's memory: NVIDIA's data sheet
WATTS = 700  # of an H100 SXM, at most: NVIDIA's data sheet
# What a data centre takes, over what its computers take. Of the computers only the GPUs are counted
# here, as in arXiv 2302.13971, which assumes this number.
PUE = 1.1
SERVED_IN = "bf16"  # weights and cache, and the parts of a file that are not in blocks
MUON_STEPS = 5  # of its iteration, as torch.optim.Muon has by default
PRICE = 2  # dollars for a GPU hour: assumed in arXiv 2412.19437, table 1, for an H800


@dataclass(frozen=True)
class Mixture:
    """A mixture of experts (MoE) as feed-forward: a router picks the few that work on a token."""

    experts: int  # in one layer
    used: int  # of these, by each token
    inner: int  # width inside one expert
    shared_inner: int = 0  # width inside the expert that every token uses; 0: there is none
    dense_layers: int = 0  # layers with one feed-forward, `Model.inner` wide, and no experts
    router_bias: bool = False  # beside its matrix, the router has a number for each expert
    router_bias_dtype: str = ""  # of these numbers in a file, if it is not that of all else


@dataclass(frozen=True)
class Latent:
    """Multi-head latent attention (MLA), as in DeepSeek-V2.

    Of each token it caches a short vector, the latent, from which all heads' keys and values are
    made. A query and a key have two parts: one for the content, which of a key comes from the
    latent, and one for the position, for which all heads share one key.
    """

    query_rank: int  # numbers of the latent from which queries are made; 0: no latent
    rank: int  # numbers of the latent from which keys and values are made
    content_width: int  # of a head's query and key: the part for the content ("nope")
    position_width: int  # the part for the position, which RoPE rotates
    value_width: int  # of a head's value


@dataclass(frozen=True)
class Model:
    """The shape of a transformer, which is all that the account needs of it."""

    layers: int
    width: int
    heads: int
    kv_heads: int  # heads that keys and values have
    head_width: int
    inner: int  # width inside the feed-forward
    vocabulary: int
    context: int  # tokens of a sequence, at most
    gated: bool = True  # three matrices in the feed-forward: gate, up, down
    biases: tuple[str, ...] = ()  # names of the matrices that have a bias
    norm_vectors: int = 1  # RMSNorm has a weight; LayerNorm has a weight and a bias
    head_norms: bool = False  # queries and keys are normalised, head by head
    learned_positions: bool = False
    tied: bool = False  # the embedding is the output matrix, too
    # The thirteen terms do not look at these fields. The functions under "What 2026 adds" do.
    norms_per_layer: int = 2  # normalisations of a layer, besides those of the heads
    sinks: bool = False  # each head has one more score, a parameter, in its softmax
    window: int = 0  # tokens that a layer with a window looks at, the query's own among them
    window_layers: int = 0  # layers with that window; the others look at all tokens before
    mtp_layers: int = 0  # layers of multi-token prediction (MTP), which only a file has
    mixture: Mixture | None = None
    latent: Latent | None = None


# The thirteen terms, in the order of the notebooks.


def tensor_bytes(shape, dtype):
    """Bytes of a tensor: how many numbers its shape has, times the bytes of one number."""
    return math.prod(shape) * BYTES[dtype]


def storage_bytes(tensors):
    """Bytes of the storages behind tensors. A storage that several tensors share counts once."""
    sizes = {}  # bytes, by an address that is a storage's own
    for tensor in tensors:
        storage = tensor.untyped_storage()
        sizes[storage._cdata] = storage.nbytes()  # _cdata is the same for all views of a storage
    return sum(sizes.values())


def matrices(m):
    """The shape of each matrix of one layer, by its name: (inputs, outputs)."""
    queries = m.heads * m.head_width  # numbers of one token, in all heads together
    keys = m.kv_heads * m.head_width  # as many as its values have
    shapes = {
        "query": (m.width, queries),
        "key": (m.width, keys),
        "value": (m.width, keys),
        "out": (queries, m.width),
        "up": (m.width, m.inner),
    }
    if m.gated:
        shapes["gate"] = (m.width, m.inner)
    shapes["down"] = (m.inner, m.width)
    return shapes


def parameters(m):
    """How many parameters the model has: its layers, its embeddings, its last normalisation."""
    shapes = matrices(m)
    norm = m.norm_vectors * m.width
    layer = 2 * norm  # one before attention, one before the feed-forward
    for inputs, outputs in shapes.values():
        layer += inputs * outputs
    for name in m.biases:
        _, outputs = shapes[name]  # a bias has a number for each output
        layer += outputs
    if m.head_norms:
        layer += 2 * m.head_width  # one vector for the queries, one for the keys

    rows = m.vocabulary  # of the embedding; each row is as wide as the model
    if not m.tied:
        rows += m.vocabulary  # the output has a matrix of its own
    if m.learned_positions:
        rows += m.context
    return m.layers * layer + rows * m.width + norm  # `norm` is the last one, after all layers


def forward_flops(m, batch, sequence):
    """FLOPs of a forward pass: 2 for each weight and token, and two products for each head.

    The two products are queries × keys and scores × values, with S × S scores for each sequence.
    """
    tokens = batch * sequence
    weights = sum(inputs * outputs for inputs, outputs in matrices(m).values())
    scores = 2 * tokens * sequence * m.heads * m.head_width  # queries × keys
    sums = 2 * tokens * sequence * m.heads * m.head_width  # scores × values: weighted sums
    layer = 2 * tokens * weights + scores + sums
    logits = 2 * tokens * m.width * m.vocabulary
    return m.layers * layer + logits


def days(flops, gpus, peak, share):
    """The days that FLOPs take on GPUs, each of which reaches that share of its peak FLOP/s."""
    seconds = flops / (gpus * peak * share)
    return seconds / SECONDS_PER_DAY


def layer_bytes(m, batch, sequence, dtype):
    """Bytes that autograd keeps of one layer between the forward and the backward pass."""
    queries = m.heads * m.head_width
    keys = m.kv_heads * m.head_width
    normalisations = 2 * (m.width + m.width)  # two, each with its input and its result
    attention = queries + keys + keys + queries  # queries, keys, values, and the result
    if m.head_norms:
        attention += queries + keys  # the queries and keys before they are normalised
    if m.gated:
        feed_forward = 4 * m.inner  # the gate, its activation, up, and the product
    else:
        feed_forward = 2 * m.inner  # up, and its activation

    tokens = batch * sequence
    numbers = tokens * (normalisations + attention + feed_forward)
    row_sums = tokens * m.heads  # one for each row of scores: fused attention keeps it in fp32
    return numbers * BYTES[dtype] + row_sums * BYTES["fp32"]


def state_bytes(numbers, recipe, gpus, stage):
    """Bytes of each part of the state on each GPU, for `numbers` parameters.

    `recipe` has the dtypes of each part, as the function `recipe` returns them. What ZeRO's stage
    shards is split evenly.
    """
    shard = (numbers + gpus - 1) // gpus  # rounded up
    held = {}
    for part, dtypes in recipe.items():
        bytes_each = sum(BYTES[dtype] for dtype in dtypes)
        if stage >= SHARDED_FROM[part]:
            held[part] = bytes_each * shard
        else:
            held[part] = bytes_each * numbers
    return held


def recipe(name):
    """The dtypes of each part of the state, by the part: one for each number that the part keeps.

    Names of recipes are "fp32 adamw", "bf16+master adamw" or "bf16+master adamw, fp32 gradients".
    """
    formats_and_optimizer, _, gradients = name.partition(", ")
    formats, optimizer = formats_and_optimizer.split()
    dtype, _, master = formats.partition("+")  # `master` is "master" or empty
    state_dtype = "fp32" if master else dtype  # of what the optimizer keeps
    return {
        "parameters": (dtype,),
        "gradients": ("fp32",) if gradients else (dtype,),
        "optimizer": (state_dtype,) * OPTIMIZER_NUMBERS[optimizer],
        "master": ("fp32",) if master else (),
    }


def interval(save_s, failure_s):
    """Young's rule: the seconds between two saves at which saving costs as much as lost work.

    A save takes `save_s`, and `failure_s` is the mean time between failures.
    """
    return math.sqrt(2 * save_s * failure_s)


def lost_share(interval_s, save_s, failure_s, restart_s):
    """The share of the time that saves, lost work and restarts take: an upper bound.

    The three are added as if none of them made another one smaller.
    """
    saves = save_s / interval_s
    lost_work = interval_s / (2 * failure_s)  # on average, half an interval
    restarts = restart_s / failure_s
    return saves + lost_work + restarts


def step_bytes(m, batch, sequence, dtype, recomputed):
    """Bytes that a step adds to the state while it computes the loss.

    This need not be the step's peak: `moments` has the other moments, too. `recomputed` is how many
    of the layers are recomputed.
    """
    hidden = tensor_bytes((batch, sequence, m.width), dtype)  # between two layers
    whole_layers = (m.layers - recomputed) * layer_bytes(m, batch, sequence, dtype)
    inputs = recomputed * hidden  # all that is kept of a recomputed layer
    last_norm = 2 * hidden  # its input and its result
    loss = LOGIT_BYTES * batch * sequence * m.vocabulary
    return whole_layers + inputs + last_norm + loss


def step_flops(m, batch, sequence, recomputed):
    """FLOPs of a step: forward, backward, which has twice as many, and what is recomputed.

    A recomputed layer runs forward a second time, but without its last product, because no
    gradient needs the product's result.
    """
    tokens = batch * sequence
    forward = forward_flops(m, batch, sequence)
    logits = 2 * tokens * m.width * m.vocabulary
    layer = (forward - logits) // m.layers  # forward FLOPs of one layer
    last_product = 2 * tokens * m.inner * m.width
    return 3 * forward + recomputed * (layer - last_product)


# When a step is fullest. If the vocabulary is small or the sequence short, it may be later than at
# the loss, because the backward pass makes gradients of whole matrices.

AT_LOSS = "the loss"
AT_OUTPUT = "the output's gradient"
IN_LAYER = "the last layer's gradients"
AT_EMBEDDING = "the embedding's gradient"
AT_POSITIONS = "the positions' gradient"


def moments(m, batch, sequence, dtype, gradient_dtype, recomputed):
    """Bytes that a step adds at each moment that can be its fullest, by the moment's name.

    The gradients of an earlier batch are in memory meanwhile. So the gradient of a whole matrix
    is made first, and then added to the earlier one. What an optimizer copies in its own step,
    such as gradients in fp32, is not here.
    """
    refuse_narrow(m)
    added = {
        AT_LOSS: step_bytes(m, batch, sequence, dtype, recomputed),
        AT_OUTPUT: output_gradient_bytes(m, batch, sequence, dtype, gradient_dtype, recomputed),
        IN_LAYER: layer_gradients_bytes(m, batch, sequence, dtype, gradient_dtype, recomputed),
        AT_EMBEDDING: embedding_gradient_bytes(m, batch, sequence, dtype, gradient_dtype),
    }
    if m.learned_positions:
        added[AT_POSITIONS] = position_gradient_bytes(m, batch, sequence, dtype, gradient_dtype)
    if m.tied:
        # The output's gradient waits until the embedding's is added to it. At the embedding,
        # `embedding_gradient_bytes` has counted it.
        waiting = tensor_bytes((m.vocabulary, m.width), gradient_dtype)
        for moment in (IN_LAYER, AT_POSITIONS):
            if moment in added:
                added[moment] += waiting
    return added


def output_gradient_bytes(m, batch, sequence, dtype, gradient_dtype, recomputed):
    """Bytes that a step adds to the state while the output matrix gets its gradient.

    No layer has gone backward yet, so all layers still keep what they need.
    """
    hidden = tensor_bytes((batch, sequence, m.width), dtype)
    logits = tensor_bytes((batch, sequence, m.vocabulary), dtype)
    matrix = (m.vocabulary, m.width)
    kept = kept_bytes(m, batch, sequence, dtype, recomputed)
    last_norm = 2 * hidden  # its input, and its result or the result's gradient
    gradient = tensor_bytes(matrix, dtype)
    # Beside the matrix's gradient there are first other gradients, later its copy in another dtype.
    while_made = logits + hidden  # the gradients of the logits and of the norm's result
    while_cast = cast_bytes(matrix, dtype, gradient_dtype)
    return kept + last_norm + gradient + max(while_made, while_cast)


def layer_gradients_bytes(m, batch, sequence, dtype, gradient_dtype, recomputed):
    """The most bytes that a step adds while the last layer makes its gradients.

    If that layer is recomputed, all that it keeps is in memory again by then.
    """
    hidden = tensor_bytes((batch, sequence, m.width), dtype)
    inside = tensor_bytes((batch, sequence, m.inner), dtype)
    down = (m.inner, m.width)
    # `down` goes backward first. Its input's gradient is made beside that of its weights, which is
    # then cast to `gradient_dtype`: the fuller one of these two moments counts.
    weight_gradient = tensor_bytes(down, dtype)
    input_gradient = inside
    cast = cast_bytes(down, dtype, gradient_dtype)
    while_made = weight_gradient + input_gradient
    if recomputed < m.layers:
        # The last layer is not recomputed. Its input is freed only after the cast.
        while_cast = weight_gradient + input_gradient + cast
    else:
        # It is recomputed. Its input is free by then, and the input's gradient takes its place.
        while_cast = weight_gradient + cast
    most = max(while_made, while_cast)
    if m.gated:
        # `down` is done: its input, gate × up, has given its place to its gradient. What is added
        # now is a gradient of the gate and one of up.
        factors = 2 * inside
        most = max(most, factors)

    recomputed_before = min(recomputed, m.layers - 1)  # layers of which only the input is there
    result_gradient = hidden  # of the layer's result: with it the layer begins
    return kept_bytes(m, batch, sequence, dtype, recomputed_before) + result_gradient + most


def embedding_gradient_bytes(m, batch, sequence, dtype, gradient_dtype):
    """Bytes that a step adds to the state while the embedding gets its gradient.

    No layer keeps anything by now.
    """
    hidden = tensor_bytes((batch, sequence, m.width), dtype)
    matrix = (m.vocabulary, m.width)
    made = tensor_bytes(matrix, dtype) + cast_bytes(matrix, dtype, gradient_dtype)
    if not m.tied:
        return hidden + made
    gradient = tensor_bytes(matrix, gradient_dtype)
    while_made = gradient + hidden + made  # `gradient` is the output's, which waits
    while_added = 3 * gradient  # the output's, the embedding's, and their sum
    return max(while_made, while_added)


def position_gradient_bytes(m, batch, sequence, dtype, gradient_dtype):
    """Bytes that a step adds while learned positions get their gradient."""
    hidden = tensor_bytes((batch, sequence, m.width), dtype)  # the gradient from the first layer
    used = tensor_bytes((sequence, m.width), dtype)  # gradient of the used rows, over the batch
    matrix = (m.context, m.width)  # the gradient of all rows: `used`, and zeros below
    made = tensor_bytes(matrix, dtype) + cast_bytes(matrix, dtype, gradient_dtype)
    return hidden + used + made


def kept_bytes(m, batch, sequence, dtype, recomputed):
    """Bytes that all layers keep for the backward pass; a recomputed one keeps its input alone."""
    hidden = tensor_bytes((batch, sequence, m.width), dtype)
    whole = m.layers - recomputed
    return whole * layer_bytes(m, batch, sequence, dtype) + recomputed * hidden


def cast_bytes(shape, dtype, gradient_dtype):
    """Bytes of a gradient's copy in `gradient_dtype`; 0 if it was made in that dtype already."""
    if gradient_dtype == dtype:
        return 0
    return tensor_bytes(shape, gradient_dtype)


def refuse_narrow(m):
    """Raise a ValueError if the fullest moment may be one that `moments` leaves out."""
    if is_narrow(m):
        queries = m.heads * m.head_width
        raise ValueError(
            f"The feed-forward is {m.inner:,} wide. It has to be as wide as the model, "
            f"{m.width:,}, and 4/3 as wide as all its queries, {queries:,}: of other models it is "
            "not known here when a step is fullest."
        )


def is_narrow(m):
    """Whether a step can be fullest while attention makes its gradients."""
    queries = m.heads * m.head_width
    return m.inner < m.width or 3 * m.inner < 4 * queries


def gathered_bytes(m, dtype, gpus, stage, moment):
    """Bytes of the weights and gradients that a GPU holds whole at this moment, under ZeRO 3.

    They are gathered layer by layer, as FSDP does it. Outside the layers (the embeddings, the last
    normalisation, the output), the weights are whole during the whole step, and each gradient is
    whole once it is complete; until then, `moments` counts it. Of the layers, these are whole: the
    weights of the layer at work, those of the next one, which are fetched ahead, and the gradients
    of one layer.
    """
    if gpus == 1 or stage < SHARDED_FROM["parameters"]:
        return 0
    # The parameters of one layer: those that a second layer adds to a model of one.
    layer = parameters(replace(m, layers=2)) - parameters(replace(m, layers=1))
    around_the_layers = parameters(m) - m.layers * layer
    whole = whole_numbers(m, moment, layer, around_the_layers)
    return tensor_bytes((whole,), dtype)


def whole_numbers(m, moment, layer, around_the_layers):
    """How many weights and gradients are whole at this moment, as `gathered_bytes` says it.

    A layer has `layer` parameters, and there are so many around the layers.
    """
    whole = around_the_layers
    if moment not in (AT_LOSS, AT_OUTPUT):
        # The gradients of the last normalisation and of the output matrix are complete by now.
        # If the output is tied to the embedding, `moments` counts that gradient, so it is left out.
        whole += m.norm_vectors * m.width
        if not m.tied:
            whole += m.vocabulary * m.width
    if moment == IN_LAYER:
        weights = min(2, m.layers) * layer
        gradients = layer
        whole += weights + gradients
    return whole


def rest_bytes(m, batch, sequence, dtype):
    """Bytes, at most, of the small things that none of the terms counts.

    The small things are the angles of the positions, LayerNorm's statistics, a step counter for
    each tensor of parameters, and a few lone numbers.
    """
    norms = 4 * m.layers + 1  # two in a layer, two more for its heads, and the last one
    rest = 0
    if not m.learned_positions:
        rest += tensor_bytes((sequence, m.head_width), dtype)
    if m.norm_vectors == 2:  # LayerNorm: two statistics for each token
        rest += tensor_bytes((batch, sequence, 2, norms), dtype)
    # The 3 are the embedding, the output and the positions.
    tensors = m.layers * (len(matrices(m)) + len(m.biases)) + norms * m.norm_vectors + 3
    counters = tensors * BYTES["fp32"]
    lone_numbers = 4 * BYTES["fp32"]  # room for four, such as the loss
    return rest + counters + lone_numbers


# What 2026 adds: windows, latent attention and mixtures of experts; serving; what is sent; Muon;
# formats with scales; energy and money. First its terms, in the order of the notebooks.


def window_pairs(sequence, window):
    """Pairs of a query and a key in one sequence, if a query meets its own key and those before.

    It meets at most `window` keys, its own among them.
    """
    reach = min(sequence, window)
    first_queries = reach * (reach + 1) // 2  # they meet 1, 2, ... keys
    later_queries = (sequence - reach) * reach
    return first_queries + later_queries


def latent_cache_bytes(m, tokens, dtype):
    """Bytes of the cache of latent attention, for one sequence of so many tokens.

    Of each token, each layer keeps the latent and the position's part of the key.
    """
    numbers = m.latent.rank + m.latent.position_width
    return m.layers * tokens * numbers * BYTES[dtype]


def newton_schulz_flops(rows, columns, steps):
    """FLOPs of Muon's Newton-Schulz iteration for one matrix.

    Each of its steps takes X Xᵀ, the square of that, and a product of the sum of both with X.
    """
    short = min(rows, columns)
    long = max(rows, columns)
    products_with_x = 2 * (2 * long * short**2)  # two of them
    square = 2 * short**3
    return steps * (products_with_x + square)


def bytes_in_blocks(shape, block, number_bits, scale_bits):
    """Bytes of a matrix, (rows, columns), whose blocks, (rows, columns), have a scale each.

    A block at the edge, which is not full, has a scale of its own, too.
    """
    rows, columns = shape
    block_rows, block_columns = block
    scales = math.ceil(rows / block_rows) * math.ceil(columns / block_columns)
    bits = rows * columns * number_bits + scales * scale_bits
    return bits / 8


def data_parallel_bytes(numbers, weight_bytes, gradient_bytes, gpus, stage):
    """Bytes that each GPU sends for `numbers` parameters in a step, under ZeRO's stage.

    At stage 0 the gradients are added up for all GPUs. At stages 1 and 2 each GPU gets the sum of
    its part, and then all gather the new weights. At stage 3 the weights are gathered twice, for
    the forward and for the backward pass.
    """
    gradients = numbers * gradient_bytes
    if stage == 0:
        return all_reduce_bytes(gradients, gpus)
    gathers = 2 if stage >= SHARDED_FROM["parameters"] else 1
    weights_sent = gathers * all_gather_bytes(numbers * weight_bytes, gpus)
    gradients_sent = reduce_scatter_bytes(gradients, gpus)
    return gradients_sent + weights_sent


# Which matrices a model has, and how many of them a token uses.


@dataclass(frozen=True)
class Matrices:
    """Matrices of one shape, in the whole model."""

    inputs: int
    outputs: int
    stored: int  # such matrices in the model
    used: int  # of these, by each token
    bias: bool = False  # each of them has one

    @property
    def size(self):
        """Weights of one such matrix, without its bias."""
        return self.inputs * self.outputs

    @property
    def parameters(self):
        """Parameters of one such matrix, with its bias."""
        return self.size + self.outputs if self.bias else self.size


ATTENTION = ("query", "key", "value", "out")  # the other matrices are the feed-forward's


def all_matrices(m):
    """All matrices that tokens are multiplied by, in the whole model, by their name.

    A mixture stores all of its experts and uses a few of them for a token. Of everything else,
    what is stored is used.
    """
    dense_layers = m.mixture.dense_layers if m.mixture else m.layers
    table = {}
    for name, shape in attention_matrices(m).items():
        table[name] = Matrices(*shape, stored=m.layers, used=m.layers, bias=name in m.biases)
    for name, shape in feed_forward_matrices(m, m.inner).items():
        has_bias = name in m.biases
        table[name] = Matrices(*shape, stored=dense_layers, used=dense_layers, bias=has_bias)
    if m.mixture:
        table |= mixture_matrices(m)
    table["output"] = Matrices(m.width, m.vocabulary, stored=1, used=1)
    return table


def attention_matrices(m):
    """The matrices of attention in one layer, by their name: (inputs, outputs)."""
    if m.latent:
        return latent_matrices(m)
    shapes = matrices(m)
    return {name: shapes[name] for name in ATTENTION}


def feed_forward_matrices(m, inner):
    """The matrices of one feed-forward that is `inner` wide, by their name: (inputs, outputs)."""
    shapes = matrices(replace(m, inner=inner))
    return {name: shape for name, shape in shapes.items() if name not in ATTENTION}


def mixture_matrices(m):
    """The matrices of all mixtures in the model, by their name."""
    mixture = m.mixture
    layers = m.layers - mixture.dense_layers
    router = (m.width, mixture.experts)
    table = {"router": Matrices(*router, stored=layers, used=layers, bias=mixture.router_bias)}
    stored = layers * mixture.experts
    used = layers * mixture.used
    for name, shape in feed_forward_matrices(m, mixture.inner).items():
        has_bias = name in m.biases
        table[f"experts' {name}"] = Matrices(*shape, stored=stored, used=used, bias=has_bias)
    if mixture.shared_inner:
        for name, shape in feed_forward_matrices(m, mixture.shared_inner).items():
            has_bias = name in m.biases
            table[f"shared {name}"] = Matrices(*shape, stored=layers, used=layers, bias=has_bias)
    return table


def latent_matrices(m):
    """The matrices of latent attention in one layer. "Down" makes a latent, "up" makes heads."""
    latent = m.latent
    queries = m.heads * (latent.content_width + latent.position_width)
    if latent.query_rank:
        shapes = {
            "query down": (m.width, latent.query_rank),
            "query up": (latent.query_rank, queries),
        }
    else:
        shapes = {"query": (m.width, queries)}
    # The part of a key that carries the position comes with the latent, once for all heads.
    shapes["key and value down"] = (m.width, latent.rank + latent.position_width)
    made = m.heads * (latent.content_width + latent.value_width)
    shapes["key and value up"] = (latent.rank, made)
    shapes["out"] = (m.heads * latent.value_width, m.width)
    return shapes


def stored_parameters(m):
    """How many parameters the model has, whatever its layers are."""
    stored = parameters_outside_products(m)
    for group in all_matrices(m).values():
        stored += group.stored * group.parameters
    return stored


def active_parameters(m):
    """How many of the parameters one token uses: all but the experts that it does not go to.

    The embedding counts as a whole, although a token reads one row of it. Some published numbers
    leave it out.
    """
    active = parameters_outside_products(m)
    for group in all_matrices(m).values():
        active += group.used * group.parameters
    return active


def parameters_outside_products(m):
    """The parameters of normalisations, sinks and embeddings.

    A tied embedding is the output matrix, which `all_matrices` has.
    """
    layer = m.norms_per_layer * m.norm_vectors * m.width
    if m.head_norms:
        layer += 2 * m.head_width
    if m.sinks:
        layer += m.heads
    if m.latent:
        layer += m.latent.query_rank + m.latent.rank  # each latent is normalised
    numbers = m.layers * layer + m.norm_vectors * m.width
    if not m.tied:
        numbers += m.vocabulary * m.width
    if m.learned_positions:
        numbers += m.context * m.width
    return numbers


def pairs(sequence, window=0, causal=False):
    """Pairs of a query and a key in one sequence, for each of which a head has a score.

    With a window, a query looks at no more than `window` keys, its own among them; 0 is no window.
    With `causal`, a query counts the keys up to its own. Without it, every query counts as many as
    the last one does, which is how `forward_flops` counts.
    """
    reach = min(sequence, window) if window else sequence
    if causal:
        return window_pairs(sequence, reach)
    return sequence * reach


def pair_flops(m):
    """FLOPs of one layer for each pair of a query and a key: their product, and a weighted sum."""
    if m.latent:
        key_width = m.latent.content_width + m.latent.position_width
        value_width = m.latent.value_width
    else:
        key_width = value_width = m.head_width
    return 2 * m.heads * (key_width + value_width)


def active_weights(m):
    """How many weights one token is multiplied by. The embedding's row is only read."""
    return sum(group.used * group.size for group in all_matrices(m).values())


def active_forward_flops(m, batch, sequence, causal=False):
    """FLOPs of a forward pass of any model, with the pairs of its windows."""
    whole_layers = m.layers - m.window_layers
    in_whole_layers = whole_layers * pairs(sequence, causal=causal)
    in_windows = m.window_layers * pairs(sequence, m.window, causal)
    tokens = batch * sequence
    scores = batch * (in_whole_layers + in_windows) * pair_flops(m)
    return 2 * tokens * active_weights(m) + scores


def mixture_bytes(m, batch, sequence, dtype):
    """Bytes that autograd keeps of one mixture, which stands in place of a feed-forward.

    This is for experts that work one after the other, each on a copy of its tokens' rows, as in
    `models.MixtureTransformer`. Kernels that compute all experts together keep less.
    """
    mixture = m.mixture
    tokens = batch * sequence
    inside = 4 if m.gated else 2  # as `layer_bytes` counts them: gate, its activation, up, product
    # Of each token of an expert: its row, what is inside, the result, the share that the router
    # gives it, and their product.
    of_expert = m.width + inside * mixture.inner + m.width + 1 + m.width
    numbers = mixture.used * of_expert
    numbers += mixture.experts  # the router's shares, before some are picked
    numbers += inside * mixture.shared_inner
    indices = 3 * mixture.used  # the expert that was picked, the token's row, the share's column
    return tokens * (numbers * BYTES[dtype] + indices * BYTES["int64"])


def latent_bytes(m, batch, sequence, dtype):
    """Bytes that autograd keeps of one latent attention, as `models.LatentAttention` has it.

    This is for fused attention. A kernel that takes values of another width than the keys keeps as
    much; where torch has none, as on CPUs, it takes single products, and these keep all scores.
    """
    latent = m.latent
    key_width = latent.content_width + latent.position_width
    numbers = 2 * latent.query_rank  # the queries' latent, and its normalisation
    numbers += latent.rank + latent.position_width  # what "key and value down" makes
    numbers += latent.rank  # the normalised latent
    numbers += 2 * m.heads * key_width  # queries and keys, each joined of its two parts
    # Attention needs only the values of what "key and value up" makes. But they are a view, and so
    # the keys' content beside them stays in memory, too, a second time.
    numbers += m.heads * (latent.content_width + latent.value_width)
    numbers += m.heads * latent.value_width  # the result
    tokens = batch * sequence
    row_sums = tokens * m.heads
    return tokens * numbers * BYTES[dtype] + row_sums * BYTES["fp32"]


def any_kept_bytes(m, batch, sequence, dtype, recomputed=0):
    """`kept_bytes` of any model: the first `recomputed` layers keep their inputs alone."""
    if not kept_is_counted(m):
        raise ValueError("What sinks or four normalisations in a layer keep is not counted.")
    hidden = tensor_bytes((batch, sequence, m.width), dtype)
    without_feed_forward = layer_bytes(replace(m, inner=0), batch, sequence, dtype)
    feed_forward = layer_bytes(m, batch, sequence, dtype) - without_feed_forward
    if m.latent:
        normalisations = 2 * (hidden + hidden)  # two, each with its input and its result
        without_feed_forward = normalisations + latent_bytes(m, batch, sequence, dtype)
    whole_layers = m.layers - recomputed
    whole_dense = max(0, dense_layers(m) - recomputed)
    kept = recomputed * hidden + whole_layers * without_feed_forward + whole_dense * feed_forward
    if m.mixture:
        kept += (whole_layers - whole_dense) * mixture_bytes(m, batch, sequence, dtype)
    return kept


def dense_layers(m):
    """How many layers have an ordinary feed-forward; these come first."""
    return m.mixture.dense_layers if m.mixture else m.layers


def any_moments(m, batch, sequence, dtype, gradient_dtype, recomputed):
    """`moments` of a dense model or of a mixture; then at most, whatever tokens the experts get.

    Experts work one after the other, as `mixture_bytes` counts them.
    """
    if m.mixture is None or dense_layers(m) == m.layers:
        dense = replace(m, mixture=None)
        return moments(dense, batch, sequence, dtype, gradient_dtype, recomputed)
    refuse_narrow(all_used_in_one(m))
    # A moment outside the layers differs from that of a dense model by what the layers keep.
    dense = all_used_in_one(m)
    added = moments(dense, batch, sequence, dtype, gradient_dtype, recomputed)
    keeps_more = any_kept_bytes(m, batch, sequence, dtype, recomputed)
    keeps_more -= kept_bytes(dense, batch, sequence, dtype, recomputed)
    for moment in (AT_LOSS, AT_OUTPUT):
        added[moment] += keeps_more

    in_layer = mixture_gradients_bytes(m, batch, sequence, dtype, gradient_dtype, recomputed)
    if dense_layers(m):
        first = replace(m, layers=dense_layers(m), mixture=None)
        refuse_narrow(first)
        again = min(recomputed, first.layers)
        last_dense = layer_gradients_bytes(first, batch, sequence, dtype, gradient_dtype, again)
        in_layer = max(in_layer, last_dense)
    if m.tied:  # the output's gradient waits, as in `moments`
        in_layer += tensor_bytes((m.vocabulary, m.width), gradient_dtype)
    added[IN_LAYER] = in_layer
    return added


def all_used_in_one(m):
    """The dense model whose feed-forward is as wide as all experts that a token uses, together."""
    inner = m.mixture.used * m.mixture.inner + m.mixture.shared_inner
    return replace(m, inner=inner, mixture=None)


def mixture_gradients_bytes(m, batch, sequence, dtype, gradient_dtype, recomputed):
    """The most bytes that a step adds while the mixture of the last layer makes its gradients.

    The experts go backward one after the other. It is fullest if those that come first got no
    tokens, and the next one got all, since nothing that this one keeps is freed by then.
    """
    mixture = m.mixture
    hidden = tensor_bytes((batch, sequence, m.width), dtype)
    shares = tensor_bytes((batch, sequence, mixture.used), dtype)
    recomputed_before = min(recomputed, m.layers - 1)
    again = recomputed == m.layers
    # `hidden` is the gradient of the layer's result.
    kept = any_kept_bytes(m, batch, sequence, dtype, recomputed_before) + hidden
    # While the layer goes forward, it also holds two sums of results and the shares; with a shared
    # expert, that one's result as well. Then the gradient in `kept` is not there yet.
    most = hidden + shares

    # Gradients that wait already: of all rows, and of all shares.
    earlier = 0
    if mixture.shared_inner or mixture.experts > mixture.used:
        earlier = hidden + shares
    if mixture.shared_inner:  # it goes backward before the others
        most += hidden
        inside = tensor_bytes((batch, sequence, mixture.shared_inner), dtype)
        down = (mixture.shared_inner, m.width)
        at_down = down_gradient_bytes(down, inside, dtype, gradient_dtype, again)
        at_factors = 2 * inside if m.gated else 0
        most = max(most, at_down, at_factors)
        earlier -= (4 if m.gated else 2) * inside  # what it kept is freed

    inside = tensor_bytes((batch, sequence, mixture.inner), dtype)
    down = (mixture.inner, m.width)
    # The result is freed before `down`, and so is its product with the share, whose gradient is
    # there instead.
    at_down = down_gradient_bytes(down, inside, dtype, gradient_dtype, again) - hidden
    # The gradients of the share and of the result, or the gradients of two experts' shares.
    at_share = max(2 * hidden + tensor_bytes((batch, sequence), dtype), 2 * shares)
    at_factors = 2 * inside - 2 * hidden if m.gated else 0
    return kept + max(most, earlier + max(at_down, at_share, at_factors))


def down_gradient_bytes(shape, inside, dtype, gradient_dtype, again):
    """Bytes of gradients while the matrix `down` of that shape makes its own and its input's.

    The input, with `inside` bytes, is freed before the cast if it was computed `again`.
    """
    weight_gradient = tensor_bytes(shape, dtype)
    cast = cast_bytes(shape, dtype, gradient_dtype)
    if again:
        return weight_gradient + max(inside, cast)
    return weight_gradient + inside + cast


def any_gathered_bytes(m, dtype, gpus, stage, moment):
    """`gathered_bytes` of a dense model or of a mixture, of which all experts are gathered."""
    if m.mixture is None or gpus == 1 or stage < SHARDED_FROM["parameters"]:
        return gathered_bytes(m, dtype, gpus, stage, moment)
    with_experts = replace(m.mixture, dense_layers=0)  # these layers are the largest
    none = replace(m, layers=0, mixture=with_experts)
    around_the_layers = stored_parameters(none)
    layer = stored_parameters(replace(none, layers=1)) - around_the_layers
    return tensor_bytes((whole_numbers(m, moment, layer, around_the_layers),), dtype)


def any_rest_bytes(m, batch, sequence, dtype):
    """`rest_bytes` of a dense model or of a mixture, which has a step counter for each matrix."""
    rest = rest_bytes(m, batch, sequence, dtype)
    if m.mixture:
        tensors = sum(group.stored * (1 + group.bias) for group in all_matrices(m).values())
        rest += tensors * BYTES["fp32"]
    return rest


def any_step_flops(m, batch, sequence, recomputed):
    """`step_flops` of a dense model or of a mixture; the first layers are recomputed."""
    if m.mixture is None:
        return step_flops(m, batch, sequence, recomputed)
    again = replace(m, layers=recomputed)
    again = replace(
        again, mixture=replace(m.mixture, dense_layers=min(dense_layers(m), recomputed))
    )
    tokens = batch * sequence
    logits = 2 * tokens * m.width * m.vocabulary
    forward_again = active_forward_flops(again, batch, sequence) - logits
    # The last product of a layer is left out. In a mixture that is the shared expert's; without one
    # it is the share's gradient that needs the product of each expert.
    dense_again = dense_layers(again)
    last_products = dense_again * m.inner + (recomputed - dense_again) * m.mixture.shared_inner
    left_out = 2 * tokens * m.width * last_products
    return 3 * active_forward_flops(m, batch, sequence) + forward_again - left_out


def step_is_counted(m):
    """Whether it is known when a step of the model is fullest, and how many bytes it holds then."""
    if terms_suffice(m):
        return True
    if not attention_is_usual(m):
        return False
    return not is_narrow(all_used_in_one(m)) and not (dense_layers(m) and is_narrow(m))


def sequence_flops(m, sequence, recomputed):
    """FLOPs of a step on one sequence: `step_flops`, less what windows spare; or of any model."""
    if not terms_suffice(m):
        if recomputed and not recomputing_is_counted(m):
            raise ValueError(
                "What a recomputed layer costs is not counted of this model, which has latent "
                "attention, sinks, four normalisations in a layer, or windows beside experts: say "
                "--recomputed 0."
            )
        if recomputed:
            return any_step_flops(m, 1, sequence, recomputed)
        return 3 * active_forward_flops(m, 1, sequence)

    all_pairs = step_flops(m, 1, sequence, recomputed)
    spared = forward_flops(m, 1, sequence) - active_forward_flops(m, 1, sequence)
    if spared == 0:
        return all_pairs
    if 0 < recomputed < m.layers and m.window_layers < m.layers:
        raise ValueError(
            "Some of the layers have a window, and it is not known whether those are recomputed: "
            f"say --recomputed 0 or {m.layers}."
        )
    # Forward once, backward twice as much, and once more for the share that is recomputed.
    passes = 3 + recomputed / m.layers
    return all_pairs - passes * spared


def recomputing_is_counted(m):
    """Whether it is counted what a recomputed layer costs, for any number of them."""
    return terms_suffice(m) or (attention_is_usual(m) and not m.window_layers)


def terms_suffice(m):
    """Whether the thirteen terms count every part of the model, but for its windows."""
    return attention_is_usual(m) and not m.mixture


def attention_is_usual(m):
    """Whether `layer_bytes` counts what attention and normalisations keep."""
    return kept_is_counted(m) and not m.latent


def kept_is_counted(m):
    """Whether `any_kept_bytes` counts what the model's layers keep."""
    return not m.sinks and m.norms_per_layer == 2


# Serving: a cache for each user, and one token at a time.


def cached_tokens(m, tokens):
    """Of so many tokens, those that all layers together keep: with a window, what fits into it."""
    whole_layers = m.layers - m.window_layers
    return whole_layers * tokens + m.window_layers * min(tokens, m.window)


def cache_bytes(m, tokens, dtype):
    """Bytes of the cache for one sequence of so many tokens: what attention keeps of each of them.

    That is keys and values, or what `latent_cache_bytes` counts.
    """
    if m.latent:  # no model that `model_from` reads has windows, too
        return latent_cache_bytes(m, tokens, dtype)
    return cached_tokens(m, tokens) * cached_numbers(m) * BYTES[dtype]


def cached_numbers(m):
    """Of one token, the numbers from which one layer has its key and value."""
    if m.latent:
        return m.latent.rank + m.latent.position_width
    return 2 * m.kv_heads * m.head_width


def weights_read(m, users):
    """How many weights a step of decoding reads, for one token of each user.

    An expert is read if at least one token goes to it. On average, that is this many experts if
    each token goes to all experts with the same chance.
    """
    read = 0
    for group in all_matrices(m).values():
        if group.stored:
            missed_by_all = (1 - group.used / group.stored) ** users
            read += group.stored * (1 - missed_by_all) * group.size
    return read


def decode_bytes(m, users, tokens, dtype):
    """Bytes that one step of decoding reads: weights once for all users, and each user's cache.

    `tokens` is how many each user has in the cache.
    """
    return weights_read(m, users) * BYTES[dtype] + users * cache_bytes(m, tokens, dtype)


def decode_flops(m, users, tokens):
    """FLOPs of one step of decoding: a token of each user, which looks at its own cache.

    Latent attention works on the latents themselves: what would make keys and values of them is
    multiplied into the query and the result, once for a token ("absorbed").
    """
    of_a_pair = pair_flops(m)
    if m.latent:
        key_width = m.latent.rank + m.latent.position_width  # a key is the latent itself
        value_width = m.latent.rank  # and so is a value
        of_a_pair = 2 * m.heads * (key_width + value_width)
    return users * (2 * active_weights(m) + cached_tokens(m, tokens) * of_a_pair)


def decode_seconds(m, users, tokens, dtype, bandwidth, peak):
    """Seconds of one step of decoding, at least: reading or computing, whichever takes longer.

    `bandwidth` is in bytes a second, `peak` in FLOP/s, both of all GPUs that share the model. Of a
    mixture, the mean number of experts is read, which `weights_read` gives.
    """
    reading_s = decode_bytes(m, users, tokens, dtype) / bandwidth
    computing_s = decode_flops(m, users, tokens) / peak
    return max(reading_s, computing_s)


def ridge_users(dtype, bandwidth, peak):
    """The number of users with whom a dense model's matrices take as long to multiply as to read.

    Each user's token costs 2 FLOPs for each weight, while a weight is read once for all users. So
    with more users the matrices are compute-bound. The caches are not, because each is read for one
    user alone.
    """
    return BYTES[dtype] * peak / (2 * bandwidth)


# What is sent: bytes that each GPU sends in one step.


def all_gather_bytes(nbytes, gpus):
    """Bytes that each GPU sends in a ring so that all have `nbytes`, of which each has a part."""
    return (nbytes * (gpus - 1) + gpus - 1) // gpus  # rounded up


def reduce_scatter_bytes(nbytes, gpus):
    """Bytes that each GPU sends so that each has one part of the sum: as many as an all-gather."""
    return all_gather_bytes(nbytes, gpus)


def all_reduce_bytes(nbytes, gpus):
    """Bytes that each GPU sends so that all have the sum: a reduce-scatter and an all-gather."""
    return reduce_scatter_bytes(nbytes, gpus) + all_gather_bytes(nbytes, gpus)


def tensor_parallel_bytes(m, batch, sequence, dtype, recomputed, gpus):
    """Bytes that each GPU sends in a step if the matrices of each layer are split over GPUs.

    Attention and feed-forward each end in a sum over the GPUs, forward and backward. A recomputed
    layer repeats that of attention; its last product is left out, and the sum with it.
    """
    hidden = tensor_bytes((batch, sequence, m.width), dtype)
    sums = 4 * m.layers + recomputed
    return sums * all_reduce_bytes(hidden, gpus)


def pipeline_parallel_bytes(m, batch, sequence, dtype, micro_batches):
    """Bytes that cross the border between two stages of a pipeline in a step, there and back.

    Each micro-batch has `batch` sequences.
    """
    return micro_batches * 2 * tensor_bytes((batch, sequence, m.width), dtype)


def pipeline_bubble(stages, micro_batches, chunks=1):
    """The pipeline's bubble: the time in which a stage waits, over the time in which it works.

    `chunks` is how many separate pieces of the model each stage has: 1 unless they interleave.
    """
    return (stages - 1) / (chunks * micro_batches)


def expert_parallel_bytes(m, batch, sequence, sent_dtype, returned_dtype):
    """Bytes that tokens take to their experts and back in a step's forward and backward pass.

    It is an upper bound, as if no expert were on the token's own GPU. A gradient is sent in the
    same format as what it is the gradient of.
    """
    layers = m.layers - m.mixture.dense_layers
    sent = batch * sequence * m.mixture.used * m.width
    return 2 * layers * sent * (BYTES[sent_dtype] + BYTES[returned_dtype])


def context_parallel_bytes(m, batch, sequence, dtype, gpus):
    """Bytes that each GPU sends in a step if each has a part of every sequence's tokens.

    Its queries need the keys and values of all tokens, which are gathered for the forward pass,
    and again for the backward pass. Then each GPU gets the sum of its own tokens' gradients. Of
    latent attention, the latents are gathered. A window spares nothing here.
    """
    of_a_layer = batch * sequence * cached_numbers(m) * BYTES[dtype]
    gathers = 2 * all_gather_bytes(of_a_layer, gpus)
    return m.layers * (gathers + reduce_scatter_bytes(of_a_layer, gpus))


# Muon: momentum for the matrices of the layers, AdamW for all else.


def muon_matrices(m):
    """The matrices that Muon updates: all but the output."""
    return [group for name, group in all_matrices(m).items() if name != "output"]


def muon_state_numbers(m):
    """How many numbers Muon keeps: one for each weight of a layer's matrices, two for all else."""
    in_matrices = sum(group.stored * group.size for group in muon_matrices(m))
    all_else = stored_parameters(m) - in_matrices
    return in_matrices + 2 * all_else


# Formats in which a block of numbers shares a scale.


@dataclass(frozen=True)
class BlockFormat:
    """A number format in which each block of numbers shares a scale."""

    number_bits: int
    block: tuple[int, int]  # rows and columns of a block
    scale_bits: int
    tensor_scale_bits: int = 0  # of one more scale, for the whole tensor


BLOCK_FORMATS = {
    # The MX formats: OCP Microscaling Formats (MX) Specification, version 1.0, table 1.
    "mxfp8": BlockFormat(number_bits=8, block=(1, 32), scale_bits=8),
    "mxfp4": BlockFormat(number_bits=4, block=(1, 32), scale_bits=8),
    # NVIDIA, arXiv 2509.25149. A tensor has one more scale, in fp32.
    "nvfp4": BlockFormat(number_bits=4, block=(1, 16), scale_bits=8, tensor_scale_bits=32),
    # DeepSeek-V3's weights: arXiv 2412.19437, section 3.3.2.
    "fp8 128x128": BlockFormat(number_bits=8, block=(128, 128), scale_bits=32),
}


def block_bytes(shape, name):
    """Bytes of a matrix of that shape (rows, columns) in one of BLOCK_FORMATS, in whole bytes."""
    form = BLOCK_FORMATS[name]
    in_blocks = bytes_in_blocks(shape, form.block, form.number_bits, form.scale_bits)
    return math.ceil(in_blocks + form.tensor_scale_bits / 8)


def file_matrices(m):
    """All matrices in a file of the model, by their name: `all_matrices`, and those for MTP.

    A layer of multi-token prediction (MTP) is one more layer of the model. Before it, a matrix
    joins what the model has made of a token with the embedding of the next one.
    """
    table = all_matrices(with_mtp_layers(m))
    if m.mtp_layers:
        table["joining"] = Matrices(2 * m.width, m.width, stored=m.mtp_layers, used=0)
    return table


def with_mtp_layers(m):
    """The model as if its layers of multi-token prediction were some of its last layers."""
    return replace(m, layers=m.layers + m.mtp_layers)


def mtp_parameters(m):
    """The parameters of all layers of multi-token prediction.

    They share the embedding and the output matrix with the model, and are not used to predict only
    the next token.
    """
    layers = stored_parameters(with_mtp_layers(m)) - stored_parameters(m)
    joining = 2 * m.width * m.width
    # The model's result and the embedding are normalised before, and the layer's result after it.
    normalisations = 3 * m.norm_vectors * m.width
    return layers + m.mtp_layers * (joining + normalisations)


def file_parameters(m):
    """How many parameters a file of the model has.

    What layers of multi-token prediction share with the model, a file has once more for each.
    """
    shared = 2 * m.vocabulary * m.width  # the embedding and the output matrix
    return stored_parameters(m) + mtp_parameters(m) + m.mtp_layers * shared


def model_file_bytes(m, dtype, block_formats):
    """Bytes of all parameters in a file, without its head.

    `block_formats` has the format of each kind of matrix that has one, by its name in
    `file_matrices`. All else, the biases of such matrices among it, is in `dtype`, but for a
    router's biases if the mixture has a dtype for them.
    """
    nbytes = file_parameters(m) * BYTES[dtype]
    table = file_matrices(m)
    if m.mixture and m.mixture.router_bias_dtype:
        biases = table["router"].stored * m.mixture.experts
        nbytes += biases * (BYTES[m.mixture.router_bias_dtype] - BYTES[dtype])
    for name, block_format in block_formats.items():
        group = table[name]
        shape = (group.outputs, group.inputs)  # a row has the weights of one output
        difference = block_bytes(shape, block_format) - tensor_bytes(shape, dtype)
        nbytes += group.stored * difference
    return nbytes


# Energy and money.


def energy_kwh(gpu_hours, watts, pue):
    """Kilowatt-hours of a data centre, if each GPU takes so many watts.

    `pue` is its power usage effectiveness: what the whole centre takes, over what its computers
    take. Of the computers only the GPUs are counted.
    """
    return gpu_hours * watts * pue / 1000


# The account: all terms, of one model on so many GPUs.


def account(m, gpus, tokens, recipe_name, stage, batch, sequence, recomputed, memory, peak, share):
    """All lines of the account, by name. `python accountant.py --help` says what each input is.

    The gradients of an earlier batch are in memory during the whole step, as when gradients are
    accumulated. A step that is a batch of its own has them at its end alone, so its forward and
    backward pass never hold more than the account. The optimizer can hold more than the account if
    it copies gradients to fp32 for a master copy: 4 bytes for each number.
    """
    if sequence is None:
        sequence = min(m.context, LONGEST)
    refuse_impossible_run(gpus, tokens, stage, memory, peak, share)
    refuse_impossible_step(m, batch, sequence, recomputed)
    parts = known_recipe(recipe_name)
    refuse_other_peak(parts, peak)

    # The names stand in this order in the account that --exact prints.
    if terms_suffice(m):
        lines = {"parameters": parameters(m)}
    else:
        lines = {"parameters": stored_parameters(m)}
        lines["parameters that a token uses"] = active_parameters(m)
    lines["tokens of a sequence"] = sequence
    state = state_bytes(lines["parameters"], parts, gpus, stage)
    lines |= {f"bytes of {part}": nbytes for part, nbytes in state.items()}
    together = sum(state.values())
    if step_is_counted(m):
        lines |= step_lines(m, gpus, parts, stage, batch, sequence, recomputed)
        together += lines["bytes that the step adds then"] + lines["bytes gathered then"]
        together += lines["bytes of the rest"]
        lines["bytes together"] = together
    elif kept_is_counted(m):
        lines |= loss_lines(m, parts, batch, sequence, recomputed)
        together += lines["bytes kept for the backward pass"] + lines["bytes of the loss"]
    lines["fits"] = fits_in(m, together, memory)
    lines |= time_lines(m, gpus, tokens, sequence, recomputed, peak, share)
    return lines


NOT_KNOWN = "not known"


def fits_in(m, together, memory):
    """Whether `together` bytes fit: "yes", "no", or not known.

    Of a model whose step is not counted, a step adds more than `together` has.
    """
    if together > memory:
        return "no"
    return "yes" if step_is_counted(m) else NOT_KNOWN


def step_lines(m, gpus, parts, stage, batch, sequence, recomputed):
    """The account's lines on what one GPU holds beside its state, at a step's fullest moment.

    `parts` has the dtypes of each part of the state, as `recipe` returns them.
    """
    (dtype,) = parts["parameters"]  # a recipe keeps one number for each of these two
    (gradient_dtype,) = parts["gradients"]
    added = any_moments(m, batch, sequence, dtype, gradient_dtype, recomputed)
    gathered = {moment: any_gathered_bytes(m, dtype, gpus, stage, moment) for moment in added}
    fullest = max(added, key=lambda moment: added[moment] + gathered[moment])
    return {
        "fullest moment of a step": fullest,
        "bytes that the step adds then": added[fullest],
        "bytes gathered then": gathered[fullest],
        "bytes of the rest": any_rest_bytes(m, batch, sequence, dtype),
    }


def loss_lines(m, parts, batch, sequence, recomputed):
    """The account's lines on what a step adds at its loss, if other moments are not counted.

    A later moment may be fuller, so with these bytes it may be known that a step does not fit, if
    the experts work one after the other, as `mixture_bytes` counts.
    """
    (dtype,) = parts["parameters"]  # a recipe keeps one number for each parameter
    kept = any_kept_bytes(m, batch, sequence, dtype, recomputed)
    last_norm = 2 * tensor_bytes((batch, sequence, m.width), dtype)  # its input and its result
    return {
        "bytes kept for the backward pass": kept + last_norm,
        "bytes of the loss": LOGIT_BYTES * batch * sequence * m.vocabulary,
    }


def time_lines(m, gpus, tokens, sequence, recomputed, peak, share):
    """The account's lines on the whole run: its FLOPs, its days, and what failures take of them."""
    flops_of_a_sequence = sequence_flops(m, sequence, recomputed)
    flops = flops_of_a_sequence * tokens / sequence
    failure_s = GPU_DAYS_PER_FAILURE * SECONDS_PER_DAY / gpus  # of all GPUs together
    save_every_s = interval(SAVE_S, failure_s)
    lost = lost_share(save_every_s, SAVE_S, failure_s, RESTART_S)
    return {
        "FLOPs": flops,
        "days without saves and failures": days(flops, gpus, peak, share),
        "seconds between two saves": save_every_s,
        "share that is lost, at most": min(lost, 1.0),  # the bound `lost` can be above 1
    }


def serving_lines(m, users, cached, gpus, bandwidth, peak):
    """The account's lines on one step of decoding, by name.

    The model and the caches of all users are spread evenly over `gpus` GPUs, without copies, each
    with that bandwidth and that peak. Each user has `cached` tokens in the cache.
    """
    refuse_unless_positive("users", users)
    refuse_unless_positive("cached", cached)
    refuse_unless_positive("serving", gpus)
    refuse_unless_positive("bandwidth", bandwidth)
    refuse_unless_positive("serving-peak", peak)
    if cached > m.context:
        raise ValueError(
            f"A user has at most {m.context:,} tokens in the cache here, as many as the model has "
            f"positions for; got {cached:,}."
        )
    weights_bytes = stored_parameters(m) * BYTES[SERVED_IN]
    caches_bytes = users * cache_bytes(m, cached, SERVED_IN)
    reading_s = decode_bytes(m, users, cached, SERVED_IN) / (gpus * bandwidth)
    computing_s = decode_flops(m, users, cached) / (gpus * peak)
    step_s = decode_seconds(m, users, cached, SERVED_IN, gpus * bandwidth, gpus * peak)
    return {
        "bytes of the cache for a token": cache_bytes(m, 1, SERVED_IN),
        "bytes of all caches": caches_bytes,
        "bytes of weights and caches, each GPU": (weights_bytes + caches_bytes) / gpus,
        "seconds of a step of decoding": step_s,
        "tokens a second for each user": 1 / step_s,
        "tokens a second for all users": users / step_s,
        "what bounds the step": "memory" if reading_s >= computing_s else "compute",
    }


def sending_lines(m, parts, gpus, stage, batch, sequence, recomputed, split, micro_batches):
    """The account's lines on what a step sends, by name, each as if it were split in one way alone.

    `parts` has the dtypes of each part of the state, as `recipe` returns them: activations are sent
    in that of the parameters. `split` GPUs share each layer, if the layers are tensor parallel, or
    each sequence, if they are context parallel, or they are the stages of a pipeline.
    """
    refuse_unless_positive("split", split)
    refuse_unless_positive("micro-batches", micro_batches)
    (dtype,) = parts["parameters"]  # a recipe keeps one number for each of these two
    (gradient_dtype,) = parts["gradients"]
    numbers = stored_parameters(m)
    stages = min(split, m.layers)  # each has at least one layer
    lines = {
        "bytes sent by data parallelism": data_parallel_bytes(
            numbers, BYTES[dtype], BYTES[gradient_dtype], gpus, stage
        ),
        "bytes sent by tensor parallelism": tensor_parallel_bytes(
            m, batch, sequence, dtype, recomputed, split
        ),
        "stages of a pipeline": stages,
        "bubble of a pipeline, over its work": pipeline_bubble(stages, micro_batches),
    }
    if stages > 1:
        sent = pipeline_parallel_bytes(m, batch, sequence, dtype, micro_batches)
        lines["bytes sent at a pipeline's border"] = sent
    if m.mixture and gpus > 1:
        sent = expert_parallel_bytes(m, batch, sequence, dtype, dtype)
        lines["bytes sent to experts, at most"] = sent
    lines["bytes sent by context parallelism"] = context_parallel_bytes(
        m, batch, sequence, dtype, split
    )
    return lines


def muon_lines(m, gpus, parts, stage, sequence, recomputed, step_tokens):
    """The account's lines on Muon in place of AdamW, by name.

    `parts` has the dtypes of each part of the state, as `recipe` returns them. Muon keeps its
    numbers in the dtype of the recipe's optimizer, or in fp32 if the recipe's keeps none. It runs
    once in a step, and all GPUs together train on `step_tokens` tokens in a step.
    """
    refuse_unless_positive("step-tokens", step_tokens)
    dtypes = parts["optimizer"]
    dtype = dtypes[0] if dtypes else "fp32"
    numbers = muon_state_numbers(m)
    added_flops = 0
    for group in muon_matrices(m):
        added_flops += group.stored * newton_schulz_flops(group.inputs, group.outputs, MUON_STEPS)
    if stage >= SHARDED_FROM["optimizer"]:  # each matrix is the work of one GPU
        numbers = (numbers + gpus - 1) // gpus
    else:  # each GPU does all of it
        added_flops *= gpus
    flops_of_a_step = sequence_flops(m, sequence, recomputed) * step_tokens / sequence
    return {
        "bytes of the optimizer, with Muon": numbers * BYTES[dtype],
        "tokens of a step": step_tokens,
        "share of FLOPs that Muon adds": added_flops / flops_of_a_step,
    }


def file_lines(m):
    """The account's lines on a file of the model: its bytes, by the format that it is in.

    It is all in SERVED_IN, or the layers' matrices are in one of BLOCK_FORMATS.
    """
    lines = {
        "parameters in a file": file_parameters(m),
        f"bytes of a file in {SERVED_IN}": model_file_bytes(m, SERVED_IN, {}),
    }
    for block_format in BLOCK_FORMATS:
        formats = {}
        for name in file_matrices(m):
            if name not in ("router", "output", "joining"):
                formats[name] = block_format
        lines[f"bytes with layers in {block_format}"] = model_file_bytes(m, SERVED_IN, formats)
    return lines


def cost_lines(run_days, gpus, watts, pue, price):
    """The account's lines on the run's energy and its price, by name."""
    refuse_unless_positive("watts", watts)
    refuse_unless_positive("price", price)
    if not 1 <= pue < math.inf:
        raise ValueError(
            f"pue is at least 1, since the computers are part of the data centre; got {pue!r}."
        )
    gpu_hours = run_days * 24 * gpus
    return {
        "GPU hours": gpu_hours,
        "kilowatt-hours": energy_kwh(gpu_hours, watts, pue),
        "dollars": gpu_hours * price,
    }


def refuse_impossible_run(gpus, tokens, stage, memory, peak, share):
    """Raise a ValueError on the first input that no run can have."""
    refuse_unless_positive("gpus", gpus)
    refuse_unless_positive("tokens", tokens)
    refuse_unless_positive("memory", memory)
    refuse_unless_positive("peak", peak)
    refuse_unless_positive("share", share)
    if share > 1:
        raise ValueError(f"share is a share of the peak, at most 1; got {share!r}.")
    if stage not in range(4):
        raise ValueError(f"ZeRO's stage is 0, 1, 2 or 3; got {stage!r}.")


def refuse_impossible_step(m, batch, sequence, recomputed):
    """Raise a ValueError on the first input that no step of this model can have."""
    refuse_unless_positive("batch", batch)
    refuse_unless_positive("sequence", sequence)
    if sequence > m.context:
        raise ValueError(
            f"A sequence has at most {m.context:,} tokens here, as many as the model has positions "
            f"for; got {sequence:,}."
        )
    if not 0 <= recomputed <= m.layers:
        raise ValueError(
            f"Of {m.layers} layers, 0 to {m.layers} can be recomputed; got {recomputed!r}."
        )


def refuse_unless_positive(name, value):
    """Raise a ValueError if the value is 0 or less, infinite, or NaN."""
    if not 0 < value < math.inf:
        raise ValueError(f"{name} is a number above 0; got {value!r}.")


def refuse_other_peak(parts, peak):
    """Raise a ValueError if the recipe's parameters do not have 16 bits, but the peak is PEAK.

    PEAK, the default of --peak, is a peak of 16 bits.
    """
    (dtype,) = parts["parameters"]
    if peak == PEAK and BYTES[dtype] != 2:
        raise ValueError(
            f"The recipe computes in {dtype}, and {PEAK:.4g} FLOP/s is a peak of 16 bits: "
            "say --peak."
        )


# What a recipe's name can begin with.
FORMATS = ("fp64", "fp32", "fp16", "bf16", "fp16+master", "bf16+master")


def known_recipe(name):
    """What `recipe` returns for that name. ValueError, with the known names, for another one."""
    formats_and_optimizer, comma, gradients = name.partition(", ")
    formats, _, optimizer = formats_and_optimizer.partition(" ")
    known = formats in FORMATS and optimizer in OPTIMIZER_NUMBERS
    if comma and gradients != "fp32 gradients":
        known = False
    if not known:
        raise ValueError(
            f"A recipe is one of {', '.join(FORMATS)}, then one of {', '.join(OPTIMIZER_NUMBERS)}, "
            f'and perhaps ", fp32 gradients"; got {name!r}.'
        )
    return recipe(name)


# The shape of a published model, from its config.json.

OTHER_NAMES = {  # by kind, names of its own for fields, and what the others call these
    "gpt2": {
        "n_layer": "num_hidden_layers",
        "n_embd": "hidden_size",
        "n_head": "num_attention_heads",
        "n_inner": "intermediate_size",
        "n_positions": "max_position_embeddings",
    },
    # transformers writes this name since its version 5, and published files have the other one.
    "qwen3_moe": {"num_local_experts": "num_experts"},
    "deepseek_v3": {"num_mtp_layers": "num_nextn_predict_layers"},
}
# What the transformers library takes where a config.json says nothing. First what families share.
QWEN_WINDOW = {"sliding_window": 4096, "use_sliding_window": False, "max_window_layers": 28}
GEMMA_DEFAULTS = {"head_dim": 256, "tie_word_embeddings": True}
DEEPSEEK_DEFAULTS = {
    "kv_lora_rank": 512,
    "q_lora_rank": 1536,
    "qk_nope_head_dim": 128,
    "qk_rope_head_dim": 64,
    "v_head_dim": 128,
}
DEFAULTS = {
    "gpt2": {"tie_word_embeddings": True},
    "llama": {},
    "mistral": {"num_key_value_heads": 8, "sliding_window": 4096},
    "qwen2": {**QWEN_WINDOW, "num_key_value_heads": 32},
    "qwen3": {**QWEN_WINDOW, "num_key_value_heads": 32, "head_dim": 128},
    "gemma": {**GEMMA_DEFAULTS, "num_key_value_heads": 16},
    "gemma2": {**GEMMA_DEFAULTS, "num_key_value_heads": 4, "sliding_window": 4096},
    "gemma3_text": {
        **GEMMA_DEFAULTS,
        "num_key_value_heads": 4,
        "sliding_window": 4096,
        "sliding_window_pattern": 6,
    },
    "mixtral": {"num_key_value_heads": 8, "num_local_experts": 8, "num_experts_per_tok": 2},
    "qwen3_moe": {
        "num_key_value_heads": 4,
        "num_experts": 128,
        "num_experts_per_tok": 8,
        "moe_intermediate_size": 768,
        "sliding_window": 4096,
        "use_sliding_window": False,
    },
    "gpt_oss": {
        "num_key_value_heads": 8,
        "head_dim": 64,
        "sliding_window": 128,
        "num_local_experts": 128,
        "num_experts_per_tok": 4,
        "attention_bias": True,
    },
    "deepseek_v2": {
        **DEEPSEEK_DEFAULTS,
        "first_k_dense_replace": 0,
        "n_routed_experts": 64,
        "n_shared_experts": 2,
        "moe_intermediate_size": 1407,
    },
    "deepseek_v3": {
        **DEEPSEEK_DEFAULTS,
        "first_k_dense_replace": 3,
        "n_routed_experts": 256,
        "n_shared_experts": 1,
        "num_experts_per_tok": 8,
        "moe_intermediate_size": 2048,
    },
}
# Kimi K2 has DeepSeek-V3's fields, and says all of them.
DEFAULTS["kimi_k2"] = DEFAULTS["deepseek_v3"]
LATENT_KINDS = ("deepseek_v2", "deepseek_v3", "kimi_k2")
FP32_ROUTER_BIAS_KINDS = ("deepseek_v3", "kimi_k2")  # whatever the rest of their file is in
HEAD_NORM_KINDS = ("qwen3", "qwen3_moe", "gemma3_text")
FOUR_NORM_KINDS = ("gemma2", "gemma3_text")  # a layer has four normalisations
# Kinds for which attention_bias is counted.
ATTENTION_BIAS_KINDS = (
    "llama",
    "qwen3",
    "qwen3_moe",
    "gpt_oss",
    "gemma",
    "gemma2",
    "gemma3_text",
)
# Kinds in which a window is in all layers, or in some.
ALL_LAYERS_WINDOW_KINDS = ("mistral", "mixtral", "qwen3_moe")
SOME_LAYERS_WINDOW_KINDS = ("qwen2", "qwen3", "gemma2", "gemma3_text", "gpt_oss")
# By kind, the fields with the number of experts in a layer, and with the width inside one.
EXPERT_FIELDS = {
    "mixtral": ("num_local_experts", "intermediate_size"),
    "gpt_oss": ("num_local_experts", "intermediate_size"),
    "qwen3_moe": ("num_experts", "moe_intermediate_size"),
    "deepseek_v2": ("n_routed_experts", "moe_intermediate_size"),
    "deepseek_v3": ("n_routed_experts", "moe_intermediate_size"),
    "kimi_k2": ("n_routed_experts", "moe_intermediate_size"),
}

NOT_COUNTED = (  # a field with such a word in its name changes the account
    "expert",
    "moe",
    "mlp_only",  # as in mlp_only_layers
    "sparse_step",  # as in decoder_sparse_step
    "lora",
    "quantization",
    "cross_attention",
    "mlp_bias",  # biases in the feed-forward
    "qk_norm",
    "nextn",  # as in num_nextn_predict_layers
    "pruned",
    "bidirectional",  # a query that looks at later tokens, too
    "mlp_layer_types",
    "vision_config",
    "is_encoder_decoder",
)
DEEPSEEK_COUNTED = {
    "n_routed_experts",
    "n_shared_experts",
    "num_experts_per_tok",
    "moe_intermediate_size",
    "kv_lora_rank",
    "q_lora_rank",
    "num_nextn_predict_layers",  # layers for a second token ahead, which only a file has
    "quantization_config",  # the format of the file; it changes no number of parameters
}
COUNTED = {  # fields with such a word whose effect on the account is known, for each kind
    "mixtral": {"num_local_experts", "num_experts_per_tok"},
    "qwen3_moe": {"num_experts", "num_experts_per_tok", "moe_intermediate_size"},
    "gpt_oss": {
        "num_local_experts",
        "num_experts_per_tok",
        "experts_per_token",  # the same number again
        "quantization_config",
    },
    "deepseek_v2": DEEPSEEK_COUNTED,
    "deepseek_v3": DEEPSEEK_COUNTED,
    "kimi_k2": DEEPSEEK_COUNTED,
}
# A field of NOT_COUNTED that changes nothing if it has this value.
WITHOUT_EFFECT = {"moe_layer_freq": 1, "decoder_sparse_step": 1}


def model_from(config):
    """The model that a config.json describes, of a kind that DEFAULTS has."""
    kind = kind_of(config)
    fields = fields_of(kind, config)
    refuse_unknown(kind, fields)
    refuse_other_layers(fields)
    refuse_other_windows(kind, fields)
    refuse_other_output(fields)

    is_gpt2 = kind == "gpt2"
    layers = size_in(fields, "num_hidden_layers")
    window, window_layers = windows_in(kind, fields, layers)
    latent = latent_in(kind, fields)
    default_inner = None  # then a config has to give its own
    if is_gpt2:
        default_inner = 4 * size_in(fields, "hidden_size")
    return Model(
        layers=layers,
        width=size_in(fields, "hidden_size"),
        **heads_in(fields, latent),
        inner=size_in(fields, "intermediate_size", default_inner),
        vocabulary=size_in(fields, "vocab_size"),
        context=size_in(fields, "max_position_embeddings"),
        gated=not is_gpt2,
        biases=biases_in(kind, fields),
        norm_vectors=2 if is_gpt2 else 1,
        head_norms=kind in HEAD_NORM_KINDS,
        learned_positions=is_gpt2,
        tied=flag_in(fields, "tie_word_embeddings"),
        norms_per_layer=4 if kind in FOUR_NORM_KINDS else 2,
        sinks=kind == "gpt_oss",
        window=window,
        window_layers=window_layers,
        mtp_layers=count_in(fields, "num_nextn_predict_layers"),
        mixture=mixture_in(kind, fields, layers),
        latent=latent,
    )


def fields_of(kind, config):
    """The config's fields, under the names that most kinds use, and defaults of those left out."""
    fields = dict(DEFAULTS[kind])
    other_names = OTHER_NAMES.get(kind, {})
    for name, value in config.items():
        known_name = other_names.get(name, name)
        if known_name != name and config.get(known_name, value) != value:
            raise ValueError(f"{name} and {known_name} are one number, and the config has two.")
        fields[known_name] = value
    return fields


def heads_in(fields, latent):
    """The sizes of attention's heads, by the model's names for them."""
    width = size_in(fields, "hidden_size")
    heads = size_in(fields, "num_attention_heads")
    kv_heads = size_in(fields, "num_key_value_heads", heads)
    refuse_unless_multiple("num_attention_heads", heads, "num_key_value_heads", kv_heads)
    if latent:
        head_width = latent.content_width + latent.position_width
    elif fields.get("head_dim") is None:  # then it is hidden_size / num_attention_heads
        refuse_unless_multiple("hidden_size", width, "num_attention_heads", heads)
        head_width = width // heads
    else:
        head_width = size_in(fields, "head_dim")
    return {"heads": heads, "kv_heads": kv_heads, "head_width": head_width}


def kind_of(config):
    """The config's model_type. ValueError, with the known types, for another one."""
    if not isinstance(config, dict):
        raise ValueError(
            f"A config.json holds one object, in {{ }}; this one holds a {type(config).__name__}."
        )
    kind = config.get("model_type")
    if not isinstance(kind, str) or kind not in DEFAULTS:
        known = ", ".join(DEFAULTS)
        raise ValueError(f"This reads the config.json of {known}; its model_type is {kind!r}.")
    return kind


def mixture_in(kind, fields, layers):
    """The mixture of experts that the config describes, or None."""
    if kind not in EXPERT_FIELDS:
        return None
    experts_name, inner_name = EXPERT_FIELDS[kind]
    experts = size_in(fields, experts_name)
    inner = size_in(fields, inner_name)
    used = size_in(fields, "num_experts_per_tok")
    if fields.get("experts_per_token", used) != used:
        raise ValueError("experts_per_token and num_experts_per_tok are not the same.")
    if used > experts:
        raise ValueError(f"A token goes to {used:,} experts, and a layer has {experts:,}.")
    return Mixture(
        experts=experts,
        used=used,
        inner=inner,
        shared_inner=count_in(fields, "n_shared_experts") * inner,
        dense_layers=min(layers, count_in(fields, "first_k_dense_replace")),
        router_bias=kind == "gpt_oss" or kind in FP32_ROUTER_BIAS_KINDS,
        router_bias_dtype="fp32" if kind in FP32_ROUTER_BIAS_KINDS else "",
    )


def latent_in(kind, fields):
    """The latent attention that the config describes, or None."""
    if kind not in LATENT_KINDS:
        return None
    return Latent(
        query_rank=count_in(fields, "q_lora_rank"),
        rank=size_in(fields, "kv_lora_rank"),
        content_width=size_in(fields, "qk_nope_head_dim"),
        position_width=size_in(fields, "qk_rope_head_dim"),
        value_width=size_in(fields, "v_head_dim"),
    )


def windows_in(kind, fields, layers):
    """The window of attention, and how many layers have it; (0, 0) if none has one."""
    if not has_window(fields):
        return 0, 0
    kinds_of_layers = fields.get("layer_types")
    if kind in ALL_LAYERS_WINDOW_KINDS:
        window_layers = layers
    elif kinds_of_layers:
        window_layers = kinds_of_layers.count("sliding_attention")
    else:
        window_layers = usual_window_layers(kind, fields, layers)
    if window_layers == 0:
        return 0, 0
    return size_in(fields, "sliding_window"), window_layers


def has_window(fields):
    """Whether the config gives layers a window."""
    if fields.get("sliding_window") is None:
        return False
    return flag_in(fields, "use_sliding_window", True)


def usual_window_layers(kind, fields, layers):
    """How many layers have a window where the config has no layer_types."""
    if kind in ("gemma2", "gpt_oss"):  # the first layer, the third, and so on
        return (layers + 1) // 2
    if kind == "gemma3_text":  # of each group of so many layers, the last one has none
        return layers - layers // size_in(fields, "sliding_window_pattern")
    return layers - min(layers, count_in(fields, "max_window_layers"))  # from that layer on


def biases_in(kind, fields):
    """The names of the matrices that have a bias."""
    if kind == "gpt2":
        return ("query", "key", "value", "out", "up", "down")
    if kind == "qwen2":
        return ("query", "key", "value")
    attention = ATTENTION if flag_in(fields, "attention_bias") else ()
    if kind == "gpt_oss":  # its experts have biases, whatever attention has
        return (*attention, "up", "gate", "down")
    return attention


def size_in(fields, name, otherwise=None):
    """The field of that name, or `otherwise` where the config has none.

    ValueError if there is neither, or if the field is no whole number from 1 up.
    """
    value = fields.get(name)
    if value is None:
        value = otherwise
    if value is None:
        raise ValueError(f"The config has no {name}.")
    if type(value) is not int or value < 1:  # type, since True is an int
        raise ValueError(f"{name} is a whole number from 1 up; the config has {value!r}.")
    return value


def flag_in(fields, name, otherwise=False):
    """The field of that name, which is true or false, or `otherwise` where the config has none."""
    value = fields.get(name)
    if value is None:
        return otherwise
    if not isinstance(value, bool):
        raise ValueError(f"{name} is true or false; the config has {value!r}.")
    return value


def count_in(fields, name):
    """The field of that name, which may be 0, or 0 where the config has none."""
    if fields.get(name) in (None, 0):
        return 0
    return size_in(fields, name)


def refuse_unless_multiple(name, value, divisor_name, divisor):
    """Raise a ValueError if the value is no multiple of the divisor."""
    if value % divisor:
        raise ValueError(f"{name} {value:,} is no multiple of {divisor_name}, {divisor:,}.")


def has_no_effect(name, value):
    """Whether the field, with this value, leaves the account as it is."""
    if name in WITHOUT_EFFECT:
        return value == WITHOUT_EFFECT[name]
    return not value


def refuse_unknown(kind, fields):
    """Raise a ValueError on a field whose effect on the account this program cannot count."""
    for name, value in fields.items():
        if name in COUNTED.get(kind, ()) or has_no_effect(name, value):
            continue
        if any(word in name for word in NOT_COUNTED):
            raise ValueError(
                f"The config has {name}: this program does not know what that changes."
            )
    if fields.get("attention_bias") and kind not in ATTENTION_BIAS_KINDS:
        raise ValueError(
            f"The config has attention_bias, which is not counted of a model of type {kind}."
        )


def refuse_other_layers(fields):
    """Raise a ValueError on a field layer_types that this program cannot count."""
    known = ("full_attention", "sliding_attention")
    layers = fields.get("layer_types") or []
    if not isinstance(layers, list) or any(layer not in known for layer in layers):
        raise ValueError(
            f"layer_types names {' and '.join(known)}; this program does not know others."
        )
    number = fields.get("num_hidden_layers")
    if layers and len(layers) != number:
        raise ValueError(
            f"layer_types has {len(layers)} layers, and num_hidden_layers is {number!r}."
        )


def refuse_other_windows(kind, fields):
    """Raise a ValueError if the config says of windows what models of its kind do not have."""
    layers = fields.get("layer_types") or []
    if not has_window(fields):
        if "sliding_attention" in layers:
            raise ValueError("layer_types names sliding_attention, and the config has no window.")
        return
    if kind not in ALL_LAYERS_WINDOW_KINDS + SOME_LAYERS_WINDOW_KINDS:
        raise ValueError(
            f"The config has sliding_window, which a model of type {kind} does not know."
        )
    if kind in ALL_LAYERS_WINDOW_KINDS and "full_attention" in layers:
        raise ValueError(f"All layers of a model of type {kind} have the window.")


def refuse_other_output(fields):
    """Raise a ValueError if the model's output is not a logit for each possible next token."""
    for name in fields.get("architectures") or []:
        if not str(name).endswith(("ForCausalLM", "LMHeadModel")):
            raise ValueError(
                f"Its architecture is {name}: this program counts those that predict the next "
                "token, whose names end in ForCausalLM or LMHeadModel."
            )


# The command line.


def parser():
    """The parser of the command line, with all options."""
    # The help shows a default such as "15e12" as it stands, and argparse makes a float of it.
    options = argparse.ArgumentParser(
        description="What a transformer takes: the bytes, FLOPs and days of training it, and what "
        "serving it costs.",
        epilog=f"A save takes {SAVE_S} s, and a restart {RESTART_S} s: assumed.",
    )
    options.add_argument(
        "config", help=f"a config.json whose model_type is one of {', '.join(DEFAULTS)}"
    )
    options.add_argument("--gpus", type=int, default=8, help="GPUs (default: %(default)s)")
    options.add_argument(
        "--tokens", type=float, default="15e12", help="tokens to train on (default: %(default)s)"
    )
    options.add_argument(
        "--recipe",
        default="bf16+master adamw",
        help="the formats of each part, and the optimizer (default: %(default)s)",
    )
    options.add_argument(
        "--stage",
        type=int,
        default=3,
        help="of ZeRO: 3 shards everything, 0 nothing (default: %(default)s)",
    )
    options.add_argument(
        "--batch",
        type=int,
        default=1,
        help="sequences on each GPU at a time (default: %(default)s)",
    )
    options.add_argument(
        "--sequence",
        type=int,
        help=f"tokens of a sequence (default: the model's context, at most {LONGEST})",
    )
    options.add_argument(
        "--recomputed",
        type=int,
        default=0,
        help="layers that are recomputed (default: %(default)s)",
    )
    options.add_argument(
        "--memory", type=float, default="80e9", help="bytes of a GPU (default: %(default)s)"
    )
    options.add_argument(
        "--peak",
        type=float,
        default=PEAK,
        help=f"dense FLOP/s of a GPU in the recipe's format (default: {typed(PEAK)}, "
        "an H100's in 16 bits)",
    )
    options.add_argument(
        "--share",
        type=float,
        default=0.4,
        help="of the peak that the counted FLOPs reach (default: %(default)s, assumed)",
    )
    add_serving(options)
    add_costs(options)
    add_sending(options)
    options.add_argument(
        "--all", action="store_true", help="also report what is sent, Muon, and the bytes of a file"
    )
    options.add_argument(
        "--exact", action="store_true", help="print every number as it was counted"
    )
    return options


def add_sending(options):
    """Give the parser the options on what is sent."""
    options.add_argument(
        "--split",
        type=int,
        default=8,
        help="GPUs that share a layer, a sequence or a pipeline (default: %(default)s)",
    )
    options.add_argument(
        "--micro-batches",
        type=int,
        default=32,
        help="of --batch sequences each, that go through a pipeline in a step (default: "
        "%(default)s)",
    )
    options.add_argument(
        "--step-tokens",
        type=int,
        help="tokens of a step on all GPUs (default: --gpus times --batch times --sequence)",
    )


def add_serving(options):
    """Give the parser the options on serving."""
    options.add_argument(
        "--users", type=int, default=1, help="users served at a time (default: %(default)s)"
    )
    options.add_argument(
        "--cached",
        type=int,
        help="tokens in the cache of each user (default: as many as a sequence has)",
    )
    options.add_argument(
        "--serving",
        type=int,
        default=8,
        help="GPUs that serve one copy of the model (default: %(default)s)",
    )
    options.add_argument(
        "--serving-peak",
        type=float,
        help=f"dense FLOP/s of a GPU in {SERVED_IN} (default: --peak if that is of 16 bits, or "
        f"else {typed(PEAK)})",
    )
    options.add_argument(
        "--bandwidth",
        type=float,
        default=BANDWIDTH,
        help=f"bytes a second from a GPU's memory (default: {typed(BANDWIDTH)}, an H100 SXM's)",
    )


def add_costs(options):
    """Give the parser the options on energy and money."""
    options.add_argument(
        "--watts",
        type=float,
        default=WATTS,
        help="of a GPU (default: %(default)s, an H100 SXM's at most)",
    )
    options.add_argument(
        "--pue",
        type=float,
        default=PUE,
        help="what the data centre takes, over what its computers take (default: %(default)s, "
        "assumed)",
    )
    options.add_argument(
        "--price",
        type=float,
        default=PRICE,
        help="dollars for a GPU hour (default: %(default)s, assumed)",
    )


def config_in(path):
    """The value in the JSON file at `path`. ValueError, with the reason, if it cannot be read."""
    try:
        with open(path, encoding="utf-8") as file:
            return json.load(file)
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is no text in UTF-8: {error}.") from error
    except json.JSONDecodeError as error:
        raise ValueError(f"{path} is no JSON: {error}.") from error
    except RecursionError as error:
        raise ValueError(f"{path} is nested too deeply for a config.json.") from error


def main():
    """Print the account; exit with a sentence if an input is impossible."""
    command_line = parser()
    asked = command_line.parse_args()  # exits, with a sentence, if an option is unknown
    try:
        printed = answer(asked)
    except ValueError as error:
        command_line.exit(2, f"{error}\n")  # prints the sentence alone
    except (OverflowError, ZeroDivisionError):
        too_large = "A size of this model, or of this run, is too large or too small to count with."
        command_line.exit(2, f"{too_large}\n")
    try:
        print("\n".join(printed), flush=True)
    except BrokenPipeError:  # who reads it, such as `head`, has enough of it
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def answer(asked):
    """Return the printed lines: for people, or with --exact every number as it was counted."""
    m = model_from(config_in(asked.config))
    lines = account(
        m,
        gpus=asked.gpus,
        tokens=asked.tokens,
        recipe_name=asked.recipe,
        stage=asked.stage,
        batch=asked.batch,
        sequence=asked.sequence,
        recomputed=asked.recomputed,
        memory=asked.memory,
        peak=asked.peak,
        share=asked.share,
    )
    fill_in(asked, lines["tokens of a sequence"])
    lines |= lines_beside_the_run(m, lines, asked)
    refuse_infinite(lines)
    if asked.exact:
        return [f"{name:<38}{written(value):>26}" for name, value in lines.items()]
    reports = [
        model_report(m, lines),
        memory_report(m, lines, asked),
        time_report(m, lines),
        serving_report(m, lines, asked),
        cost_report(lines),
    ]
    if asked.all:
        reports += [sending_report(lines, asked), muon_report(lines), file_report(lines)]
    reports.append(assumptions(m, lines, asked))
    return "\n\n".join("\n".join(report) for report in reports).split("\n")


def refuse_infinite(lines):
    """Raise an OverflowError if a number among the lines is infinite, or NaN."""
    for value in lines.values():
        if not isinstance(value, str) and not math.isfinite(value):
            raise OverflowError


def lines_beside_the_run(m, lines, asked):
    """The lines on what follows a run or stands beside it: serving, costs, sending, Muon, files."""
    sequence = lines["tokens of a sequence"]
    parts = recipe(asked.recipe)
    serving = serving_lines(
        m,
        users=asked.users,
        cached=asked.cached,
        gpus=asked.serving,
        bandwidth=asked.bandwidth,
        peak=asked.serving_peak,
    )
    run_days = lines["days without saves and failures"]
    costs = cost_lines(run_days, asked.gpus, asked.watts, asked.pue, asked.price)
    sending = sending_lines(
        m,
        parts,
        gpus=asked.gpus,
        stage=asked.stage,
        batch=asked.batch,
        sequence=sequence,
        recomputed=asked.recomputed,
        split=asked.split,
        micro_batches=asked.micro_batches,
    )
    muon = muon_lines(
        m,
        asked.gpus,
        parts,
        stage=asked.stage,
        sequence=sequence,
        recomputed=asked.recomputed,
        step_tokens=asked.step_tokens,
    )
    return serving | costs | sending | muon | file_lines(m)


def fill_in(asked, sequence):
    """Give the options that were not asked their values, which follow from others."""
    if asked.cached is None:
        asked.cached = sequence
    if asked.step_tokens is None:
        asked.step_tokens = asked.gpus * asked.batch * sequence
    if asked.serving_peak is None:
        (dtype,) = recipe(asked.recipe)["parameters"]
        asked.serving_peak = asked.peak if BYTES[dtype] == BYTES[SERVED_IN] else PEAK


# What is printed, for people: a number with its unit, and the function that counted it.


def model_report(m, lines):
    """The lines of the report on the model's size."""
    wide = f"{m.layers} layers, {m.width:,} wide"
    stored = count_text(lines["parameters"])
    rows = [row(f"The model: {wide}", "", "counted by")]
    if terms_suffice(m):
        return [*rows, row("  parameters", stored, "parameters")]
    rows.append(row("  parameters", stored, "stored_parameters"))
    if m.mixture:
        used = count_text(lines["parameters that a token uses"])
        rows.append(row("  of these, a token uses", used, "active_parameters"))
    return rows


def memory_report(m, lines, asked):
    """The lines of the report on the bytes of each GPU, and whether they fit."""
    state = []
    for part in ("parameters", "gradients", "optimizer", "master"):
        state.append(row(f"  {part}", bytes_text(lines[f"bytes of {part}"]), "state_bytes"))
    if not step_is_counted(m):
        said = {  # it is never "yes", because not all is known of what a step adds
            "no": "This alone does not fit",
            NOT_KNOWN: "Whether it fits is not known, since a step adds to this",
        }
        has = f"{said[lines['fits']]}: each GPU has {bytes_text(asked.memory)}."
        if "bytes of the loss" not in lines:
            return ["On each GPU, before a step", *state, has]
        kept = bytes_text(lines["bytes kept for the backward pass"])
        loss = bytes_text(lines["bytes of the loss"])
        state.append(row("  kept for the backward pass", kept, "loss_lines"))
        state.append(row("  the loss", loss, "loss_lines"))
        return ["On each GPU, at a step's loss", *state, has]

    fullest = lines["fullest moment of a step"]
    rows = [f"On each GPU, at the fullest moment of a step, {fullest}", *state]
    added_by = "step_bytes" if fullest == AT_LOSS else "moments"
    gathered_by = "gathered_bytes"
    rest_by = "rest_bytes"
    if m.mixture:
        added_by = "any_moments"
        gathered_by = "any_gathered_bytes"
        rest_by = "any_rest_bytes"
    added = bytes_text(lines["bytes that the step adds then"])
    gathered = bytes_text(lines["bytes gathered then"])
    rest = bytes_text(lines["bytes of the rest"])
    together = bytes_text(lines["bytes together"])
    rows += [
        row("  what the step adds", added, added_by),
        row("  gathered from the other GPUs", gathered, gathered_by),
        row("  the rest, at most", rest, rest_by),
        row("  together", together, ""),
    ]
    fits = "It fits" if lines["fits"] == "yes" else "It does not fit"
    return [*rows, f"{fits}: each GPU has {bytes_text(asked.memory)}."]


def time_report(m, lines):
    """The lines of the report on the FLOPs and the time of the whole run."""
    flops_by = "step_flops"
    if m.window_layers or not terms_suffice(m):
        flops_by = "sequence_flops"
    run_s = lines["days without saves and failures"] * SECONDS_PER_DAY
    lost = lines["share that is lost, at most"]
    percent = "100" if lost == 1 else f"{100 * lost:.2g}"
    return [
        "The whole run",
        row("  FLOPs", power_text(lines["FLOPs"]), flops_by),
        row("  without saves and failures", time_text(run_s), "days"),
        row("  between two saves", time_text(lines["seconds between two saves"]), "interval"),
        row("  lost to saves and failures, at most", f"{percent} %", "lost_share"),
    ]


def serving_report(m, lines, asked):
    """The lines of the report on decoding: one token for each user at a time."""
    step_ms = 1000 * lines["seconds of a step of decoding"]
    on_each = lines["bytes of weights and caches, each GPU"]
    fit = "fit" if on_each <= asked.memory else "do not fit"
    bound = f"{lines['what bounds the step']}-bound"
    # Of a mixture, several users may go to fewer experts than the mean.
    bounded = "about" if m.mixture and asked.users > 1 else "at least"
    which = "a token in the window" if m.window_layers else "for each token"
    for_a_token = bytes_text(lines["bytes of the cache for a token"])
    tokens_a_second = three_digits(lines["tokens a second for each user"])
    return [
        f"Serving it in {SERVED_IN}, on {plural(asked.serving, 'GPU')}",
        row(f"  the cache, {which}", for_a_token, "cache_bytes"),
        row("  the caches of all users", bytes_text(lines["bytes of all caches"]), "cache_bytes"),
        row("  weights and caches, on each GPU", bytes_text(on_each), ""),
        row(f"  a token takes, {bounded}", f"{three_digits(step_ms)} ms", "decode_seconds"),
        row("  which are tokens a second, for each", tokens_a_second, ""),
        f"Weights and caches {fit}: each GPU has {bytes_text(asked.memory)}. Decoding is {bound}.",
    ]


def cost_report(lines):
    """The lines of the report on energy and money."""
    return [
        "What it takes, without saves and failures",
        row("  GPU hours", count_text(lines["GPU hours"]), ""),
        row("  energy", energy_text(lines["kilowatt-hours"]), "energy_kwh"),
        row("  money", f"${count_text(lines['dollars'])}", ""),
    ]


def sending_report(lines, asked):
    """The lines of the report on what each GPU sends, for each way to split the work."""
    stages = lines["stages of a pipeline"]
    data_parallel = bytes_text(lines["bytes sent by data parallelism"])
    tensor_parallel = bytes_text(lines["bytes sent by tensor parallelism"])
    split = plural(asked.split, "GPU")
    rows = [
        "What each GPU sends in a step, if the work is split in this way alone",
        row("  data parallel, with ZeRO", data_parallel, "data_parallel_bytes"),
        row(f"  tensor parallel, {split}", tensor_parallel, "tensor_parallel_bytes"),
    ]
    if stages > 1:
        bubble = three_digits(100 * lines["bubble of a pipeline, over its work"])
        at_border = bytes_text(lines["bytes sent at a pipeline's border"])
        rows += [
            row(f"  a pipeline of {stages}, at a border", at_border, "pipeline_parallel_bytes"),
            row("  its bubble, over its work", f"{bubble} %", "pipeline_bubble"),
        ]
    if "bytes sent to experts, at most" in lines:
        to_experts = bytes_text(lines["bytes sent to experts, at most"])
        rows.append(row("  to experts and back, at most", to_experts, "expert_parallel_bytes"))
    context_parallel = bytes_text(lines["bytes sent by context parallelism"])
    rows.append(row(f"  context parallel, {split}", context_parallel, "context_parallel_bytes"))
    return rows


def muon_report(lines):
    """The lines of the report on Muon in place of the recipe's optimizer."""
    optimizer = bytes_text(lines["bytes of the optimizer, with Muon"])
    added = three_digits(100 * lines["share of FLOPs that Muon adds"])
    return [
        "With Muon for the layers' matrices, and AdamW for all else",
        row("  optimizer, on each GPU", optimizer, "muon_state_numbers"),
        row("  FLOPs more, of a step's", f"{added} %", "newton_schulz_flops"),
    ]


def file_report(lines):
    """The lines of the report on files of the model."""
    rows = [f"Its file, in {SERVED_IN}, or with its layers' matrices, but routers, in blocks"]
    numbers = count_text(lines["parameters in a file"])
    rows.append(row("  parameters", numbers, "file_parameters"))
    whole = bytes_text(lines[f"bytes of a file in {SERVED_IN}"])
    rows.append(row(f"  {SERVED_IN}", whole, "model_file_bytes"))
    for block_format in BLOCK_FORMATS:
        in_blocks = bytes_text(lines[f"bytes with layers in {block_format}"])
        rows.append(row(f"  {block_format}", in_blocks, "block_bytes"))
    return rows


SHARDED = (  # by ZeRO's stage
    "every GPU holds everything",
    "optimizer and master are sharded",
    "all but the parameters is sharded",
    "everything is sharded",
)


def assumptions(m, lines, asked):
    """The lines of the report on what was asked or assumed; on the right is what changes it."""
    sequence = lines["tokens of a sequence"]
    batch = plural(asked.batch, "sequence")
    peak = f"a GPU does {three_digits(asked.peak / 1e12)} TFLOP/s at most, dense"
    in_file = "in this file"
    return [
        choice("This holds for", "to change it"),
        choice(f"  {count_text(asked.tokens)} tokens", f"--tokens {typed(asked.tokens)}"),
        choice(f"  {plural(asked.gpus, 'GPU')}", f"--gpus {asked.gpus}"),
        choice(f"  of {bytes_text(asked.memory)} each", f"--memory {typed(asked.memory)}"),
        choice(f"  {batch} on each GPU at a time", f"--batch {asked.batch}"),
        choice(f"  of {sequence:,} tokens", f"--sequence {sequence}"),
        choice(f"  recipe {asked.recipe}", f'--recipe "{asked.recipe}"'),
        choice(f"  ZeRO {asked.stage}: {SHARDED[asked.stage]}", f"--stage {asked.stage}"),
        choice(
            f"  {asked.recomputed} of {m.layers} layers are recomputed",
            f"--recomputed {asked.recomputed}",
        ),
        choice(f"  {peak}", f"--peak {typed(asked.peak)}"),
        choice(f"  {100 * asked.share:.3g} % of that is reached", f"--share {asked.share:g}"),
        *assumptions_beside_the_run(asked),
        choice(f"  a save takes {SAVE_S} s", f"SAVE_S {in_file}"),
        choice(f"  a restart takes {RESTART_S} s", f"RESTART_S {in_file}"),
        choice(
            f"  a GPU fails once in {GPU_DAYS_PER_FAILURE:,.0f} days",
            f"GPU_DAYS_PER_FAILURE {in_file}",
        ),
        "  attention is fused, gradients are accumulated, and sending takes no time",
        "  weights and caches that are served are spread evenly, without copies",
        *mtp_line(m),
        *([] if asked.all else ["--all also reports what is sent, Muon, and the bytes of a file."]),
        "--exact prints every number as it was counted.",
    ]


def mtp_line(m):
    """The line on layers that are not counted, if there are any."""
    if not m.mtp_layers:
        return []
    are = "is" if m.mtp_layers == 1 else "are"
    layers = plural(m.mtp_layers, "layer")
    return [f"  {layers} for a second token ahead {are} left out, except in the file"]


def assumptions_beside_the_run(asked):
    """The lines on what was asked or assumed of serving, costs and sending."""
    rows = [
        choice(f"  {plural(asked.users, 'user')} at a time", f"--users {asked.users}"),
        choice(f"  {asked.cached:,} tokens in the cache of each", f"--cached {asked.cached}"),
        choice(f"  served by {plural(asked.serving, 'GPU')}", f"--serving {asked.serving}"),
        choice(
            f"  which do {three_digits(asked.serving_peak / 1e12)} TFLOP/s in {SERVED_IN}",
            f"--serving-peak {typed(asked.serving_peak)}",
        ),
        choice(
            f"  {three_digits(asked.bandwidth / 1e12)} TB/s from a GPU's memory",
            f"--bandwidth {typed(asked.bandwidth)}",
        ),
        choice(f"  a GPU takes {three_digits(asked.watts)} W", f"--watts {asked.watts:g}"),
        choice(f"  the data centre takes {asked.pue:g} times that", f"--pue {asked.pue:g}"),
        choice(f"  a GPU hour costs ${asked.price:g}", f"--price {asked.price:g}"),
    ]
    if not asked.all:
        return rows
    micro = asked.micro_batches
    return [
        *rows,
        choice(f"  layers or sequences are split over {asked.split}", f"--split {asked.split}"),
        choice(f"  {micro} micro-batches in a pipeline", f"--micro-batches {micro}"),
        choice(
            f"  {count_text(asked.step_tokens)} tokens in a step",
            f"--step-tokens {asked.step_tokens}",
        ),
        choice("  what is sent, Muon and files, too", "--all"),
    ]


def row(name, value, term):
    """A line of the report; `term` names the function that counted the value, or is empty."""
    return f"{name:<38}{value:>14}    {term}".rstrip()


def choice(said, option):
    """A line on what was asked or assumed; `option` changes it."""
    return f"{said:<58}{option}"


def plural(number, name):
    """A whole number with its noun, which gets an s unless the number is 1."""
    return f"{number:,} {name}" if number == 1 else f"{number:,} {name}s"


def typed(number):
    """The number as one types it, such as 15e12."""
    for exponent in (12, 9, 6):
        if number >= 10**exponent:
            return f"{number / 10**exponent:g}e{exponent}"
    return f"{number:g}"


def written(value):
    """The text of a value: a whole number in full, any other number with five digits."""
    if isinstance(value, str):
        return value
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:,.5}"


def three_digits(number):
    """The number with three digits; from 100 on, all of its whole part."""
    if number >= 100:  # with :.3g, 1,234 would be 1.23e+03
        return f"{number:,.0f}"
    return f"{number:.3g}"


ROUNDS_TO_1 = 0.9995  # with three digits, from here on


def in_units(number, units, smallest):
    """The number in the largest unit of which there is at least one, with three digits."""
    for size, unit in units:
        if number >= ROUNDS_TO_1 * size:
            return f"{three_digits(number / size)} {unit}"
    return f"{three_digits(number)} {smallest}".rstrip()


def count_text(number):
    """A count as text, such as "70.6 billion"."""
    return in_units(number, ((1e12, "trillion"), (1e9, "billion"), (1e6, "million")), "")


def power_text(number):
    """A large number as text, such as "7.22 × 10^24"."""
    digits, power = f"{number:.2e}".split("e")
    return f"{digits} × 10^{int(power)}"


def bytes_text(nbytes):
    """Bytes as text, such as "80 GB", which is 80 × 10^9 bytes."""
    units = ((1e15, "PB"), (1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"))
    return in_units(nbytes, units, "bytes")


def energy_text(kwh):
    """Energy as text, such as "3.9 GWh"."""
    return in_units(kwh, ((1e6, "GWh"), (1e3, "MWh")), "kWh")


def time_text(seconds):
    """Seconds as text: in the largest unit of which there are at least two, such as "3.2 days"."""
    for size, unit in ((SECONDS_PER_DAY, "days"), (3600, "hours"), (60, "minutes")):
        if seconds >= 2 * size:
            return f"{three_digits(seconds / size)} {unit}"
    return f"{three_digits(seconds)} seconds"


if __name__ == "__main__":
    main()
