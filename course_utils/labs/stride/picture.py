"""The storage as a strip, the tensor as a grid: each element in the colour of its place in the storage."""

import math
from collections.abc import Iterator, Sequence
from functools import cache

from course_utils import predict
from course_utils.labs.draw.lettering import fitted, width_of
from course_utils.labs.draw.svg import SHADES, element, picture, point, rect, scaled, text
from course_utils.labs.lab import View
from course_utils.labs.stride.asked import Chain, Way, base
from course_utils.quantities import Number, count_text

WIDTH, HEIGHT, NAME_X = 1000, 450, 76
CELL, CELL_HEIGHT, SEAM = 36, 26, 2
STRIP_COLUMNS, STRIP_CELL, STRIP_STEP = 32, 31, 42
GAP, NAME_HEIGHT = 26, 16  # between the blocks of a grid, and above each where they have names
LIGHT = 32  # the first shade that dark letters are written on
COLUMNS = ("operation", "shape", "strides", "offset", "contiguous", "storage")
Index = tuple[int, ...]


def view(chain: Chain, found: Way | None) -> View:
    """Storage, tensor, the address of the element, and a table of the way there."""
    way = found or base(chain)
    t, owned, width = way.end, len(way.numbers), predict.dtype_bytes(chain.dtype)
    index = chain.index_in(t.shape)
    contiguous = "contiguous" if t.contiguous else "not contiguous"
    facts = f"shape {t.shape} · strides {t.stride} · offset {t.offset} · {contiguous}"
    y = 82 + STRIP_STEP * math.ceil(owned / STRIP_COLUMNS)
    grid, height = _grid(way, index, y) if t.places else ("", 0)
    drawn = [
        text(0, 14, "storage", class_="strong"),
        text(NAME_X, 14, f"{owned} numbers of {width} bytes", class_="faint"),
        *_strip(way, index),
        text(0, y - 40, "tensor", class_="strong"),
        fitted(NAME_X, y - 40, facts, WIDTH),
        *_pointing(way, index, y - 16),
        grid,
    ]
    return View(picture(WIDTH, y + height, *drawn), _meaning(way, width), _table(chain, way))


def _pointing(way: Way, index: Index | None, y: Number) -> Iterator[str]:
    """The element's address, by the formula and by torch."""
    if index is None:
        yield text(NAME_X, y, "no elements", class_="faint")
        return
    terms = [f"{i} × {step}" for i, step in zip(index, way.end.stride, strict=True)]
    walk = " + ".join([f"{way.end.offset}", *terms])
    formula = f"[{_listed(index)}] lies at {walk} = {way.end.places[index]}"
    yield fitted(NAME_X, y, formula, WIDTH - 270, "formula")
    x = min(WIDTH - 250, NAME_X + width_of(formula, "formula") + 20)
    pointer = "no kernel" if way.pointer is None else f"{way.pointer}"
    yield text(x, y, f"torch's own pointer: {pointer}", class_="measured-words")


def _listed(index: Sequence[int]) -> str:
    return ", ".join(map(str, index))


def _strip(way: Way, pointed: Index | None) -> Iterator[str]:
    """The storage from its first number to its last; what the tensor does not see is empty."""
    seen, ringed = {*way.end.places.values()}, way.end.places.get(pointed)
    for place in range(len(way.numbers)):
        row, column = divmod(place, STRIP_COLUMNS)
        box = STRIP_CELL * column, 36 + STRIP_STEP * row, STRIP_CELL - SEAM, CELL_HEIGHT - SEAM
        yield text(box[0] + box[2] / 2, box[1] - 3, str(place), class_="middle place")
        yield _cell(place, way, box, "small", seen=place in seen)
        yield rect(*box, class_="pointed") if place == ringed else ""


