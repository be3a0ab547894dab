"""What every lab has to pass, any new one too.

Each is drawn in all its presets, and in 300 states of its fields.
"""

import base64
import math
import pickle
import random
import re
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from xml.etree import ElementTree

import pytest

from course_utils.chapters import labs
from course_utils.engine.labs import fields
from course_utils.engine.labs.draw import still
from course_utils.engine.labs.draw.lettering import USUAL_SIZE, columns, fitted, width_of
from course_utils.engine.labs.draw.plot import Axis
from course_utils.engine.labs.draw.svg import picture
from course_utils.engine.labs.lab import View
from course_utils.engine.labs.named_sizes import Sizes
from course_utils.engine.labs.panel import Panel
from course_utils.engine.labs.stored import ANSWERED, STILL
from course_utils.stage.notebook.code import figure_in
from tests import NOTEBOOKS, ROOT
from tests.helpers.hostile import buttons, legal
from tests.helpers.labs import opened
from tests.helpers.notebooks import read
from tests.helpers.waiting import children, wait_until
from tests.helpers.words import assert_all_can_be_read, boxes
from tests.tools import font_widths

NAMES = sorted(name.removesuffix("_lab") for name in labs.__all__)
STATES = 300
# On a laptop's screen, 1366 × 768 with the file browser open. tests/stage/test_browser_access.py
# measures the last four.
FIGURE_PX = 450
CAPTION = 34  # the line below a still picture
ROW_PX = 40
LAB_PX = 640
PICTURE_WIDTH_PX = 934
LINE_PX = 22.5
AROUND_PX = {  # what a lab has beside its picture and its meaning
    "account": 219, "float": 153, "sum": 117, "heads": 117, "einsum": 199, "matmul": 169,
    "optimizer": 204, "precision": 163, "updates": 120, "plan": 151,
    "timeline": 247, "walk": 200, "roof": 160, "chain": 117, "box": 119,
}  # fmt: skip
RESCALED = {  # the scales of each lab that are not always the same
    "account": {"bytes"},
    "timeline": {"bytes"},
    "matmul": {"FLOP/s", "FLOPs per byte", "time"},
    "roof": {"time", "time by the roof"},
    "plan": {"bytes", "seconds"},
}
CLASSES = set(re.findall(r"\.([a-z][\w-]*)", still.PICTURE_CSS))
ROLES = {"__init__", "asked", "picture", "words", "operations", "jobs"}
NONSENSE = {
    fields.Size: ("", "0", "1.5", "-3", "2^21", "☃", "9" * 5000),
    fields.Typed: ("☃ <b>&\x00", "]" * 400, "9" * 100_000),
    fields.OneOf: ("no such thing", None),
    fields.Whole: ("many", None),
    fields.Tick: ("perhaps", None),
    fields.Several: (("nobody",), 7),
    Sizes: (7, None),
    fields.Drawn: ((), None, "7", (-1,) * 9, (1.5,) * 9),
}


def states(name: str, count: int = STATES) -> list[dict[str, object]]:
    """Every preset, and then drawn states, each of which is some answers away from a preset."""
    lab = labs.lab_named(name)
    draw = random.Random(f"{name} 0")
    first = {one: field.default for one, field in lab.fields.items()}
    presets = [first | dict(values) for values in lab.presets.values()]
    drawn = []
    for _ in range(count):
        state = dict(draw.choice(presets))
        for one, field in lab.fields.items():
            if draw.random() < 0.5:
                state[one] = legal(field, draw, state)
        drawn.append(state)
    return presets + drawn


def figures_of(path: Path) -> list[str]:
    """The cells of a notebook that show a lab at the place of a figure."""
    return [cell.source for cell in read(path).cells if "labs.figure(" in cell.source]


@pytest.fixture
def panel(request):
    with opened(request.param) as panel:
        yield panel


