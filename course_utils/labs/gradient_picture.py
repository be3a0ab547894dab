"""What the gradient lab draws: three products in each layer, and what attention adds as sequences grow."""

import math
from collections.abc import Sequence
from itertools import pairwise

from course_utils import predict
from course_utils.labs.lettering import fitted, width_of
from course_utils.labs.panel import View
from course_utils.labs.svg import LogPlot, button, dot, picture, polyline, rect, text
from course_utils.quantities import Ledger, Number, count_text, number_text

WIDTH, ROW, BARS_X, BARS_WIDTH = 940, 30, 150, 430
PARTS = ("forward", "weight gradient", "input gradient")
PLOT_X, DEPTHS = 660, 16


def layers_view(
    batch: int, widths: Sequence[int], input_grad: bool, frozen: Sequence[int], counted: Ledger
) -> View:
    """Every layer with its products as bars, the totals beside the count, and the share of 6BP by depth."""
    by_layer = predict.mlp_flops_by_layer(batch, widths, input_grad=input_grad, frozen=frozen)
    predicted = predict.mlp_flops(batch, widths, input_grad=input_grad, frozen=frozen)
    rule = 6 * batch * sum(d * k for d, k in pairwise(widths))
    drawn = [_key(), *_bars(by_layer, widths, frozen)]
    y = 44 + ROW * len(by_layer) + 26
    for part in ("forward", "backward"):
        drawn.append(text(0, y, part, class_="strong"))
        said = f"predicted {predicted[part]:,}"
        drawn.append(text(BARS_X, y, said, class_="formula"))
        same = "exactly" if predicted[part] == counted[part] else "not the same"
        found, x = f"counted {counted[part]:,}, {same}", BARS_X + max(240, width_of(said, "formula") + 16)
        if x + width_of(found, "measured-words") > PLOT_X - 20:  # beside it there is no room
            x, y = BARS_X, y + 22
        drawn.append(text(x, y, found, class_="measured-words"))
        y += 22
    share = predicted.total / rule
    drawn.append(text(0, y, "total", class_="strong"))
    drawn.append(text(BARS_X, y, f"{predicted.total:,} = {share:.4f} × 6BP", class_="formula"))
    drawn.append(_shares(len(by_layer), counted.total / rule))
    return View(
        picture(WIDTH, max(y + 12, 330), *drawn), _layers_meaning(by_layer, input_grad, frozen, share)
    )


def _key() -> str:
    parts, x = [], BARS_X
    for part in PARTS:
        parts.append(
            f'<g class="{_class(part)}">{rect(x, 6, 14, 14)}</g>{text(x + 20, 18, part, class_="small")}'
        )
        x += 34 + 8 * len(part)
    return "".join(parts)


def _class(part: str) -> str:
    return part.replace(" ", "-")


def _bars(by_layer: Sequence[Ledger], widths: Sequence[int], frozen: Sequence[int]) -> list[str]:
    longest = 3 * max(ledger["forward"] for ledger in by_layer)
    parts = []
    for layer, ledger in enumerate(by_layer):
        y, x = 34 + layer * ROW, BARS_X
        still = layer in frozen
        shape = f"{widths[layer]:,} × {widths[layer + 1]:,}"
        name = f"{layer}: {shape}" + (" frozen" if still else "")
        parts.append(
            button(
                rect(0, y, BARS_X - 12, ROW - 6, class_="name"),
                fitted(6, y + 17, name, BARS_X - 16, "small"),
                key=str(layer),
                row=str(layer),
                label=f"layer {layer}, {shape}, frozen",
                on=still,
            )
        )
        one = BARS_WIDTH * ledger["forward"] / longest
        for part in PARTS:
            kind = _class(part) if ledger[part] else "missing"
            parts.append(f'<g class="{kind}">{rect(x, y, max(1, one - 3), ROW - 6)}</g>')
            x += one
        parts.append(text(x + 8, y + 17, f"{_products(ledger)} of 3", class_="small faint"))
    return parts


def _products(ledger: Ledger) -> int:
    return sum(ledger[part] > 0 for part in PARTS)


def _shares(depth: int, counted: Number) -> str:
    """Total over 6BP for equal layers and plain data: 1 - 1/(3L), and the model at hand."""
    left, top, width, height = PLOT_X + 40, 60, WIDTH - PLOT_X - 60, 200

    def at(layers: Number, share: Number) -> tuple[Number, Number]:
        return left + width * math.log2(layers) / math.log2(DEPTHS), top + height * (
            1 - min(1.1, share) / 1.1
        )

    parts = [
        text(PLOT_X, 18, "total / 6BP", class_="strong"),
        text(left + width, top + height + 38, "layers", class_="faint end"),
    ]
    for share in (0, 0.5, 1):
        parts.append(polyline([at(1, share), at(DEPTHS, share)], class_="grid"))
        parts.append(text(left - 8, at(1, share)[1] + 4, f"{share:g}", class_="end small"))
    for layers in (1, 2, 4, 8, 16):
        parts.append(text(at(layers, 0)[0], top + height + 18, str(layers), class_="middle small"))
    curve = [at(layers, 1 - 1 / (3 * layers)) for layers in range(1, DEPTHS + 1)]
    parts.append(polyline(curve, class_="line predicted"))
    parts.append(text(left, at(1, 1.04)[1], "equal layers: 1 - 1/(3L)", class_="formula"))
    x, y = at(depth, counted)
    parts.append(dot(x, y, 6, class_="measured"))
    inside = min(max(x, left + 28), left + width - 20)
    parts.append(text(inside, y + 24, f"{counted:.3f}", class_="measured-words middle"))
    return "".join(parts)


