"""The precision lab draws and says what torch's cast counts, and nothing of it before Show."""

import math
from functools import lru_cache

import pytest
import torch

from course_utils.chapters.mixed_precision.precision_lab import picture as drawing
from course_utils.chapters.mixed_precision.precision_lab.asked import (
    AFTER,
    FORMATS,
    MOST,
    PRESETS,
    Gradients,
    Scaling,
)
from course_utils.chapters.mixed_precision.precision_lab.words import meaning
from course_utils.core import floats, predict
from course_utils.core.measure import DTYPES
from course_utils.subjects.training import precision
from tests.helpers.labs import answers, fresh, lines
from tests.helpers.words import words

lab = fresh("precision")
BATCH = 1_638_400  # pairs of digits, with which the lab begins


@lru_cache
def gradients(after=0, mean_over=BATCH):
    found = precision.gradients(after, mean_over=mean_over)
    return found[found != 0]


def fates(fmt, power, after=0, mean_over=BATCH, **_):
    """How many gradients torch's cast makes zero, how many are too large for it, and their sum."""
    scaled = gradients(after, mean_over).double().abs() * 2.0**power
    stored = scaled.float().to(DTYPES[fmt]).double()
    if fmt == "e4m3":
        too_large = scaled > 464  # E4M3 has no infinity
    else:
        too_large = stored.isinf()
    return (stored == 0).sum().item(), too_large.sum().item(), len(stored)


def lost_share(**preset):
    """The share of the gradients that a preset's scale and format lose."""
    zero, too_large, total = fates(**preset)
    return (zero + too_large) / total


def cliffs(fmt, **of):
    """The first power of two with which no gradient is zero, the last with which all are finite."""
    without_zero = []
    all_finite = []
    for power in range(MOST + 1):
        zero, too_large, _ = fates(fmt, power, **of)
        if not zero:
            without_zero.append(power)
        if not too_large:
            all_finite.append(power)
    return min(without_zero, default=MOST), max(all_finite, default=0)


@pytest.mark.parametrize("fmt", FORMATS)
@pytest.mark.parametrize(("after", "mean_over"), [(0, BATCH), (50, 100), (200, 6_553_600)])
def test_the_curve_is_the_share_that_the_cast_loses_at_each_scale(lab, fmt, after, mean_over):
    lab.set(shown=True, fmt=fmt, after=after, mean_over=mean_over)
    (curve,) = lines(lab.screen.svg, "line measured")
    left, top, width, height = drawing.SHARES
    assert len(curve) == MOST + 1
    for power, (x, y) in enumerate(curve):
        drawn = (top + height - y) / height
        share = lost_share(fmt=fmt, power=power, after=after, mean_over=mean_over)
        assert x == pytest.approx(left + width * power / MOST, abs=0.06)
        assert drawn == pytest.approx(share, abs=0.001)


def test_the_axis_of_the_counts_stays_where_it_is_whatever_gradients_are_looked_at(lab):
    axes = set()
    for after in AFTER:
        lab.set(after=after)
        axes.add(grid_of_the_histogram(lab))
        highest_bin = max(torch.histc(gradients(after).log2(), 240, -50, 10))
        assert highest_bin < drawing.MANY
    (grid,) = axes
    assert grid


def grid_of_the_histogram(lab):
    """The heights of its horizontal lines."""
    left, top, _, height = drawing.HISTOGRAM
    heights = []
    for (x, y), (_, end_y) in lines(lab.screen.svg, "grid"):
        is_horizontal = y == end_y
        if is_horizontal and x == pytest.approx(left) and top <= y <= top + height:
            heights.append(y)
    return tuple(heights)


@pytest.mark.parametrize("fmt", FORMATS)
@pytest.mark.parametrize("after", AFTER)
def test_a_mark_is_right_on_a_cliff_of_the_cast_and_nowhere_else(lab, fmt, after):
    first, last = cliffs(fmt, after=after)
    lab.set(shown=True, fmt=fmt, after=after, guess=(first, last))
    assert words(lab).count("spot on") == 2
    wrong_first = first - 1 if first else 1
    wrong_last = last - 1 if last else 1
    lab.set(guess=(wrong_first, wrong_last))
    assert "spot on" not in words(lab)
    if first <= last < MOST:
        sizes = gradients(after).abs().double().log2()
        lossless = predict.lossless_powers(sizes.min().item(), sizes.max().item(), fmt)
        assert max(0, lossless[0]) == first
        assert lossless[-1] == last


def test_before_show_the_view_is_the_same_whatever_the_format_loses(lab):
    """The gradients themselves are in it, but nothing else that was measured."""
    before = lab.screen.svg
    assert not lines(before, "line measured")
    assert "%" not in lab.screen.meaning
    lab.set(power=30)
    assert lab.screen.svg == before


