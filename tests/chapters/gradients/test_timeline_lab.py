"""The timeline lab: its areas against the operations, its marks, and the step that it measures."""

import re
from dataclasses import replace
from itertools import accumulate, pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from course_utils.chapters import labs
from course_utils.chapters.gradients.step_over_time import COLUMNS, held_text, seconds_of
from course_utils.chapters.gradients.timeline_lab import words
from course_utils.chapters.gradients.timeline_lab.asked import (
    EIGHTHS,
    FULLEST,
    HELD,
    MACHINES,
    PRESETS,
    Asked,
)
from course_utils.chapters.gradients.timeline_lab.picture import BOTTOM, LEFT, RIGHT, TOP, Scale
from course_utils.chapters.gradients.trained_models import MIXTRAL, shape_named
from course_utils.core import accountant, measure, predict
from course_utils.core.datasheets import machine_named
from course_utils.core.predict.storages import Held
from course_utils.engine.labs.session import Session
from course_utils.subjects.child_processes import transformers
from tests.helpers.labs import answers, fresh, lines, nodes, run, steps_here

LAB = labs.lab_named("timeline")
lab = fresh("timeline")
TINY = predict.Transformer(3, 32, 4, 50, 16, tied_output=False)
RECIPES = list(predict.RECIPES)
LARGE = {"model": "Llama 3 8B", "sequence": 8192, "machines": 8, "stage": 3}
asked = st.builds(
    Asked,
    model=st.sampled_from(["GPT-2 small", "GPT-2 XL", "Llama 3 8B"]),
    recipe=st.sampled_from(list(predict.RECIPES)),
    batch=st.sampled_from([1, 3]),
    sequence=st.sampled_from([1, 100, 1024]),
    machines=st.sampled_from([1, 7]),
    stage=st.integers(0, 3),
    segment=st.sampled_from([0, 1, 5]),
    fused=st.booleans(),
    pieces=st.booleans(),
    accumulate=st.booleans(),
)


def asked_by(preset):
    """What is asked after these moves of the lab as it opens."""
    defaults = {name: field.default for name, field in LAB.fields.items()}
    return LAB.read(defaults | preset)


def scale_of(asked):
    machine = machine_named(asked.machine)
    return Scale(asked.step.fullest.held.total, machine.bytes)


def highest_by_operation(asked):
    """The most that any operation in a column holds, if each operation is looked at by itself."""
    operations = asked.timeline.operations
    seconds = seconds_of(operations, machine_named(asked.machine), asked.dtype)
    borders = [0, *accumulate(seconds)]
    most = [0] * COLUMNS
    for operation, (begin, end) in zip(operations, pairwise(borders), strict=True):
        first = COLUMNS * begin / borders[-1]
        last = COLUMNS * end / borders[-1]
        for column in range(COLUMNS):
            if column < last and first < column + 1:
                most[column] = max(most[column], sum(operation.during))
    return most


@settings(max_examples=15, deadline=None)
@given(asked)
def test_each_column_has_the_fullest_of_the_operations_that_run_in_it(asked):
    step = asked.step
    most = highest_by_operation(asked)
    off = [n for n in range(COLUMNS) if step.columns[n].held.total != most[n]]
    assert len(off) <= 4  # an operation that ends where a column does may belong to either
    assert step.fullest.held.total == asked.timeline.peak


@settings(max_examples=12, deadline=None)
@given(asked)
def test_layers_run_one_after_the_other_forwards_and_then_backwards(asked):
    in_a_layer = [moment for moment in asked.step.columns if moment.layer is not None]
    forward = [moment.layer for moment in in_a_layer if moment.phase == "forward"]
    backward = [moment.layer for moment in in_a_layer if moment.phase == "backward"]
    assert forward == sorted(forward)
    assert backward == sorted(backward, reverse=True)
    layers = set(range(asked.shape.layers))
    assert {*forward, *backward} <= layers
    if len(forward) >= 2 * len(layers):  # otherwise there are too few columns for all layers
        assert set(forward) == layers


def corners(node):
    return [tuple(map(float, point.split(","))) for point in node.get("points").split()]


