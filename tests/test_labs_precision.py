"""The precision lab: what it draws and says of gradients is what torch's cast counts, and it trains what is ticked."""

import math
import re
import threading
import xml.etree.ElementTree as ElementTree
from functools import lru_cache

import pytest
import torch

from course_utils import floats, labs, predict
from course_utils.figures import COLOURS
from course_utils.labs.draw import still
from course_utils.labs.precision import jobs
from course_utils.labs.precision import picture as drawing
from course_utils.labs.precision.asked import AFTER, CONSTANT, FORMATS, MIXES, PRESETS, STEPS
from course_utils.measure import DTYPES
from course_utils.training import precision
from tests.words import assert_all_can_be_read

gradients = lru_cache(precision.gradients)  # each call trains anew


@pytest.fixture
def lab():
    return labs.precision_lab()


def tree_of(lab):
    return ElementTree.fromstring(lab.screen.svg)


def words(lab):
    return " | ".join("".join(node.itertext()) for node in tree_of(lab).iter() if node.tag.endswith("text"))


def lines_of(lab, class_):
    found = [node for node in tree_of(lab).iter() if node.get("points") and node.get("class") == class_]
    return [[tuple(map(float, p.split(","))) for p in node.get("points").split()] for node in found]


def cast(fmt, power, after=0, layer=0):
    """The gradients as torch stores them in the format."""
    return (gradients(after, layer=layer or None) * 2.0**power).to(DTYPES[fmt]).double().abs()


# What it says of gradients.


@pytest.mark.parametrize("fmt", FORMATS)
@pytest.mark.parametrize(("power", "after", "layer"), [(0, 0, 0), (10, 50, 2), (29, 100, 0), (40, 0, 3)])
def test_prediction_and_count_are_what_the_cast_leaves(lab, fmt, power, after, layer):
    lab.set(fmt=fmt, power=power, after=after, layer=layer)
    stored, f = cast(fmt, power, after, layer), floats.FORMATS[fmt]
    given_ = gradients(after, layer=layer or None).abs() * 2.0**power
    beyond = (given_ > 464).sum() if fmt == "e4m3" else stored.isinf().sum()
    counts = {
        "to zero": (stored == 0).sum(),
        "subnormal": ((stored > 0) & (stored < f.smallest_normal)).sum(),
        "to 448" if fmt == "e4m3" else "to infinity": beyond,
    }
    for fate, count in counts.items():
        row = re.search(rf"\| {fate} \| [^|]+ \| ([\d,]+)[^|]* \| [^|]+ \| ([\d,]+)[^|]* \|", words(lab))
        assert row.group(1) == row.group(2) == f"{count:,}"


@pytest.mark.parametrize(
    ("fmt", "largest", "edge"),
    [
        ("fp32", "3.4028e+38", "3.4028e+38"),
        ("bf16", "3.3895e+38", "3.3962e+38"),
        ("fp16", "65,504", "65,520"),
    ],
)
def test_no_edge_near_infinity_is_called_a_power_of_two(lab, fmt, largest, edge):
    lab.set(fmt=fmt)
    assert f" to {largest}" in words(lab)
    assert f"to infinity | from {edge} | " in words(lab)
    assert "2^128" not in words(lab)


def test_each_format_has_its_lost_share_beside_its_bar(lab):
    lab.set(power=10)
    said = re.findall(r"\| (fp32|bf16|fp16|E5M2|E4M3) \| [^|]+ \| ([\d.]+(?: %)?)(?= \||$)", words(lab))
    assert [fmt.lower() for fmt, _ in said] == list(FORMATS)
    for fmt, share in said:
        stored = cast(fmt.lower(), 10)
        lost = ((stored == 0) | stored.isinf()).double().mean().item()
        assert float(share.rstrip(" %")) == pytest.approx(100 * lost, abs=0.06)


def test_the_lognormals_formula_stands_there_with_its_numbers(lab):
    lab.set(power=4, after=50)
    logs = gradients(50).abs().double().log()
    mu, sigma = logs.mean().item(), logs.std().item()
    z = (math.log(2**-25) - math.log(2**4) - mu) / sigma
    share = torch.special.ndtr(torch.tensor(z, dtype=torch.float64)).item()
    assert f"N({mu:.2f}, {sigma:.2f})" in words(lab)
    assert f"Φ((ln 2^-25 − ln 2^4 − ({mu:.2f})) / {sigma:.2f}) = {100 * share:.2f} %" in words(lab)