@pytest.fixture(scope="module", params=NAMES)
def shown(request):
    """A lab's name; and for each state what was asked, what was found, and the view.

    Where the lab refuses the state, its sentence is in place of the view.
    """
    name = request.param
    cases = []
    with opened(name) as panel:
        for said in states(name):
            found, view = found_and_shown(panel, said)
            cases.append((said, found, view))
    return name, cases


def found_and_shown(panel: Panel, said: dict[str, object]) -> tuple[object, View | str]:
    lab = panel.session.lab
    found = panel.session.found
    try:
        asked = lab.read(said)
        found = lab.known(asked, found)
        return found, lab.view(asked, found)
    except ValueError as refusal:
        return found, str(refusal)


def test_in_every_state_words_have_room_shapes_have_colours_and_the_lab_fits_on_a_laptop(shown):
    name, cases = shown
    seen = set()
    for *_, view in cases:
        if isinstance(view, str):
            assert view[-1] in ".?!)”…", f"No sentence: {view}"
        elif view.picture not in seen:
            seen.add(view.picture)
            assert_all_can_be_read(view.picture)
            classes = re.findall(r'class="([^"]*)"', view.picture)
            assert set(" ".join(classes).split()) <= CLASSES
            assert not re.search(r'(fill|stroke|style)="', view.picture)
            assert view.meaning[0] == view.meaning[0].upper()
            assert AROUND_PX[name] + picture_and_meaning_px(view) <= LAB_PX
            assert size_of(view.picture)[1] + CAPTION <= FIGURE_PX
    assert len(seen) > STATES / 4


def size_of(drawn: str) -> tuple[float, float]:
    """The width and the height of a picture, in its units."""
    view_box = re.search(r'viewBox="0 0 (\S+) (\S+)"', drawn)
    return float(view_box[1]), float(view_box[2])


def picture_and_meaning_px(view: View) -> float:
    """How tall they are together on a laptop; the meaning has space for two lines, and wraps."""
    width, height = size_of(view.picture)
    picture_px = height * PICTURE_WIDTH_PX / width
    meaning_width_px = width_of(view.meaning) * 15 / USUAL_SIZE
    lines = math.ceil(meaning_width_px / PICTURE_WIDTH_PX)
    return picture_px + LINE_PX * max(2, lines)


def test_a_scale_that_follows_what_is_asked_is_said_in_the_picture(shown):
    name, cases = shown
    said = {}
    for *_, view in cases:
        if not isinstance(view, str):
            for scale, words in re.findall(r'data-scale="([^"]+)">([^<]+)<', view.picture):
                said.setdefault(scale, set()).add(words)
    assert set(said) == RESCALED.get(name, set())
    for words in said.values():
        assert len(words) > 1


@pytest.mark.parametrize("panel", NAMES, indirect=True)
def test_nonsense_in_any_field_gets_a_sentence_and_the_next_sensible_answer_recovers(panel):
    panel.preset(next(iter(panel.session.lab.presets)))
    for name, field in panel.session.lab.fields.items():
        kind = next(kind for kind in NONSENSE if isinstance(field, kind))
        sensible = panel.values[name]
        for nonsense in NONSENSE[kind]:
            panel.set(**{name: nonsense})
            if field.asked(panel.values):
                assert panel.screen.mistake, (name, nonsense)
            assert len(panel.screen.mistake) < 1000
            panel.set(**{name: sensible})
            assert not panel.screen.mistake, (name, nonsense, panel.screen.mistake)


@pytest.mark.parametrize("panel", NAMES, indirect=True)
def test_stop_ends_every_job_and_leaves_no_process(panel):
    for label in panel.session.lab.jobs:
        panel.start(label)
        wait_until(lambda: panel.screen.report or panel.screen.mistake, f"{label} says something")
        panel.stop()
        with suppress(ValueError):  # what can't be done as it stands
            panel.wait(5)
    assert not children(ended_within_s=5)


