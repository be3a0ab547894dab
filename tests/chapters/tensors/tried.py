"""Answers to the exercises of notebook 02."""

import itertools
import math

import numpy as np
import torch

from course_utils.chapters.tensors import check
from tests.engine.tried import Check, Tried


def has_strides(walk, new_shape):
    """Take the strides from the walk's own numbers, and say whether they lead to all of them."""
    places = np.array(walk).reshape(new_shape)
    expected = np.full(new_shape, walk[0])
    for dimension, size in enumerate(new_shape):
        if size > 1:
            stride = places.take(1, dimension).flat[0] - walk[0]
            expected += stride * np.indices(new_shape)[dimension]
    return bool((places == expected).all())


def has_even_steps(walk, new_shape):
    steps = {after - before for before, after in itertools.pairwise(walk)}
    return len(steps) == 1


def cut_in_numpy(stride, offset, start, stop, step):
    """Let NumPy slice all positions of the dimension."""
    cut = np.arange(offset, offset + stop * stride, stride)[start:stop:step]
    return [len(cut), step * stride, cut[0]]


def cut_in_a_loop(stride, offset, start, stop, step):
    size = 0
    for _ in range(start, stop, step):
        size += 1
    return size, stride * step, offset + stride * start


def cut_by_torch(stride, offset, start, stop, step):
    base = torch.zeros(offset + stop * stride + 1)
    cut = base.as_strided((stop,), (stride,), offset)[start:stop:step]
    return cut.shape[0], stride * step, cut.storage_offset()


def cut_to_the_last(stride, offset, start, stop, step):
    """Take the index `stop`, too."""
    return (stop - start) // step + 1, step * stride, offset + start * stride


def steps_in_a_loop(shape, number_bytes, free_bytes):
    step_bytes = torch.empty(shape, device="meta").numel() * number_bytes
    steps = 0
    while free_bytes - step_bytes >= 0:
        free_bytes -= step_bytes
        steps += 1
    return steps


def one_step_too_few(shape, number_bytes, free_bytes):
    step_bytes = math.prod(shape) * number_bytes
    return (free_bytes - step_bytes) // step_bytes


def steps_that_leave_some_bytes_free(shape, number_bytes, free_bytes):
    step_bytes = math.prod(shape) * number_bytes
    steps = 0
    while free_bytes - step_bytes > 0:
        free_bytes -= step_bytes
        steps += 1
    return steps


def sizes_that_repeat(shape, stride):
    """Keep the sizes whose stride is 0, and leave the others out."""
    return math.prod(size for size, step in zip(shape, stride, strict=True) if not step)


def by_a_walk(shape, stride):
    """Go through the positions dimension by dimension, as a sum of sets."""
    used = {0}
    for size, step in zip(shape, stride, strict=True):
        used = {place + index * step for place in used for index in range(size)}
    return len(used)


def by_writing(shape, stride):
    """Write a 1 to every element of a tensor that holds zeros."""
    base = torch.zeros(1000)
    base.as_strided(shape, stride).fill_(1)
    return base.sum()


def windows_in_a_loop(n, width, step):
    count = 0
    begin = 0
    while begin + width <= n:
        count += 1
        begin += step
    return [[count, width], [step, 1]]


def windows_by_torch(n, width, step):
    view = torch.zeros(n).unfold(0, width, step)
    return view.shape, view.stride()


def windows_rounded_to_the_nearest(n, width, step):
    return (round((n - width) / step) + 1, width), (step, 1)