@pytest.mark.parametrize("preset", PRESETS)
def test_areas_are_as_high_as_their_bytes_from_the_first_column_to_the_last(preset):
    asked = asked_by(PRESETS[preset])
    picture = LAB.view(asked, {}).picture
    step = asked.step
    scale = scale_of(asked)
    below = [0] * COLUMNS
    for place, part in enumerate(Held._fields):
        heights = [moment.held[place] for moment in step.columns]
        areas = nodes(picture, "polyline", f"part {part}")
        assert len(areas) == (1 if any(heights) else 0)
        below = [low + high for low, high in zip(below, heights, strict=True)]
        for area in areas:
            upper = dict(corners(area))
            assert min(upper) == LEFT
            assert max(upper) == RIGHT
            top = min(y for _, y in corners(area))
            assert top == pytest.approx(scale.y(max(below)), abs=0.06)
    memory_ends = [points[0][1] for points in lines(picture, "line")]
    expected = [scale.y(scale.memory)] if scale.has_memory else []
    assert memory_ends == pytest.approx(expected, abs=0.06)
    assert TOP < scale.y(step.fullest.held.total) < BOTTOM


UNITS = {"MB": 1e6, "GB": 1e9, "TB": 1e12, "bytes": 1, "kB": 1e3}


def test_numbers_on_the_axis_stand_at_the_height_of_their_bytes_and_the_upper_edge_is_round():
    for preset in PRESETS.values():
        for fused in (True, False):
            asked = asked_by(preset | {"fused": fused})
            labels = nodes(LAB.view(asked, {}).picture, "text", "end small faint")
            assert 2 <= len(labels) <= 6
            for label in labels:
                number, unit = label.text.split(" ")
                nbytes = float(number) * UNITS[unit]
                height = BOTTOM - (float(label.get("y")) - 4)
                at_the_upper_edge = nbytes * (BOTTOM - TOP) / height
                assert scale_of(asked).full == pytest.approx(at_the_upper_edge, rel=0.01)
            leading = float(f"{at_the_upper_edge:.1e}"[:3])
            assert leading in (1, 1.5, 2, 3, 4, 5, 6, 8)
            assert at_the_upper_edge >= asked.step.fullest.held.total


def test_before_a_guess_is_revealed_its_axis_is_in_percent_and_no_bytes_are_on_it(lab):
    percents = ["25 %", "50 %", "75 %", "100 %"]
    lab.set(**LARGE, ask=HELD, shown=False)
    labels = nodes(lab.screen.svg, "text", "end small faint")
    assert [label.text for label in labels] == percents
    # Each is level with a mark of as many percent.
    for label, level in zip(labels, (25, 50, 75, 100), strict=True):
        lab.set(held=(level,) * len(EIGHTHS))
        mark = nodes(lab.screen.svg, "circle", "mark")[0]
        assert float(label.get("y")) - 4 == pytest.approx(float(mark.get("cy")), abs=0.06)
    lab.set(ask=FULLEST)
    along = nodes(lab.screen.svg, "text", "middle small faint")
    assert [label.text for label in along] == percents
    for label, level in zip(along, (25, 50, 75, 100), strict=True):
        lab.set(fullest=(level,))
        (mark,) = nodes(lab.screen.svg, "circle", "mark")
        assert float(label.get("x")) == pytest.approx(float(mark.get("cx")), abs=0.06)
    assert nodes(lab.screen.svg, "text", "end small faint") == []
    lab.set(shown=True)
    assert "25 %" not in lab.screen.svg


@pytest.mark.parametrize("shown", [True, False])
@pytest.mark.parametrize("preset", PRESETS)
def test_beside_the_picture_stands_what_the_step_ever_holds_and_nothing_else(preset, shown):
    asked = replace(asked_by(PRESETS[preset]), ask=HELD, shown=shown)
    held = set()
    for moment in asked.timeline.operations:
        for part in Held._fields:
            if getattr(moment.during, part):
                held.add(part)
    picture = LAB.view(asked, {}).picture
    listed = {part for part in Held._fields if nodes(picture, "rect", f"part {part}")}
    assert listed == held


# A guess.


def test_nothing_of_the_timeline_is_in_the_picture_before_it_is_shown(lab):
    for ask in (HELD, FULLEST):
        lab.set(**LARGE, ask=ask, shown=False)
        assert "fullest: " not in lab.screen.svg
        assert nodes(lab.screen.svg, "polyline", "part activations") == []
        assert lab.screen.table == []
        assert " GB of " not in lab.screen.meaning


