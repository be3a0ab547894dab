"""The exercises of notebook 02."""

import math
from collections.abc import Iterator

import torch

from course_utils import layout
from course_utils.checks.accountant import storage_bytes  # noqa: F401  a term of the accountant
from course_utils.checks.judging import Answers, NotYetError, function, outcome, value
from course_utils.checks.judging.sentences import shown

VIEW = torch.arange(24).view(2, 3, 4).transpose(0, 2)[1:, :, 1]


def _parts(answer: object) -> object:
    """Lists become tuples. A shape of the wrong kind gets its sentence at once."""
    if not isinstance(answer, list | tuple):
        return answer
    answer = tuple(tuple(part) if isinstance(part, list) else part for part in answer)
    if len(answer) == 3 and isinstance(answer[0], tuple) and answer[0] != VIEW.shape:
        advice = "A number in the brackets drops its dimension; a slice like [1:] keeps it."
        if len(answer[0]) == 2:
            advice = "transpose(0, 2) makes (4, 3, 2) of it; [1:] leaves 3 of the 4."
        raise NotYetError(f"{shown(answer)} is not it: the shape is another. {advice}")
    return answer


@value(wanted="a tuple (shape, stride, offset), like ((2, 3), (3, 1), 0)", read=_parts)
def metadata() -> Answers:
    """(shape, stride, offset) of arange(24).view(2, 3, 4).transpose(0, 2)[1:, :, 1], by hand."""
    right = shape, stride, offset = tuple(VIEW.shape), VIEW.stride(), VIEW.storage_offset()
    yield right, "transpose: strides (1, 4, 12). [1:] adds 1 to the offset, the last 1 adds 12."
    yield (shape, stride, 0), "The slice starts at 1 and the last index is 1: both move the offset."
    yield (shape, stride, 1), "The index in the last place steps along stride 12, so it adds 12."
    yield (shape, stride, 12), "The slice [1:] starts one step along the first dimension: its stride is 1."
    yield (shape, (3, 1), offset), "Those are the strides of a fresh tensor. A view keeps those of its base."
    transposed = "(12, 4, 1) becomes (1, 4, 12)"
    yield (shape, (4, 1), offset), f"transpose exchanges the first stride with the last: {transposed}."
    yield (shape, (12, 4), offset), f"transpose comes first: {transposed}, and then [..., 1] drops the last."


@value(wanted="the bytes that stay allocated")
def kept_alive() -> Answers:
    """Bytes that stay allocated for logits[:, -1] of (32, 1024, 50257) in bf16."""
    whole = 32 * 1024 * 50257 * 2
    yield whole, "The whole storage: 32 × 1024 × 50257 × 2 bytes. logits[:, -1].clone() would keep 3.2 MB."
    yield whole // 1024, "That is what the slice sees. A view keeps the whole storage."
    yield whole * 2, "bf16 takes 2 bytes."
    yield whole // 2, "That is the number of elements. bf16 takes 2 bytes each."
    yield whole + whole // 1024, "A view has no bytes of its own."
    for in_gib in (whole / 2**30, round(whole / 2**30, 2)):
        yield in_gib, "That is in GiB. In bytes, please."
    for in_gb in (whole / 1e9, round(whole / 1e9, 2)):
        yield in_gb, "That is in GB. In bytes, please."


class Numbers(list):
    """A whole storage. It is shown briefly in a verdict."""

    def __repr__(self) -> str:
        return f"[{self[0]}, {self[1]}, … {self[-1]}]"


def _places() -> Iterator[tuple[Numbers, tuple[int, int], int, int, int]]:
    """Elements in the first, second and last row of several matrices in one storage."""
    storage = torch.arange(60, 120)
    base = storage.view(6, 10)
    slices = base[2:, 3:], base[:, ::3], base[4].expand(5, 10)
    for m in (base, base.t(), *slices, storage[7:].unfold(0, 4, 2), base[::2, 1::4].t()):
        for i, j in ((0, 0), (1, 2), (m.shape[0] - 1, m.shape[1] - 1)):
            yield Numbers(storage.tolist()), m.stride(), m.storage_offset(), i, j


@function(_places)
def element(storage: Numbers, stride: tuple[int, int], offset: int, i: int, j: int) -> Answers:
    """An element of a matrix from its storage, its strides and its offset."""
    right = torch.tensor(storage).as_strided((i + 1, j + 1), stride, offset)[i, j].item()
    yield right, "A fresh matrix, a transpose, slices, an expanded row, windows, and a transpose of a slice."
    row_by_row = storage[i * stride[0] + j]
    yield (
        row_by_row,
        "A row's numbers lie side by side only in a fresh matrix. Use both strides, and the offset.",
    )
    at = i * stride[0] + j * stride[1]
    yield storage[at], "That is right so far. A slice begins inside the storage: add its offset."
    twice = outcome(lambda: storage[i][j])
    yield twice, "The storage is one flat list, whatever the matrix looks like: one number in the brackets."
    swapped = outcome(lambda: storage[offset + i * stride[1] + j * stride[0]])
    yield swapped, "i counts rows, so it steps by the first stride."
    yield offset + at, "That is its place. Look there: storage[...] has the element."


