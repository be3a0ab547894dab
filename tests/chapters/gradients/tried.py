"""Answers to the exercises of notebook 05."""

import itertools
import math
from dataclasses import replace
from functools import partial
from itertools import pairwise

import numpy as np
import torch
from torch import nn

from course_utils.chapters.gradients import check
from course_utils.core import accountant, measure
from course_utils.core.accountant import BYTES
from course_utils.subjects import models
from tests.engine.tried import Check, Tried


def layer_by_autograd(x, w, g):
    x = x.clone().requires_grad_()
    w = w.clone().requires_grad_()
    (x @ w).backward(g)
    return [w.grad, x.grad]


def layer_by_loops(x, w, g):
    of_x = torch.zeros_like(x)
    of_w = torch.zeros_like(w)
    rows, inputs = x.shape
    outputs = w.shape[1]
    for i in range(rows):
        for j in range(inputs):
            for k in range(outputs):
                of_w[j, k] += x[i, j] * g[i, k]
                of_x[i, j] += w[j, k] * g[i, k]
    return of_w, of_x


def pairs_of_a_mask(sequence, window, latest=0):
    """`latest` is how far before the query the last key is that it meets."""
    query = torch.arange(sequence)[:, None]
    back = query - torch.arange(sequence)[None]  # how far the key is before the query
    return int(((back < window) & (back >= latest)).sum())


def pairs_by_the_accountant(sequence, window):
    return accountant.pairs(sequence, window, causal=True)


def pairs_by_reach(sequence, window):
    window = min(window, sequence)
    missing = window * (window - 1) // 2  # keys that the first queries do not have
    return sequence * window - missing


def pairs_without_least(sequence, window):
    return window * (window + 1) // 2 + (sequence - window) * window


def latents_by_product(m, tokens, dtype, shared=True, copies=1):
    positions = m.latent.position_width * (1 if shared else m.heads)
    return m.layers * tokens * copies * (m.latent.rank + positions) * BYTES[dtype]


def latents_by_module(m, tokens, dtype):
    """What the module's matrix "down" makes, in one layer."""
    with torch.device("meta"):
        attention = models.LatentAttention(m.width, m.heads, m.latent)
        made = attention.down(torch.zeros(tokens, m.width))
    return m.layers * made.numel() * BYTES[dtype]


def heads_cached(m, tokens, dtype):
    latent = m.latent
    of_a_head = latent.content_width + latent.position_width + latent.value_width
    return m.layers * tokens * m.heads * of_a_head * BYTES[dtype]


def step_by_product(batch, widths):
    """Another right way: 6BP, less what nobody needs."""
    weights = [d * k for d, k in itertools.pairwise(widths)]
    return 6 * batch * sum(weights) - 2 * batch * weights[0]


def step_as_a_float(batch, widths):
    return float(step_by_product(batch, widths))


def in_parts(model, loss_of, batch, parts, *, by=None, anew=False, whole=False, step=False):
    """Right, or with one thing done wrongly.

    The loss is divided by another number, gradients begin anew, the whole batch is read for each
    part, or the weights take a step.
    """
    if by is None:
        by = parts
    for part in batch.chunk(parts):
        if anew:
            model.zero_grad()
        rows = batch if whole else part
        loss = loss_of(model(rows)) / by
        loss.backward()
    if step:
        torch.optim.SGD(model.parameters(), lr=0.1).step()


def weighted_by_rows(model, loss_of, batch, parts):
    """Another right way, which would also do for parts of several sizes."""
    size = math.ceil(len(batch) / parts)
    for begin in range(0, len(batch), size):
        part = batch[begin : begin + size]
        share = len(part) / len(batch)
        loss = share * loss_of(model(part))
        torch.autograd.backward(loss)


def in_parts_of_rows(model, loss_of, batch, parts):
    """Wrong: split takes how many rows a part has, and here gets how many parts."""
    for part in batch.split(parts):
        (loss_of(model(part)) / parts).backward()


def always_in_four(model, loss_of, batch, parts):
    """Wrong: right in four parts, and then `parts` is read only for the loss, or not at all."""
    for part in batch.chunk(4):
        (loss_of(model(part)) / 4).backward()