def test_a_drawn_line_is_compared_with_what_is_held_at_each_eighth_of_the_step(lab):
    lab.set(**LARGE, ask=HELD, held=(50,) * len(EIGHTHS), shown=True)
    guesses = lab.session.guesses()
    step = LAB.read(lab.values).step
    assert [guess.said for guess in guesses] == [50] * len(EIGHTHS)
    for n, guess in enumerate(guesses):
        held = step.columns[min(COLUMNS - 1, COLUMNS * n // 8)].held.total
        assert guess.measured == pytest.approx(100 * held / step.fullest.held.total)
    farthest = max(guesses, key=lambda guess: abs(guess.said - guess.measured))  # in points
    assert f"; the farthest ({farthest.asked}): {farthest.how_far}." in lab.screen.meaning
    said = []
    for word in ("spot on", "close", "far"):
        count = sum(guess.word == word for guess in guesses)
        if count:
            said.append(f"{count} {word}")
    assert f"Your {len(EIGHTHS)} guesses: {', '.join(said)}; the" in lab.screen.meaning


@pytest.mark.parametrize("recipe", RECIPES)
@pytest.mark.parametrize("machine", MACHINES.values())
def test_each_recipe_has_a_step_on_each_machine_and_says_whose_rate_counts(machine, recipe):
    asked = Asked("GPT-2 small", recipe, machine, sequence=64)
    title = words.title(asked, asked.step)
    sheet = machine_named(machine).peak_flop_per_sec
    assert ("it has none for" in title) == (asked.dtype not in sheet)


def test_a_mark_on_the_fullest_moment_is_right_where_the_ring_is(lab):
    lab.set(**LARGE, ask=FULLEST, shown=True)
    assert lab.session.guesses() == []
    (ring,) = nodes(lab.screen.svg, "circle", "start")
    share = (float(ring.get("cx")) - LEFT) / (RIGHT - LEFT)
    lab.set(fullest=(round(100 * share),))
    (guess,) = lab.session.guesses()
    assert guess.off < 1.05


# What it says.

SAYS = [
    (
        {"preset": "do 8 H100s hold 8B?"},
        "Does not fit: at its fullest moment (backward, cross-entropy) a GPU",
    ),
    (LARGE, "Llama 3 8B: a step of 1 × 8,192 tokens on each of 8 × H100 SXM"),
    (
        {"machine": "B200", "recipe": "fp32 adamw"},
        " by its data sheet, at tf32's rate: it has none for fp32",
    ),
    (
        {"machine": "T4", "recipe": "bf16 adamw", "model": "GPT-2 small"},
        " by its data sheet, at fp32's rate: it has none for bf16",
    ),
    (
        {"model": "GPT-2 small", "sequence": 8192},
        "GPT-2 small: a step of 1 × 1,024 tokens on one H100 SXM",
    ),
]


@pytest.mark.parametrize(("moved", "sentence"), SAYS)
def test_its_words_have_their_numbers(lab, moved, sentence):
    assert sentence in answers(lab, **moved)


def test_the_table_has_every_byte(lab):
    lab.set(**LARGE | {"batch": 2, "segment": 1}, moment=0)
    head, *rows = lab.screen.table
    step = LAB.read(lab.values).step
    assert head == ["bytes on each machine", "at this moment", "at the fullest"]
    for part, now, most in zip(Held._fields, step.at(0).held, step.fullest.held, strict=True):
        assert [part, f"{now:,}", f"{most:,}"] in rows
    assert ["copies in an optimizer's own step", "left out", "left out"] in rows


# What it measures.


@pytest.mark.parametrize(("place", "recipe"), list(enumerate(RECIPES)))
def test_a_step_that_is_measured_is_drawn_over_the_prediction_and_holds_as_much(
    place, recipe, monkeypatch
):
    monkeypatch.setattr("course_utils.subjects.child_processes.process.steps_of", steps_here)
    monkeypatch.setitem(predict.MODELS, "GPT-2 small", TINY)
    asked = Asked(
        "GPT-2 small",
        recipe,
        sequence=8,
        segment=place % 3,
        fused=place % 2 == 0,
        pieces=place % 4 == 0,
    )
    with measure.cpu_threads(1):
        *said, last = LAB.measure(asked, {})
    assert "operations, up to the optimizer's step, hold as many bytes as predicted." in last.report
    assert "with real numbers" in last.report
    found = last.change.found({})
    assert len(found[asked.timeline]) == len(asked.timeline.operations)
    (line,) = lines(LAB.view(asked, found).picture, "line measured")
    assert len(line) == COLUMNS
    reports = [progress.report for progress in said[1:4]]
    assert reports == [f"Forward, {n} of 3 layers." for n in (1, 2, 3)]


def test_a_step_on_several_machines_or_beyond_addresses_is_not_measured(lab):
    assert "Set machines to 1." in said_when_refused(lab, machines=2)
    unaddressable = said_when_refused(lab, machines=1, batch=2**20, sequence=2**20)
    assert "more than torch can address" in unaddressable


def said_when_refused(lab, **moved):
    lab.set(**moved)
    with pytest.raises(ValueError, match=r"\."):
        run(lab, "Measure a real step")
    return lab.screen.report + lab.screen.mistake


def test_a_mixture_says_what_is_stored_and_used_and_the_accountant_agrees_that_it_fits():
    """Mixtral's card: 46.7 billion parameters, of which a token uses 12.9."""
    session = Session(labs.lab_named("timeline"))
    session.set({**PRESETS["a mixture of experts?"], "accumulate": True})
    assert "46.7 billion parameters, of which a token uses 12.9 billion" in session.shown["svg"]
    assert "one after the other, each on as many tokens as another" in session.shown["meaning"]
    asked = Asked(**{**PRESETS["a mixture of experts?"], "accumulate": True})
    step = asked.step
    lines = accountant.account(
        asked.shape,
        gpus=asked.machines,
        tokens=1e12,
        recipe_name=asked.recipe,
        stage=asked.stage,
        batch=asked.batch,
        sequence=asked.tokens,
        recomputed=asked.shape.layers,
        memory=machine_named(asked.machine).bytes,
        peak=accountant.PEAK,
        share=0.4,
    )
    assert lines["fits"] == "yes"
    assert session.shown["meaning"].startswith("Fits: ")
    assert step.most <= lines["bytes together"] <= 1.03 * step.most
    # Gathered: two layers' weights and a layer's gradients, with all experts, among others.
    of_a_layer = 2 * asked.shape.parameters_of_a_layer
    assert max(moment.held.gathered for moment in step.columns) > 3 * of_a_layer


def test_a_measured_step_of_a_mixture_holds_what_is_predicted():
    """On fake tensors, with two layers in place of 32."""
    m = replace(shape_named(MIXTRAL), layers=2)
    step = predict.timeline(m, 1, 512, recipe="bf16 adamw")
    moments = transformers.step_moments(m, "bf16 adamw", 1, 512, fused=True)
    assert [(each.name, each.during) for each in moments] == [
        (each.name, each.during.total) for each in step.operations
    ]


def test_before_show_there_is_no_moment_to_play():
    asked = {"ask": "fullest", "machines": 8, "stage": 3, "segment": 1}
    figure = labs.figure("timeline", "segment", "pieces", "moment", "shown", **asked)
    assert figure.controls["moment"].layout.display == "none"
    figure.set(shown=True)
    assert figure.controls["moment"].layout.display == ""


def test_show_leads_to_the_fullest_moment_if_that_is_asked_for_and_the_reader_may_leave_it(lab):
    lab.set(ask=FULLEST, machines=8, stage=3, segment=1, fullest=(60,), moment=33)
    lab.set(shown=True)
    step = LAB.read(lab.values).step
    assert lab.values["moment"] == round(100 * step.fullest.share) != 33
    assert lab.session.as_revealed().values["moment"] == lab.values["moment"]
    lab.set(moment=70)
    again = lab.session.anew()
    assert again.values["moment"] == 70, "as it is when the notebook is opened again"
    lab.set(shown=False, ask=HELD)
    lab.set(shown=True)
    assert lab.values["moment"] == 70


@pytest.mark.parametrize(("level", "is_left"), [(0, False), (60, False), (100, True)])
def test_the_mark_of_the_fullest_moment_has_a_name_once_the_answer_is_shown(lab, level, is_left):
    lab.set(ask=FULLEST, fullest=(level,))
    assert "your mark" not in lab.screen.svg
    lab.set(shown=True)
    names = nodes(lab.screen.svg, "text", "small strong halo" + " end" * is_left)
    (name,) = (one for one in names if one.text == "your mark")
    (mark,) = nodes(lab.screen.svg, "circle", "mark")
    assert (float(name.get("x")) < float(mark.get("cx"))) == is_left


def test_the_ring_is_seen_on_a_mark_that_lies_on_it(lab):
    lab.set(ask=HELD, held=(50,) * len(EIGHTHS), shown=True)
    circles = re.findall(r"<circle .*?/>", lab.screen.svg)
    ring = next(circle for circle in circles if 'class="start"' in circle)
    edge = ring.replace('class="start"', 'class="cut"')
    assert circles[-2:] == [edge, ring], "they are drawn after all marks"


@pytest.mark.parametrize(
    ("nbytes", "words"),
    [
        (2_100_000_000, "2.10 GB"),
        (2_013_000_000, "2.01 GB"),
        (4_100_000, "4.10 MB"),
        (31_000_000_000, "31.0 GB"),
        (688_000_000_000, "688 GB"),
        (999_960_000, "1.00 GB"),
        (8, "8 bytes"),
        (0, "0 bytes"),
    ],
)
def test_bytes_below_each_other_have_three_digits_each(nbytes, words):
    assert held_text(nbytes) == words
