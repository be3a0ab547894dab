"""The exercises of notebook 02."""

from collections.abc import Sequence

import torch

from course_utils import layout
from course_utils.checks.sentences import shown
from course_utils.checks.verdict import Verdict, judge_function, judge_value
from course_utils.quantities import Number


class Numbers(list):
    """A matrix's whole storage as a list, that shows itself briefly."""

    def __init__(self, matrix: torch.Tensor) -> None:
        numbers = layout.owned_bytes(matrix) // matrix.element_size()
        super().__init__(
            torch.empty(0, dtype=matrix.dtype).set_(matrix.untyped_storage(), 0, (numbers,)).tolist()
        )
        self.tensor = matrix

    def __repr__(self) -> str:
        return f"[{self[0]}, {self[1]}, … {self[-1]}]"


def metadata(answer: object) -> Verdict:
    """(shape, stride, offset) of arange(24).view(2, 3, 4).transpose(0, 2)[1:, :, 1], by hand."""
    t = torch.arange(24).view(2, 3, 4).transpose(0, 2)[1:, :, 1]
    expected = (tuple(t.shape), t.stride(), t.storage_offset())
    shape, stride, offset = expected
    if isinstance(answer, list | tuple):
        answer = tuple(tuple(part) if isinstance(part, list) else part for part in answer)
        if len(answer) == 3 and isinstance(answer[0], tuple) and answer[0] != shape:
            advice = {
                4: "A number in the brackets drops its dimension; a slice like [1:] keeps it.",
                2: "transpose(0, 2) makes (4, 3, 2) of it; [1:] leaves 3 of the 4.",
            }
            words = advice[4 if len(answer[0]) != 2 else 2]
            return Verdict("not yet", f"{shown(answer)} is not it: the shape is another. {words}")
    return judge_value(
        answer,
        expected,
        wanted="a tuple (shape, stride, offset), like ((2, 3), (3, 1), 0)",
        tempting={
            (shape, stride, 0): "The slice starts at 1 and the last index is 1: both move the offset.",
            (shape, stride, 1): "The index in the last place steps along stride 12, so it adds 12.",
            (shape, stride, 12): "The slice [1:] starts one step along the first dimension: its stride is 1.",
            (
                shape,
                (3, 1),
                offset,
            ): "Those are the strides of a fresh tensor. A view keeps those of its base.",
            (
                shape,
                (4, 1),
                offset,
            ): "transpose exchanges the first stride with the last: (12, 4, 1) becomes (1, 4, 12).",
            (
                shape,
                (12, 4),
                offset,
            ): "transpose comes first: (12, 4, 1) becomes (1, 4, 12), and then [..., 1] drops the last.",
        },
        because="transpose: strides (1, 4, 12). [1:] adds 1 to the offset, the last 1 adds 12 and drops its dimension.",
    )


def kept_alive(answer: object) -> Verdict:
    """Bytes that stay allocated for logits[:, -1] of (32, 1024, 50257) in bf16."""
    whole = 32 * 1024 * 50257 * 2
    return judge_value(
        answer,
        whole,
        wanted="the bytes that stay allocated",
        tempting={
            whole // 1024: "That is what the slice sees. A view keeps the whole storage.",
            whole * 2: "bf16 takes 2 bytes.",
            whole // 2: "That is the number of elements. bf16 takes 2 bytes each.",
            whole + whole // 1024: "A view has no bytes of its own.",
            whole / 2**30: "That is in GiB. In bytes, please.",
            whole / 1e9: "That is in GB. In bytes, please.",
            round(whole / 2**30, 2): "That is in GiB. In bytes, please.",
            round(whole / 1e9, 2): "That is in GB. In bytes, please.",
        },
        because="The whole storage: 32 × 1024 × 50257 × 2 bytes, 1024 times what the slice sees. "
        "logits[:, -1].clone() would keep 3.2 MB.",
    )


def element(answer: object) -> Verdict:
    """An element of a matrix from its storage, its strides and its offset."""

    def oracle(storage: Numbers, stride: tuple[int, int], offset: int, i: int, j: int) -> int:
        return storage.tensor[i, j].item()

    def contiguous(storage: Numbers, stride: tuple[int, int], offset: int, i: int, j: int) -> int:
        return storage[i * stride[0] + j]

    def without_offset(storage: Numbers, stride: tuple[int, int], offset: int, i: int, j: int) -> int:
        return storage[i * stride[0] + j * stride[1]]

    def swapped(storage: Numbers, stride: tuple[int, int], offset: int, i: int, j: int) -> int:
        return storage[offset + i * stride[1] + j * stride[0]]

    def nested(storage: Numbers, stride: tuple[int, int], offset: int, i: int, j: int) -> int:
        return storage[i][j]

    base = torch.arange(60, 120).view(6, 10)
    matrices = [
        base,
        base.t(),
        base[2:, 3:],
        base[:, ::3],
        base[4].expand(5, 10),
        base.flatten()[7:].unfold(0, 4, 2),
        base[::2, 1::4].t(),
    ]
    cases = [
        (Numbers(m), m.stride(), m.storage_offset(), i, j)
        for m in matrices
        for i, j in ((0, 0), (1, 2), (m.shape[0] - 1, m.shape[1] - 1))
    ]
    return judge_function(
        answer,
        oracle,
        cases,
        tempting={
            contiguous: "Neighbours in a row lie next to each other in a fresh matrix only: use both strides, and the offset.",
            without_offset: "That is right up to here. A slice begins somewhere inside the storage: at its offset.",
            nested: "The storage is one flat list, whatever the matrix looks like: one number in the brackets.",
            swapped: "i counts rows, so it steps by the first stride.",
        },
        because="A fresh matrix, a transpose, slices, an expanded row, overlapping windows, and a transpose of a slice.",
    )


