"""The precision lab: what it draws and says of gradients is what torch's cast counts, and nothing of it before Show."""

import math
from functools import lru_cache

import pytest
import torch

from course_utils.chapters.mixed_precision.precision_lab import picture as drawing
from course_utils.chapters.mixed_precision.precision_lab.asked import AFTER, FORMATS, MOST, PRESETS
from course_utils.core import floats, predict
from course_utils.core.measure import DTYPES
from course_utils.subjects.training import precision
from tests.helpers.labs import answers, fresh, lines
from tests.helpers.words import words

lab = fresh("precision")
BATCH = 1_638_400  # which the lab begins with


@lru_cache
def gradients(after=0, mean_over=BATCH):
    found = precision.gradients(after, mean_over=mean_over)
    return found[found != 0]


def fates(fmt, power, after=0, mean_over=BATCH, **_):
    """How many gradients torch's cast stores as zero and beyond all bounds, and how many there are."""
    scaled = gradients(after, mean_over).double().abs() * 2.0**power
    stored = scaled.float().to(DTYPES[fmt]).double()
    beyond = scaled > 464 if fmt == "e4m3" else stored.isinf()  # E4M3 has no infinity
    return (stored == 0).sum().item(), beyond.sum().item(), len(stored)


def cliffs(fmt, **of):
    """The first power of two at which no gradient becomes zero, and the last at which none is too large."""
    counts = [fates(fmt, power, **of) for power in range(MOST + 1)]
    first = next((n for n, (zero, _, _) in enumerate(counts) if not zero), MOST)
    return first, max((n for n, (_, beyond, _) in enumerate(counts) if not beyond), default=0)


@pytest.mark.parametrize("fmt", FORMATS)
@pytest.mark.parametrize(("after", "mean_over"), [(0, BATCH), (50, 100), (200, 6_553_600)])
def test_the_curve_is_the_share_that_the_cast_loses_at_each_scale(lab, fmt, after, mean_over):
    lab.set(shown=True, fmt=fmt, after=after, mean_over=mean_over)
    (curve,) = lines(lab.screen.svg, "line measured")
    left, top, width, height = drawing.SHARES
    for power, (x, y) in enumerate(curve):
        zero, beyond, total = fates(fmt, power, after, mean_over)
        assert x == pytest.approx(left + width * power / MOST, abs=0.06)
        assert (top + height - y) / height == pytest.approx((zero + beyond) / total, abs=0.001)
    assert len(curve) == MOST + 1


def test_the_axis_of_the_counts_stays_where_it_is_whatever_gradients_are_looked_at(lab):
    left, top, _, height = drawing.HISTOGRAM
    seen = set()
    for after in AFTER:
        lab.set(after=after)
        grid = [line for line in lines(lab.screen.svg, "grid") if line[0][1] == line[1][1]]
        seen.add(
            tuple(y for (x, y), _ in grid if x == pytest.approx(left) and top <= y <= top + height)
        )
        assert max(torch.histc(gradients(after).log2(), 240, -50, 10)) < drawing.MANY
    assert len(seen) == 1
    assert seen.pop()


@pytest.mark.parametrize("fmt", FORMATS)
@pytest.mark.parametrize("after", AFTER)
def test_a_mark_is_right_on_a_cliff_of_the_cast_and_nowhere_else(lab, fmt, after):
    first, last = cliffs(fmt, after=after)
    lab.set(shown=True, fmt=fmt, after=after, guess=(first, last))
    assert words(lab).count("right") == 2
    lab.set(guess=(first - 1 if first else 1, last - 1 if last else 1))
    assert "right" not in words(lab)
    sizes = gradients(after).abs().double().log2()
    lossless = predict.lossless_powers(sizes.min().item(), sizes.max().item(), fmt)
    if first <= last < MOST:
        assert (max(0, lossless[0]), lossless[-1]) == (first, last)


def test_before_show_the_view_is_the_same_whatever_the_format_loses(lab):
    """Of what was measured, only the gradients themselves are in it."""
    before = lab.screen.svg
    assert not lines(before, "line measured")
    assert "%" not in lab.screen.meaning
    lab.set(power=30)
    assert lab.screen.svg == before


