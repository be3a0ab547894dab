"""Three products in each layer, predicted beside counted; and what attention adds as sequences grow."""

from collections.abc import Iterator, Mapping, Sequence

from course_utils import predict
from course_utils.labs.draw.lettering import columns, fitted, key
from course_utils.labs.draw.lines import Point
from course_utils.labs.draw.plot import Axis, Plot
from course_utils.labs.draw.svg import dot, picture, rect, switch, text
from course_utils.labs.gradient.asked import Asked
from course_utils.labs.lab import View
from course_utils.quantities import Ledger, Number, count_text, number_text, times_text

WIDTH = 1000
BARS, BAR, MOST_ROW, ROWS_HEIGHT = 160, 160, 28, 240  # a product's bar is so long at the most
PARTS = {"forward": "forward", "weight gradient": "weight-gradient", "input gradient": "input-gradient"}
WORDS_WIDTH = 690  # beside the plot of the layers
SHARES = Axis(0, 1.1, linear=True, marks=(0, 0.5, 1))
LAYERS = Plot(760, 34, 220, 170, Axis(1, 16, "layers", marks=(1, 2, 4, 8, 16)), SHARES)
LENGTHS = Plot(60, 34, 400, 240, Axis(1, 2**20, "sequence length S", "{:,.0f}".format), Axis(0.001, 1000))
FACTS = 530


def view(asked: Asked, found: Mapping[Asked, Ledger]) -> View:
    """The view that was chosen; `found` has what torch counted of a question, forward and backward."""
    chosen = _layers if asked.what == "layers" else _transformer
    return chosen(asked, found.get(asked))


def _table(predicted: Ledger, counted: Ledger | None, why_not: str, place: Point, right: Number) -> str:
    """Prediction beside count, or why there is none."""
    rows = [("FLOPs", "predicted", "counted", "")]
    for part, flops in predicted.items():
        found = (counted or {}).get(part)
        words = f"{found:,}" if found is not None else why_not if part in ("forward", "backward") else ""
        same = "" if found is None else "exactly" if found == flops else "not the same"
        rows.append((part, f"{flops:,}", words, same))
    return columns(rows, *place, right, ("strong", "formula", "measured-words", "measured-words"))


# Layers.


def _layers(asked: Asked, counted: Ledger | None) -> View:
    """Every layer with its products as bars, the totals beside the count, and the share of 6BP by depth."""
    of = {"input_grad": asked.input_grad, "frozen": asked.frozen_layers}
    by_layer = predict.mlp_flops_by_layer(asked.b, asked.widths, **of)
    predicted = predict.mlp_flops(asked.b, asked.widths, **of)
    rule = 6 * asked.b * asked.parameters
    row = min(MOST_ROW, ROWS_HEIGHT / asked.depth)
    y = 30 + row * asked.depth + 26
    share = predicted.total / rule
    missing = sum(not ledger[part] for ledger in by_layer for part in PARTS)
    total = f"total / 6BP = {predicted.total:,} / (6 · {asked.b:,} · {asked.parameters:,}) = {number_text(share, 4)}"
    drawn = [
        key([*((class_, part) for part, class_ in PARTS.items()), ("missing", "not needed")], BARS, 16),
        *_bars(asked, by_layer, row),
        _table(predicted, counted, "needs a kernel", (0, y), WORDS_WIDTH),
        fitted(0, y + 66, total, WORDS_WIDTH, "formula"),
        *_by_depth(asked.depth, share, counted and counted.total / rule),
    ]
    meaning = _layers_meaning(asked, predicted.total, share, missing)
    return View(picture(WIDTH, max(y + 74, 250), *drawn), meaning)


