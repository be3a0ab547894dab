"""The timeline lab: its areas against the operations, its marks, and the step that it measures."""

from itertools import accumulate, pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from course_utils.chapters import labs
from course_utils.chapters.gradients.step_over_time import COLUMNS, seconds_of
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
from course_utils.core import measure, predict
from course_utils.core.datasheets import machine_named
from course_utils.core.predict.storages import Held
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
    **{name: st.booleans() for name in ("fused", "pieces", "accumulate")},
)


def highest_by_operation(asked):
    """Of each column the most that any operation holds which runs in it, one operation after the other."""
    operations = asked.timeline.operations
    seconds = seconds_of(operations, machine_named(asked.machine), asked.dtype)
    ends = [0, *accumulate(seconds)]
    most = [0] * COLUMNS
    for one, (begin, end) in zip(operations, pairwise(ends), strict=True):
        first, last = COLUMNS * begin / ends[-1], COLUMNS * end / ends[-1]
        for place in range(COLUMNS):
            if place < last and first < place + 1:
                most[place] = max(most[place], sum(one.during))
    return most


@settings(max_examples=15, deadline=None)
@given(asked)
def test_each_column_has_the_fullest_of_the_operations_that_run_in_it(asked):
    step, most = asked.step, highest_by_operation(asked)
    off = [n for n in range(COLUMNS) if step.columns[n].held.total != most[n]]
    assert len(off) <= 4  # an operation that ends where a column does may belong to either
    assert step.fullest.held.total == asked.timeline.peak


@settings(max_examples=12, deadline=None)
@given(asked)
def test_layers_run_one_after_the_other_forwards_and_then_backwards(asked):
    ran = {
        phase: [m.layer for m in asked.step.columns if m.phase == phase]
        for phase in ("forward", "backward")
    }
    forward, backward = ([n for n in layers if n is not None] for layers in ran.values())
    assert forward == sorted(forward)
    assert backward == sorted(backward, reverse=True)
    layers = {*range(asked.shape.layers)}
    assert {*forward, *backward} <= layers
    assert len(forward) < 2 * len(layers) or {*forward} == layers  # else there are too few columns


def corners(node):
    return [tuple(map(float, point.split(","))) for point in node.get("points").split()]


@pytest.mark.parametrize("preset", PRESETS)
def test_areas_are_as_high_as_their_bytes_from_the_first_column_to_the_last(preset):
    asked = LAB.read({name: field.default for name, field in LAB.fields.items()} | PRESETS[preset])
    view, step = LAB.view(asked, {}), asked.step
    scale, below = Scale(step.fullest.held.total, machine_named(asked.machine).bytes), [0] * COLUMNS
    for place, part in enumerate(Held._fields):
        heights = [moment.held[place] for moment in step.columns]
        areas = nodes(view.picture, "polyline", f"part {part}")
        assert len(areas) == any(heights)
        below = [low + high for low, high in zip(below, heights, strict=True)]
        for area in areas:
            upper = dict(corners(area))
            assert min(upper) == LEFT
            assert max(upper) == RIGHT
            top = min(y for _, y in corners(area))
            assert top == pytest.approx(scale.y(max(below)), abs=0.06)
    ends = [points[0][1] for points in lines(view.picture, "line")]
    shown = [scale.y(machine_named(asked.machine).bytes)] * scale.has_memory
    assert ends == pytest.approx(shown, abs=0.06)
    assert TOP < scale.y(step.fullest.held.total) < BOTTOM


def test_numbers_on_the_axis_stand_at_the_height_of_their_bytes_and_the_upper_edge_is_round():
    units = {"MB": 1e6, "GB": 1e9, "TB": 1e12, "bytes": 1, "kB": 1e3}
    for preset in PRESETS.values():
        for fused in (True, False):
            first = {name: field.default for name, field in LAB.fields.items()}
            asked = LAB.read(first | preset | {"fused": fused})
            picture, most = LAB.view(asked, {}).picture, asked.step.fullest.held.total
            labels = nodes(picture, "text", "end small faint")
            assert 2 <= len(labels) <= 6
            full = 0
            for label in labels:
                number, unit = label.text.split(" ")
                nbytes = float(number) * units[unit]
                full = nbytes * (BOTTOM - TOP) / (BOTTOM - (float(label.get("y")) - 4))
                assert Scale(most, machine_named(asked.machine).bytes).full == pytest.approx(
                    full, rel=0.01
                )
            assert float(f"{full:.1e}"[:3]) in (1, 1.5, 2, 3, 4, 5, 6, 8)
            assert full >= most


def test_before_a_guess_is_revealed_the_axis_has_no_numbers(lab):
    for ask in (HELD, FULLEST):
        lab.set(**LARGE, ask=ask, shown=False)
        assert nodes(lab.screen.svg, "text", "end small faint") == []


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
    guesses, step = lab.session.guesses(), LAB.read(lab.values).step
    assert [guess.said for guess in guesses] == [50] * len(EIGHTHS)
    for n, guess in enumerate(guesses):
        held = step.columns[min(COLUMNS - 1, COLUMNS * n // 8)].held.total
        assert guess.measured == pytest.approx(100 * held / step.fullest.held.total)
    farthest = max(guesses, key=lambda one: one.off)
    assert farthest.words in lab.screen.meaning


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
    ({"preset": "do 8 H100s hold 8B?"}, "Does not fit: at its fullest moment (backward, cross-entropy) a machine"),
    (LARGE, "Llama 3 8B: a step of 1 × 8,192 tokens on each of 8 × H100 SXM"),
    (
        {"machine": "B200", "recipe": "fp32 adamw"},
        " by its data sheet, at tf32's rate: it has none for fp32",
    ),
    (
        {"machine": "T4", "recipe": "bf16 adamw", "model": "GPT-2 small"},
        " by its data sheet, at fp32's rate: it has none for bf16",
    ),
    ({"model": "GPT-2 small", "sequence": 8192}, "GPT-2 small: a step of 1 × 1,024 tokens on one H100 SXM"),
]  # fmt: skip


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


# What it measures.


@pytest.mark.parametrize(("place", "recipe"), [*enumerate(RECIPES)])
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
    assert [one.report for one in said[1:4]] == [f"Forward, {n} of 3 layers." for n in (1, 2, 3)]


def test_a_step_on_several_machines_is_not_measured_and_one_that_torch_cannot_address_is_refused(
    lab,
):
    assert "Set machines to 1." in run_refused(lab, machines=2)
    assert "more than torch can address" in run_refused(
        lab, machines=1, batch=2**20, sequence=2**20
    )


def run_refused(lab, **moved):
    lab.set(**moved)
    with pytest.raises(ValueError, match=r"\."):
        run(lab, "Measure a real step")
    return lab.screen.report + lab.screen.mistake
