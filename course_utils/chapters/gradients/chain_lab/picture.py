"""The chain of matrices with their gradients below them, and a bar with the products' FLOPs."""

from collections.abc import Iterator
from itertools import pairwise

from course_utils.chapters.gradients.chain_lab.asked import (
    FORWARD,
    Chain,
    Product,
)
from course_utils.core.say import Number, flops_text
from course_utils.core.say.language import translated
from course_utils.engine.labs.draw import svg
from course_utils.engine.labs.draw.lettering import width_of
from course_utils.engine.labs.draw.lines import Point
from course_utils.engine.labs.lab import View

WIDTH = 1000
HEIGHT = 316

# The boxes: activations stand in even columns, weights between them in odd ones.
BOX_WIDTH = 86
BOX_HEIGHT = 38
LOSS_WIDTH = 52
WIDEST_STEP = 200  # from one column to the next
# The middle of each row, from the top.
WEIGHTS = 54
ACTIVATIONS = 114
WEIGHT_GRADIENTS = 174
INPUT_GRADIENTS = 234
LOSS = "loss"
# An arrow ends a little before its box, in a tip with two arms.
GAP = 3
TIP_BACK = 8
TIP_ASIDE = 4

# The bar with the FLOPs.
BAR_LEFT = 62
BAR_TOP = 266
BAR_HEIGHT = 24


def view(asked: Chain, found: object) -> View:
    """Draw the matrices, those that exist so far in full colour, and what the last product read."""
    places = _places(asked)
    now = asked.products[asked.done - 1] if asked.done else None  # the last one that is done
    drawn = [svg.text(0, 18, _title(asked), class_="strong")]
    drawn += _faint_arrows(asked, places)
    for name, place in places.items():
        drawn.append(_box(asked, name, place))
    if now:
        drawn += _highlighted(now, places)
    drawn += _bar(asked)
    return View(svg.picture(WIDTH, HEIGHT, *drawn), _meaning(asked, now))


def _places(asked: Chain) -> dict[str, Point]:
    """Return the middle of each box, by its name."""
    last = 2 * asked.layers  # the number of the last column, counted from 0
    # 4: the frame of `_highlighted` is 2 wider on each side than its box.
    step = min(WIDEST_STEP, (WIDTH - BOX_WIDTH - 4) / last)
    left = (WIDTH - step * last) / 2
    places = {}
    for number, name in enumerate(asked.activations):
        x = left + 2 * number * step
        places[name] = (x, ACTIVATIONS)
        places[f"{name}.grad"] = (x, INPUT_GRADIENTS)
    for number, name in enumerate(asked.weights):
        x = left + (2 * number + 1) * step
        places[name] = (x, WEIGHTS)
        places[f"{name}.grad"] = (x, WEIGHT_GRADIENTS)
    places[LOSS] = (left + last * step, WEIGHT_GRADIENTS)
    return places


def _box(asked: Chain, name: str, place: Point) -> str:
    """Draw a matrix: its name, its shape, and the colour of the product that makes it."""
    x, y = place
    width = LOSS_WIDTH if name == LOSS else BOX_WIDTH
    box = svg.rect(x - width / 2, y - BOX_HEIGHT / 2, width, BOX_HEIGHT)
    if name == LOSS:
        words = svg.text(x, y + 5, name, class_="middle")
    else:
        rows, columns = asked.shape(name)
        above = svg.text(x, y - 3, name, class_="middle")
        words = above + svg.text(x, y + 13, f"{rows:,} × {columns:,}", class_="middle small")
    return svg.element("g", box, words, class_=f"matrix {_look(asked, name)}")


def _look(asked: Chain, name: str) -> str:
    """Return the CSS classes of a box, by the product that makes its matrix, if there is one.

    A matrix that a later product makes is drawn faintly. Data and weights are "given".
    """
    for number, product in enumerate(asked.products):
        if product.makes == name:
            return product.kind if number < asked.done else f"{product.kind} later"
    if name == "x.grad":  # plain data, which need no gradient
        return "missing"
    # No product makes these two: they are there as soon as the last layer has its result.
    comes_of_result = name in (LOSS, f"{asked.result}.grad")
    if comes_of_result and asked.done < asked.layers:  # the forward pass is not over
        return "unseen"
    return "given"


def _faint_arrows(asked: Chain, places: dict[str, Point]) -> Iterator[str]:
    """Draw an arrow from each matrix to the products that read it.

    From the result, arrows lead by way of the loss to the result's gradient. Where the backward
    pass reads a matrix of the forward pass again, the arrow is drawn in another style.
    """
    for product in asked.products:
        for read in product.reads:
            class_ = "track" if _reads_again(product, read) else "leader"
            yield _arrow(places[read], places[product.makes], class_, "leader")
    for name, following in pairwise((asked.result, LOSS, f"{asked.result}.grad")):
        yield _arrow(places[name], places[following], "leader", "leader")