def _bars(asked: Asked, by_layer: Sequence[Ledger], row: Number) -> Iterator[str]:
    longest = max(ledger["forward"] for ledger in by_layer)
    for layer, ledger in enumerate(by_layer):
        y, frozen = 30 + layer * row, layer in asked.frozen_layers
        shape = f"{asked.widths[layer]:,} × {asked.widths[layer + 1]:,}"
        box = rect(0, y, BARS - 12, row - 4, class_="name")
        name = f"{layer}: {shape}{' frozen' if frozen else ''}"
        words = fitted(6, y + row / 2 + 2, name, BARS - 16, "small strong" if frozen else "small")
        label = f"layer {layer}, {shape}, frozen"
        yield switch(box, words, key=str(layer), row=str(layer), label=label, on=frozen)
        x, one = BARS, BAR * ledger["forward"] / longest
        for part, class_ in PARTS.items():
            yield rect(x, y, max(1, one - 3), row - 4, class_=class_ if ledger[part] else "missing")
            x += one


def _by_depth(depth: int, predicted: Number, counted: Number | None) -> Iterator[str]:
    """Total over 6BP for equal layers and plain data, and the layers at hand."""
    yield LAYERS.frame("total / 6BP")
    curve = [(n, predict.mlp_flops(1, [1] * (n + 1)).total / (6 * n)) for n in range(1, 17)]
    yield LAYERS.line(curve, "line predicted")
    yield text(LAYERS.right - 6, LAYERS.bottom - 10, "equal layers: 1 - 1/(3L)", class_="formula small end")
    yield dot(*LAYERS.at(depth, predicted), 8, class_="ring")
    if counted is not None:
        yield dot(*LAYERS.at(depth, counted), 5, class_="measured")


def _layers_meaning(asked: Asked, total: int, share: Number, missing: int) -> str:
    if asked.frozen_layers:
        why = (
            f". Frozen: {len(asked.frozen_layers)} of {count_text(asked.depth, 'layer')}. {missing} of {3 * asked.depth} "
            "products fall away. An input's gradient is needed only if something before it needs one."
        )
    elif missing:
        why = ". One product is not needed: the first layer reads plain data, which takes no gradient."
    else:
        why = (
            ": the data need a gradient too, so every layer has all three products, "
            "2 FLOPs forward and 4 backward for each weight and data point."
        )
    of_the_rule = f"{number_text(share, 4)} of" if missing else "exactly"
    return f"{count_text(total, 'FLOP')}, {of_the_rule} 6BP{why}"


# The transformer.


def _transformer(asked: Asked, counted: Ledger | None) -> View:
    """Matrices, attention and output in one training step on one sequence, and what 6PN says of it."""
    model, s = predict.MODELS[asked.model], asked.sequence
    lengths = [2**power for power in range(21)]
    shares = [(n, model.attention_share(n)) for n in lengths]
    even, rule = model.even_sequence, 6 * model.parameters
    forward, training = model.forward_flops(1, s), model.training_flops(1, s)
    six = "6H = " if even == 6 * model.width else ""
    over = training.total / (rule * s)
    curves = [("predicted", "all FLOPs / 6PN"), ("limit", "attention / matrices")]
    drawn = [
        key(curves, LENGTHS.left, 18),
        LENGTHS.frame(),
        LENGTHS.line([point for point in shares if point[1] >= LENGTHS.y_axis.low], "line"),
        LENGTHS.line([(n, model.training_flops(1, n).total / (rule * n)) for n in lengths], "line predicted"),
        LENGTHS.line([(even, LENGTHS.y_axis.low), (even, LENGTHS.y_axis.high)], "line dashed"),
        text(LENGTHS.x(even) - 6, LENGTHS.bottom - 10, f"S = {six}{even:,}", class_="faint small end"),
        dot(*LENGTHS.at(s, over), 8, class_="ring"),
        *([dot(*LENGTHS.at(s, counted.total / (rule * s)), 5, class_="measured")] if counted else []),
        _table(Ledger({**forward, **training}), counted, "not yet", (FACTS, 70), WIDTH),
    ]
    meaning = (
        f"At {count_text(s, 'token')} {asked.model} needs {over:.3f} × 6PN: attention costs "
        f"{times_text(model.attention_share(s))} what the matrices cost. "
        f"{100 * model.looked_up / model.parameters:.3g} % of the parameters are only looked up, and cost nothing."
    )
    return View(picture(WIDTH, LENGTHS.bottom + 46, *drawn), meaning)
