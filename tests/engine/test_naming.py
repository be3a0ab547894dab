"""Names stand beside their own curves, and a scale that moves is said."""

import re
from itertools import combinations

import pytest

from course_utils.engine.figures.style import CURVES
from course_utils.engine.labs.draw.naming import Box, Curve, names
from course_utils.engine.labs.draw.plot import Axis, Plot
from course_utils.engine.labs.draw.svg import picture
from tests.helpers.labs import opened
from tests.helpers.words import boxes

AXIS = Axis(0, 10, linear=True)
PLOT = Plot(0, 0, 500, 300, AXIS, AXIS)
RISING = Curve("rising", [(0, 1), (10, 9)])
FALLING = Curve("falling", [(0, 9), (10, 1)])
STEEP = Curve("steep", [(4.9, 0), (5.1, 10)])


def written(*curves: Curve, taken: tuple[Box, ...] = ()) -> dict[str, Box]:
    """Where each name stands."""
    drawn = picture(500, 300, *names(PLOT, curves, taken))
    return {said: Box(left, top, right, bottom) for said, left, top, right, bottom in boxes(drawn)}


@pytest.mark.parametrize("curves", [(RISING, FALLING), (FALLING, RISING, STEEP)])
def test_each_name_is_nearest_to_its_own_curve_and_no_two_overlap(curves):
    found = written(*curves)
    assert set(found) == {curve.name for curve in curves}
    assert not any(one.meets(other) for one, other in combinations(found.values(), 2))
    straight = {"rising": lambda x: 1 + 0.8 * x, "falling": lambda x: 9 - 0.8 * x}
    for name, box in found.items():
        if name in straight:
            middle = (box.top + box.bottom) / 2
            x = (box.left + box.right) / 2 / 50
            away = {other: abs(PLOT.y(line(x)) - middle) for other, line in straight.items()}
            assert min(away, key=away.get) == name


def test_a_name_keeps_out_of_what_is_taken_and_is_left_out_where_there_is_no_space():
    left_half = Box(0, 0, 250, 300)
    assert written(RISING, taken=(left_half,))["rising"].left >= 250
    assert written(RISING, taken=(Box(0, 0, 500, 300),)) == {}


def test_curves_can_be_told_apart_by_readers_who_are_colour_blind():
    # Machado, Oliveira and Fernandes (2009): what is left of red, green and blue.
    views = {
        "all colours": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
        "no red": ((0.152, 1.053, -0.205), (0.115, 0.786, 0.099), (-0.004, -0.048, 1.052)),
        "no green": ((0.367, 0.861, -0.228), (0.280, 0.673, 0.047), (-0.012, 0.043, 0.969)),
        "no blue": ((1.256, -0.077, -0.179), (-0.078, 0.931, 0.148), (0.005, 0.691, 0.304)),
    }
    for rows in views.values():
        seen = [as_lab(seen_through(rows, colour)) for colour in CURVES]
        for one, other in combinations(seen, 2):
            apart = sum((a - b) ** 2 for a, b in zip(one, other, strict=True)) ** 0.5
            assert apart > 14  # 2.3 is what one just notices side by side


def seen_through(rows, colour):
    """The linear red, green and blue of a colour, as somebody sees it."""
    linear = []
    for at in (1, 3, 5):
        share = int(colour[at : at + 2], 16) / 255
        linear.append(share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4)
    seen = []
    for row in rows:
        total = sum(weight * part for weight, part in zip(row, linear, strict=True))
        seen.append(min(1, max(0, total)))
    return seen


def as_lab(rgb):
    """CIE L*a*b*, in which distances are those that one sees."""
    red, green, blue = rgb
    x = (0.4124 * red + 0.3576 * green + 0.1805 * blue) / 0.9505
    y = 0.2126 * red + 0.7152 * green + 0.0722 * blue
    z = (0.0193 * red + 0.1192 * green + 0.9505 * blue) / 1.089
    fx, fy, fz = (t ** (1 / 3) if t > 0.008856 else 7.787 * t + 16 / 116 for t in (x, y, z))
    return 116 * fy - 16, 500 * (fx - fy), 200 * (fy - fz)


NAMED = {
    "updates": {"predicted", "measured"},
    "roof": {"roof", "c + roof / e"},
    "optimizer": {"SGD", "momentum", "RMSProp", "AdamW"},
    "sum": {"in bf16", "if no 1 were lost"},
}


@pytest.mark.parametrize("name", NAMED)
def test_labs_name_their_curves_where_they_run(name):
    with opened(name) as panel:
        panel.preset(next(iter(panel.session.lab.presets)))
        panel.set(shown=True)
        in_halos = re.findall(r'class="[^"]*halo">([^<]+)<', panel.screen.svg)
        assert NAMED[name] <= set(in_halos)


def test_an_axis_that_rescales_says_its_ends_and_another_does_not():
    moves = Axis(2, 8, "time", linear=True, rescales=True)
    frame = Plot(100, 100, 300, 200, moves, AXIS).frame()
    assert re.findall(r'data-scale="time">([^<]+)<', frame) == ["time: 2 to 8"]
    assert "data-scale" not in PLOT.frame()
