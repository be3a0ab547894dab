"""The exercises of notebook 03."""

import math

import torch
from einops import rearrange

from course_utils import predict
from course_utils.checks.accountant import matrices  # noqa: F401  a term of the accountant
from course_utils.checks.judging import Answers, NotYetError, call, function, objection, outcome, value
from course_utils.checks.judging.sentences import shown
from course_utils.checks.six_patterns import patterns  # noqa: F401  exercises, too


def _rearranged(tensor: torch.Tensor, pattern: str, **sizes: int) -> torch.Tensor:
    """The rearranged tensor, or einops' error as a NotYetError."""
    if "->" not in pattern:
        raise NotYetError(f"{shown(pattern)} has no arrow. A pattern is: what there is -> what you want.")
    came, error = call(lambda: rearrange(tensor, pattern, **sizes))
    if error:
        *_, last = str(error).strip().splitlines()
        raise NotYetError(f"einops says: {last.strip().rstrip('.')}.")
    return came


def _columns() -> list[tuple[torch.Tensor, int, int]]:
    sizes = ((2, 4, 6), 1, 2), ((4, 6), 0, 3), ((3, 5, 12), 2, 4), ((1, 2, 8), 7, 8), ((2, 3, 24), 3, 4)
    return [(torch.arange(math.prod(shape)).view(shape), head, heads) for shape, head, heads in sizes]


@function(_columns)
def columns_of_head(x: torch.Tensor, head: int, heads: int) -> Answers:
    """The columns that belong to one head, by slicing alone."""
    places = x.shape[-1] // heads
    mine = [column for column in range(x.shape[-1]) if column // places == head]
    right = torch.stack([x[..., column] for column in mine], dim=-1)
    yield right, "Column by column, it is the head's own part of the width."
    every = "Those columns are not neighbours, as by (place head). A head's columns are."
    yield x[..., head::heads], every
    heads_wide = x[..., head * heads : (head + 1) * heads]
    yield heads_wide, "A head has width // heads columns, and not as many as there are heads."
    one_on = x[..., head : head + places]
    yield one_on, "The earlier heads' columns come first: begin at head × the width of a head."
    of_second = x[:, head * places : (head + 1) * places]
    yield of_second, "That cuts the second dimension. The width is the last one: x[..., begin:end]."
    one_less = x[..., head * places : (head + 1) * places - 1]
    yield one_less, "A slice leaves its end out: do not subtract 1."
    yield x.reshape(heads, -1, places)[head], "That cuts between tokens, as x.view(2, 4, 3) does."
    divided = outcome(lambda: x[..., int(head) * x.shape[-1] / heads :])
    yield divided, "Whole numbers are wanted: // instead of /."


@value(wanted="the FLOPs of the whole einsum, in its cheapest order")
def low_rank_flops() -> Answers:
    """FLOPs of x A B for 4,096 tokens of width 1,024 through a rank of 8, in the cheapest order."""
    tokens, width, rank = 4096, 1024, 8
    right = predict.einsum_flops("n h, h r, r k -> n k", n=tokens, h=width, r=rank, k=width)
    yield right, "(x A) B: twice 2 × 4096 × 1024 × 8. One full matrix would be 64 times as much."
    full = predict.matmul_flops(tokens, width, width)
    product_first = full + predict.matmul_flops(width, rank, width)
    yield product_first, "That multiplies A B first, which gives a full matrix. Multiply x A first."
    yield right // 2, "That is x A alone, or without additions. Each multiplication comes with one."
    yield full, "That is one full matrix, which is what the two narrow ones are there to avoid."
    all_at_once = 2 * tokens * width * rank * width
    yield all_at_once, "That loops over all four dimensions, and keeps no result in between."


@objection("Two images of 4 × 6 pixels, against patches cut out one by one.", pattern="b s (h d) -> b h s d")
def patches(answer: str) -> None:
    """A rearrange pattern from images to patches, as a vision transformer wants them."""
    images = torch.arange(2 * 4 * 6 * 3).view(2, 4, 6, 3)
    came = _rearranged(images, answer, p=2, q=3)
    corners = [(row, column) for row in (0, 2) for column in (0, 3)]
    expected = torch.stack([images[:, r : r + 2, c : c + 3].flatten(1) for r, c in corners], dim=1)
    if came.shape != expected.shape:
        said = f"The result has shape {tuple(came.shape)}, expected {tuple(expected.shape)}."
        raise NotYetError(f"{said} A patch has 2 × 3 pixels of 3 channels, an image 2 × 2 patches.")
    advice = (
        "Row by row: first the patches of the first row, and in a patch its pixels row by row, channels last."
    )
    if torch.equal(came, rearrange(images, "b (p r) (q c) ch -> b (r c) (p q ch)", p=2, q=3)):
        advice = "In (rows p) the patch is the fast part: neighbouring pixels belong to one patch. You have it the other way round."
    if not torch.equal(came, expected):
        raise NotYetError(f"The shape is right, the numbers are not. {advice}")


def _queries_and_keys() -> list[tuple[torch.Tensor, torch.Tensor]]:
    draw = torch.Generator().manual_seed(3)
    sizes = ((2, 4, 4, 3, 5, 6), (2, 4, 2, 3, 5, 6), (1, 6, 2, 4, 4, 8), (2, 8, 1, 3, 2, 4))
    return [
        (torch.randn(b, heads, i, d, generator=draw), torch.randn(b, kv, j, d, generator=draw))
        for b, heads, kv, i, j, d in sizes
    ]


@function(_queries_and_keys, tolerance=1e-5)
def grouped_attention(q: torch.Tensor, k: torch.Tensor) -> Answers:
    """Scores of grouped queries: several heads share one head of keys."""
    heads, kv = q.shape[1], k.shape[1]
    group = heads // kv
    right = torch.stack([q[:, head] @ k[:, head // group].mT for head in range(heads)], dim=1)
    yield right, "Four cases, from a key head for each query head to one for all, against a loop."
    alternating = q @ k.repeat(1, group, 1, 1).mT
    neighbours = "Heads that share keys are neighbours: heads 0 and 1 use the first keys, not 0 and 2."
    yield alternating, f"{neighbours} In (kv group) the group changes fastest."
    yield q @ k[:, :1].mT, "Every group has keys of its own."
    yield right / q.shape[-1] ** 0.5, "The scores before scaling, please."
    merged = rearrange(right, "b (kv g) i j -> b (g kv) i j", kv=kv)
    yield merged, "Merge in the order in which you split: (kv group) both times."
    split = rearrange(q, "b (g kv) i d -> b kv g i d", kv=kv) @ k.unsqueeze(2).mT
    yield rearrange(split, "b kv g i j -> b (kv g) i j"), "Split as you merge: (kv group) both times."
    for ungrouped in (lambda: torch.einsum("bhid,bhjd->bhij", q, k), lambda: q @ k.mT):
        needs = outcome(ungrouped)
        yield needs, "That needs as many heads of keys as of queries. Split the heads into groups first."
    yield right.softmax(-1), "The scores themselves, before any softmax."
    yield right.mT, "Queries come first, then keys: a row for each query."
    yield rearrange(right, "b (kv g) i j -> b kv g i j", kv=kv), "Merge the groups back into heads."
