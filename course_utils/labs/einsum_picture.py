"""What the einsum lab draws: the pattern by the roles of its names, its loops, its cost, and the cost of every order."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import opt_einsum
import torch

from course_utils import einsums, predict
from course_utils.einsums import Einsum, Order, Tree, operand_name
from course_utils.labs.panel import View
from course_utils.labs.size_control import DEFAULT, SizesControl, size_of
from course_utils.labs.svg import picture, rect, text
from course_utils.quantities import Number, count_text, number_text, seconds_text, times_text

WIDTH, COSTS, LINE, CHIP = 940, 560, 21, 26  # COSTS is where their column begins
MOST_OPERANDS = 5
MOST_BARS = 12
CHARACTER = 8.6  # width of one in the monospaced font at its usual size; in the other one less


@dataclass(frozen=True)
class Asked:
    """An einsum with its sizes and dtype."""

    einsum: Einsum
    sizes: Mapping[str, int]
    dtype: str

    @property
    def shapes(self) -> list[tuple[int, ...]]:
        """The operands' shapes and, last, the result's."""
        sides = (*self.einsum.operands, self.einsum.output)
        return [tuple(self.sizes[name] for name in side) for side in sides]

    @property
    def steps(self) -> int:
        """How often the innermost line of the loops runs."""
        return self.einsum.steps(self.sizes)

    @cached_property
    def orders(self) -> list[Order]:
        """Every order of multiplying, the cheapest first."""
        return einsums.orders(self.einsum, self.sizes)

    @property
    def flops(self) -> int:
        """In the cheapest order."""
        return self.orders[0].flops

    @property
    def nbytes(self) -> int:
        """Every operand read once, the result written once."""
        return sum(predict.tensor_bytes(shape, self.dtype) for shape in self.shapes)


def asked_for(pattern: str, notation: str, sizes: Mapping[str, object], dtype: str) -> Asked:
    """What the controls say, or a sentence on what they cannot mean."""
    einsum = einsums.parsed(pattern, letters=notation == "letters")
    if len(einsum.operands) > MOST_OPERANDS:
        raise ValueError(
            f"{len(einsum.operands)} operands have more orders than fit in here. Take up to {MOST_OPERANDS}."
        )
    if len(einsum.names) > SizesControl.most_names:
        raise ValueError(
            f"{len(einsum.names)} names are more than this lab has sliders for. Take up to {SizesControl.most_names}."
        )
    return Asked(einsum, {name: size_of(name, sizes.get(name, DEFAULT)) for name in einsum.names}, dtype)


def view(asked: Asked, agreement: str, seconds: Mapping[str, Number]) -> View:
    """The whole picture; `seconds` has what was measured, by order."""
    loops = _broken(einsums.loop_nest(asked.einsum, asked.sizes).splitlines())
    facts = _facts(asked, seconds)
    y = 62
    drawn = [
        _pattern(asked),
        text(0, y, "as loops", class_="strong"),
        text(COSTS, y, "costs", class_="strong"),
    ]
    drawn += [_loops(loops, y + 22), _key(y)]
    for row, (words, class_) in enumerate(facts):
        drawn.append(text(COSTS, y + 22 + row * LINE, words, class_=class_))
    y += 22 + max(len(loops), len(facts)) * LINE
    if len(asked.einsum.operands) > 2:
        bars, y = _bars(asked, seconds, y + 18)
        drawn.append(bars)
    return View(picture(WIDTH, y, *drawn), _meaning(asked, agreement))


def _pattern(asked: Asked) -> str:
    """Operands and result as rows of chips, each in the colour of its role."""
    sides = [*map(operand_name, range(len(asked.einsum.operands))), "result"]
    parts, x = [], 0
    for label, names in zip(sides, (*asked.einsum.operands, asked.einsum.output), strict=True):
        label = f"→ {label}" if label == "result" else label
        parts.append(text(x, 24, label, class_="strong"))
        x += len(label) * CHARACTER + 10
        for name in names:
            words = f"{name} {asked.sizes[name]:,}"
            width = len(words) * CHARACTER + 8
            chip = rect(x, 6, width, CHIP) + text(x + width / 2, 24, words, class_="middle")
            parts.append(f'<g class="{asked.einsum.role(name)}">{chip}</g>')
            x += width + 4
        x += 18
    inside = "".join(parts)
    return inside if x <= WIDTH else f'<g transform="scale({WIDTH / x:.3f})">{inside}</g>'


def _broken(lines: Sequence[str]) -> list[str]:
    """Long lines in several, one for each factor."""
    most = int((COSTS - 20) / CHARACTER)
    broken = []
    for line in lines:
        first, *others = line.split(" * ") if len(line) > most else [line]
        indent = " " * (len(line) - len(line.lstrip()) + 6)
        broken += [first, *(f"{indent}* {other}" for other in others)]
    return broken


def _loops(lines: Sequence[str], y: Number) -> str:
    """The loops; a line that would reach into the costs goes on below, and is drawn smaller if that is not enough."""
    parts = []
    for row, line in enumerate(lines):
        indent = len(line) - len(line.lstrip())
        parts.append(text(indent * CHARACTER, row * LINE, line.lstrip(), class_="code"))
    scale = min(1.0, (COSTS - 20) / (max(map(len, lines)) * CHARACTER))
    return f'<g transform="translate(0 {y}) scale({scale:.3f})">{"".join(parts)}</g>'


def _key(y: Number) -> str:
    """What the colours of the chips say."""
    parts, x = [], WIDTH - 3 * 76
    for role in ("batch", "kept", "summed"):
        chip = rect(x, y - 18, 72, CHIP - 2) + text(x + 36, y - 1, role, class_="middle small")
        parts.append(f'<g class="{role}">{chip}</g>')
        x += 76
    return "".join(parts)


def _facts(asked: Asked, seconds: Mapping[str, Number]) -> list[tuple[str, str]]:
    intensity = predict.intensity(asked.flops, asked.nbytes)
    lines = [
        (f"result {asked.shapes[-1]}", ""),
        (f"{count_text(asked.steps, 'step')} of the loops", ""),
        (_flops_formula(asked), "formula"),
        (f"{count_text(asked.nbytes, 'byte')} in {asked.dtype}, each once", ""),
        (f"{number_text(round(intensity, 3))} FLOPs per byte", ""),
    ]
    cheapest = asked.orders[0].text
    if cheapest in seconds:
        lines.append((f"measured: {seconds_text(seconds[cheapest])}", "measured-words"))
    return lines


def _flops_formula(asked: Asked) -> str:
    """FLOPs, and how they come about where that is one product."""
    if len(asked.orders) > 1:
        return f"{count_text(asked.flops, 'FLOP')} in the cheapest order"
    factors = [2] * bool(asked.einsum.summed) + [asked.sizes[name] for name in asked.einsum.names]
    formula = f"{' × '.join(map(str, factors))} = "
    short = len(asked.einsum.operands) == 2 and len(formula) <= 26
    return f"{formula if short else ''}{count_text(asked.flops, 'FLOP')}"


def _bars(asked: Asked, seconds: Mapping[str, Number], y: Number) -> tuple[str, Number]:
    """A bar for each order, the cheapest and torch's own choice marked."""
    shown = asked.orders[:MOST_BARS]
    if len(asked.orders) > MOST_BARS:
        shown = [*asked.orders[: MOST_BARS - 1], asked.orders[-1]]
    theirs = torchs_order(asked)
    most = max(order.flops for order in shown) or 1
    title = f"{len(asked.orders)} orders of multiplying in pairs"
    parts = [text(0, y, title, class_="strong")]
    y += 10
    for row, order in enumerate(shown):
        if row == MOST_BARS - 1 and len(asked.orders) > MOST_BARS:
            parts.append(text(0, y + 16, f"… {len(asked.orders) - MOST_BARS} between", class_="faint"))
            y += LINE
        cheapest = order.flops == asked.flops
        length = max(2, 400 * order.flops / most)
        said = [count_text(order.flops, "FLOP")]
        said += ["cheapest"] if cheapest else [times_text(order.flops / asked.flops)] if asked.flops else []
        said += ["torch's choice"] if order.tree == theirs else []
        said += [f"measured {seconds_text(seconds[order.text])}"] if order.text in seconds else []
        parts += [
            text(0, y + 16, order.text, class_="code strong" if cheapest else "code"),
            rect(180, y + 3, length, LINE - 6, class_="predicted" if cheapest else "limit"),
            text(180 + length + 8, y + 16, " · ".join(said), class_="strong" if cheapest else ""),
        ]
        y += LINE
    return "".join(parts), y + 6


