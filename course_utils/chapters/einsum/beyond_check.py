"""Exercises in *Beyond* of notebook 03; `check` imports them by name, and has the others."""

import math
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import pairwise

import torch
from einops import einsum, rearrange
from jaxtyping import Float, jaxtyped

from course_utils.core import einsums, measure
from course_utils.engine.judging import Answers, function, outcome

Shape = tuple[int, ...]

# What a signature refuses.

# Names and shapes of calls: those that a signature refuses are marked.
CALLS = (
    (["batch d", "d k"], [(4, 6), (6, 7)]),
    (["batch query d", "batch key d"], [(4, 5, 6), (4, 5, 6)]),  # two names of one size
    (["batch d"], [(4, 5, 6)]),  # refused: a name is missing
    (["batch token d"], [(4, 5)]),  # refused: a dimension is missing
    (["row row"], [(5, 5)]),
    (["row row"], [(4, 5)]),  # refused
    (["batch d", "d k"], [(4, 5), (6, 7)]),  # refused
    (["batch query d", "batch key d"], [(4, 5, 6), (1, 5, 6)]),  # refused
    (["d", "batch d", ""], [(6,), (4, 6), ()]),
    (["d", "k d", "k"], [(6,), (4, 6), (5,)]),  # refused
)

# Names in calls that a signature accepts, and the advice to whoever refuses such a call.
REFUSED_BY_MISTAKE = {
    "row row": "A name may stand twice even in one argument, if its two sizes are the same.",
    "": "A number without dimensions has no names. ''.split(' ') is [''], which is one name: write "
    "split().",
}
ONES_PASS = "That lets a size of 1 pass, as broadcasting does. Here 1 is a size like any other."


@function(
    CALLS,
    hints=(
        "Go through names and shapes together, by zip(names, shapes), and split each string at its "
        "spaces: 'batch d'.split() is ['batch', 'd'].",
        "Keep one dict for the whole call. Note the size of a name that is new; if the name is in "
        "the dict already, the two sizes have to be the same.",
        "zip stops where the shorter one ends, so compare the number of names with the number of "
        "dimensions before it.",
    ),
)
def sizes_of(names: Sequence[str], shapes: Sequence[Shape]) -> Answers:
    """The check of a reader's sizes_of(names, shapes): each name's size, or None if refused."""
    texts_and_shapes = list(zip(names, shapes, strict=True))  # such as ("batch d", (4, 6))
    arguments = [list(zip(text.split(), shape, strict=False)) for text, shape in texts_and_shapes]
    pairs = [pair for argument in arguments for pair in argument]  # of all, such as ("batch", 4)
    sizes = dict(pairs)  # of a name with two sizes, it has the last one

    def sizes_unless(is_refused: bool) -> dict[str, int] | None:
        return None if is_refused else sizes

    is_refused = _jaxtyping_refuses(names, shapes)
    yield sizes_unless(is_refused), "It accepts and refuses the same calls as jaxtyping."
    letters = [pair for text, shape in texts_and_shapes for pair in zip(text, shape, strict=False)]
    yield dict(letters), "A loop over a string takes its letters. Split it: text.split()."
    has_other_rank = any(len(text.split()) != len(shape) for text, shape in texts_and_shapes)
    yield (
        sizes_unless(has_other_rank),
        "The last size wins there. If a name is known already, compare its size with the new one.",
    )
    yield (
        sizes_unless(_disagree(pairs)),
        "zip stops at the shorter one, so a name or a dimension may be missing. Count them first.",
    )
    for refusal in ({}, False):  # what a reader may return in place of None
        yield refusal if is_refused else sizes, "A call that is refused gives None alone."
    for text, advice in REFUSED_BY_MISTAKE.items():
        yield sizes_unless(is_refused or text in names), advice
    yield (
        sizes_unless(has_other_rank or any(map(_disagree, arguments))),
        "A name has one size in the whole call, so keep one dict for all arguments.",
    )
    yield (
        sizes_unless(is_refused or len(set(sizes.values())) < len(sizes)),
        "Two names may have the same size: a text of 5 tokens has 5 queries and 5 keys.",
    )
    # As in broadcasting, sizes of 1 are not compared. The second dict has a name's first size.
    refuses_all_but_ones = has_other_rank or _disagree([pair for pair in pairs if pair[1] > 1])
    yield sizes_unless(refuses_all_but_ones), ONES_PASS
    yield None if refuses_all_but_ones else dict(reversed(pairs)), ONES_PASS
    yield None, "None refuses the call. But here every name has one size, so give the sizes."


def _disagree(pairs: Sequence[tuple[str, int]]) -> bool:
    """Whether a name has two sizes: ("d", 5) and ("d", 6), for example."""
    return len(set(pairs)) > len(dict(pairs))  # there are more different pairs than names