def lines_of_the_bytes_spanned(count, stride, number_bytes):
    return min(count, -(-count * stride * number_bytes // 64))


def lines_by_formula(count, stride, number_bytes):
    return (count - 1) * min(stride * number_bytes, 64) // 64 + 1


def lines_by_torch(count, stride, number_bytes):
    return (torch.arange(count) * stride * number_bytes // 64).unique().numel()


def lines_in_a_loop(count, stride, number_bytes):
    lines = 0
    last = None
    for i in range(count):
        line = i * stride * number_bytes // 64
        lines += line != last
        last = line
    return float(lines)


def mask_by_distance(tokens, width):
    i = torch.arange(tokens)
    back = i[:, None] - i
    return (back >= 0) & (back < width)


def mask_in_a_loop(tokens, width):
    mask = torch.zeros(tokens, tokens, dtype=torch.bool)
    for query in range(tokens):
        mask[query, max(0, query - width + 1) : query + 1] = True
    return mask


BOTH_STRIDES = "in a transpose they don't. Use both strides."


def compared_with_the_first_steps(walk, new_shape):
    """Along each dimension, but with all steps at index 0 of dimension 0."""
    grid = torch.tensor(walk).view(new_shape)
    for dimension in range(grid.dim()):
        steps = grid.diff(dim=dimension)
        if (steps != steps[0]).any():
            return False
    return True


def compared_within_rows(walk, new_shape):
    grid = torch.tensor(walk).view(new_shape)
    for dimension in range(grid.dim()):
        for row in grid.diff(dim=dimension):
            if len(row.unique()) > 1:
                return False
    return True


def without_dimension_0(walk, new_shape):
    grid = torch.tensor(walk).view(new_shape)
    return all(len(grid.diff(dim=d).unique()) <= 1 for d in range(1, grid.dim()))


def viewed_by_torch(walk, new_shape):
    try:
        torch.tensor(walk).view(new_shape)
        return True
    except RuntimeError:
        return False


def compared_by_extremes(walk, new_shape):
    grid = torch.tensor(walk).view(new_shape)
    for dimension in range(grid.dim()):
        steps = grid.diff(dim=dimension)
        if steps.min() != steps.max():
            return False
    return True


def compared_with_the_first_step(walk, new_shape):
    grid = torch.tensor(walk).view(new_shape)
    for dimension in range(grid.dim()):
        steps = grid.diff(dim=dimension).flatten()
        if any(steps != steps[0]):
            return False
    return True


def addresses_in_a_list(tensors):
    seen = []
    for tensor in tensors:
        address = tensor.untyped_storage()._cdata
        if address not in seen:
            seen.append(address)
    return sum(seen)


def bytes_of_the_first_views(tensors):
    seen = set()
    total = 0
    for tensor in tensors:
        address = tensor.untyped_storage()._cdata
        if address not in seen:
            seen.add(address)
            total += tensor.nbytes
    return total


def bytes_by_storage(tensors):
    return {t.untyped_storage()._cdata: t.untyped_storage().nbytes() for t in tensors}


TRIED: dict[Check, Tried] = {
    check.storage_bytes: Tried(
        wrong=(
            (bytes_by_storage, "Return the sum of its values"),
            (
                lambda tensors: sum(bytes_by_storage(tensors)),
                "The sum of a dict is that of its keys",
            ),
            (
                addresses_in_a_list,
                "For a tensor of shape (4, 6), your function gave no sum of bytes. An address, ",
            ),
            (bytes_of_the_first_views, "A slice keeps its whole storage"),
            (
                lambda tensors: sum(t.nbytes for t in tensors),
                "For tensors of shape (4, 6) and (6, 4) in 1 storage",
            ),
        ),
    ),
    check.element: Tried(
        right=(lambda s, stride, offset, i, j: s[sum(np.multiply(stride, (i, j))) + offset],),
        wrong=(
            (lambda s, stride, offset, i, j: s[offset + i * stride[0] + j], BOTH_STRIDES),
            (lambda s, stride, offset, i, j: s[i * stride[0] + j], BOTH_STRIDES),
        ),
    ),
    check.can_view: Tried(
        right=(has_strides,),
        wrong=(
            (has_even_steps, "That is view(-1)."),
            (lambda walk, new: np.diff(np.reshape(walk, new)), "True or False is wanted"),
            (compared_with_the_first_steps, "steps[0] is not one number"),
            (compared_within_rows, "compare only the steps within one row?"),
            (without_dimension_0, "Does a range begin at 1"),
            (viewed_by_torch, "torch.tensor makes a new tensor"),
            (
                compared_by_extremes,
                "RuntimeError: min() of a tensor without numbers. A dimension of size 1 has no",
            ),
            (compared_with_the_first_step, "A dimension of size 1 has no steps"),
        ),
    ),
    check.cut: Tried(
        right=(
            cut_in_numpy,
            cut_in_a_loop,
            cut_by_torch,
            lambda st, o, a, b, by: (math.ceil((b - a) / by), st * by, o + a * st),
            lambda st, o, a, b, by: torch.tensor([-(-(b - a) // by), st * by, o + a * st]),
        ),
        wrong=(
            (cut_to_the_last, "because stop itself is left out."),
            (lambda st, o, a, b, by: (len(range(a, b, by)), st * by, o), "start moves the offset."),
            (
                lambda st, o, a, b, by: (o + a * st, st * by, len(range(a, b, by))),
                "; offset: 3 instead of 1.",
            ),
        ),
    ),
    check.steps_that_fit: Tried(
        right=(
            steps_in_a_loop,
            lambda shape, number, free: free // (math.prod(shape) * number),
            lambda shape, number, free: free // number // math.prod(shape),
            lambda shape, number, free: math.floor(free / (math.prod(shape) * number)),
            lambda shape, number, free: np.floor_divide(free, np.prod(shape) * number),
        ),
        wrong=(
            (lambda shape, number, free: round(free / math.prod(shape) / number), "round down"),
            (lambda shape, number, free: free // (sum(shape) * number), "gave 33; expected 8."),
            (lambda shape, number, free: free // shape[-1], "expected 8."),
            (one_step_too_few, "one step too few"),
            (steps_that_leave_some_bytes_free, "one step too few"),
        ),
    ),
    check.positions: Tried(
        right=(
            by_a_walk,
            by_writing,
            lambda shape, stride: torch.arange(1000).as_strided(shape, stride).unique().numel(),
            lambda shape, stride: float(by_a_walk(shape, stride)),
        ),
        wrong=(
            (lambda shape, stride: stride[0] * shape[0], "expected 4."),
            (lambda shape, stride: max(shape), "expected 12."),
            (sizes_that_repeat, "whose stride is 0"),
            (lambda shape, stride: set(range(math.prod(shape))), "One plain number is wanted."),
        ),
    ),
    check.strided_windows: Tried(
        right=(
            windows_in_a_loop,
            windows_by_torch,
            lambda n, width, step: ((len(range(0, n - width + 1, step)), width), (step, 1)),
            lambda n, width, step: ((math.floor((n - width) / step) + 1, float(width)), (step, 1)),
        ),
        wrong=(
            (
                lambda n, width, step: ((n // step, width), (step, 1)),
                "gave shape: (8, 3) instead of (6, 3); strides ✓.",
            ),
            (lambda n, width, step: ((n // width, width), (width, 1)), "do not overlap."),
            (
                lambda n, width, step: [(n - width) // step + 1, width, step, 1],
                "Return both: shape and strides.",
            ),
            (windows_rounded_to_the_nearest, "gave shape: (4, 4) instead of (3, 4); strides ✓."),
        ),
    ),
    check.lines_read: Tried(
        right=(
            lines_by_formula,
            lines_by_torch,
            lines_in_a_loop,
            lambda count, stride, number: len(np.unique(np.arange(count) * stride * number // 64)),
        ),
        wrong=(
            (
                lambda count, stride, number: min(count, count * stride * number // 64),
                "gave 1; expected 2.",
            ),
            (lambda count, stride, number: count * stride * number, "expected 12."),
            (lambda count, stride, number: count // (16 // min(stride, 16)), "expected 2."),
            (lines_of_the_bytes_spanned, "gave 102; expected 101."),
        ),
    ),
    check.may_see: Tried(
        right=(
            mask_by_distance,
            mask_in_a_loop,
            lambda tokens, width: mask_by_distance(tokens, width).long(),
            lambda tokens, width: torch.ones(tokens, tokens).tril().triu(1 - width),
            lambda tokens, width: torch.tensor(mask_in_a_loop(tokens, width).tolist()),
        ),
        wrong=(
            (lambda tokens, width: mask_by_distance(tokens, width + 1), "one key too many"),
            (lambda tokens, width: mask_by_distance(tokens, width - 1), "one key too few"),
            (lambda tokens, width: torch.ones(tokens, tokens).triu(1 - width), "tril()"),
            (lambda tokens, width: mask_by_distance(tokens, width).tolist(), "A tensor is wanted."),
            (lambda tokens, width: torch.ones(tokens, tokens).triu(-width), "should be"),
        ),
    ),
}