@pytest.mark.parametrize("panel", NAMES, indirect=True)
def test_where_no_kernel_runs_a_still_picture_stays_and_says_how_to_bring_it_to_life(panel):
    bundle, metadata = panel._repr_mimebundle_()
    words = metadata["image/png"]["alt"]
    asks = "shown" in panel.values
    if asks:
        panel.set(shown=True)  # who only reads sees the answer
    assert words == f"{panel.session.lab.name}. {panel.screen.meaning}"
    assert bundle["text/plain"].startswith(words)
    drawn = panel.screen.svg
    caption = ANSWERED if asks else STILL
    *_, (said, left, top, right, _) = boxes(still.captioned(drawn, caption))
    width = float(re.search(r'viewBox="0 0 (\S+) ', drawn)[1])
    assert said == caption
    assert 0 < left < right < width == metadata["image/png"]["width"]
    assert top > max(bottom for *_, bottom in boxes(drawn))
    png = base64.b64decode(bundle["image/png"])
    assert png == still.still_png(still.captioned(drawn, caption), words)


@pytest.mark.parametrize("panel", NAMES, indirect=True)
def test_everything_that_can_be_pressed_or_moved_has_a_name(panel):
    assert all(button.description for button in buttons(panel))
    assert all(field.label for field in panel.session.lab.fields.values())
    for node in ElementTree.fromstring(panel.screen.svg).iter():
        if node.get("data-key") is not None:
            assert node.get("aria-label")
            assert node.get("data-row") is not None


def test_no_shape_is_a_measurement_before_it_is_shown_and_each_mark_says_its_value_in_words(shown):
    name, cases = shown
    lab = labs.lab_named(name)
    for said, found, view in cases:
        if "shown" not in said or isinstance(view, str):
            continue
        asked = lab.read(said)
        hidden = lab.view(lab.read(said | {"shown": False}), found)
        marks = {}
        for node in ElementTree.fromstring(hidden.picture).iter():
            assert "measured" not in node.get("class", "")
            marks[node.get("data-mark")] = node
        for field_name, field in lab.fields.items():
            if isinstance(field, fields.Drawn) and f"{field_name} 0" in marks:
                for number, level in enumerate(said[field_name]):
                    mark = marks[f"{field_name} {number}"]
                    assert mark.get("aria-label") == field.marks[number]
                    says = "not set" if level is None else field.says(number, level)
                    assert mark.get("aria-valuetext") == says
        if said["shown"] and lab.guesses(asked, found):
            assert view.meaning != hidden.meaning
            assert view.picture != hidden.picture


@pytest.mark.parametrize(
    ("path", "source"), [(path, one) for path in NOTEBOOKS for one in figures_of(path)]
)
def test_a_figure_that_is_a_lab_is_low_has_little_code_and_shows_nothing_measured_at_first(
    path, source
):
    made = figure_in(source)
    with opened(made.lab) as any_lab:
        lab = any_lab.session.lab
        assert set(made.controls) <= {*lab.fields, *lab.jobs}, source
    panel = labs.figure(made.lab, *made.controls, **made.answers)
    assert 0 < len(made.controls) <= 5
    assert len(source.splitlines()) <= 4, f"the question is pushed out of the window by {source}"
    assert ROW_PX + picture_and_meaning_px(panel.session.view()) <= FIGURE_PX, source
    assert not panel.session.revealed


# What a lab is made of.


@pytest.mark.parametrize("name", NAMES)
def test_the_same_roles_have_the_same_names_and_every_preset_is_a_question(name):
    chapter = labs.CHAPTER_OF[name]
    folder = ROOT / "course_utils" / "chapters" / chapter / f"{name}_lab"
    files = {path.stem: path for path in folder.glob("*.py")}
    assert set(files) <= ROLES
    assert {"__init__", "asked", "picture"} <= set(files)
    lab = labs.lab_named(name)
    assert lab.asks.__dataclass_params__.frozen
    assert all(label.endswith("?") for label in lab.presets)
    module = sys.modules[f"course_utils.chapters.{chapter}.{name}_lab"]
    assert "After two minutes" in module.__doc__


