"""What a model of transformers keeps for the backward pass, and the course's does not.

transformers writes many formulas as several operations, some of them in fp32, and autograd keeps
what each of them needs. Every term here is one such formula. It says how many bytes more than the
accountant counts autograd keeps because of it, in the whole model; a few keep less. Together with
the accountant's bytes they are all that autograd keeps, so nothing is left over.

A term is a product of the model's sizes and of the bytes of a number: `in_fp32` is 4, and `each`
is what a number of the model's dtype takes.
"""

from dataclasses import dataclass, replace

from course_utils.core import accountant
from course_utils.core.accountant import BYTES, Model

GEMMA = ("gemma", "gemma2", "gemma3_text")
# These two have no fused attention in transformers 5.24: one limits its scores, one has sinks.
UNFUSED = ("gemma2", "gpt_oss")
INT64 = BYTES["int64"]
IN_FP32 = BYTES["fp32"]
Terms = dict[str, int]  # bytes, by the name of what keeps them


@dataclass(frozen=True)
class Run:
    """A model of a family, and the batch that runs through it."""

    kind: str
    m: Model
    batch: int
    sequence: int
    dtype: str
    busy_experts: int = 0  # experts with a token, in all layers together

    @property
    def tokens(self) -> int:
        return self.batch * self.sequence

    @property
    def each(self) -> int:
        """Bytes of a number."""
        return BYTES[self.dtype]

    @property
    def upcast(self) -> int:
        """Bytes by which a number in fp32 is larger than one in the model's dtype."""
        return IN_FP32 - self.each


def ours(run: Run) -> int:
    """Return what the accountant says is kept from the embedding to the last norm's input.

    Sinks, and two of four normalisations in a layer, are in the terms of `more`.
    """
    usual = replace(run.m, sinks=False, norms_per_layer=2)
    kept = accountant.any_kept_bytes(usual, run.batch, run.sequence, run.dtype)
    return kept + run.tokens * run.m.width * run.each


def more(run: Run) -> Terms:
    """Return the bytes that transformers keeps beside `ours`, by what keeps them."""
    terms = {
        "norms, written as several operations": norms(run),
        "token ids": run.tokens * INT64,
        "angles of the positions": angles(run),
        **in_attention(run),
        **in_feed_forward(run),
    }
    if run.kind in GEMMA:
        terms["the embedding's factor"] = run.each
    return {name: nbytes for name, nbytes in terms.items() if nbytes}


def norm(run: Run, rows: int, width: int) -> int:
    """Return what one normalisation of `rows` rows keeps beside its input and its result."""
    if run.kind == "gpt2":  # LayerNorm is one kernel, which keeps a mean and an inverse deviation
        return 2 * rows * run.each
    inverse = rows * IN_FP32  # of each row's root mean square
    copy_of_input = rows * width * run.upcast  # which is in fp32
    if run.kind in GEMMA or run.kind == "gpt_oss":  # the weights are multiplied in fp32
        normalised = rows * width * IN_FP32
    else:
        normalised = rows * width * run.each
    weights = width * IN_FP32 if run.kind in GEMMA else 0  # 1 + w is a new tensor
    return inverse + copy_of_input + normalised + weights


def norms(run: Run) -> int:
    """Return what all normalisations keep, those of heads among them."""
    m = run.m
    of_layer = 2 * norm(run, run.tokens, m.width)
    if m.norms_per_layer == 4:
        # Two more, after attention and after the feed-forward. No product reads their result, so
        # that only their input is kept beside what `norm` returns.
        their_input = run.tokens * m.width * run.each
        of_layer += 2 * (norm(run, run.tokens, m.width) + their_input)
    if m.head_norms:
        of_layer += norm(run, run.tokens * m.heads, m.head_width)
        of_layer += norm(run, run.tokens * m.kv_heads, m.head_width)
    return m.layers * of_layer + norm(run, run.tokens, m.width)


def angles(run: Run) -> int:
    """Return the cosines and sines of all positions, or for GPT-2 the positions' numbers."""
    m = run.m
    if run.kind == "gpt2":
        return run.sequence * INT64
    if run.kind == "deepseek_v2":  # complex numbers in fp32, one for two numbers of a head
        return run.sequence * m.latent.position_width * IN_FP32
    width = m.latent.position_width if m.latent else m.head_width
    if run.kind == "gpt_oss":
        width //= 2  # all others keep each of them twice, for both halves of a head
    tables = 2
    if run.kind == "gemma3_text" and 0 < m.window_layers < m.layers:
        tables = 4  # layers with a window have other angles
    return tables * run.sequence * width * run.each


def in_attention(run: Run) -> Terms:
    """Return what attention keeps in another way than the accountant's fused attention."""
    if run.m.latent:
        return in_latent_attention(run)
    if run.kind in UNFUSED:
        return unfused(run)
    m = run.m
    if not m.window_layers or m.window > run.sequence:
        return {}
    return {
        "masks of windows": m.window_layers * run.tokens * run.sequence * run.each,
        "keys and values, once for each query head": m.window_layers * repeated(run, is_view=True),
    }


def repeated(run: Run, is_view: bool) -> int:
    """Return the copies of keys and values for all heads of queries, in one layer.

    With one head of keys they can be a view of it, which takes no bytes.
    """
    m = run.m
    if is_view and m.kv_heads == 1:
        return 0
    return 2 * run.tokens * (m.heads - m.kv_heads) * m.head_width * run.each