SAYS = {
    "where are the cliffs?": (
        "From which scale on does none become 0 in fp16, and up to which is none too large?"
    ),
    "a small batch?": (
        "Without a scale fp16 turns {} of these gradients to zero. None is lost from scale 2^2 to"
    ),
    "does 2^10 help?": (
        "At scale 2^10 fp16 turns {} of these gradients to zero. "
        "None is lost from scale 2^16 to scale 2^37."
    ),
    "what is too far?": "At scale 2^40 fp16 turns {} of these gradients to infinity.",
    "200 steps later?": (
        "Without a scale fp16 turns {} of these gradients to zero. None is lost from scale 2^"
    ),
    "bf16?": "Without a scale bf16 loses none of these gradients. It needs no scale.",
    "fp8?": (
        "At scale 2^29 E4M3 turns {} of these gradients to zero. "
        "Every power of two loses some: the gradients span"
    ),
}


def test_every_preset_says_what_its_name_promises(lab):
    assert set(SAYS) == set(PRESETS)
    for name, sentence in SAYS.items():
        percent = f"{100 * lost_share(**PRESETS[name]):.2f} %"
        assert sentence.format(percent) in answers(lab, name), name
    assert "infinit" not in answers(lab, fmt="e4m3", power=40)  # it has none


def two_gradients(smallest_log2, span_log2):
    """Two gradients that far apart, and what torch's cast to E4M3 makes of them at each scale."""
    ends = (smallest_log2, smallest_log2 + span_log2)
    lost = []
    for power in range(MOST + 1):
        scaled = torch.tensor(ends, dtype=torch.float64).add(power).exp2()
        stored = scaled.float().to(DTYPES["e4m3"]).double()
        lost.append(((stored == 0).sum().item(), (scaled > 464).sum().item()))
    return Gradients(bins=tuple((end, 1) for end in ends), ends=ends, lost={"e4m3": lost})


@pytest.mark.parametrize(
    ("smallest_log2", "span_log2", "says"),
    [
        (-30.8, 18.5, "None is lost from scale 2^21 to scale 2^21."),
        (-30.4, 18.5, "E4M3 18.9, but a scale between two of them would lose none."),
        (
            -30.4,
            19.0,
            "Every power of two loses some: the gradients span 19.0 powers of two, E4M3 18.9.",
        ),
    ],
)
def test_that_a_scale_between_two_powers_would_lose_none_is_said_where_it_is_so(
    smallest_log2, span_log2, says
):
    made = two_gradients(smallest_log2, span_log2)
    said = meaning(Scaling(fmt="e4m3", power=10), made)
    assert said.endswith(says)


def test_what_a_preset_promises_is_so_on_every_machine():
    """The shares are far from where rounding could decide whether the promise holds."""
    lost = {name: lost_share(**preset) for name, preset in PRESETS.items()}
    assert 0.46 < lost["where are the cliffs?"] < 0.48
    assert 0 < lost["a small batch?"] < lost["does 2^10 help?"] < 0.003
    assert 0.99 < lost["200 steps later?"] < 1
    powers = gradients().abs().log2()
    assert powers.min().item() == pytest.approx(-40.5, abs=0.3)
    assert powers.max().item() == pytest.approx(-21.4, abs=0.3)


@pytest.mark.parametrize("fmt", FORMATS)
def test_the_zones_end_where_torchs_cast_changes_its_mind(lab, fmt):
    lab.set(fmt=fmt)
    left, _, width, _ = drawing.HISTOGRAM
    span = drawing.HIGHEST - drawing.LOWEST
    expected = []
    for edge in predict.rounding_edges(fmt):
        power = math.log2(edge)
        if drawing.LOWEST < power < drawing.HIGHEST:
            expected.append(left + width * (power - drawing.LOWEST) / span)
    drawn = [start_x for (start_x, _), _ in lines(lab.screen.svg, "fate-edge")]
    assert drawn == pytest.approx(expected, abs=0.06)


@pytest.mark.parametrize("fmt", [fmt for fmt in FORMATS if fmt != "fp32"])
def test_torchs_cast_makes_zero_of_half_the_smallest_number_and_not_of_more(fmt):
    smallest = floats.FORMATS[fmt].smallest_subnormal
    sizes = torch.tensor([smallest / 2, smallest * 0.51], dtype=torch.float64)
    cast = sizes.to(DTYPES[fmt]).double()
    assert (cast > 0).tolist() == [False, True]


def test_the_slider_moves_the_histogram_and_leaves_its_outline_where_it_was(lab):
    lab.set(shown=True, fmt="bf16", power=0)
    (before,) = lines(lab.screen.svg, "fate-normal")
    lab.set(power=8)
    (after,) = lines(lab.screen.svg, "fate-normal")
    (outline,) = lines(lab.screen.svg, "leader")
    assert outline == before
    _, _, width, _ = drawing.HISTOGRAM
    shift = 8 * width / (drawing.HIGHEST - drawing.LOWEST)
    for (x, y), (moved_x, moved_y) in zip(before, after, strict=True):
        assert moved_x == pytest.approx(x + shift, abs=0.11)
        assert moved_y == y


def test_after_show_a_limit_is_named_only_beside_its_mark(lab):
    names = ("no zero from here on", "none too large up to here")
    assert all(name in lab.screen.svg for name in names)
    lab.set(guess=(None, 40), shown=True)
    assert [name in lab.screen.svg for name in names] == [False, True]