def _layers_meaning(
    by_layer: Sequence[Ledger], input_grad: bool, frozen: Sequence[int], share: Number
) -> str:
    missing = 3 * len(by_layer) - sum(map(_products, by_layer))
    if not missing:
        return "All three products in every layer: 2 forward, 4 backward, 6 in all, since the data need a gradient too."
    said = []
    if not input_grad and not frozen:
        said.append("the first layer reads plain data, which needs no gradient: one product less")
    elif frozen:
        products = f"{missing} product{'s' * (missing > 1)}"
        said.append(
            f"{len(frozen)} of {len(by_layer)} layers are frozen, and {products} of {3 * len(by_layer)} fall away; "
            "an input's gradient is needed as long as something before it is trained"
        )
    words = "; ".join([*said, f"{number_text(round(share, 4))} of 6BP"])
    return f"{words[0].upper()}{words[1:]}."


# The transformer.


def transformer_view(name: str, sequence: int, counted: Ledger | None) -> View:
    """Matrices, attention and output in one training step on one sequence, and what 6PN says of it."""
    model = predict.MODELS[name]
    lengths = [2**power for power in range(21)]
    plot = LogPlot(90, 60, 520, 300, (lengths[0], lengths[-1]), (0.001, 100))
    ratio = [_over_rule(model, s) for s in lengths]
    share = [_attention_share(model, s) for s in lengths]
    drawn = [
        plot.frame(
            f"{name}: one sequence of S tokens",
            "sequence length S",
            "ratio",
            lambda s: f"{s:,.0f}",
            lambda r: f"{r:g}",
        ),
        polyline([plot.at(s, r) for s, r in zip(lengths, share, strict=True)], class_="line"),
        polyline([plot.at(s, r) for s, r in zip(lengths, ratio, strict=True)], class_="line predicted"),
        text(plot.x(600_000), plot.y(0.35), "attention / matrices", class_="faint strong end"),
        text(plot.x(2), plot.y(ratio[0]) - 12, "all FLOPs / 6PN", class_="formula"),
        dot(*plot.at(sequence, _over_rule(model, sequence)), 6, class_="ring"),
    ]
    even = model.block_weights // (2 * model.width)  # where attention costs as much as the matrices
    if lengths[0] < even < lengths[-1]:
        drawn.append(polyline([(plot.x(even), 60), (plot.x(even), 360)], class_="line dashed"))
        drawn.append(
            text(
                plot.x(even) + 6,
                350,
                f"S = {'6H = ' if even == 6 * model.width else ''}{even:,}",
                class_="faint small",
            )
        )
    if counted is not None:
        drawn.append(dot(*plot.at(sequence, counted.total / _rule(model, sequence)), 6, class_="measured"))
    drawn += _transformer_facts(model, sequence, counted)
    return View(picture(WIDTH, 410, *drawn), _transformer_meaning(name, model, sequence))


def _rule(model: predict.Transformer, sequence: int) -> int:
    return 6 * model.parameters * sequence


def _over_rule(model: predict.Transformer, sequence: int) -> Number:
    return model.training_flops(1, sequence).total / _rule(model, sequence)


def _attention_share(model: predict.Transformer, sequence: int) -> Number:
    forward = model.forward_flops(1, sequence)
    return forward["attention"] / forward["matrices"]


def _transformer_facts(model: predict.Transformer, sequence: int, counted: Ledger | None) -> list[str]:
    forward, training = model.forward_flops(1, sequence), model.training_flops(1, sequence)
    lines = [
        (f"{model.parameters:,} parameters", ""),
        ("forward FLOPs", "strong"),
        *((f"  {part} {forward[part]:,}", "") for part in forward),
        (f"forward {training['forward']:,}", "formula"),
        (f"backward {training['backward']:,}", "formula"),
    ]
    if counted is not None:
        for part in ("forward", "backward"):
            same = "exactly" if counted[part] == training[part] else f"{counted[part] - training[part]:+,}"
            lines.append((f"counted {part}: {same}", "measured-words"))
    else:
        lines.append(("not counted yet", "faint"))
    return [
        text(640, 80 + row * 24, words, class_=f"small {class_}") for row, (words, class_) in enumerate(lines)
    ]


def _transformer_meaning(name: str, model: predict.Transformer, sequence: int) -> str:
    looked_up = model.parameters_by_part["token embedding"] * (not model.tied_output)
    looked_up += model.parameters_by_part["positions"]
    return (
        f"{name} needs {_over_rule(model, sequence):.3f} × 6PN at {count_text(sequence, 'token')}: attention adds "
        f"{100 * _attention_share(model, sequence):.3g} % to the matrices, and "
        f"{100 * looked_up / model.parameters:.3g} % of the parameters are only looked up, which costs nothing."
    )