def _jaxtyping_refuses(names: Sequence[str], shapes: Sequence[Shape]) -> bool:
    """Whether jaxtyping refuses tensors of these shapes; their names are like "batch d"."""
    with jaxtyped("context"):  # within it, a name has one size
        for text, shape in zip(names, shapes, strict=True):
            tensor = torch.empty(shape, device="meta")  # which has a shape, but no memory
            if not isinstance(tensor, Float[torch.Tensor, text]):
                return True
    return False


# Attention with its weights.

PRODUCTS = (
    ("batch d, d k -> batch k", [(4, 6), (6, 5)]),
    ("batch i d, batch j d -> batch i j", [(4, 5, 7), (4, 6, 7)]),
    ("head query key, head key d -> head query d", [(6, 4, 5), (6, 5, 7)]),
    ("token width, part inner width -> part token inner", [(5, 8), (3, 6, 8)]),
    ("place, place ->", [(9,), (9,)]),
    ("batch i d, batch j d -> batch i j", [(4, 5, 7), (4, 5, 7)]),  # two names of one size
)


@function(
    PRODUCTS,
    unit="FLOPs",
    hints=(
        "pattern.split('->')[0] is what stands left of the arrow. Split it at its comma, and each "
        "half at its spaces. Then every name has its size in the shape.",
        "A dict takes care of a name that stands twice: sizes[name] = size.",
        "The innermost line runs once for each combination of all names, so multiply their sizes. "
        "Each time it multiplies once and adds once.",
    ),
)
def pattern_flops(pattern: str, shapes: Sequence[Shape]) -> Answers:
    """The check of a reader's pattern_flops(pattern, shapes): an einsum's FLOPs, of two tensors."""
    parsed = einsums.parsed(pattern)
    operands = [torch.empty(shape, device="meta") for shape in shapes]
    counted = measure.flops(lambda: einsum(*operands, pattern)).total
    yield counted, "It agrees with torch's own counter."
    yield counted // 2, "Each time there is a multiplication and an addition: 2 FLOPs."
    numbers = [math.prod(shape) for shape in shapes]
    yield (
        2 * math.prod(numbers),
        "A name in both tensors is one loop, not two. And names are words: split the string.",
    )
    sizes = {}
    for names, shape in zip(parsed.operands, shapes, strict=True):
        sizes.update(zip(names, shape, strict=True))
    yield (
        2 * math.prod(set(sizes.values())),
        "Two names may have the same size, and each is a loop. Collect sizes by name.",
    )
    kept = math.prod(sizes[name] for name in parsed.output)
    summed = math.prod(sizes[name] for name in parsed.summed)
    yield 2 * kept, "A name that is summed is a loop, too: the result alone does not show it."
    yield 2 * summed, "The names that are kept are loops, too."
    inside_each_other = "The loops are inside each other, so their sizes are multiplied."
    yield 2 * sum(sizes.values()), inside_each_other
    yield sum(sizes.values()), inside_each_other
    yield sum(numbers) + kept, "That counts the numbers that are read and written, and no FLOPs."
    batch = math.prod(sizes[name] for name in parsed.names if parsed.role(name) == "batch")
    yield counted // batch, "The batch is a loop like the others: one product for each index."


# Shared keys.


def _queries_and_keys() -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """Yield random queries and keys, (batch, heads, sequence, d), in four ways to share keys.

    First each query head has a key head of its own; then two query heads share one, then three;
    at last all query heads share one key head.
    """
    draw = torch.Generator().manual_seed(3)
    for batch, heads, kv_heads, queries, keys, d in (
        (2, 4, 4, 3, 5, 6),
        (2, 4, 2, 3, 5, 6),
        (1, 6, 2, 4, 4, 8),
        (2, 8, 1, 3, 2, 4),
    ):
        yield (
            torch.randn(batch, heads, queries, d, generator=draw),
            torch.randn(batch, kv_heads, keys, d, generator=draw),
        )