SAYS = {
    "what does fp16 lose?": "Without a scale fp16 turns 47.06 % of these gradients to zero. None is lost from scale 2^16 to scale 2^37.",
    "does 2^10 help?": "At scale 2^10 fp16 turns 0.15 % of these gradients to zero.",
    "what is too far?": "turns 26.20 % of these gradients to infinity. One infinity spoils a step: GradScaler skips it, "
    "and without that the weights end in NaN. None is lost from scale 2^16 to scale 2^37.",
    "200 steps later?": "turns 99.97 % of these gradients to zero. None is lost from scale 2^19",
    "and in bf16?": "Without a scale bf16 loses none of these gradients. It needs no scale.",
    "and in fp8?": "No scale loses none: they span 19.1 powers of two, E4M3 18.9.",
}


def test_every_preset_says_what_its_name_promises(lab):
    assert set(SAYS) == set(PRESETS)
    for label, said in SAYS.items():
        lab.preset(label)
        assert lab.error is None
        assert said in lab.screen.meaning, label


@pytest.mark.parametrize("fmt", FORMATS)
@pytest.mark.parametrize("after", AFTER)
def test_the_scales_that_are_said_to_lose_none_are_those_and_no_others(fmt, after):
    sizes = gradients(after).abs().double().log2()
    lossless = predict.lossless_powers(sizes[sizes.isfinite()].min().item(), sizes.max().item(), fmt)
    limit = 464 if fmt == "e4m3" else math.inf
    for power in range(-3, 60):
        stored = (gradients(after).double() * 2.0**power).float()
        lost = ((stored.to(DTYPES[fmt]) == 0) & (gradients(after) != 0)).any() or (stored.abs() > limit).any()
        lost = lost or stored.to(DTYPES[fmt]).double().isinf().any()
        assert bool(lost) == (power not in lossless), power


# What it draws.


@pytest.mark.parametrize(
    ("fmt", "power"), [("fp16", 0), ("fp16", 12), ("fp16", 40), ("e5m2", 10), ("e4m3", 14)]
)
def test_the_coloured_areas_are_the_counted_shares(lab, fmt, power):
    lab.set(fmt=fmt, power=power)
    areas = {}
    for fate in ("lost", "subnormal", "normal"):
        outlines = lines_of(lab, f"fate-{fate}")
        areas[fate] = sum(
            abs(sum((x2 - x1) * (y2 + y1) / 2 for (x1, y1), (x2, y2) in zip(o, [*o[1:], o[0]], strict=True)))
            for o in outlines
        )
    stored, f = cast(fmt, power), floats.FORMATS[fmt]
    lost = ((stored == 0) | stored.isinf()).double().mean().item()
    subnormal = ((stored > 0) & (stored < f.smallest_normal)).double().mean().item()
    total = sum(areas.values())
    near = 0.01 if fmt == "fp16" else 0.03  # whose edges do not all lie between two bins
    assert areas["lost"] / total == pytest.approx(lost, abs=near)
    assert areas["subnormal"] / total == pytest.approx(subnormal, abs=near)


def test_the_slider_moves_the_histogram_and_leaves_its_outline_where_it_was(lab):
    lab.set(fmt="bf16", power=0)
    (before,) = lines_of(lab, "fate-normal")
    lab.set(power=8)
    (after,) = lines_of(lab, "fate-normal")
    (outline,) = lines_of(lab, "leader")[-1:]
    by = 8 * drawing.HISTOGRAM[2] / (drawing.HIGHEST - drawing.LOWEST)
    assert [(pytest.approx(x + by, abs=0.11), y) for x, y in before] == after
    assert outline == before


@pytest.mark.parametrize("fmt", FORMATS)
def test_each_bar_reaches_from_the_smallest_number_to_the_largest(lab, fmt):
    lab.set(fmt=fmt)
    f = floats.FORMATS[fmt]
    bars = [node for node in tree_of(lab).iter() if "in-focus" in (node.get("class") or "")]
    left = min(float(bar.get("x")) for bar in bars)
    right = max(float(bar.get("x")) + float(bar.get("width")) for bar in bars)

    def at(size):
        power = min(max(math.log2(size), drawing.LOWEST), drawing.HIGHEST)
        share = (power - drawing.LOWEST) / (drawing.HIGHEST - drawing.LOWEST)
        return drawing.HISTOGRAM[0] + drawing.HISTOGRAM[2] * share

    assert left == pytest.approx(at(f.smallest_subnormal), abs=0.01)
    assert right == pytest.approx(at(f.max), abs=0.01)


