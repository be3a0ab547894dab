"""The precision lab: what it draws and says of gradients is what torch's cast counts, and it trains what is ticked."""

import math
import re
from functools import lru_cache
from itertools import pairwise
from xml.etree import ElementTree

import pytest
import torch

from course_utils import floats, predict
from course_utils.figures import COLOURS
from course_utils.labs.draw import still
from course_utils.labs.precision import jobs
from course_utils.labs.precision import picture as drawing
from course_utils.labs.precision.asked import AFTER, CONSTANT, FORMATS, MIXES, PRESETS, SCALED, Scaling
from course_utils.measure import DTYPES
from course_utils.training import precision
from tests.labs import answers, fresh, lines, run
from tests.words import words

lab = fresh("precision")
BATCH = 1_638_400  # which the lab begins with


@lru_cache
def gradients(after=0, *, layer=None, mean_over=BATCH):
    return precision.gradients(after, layer=layer, mean_over=mean_over)


def fates(fmt, power, after=0, layer=0, mean_over=BATCH):
    """How many gradients torch's cast stores as zero, as subnormal and beyond all bounds, and how many there are."""
    scaled = gradients(after, layer=layer or None, mean_over=mean_over).double().abs() * 2.0**power
    stored = scaled.float().to(DTYPES[fmt]).double()
    beyond = scaled > 464 if fmt == "e4m3" else stored.isinf()  # E4M3 has no infinity
    subnormal = (stored > 0) & (stored < floats.FORMATS[fmt].smallest_normal)
    return [int(one.sum()) for one in (stored == 0, subnormal, beyond)], len(stored)


# What it says of gradients.


@pytest.mark.parametrize("fmt", FORMATS)
@pytest.mark.parametrize(("power", "after", "layer"), [(0, 0, 0), (10, 50, 2), (29, 100, 0), (40, 0, 3)])
def test_prediction_and_count_are_what_the_cast_leaves(lab, fmt, power, after, layer):
    lab.set(fmt=fmt, power=power, after=after, layer=layer)
    beyond = "to 448" if fmt == "e4m3" else "to infinity"
    shown = [*filter(None, ElementTree.fromstring(lab.screen.svg).itertext())]
    for fate, count in zip(("to zero", "subnormal", beyond), fates(fmt, power, after, layer)[0], strict=True):
        _, _, by_edges, _, by_cast = shown[shown.index(fate) :][:5]
        assert by_edges.split(" =")[0] == by_cast.split(" =")[0] == f"{count:,}"
    for name in FORMATS:
        (zero, _, inf), all_ = fates(name, power, after, layer)
        lost = shown[shown.index(floats.FORMATS[name].label) + 2]
        assert float(lost.rstrip(" %")) == pytest.approx(100 * (zero + inf) / all_, abs=0.006)


def test_the_lognormals_formula_stands_there_with_its_numbers(lab):
    logs = gradients(50).abs().double().log()
    mu, sigma = logs.mean().item(), logs.std().item()
    z = (math.log(2**-25) - math.log(2**4) - mu) / sigma
    share = torch.special.ndtr(torch.tensor(z, dtype=torch.float64)).item()
    formula = f"Φ((ln 2^-25 − ln 2^4 − ({mu:.2f})) / {sigma:.2f}) = {100 * share:.2f} %"
    assert f"N({mu:.2f}, {sigma:.2f}):  {formula}" in answers(lab, power=4, after=50)


# How many are lost and how far they span, each processor finds otherwise in the last digits.
SAYS = [
    ("what does fp16 lose?", "Without a scale fp16 turns {lost} of these gradients to zero. Of"),
    (
        "what does fp16 lose?",
        "Of the weights' gradients none is lost from scale 2^16 to scale 2^37; activations' can",
    ),
    ("a small batch?", "Without a scale fp16 turns {lost} of these gradients to zero."),
    ("does 2^10 help?", "At scale 2^10 fp16 turns {lost} of these gradients to zero."),
    ("what is too far?", "to infinity. One infinity spoils a step: GradScaler skips"),
    (
        "200 steps later?",
        "Without a scale fp16 turns {lost} of these gradients to zero. Of the weights' gradients none is lost from scale 2^",
    ),
    ("bf16?", "Without a scale bf16 loses none of these gradients. It needs no scale."),
    ("fp8?", "Every power of two loses some: the gradients span {span} powers of two, E4M3 18.9."),
    # No edge near infinity is called a power of two.
    ({"fmt": "fp32"}, "from 3.4028e+38"),
    ({"fmt": "bf16"}, "from 3.3962e+38"),
    ({"fmt": "fp16"}, "from 65,520"),
    ({"fmt": "fp16"}, "2^-24 to 65,504"),
]