def one_backward_for_all(model, loss_of, batch, parts):
    losses = [loss_of(model(part)) / parts for part in batch.chunk(parts)]
    sum(losses).backward()


def whole_batch_at_once(model, loss_of, batch, parts):
    loss_of(model(batch)).backward()


def graphs_retained(model, loss_of, batch, parts):
    """Each part goes backward before the next, but its activations stay with its loss."""
    losses = []
    for part in batch.chunk(parts):
        loss = loss_of(model(part)) / parts
        loss.backward(retain_graph=True)
        losses.append(loss)


def losses_kept(model, loss_of, batch, parts):
    """Right: without retain_graph a loss that is kept holds nothing but itself."""
    losses = []
    for rows in torch.arange(len(batch)).chunk(parts):
        loss = loss_of(model(batch[rows])) / parts
        loss.backward()
        losses.append(loss)


def never_backward(model, loss_of, batch, parts):
    return [loss_of(model(part)) / parts for part in batch.chunk(parts)]


def backward_after_the_loop(model, loss_of, batch, parts, *, by=None):
    for part in batch.chunk(parts):
        loss = loss_of(model(part)) / (by or parts)
    loss.backward()


def rows_for_parts(model, loss_of, batch, parts):
    """Wrong: batch[i] is one row, and no part."""
    for i in range(parts):
        loss = loss_of(model(batch[i])) / parts
        loss.backward()


def set_to_zero_after(model, loss_of, batch, parts):
    in_parts(model, loss_of, batch, parts)
    model.zero_grad()


def last_twice(model, loss_of, batch, parts):
    """Wrong: as many rows as the batch has, but the last part in place of the first."""
    _, *others = batch.chunk(parts)
    for part in [*others, others[-1]] if others else [batch.flip(1)]:
        (loss_of(model(part)) / parts).backward()


def divided_by_rows(model, loss_of, batch, parts):
    in_parts(model, loss_of, batch, parts, by=len(batch))


def without_the_last(model, loss_of, batch, parts):
    for part in batch.chunk(parts)[:-1]:
        (loss_of(model(part)) / parts).backward()


def divided_twice(model, loss_of, batch, parts):
    in_parts(model, loss_of, batch, parts, by=parts**2)


def layer_with(queries_kept=2, feed_forward=1, widths=4, head_norms=1, row_sum_bytes=4):
    """A layer's bytes, with so many tensors of each kind: `widths` are as wide as the model."""

    def layer_bytes(m, batch, sequence, dtype):
        tokens = batch * sequence
        queries = m.heads * m.head_width
        keys = m.kv_heads * m.head_width
        inside = (4 if m.gated else 2) * m.inner
        numbers = widths * m.width + queries_kept * queries + 2 * keys + feed_forward * inside
        if m.head_norms:
            numbers += head_norms * (queries + keys)
        return tokens * (numbers * BYTES[dtype] + m.heads * row_sum_bytes)

    return layer_bytes


def layer_of_width(m, batch, sequence, dtype):
    """Wrong: queries, keys and values are as wide as the model."""
    numbers = 8 * m.width + (4 if m.gated else 2) * m.inner
    return batch * sequence * (numbers * BYTES[dtype] + 4 * m.heads)