SAYS = {
    "where are the cliffs?": "From which scale on does none become 0 in fp16, and up to which is none too large?",
    "a small batch?": "Without a scale fp16 turns {} of these gradients to zero. None is lost from scale 2^2 to",
    "does 2^10 help?": "At scale 2^10 fp16 turns {} of these gradients to zero. None is lost from scale 2^16 to scale 2^37.",
    "what is too far?": "At scale 2^40 fp16 turns {} of these gradients to infinity.",
    "200 steps later?": "Without a scale fp16 turns {} of these gradients to zero. None is lost from scale 2^",
    "bf16?": "Without a scale bf16 loses none of these gradients. It needs no scale.",
    "fp8?": "At scale 2^29 E4M3 turns {} of these gradients to zero. Every power of two loses some: the gradients span",
}


def test_every_preset_says_what_its_name_promises(lab):
    assert set(SAYS) == set(PRESETS)
    for name, sentence in SAYS.items():
        zero, beyond, total = fates(**PRESETS[name])
        assert sentence.format(f"{100 * (zero + beyond) / total:.2f} %") in answers(lab, name), name
    assert "infinit" not in answers(lab, fmt="e4m3", power=40)  # it has none


@pytest.mark.parametrize("after", [0, 200])
def test_that_a_scale_between_two_powers_would_lose_none_is_said_where_it_is_so(lab, after):
    numbers = gradients(after, 100).abs().double()
    smallest, largest = numbers[numbers > 0].min().item(), numbers.max().item()
    edges = predict.rounding_edges("e4m3")
    said = answers(lab, shown=True, fmt="e4m3", after=after, power=10, mean_over=100)
    assert "Every power of two loses some" in said
    fits = largest / smallest < edges.beyond_from / edges.zero_to
    assert ("a scale between two of them would lose none" in said) == fits == (after == 200)


def test_what_a_preset_promises_is_so_on_every_machine():
    """Far from where a last digit would decide it."""
    lost = {name: sum(fates(**asked)[:2]) / fates(**asked)[2] for name, asked in PRESETS.items()}
    assert 0.46 < lost["where are the cliffs?"] < 0.48
    assert 0 < lost["a small batch?"] < lost["does 2^10 help?"] < 0.003
    assert 0.99 < lost["200 steps later?"] < 1
    smallest, largest = gradients().abs().min().log2(), gradients().abs().max().log2()
    assert (smallest.item(), largest.item()) == (
        pytest.approx(-40.5, abs=0.3),
        pytest.approx(-21.4, abs=0.3),
    )


@pytest.mark.parametrize("fmt", FORMATS)
def test_the_zones_end_where_torchs_cast_changes_its_mind(lab, fmt):
    lab.set(fmt=fmt)
    left, _, width, _ = drawing.HISTOGRAM
    drawn = [line[0][0] for line in lines(lab.screen.svg, "fate-edge")]
    edges = [math.log2(edge) for edge in predict.rounding_edges(fmt)]
    inside = [edge for edge in edges if drawing.LOWEST < edge < drawing.HIGHEST]
    span = drawing.HIGHEST - drawing.LOWEST
    assert drawn == [
        pytest.approx(left + width * (edge - drawing.LOWEST) / span, abs=0.06) for edge in inside
    ]
    step = floats.FORMATS[fmt].smallest_subnormal
    cast = torch.tensor([step / 2, step * 0.51], dtype=torch.float64).to(DTYPES[fmt]).double()
    assert fmt == "fp32" or (cast > 0).tolist() == [False, True]


def test_the_slider_moves_the_histogram_and_leaves_its_outline_where_it_was(lab):
    lab.set(shown=True, fmt="bf16", power=0)
    (before,) = lines(lab.screen.svg, "fate-normal")
    lab.set(power=8)
    (after,) = lines(lab.screen.svg, "fate-normal")
    (outline,) = lines(lab.screen.svg, "leader")
    by = 8 * drawing.HISTOGRAM[2] / (drawing.HIGHEST - drawing.LOWEST)
    assert [(pytest.approx(x + by, abs=0.11), y) for x, y in before] == after
    assert outline == before