def windows(answer: object) -> Verdict:
    """(shape, stride) of all windows of a width, so many apart, in n contiguous numbers."""

    def oracle(n: int, width: int, step: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        t = torch.arange(n).unfold(0, width, step)
        return tuple(t.shape), t.stride()

    def one_too_few(n: int, width: int, step: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        return ((n - width) // step, width), (step, 1)

    def without_overlap(n: int, width: int, step: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        return (n // width, width), (width, 1)

    def steps_by_width(n: int, width: int, step: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        return ((n - width) // step + 1, width), (width, 1)

    def too_many(n: int, width: int, step: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        return (-(-n // step), width), (step, 1)

    def as_if_one_apart(n: int, width: int, step: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        return (n - width + 1, width), (step, 1)

    def divided(n: int, width: int, step: int) -> tuple[tuple[Number, ...], tuple[int, ...]]:
        return ((n - width) / step + 1, width), (step, 1)

    def in_bytes(n: int, width: int, step: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        return oracle(n, width, step)[0], (4 * step, 4)

    def one_later(n: int, width: int, step: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        return oracle(n, width, step)[0], (1, 1)

    def shape_alone(n: int, width: int, step: int) -> tuple[int, ...]:
        return oracle(n, width, step)[0]

    def stride_first(n: int, width: int, step: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        return oracle(n, width, step)[::-1]

    def transposed(n: int, width: int, step: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        return (width, (n - width) // step + 1), (1, step)

    return judge_function(
        answer,
        oracle,
        [(8, 3, 1), (10, 4, 2), (10, 4, 3), (11, 4, 3), (5, 5, 1), (9, 3, 3), (100, 16, 7)],
        tempting={
            one_too_few: "One window short: the first starts at 0, the last at n - width or just before.",
            without_overlap: "Those windows do not overlap. The next one begins step numbers later.",
            steps_by_width: "The next window begins step numbers later, not width.",
            too_many: "The last of those windows reaches beyond the end.",
            as_if_one_apart: "That many begin one after the other; only every step-th of them counts.",
            divided: "A number of windows is whole: round down, with //.",
            in_bytes: "torch counts strides in elements, not in bytes.",
            one_later: "Those windows begin one after the other; the next one begins step numbers later.",
            shape_alone: "That is the shape alone. The stride is wanted behind it.",
            stride_first: "The shape comes first, then the stride.",
            transposed: "A row for each window: the windows are the first dimension.",
        },
        because="Seven cases against torch's own unfold, windows that touch and windows that leave gaps among them.",
    )


def flattens(answer: object) -> Verdict:
    """Whether view(-1) is possible, from shape and stride."""

    def oracle(shape: tuple[int, ...], stride: tuple[int, ...]) -> bool:
        try:
            torch.empty_strided(shape, stride, device="meta").view(-1)
        except RuntimeError:
            return False
        return True

    def only_contiguous(shape: tuple[int, ...], stride: tuple[int, ...]) -> bool:
        return torch.empty_strided(shape, stride, device="meta").is_contiguous()

    def ones_count(shape: tuple[int, ...], stride: tuple[int, ...]) -> bool:
        return all(stride[n] == shape[n + 1] * stride[n + 1] for n in range(len(shape) - 1))

    def only_sorted(shape: tuple[int, ...], stride: tuple[int, ...]) -> bool:
        return list(stride) == sorted(stride, reverse=True)

    def above_zero(shape: tuple[int, ...], stride: tuple[int, ...]) -> bool:
        return oracle(shape, stride) and all(stride)

    def only_the_last_pair(shape: tuple[int, ...], stride: tuple[int, ...]) -> bool:
        return oracle(shape[-2:], stride[-2:])

    def always(shape: tuple[int, ...], stride: tuple[int, ...]) -> bool:
        return True

    def first_pair(shape: Sequence[int], stride: Sequence[int]) -> bool:
        return len(shape) < 2 or stride[0] == shape[1] * stride[1]

    cases = [
        ((4, 6), (6, 1)),
        ((6, 4), (1, 6)),
        ((4, 3), (6, 2)),
        ((3, 3), (6, 1)),
        ((2, 3, 4), (12, 4, 1)),
        ((3, 2, 4), (4, 12, 1)),
        ((2, 3, 2), (12, 4, 1)),
        ((2, 3, 4), (20, 4, 1)),
        ((2, 3, 4), (12, 5, 1)),
        ((4, 1, 6), (6, 99, 1)),
        ((1, 5), (7, 3)),
        ((6, 1), (2, 1)),
        ((3, 4), (0, 1)),
        ((3, 4), (0, 0)),
        ((5,), (9,)),
        ((), ()),
    ]
    return judge_function(
        answer,
        oracle,
        cases,
        tempting={
            only_contiguous: "That asks whether it is contiguous. (4, 3) with strides (6, 2) is not, and flattens.",
            ones_count: "A dimension of size 1 is never stepped along: leave it out before you compare neighbours.",
            only_sorted: "Falling strides are not enough: a step along one has to be a walk through the whole next.",
            first_pair: "Every pair of neighbours has to merge, not the first one alone.",
            only_the_last_pair: "Every pair of neighbours has to merge, not the last one alone.",
            above_zero: "A stride of 0 is compared like any other: in (3, 4) with (0, 0) a step and a walk are both 0.",
            always: "That is what reshape does, by copying.",
        },
        because="Sixteen shapes and strides, with sizes of 1 and strides of 0 among them, as torch answers.",
    )