@function([(8, 3, 1), (10, 4, 2), (10, 4, 3), (11, 4, 3), (5, 5, 1), (9, 3, 3), (100, 16, 7)])
def windows(n: int, width: int, step: int) -> Answers:
    """(shape, stride) of all windows of one width, at equal distances, in n contiguous numbers."""
    torchs = torch.arange(n).unfold(0, width, step)
    right = shape, stride = tuple(torchs.shape), torchs.stride()
    yield right, "Seven cases, as torch's unfold has them. In some, windows touch or leave gaps."
    fewer = ((n - width) // step, width)
    yield (fewer, stride), "One window is missing: the last starts at n - width or just before."
    without_overlap = (n // width, width), (width, 1)
    yield without_overlap, "Those windows do not overlap. The next one begins step numbers later."
    yield (shape, (width, 1)), "The next window begins step numbers later, not width."
    yield ((-(-n // step), width), stride), "The last of those windows reaches beyond the end."
    one_apart = (n - width + 1, width)
    yield (one_apart, stride), "That counts a window at each place. Only every step-th counts."
    yield (((n - width) / step + 1, width), stride), "A number of windows is whole: round down, with //."
    yield (shape, (4 * step, 4)), "torch counts strides in elements, not in bytes."
    one_later = (shape, (1, 1))
    yield one_later, "Those windows begin at neighbouring places. The next one begins step numbers later."
    yield shape, "That is the shape alone. The stride is wanted, too."
    yield (stride, shape), "The shape comes first, then the stride."
    yield (shape[::-1], stride[::-1]), "A row for each window: the windows are the first dimension."
    yield (shape, (1, step)), "The first stride leads to the next window: step."
    yield (((n - width + 1) // step, width), stride), "Round down first, then add 1: (n - width) // step + 1."


NEW_SHAPES = [
    *(((4, 6), (6, 1), (24,)), ((6, 4), (1, 6), (24,)), ((3, 5, 4), (4, 12, 1), (15, 2, 2))),
    *(((5, 3, 4), (24, 4, 1), (15, 2, 2)), ((4, 3), (6, 2), (2, 6)), ((4, 4), (1, 4), (2, 2, 4))),
    *(((6, 4), (1, 6), (3, 2, 4)), ((6, 4), (1, 6), (6, 2, 2)), ((6, 4), (1, 6), (12, 2))),
    *(((3, 2, 4), (4, 12, 1), new) for new in ((3, 2, 2, 2), (6, 4), (3, 8), (3, 1, 2, 4), (24,))),
    *(((2, 3, 4), (24, 4, 1), new) for new in ((2, 12), (2, 2, 6), (6, 4))),
    *(((2, 3, 4), (12, 1, 3), new) for new in ((6, 4), (2, 12), (2, 3, 2, 2))),
    *(((4, 1, 6), (6, 99, 1), (24,)), ((4, 1, 6), (8, 99, 1), (2, 2, 6)), ((4, 1, 6), (8, 99, 1), (8, 3))),
    *(((3, 4), (0, 1), (12,)), ((3, 4), (0, 0), (6, 2)), ((3, 4), (0, 1), (3, 2, 2)), ((5,), (9,), (5, 1))),
]


@function(NEW_SHAPES)
def can_view(shape: tuple[int, ...], stride: tuple[int, ...], new_shape: tuple[int, ...]) -> Answers:
    """Whether view(new_shape) is possible, from shape and stride."""
    right = _views_as(shape, stride, new_shape)
    yield right, "Twenty-seven cases, with sizes of 1 and strides of 0 among them, as torch answers."
    cuts = layout.behind_boundaries(new_shape)
    seams = [  # whether the neighbours merge, and how many elements lie behind and in front of their boundary
        (stride[k - 1] == shape[k] * stride[k], math.prod(shape[k:]), math.prod(shape[:k]))
        for k in range(1, len(shape))
    ]
    flat = _views_as(shape, stride, (-1,))
    yield flat, "That is view(-1). A boundary may stay if the new shape has it, too."
    contiguous = torch.empty_strided(shape, stride, device="meta").is_contiguous()
    yield contiguous, "That asks if it is contiguous. (4, 3) with strides (6, 2) is not; (2, 6) is its view."
    ones_count = all(merged or behind in cuts for merged, behind, _ in seams)
    yield ones_count, "Nobody steps along a size of 1: leave it out before you compare neighbours."
    pairs = [_views_flat(shape[k - 1 : k + 1], stride[k - 1 : k + 1]) for k in range(1, len(shape))]
    apart = all(flat or behind in cuts for flat, (_, behind, _) in zip(pairs, seams, strict=True))
    yield apart, "A size of 1 stands between two others: leave it out, and compare those two."
    keeps = all(behind in cuts for _, behind, _ in seams)
    yield keeps, "A boundary between neighbours that can merge need not stay."
    in_front = all(merged or front in cuts for merged, _, front in seams)
    yield in_front, "Count the elements behind a boundary, not those in front of it."
    # Without the dimension behind the boundary.
    too_few = [*(behind for _, behind, _ in seams[1:]), 1]
    late = all(merged or few in cuts for (merged, _, _), few in zip(seams, too_few, strict=True))
    yield late, "The dimension right behind the boundary counts, too: multiply by its size first."
    by_size = all(merged or size in new_shape for (merged, _, _), size in zip(seams, shape[1:], strict=True))
    yield by_size, "Do not compare sizes: (6, 2, 2) keeps the boundary of (6, 4), with 2 × 2 behind it."
    yield any(merged or behind in cuts for merged, behind, _ in seams), "Every boundary counts: all, not any."
    first = all(merged or behind in cuts for merged, behind, _ in seams[:1])
    yield first, "Every boundary counts, not the first."
    yield True, "That is what reshape does, by copying."


def _views_flat(shape: tuple[int, ...], stride: tuple[int, ...]) -> bool:
    return _views_as(shape, stride, (-1,))


def _views_as(shape: tuple[int, ...], stride: tuple[int, ...], new_shape: tuple[int, ...]) -> bool:
    try:
        torch.empty_strided(shape, stride, device="meta").view(new_shape)
    except RuntimeError:
        return False
    return True