def test_a_curve_is_drawn_for_what_is_ticked_and_trained_and_ends_at_its_loss(lab):
    assert [len(lines_of(lab, f"line {class_}")) for class_ in drawing.CLASSES] == [1, 0, 1, 0, 1, 0]
    last = list(precision.losses("fp32", STEPS))[-1].loss
    assert f"fp32 {last:.2g}" in words(lab)
    (curve,) = lines_of(lab, "line mix-fp32")
    _, top, _, height = drawing.LOSSES  # from 10 down to 0.001
    assert curve[-1][1] == pytest.approx(top + height * (1 - math.log10(last)) / 4, abs=0.1)
    lab.set(mixes=("bf16 autocast",))
    assert not any(lines_of(lab, f"line {class_}") for class_ in drawing.CLASSES)


def test_every_mix_has_a_colour_of_its_own():
    strokes = [
        re.search(rf"\.line\.{class_} {{ stroke: (#\w+);", still.PICTURE_CSS)[1] for class_ in drawing.CLASSES
    ]
    assert len(set(strokes)) == len(MIXES)
    assert set(strokes) <= set(COLOURS.values())


def test_the_lab_offers_what_can_be_trained():
    assert [jobs._AS_TRAINED.get(mix, mix) for mix in MIXES] == list(precision.MIXES)


def test_without_a_kernel_the_formats_reach_is_drawn_and_it_says_what_needs_one(lab):
    view = lab.lab.view(lab.lab.read(lab.values), lab.lab.found)
    assert_all_can_be_read(view.picture)
    assert view.picture.count("2^-24 to 65,504") == 1
    assert view.picture.count('class="fate-edge"') == 3
    assert view.meaning.endswith("that needs a kernel.")


# Training.


def test_all_that_are_ticked_are_trained_at_the_sliders_scale(lab):
    lab.set(power=40, mixes=MIXES)
    pictures = []
    lab.screen.observe(lambda change: pictures.append(change.new), "svg")
    lab.start("Train")
    lab.wait()
    assert len(pictures) > 30
    steps = precision.losses("fp16 autocast, scaled", STEPS, scale=2.0**40)
    skipped = sum(step.skipped for step in steps)
    assert lab.screen.report == f"Trained 6 of 6 mixes. GradScaler skipped {skipped} steps."
    assert "fp16 × 2^40 NaN" in words(lab)
    assert 'class="pointed"' in lab.screen.svg
    assert f"bf16 alone {list(precision.losses('bf16 alone', STEPS))[-1].loss:.2g}" in words(lab)
    assert_all_can_be_read(lab.screen.svg)


def test_a_curve_keeps_the_scale_that_it_was_trained_with(lab):
    lab.set(power=12)
    assert "fp16 × 2^0" in words(lab)
    lab.set(mixes=(CONSTANT,))
    lab.start("Train")
    lab.wait()
    lab.set(power=3)
    last = list(precision.losses("fp16 autocast", STEPS, scale=2.0**12))[-1].loss
    assert f"fp16 × 2^12 {last:.2g}" in words(lab)


def test_nothing_ticked_gets_a_sentence_and_the_next_tick_recovers(lab):
    lab.set(mixes=())
    lab.start("Train")
    with pytest.raises(ValueError, match="Nothing to train"):
        lab.wait()
    assert lab.screen.report == "Nothing to train. Tick at least one mix of formats."
    assert lab.screen.failed
    lab.set(mixes=("fp32",))
    lab.start("Train")
    lab.wait()
    assert lab.screen.report == "Trained 1 of 6 mixes."


@pytest.fixture
def held(monkeypatch):
    """A training that goes on to its thirtieth step, and there waits."""
    arrived, go_on, losses = threading.Event(), threading.Event(), precision.losses

    def held_losses(*arguments, **options):
        for number, step in enumerate(losses(*arguments, **options)):
            if number == 30:
                arrived.set()
                go_on.wait(120)
            yield step

    monkeypatch.setattr(jobs.precision, "losses", held_losses)
    yield arrived, go_on
    go_on.set()


def test_stop_ends_a_training_and_keeps_what_there_is(lab, held):
    arrived, go_on = held
    lab.set(mixes=MIXES)
    lab.start("Train")
    assert arrived.wait(120)
    lab.stop()
    go_on.set()
    lab.wait()
    step = int(re.fullmatch(r"Stopped\. Step (\d+) of 200\.", lab.screen.report)[1])
    assert step < STEPS
    (drawn,) = {
        len(losses) for losses in lab.found.losses.values()
    }  # the picture is at most some steps behind
    assert step - jobs.FRAME < drawn <= step
    assert_all_can_be_read(lab.screen.svg)


def test_running_the_cell_again_stops_the_training_of_the_former_lab(held):
    arrived, go_on = held
    former = labs.precision_lab()
    former.start("Train")
    assert arrived.wait(120)
    labs.precision_lab()
    go_on.set()
    former.wait()
    assert former.screen.report.startswith("Stopped.")