def test_at_the_last_scale_that_loses_no_weights_gradient_those_of_activations_overflow(lab):
    assert "none is lost from scale 2^16 to scale 2^37; activations' can overflow before." in answers(
        lab, power=37
    )
    found = [precision.losses("fp16 autocast", 2, scale=2.0**power, mean_over=BATCH) for power in (35, 37)]
    ends = [list(steps)[-1].loss for steps in found]
    assert [math.isfinite(loss) for loss in ends] == [True, False]


def span(after):
    """How many powers of two, to the digit that the lab shows."""
    sizes = gradients(after).abs().double().log2()
    return f"{(sizes.max() - sizes[sizes.isfinite()].min()).item():.1f}"


def test_every_preset_says_what_its_name_promises(lab):
    assert {asked for asked, _ in SAYS if isinstance(asked, str)} == set(PRESETS)
    for asked, sentence in SAYS:
        preset = PRESETS[asked] if isinstance(asked, str) else PRESETS["what does fp16 lose?"] | asked
        (zero, *_), all_ = fates(**preset)
        counted = sentence.format(lost=f"{100 * zero / all_:.2f} %", span=span(preset["after"]))
        assert counted in answers(lab, **{"preset": asked} if isinstance(asked, str) else asked), asked
    assert "2^128" not in words(lab)
    assert "infinity" not in answers(lab, fmt="e4m3", power=40)  # it has none


def test_what_a_preset_promises_is_so_on_every_machine():
    """Far from where a last digit would decide it."""
    shares = {name: fates(**asked) for name, asked in PRESETS.items()}
    lost = {name: zero / all_ for name, ((zero, _, _), all_) in shares.items()}
    assert 0.46 < lost["what does fp16 lose?"] < 0.48
    assert 0 < lost["a small batch?"] < lost["does 2^10 help?"] < 0.003
    assert 0.99 < lost["200 steps later?"] < 1
    assert 19 < float(span(0)) < 19.3
    assert 17 < float(span(200)) < 18.9


def test_what_only_training_shows_is_said_as_it_was_counted(lab):
    """Whether a power of two fits between the smallest and the largest, too."""
    zeros = (gradients(200) == 0).sum()
    lossless = [power for power in range(60) if fates("e4m3", power, 200)[0][::2] == [zeros, 0]]
    between = "Every power of two loses some, but a scale between two loses none: the gradients span {} powers of two"
    one = "none is lost from scale 2^{} to scale 2^{};"
    said = one.format(lossless[0], lossless[-1]) if lossless else between.format(span(200))
    assert said in answers(lab, fmt="e4m3", after=200)
    _, _, beyond = fates("fp16", 40)[0]
    assert (
        f"turns {100 * beyond / len(gradients()):.2f} % of these gradients to infinity. One infinity"
        in answers(lab, preset="what is too far?")
    )


@pytest.mark.parametrize("fmt", FORMATS)
@pytest.mark.parametrize("after", AFTER)
def test_the_scales_that_are_said_to_lose_none_are_those_and_no_others(fmt, after):
    sizes = gradients(after).abs().double().log2()
    lossless = predict.lossless_powers(sizes[sizes.isfinite()].min().item(), sizes.max().item(), fmt)
    zeros = (gradients(after) == 0).sum()
    for power in range(-3, 60):
        (zero, _, beyond), _ = fates(fmt, power, after)
        assert (zero == zeros and not beyond) == (power in lossless), power


# What it draws.


@pytest.mark.parametrize(("fmt", "power"), [("fp16", 0), ("fp16", 40), ("e5m2", 10), ("e4m3", 14)])
def test_the_coloured_areas_are_the_counted_shares(lab, fmt, power):
    lab.set(fmt=fmt, power=power)

    def area(fate):
        outlines = [[*line, line[0]] for line in lines(lab.screen.svg, f"fate-{fate}")]
        return sum(
            abs(sum((x2 - x1) * (y2 + y1) / 2 for (x1, y1), (x2, y2) in pairwise(o))) for o in outlines
        )

    areas = [area(fate) for fate in ("lost", "subnormal", "normal")]
    (zero, subnormal, beyond), all_ = fates(fmt, power)
    near = 0.01 if fmt == "fp16" else 0.03  # whose edges do not all lie between two bins
    assert areas[0] / sum(areas) == pytest.approx((zero + beyond) / all_, abs=near)
    assert areas[1] / sum(areas) == pytest.approx(subnormal / all_, abs=near)


