"""Answers to the exercises of notebook 05."""

import itertools
from functools import partial

import torch

from course_utils.chapters.gradients import check
from tests.engine.tried import Check, Tried


def layer_by_autograd(x, w, g):
    x, w = x.clone().requires_grad_(), w.clone().requires_grad_()
    (x @ w).backward(g)
    return [w.grad, x.grad]


def layer_by_loops(x, w, g):
    of_x, of_w = torch.zeros_like(x), torch.zeros_like(w)
    for i, j, k in itertools.product(range(len(x)), *map(range, w.shape)):
        of_w[j, k] += x[i, j] * g[i, k]
        of_x[i, j] += w[j, k] * g[i, k]
    return of_w, of_x


def step_by_product(batch, widths):
    """Another right way: 6BP, less what nobody needs."""
    shapes = list(itertools.pairwise(widths))
    return 6 * batch * sum(d * k for d, k in shapes) - 2 * batch * shapes[0][0] * shapes[0][1]


def in_parts(model, loss_of, batch, parts, *, by=None, anew=False, whole=False, step=False):
    """Right, or with one thing done wrongly."""
    for part in batch.chunk(parts):
        if anew:
            model.zero_grad()
        (loss_of(model(batch if whole else part)) / (by or parts)).backward()
    if step:
        torch.optim.SGD(model.parameters(), lr=0.1).step()


def weighted_by_rows(model, loss_of, batch, parts):
    """Another right way, which would also do for parts of several sizes."""
    size = -(-len(batch) // parts)
    for begin in range(0, len(batch), size):
        part = batch[begin : begin + size]
        loss = len(part) / len(batch) * loss_of(model(part))
        torch.autograd.backward(loss)


def one_backward_for_all(model, loss_of, batch, parts):
    sum(loss_of(model(part)) / parts for part in batch.chunk(parts)).backward()


def graphs_retained(model, loss_of, batch, parts):
    """Each part goes backward before the next, but its activations stay with its loss."""
    losses = []
    for part in batch.chunk(parts):
        losses.append(loss_of(model(part)) / parts)
        losses[-1].backward(retain_graph=True)


def losses_kept(model, loss_of, batch, parts):
    """Right: without retain_graph a loss that is kept holds nothing but itself."""
    losses = []
    for rows in torch.arange(len(batch)).chunk(parts):
        losses.append(loss_of(model(batch[rows])) / parts)
        losses[-1].backward()


def never_backward(model, loss_of, batch, parts):
    return [loss_of(model(part)) / parts for part in batch.chunk(parts)]


def set_to_zero_after(model, loss_of, batch, parts):
    in_parts(model, loss_of, batch, parts)
    model.zero_grad()


def divided_twice(model, loss_of, batch, parts):
    in_parts(model, loss_of, batch, parts, by=parts**2)


TRIED: dict[Check, Tried] = {
    check.accumulated: Tried(
        right=(in_parts, weighted_by_rows, losses_kept),
        wrong=(
            (partial(in_parts, by=1), "4 times too large"),
            (divided_twice, "4 times too small"),
            (partial(in_parts, anew=True), "only the last part's gradients"),
            (partial(in_parts, anew=True, by=1), "only the last part's gradients"),
            (
                lambda model, loss_of, batch, parts: loss_of(model(batch)).backward(),
                "the activations of 24 rows are kept",
            ),
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
    check.step_flops: Tried(right=(step_by_product, lambda *case: float(step_by_product(*case)))),
}