def unfused(run: Run) -> Terms:
    """Return what attention keeps that stores its scores."""
    m = run.m
    rows = run.tokens * m.heads
    scores = rows * run.sequence
    if run.kind == "gpt_oss":  # a softmax over the scores and the sink, and each row's largest
        kept = rows * (run.sequence + 1) * run.each + rows * INT64
    else:  # the tanh that limits the scores, a softmax in fp32, and its copy in the model's dtype
        kept = scores * (run.each + IN_FP32)
        if run.upcast:
            kept += scores * run.each
    row_sums = rows * IN_FP32  # fused attention's, which are not there
    return {
        "scores": m.layers * (kept - row_sums),
        "keys and values, once for each query head": m.layers * repeated(run, is_view=False),
    }


def in_latent_attention(run: Run) -> Terms:
    """Return what latent attention keeps beside the accountant's."""
    m = run.m
    latent = m.latent
    norms_of_latents = norm(run, run.tokens, latent.rank)
    if run.upcast:
        # The latent's copy in fp32 is kept, and so the storage that it was copied from is freed,
        # where the position's part of the key lies behind the latent.
        norms_of_latents -= run.tokens * latent.position_width * run.each
    if latent.query_rank:
        norms_of_latents += norm(run, run.tokens, latent.query_rank)
    terms = {"norms of latents": m.layers * norms_of_latents}
    key_width = latent.content_width + latent.position_width
    if latent.value_width != key_width:
        return terms | {"attention without a kernel": m.layers * latents_unfused(run)}
    if m.heads > 1:
        copied = run.tokens * m.heads * latent.value_width * run.each
        terms["attention's result, its heads in another order"] = m.layers * copied
    return terms


def latents_unfused(run: Run) -> int:
    """Return what one latent attention keeps beside the accountant's where torch has no kernel.

    On a CPU torch has none if values have another width than keys. It computes in fp32 then.
    """
    m = run.m
    latent = m.latent
    key_width = latent.content_width + latent.position_width
    rows = run.tokens * m.heads
    queries_and_keys = 2 * rows * key_width * run.upcast
    values = rows * latent.value_width * IN_FP32
    scores = rows * run.sequence * IN_FP32
    # The values are a copy, so what "key and value up" has made is freed.
    freed = rows * (latent.content_width + latent.value_width) * run.each
    if m.heads == 1 and not run.upcast:  # of one head, they are a view
        values = freed = 0
    row_sums = rows * IN_FP32
    return queries_and_keys + values + scores - freed - row_sums


def in_feed_forward(run: Run) -> Terms:
    """Return what feed-forwards keep beside the accountant's."""
    m = run.m
    if run.kind == "gpt2":
        operations = 3 * m.layers * run.tokens * m.inner * run.each
        return {"GELU, written as several operations": operations}
    if not m.mixture:
        return {}
    layers = m.layers - m.mixture.dense_layers
    terms = {"the router": layers * in_router(run)}
    if run.kind == "gpt_oss":
        operations = 3 * run.tokens * m.mixture.used * m.mixture.inner * run.each
        terms["the experts' activation, written as several operations"] = layers * operations
    return terms


def in_router(run: Run) -> int:
    """Return what one router keeps beside the accountant's, and the shares that it gives."""
    mixture = run.m.mixture
    if run.kind == "gpt_oss":  # only the shares of the picked experts are computed
        return run.tokens * (mixture.used - mixture.experts) * run.each
    all_shares = run.tokens * mixture.experts * run.upcast
    if run.kind == "qwen3_moe":
        return all_shares
    shares = run.tokens * mixture.used * run.upcast  # of the picked experts, in fp32
    sum_of_shares = run.tokens * IN_FP32
    before_division = run.tokens * mixture.used * IN_FP32
    if run.kind == "mixtral":
        return all_shares + shares + sum_of_shares + before_division
    in_fp32 = all_shares + shares
    if run.upcast:  # the router computes in fp32: with copies of its input and of its matrix
        in_fp32 += run.tokens * run.m.width * IN_FP32 + run.m.width * mixture.experts * IN_FP32
    if run.kind == "deepseek_v2":
        return in_fp32
    return in_fp32 + sum_of_shares + before_division


def outside_windows(run: Run) -> int:
    """Return the FLOPs of scores outside windows, which transformers computes, and then masks.

    It does so in attention that stores its scores, with which FLOPs are counted.
    """
    m = run.m
    left_out = accountant.pairs(run.sequence) - accountant.pairs(run.sequence, m.window)
    return m.window_layers * run.batch * left_out * accountant.pair_flops(m)


def at_the_loss(run: Run) -> Terms:
    """Return the bytes of a step's peak beside what is kept, if the step is fullest at its loss."""
    m = run.m
    logits = run.tokens * m.vocabulary
    terms = {
        "the last norm's result": run.tokens * m.width * run.each,
        "the loss": accountant.LOGIT_BYTES * logits,
        "the loss and its number of targets": 2 * IN_FP32,
        "factors in formulas": factors(run) * BYTES["fp64"],
        "token ids, there before the step": -run.tokens * INT64,
    }
    if run.kind == "gemma2":
        terms["the tanh that limits the logits"] = logits * run.each
    if run.kind in GEMMA:
        terms["the embedding's factor, there before the step"] = -run.each
    return terms


def factors(run: Run) -> int:
    """Return how many factors, such as the 0.5 in GELU's formula, a step keeps as numbers."""
    m = run.m
    if run.kind == "gpt2":  # in GELU's formula
        return 3 * m.layers
    if run.kind == "gemma2":  # of queries and keys, and before and after each tanh
        return 3 * m.layers + 2
    if run.kind == "gpt_oss":  # of queries and keys, and in the activation of each expert at work
        return m.layers + run.busy_experts
    if m.latent:  # of the experts' shares
        return m.layers - m.mixture.dense_layers
    return 0