def test_the_slider_moves_the_histogram_and_leaves_its_outline_where_it_was(lab):
    lab.set(fmt="bf16", power=0)
    (before,) = lines(lab.screen.svg, "fate-normal")
    lab.set(power=8)
    (after,) = lines(lab.screen.svg, "fate-normal")
    (outline,) = lines(lab.screen.svg, "leader")[-1:]
    by = 8 * drawing.HISTOGRAM[2] / (drawing.HIGHEST - drawing.LOWEST)
    assert [(pytest.approx(x + by, abs=0.11), y) for x, y in before] == after
    assert outline == before


@pytest.mark.parametrize("fmt", FORMATS)
def test_each_bar_reaches_from_the_smallest_number_to_the_largest(lab, fmt):
    lab.set(fmt=fmt)
    bars = re.findall(r'x="(\S+)" [^>]* width="(\S+)" [^>]*in-focus"', lab.screen.svg)
    left, right = min(float(x) for x, _ in bars), max(float(x) + float(width) for x, width in bars)

    def at(size):
        share = (math.log2(size) - drawing.LOWEST) / (drawing.HIGHEST - drawing.LOWEST)
        return drawing.HISTOGRAM[0] + drawing.HISTOGRAM[2] * min(max(share, 0), 1)

    f = floats.FORMATS[fmt]
    assert (left, right) == pytest.approx((at(f.smallest_subnormal), at(f.max)), abs=0.01)


def test_every_mix_can_be_trained_and_has_a_colour_of_its_own():
    assert [SCALED.get(mix, mix) for mix in MIXES] == list(precision.MIXES)
    strokes = [
        re.search(rf"\.line\.{class_} {{ stroke: (#\w+);", still.PICTURE_CSS)[1] for class_ in drawing.CLASSES
    ]
    assert len(set(strokes) & set(COLOURS.values())) == len(MIXES)


# Training.


def trained(mix, power=None, steps=jobs.asked.STEPS, mean_over=BATCH):
    return list(precision.losses(mix, steps, scale=power and 2.0**power, mean_over=mean_over))


def test_a_curve_is_drawn_for_what_is_ticked_and_trained_and_ends_at_its_loss(lab):
    def curves():
        return [len(lines(lab.screen.svg, f"line {class_}")) for class_ in drawing.CLASSES]

    assert curves() == [1, 0, 1, 0, 1, 0]
    last = trained("fp32")[-1].loss
    assert f"fp32 {last:.2g}" in words(lab)
    (curve,) = lines(lab.screen.svg, "line mix-fp32")
    _, top, _, height = drawing.LOSSES  # from 10 down to 0.001
    assert curve[-1][1] == pytest.approx(top + height * (1 - math.log10(last)) / 4, abs=0.1)
    lab.set(mixes=("bf16 autocast",))
    assert not any(curves())


def test_all_that_are_ticked_are_trained_at_the_sliders_scale_which_the_curves_keep(lab, monkeypatch):
    monkeypatch.setattr(jobs.asked, "STEPS", 30)
    assert "fp16 × 2^0" in answers(lab, power=40, mixes=MIXES)
    pictures = []
    lab.screen.observe(lambda change: pictures.append(change.new), "svg")
    skipped = sum(step.skipped for step in trained("fp16 autocast, scaled", 40, 30))
    assert run(lab, "Train") == f"Trained 6 of 6 mixes. GradScaler skipped {skipped} steps."
    assert len(pictures) == 6  # one in five steps
    assert "fp16 × 2^40 NaN" in words(lab)
    assert 'class="pointed"' in lab.screen.svg
    assert f"bf16 alone {trained('bf16 alone', steps=30)[-1].loss:.2g}" in words(lab)
    lab.set(power=12, mean_over=6_553_600, mixes=(CONSTANT,))
    assert run(lab, "Train") == "Trained 1 of 6 mixes."
    last = trained("fp16 autocast", 12, 30, 6_553_600)[-1].loss
    assert f"fp16 × 2^12 {last:.2g}" in answers(lab, power=3, mean_over=100)
    assert "mean over 6,553,600" in words(lab)  # the curves' batch; the histogram's is 100
    assert "mean over 100," in words(lab)


def test_training_with_no_mix_ticked_gets_a_sentence():
    with pytest.raises(ValueError, match=r"^Nothing to train\. Tick at least one mix of formats\.$"):
        next(jobs.train(Scaling(mixes=())))
