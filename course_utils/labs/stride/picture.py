"""The storage as a strip, the tensor as a grid: each element in the colour of its place in the storage."""

import math
from collections.abc import Iterator, Sequence
from functools import cache

from course_utils import predict
from course_utils.labs.draw.lettering import account, fitted
from course_utils.labs.draw.svg import SHADES, button, element, picture, rect, scaled, text
from course_utils.labs.lab import View
from course_utils.labs.stride.asked import Chain, Way
from course_utils.quantities import Number, count_text, listed

WIDTH, HEIGHT, WORDS_X = 1000, 450, 94
CELL, CELL_HEIGHT, SEAM = 36, 26, 2
STRIP_COLUMNS, STRIP_CELL, STRIP_STEP = 32, 31, 42
GAP, NAME_HEIGHT = 26, 16  # between the blocks of a grid, and above each where they have names
LIGHT = 32  # the first shade that dark letters are written on
COLUMNS = ("operation", "shape", "strides", "offset", "contiguous", "storage")
Index = tuple[int, ...]


def view(chain: Chain, pointer: int | None) -> View:
    """Storage, tensor, the address of the element, and a table of the way there."""
    way, index = chain.way, chain.index
    owned, width = len(way.numbers), predict.dtype_bytes(chain.dtype)
    y = 82 + STRIP_STEP * math.ceil(owned / STRIP_COLUMNS)
    grid, height = _grid(way, index, y) if way.end.places else ("", 0)
    drawn = [
        text(0, 14, "storage", class_="faint"),
        text(WORDS_X, 14, f"{owned} numbers of {width} bytes"),
        *_strip(way, index),
        *account(_facts(way, index, pointer), WORDS_X, y - 44, WIDTH, step=18),
        grid,
    ]
    return View(picture(WIDTH, y + height, *drawn), _meaning(way, width), _table(chain))


def _facts(way: Way, index: Index | None, pointer: int | None) -> Iterator[tuple[str, str, str]]:
    """What the tensor is, and the element's address by the formula and by torch."""
    t, contiguous = way.end, "contiguous" if way.end.contiguous else "not contiguous"
    yield "tensor", f"shape {t.shape} · strides {t.strides} · offset {t.offset} · {contiguous}", ""
    if index is None:
        yield "element", "no elements", "faint"
        return
    walk = [f"{t.offset}", *(f"{i} × {step}" for i, step in zip(index, t.strides, strict=True))]
    yield "element", f"{[*index]} lies at {' + '.join(walk)} = {t.places[index]}", "formula"
    if pointer is None:
        yield "measured", "needs a kernel", "faint"
    else:
        yield "measured", f"torch's own pointer: {pointer}", "measured-words"


def _strip(way: Way, pointed: Index | None) -> Iterator[str]:
    """The storage from its first number to its last; what the tensor does not see is empty."""
    seen, ringed = {*way.end.places.values()}, way.end.places.get(pointed)
    for place in range(len(way.numbers)):
        row, column = divmod(place, STRIP_COLUMNS)
        box = STRIP_CELL * column, 36 + STRIP_STEP * row, STRIP_CELL - SEAM, CELL_HEIGHT - SEAM
        yield text(box[0] + box[2] / 2, box[1] - 3, str(place), class_="middle place")
        colour = _shade(place, len(way.numbers)) if place in seen else "unseen"
        yield _cell(str(way.numbers[place]), colour, box, ringed=place == ringed)


def _grid(way: Way, pointed: Index | None, top: Number) -> tuple[str, Number]:
    """The tensor as blocks of rows and columns, a block for each index of the first dimensions; and the height."""
    places = way.end.places
    rows, columns = (1, 1, *way.end.shape)[-2:]
    named = NAME_HEIGHT if len(way.end.shape) > 2 else 0
    width, height = min(CELL, WIDTH / columns), min(CELL_HEIGHT, (HEIGHT - top - named) / rows)
    roomy = width >= 22 and height >= 14  # for digits
    seam = SEAM if roomy else 0
    step_x, step_y = GAP + columns * width, GAP / 2 + named + rows * height
    blocks = len(places) // (rows * columns)

    def layout(per_row: int) -> tuple[Number, int, Number]:  # how large, so many in a row, and how tall then
        tall = step_y * math.ceil(blocks / per_row)
        scale = min(1, WIDTH / (per_row * step_x - GAP), (HEIGHT - top) / tall)
        return scale, per_row, scale * tall

    scale, per_row, drawn_height = max(map(layout, range(1, blocks + 1)))
    parts = []
    for number, (index, place) in enumerate(places.items()):
        block, inside = divmod(number, rows * columns)
        row, column = divmod(inside, columns)
        x, y = step_x * (block % per_row), step_y * (block // per_row)
        if named and not inside:
            parts.append(fitted(x, y + 11, f"{[*index[:-2]]}", x + step_x - 6, "small faint"))
        box = x + column * width, y + named + row * height, width - seam, height - seam
        said = str(way.numbers[place]) if roomy else ""
        cell = _cell(said, _shade(place, len(way.numbers)), box, ringed=index == pointed)
        key = ", ".join(map(str, index))
        label = f"[{key}] is {way.numbers[place]}, at {place}"
        parts.append(button(cell, key=key, row=f"{index[:-2]} {row}", label=label, data_point=""))
    return scaled(0, top, scale, *parts), drawn_height


def _cell(said: str, colour: str, box: tuple[Number, ...], *, ringed: bool) -> str:
    """A number of the storage, if there is room for its digits, in the colour of its place."""
    x, y, width, height = box
    number = text(x + width / 2, y + height / 2 + 5, said, class_="middle small") if said else ""
    cell = element("g", rect(*box), number, class_=colour)
    return cell + (rect(*box, class_="pointed") if ringed else "")


@cache
def _shade(place: int, owned: int) -> str:
    """The classes of its colour, and of letters that can be read on it."""
    shade = round((SHADES - 1) * place / max(1, owned - 1))
    return f"shade-{shade} {'on-light' if shade >= LIGHT else 'on-dark'}"


def _meaning(way: Way, width: int) -> str:
    """What was copied, shared and kept."""
    if way.refusal:
        return way.refusal
    first, end, owned = way.tensors[0].walk, way.end, len(way.numbers)
    elements, seen = len(end.places), len({*end.places.values()})
    copied = [t.operation for t in way.tensors if t.storage == "copied"]
    changed = [name for name in ("shape", "strides", "offset") if getattr(first, name) != getattr(end, name)]
    if copied:
        said = f"Copied by {listed(copied)}: {width * owned} bytes of its own"
    elif len(way.tensors) > 1:
        said = f"A view: it changes {listed(changed) or 'nothing'}; no number has moved"
    else:
        said = f"{count_text(owned, 'number')} in one row of storage; the strides {end.strides} say how far"
        said += " a step along each dimension goes"
    shared = f"; {elements} elements share {count_text(seen, 'place')}" if elements > seen else ""
    unseen = width * (owned - seen)
    kept = f"; it keeps {unseen} bytes allocated that it does not see" if unseen else ""
    return f"{said}{shared}{kept}."


def _table(chain: Chain) -> list[Sequence[str]]:
    """A row for each operation, with the tensor that it gave."""
    way = chain.way
    rows = [
        (name, f"{t.shape}", f"{t.strides}", f"{t.offset}", "yes" if t.contiguous else "no", storage)
        for name, storage, t in way.tensors
    ]
    refused = [(chain.links[len(rows) - 1].text, "refused", *[""] * 4)] if way.refusal else []
    return [COLUMNS, *rows, *refused]