@function(
    _queries_and_keys,
    tolerance=1e-5,
    hints=(
        "One key head serves heads // kv_heads neighbouring query heads.",
        "Split the heads of q into kv heads and groups, by (kv group). Then q has one name more "
        "than k, and einsum lets each group meet the same keys.",
        "The result has a row for each query head again: merge by (kv group), as you split.",
    ),
)
def grouped_scores(q: torch.Tensor, k: torch.Tensor) -> Answers:
    """The check of a reader's grouped_scores(q, k): scores in grouped-query attention."""
    heads = q.shape[1]
    kv = k.shape[1]
    group = heads // kv
    right = torch.stack([q[:, head] @ k[:, head // group].mT for head in range(heads)], dim=1)
    yield right, "Head by head, from a head of keys for each head of queries to one for all."
    yield right / q.shape[-1] ** 0.5, "The scores before they are divided by √d are asked for."
    yield right.softmax(-1), "The scores themselves are asked for, before any softmax."
    yield right.mT, "Queries come first, then keys: a row for each query."
    by_group = rearrange(right, "b (kv group) i j -> b kv group i j", kv=kv)
    yield by_group, "Merge kv and group, so that there is one dimension of heads again."
    yield (
        by_group.sum(2),
        "That sums over the group. Each head of queries has scores of its own, so keep group in "
        "the result, too.",
    )
    yield right.sum(1), "The heads are a batch, so keep them: what the result lacks is summed."
    for ungrouped in (lambda: torch.einsum("bhid,bhjd->bhij", q, k), lambda: q @ k.mT):
        yield (
            outcome(ungrouped),  # an error where q has more heads than k, if k has several
            "That needs as many heads of keys as of queries. Split the heads of q into groups, "
            "or repeat those of k.",
        )
    # repeat() puts copies of all heads one after the other: heads 0, 1, 0, 1 of keys.
    yield (
        q @ k.repeat(1, group, 1, 1).mT,
        "Heads that share keys are neighbours. With 2 heads of keys, heads 0 and 1 of 4 use the "
        "first, and not heads 0 and 2. In (kv group) the group changes fastest.",
    )
    yield q @ k[:, :1].mT, "All heads use the first head's keys. Each group has keys of its own."
    # The first of these mistakes has the other order in the merge alone, the second in the split.
    merge_as_split = "Merge in the order in which you split: (kv group) both times."
    yield rearrange(by_group, "b kv group i j -> b (group kv) i j"), merge_as_split
    dealt_out = rearrange(q, "b (group kv) i d -> b kv group i d", kv=kv) @ k.unsqueeze(2).mT
    yield rearrange(dealt_out, "b kv group i j -> b (kv group) i j"), merge_as_split


# Who chooses the order.

# The sizes of chains of matrices: 8, 5, 6 are an 8 × 5 matrix times a 5 × 6 one.
CHAINS = (
    ([8, 5, 6],),
    ([64, 4, 64, 4],),
    ([4, 64, 4, 64],),
    ([30, 35, 15, 5, 10, 20, 25],),
    ([7, 40, 6, 50, 5, 60],),
    ([5, 6],),
)


@function(
    CHAINS,
    unit="FLOPs",
    hints=(
        "Some two neighbours come first, m × n and n × k, for 2 · m · n · k FLOPs. What is left is "
        "a chain with one matrix less: its sizes lack n.",
        "The function can call itself for what is left. Try each of the inner sizes as n, and take "
        "the cheapest.",
        "One matrix alone, which is two sizes, takes 0: there the function must not go on.",
    ),
)
def chain_flops(sizes: Sequence[int]) -> Answers:
    """The check of a reader's chain_flops(sizes): the FLOPs of a chain in its cheapest order."""
    right = _cheapest(tuple(sizes))
    yield right, "A search from the last product back to the first finds the same order."
    yield right // 2, "Each combination takes a multiplication and an addition: 2 FLOPs."
    yield (
        2 * math.prod(sizes) if right else 0,  # 0 for one matrix, which takes no product
        "That is one loop for each size, with no product in between. Multiply two at a time.",
    )
    # Of each two neighbours, m × n and n × k, the three sizes.
    triples = [sizes[at - 1 : at + 2] for at in range(1, len(sizes) - 1)]
    yield (
        2 * sum(map(math.prod, triples)),
        "After a product, the next has other sizes: m × n times n × k is m × k, and the n is gone.",
    )
    yield (
        min((2 * sizes[0] * n * sizes[-1] for n in sizes[1:-1]), default=0),
        "That is the last product alone. Both of its factors may be products, which cost, too.",
    )
    from_left = _from_left(sizes)
    from_right = _from_left(sizes[::-1])
    yield from_left, "That always goes from left to right. Compare it with all other orders."
    yield from_right, "That always goes from right to left. Compare it with all other orders."
    yield (
        min(from_left, from_right),
        "From left and from right are only two orders. With four matrices, (A B)(C D) is another.",
    )
    yield (
        _step_by_step(sizes, math.prod),
        "The cheapest pair first can make what follows expensive: compare what the whole takes.",
    )
    yield (
        _step_by_step(sizes, lambda triple: -triple[1]),
        "Neither the largest inner size nor an end is always best first: try every pair.",
    )


@cache
def _cheapest(sizes: Shape) -> int:
    """Return the least FLOPs of a chain; 0 if it is one matrix, which has two sizes.

    The last product of an order has two factors, each made of a part of the chain. Every place
    where the chain can be parted is tried.
    """
    costs = []
    for at in range(1, len(sizes) - 1):  # not at an end: each factor has a matrix at least
        last = 2 * sizes[0] * sizes[at] * sizes[-1]
        costs.append(last + _cheapest(sizes[: at + 1]) + _cheapest(sizes[at:]))
    return min(costs, default=0)


def _from_left(sizes: Sequence[int]) -> int:
    """Return the FLOPs of a chain that is multiplied from its first matrix on."""
    first, *others = sizes  # each product so far has `first` rows
    return sum(2 * first * rows * columns for rows, columns in pairwise(others))


def _step_by_step(sizes: Sequence[int], rank: Callable[[Sequence[int]], int]) -> int:
    """Return the FLOPs of a chain in which the pair of the lowest rank is always multiplied next.

    A pair has three sizes, (m, n, k): m × n and n × k. In the product, n is gone.
    """
    remaining = list(sizes)
    total = 0
    while len(remaining) > 2:
        inner = range(1, len(remaining) - 1)
        at = min(inner, key=lambda at: rank(remaining[at - 1 : at + 2]))
        total += 2 * math.prod(remaining[at - 1 : at + 2])
        del remaining[at]  # the n of the pair that was multiplied
    return total


# Patches.


def _images() -> Iterator[tuple[torch.Tensor, int, int]]:
    """Yield images in which no two numbers are the same, and a patch's rows and columns."""
    for shape, p, q in (((1, 6, 6, 1), 2, 3), ((2, 4, 6, 3), 2, 3), ((2, 6, 4, 2), 3, 1)):
        yield torch.arange(math.prod(shape)).view(shape), p, q


MERGE = "Three dimensions are wanted: one for the images, one for patches, one for their numbers."
# The patterns of tempting mistakes, all without the batch in front, and the advice on each.
WRONG_PATCHES = {
    "(p rows) (q columns) c -> b (rows columns) (p q c)": (
        "Those pixels are no neighbours. In (rows p) the last name changes fastest: it counts the "
        "rows inside a patch."
    ),
    "(p rows) (columns q) c -> b (rows columns) (p q c)": (
        "The rows are those of no patch. In (rows p) the last name changes fastest: it counts the "
        "rows inside a patch."
    ),
    "(rows p) (q columns) c -> b (rows columns) (p q c)": (
        "The columns are those of no patch. In (columns q) the last name changes fastest: it "
        "counts the columns inside a patch."
    ),
    "(rows p) (columns q) c -> b (columns rows) (p q c)": (
        "The patches come column by column. Wanted are those of the first row first."
    ),
    "(rows p) (columns q) c -> b (rows columns) (q p c)": (
        "The pixels of a patch come column by column. Wanted is its first row first."
    ),
    "(rows p) (columns q) c -> b (rows columns) (c p q)": (
        "The channels come first there. Wanted are all channels of one pixel, then of the next."
    ),
    "(rows p) (columns q) c -> b (rows columns) p q c": MERGE,
    "(rows p) (columns q) c -> b rows columns (p q c)": MERGE,
    "(rows p) (columns q) c -> b rows columns p q c": MERGE,
    "(rows q) (columns p) c -> b (rows columns) (q p c)": (
        "p counts the rows of a patch, and q its columns: they are exchanged."
    ),
}


@function(
    _images,
    hints=(
        "Name what each dimension is made of: the rows are patches of p rows each, (rows p), and "
        "the columns patches of q, (columns q).",
        "The result has three dimensions. The first one stays, the second one counts the patches, "
        "and in the third all of a patch is put in a row.",
    ),
)
def patches_of(images: torch.Tensor, p: int, q: int) -> Answers:
    """The check of a reader's patches_of(images, p, q): images, cut into flattened patches."""
    _, rows, columns, channels = images.shape
    cut_out = []
    for row in range(0, rows, p):
        for column in range(0, columns, q):
            patch = images[:, row : row + p, column : column + q]
            cut_out.append(patch.flatten(1))
    yield torch.stack(cut_out, dim=1), "Patch by patch, it is what is cut out by hand."
    numbers = p * q * channels
    yield (
        images.reshape(images.shape[0], -1, numbers),
        "That cuts the images as they lie in memory, along a row of the image. A patch has parts "
        "of p rows, so take the dimensions apart first.",
    )

    # A lambda looks up its names when it is called; the default keeps the present pattern.
    for pattern, advice in WRONG_PATCHES.items():
        wrong = outcome(lambda pattern=pattern: rearrange(images, f"b {pattern}", p=p, q=q))
        yield wrong, advice