def torchs_order(asked: Asked) -> Tree:
    """The order in which torch.einsum would multiply, for which it asks opt_einsum."""
    *shapes, _ = asked.shapes
    strategy = torch.backends.opt_einsum.strategy
    path, _ = opt_einsum.contract_path(asked.einsum.equation, *shapes, shapes=True, optimize=strategy)
    trees: list[Tree] = list(range(len(shapes)))
    for places in path:
        pair = [trees.pop(place) for place in sorted(places, reverse=True)]
        trees.append(tuple(sorted(pair, key=_first)) if len(pair) > 1 else pair[0])
    return trees[0]


def _first(tree: Tree) -> int:
    return tree if isinstance(tree, int) else min(map(_first, tree))


def _meaning(asked: Asked, agreement: str) -> str:
    by_role: dict[str, list[str]] = {}
    for name in asked.einsum.names:
        by_role.setdefault(asked.einsum.role(name), []).append(name)
    roles = [
        f"{_listed(by_role[role])} {'is' if len(by_role[role]) == 1 else 'are'} {role}"
        for role in ("batch", "kept", "summed")
        if role in by_role
    ]
    if len(asked.einsum.operands) == 1:
        cost = "nothing is multiplied, so 0 FLOPs by convention"
    elif len(asked.einsum.operands) == 2:
        each = "2 for each step, a product and an addition" if asked.einsum.summed else "1 for each step"
        cost = f"{count_text(asked.flops, 'FLOP')}, {each}"
    else:
        dearest = asked.orders[-1].flops
        cost = f"{count_text(asked.flops, 'FLOP')} in every order"
        if dearest > asked.flops:
            more = times_text(dearest / asked.flops)
            cost = f"{count_text(asked.flops, 'FLOP')} as {asked.orders[0].text}, up to {more} that in another order"
        theirs = torchs_order(asked)
        taken = next(order.flops for order in asked.orders if order.tree == theirs)
        if taken > asked.flops:
            cost += f"; torch's choice, searched by another count, takes {count_text(taken, 'FLOP')}"
    return f"{'; '.join([*roles, cost])}. {agreement}".strip()


def _listed(names: Sequence[str]) -> str:
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last
