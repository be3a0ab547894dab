"""Answers to the exercises of notebook 03."""

import math
from functools import cache
from itertools import pairwise

import torch
from einops import einsum, rearrange

from course_utils.chapters.einsum import check
from course_utils.core import einsums
from course_utils.core.accountant import matrices
from tests.engine.tried import Check, Tried

PATTERNS = {
    "sum": "a b c->a",
    "transpose": "a b c->a c b",
    "dot": "z,z->",
    "outer": "p,q->p q",
    "scores": "b h i d,b h j d->b h i j",
    "mix": "x y i j, x y j k -> x y i k",
}


def matrices_as_lists(m):
    return {name: list(shape) for name, shape in matrices(m).items()}


# Each name's size, or None.


def sizes_with_a_set_for_each_name(names, shapes):
    seen = {}
    for text, shape in zip(names, shapes, strict=True):
        if len(text.split()) != len(shape):
            return None
        for name, size in zip(text.split(), shape, strict=True):
            seen.setdefault(name, set()).add(size)
    if any(len(sizes) > 1 for sizes in seen.values()):
        return None
    return {name: min(sizes) for name, sizes in seen.items()}


def sizes_by_index(names, shapes):
    sizes = {}
    for i in range(len(names)):
        own = names[i].split(" ") if names[i] else []
        if len(own) != len(shapes[i]):
            return None
        for j in range(len(own)):
            if own[j] in sizes and sizes[own[j]] != shapes[i][j]:
                return None
            sizes[own[j]] = float(shapes[i][j])
    return sizes


def sizes_by_strict_zip(names, shapes):
    sizes = {}
    try:
        for text, shape in zip(names, shapes, strict=True):
            for name, size in zip(text.split(), shape, strict=True):
                if sizes.setdefault(name, size) != size:
                    return None
    except ValueError:
        return None
    return sizes


def sizes_split_at_commas(names, shapes):
    return sizes_by_strict_zip([text.replace(" ", "_") for text in names], shapes)


def sizes_of_too_few(names, shapes):
    if any(len(text.split()) < len(shape) for text, shape in zip(names, shapes, strict=True)):
        return None
    return sizes_where_zip_stops(names, shapes)


def sizes_where_zip_stops(names, shapes):
    sizes = {}
    for text, shape in zip(names, shapes, strict=True):
        for name, size in zip(text.split(), shape, strict=False):
            if sizes.setdefault(name, size) != size:
                return None
    return sizes


def sizes_split_at_each_space(names, shapes):
    sizes = {}
    for text, shape in zip(names, shapes, strict=True):
        own = text.split(" ")
        if len(own) != len(shape):
            return None
        for name, size in zip(own, shape, strict=True):
            if sizes.setdefault(name, size) != size:
                return None
    return sizes


def sizes_of_names_that_stand_once(names, shapes):
    if any(len(set(text.split())) < len(text.split()) for text in names):
        return None
    return sizes_by_strict_zip(names, shapes)


def sizes_or_false(names, shapes):
    sizes = sizes_by_strict_zip(names, shapes)
    return False if sizes is None else sizes


def sizes_in_one_dict_for_each(names, shapes):
    found = {}
    for text, shape in zip(names, shapes, strict=True):
        own = sizes_by_strict_zip([text], [shape])
        if own is None:
            return None
        found |= own
    return found


# The FLOPs of a pattern.


def flops_by_einsums(pattern, shapes):
    parsed = einsums.parsed(pattern)
    sizes = {}
    for names, shape in zip(parsed.operands, shapes, strict=True):
        sizes |= dict(zip(names, shape, strict=True))
    return 2 * parsed.steps(sizes)


def flops_by_ones(pattern, shapes):
    ones = [torch.ones(shape) for shape in shapes]
    return 2 * einsum(*ones, pattern).sum()


def flops_in_floats(pattern, shapes):
    return float(flops_by_einsums(pattern, shapes))


def flops_in_a_loop(pattern, shapes):
    left, right = pattern.split("->")[0].split(",")
    flops = 2
    seen = []
    for name, size in zip(left.split() + right.split(), [*shapes[0], *shapes[1]], strict=True):
        if name not in seen:
            flops *= size
            seen.append(name)
    return flops