def layer_with_shared_width(m, batch, sequence, dtype):
    """Wrong: the heads share the model's width."""
    return layer_with()(replace(m, head_width=m.width // m.heads), batch, sequence, dtype)


def layer_squared(m, batch, sequence, dtype):
    """Wrong: the weights of a matrix are kept for each token."""
    return layer_with()(m, batch, sequence, dtype) + batch * sequence * 2 * m.width * m.inner


def layer_of_sequence(m, batch, sequence, dtype):
    """Wrong: of one sequence alone, and without a norm."""
    return layer_with(widths=2)(m, 1, sequence, dtype)


def layer_with_scores(m, batch, sequence, dtype):
    """Wrong: with the scores, and without a norm."""
    scores = 16 * batch * m.heads * sequence * sequence * BYTES[dtype]
    return layer_with(widths=2)(m, batch, sequence, dtype) + scores


def layer_in_fp32(m, batch, sequence, dtype):
    return layer_with(widths=5)(m, batch, sequence, "fp32")


def step_with_all_gradients_of_inputs(batch, widths):
    """The backward pass alone, but with the first layer's gradient of the data."""
    return 4 * batch * sum(inputs * outputs for inputs, outputs in pairwise(widths)) + 1


def shares_by_torch(counts):
    counts = torch.tensor(counts)
    return counts / counts.sum()


def shares_by_a_loop(counts):
    shares = []
    for count in counts:
        shares.append(count / sum(counts))
    return tuple(shares)


def shares_by_numpy(counts):
    return np.array(counts) / np.sum(counts)


def shares_without_empty_parts(counts):
    return [count / sum(counts) for count in counts if count]


def shares_of_those_before(counts):
    return [sum(counts[: number + 1]) / sum(counts) for number in range(len(counts))]


def two_layers_by_autograd(x, y, w1, w2):
    w1 = w1.clone().requires_grad_()
    w2 = w2.clone().requires_grad_()
    loss = (torch.relu(x @ w1) @ w2 - y).pow(2).sum() / 2
    loss.backward()
    return w1.grad, w2.grad


def two_layers_by_steps(x, y, w1, w2):
    """As turn 1 does it, one layer after the other; the derivative is taken from the result."""
    hidden = torch.maximum(x @ w1, torch.zeros(()))
    w2_grad, hidden_grad = layer_by_loops(hidden, w2, hidden @ w2 - y)
    w1_grad, _ = layer_by_loops(x, w1, torch.where(hidden > 0, hidden_grad, 0))
    return [w1_grad, w2_grad]


def two_layers_in_fp64(x, y, w1, w2):
    x, y, w1, w2 = (t.double() for t in (x, y, w1, w2))
    before = x @ w1
    error = before.relu() @ w2 - y
    hidden_grad = torch.einsum("ik,jk->ij", error, w2)
    hidden_grad[before <= 0] = 0
    return torch.einsum("ij,ik->jk", x, hidden_grad), before.relu().T @ error


def two_layers_with_the_wrong_mask(x, y, w1, w2):
    """The derivative is 1 where the input is below 0."""
    before = x @ w1
    hidden = before.clamp(min=0)
    error = hidden @ w2 - y
    return x.T @ ((error @ w2.T) * (before < 0)), hidden.T @ error


def two_layers_with_a_trained_second(x, y, w1, w2):
    """The gradient comes back through a second layer that has moved already."""
    _, w2_grad = two_layers_by_autograd(x, y, w1, w2)
    w1_grad, _ = two_layers_by_autograd(x, y, w1, w2 - 0.1 * w2_grad)
    return w1_grad, w2_grad


def two_layers_without_relu(x, y, w1, w2):
    """Wrong: a linear network, forward and backward."""
    hidden = x @ w1
    error = hidden @ w2 - y
    return x.T @ (error @ w2.T), hidden.T @ error


def two_layers_untransposed(x, y, w1, w2):
    before = x @ w1
    error = before.relu() @ w2 - y
    return x.T @ torch.where(before > 0, error @ w2, 0), before.relu().T @ error


def norms_by_outer_products(x, g):
    return (x[:, :, None] * g[:, None, :]).flatten(1).norm(dim=1)


def norms_by_autograd(x, g):
    norms = []
    for row, gradient in zip(x, g, strict=True):
        w = torch.zeros(len(row), len(gradient), requires_grad=True)
        (row @ w).backward(gradient)
        norms.append(w.grad.norm())
    return torch.tensor(norms)


def norms_by_squares(x, g):
    return (x.double().pow(2).sum(1) * g.double().pow(2).sum(1)).sqrt()


def frozen_by_three_sums(batch, widths, frozen):
    products = [2 * batch * d * k for d, k in pairwise(widths)]
    trained = [layer for layer in range(len(products)) if layer not in frozen]
    if not trained:
        return sum(products)
    return float(
        sum(products) + sum(products[layer] for layer in trained) + sum(products[trained[0] + 1 :])
    )


def frozen_from_the_end(batch, widths, frozen):
    """Wrong: the gradient stops at the last trained layer."""
    products = [2 * batch * d * k for d, k in pairwise(widths)]
    trained = [layer for layer in range(len(products)) if layer not in frozen]
    behind = sum(products[max(trained, default=len(products)) + 1 :])
    return sum(products) + sum(products[layer] for layer in trained) + behind


def frozen_by_count(batch, widths, frozen):
    """Wrong: only how many layers are frozen counts, as if they were always the first ones."""
    return frozen_by_three_sums(batch, widths, range(len(frozen)))


def frozen_pass_nothing_on(batch, widths, frozen):
    """Wrong: a frozen layer only runs forward, and each trained one but the first does it all."""
    products = [2 * batch * d * k for d, k in pairwise(widths)]
    trained = [layer for layer in range(len(products)) if layer not in frozen]
    return sum(products) + sum(products[i] for i in trained) + sum(products[i] for i in trained[1:])


def frozen_do_not_run(batch, widths, frozen):
    """Wrong: a frozen layer only passes the gradient on."""
    products = [2 * batch * d * k for d, k in pairwise(widths)]
    left_out = sum(products[layer] for layer in frozen)
    return frozen_by_three_sums(batch, widths, frozen) - left_out


def small_network(widths, frozen, nonlinearity):
    between = {"relu": nn.ReLU, "gelu": nn.GELU}[nonlinearity]
    layers = []
    for number, (d, k) in enumerate(pairwise(widths)):
        if number:
            layers.append(between())
        layers.append(nn.Linear(d, k, bias=False).requires_grad_(number not in frozen))
    return nn.Sequential(*layers)


def kept_by_hooks(batch, widths, frozen, nonlinearity):
    model = small_network(widths, frozen, nonlinearity)
    data = torch.randn(batch, widths[0])
    return measure.saved_bytes(lambda: model(data), exclude=model.parameters())


def kept_from_the_first(batch, widths, frozen, nonlinearity):
    """By the first trained layer: from it on, what follows a nonlinearity is kept."""
    trained = [layer for layer in range(len(widths) - 1) if layer not in frozen]
    if not trained:
        return 0.0
    if nonlinearity == "relu":
        return 4.0 * batch * sum(widths[trained[0] : -1])
    own = sum(widths[trained[0] + 1 : -1])
    return 4.0 * batch * (own + sum(widths[layer] for layer in trained))


def kept_with_masks(batch, widths, frozen, nonlinearity):
    """Wrong: a mask of one byte for each number that a ReLU has let through or not."""
    right = kept_by_hooks(batch, widths, frozen, nonlinearity)
    return right + (batch * sum(widths[1:-1]) if nonlinearity == "relu" else 0)


def kept_without_data(batch, widths, frozen, nonlinearity):
    right = kept_by_hooks(batch, widths, frozen, nonlinearity)
    return right - (0 if 0 in frozen else 4 * batch * widths[0])


def rank_by_a_loop(inputs, outputs):
    rank = 0
    while 3 * (rank + 1) * (inputs + outputs) <= inputs * outputs:
        rank += 1
    return rank


def rank_by_floor(inputs, outputs):
    return math.floor(inputs * outputs / (inputs + outputs) / 3)


def rank_as_a_float(inputs, outputs):
    return float(inputs * outputs // (3 * inputs + 3 * outputs))


def length_of_parts(m):
    """As turn 3 counts it, in fp32, without the row sums; the scores of a token take 4 bytes."""
    of_a_token = layer_with()(m, 1, 1, "fp32") - 4 * m.heads
    return of_a_token / (4 * m.heads)


def length_as_a_whole_number(m):
    return round(length_of_parts(m))


def length_by_trying(m):
    length = 1
    while m.heads * length < length_of_parts(m) * m.heads:
        length += 1
    return torch.tensor(length)


def length_without_a_gate(m):
    return length_of_parts(m) - (2 * m.inner / m.heads if m.gated else 0)


def length_with_row_sums(m):
    """In bf16, a row sum takes the bytes of two numbers."""
    return layer_with()(m, 1, 1, "bf16") / (2 * m.heads)


def length_without_norms(m):
    return length_of_parts(m) - 4 * m.width / m.heads


TRIED: dict[Check, Tried] = {
    check.part_shares: Tried(
        right=(shares_by_torch, shares_by_a_loop, shares_by_numpy),
        wrong=(
            (shares_without_empty_parts, "With counts = [7, 0, 1]"),
            (shares_of_those_before, "With counts = [6, 2]"),
            (lambda counts: counts[0] / sum(counts), "[0.75, 0.25]"),
        ),
    ),
    check.two_layers_backward: Tried(
        right=(two_layers_by_autograd, two_layers_by_steps, two_layers_in_fp64),
        wrong=(
            (two_layers_with_the_wrong_mask, "; w2.grad ✓."),
            (two_layers_with_a_trained_second, "; w2.grad ✓."),
            (two_layers_without_relu, "Between the layers is a ReLU."),
            (two_layers_untransposed, "by w2 transposed"),
            (lambda x, y, w1, w2: torch.relu(x @ w1) @ w2, "Return both: w1.grad and w2.grad."),
        ),
    ),
    check.row_norms: Tried(
        right=(norms_by_outer_products, norms_by_autograd, norms_by_squares),
        wrong=(
            (lambda x, g: norms_by_squares(x, g) / len(x), "should be"),
            (lambda x, g: g.norm(dim=1), "should be"),
            (lambda x, g: norms_by_squares(x, g).max(), "expected a tensor of shape (3,)"),
            (lambda x, g: norms_by_squares(x, g).tolist(), "tensor"),
        ),
    ),
    check.frozen_flops: Tried(
        right=(frozen_by_three_sums,),
        wrong=(
            (frozen_from_the_end, "FLOPs"),
            (frozen_by_count, "With batch = 8, widths = [4, 6, 5, 3, 7] and frozen = (0, 2)"),
            (frozen_pass_nothing_on, " A frozen layer passes the gradient on if one before it"),
            (frozen_do_not_run, "A frozen layer still runs forward."),
            (lambda batch, widths, frozen: 6 * batch * 95, "FLOPs"),
        ),
    ),
    check.frozen_bytes: Tried(
        right=(kept_by_hooks, kept_from_the_first),
        wrong=(
            (kept_with_masks, "expected 448 bytes"),
            (kept_without_data, "frozen = (2,)"),
            (lambda batch, widths, frozen, nonlinearity: 0, "expected 448 bytes"),
        ),
    ),
    check.largest_rank: Tried(
        right=(rank_by_a_loop, rank_by_floor, rank_as_a_float),
        wrong=(
            (
                lambda inputs, outputs: inputs * outputs // (6 * (inputs + outputs)),
                "gave 102; expected 204",
            ),
            (lambda inputs, outputs: (inputs + outputs) // 3, "gave 1,280; expected 204"),
            (lambda inputs, outputs: rank_by_a_loop(inputs, outputs) - 1, "expected 204"),
        ),
    ),
    check.even_length: Tried(
        right=(length_of_parts, length_as_a_whole_number, length_by_trying),
        wrong=(
            (length_without_norms, "For a small Llama"),
            (length_without_a_gate, "A gated feed-forward keeps four tensors"),
            (length_with_row_sums, "The row sums belong to fused attention."),
            (lambda m: m.context, "gave 96; expected 277"),
            (lambda m: 16 * m.head_width, "gave 256; expected 277"),
            (lambda m: length_of_parts(m) / 2, "Half means as many scores as all other numbers."),
        ),
    ),
    check.window_pairs: Tried(
        right=(pairs_of_a_mask, pairs_by_the_accountant, pairs_by_reach),
        wrong=(
            (lambda sequence, window: sequence * window, "The first queries have fewer keys"),
            (lambda sequence, window: sequence * (sequence + 1) // 2, "without a window"),
            (partial(pairs_of_a_mask, latest=1), "A query meets its own key, too"),
            (lambda sequence, window: 2 * sequence * window, "gave 88; expected 38"),
            (pairs_without_least, "A window that is longer than the sequence"),
            (lambda sequence, window: 0, "gave 0; expected 38"),
        ),
    ),
    check.latent_cache_bytes: Tried(
        right=(latents_by_product, latents_by_module, accountant.cache_bytes),
        wrong=(
            (partial(latents_by_product, shared=False), "All heads share one position part"),
            (partial(latents_by_product, copies=2), "there is no second one"),
            (
                lambda m, tokens, dtype: tokens * m.layers * m.latent.rank,
                "gave 1,000; expected 5,600",
            ),
            (heads_cached, "Keep only what they are made from"),
        ),
    ),
    check.accumulated: Tried(
        right=(in_parts, weighted_by_rows, losses_kept),
        wrong=(
            (partial(in_parts, by=1), "4 times too large"),
            (divided_twice, "4 times too small"),
            (partial(in_parts, anew=True), "only the last part's gradients"),
            (partial(in_parts, anew=True, by=1), "only the last part's gradients"),
            (divided_by_rows, "0.167 times those of the whole batch. Divide each part's loss by"),
            (without_the_last, "18 rows went through the model, but the batch has 24."),
            (whole_batch_at_once, "the activations of 24 rows are kept"),
            (partial(in_parts, whole=True), "the activations of 24 rows are kept"),
            (one_backward_for_all, "rows are kept at one time"),
            (graphs_retained, "Leave out retain_graph=True"),
            (never_backward, "no gradients are left in .grad"),
            (backward_after_the_loop, "only the last part went backward. Call .backward() for"),
            (partial(backward_after_the_loop, by=1), "only the last part went backward."),
            (rows_for_parts, ": 4 rows went through the model, but the batch has 24."),
            (set_to_zero_after, "and set nothing to zero after it"),
            (partial(in_parts, step=True), "the weights have moved"),
            (partial(in_parts, by=3), "1.33 times those of the whole batch"),
            (
                in_parts_of_rows,
                "in 4 parts: the batch went through in 6 parts of 4 rows each. batch.split takes",
            ),
            (
                always_in_four,
                "in 8 parts: the batch went through in 4 parts: make as many as `parts` says",
            ),
            (last_twice, "differ from those of the whole batch"),
            (lambda model, loss_of, batch: None, "TypeError"),
        ),
    ),
    check.layer_backward: Tried(
        right=(layer_by_autograd, layer_by_loops),
        wrong=((lambda x, w, g: (x.T @ g, -g @ w.T), "gave w.grad ✓; x.grad["),),
    ),
    check.step_flops: Tried(
        right=(step_by_product, step_as_a_float),
        wrong=(
            (
                step_with_all_gradients_of_inputs,
                "gave 4,929 instead of 5,952 FLOPs, 1,023 short. The difference does not",
            ),
        ),
    ),
    check.layer_bytes: Tried(
        right=(layer_with(),),
        wrong=(
            (layer_with(queries_kept=1), "queries or attention's result left out: 21,120 short."),
            (
                layer_with(feed_forward=2),
                "Normalisations ✓, queries ✓, keys and values ✓, attention's result ✓, head norms' "
                "inputs ✓, row sums ✓, feed-forward counted twice: 266,240 too many.",
            ),
            # What several products read is kept once, and here it is counted for each of them.
            (layer_with(widths=6), " counts 6 · m.width (too many), 2 · m.heads · m.head_width ✓,"),
            (
                layer_with(widths=3, feed_forward=0.75, row_sum_bytes=0),
                "For each token, your function counts 3 · m.width (too few), 2 · m.heads · "
                "m.head_width ✓, 2 · m.kv_heads · m.head_width ✓, 3 · m.inner (too few), head "
                "norms' inputs ✓, no row sums.",
            ),
            (
                layer_with(queries_kept=0, widths=5, head_norms=0),
                "5 · m.width (too many), 0 · m.heads · m.head_width (too few), 2 · m.kv_heads · "
                "m.head_width ✓, 4 · m.inner ✓, no head norms' inputs, row sums ✓.",
            ),
            (layer_with(row_sum_bytes=8, widths=5), "head norms' inputs ✓, row sums (too many)."),
            (layer_of_width, "counts 8 · m.width (too many), 0 · m.heads · m.head_width (too"),
            (layer_with_shared_width, "a head need not be m.width / m.heads wide."),
            (layer_squared, "Your function counts something else, too."),
            (layer_of_sequence, "With twice the batch, a layer keeps twice the bytes, but your "),
            (layer_with_scores, "but your function gives 2.73 times as many."),
            (layer_in_fp32, "as many bytes in fp32 as in bf16, but a number takes BYTES[dtype]"),
            (lambda m, b, s, dtype: 16 * s * m.width, "16 · S · H holds only for layers like"),
            (
                lambda m, b, s, dtype: 16 * b * s * m.width * BYTES[dtype],
                "16 · S · H holds only for layers like",
            ),
            (lambda m, b, s, dtype: 0, "The difference does not show which part"),
        ),
    ),
}