def _grid(way: Way, pointed: Index | None, top: Number) -> tuple[str, Number]:
    """The last two dimensions as blocks of rows and columns, a block for each index of the others; and the height."""
    places, room = way.end.places, HEIGHT - top
    rows, columns = (1, 1, *way.end.shape)[-2:]
    named = NAME_HEIGHT if len(way.end.shape) > 2 else 0
    width, height = min(CELL, WIDTH / columns), min(CELL_HEIGHT, (room - named) / rows)
    digits = "small" if width >= 26 and height >= 14 else "tiny" if width >= 18 and height >= 10 else ""
    seam = SEAM if digits else 0
    last = f"[{_listed(next(reversed(places))[:-2])}]"
    step_x = GAP + max(columns * width, width_of(last, "small"))
    step_y = GAP / 2 + named + rows * height
    scale, per_row, lines = _arranged(len(places) // (rows * columns), step_x, step_y, room)
    parts = []
    for number, (index, place) in enumerate(places.items()):
        block, inside = divmod(number, rows * columns)
        row, column = divmod(inside, columns)
        x, y = step_x * (block % per_row), step_y * (block // per_row)
        if named and not inside:
            parts.append(text(x, y + 11, f"[{_listed(index[:-2])}]", class_="small faint"))
        box = x + column * width, y + named + row * height, width - seam, height - seam
        ring = rect(*box, class_="pointed") if index == pointed else ""
        words = _listed(index)
        names = {"key": words, "label": f"[{words}] is {way.numbers[place]}, at {place}"}
        parts.append(point(_cell(place, way, box, digits), ring, row=f"{index[:-2]} {row}", **names))
    return scaled(0, top, scale, *parts), scale * step_y * lines


def _arranged(count: int, step_x: Number, step_y: Number, room: Number) -> tuple[Number, int, int]:
    """The scale of blocks, how many stand in a row, and how many rows there are: as large as there is room for."""
    for scale in (n / 20 for n in range(20, 0, -1)):
        per_row = max(1, int((WIDTH / scale + GAP) // step_x))
        lines = math.ceil(count / per_row)
        if scale * lines * step_y <= room:
            break
    return scale, per_row, lines


def _cell(place: int, way: Way, box: tuple[Number, ...], digits: str, *, seen: bool = True) -> str:
    """A number of the storage in the colour of its place."""
    x, y, width, height = box
    words = text(x + width / 2, y + height / 2 + 5, str(way.numbers[place]), class_=f"middle {digits}")
    class_ = _shade(place, len(way.numbers)) if seen else "unseen"
    return element("g", rect(*box), words if digits else "", class_=class_)


@cache
def _shade(place: int, owned: int) -> str:
    """The classes of its colour, and of letters that can be read on it."""
    shade = round((SHADES - 1) * place / max(1, owned - 1))
    return f"shade-{shade} {'on-light' if shade >= LIGHT else 'on-dark'}"


def _meaning(way: Way, width: int) -> str:
    """What was copied, shared and kept."""
    if way.refusal:
        return way.refusal
    places, owned = way.end.places, len(way.numbers)
    unseen = owned - len({*places.values()})
    copied = [t.operation for t in way.tensors if t.storage == "copied"]
    said = [f"A view: {_news(way)}; no number has moved"]
    if copied:
        said = [f"Copied by {' and '.join(copied)}: {width * owned} bytes of its own"]
    elif len(way.tensors) == 1:
        numbers, strides = count_text(owned, "number"), way.end.stride
        said = [
            f"{numbers} in one row of storage; the strides {strides} say how far a step along each dimension goes"
        ]
    if len(places) > owned - unseen:
        said.append(f"{len(places)} elements share {count_text(owned - unseen, 'place')}")
    if unseen:
        said.append(f"it keeps {width * unseen} bytes allocated that it does not see")
    return f"{'; '.join(said)}."


def _news(way: Way) -> str:
    """What sets a view apart from the tensor it was made of."""
    before, after = way.tensors[0], way.end
    kept = {
        "shape": before.shape == after.shape,
        "strides": before.stride == after.stride,
        "offset": before.offset == after.offset,
    }
    new = [name for name, same in kept.items() if not same]
    if not new:
        return "shape, strides and offset are as before"
    listed = " and ".join(filter(None, [", ".join(new[:-1]), new[-1]]))
    return f"only {listed} {'is' if new == ['shape'] or new == ['offset'] else 'are'} new"


def _table(chain: Chain, way: Way) -> list[Sequence[str]]:
    """Every link with the tensor that it left behind."""
    rows = [
        (t.operation, f"{t.shape}", f"{t.stride}", f"{t.offset}", "yes" if t.contiguous else "no", t.storage)
        for t in way.tensors
    ]
    refused = [(chain.links[len(rows) - 1].text, "refused", *[""] * 4)] if way.refusal else []
    return [COLUMNS, *rows, *refused]
