"""What the stride lab draws: the storage as a strip, the tensor as a grid, each element in the colour of its place."""

import functools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

import matplotlib
import torch

from course_utils import layout
from course_utils.labs.operations import Operation
from course_utils.labs.panel import View
from course_utils.labs.svg import picture, point, rect, text
from course_utils.quantities import Number

WIDTH, GAP = 940, 26
STRIP_CELL, GRID_CELL, HEIGHT = 29, 36, 26
STRIP_COLUMNS = WIDTH // STRIP_CELL
VIRIDIS = matplotlib.colormaps["viridis"]


@dataclass(frozen=True)
class Chain:
    """A base tensor, what was to be done with it, every tensor on the way, and why it stopped early, if it did."""

    links: tuple[Operation, ...]
    tensors: tuple[torch.Tensor, ...]  # the base, and one for each link that was done
    refusal: str

    @property
    def end(self) -> torch.Tensor:
        """The last tensor that there is."""
        return self.tensors[-1]

    @property
    def done(self) -> tuple[Operation, ...]:
        """The links that torch went along with."""
        return self.links[: len(self.tensors) - 1]


def view(found: Chain, element: tuple[int, ...] | None) -> View:
    """Storage, tensor, the pointed element's address, and a table of the way there."""
    t = found.end
    owned = layout.owned_bytes(t) // t.element_size()
    y = 44
    drawn = [
        text(0, 16, _facts(t), class_="strong"),
        text(0, y, "storage", class_="strong"),
        text(76, y, f"{owned} numbers of {t.element_size()} bytes", class_="faint"),
    ]
    strip, y = _strip(t, owned, element, y + 12)
    drawn += [strip, text(0, y + 26, "tensor", class_="strong")]
    drawn.append(text(76, y + 26, _pointing(t, element), class_="formula"))
    grid, y = _grid(t, element, y + 38)
    return View(picture(WIDTH, y + 4, *drawn, grid), _meaning(found, element), _way(found))


def _facts(t: torch.Tensor) -> str:
    contiguous = "contiguous" if t.is_contiguous() else "not contiguous"
    return (
        f"shape {tuple(t.shape)} · strides {t.stride()} · offset {t.storage_offset()} · {contiguous} · "
        f"sees {layout.seen_bytes(t)} of {layout.owned_bytes(t)} bytes"
    )


def _pointing(t: torch.Tensor, element: tuple[int, ...] | None) -> str:
    if element is None:
        return "no elements"
    index = ", ".join(map(str, element))
    return f"[{index}] lies at {layout.address_formula(t, element)}"


@functools.cache
def _colour(place: int, owned: int) -> tuple[str, str]:
    """The colour of a place in the storage, and the class that makes words on it readable."""
    colour = VIRIDIS(place / max(1, owned - 1))[:3]
    linear = [((part + 0.055) / 1.055) ** 2.4 if part > 0.04045 else part / 12.92 for part in colour]
    luminance = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    return matplotlib.colors.to_hex(colour), "on-light" if luminance > 0.18 else "on-dark"


def _cell(x: Number, y: Number, width: Number, value: int, colour: str) -> str:
    box = rect(x, y, width - 2, HEIGHT - 2, style=f"fill: {colour}" if colour else "")
    size = "middle small" if width > 22 else "middle tiny"
    return box + (text(x + width / 2 - 1, y + HEIGHT / 2 + 3, str(value), class_=size) if width >= 14 else "")


