"""Answers to the exercises of notebook 05."""

import itertools
from functools import partial

import torch

from course_utils.checks import gradients as check
from tests.tried import Check, Tried


def by_hand(x, w1, w2):
    a = x @ w1
    h = a.clamp(min=0)
    y = h @ w2
    return x.T @ (y @ w2.T * (a > 0)), h.T @ y


def by_autograd(x, w1, w2):
    w1, w2 = w1.clone().requires_grad_(), w2.clone().requires_grad_()
    ((x @ w1).relu() @ w2).pow(2).sum().div(2).backward()
    return [w1.grad, w2.grad]


def by_product(batch, widths, frozen):
    """Another right way: of each layer the products that somebody needs."""
    products = 0
    for layer, (d, k) in enumerate(itertools.pairwise(widths)):
        trained_before = any(n not in frozen for n in range(layer))
        products += d * k * sum((True, layer not in frozen, trained_before))
    return 2 * batch * products


def kept(batch, widths, nonlinearity):
    return 4 * batch * (sum(widths[:-1]) + (nonlinearity == "gelu") * sum(widths[1:-1]))


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


def counter(keep):
    """A counter with that hook, which is given what is known already."""

    def counted(model, data):
        kept = dict.fromkeys((p.untyped_storage().data_ptr() for p in model.parameters()), 0)
        with torch.autograd.graph.saved_tensors_hooks(lambda tensor: keep(kept, tensor), lambda kept: kept):
            model(data)
        return sum(kept.values())

    return counted


def keep(kept, tensor):
    storage = tensor.untyped_storage()
    kept.setdefault(storage.data_ptr(), storage.nbytes())
    return tensor


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


def never_backward(model, loss_of, batch, parts):
    return [loss_of(model(part)) / parts for part in batch.chunk(parts)]


def divided_twice(model, loss_of, batch, parts):
    in_parts(model, loss_of, batch, parts, by=parts**2)


TRIED: dict[Check, Tried] = {
    check.accumulated: Tried(
        right=(in_parts, weighted_by_rows),
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
            (never_backward, "no gradients are left in .grad"),
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
    check.two_layers_by_hand: Tried(
        right=(by_hand, by_autograd),
        wrong=((lambda x, w1, w2: (by_hand(x, w1, w2)[0], 0 * w2), "as the second of 2"),),
    ),
    check.frozen_flops: Tried(right=(by_product, lambda *case: float(by_product(*case)))),
    check.kept_bytes: Tried(right=(kept,)),
}
