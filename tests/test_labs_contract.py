"""What every lab has to pass, and any new one must: in each state that its controls allow, all words can be read."""

import random

import ipywidgets as widgets
import pytest

from course_utils import labs, machines
from course_utils.labs.lettering import fitted, width_of
from course_utils.labs.panel import Panel
from course_utils.labs.size_control import SizeControl, SizesControl
from course_utils.labs.svg import picture
from tests.tools import font_widths
from tests.words import assert_all_can_be_read, boxes

# The crash lab's states are stories of processes: tests/test_labs_crash.py draws them.
LABS = sorted(set(labs.__all__) - {"crash_lab"})
STATES = 60
SIZES = (1, 2, 7, 32, 1000, 1024, 4096, 16_384, 2**20)


def legal(control: widgets.Widget, draw: random.Random) -> object:
    """A value that the control can have; None for what is typed in words, which stays as it is."""
    match control:
        case SizeControl():
            return draw.choice(SIZES)
        case SizesControl():
            return {name: draw.choice(SIZES[:4]) for name in control.value}
        case widgets.IntSlider():
            return draw.randrange(control.min, control.max + 1, control.step)
        case widgets.Checkbox():
            return draw.random() < 0.5
        case widgets.ToggleButtons() | widgets.SelectionSlider():
            return draw.choice([value for _, value in control._options_full])
    return None


def states(panel: Panel, draw: random.Random) -> list[dict[str, object]]:
    """Of each preset the values, and then drawn ones, each some steps away from a preset."""
    presets = [dict(values) for values in panel._presets.values()]
    drawn = []
    for _ in range(STATES):
        moved = {
            name: value
            for name, control in panel.controls.items()
            if draw.random() < 0.6 and (value := legal(control, draw)) is not None
        }
        drawn.append(draw.choice(presets) | moved)
    return presets + drawn


@pytest.fixture
def panel(request, monkeypatch):
    h100 = machines.MACHINES["H100 SXM"]
    monkeypatch.setattr("course_utils.machines.this_machine", lambda: h100)  # which takes no measuring
    return getattr(labs, request.param)()


@pytest.mark.parametrize("panel", LABS, indirect=True)
def test_in_no_legal_state_do_words_collide_or_run_out_of_the_picture(panel):
    seen = set()
    for state in states(panel, random.Random(0)):
        panel.set(**state)
        if not panel.screen.mistake:  # a sentence, and the picture of before
            seen.add(panel.screen.svg)
            assert_all_can_be_read(panel.screen.svg)
    assert len(seen) > STATES / 3


# How words are measured.


def test_the_widths_are_those_of_the_font():
    assert font_widths.WRITTEN.read_text(encoding="utf-8") == font_widths.text()


@pytest.mark.parametrize(
    "class_", ["", "strong", "small", "small alarm", "large", "tiny", "place", "formula small"]
)
def test_words_are_as_wide_as_the_font_sets_them(class_):
    words = "2·B·D·K = 34,359,738,368 × 1.7e-5 µs, AVATAR"
    ((_, left, _, right, _),) = boxes(picture(2000, 100, fitted(0, 50, words, 2000, class_)))
    assert width_of(words, class_) == pytest.approx(
        right - left, rel=0.02
    )  # but for pairs that move together
    assert width_of(words, class_) >= right - left - 1e-6


def test_words_that_do_not_fit_are_drawn_smaller_and_then_fit():
    ((_, left, _, right, _),) = boxes(picture(200, 100, fitted(20, 50, "many words " * 5, 180, "strong")))
    assert left == 20
    assert 175 < right <= 180