def flops_of_letters(pattern, shapes):
    sizes = {}
    for names, shape in zip(pattern.split("->")[0].split(","), shapes, strict=True):
        sizes |= dict(zip(names, shape, strict=False))
    return 2 * math.prod(sizes.values())


def flops_of_different_sizes(pattern, shapes):
    return 2 * math.prod({size for shape in shapes for size in shape})


def flops_with_the_result(pattern, shapes):
    return flops_by_einsums(pattern, shapes) + einsum(*map(torch.ones, shapes), pattern).numel()


# Scores of grouped queries.


def scores_in_groups(q, k):
    q = rearrange(q, "b (kv group) i d -> b kv group i d", kv=k.shape[1])
    scores = einsum(q, k, "b kv group i d, b kv j d -> b kv group i j")
    return rearrange(scores, "b kv group i j -> b (kv group) i j")


def scores_summed_over_the_group(q, k):
    q = rearrange(q, "b (kv group) i d -> b kv group i d", kv=k.shape[1])
    return einsum(q, k, "b kv group i d, b kv j d -> b kv i j")


def scores_by_repeating(q, k):
    return q @ k.repeat_interleave(q.shape[1] // k.shape[1], dim=1).mT


def scores_head_by_head(q, k):
    group = q.shape[1] // k.shape[1]
    heads = [q[:, head] @ k[:, head // group].transpose(1, 2) for head in range(q.shape[1])]
    return torch.stack(heads, dim=1)


def scores_by_unflatten(q, k):
    return (q.unflatten(1, (k.shape[1], -1)) @ k[:, :, None].mT).flatten(1, 2)


def scores_by_four_loops(q, k):
    scores = torch.zeros(*q.shape[:3], k.shape[2])
    group = q.shape[1] // k.shape[1]
    for head in range(q.shape[1]):
        for i in range(q.shape[2]):
            for j in range(k.shape[2]):
                scores[:, head, i, j] = (q[:, head, i] * k[:, head // group, j]).sum(-1)
    return scores


# The cheapest order of a chain.


def chain_by_its_last_product(sizes):
    @cache
    def least(first, last):
        if last - first < 2:
            return 0
        costs = []
        for at in range(first + 1, last):
            both = least(first, at) + least(at, last)
            costs.append(both + 2 * sizes[first] * sizes[at] * sizes[last])
        return min(costs)

    return least(0, len(sizes) - 1)


def chain_by_its_first_product(sizes):
    if len(sizes) == 2:
        return 0.0
    least = math.inf
    for at in range(1, len(sizes) - 1):
        pair = 2 * sizes[at - 1] * sizes[at] * sizes[at + 1]
        least = min(least, pair + chain_by_its_first_product(sizes[:at] + sizes[at + 1 :]))
    return least


def chain_by_a_table(sizes):
    n = len(sizes) - 1
    least = torch.zeros(n, n, dtype=torch.int64)
    for length in range(1, n):
        for first in range(n - length):
            last = first + length
            costs = []
            for at in range(first, last):
                product = 2 * sizes[first] * sizes[at + 1] * sizes[last + 1]
                costs.append(least[first, at] + least[at + 1, last] + product)
            least[first, last] = min(costs)
    return least[0, -1]


def chain_by_einsums(sizes):
    names = [f"n{place}" for place in range(len(sizes))]
    operands = [f"{rows} {columns}" for rows, columns in pairwise(names)]
    parsed = einsums.parsed(f"{', '.join(operands)} -> {names[0]} {names[-1]}")
    by_name = dict(zip(names, sizes, strict=True))
    return einsums.orders(parsed, by_name, only_cheapest=True)[0].flops


def chain_that_never_stops(sizes):
    return min(2 * sizes[0] * sizes[1] * sizes[2] + chain_that_never_stops(sizes), 9)


def chain_without_the_first_pair(sizes):
    if len(sizes) == 3:
        return 2 * math.prod(sizes)
    return chain_by_its_last_product(sizes[1:]) + 2 * sizes[0] * sizes[1] * sizes[-1]


# Patches.


def patches_by_pattern(images, p, q):
    pattern = "b (rows p) (columns q) channel -> b (rows columns) (p q channel)"
    return rearrange(images, pattern, p=p, q=q)


def patches_with_rows_dealt_out(images, p, q):
    pattern = "b (p rows) (columns q) channel -> b (rows columns) (p q channel)"
    return rearrange(images, pattern, p=p, q=q)


def patches_with_columns_dealt_out(images, p, q):
    pattern = "b (rows p) (q columns) channel -> b (rows columns) (p q channel)"
    return rearrange(images, pattern, p=p, q=q)


def patches_by_permute(images, p, q):
    b, rows, columns, channels = images.shape
    apart = images.view(b, rows // p, p, columns // q, q, channels)
    return apart.permute(0, 1, 3, 2, 4, 5).reshape(b, -1, p * q * channels)


def patches_by_slices(images, p, q):
    patches = []
    for row in range(0, images.shape[1], p):
        for column in range(0, images.shape[2], q):
            patches.append(images[:, row : row + p, column : column + q].flatten(1))
    return torch.stack(patches, 1)


def patches_by_unfold(images, p, q):
    return images.unfold(1, p, p).unfold(2, q, q).permute(0, 1, 2, 4, 5, 3).flatten(3).flatten(1, 2)


def patches_in_floats(images, p, q):
    return patches_by_pattern(images.double(), p, q)


def patches_by_torchs_unfold(images, p, q):
    channels_first = images.permute(0, 3, 1, 2).double()
    return torch.nn.functional.unfold(channels_first, (p, q), stride=(p, q)).mT


TRIED: dict[Check, Tried] = {
    check.matrices: Tried(right=(matrices_as_lists,)),
    check.columns_of_head: Tried(
        right=(
            lambda x, head, heads: x.chunk(heads, dim=-1)[head],
            lambda x, head, heads: x.unflatten(-1, (heads, -1))[..., head, :],
        ),
        wrong=(
            (lambda x, head, heads: x[head], "expected a tensor of shape (2, 4, 3)"),
            (lambda x, head, heads: x[..., head * x.shape[-1] / heads], "stopped"),
            (lambda x, head, heads: x.split(heads, dim=-1)[head], "as many as there are heads"),
            (
                lambda x, head, heads: x.view(*x.shape[:-1], heads, -1)[..., head, :],
                "but a view is what your slices will judge",
            ),
            (
                lambda x, head, heads: x.reshape(*x.shape[:-1], heads, -1)[..., head, :],
                "Slice the width: x[..., begin:end]",
            ),
            (
                lambda x, head, heads: rearrange(x, "... (h d) -> h ... d", h=heads)[head],
                "but a pattern is what your slices will judge",
            ),
            (lambda x, head, heads: x.chunk(heads, dim=-1)[head].tolist(), "A tensor is wanted."),
        ),
    ),
    check.patterns: Tried(
        right=(PATTERNS, PATTERNS | {"dot": "n,n->", "sum": "b x y->b"}),
        wrong=(
            (
                PATTERNS | {"sum": "b i d -> b i"},
                "sum: 'b i d -> b i' computes something else. A name that is kept",
            ),
            (PATTERNS | {"sum": "b i d ->"}, "A dimension that the result lacks is summed: keep b"),
            (PATTERNS | {"sum": "b i i -> b"}, "give each dimension a name of its own"),
            (PATTERNS | {"sum": "b i -> b"}, "'b i -> b' should name this many dimensions: 3."),
            (PATTERNS | {"transpose": "b i d -> b i d"}, "The result's order is b d i"),
            (PATTERNS | {"transpose": "b i d -> d i b"}, "The result's order is b d i"),
            (PATTERNS | {"dot": "i, j ->"}, "i and j are the same dimension on both sides"),
            (PATTERNS | {"dot": "i, i -> i"}, "leave i out of the result"),
            (
                PATTERNS | {"outer": "i, i -> i"},
                "It has one name, i, for two dimensions, row and column: give them two names.",
            ),
            (
                PATTERNS | {"outer": "i, j -> j i"},
                "'i, j -> j i' has the result's dimensions in another order. The result's order is "
                "i j.",
            ),
            (PATTERNS | {"outer": "i, j ->"}, "keep i"),
            (
                PATTERNS | {"scores": "b h i d, b h i d -> b h i"},
                "for two dimensions, query and key",
            ),
            (
                PATTERNS | {"scores": "b h i d, b g j d -> b h i j"},
                "h and g are the same dimension",
            ),
            (
                PATTERNS | {"scores": "b h i d, c h j d -> b h i j"},
                "b and c are the same dimension",
            ),
            (
                PATTERNS | {"scores": "b h q d, b h d k -> b h q k"},
                "It has one name, d, for two dimensions, d and key",
            ),
            (
                PATTERNS | {"scores": "b h i d, b h j e -> b h i j"},
                "d and e are the same dimension",
            ),
            (
                PATTERNS | {"scores": "b h q d, b h k d -> b h k q"},
                "has the result's dimensions in another order. The result's order is b h q k.",
            ),
            (
                PATTERNS | {"scores": "b h q d, b h k d -> b h q"},
                "computes something else. A dimension that the result lacks is summed: keep k.",
            ),
            (PATTERNS | {"scores": "b h i d, b h j d -> b i j"}, "keep h"),
            (PATTERNS | {"scores": "b h i d, b h j d -> b h i j d"}, "leave d out"),
            (PATTERNS | {"scores": "bhid,bhjd->bhij"}, "Put spaces between the names"),
            (
                PATTERNS | {"sum": "btw->b"},
                "at ▸◂: b comes from no operand. Put spaces between the names.",
            ),
            (
                PATTERNS | {"scores": "b h i d b h j d -> b h i j"},
                "one tensor, and there are two: a comma is missing between the two tensors.",
            ),
            (PATTERNS | {"dot": "i i ->"}, "a comma is missing between the two tensors."),
            (PATTERNS | {"sum": "b, i d -> b"}, "has a comma, and there is one tensor"),
            (PATTERNS | {"scores": "b h i d, b h j d"}, "the -> is missing"),
            (PATTERNS | {"scores": "b h i d, b h j d → b h i j"}, "an arrow is written ->"),
            (PATTERNS | {"scores": "... i d, ... j d -> ... i j"}, "..."),
            (PATTERNS | {"scores": "__import__('os')"}, "the -> is missing"),
            (PATTERNS | {"mix": "b h i j, b h j d -> b h d i"}, "The result's order is b h i d"),
            (PATTERNS | {"mix": "b h i j, b h i d -> b h j d"}, "two dimensions, query and key"),
            (PATTERNS | {"mix": 3}, "mix: a pattern is a string"),
            (
                PATTERNS | {"mix": ...},
                "sum ✓, transpose ✓, dot ✓, outer ✓, scores ✓.\nStill open: mix.",
            ),
            (
                dict.fromkeys(PATTERNS, ...) | {"dot": "i, i ->"},
                "dot ✓.\nStill open: sum, transpose, outer, scores and mix.",
            ),
            (
                PATTERNS | {"dot": "i, j ->", "outer": "i, j -> j i", "mix": ...},
                "sum ✓, transpose ✓, scores ✓.\n"
                "dot: 'i, j ->' computes something else. i and j are the same dimension on both "
                "sides of the comma: give it one name.\n"
                "outer: 'i, j -> j i' has the result's dimensions in another order. The result's "
                "order is i j.\n"
                "Still open: mix.",
            ),
            (
                PATTERNS | {"sum": "b i d -> b i", "scores": "b h q d, b h k d -> b h q"},
                "transpose ✓, dot ✓, outer ✓, mix ✓.\nsum: 'b i d -> b i' computes something else.",
            ),
            (
                PATTERNS | {"sum": "b i d -> b i", "scores": "b h q d, b h k d -> b h q"},
                "scores: 'b h q d, b h k d -> b h q' computes something else.",
            ),
            (dict.fromkeys(PATTERNS, ...) | {"mix": "i, i ->"}, "mix: left of the arrow"),
            ({"sum": "b i d -> b"}, "with the names sum, transpose, dot"),
            (PATTERNS | {"trace": "i i ->"}, "and no others"),
        ),
    ),
    check.sizes_of: Tried(
        right=(sizes_with_a_set_for_each_name, sizes_by_index, sizes_by_strict_zip),
        wrong=(
            (sizes_of_too_few, "gave {'batch': 4, 'token': 5}; expected None"),
            (sizes_where_zip_stops, "zip stops at the shorter one"),
            (sizes_in_one_dict_for_each, "keep one dict for all arguments"),
            (sizes_or_false, "gives None alone"),
            (sizes_split_at_each_space, "write split()"),
            (sizes_of_names_that_stand_once, "if its two sizes are the same"),
            (lambda names, shapes: sizes_by_strict_zip(names, shapes) or {}, "gives None alone"),
            (lambda names, shapes: shapes, "expected a dict with the keys batch, d and k."),
            (sizes_split_at_commas, "But here every name has one size"),
        ),
    ),
    check.pattern_flops: Tried(
        right=(flops_by_einsums, flops_by_ones, flops_in_floats, flops_in_a_loop),
        wrong=(
            (flops_with_the_result, "expected 240 FLOPs"),
            (flops_of_different_sizes, "Two names may have the same size"),
            (lambda pattern, shapes: 2 * len(pattern.split()), "expected 240 FLOPs"),
            (flops_of_letters, "gave 1,440; expected 240 FLOPs."),
            (
                lambda pattern, shapes: 2 * math.prod(shapes[0]) * shapes[1][-1],
                "expected 1,680 FLOPs",
            ),
            (lambda pattern, shapes: str(flops_by_einsums(pattern, shapes)), "plain number"),
        ),
    ),
    check.grouped_scores: Tried(
        right=(
            scores_in_groups,
            scores_by_repeating,
            scores_head_by_head,
            scores_by_unflatten,
            scores_by_four_loops,
        ),
        wrong=(
            (lambda q, k: q @ k.mT, "Split the heads of q into groups"),
            (scores_summed_over_the_group, "That sums over the group"),
            (lambda q, k: scores_by_repeating(q, k).mean(1), "expected a tensor of shape"),
            (lambda q, k: scores_by_repeating(q, k).flatten(0, 1), "expected a tensor of shape"),
            (lambda q, k: scores_by_repeating(q, k).tolist(), "A tensor is wanted."),
            (lambda q, k: scores_by_repeating(q, k) / q.shape[-1], "and should be"),
        ),
    ),
    check.chain_flops: Tried(
        right=(
            chain_by_its_last_product,
            chain_by_its_first_product,
            chain_by_a_table,
            chain_by_einsums,
        ),
        wrong=(
            (chain_that_never_stops, "RecursionError"),
            (chain_without_the_first_pair, "gave 65,536; expected 4,096 FLOPs."),
            (lambda sizes: 2 * math.prod(sizes[:2]), "expected 480 FLOPs"),
            (lambda sizes: min(sizes), "expected 480 FLOPs"),
        ),
    ),
    check.patches_of: Tried(
        right=(
            patches_by_pattern,
            patches_by_permute,
            patches_by_slices,
            patches_by_unfold,
            patches_in_floats,
        ),
        wrong=(
            (patches_by_torchs_unfold, "The channels come first there."),
            (patches_with_rows_dealt_out, "The rows are those of no patch."),
            (patches_with_columns_dealt_out, "The columns are those of no patch."),
            (
                lambda images, p, q: images.view(len(images), -1, p * q),
                "[0, 0, 3] is 3, and should be 6.",
            ),
            (lambda images, p, q: images, "expected a tensor of shape"),
            (lambda images, p, q: patches_by_pattern(images, p, q).mT, "and should be 8"),
            (lambda images, p, q: patches_by_pattern(images, p, q).tolist(), "A tensor is wanted."),
        ),
    ),
}
