"""An accountant of training: the bytes, the FLOPs and the days that a transformer takes.

    python accountant.py config.json --gpus 1024 --tokens 15e12

It trains nothing, because the model's shape is enough. This is how it counts:

- A multiply-add is 2 FLOPs. Only matrix products count. All S × S scores of attention are among
  them, even those that a causal mask throws away.
- Its bytes are those of fused attention, which never stores the scores. The backward pass of
  fused attention computes them a second time, and that second time is not counted.
"""

import argparse
import json
import math
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
    context: int  # tokens of a sequence, at most: the positions, or the window of attention
    gated: bool = True  # three matrices in the feed-forward: gate, up, down
    biases: tuple[str, ...] = ()  # names of the matrices that have a bias
    norm_vectors: int = 1  # RMSNorm has a weight; LayerNorm has a weight and a bias
    head_norms: bool = False  # queries and keys are normalised, head by head
    learned_positions: bool = False
    tied: bool = False  # the embedding is the output matrix, too


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
    while_cast = cast_bytes(down, dtype, gradient_dtype)
    if recomputed < m.layers:
        # The last layer is not recomputed, and the input's gradient is still there. In a recomputed
        # layer that gradient takes the place of the input, which is free by then: it adds nothing.
        while_cast += input_gradient
    most = weight_gradient + max(input_gradient, while_cast)
    if m.gated:
        # `down` is done: its input, gate × up, has given its place to its gradient. What is added
        # now is a gradient of the gate and one of up.
        factors = 2 * inside
        most = max(most, factors)

    recomputed_before = min(recomputed, m.layers - 1)  # layers of which only the input is there
    result_gradient = hidden  # of the layer's result: with it the layer begins
    return kept_bytes(m, batch, sequence, dtype, recomputed_before) + result_gradient + most


def embedding_gradient_bytes(m, batch, sequence, dtype, gradient_dtype):
    """Bytes that a step adds while the embedding gets its gradient. No layer keeps anything now."""
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
    # With a narrower feed-forward, a step can be fullest while attention makes its gradients.
    queries = m.heads * m.head_width
    if m.inner < m.width or 3 * m.inner < 4 * queries:
        raise ValueError(
            f"The feed-forward is {m.inner:,} wide. It has to be as wide as the model, "
            f"{m.width:,}, and 4/3 as wide as all its queries, {queries:,}: of other models it is "
            "not known here when a step is fullest."
        )


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
    return tensor_bytes((whole,), dtype)


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
    lines = {"parameters": parameters(m), "tokens of a sequence": sequence}
    lines |= memory_lines(m, gpus, parts, stage, batch, sequence, recomputed)
    lines["fits"] = "yes" if lines["bytes together"] <= memory else "no"
    lines |= time_lines(m, gpus, tokens, sequence, recomputed, peak, share)
    return lines


def memory_lines(m, gpus, parts, stage, batch, sequence, recomputed):
    """The account's lines on what one GPU holds at the fullest moment of a step.

    `parts` has the dtypes of each part of the state, as `recipe` returns them.
    """
    (dtype,) = parts["parameters"]  # a recipe keeps one number for each of these two
    (gradient_dtype,) = parts["gradients"]
    state = state_bytes(parameters(m), parts, gpus, stage)
    added = moments(m, batch, sequence, dtype, gradient_dtype, recomputed)
    gathered = {moment: gathered_bytes(m, dtype, gpus, stage, moment) for moment in added}
    fullest = max(added, key=lambda moment: added[moment] + gathered[moment])
    rest = rest_bytes(m, batch, sequence, dtype)

    lines = {f"bytes of {part}": nbytes for part, nbytes in state.items()}
    lines["fullest moment of a step"] = fullest
    lines["bytes that the step adds then"] = added[fullest]
    lines["bytes gathered then"] = gathered[fullest]
    lines["bytes of the rest"] = rest
    lines["bytes together"] = sum(state.values()) + added[fullest] + gathered[fullest] + rest
    return lines


def time_lines(m, gpus, tokens, sequence, recomputed, peak, share):
    """The account's lines on the whole run: its FLOPs, its days, and what failures take of them."""
    flops_of_a_sequence = step_flops(m, 1, sequence, recomputed)
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
            f"for, or as its attention looks back; got {sequence:,}."
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