def _reads_again(product: Product, read: str) -> bool:
    """Whether this is a product of the backward pass that reads a matrix of the forward pass.

    Such a matrix has to be kept until then, so its arrow has another style.
    """
    return product.kind != FORWARD and not read.endswith(".grad")


def _highlighted(product: Product, places: dict[str, Point]) -> Iterator[str]:
    """Draw a frame around what the product makes, and arrows from what it reads."""
    x, y = places[product.makes]
    width = BOX_WIDTH + 4
    height = BOX_HEIGHT + 4
    yield svg.rect(x - width / 2, y - height / 2, width, height, class_="start")
    for read in product.reads:
        class_ = "moment" if _reads_again(product, read) else "start"
        yield _arrow(places[read], places[product.makes], class_, "start")


def _arrow(begin: Point, end: Point, line: str, tip: str) -> str:
    """Draw an arrow from the edge of a box to the edge of another; `line` and `tip` are classes."""
    start_x, start_y = _edge(begin, end)
    x, y = _edge(end, begin)
    across = x - start_x
    down = y - start_y
    length = (across**2 + down**2) ** 0.5
    along = (across / length, down / length)
    arms = []
    for aside in (TIP_ASIDE, -TIP_ASIDE):  # back along the line, and aside at a right angle
        arm_x = x - TIP_BACK * along[0] - aside * along[1]
        arm_y = y - TIP_BACK * along[1] + aside * along[0]
        arms.append((arm_x, arm_y))
    shaft = svg.polyline([(start_x, start_y), (x, y)], class_=line)
    return shaft + svg.polyline([arms[0], (x, y), arms[1]], class_=tip)


def _edge(place: Point, toward: Point) -> Point:
    """Return the point, a gap away from a box's edge, where the line from its middle leaves it."""
    x, y = place
    across = toward[0] - x
    down = toward[1] - y
    # How much of the line to `toward` it takes until the line has left the box, on each axis.
    shares = []
    if across:
        shares.append((BOX_WIDTH / 2 + GAP) / abs(across))
    if down:
        shares.append((BOX_HEIGHT / 2 + GAP) / abs(down))
    share = min(shares)
    return x + share * across, y + share * down


def _bar(asked: Chain) -> Iterator[str]:
    """Draw the FLOPs of each product as a part of a bar, one after the other."""
    yield svg.text(0, BAR_TOP + 17, "FLOPs", class_="strong")
    forward = sum(product.flops for product in asked.products if product.kind == FORWARD)
    # The width of a FLOP. Backward takes twice as many FLOPs as forward if no product is left out,
    # and then the bar is full.
    unit = (WIDTH - BAR_LEFT) / (3 * forward)
    x: Number = BAR_LEFT
    for number, product in enumerate(asked.products):
        width = unit * product.flops
        look = product.kind if number < asked.done else f"{product.kind} later"
        yield _part_of_bar(x, width, product.makes, look)
        x += width
    if not asked.wanted:  # the rest of the bar is the product that is left out
        yield _part_of_bar(x, WIDTH - x, "x.grad", "missing")
    y = BAR_TOP + BAR_HEIGHT + 16
    yield svg.text(BAR_LEFT, y, translated("forward"), class_="small faint")
    yield svg.text(BAR_LEFT + unit * forward, y, translated("backward"), class_="small faint")


def _part_of_bar(x: Number, width: Number, made: str, look: str) -> str:
    """Draw a part of the bar, with the name of what its product makes, if there is space for it."""
    label = ""
    if width_of(made, "small") + 3 <= width:  # so narrow that all of six equal layers are named
        label = svg.text(x + width / 2, BAR_TOP + 16, made, class_="middle small")
    box = svg.rect(x, BAR_TOP, width, BAR_HEIGHT)
    return svg.element("g", box, label, class_=f"matrix {look}")


def _title(asked: Chain) -> str:
    """Return the headline: how many products each way takes."""
    back = len(asked.products) - asked.layers
    return translated(
        "Each coloured box is a matrix product: {forward} forward, {backward} backward",
        forward=f"{asked.layers}",
        backward=f"{back}",
    )


def _meaning(asked: Chain, now: Product | None) -> str:
    """Return the text below the picture: the product that runs now, and the FLOPs so far."""
    if now is None:
        return translated(
            "Here are data and weights. Press play, and one matrix product follows another."
        )
    done = sum(product.flops for product in asked.products[: asked.done])
    in_all = sum(product.flops for product in asked.products)
    first, second = now.reads
    return translated(
        "Product {number} of {count}: {made} is made of {first} and {second}. "
        "So far {done} of {all}.",
        number=f"{asked.done}",
        count=f"{len(asked.products)}",
        made=now.makes,
        first=first,
        second=second,
        done=flops_text(done),
        all=flops_text(in_all),
    )
