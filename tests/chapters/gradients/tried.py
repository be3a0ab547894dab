"""Answers to the exercises of notebook 05."""

import itertools
import math
from functools import partial
from itertools import pairwise

import torch

from course_utils.chapters.gradients import check
from course_utils.core.accountant import BYTES
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


def set_to_zero_after(model, loss_of, batch, parts):
    in_parts(model, loss_of, batch, parts)
    model.zero_grad()


def divided_twice(model, loss_of, batch, parts):
    in_parts(model, loss_of, batch, parts, by=parts**2)


def layer_with(queries_kept=2, feed_forward=1):
    """A layer's bytes, with so many tensors as wide as the queries, and so many feed-forwards."""

    def layer_bytes(m, batch, sequence, dtype):
        tokens = batch * sequence
        queries = m.heads * m.head_width
        keys = m.kv_heads * m.head_width
        inside = (4 if m.gated else 2) * m.inner
        numbers = 4 * m.width + queries_kept * queries + 2 * keys + feed_forward * inside
        if m.head_norms:
            numbers += queries + keys
        return tokens * (numbers * BYTES[dtype] + m.heads * BYTES["fp32"])

    return layer_bytes


def step_with_all_gradients_of_inputs(batch, widths):
    """The backward pass alone, but with the first layer's gradient of the data."""
    return 4 * batch * sum(inputs * outputs for inputs, outputs in pairwise(widths)) + 1


TRIED: dict[Check, Tried] = {
    check.accumulated: Tried(
        right=(in_parts, weighted_by_rows, losses_kept),
        wrong=(
            (partial(in_parts, by=1), "4 times too large"),
            (divided_twice, "4 times too small"),
            (partial(in_parts, anew=True), "only the last part's gradients"),
            (partial(in_parts, anew=True, by=1), "only the last part's gradients"),
            (whole_batch_at_once, "the activations of 24 rows are kept"),
            (partial(in_parts, whole=True), "the activations of 24 rows are kept"),
            (one_backward_for_all, "rows are kept at one time"),
            (graphs_retained, "Leave out retain_graph=True"),
            (never_backward, "no gradients are left in .grad"),
            (set_to_zero_after, "and set nothing to zero after it"),
            (partial(in_parts, step=True), "the weights have moved"),
            (partial(in_parts, by=3), "differ from those of the whole batch"),
            (lambda model, loss_of, batch: None, "TypeError"),
        ),
    ),
    check.layer_backward: Tried(
        right=(layer_by_autograd, layer_by_loops),
        wrong=((lambda x, w, g: (x.T @ g, -g @ w.T), "as the second of 2"),),
    ),
    check.step_flops: Tried(
        right=(step_by_product, step_as_a_float),
        wrong=(
            (
                step_with_all_gradients_of_inputs,
                "gave 3,585 instead of 4,352 FLOPs, 767 short. No single part",
            ),
        ),
    ),
    check.layer_bytes: Tried(
        right=(layer_with(),),
        wrong=(
            (layer_with(queries_kept=1), "queries or attention's result left out: 24,576 short."),
            (
                layer_with(feed_forward=2),
                "Normalisations ✓, queries ✓, keys and values ✓, attention's result ✓, head norms' "
                "inputs ✓, row sums ✓, feed-forward counted twice: 153,600 too many.",
            ),
        ),
    ),
}