ALONE = """
import pickle, sys
MISSING = "torch numpy ipywidgets traitlets anywidget matplotlib psutil".split()
class Missing:
    def find_spec(self, name, *rest):
        if name.partition(".")[0] in MISSING:
            raise ImportError(f"There is no {name} here.")
sys.meta_path.insert(0, Missing())
from course_utils import labs
lab = labs.lab_named(sys.argv[1])
for said, found in pickle.load(sys.stdin.buffer):
    try:
        print(repr(lab.view(lab.read(said), found)))
    except ValueError as refusal:
        print(repr(str(refusal)))
"""


def test_a_view_runs_without_torch_numpy_and_jupyter_and_is_the_same_to_the_byte(shown):
    name, cases = shown
    cases = cases[: len(cases) - STATES + 60]
    asked = pickle.dumps([case[:2] for case in cases])
    alone = [sys.executable, "-c", ALONE, name]
    done = subprocess.run(alone, input=asked, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    assert done.stdout.decode().splitlines() == [repr(view) for *_, view in cases]


# No annotation there names a tensor's shape, so beartype alone can enforce them. That takes a tenth
# of the time that jaxtyping would take.
ENFORCED = """
from beartype.claw import beartype_packages
from beartype.roar import BeartypeCallHintViolation
names = ("core.say", "core.einsums", "core.predict", "engine.labs", "chapters")
beartype_packages([f"course_utils.{name}" for name in names])
from course_utils import labs
from tests.helpers.labs import opened
from tests.engine.test_labs_contract import NAMES
for name in NAMES:
    with opened(name) as panel:
        for label in panel.session.lab.presets:
            panel.preset(label)
            assert not panel.screen.mistake, (name, label, panel.screen.mistake)
try:
    labs.lab_named(3)
except BeartypeCallHintViolation:
    pass
else:
    raise AssertionError("nothing is enforced")
"""


def test_every_preset_is_answered_and_what_labs_compute_keeps_to_its_annotations():
    subprocess.run([sys.executable, "-c", ENFORCED], cwd=ROOT, check=True)


# How words are measured.


def test_the_widths_are_those_of_the_font():
    assert font_widths.WRITTEN.read_text(encoding="utf-8") == font_widths.text()


@pytest.mark.parametrize(
    "class_", ["", "strong", "small", "small alarm", "large", "place", "formula small"]
)
def test_words_are_as_wide_as_the_font_sets_them(class_):
    words = "2·B·D·K = 34,359,738,368 × 1.7e-5 µs, AVATAR"
    ((_, left, _, right, _),) = boxes(picture(2000, 100, fitted(0, 50, words, 2000, class_)))
    width = right - left
    # The font moves some pairs of letters together.
    assert width - 1e-6 <= width_of(words, class_) <= 1.02 * width


def test_words_that_do_not_fit_are_drawn_smaller_and_then_fit():
    long = "many words " * 5
    table = columns([["head", long], ["", "few"]], 20, 50, 180, ("", "strong"))
    for drawn in (fitted(20, 50, long, 180, "strong"), table):
        places = list(boxes(picture(200, 100, drawn)))
        assert min(left for _, left, *_ in places) == 20
        assert 175 < max(right for *_, right, _ in places) <= 180


def test_an_axis_is_marked_at_round_places_from_end_to_end():
    assert Axis(1, 10_000).ticks == [1, 10, 100, 1_000, 10_000]
    assert Axis(0.001, 1e9).ticks == [0.001, 1, 1e3, 1e6, 1e9]
    assert Axis(0, 12, linear=True, most_marks=3).ticks == [0, 5, 10]
    assert Axis(0, 10, linear=True, marks=(-1, 0, 7, 11)).ticks == [0, 7]