GPT2_NAMES = {  # GPT-2's own names for fields, and what the other models call them
    "n_layer": "num_hidden_layers",
    "n_embd": "hidden_size",
    "n_head": "num_attention_heads",
    "n_inner": "intermediate_size",
    "n_positions": "max_position_embeddings",
}
DEFAULTS = {  # what the transformers library takes where a config.json says nothing
    "gpt2": {"tie_word_embeddings": True},
    "llama": {},
    "mistral": {"num_key_value_heads": 8, "sliding_window": 4096},
    "qwen2": {"num_key_value_heads": 32, "sliding_window": 4096, "use_sliding_window": False},
    "qwen3": {
        "num_key_value_heads": 32,
        "head_dim": 128,
        "sliding_window": 4096,
        "use_sliding_window": False,
    },
}
NOT_COUNTED = (  # a field with such a word in its name changes the account
    "expert",
    "moe",
    "lora",
    "quantization",
    "cross_attention",
    "mlp_bias",  # biases in the feed-forward
    "qk_norm",
    "nextn",  # as in num_nextn_predict_layers
    "pruned",
)


def model_from(config):
    """The model that a config.json of GPT-2, Llama, Mistral, Qwen 2 or Qwen 3 describes."""
    kind = kind_of(config)
    fields = dict(DEFAULTS[kind])
    for name, value in config.items():
        fields[GPT2_NAMES.get(name, name)] = value  # a name that is not GPT-2's own stays
    refuse_unknown(kind, fields)

    is_gpt2 = kind == "gpt2"
    width = size_in(fields, "hidden_size")
    heads = size_in(fields, "num_attention_heads")
    if fields.get("head_dim") is None:  # then it is hidden_size / num_attention_heads
        refuse_no_multiple("hidden_size", width, "num_attention_heads", heads)
    kv_heads = size_in(fields, "num_key_value_heads", heads)
    refuse_no_multiple("num_attention_heads", heads, "num_key_value_heads", kv_heads)
    default_inner = 4 * width if is_gpt2 else None  # None: a config has to give its own
    return Model(
        layers=size_in(fields, "num_hidden_layers"),
        width=width,
        heads=heads,
        kv_heads=kv_heads,
        head_width=size_in(fields, "head_dim", width // heads),
        inner=size_in(fields, "intermediate_size", default_inner),
        vocabulary=size_in(fields, "vocab_size"),
        context=context_in(fields),
        gated=not is_gpt2,
        biases=biases_in(kind, fields),
        norm_vectors=2 if is_gpt2 else 1,
        head_norms=kind == "qwen3",
        learned_positions=is_gpt2,
        tied=bool(fields.get("tie_word_embeddings")),
    )


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


def context_in(fields):
    """The most tokens of a sequence: all positions, or attention's window if it is shorter."""
    context = size_in(fields, "max_position_embeddings")
    # A model without this field, such as Mistral, always uses the window that it has.
    if not fields.get("use_sliding_window", True):
        return context
    window = size_in(fields, "sliding_window", context)
    return min(context, window)


def biases_in(kind, fields):
    """The names of the matrices that have a bias."""
    if kind == "gpt2":
        return ("query", "key", "value", "out", "up", "down")
    if kind == "qwen2":
        return ("query", "key", "value")
    if fields.get("attention_bias"):
        return ("query", "key", "value", "out")
    return ()


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


def refuse_no_multiple(name, value, divisor_name, divisor):
    """Raise a ValueError if the value is no multiple of the divisor."""
    if value % divisor:
        raise ValueError(f"{name} {value:,} is no multiple of {divisor_name}, {divisor:,}.")


def refuse_unknown(kind, fields):
    """Raise a ValueError on a field whose effect on the account this program cannot count."""
    for name, value in fields.items():
        if value and any(word in name for word in NOT_COUNTED):
            raise ValueError(
                f"The config has {name}: this program does not know what that changes."
            )
    known = ("full_attention", "sliding_attention")
    layers = fields.get("layer_types") or []
    if not isinstance(layers, list) or any(layer not in known for layer in layers):
        raise ValueError(
            f"layer_types names {' and '.join(known)}; this program does not know others."
        )
    if fields.get("attention_bias") and kind not in ("llama", "qwen3"):
        raise ValueError(
            f"The config has attention_bias, which a model of type {kind} does not know."
        )


# The command line.


def parser():
    """The parser of the command line, with all options."""
    # The help shows a default such as "15e12" as it stands, and argparse makes a float of it.
    options = argparse.ArgumentParser(
        description="What training a transformer takes: bytes, FLOPs and days.",
        epilog=f"A save takes {SAVE_S} s, and a restart {RESTART_S} s: assumed.",
    )
    options.add_argument(
        "config", help="the config.json of GPT-2, Llama, Mistral, Qwen 2 or Qwen 3"
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
    options.add_argument(
        "--exact", action="store_true", help="print every number as it was counted"
    )
    return options


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
        command_line.error(str(error))  # prints the sentence and exits
    except OverflowError:
        command_line.error("A size of this model, or of this run, is too large to count with.")
    for line in printed:
        print(line)


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
    if asked.exact:
        return [f"{name:<34}{written(value):>26}" for name, value in lines.items()]
    return [
        *model_report(m, lines),
        "",
        *memory_report(lines, asked),
        "",
        *time_report(lines),
        "",
        *assumptions(m, lines, asked),
    ]


# What is printed, for people: a number with its unit, and the function that counted it.


def model_report(m, lines):
    """The lines of the report on the model's size."""
    wide = f"{m.layers} layers, {m.width:,} wide"
    return [
        row(f"The model: {wide}", "", "counted by"),
        row("  parameters", count_text(lines["parameters"]), "parameters"),
    ]


def memory_report(lines, asked):
    """The lines of the report on the bytes of each GPU, and whether they fit."""
    fullest = lines["fullest moment of a step"]
    rows = [f"On each GPU, at the fullest moment of a step, {fullest}"]
    for part in ("parameters", "gradients", "optimizer", "master"):
        rows.append(row(f"  {part}", bytes_text(lines[f"bytes of {part}"]), "state_bytes"))
    added_by = "step_bytes" if fullest == AT_LOSS else "moments"
    added = bytes_text(lines["bytes that the step adds then"])
    gathered = bytes_text(lines["bytes gathered then"])
    together = bytes_text(lines["bytes together"])
    rows += [
        row("  what the step adds", added, added_by),
        row("  gathered from the other GPUs", gathered, "gathered_bytes"),
        row("  the rest, at most", bytes_text(lines["bytes of the rest"]), "rest_bytes"),
        row("  together", together, ""),
    ]
    fits = "It fits" if lines["fits"] == "yes" else "It does not fit"
    return [*rows, f"{fits}: each GPU has {bytes_text(asked.memory)}."]


def time_report(lines):
    """The lines of the report on the FLOPs and the time of the whole run."""
    run_s = lines["days without saves and failures"] * SECONDS_PER_DAY
    lost = lines["share that is lost, at most"]
    return [
        "The whole run",
        row("  FLOPs", f"{lines['FLOPs']:.3g}", "step_flops"),
        row("  without saves and failures", time_text(run_s), "days"),
        row("  between two saves", time_text(lines["seconds between two saves"]), "interval"),
        row("  lost to saves and failures, at most", f"{100 * lost:.2g} %", "lost_share"),
    ]


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
        choice(f"  a save takes {SAVE_S} s", f"SAVE_S {in_file}"),
        choice(f"  a restart takes {RESTART_S} s", f"RESTART_S {in_file}"),
        choice(
            f"  a GPU fails once in {GPU_DAYS_PER_FAILURE:,.0f} days",
            f"GPU_DAYS_PER_FAILURE {in_file}",
        ),
        "  attention is fused, gradients are accumulated, and sending takes no time",
        "--exact prints every number as it was counted.",
    ]


def row(name, value, term):
    """A line of the report; `term` is the function that counted the value."""
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


def count_text(number):
    """A count as text, such as "70.6 billion"."""
    for size, word in ((1e12, "trillion"), (1e9, "billion"), (1e6, "million")):
        if number >= size:
            return f"{three_digits(number / size)} {word}"
    return three_digits(number)


def bytes_text(nbytes):
    """Bytes as text, such as "80 GB", which is 80 × 10^9 bytes."""
    for size, unit in ((1e15, "PB"), (1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if nbytes >= size:
            return f"{three_digits(nbytes / size)} {unit}"
    return f"{three_digits(nbytes)} bytes"


def time_text(seconds):
    """Seconds as text: in the largest unit of which there are at least two, such as "3.2 days"."""
    for size, unit in ((SECONDS_PER_DAY, "days"), (3600, "hours"), (60, "minutes")):
        if seconds >= 2 * size:
            return f"{three_digits(seconds / size)} {unit}"
    return f"{three_digits(seconds)} seconds"


if __name__ == "__main__":
    main()