def _strip(t: torch.Tensor, owned: int, element: tuple[int, ...] | None, y: Number) -> tuple[str, Number]:
    """The storage from its first number to its last; what the tensor does not see is empty."""
    values = torch.empty(0, dtype=t.dtype).set_(t.untyped_storage(), 0, (owned,)).tolist()
    seen, parts = layout.places(t), []
    for place, value in enumerate(values):
        row, column = divmod(place, STRIP_COLUMNS)
        x, top = column * STRIP_CELL, y + 14 + row * (HEIGHT + 16)
        colour, ink = _colour(place, owned) if place in seen else ("", "unseen")
        parts.append(text(x + STRIP_CELL / 2 - 1, top - 3, str(place), class_="middle place"))
        parts.append(f'<g class="{ink}">{_cell(x, top, STRIP_CELL, int(value), colour)}</g>')
        if element is not None and place == layout.address(t, element):
            parts.append(_ring(x, top, STRIP_CELL))
    return "".join(parts), y + 14 + (-(-owned // STRIP_COLUMNS) or 1) * (HEIGHT + 16)


def _ring(x: Number, y: Number, width: Number) -> str:
    return rect(x - 1, y - 1, width, HEIGHT, class_="pointed")


def _grid(t: torch.Tensor, element: tuple[int, ...] | None, y: Number) -> tuple[str, Number]:
    """The last two dimensions as a block of rows and columns, a block for each index of the others."""
    *leading, rows, columns = (*[1] * (2 - t.ndim), *t.shape)
    width = min(GRID_CELL, WIDTH // max(1, columns))
    block_width, block_height = columns * width, rows * HEIGHT if t.numel() else 0
    names = max(0, t.ndim - 2)
    x, parts = 0, []
    for outer in product(*map(range, leading)) if t.numel() else ():
        if x and x + block_width > WIDTH:
            x, y = 0, y + block_height + GAP
        if names:
            parts.append(text(x, y + 11, f"[{', '.join(map(str, outer))}]", class_="small faint"))
        parts += _block(t, outer, element, x, y + 16 * bool(names), width)
        x += block_width + GAP
    return "".join(parts), y + 16 * bool(names) + block_height


def _block(
    t: torch.Tensor,
    outer: tuple[int, ...],
    element: tuple[int, ...] | None,
    x: Number,
    y: Number,
    width: Number,
) -> Iterator[str]:
    owned = layout.owned_bytes(t) // t.element_size()
    inner_sizes: Sequence[int] = t.shape[len(outer) :]
    for inner in product(*map(range, inner_sizes)):
        row, column = (0, 0, *inner)[-2:]
        index = (*outer, *inner)
        place = layout.address(t, index)
        colour, ink = _colour(place, owned)
        left, top = x + column * width, y + row * HEIGHT
        cell = _cell(left, top, width, int(t[index]), colour)
        ring = _ring(left, top, width) if index == element else ""
        yield point(
            f'<g class="{ink}">{cell}</g>',
            ring,
            key=", ".join(map(str, index)),
            row=f"{outer} {row}",
            label=f"[{', '.join(map(str, index))}] is {int(t[index])}, at {place}",
        )


def _meaning(found: Chain, element: tuple[int, ...] | None) -> str:
    t, base = found.end, found.tensors[0]
    if found.refusal:
        return found.refusal
    copied = [link.text for n, link in enumerate(found.done) if not _shared(found.tensors, n)]
    unseen = layout.owned_bytes(t) - layout.seen_bytes(t)
    said = []
    if copied:
        said.append(f"copied by {' and '.join(copied)}: {layout.owned_bytes(t)} bytes of its own")
    elif found.done:
        said.append("a view of the same storage: nothing was copied")
    else:
        said.append(f"{base.numel()} numbers, each where its index says")
    if math.prod(t.shape) * t.element_size() > layout.seen_bytes(t):
        said.append("several elements share a place")
    if unseen:
        said.append(f"{unseen} bytes that it does not see stay allocated with it")
    if element is not None:
        pointer = (t[element].data_ptr() - t.untyped_storage().data_ptr()) // t.element_size()
        said.append(f"[{', '.join(map(str, element))}] by torch's own pointer: {pointer}")
    words = "; ".join(said)
    return f"{words[0].upper()}{words[1:]}."


def _shared(tensors: tuple[torch.Tensor, ...], link: int) -> bool:
    return layout.shares_storage(tensors[link], tensors[link + 1])


def _way(found: Chain) -> list[list[str]]:
    """Every link with the tensor that it left behind."""
    rows = [["operation", "shape", "strides", "offset", "contiguous", "storage"]]
    for place, t in enumerate(found.tensors):
        name = found.done[place - 1].text if place else "base"
        storage = "its own" if not place else ("shared" if _shared(found.tensors, place - 1) else "copied")
        facts = [str(tuple(t.shape)), str(t.stride()), str(t.storage_offset())]
        rows.append([name, *facts, "yes" if t.is_contiguous() else "no", storage])
    if found.refusal:
        rows.append([found.links[len(found.tensors) - 1].text, "refused", "", "", "", ""])
    return rows
