"""A guess that is drawn in a picture: its marks, the record, and a figure's few controls."""

import dataclasses
import json

import pytest

from course_utils.chapters import labs
from course_utils.chapters.einsum.heads_lab.asked import Split
from course_utils.chapters.flops.roof_lab.asked import Roofed
from course_utils.chapters.gradients.step_over_time import Step
from course_utils.chapters.optimizers.optimizer_lab.asked import Race
from course_utils.core import record
from course_utils.core.say import Guess
from course_utils.engine.labs.draw import marks
from course_utils.engine.labs.fields import Drawn
from course_utils.engine.labs.panel import Panel
from course_utils.engine.labs.session import Session
from tests.helpers.labs import opened
from tests.helpers.small_lab import DrawingLab


def drawn_fields(name):
    """The fields of a lab in which a guess is drawn, with the names of their marks."""
    fields = getattr(labs, name)().session.lab.fields.items()
    return {name: field.marks for name, field in fields if isinstance(field, Drawn)}


@pytest.fixture
def workspace(tmp_path, monkeypatch):
    (tmp_path / record.HIDDEN).mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(record, "notebook", "floats")
    return tmp_path


@pytest.mark.parametrize(
    "levels", [(1, 2), (1, 2, 21), (1, 2, -1), (1, 2, 3.0), (1, 2, True), "123"]
)
def test_levels_that_no_mark_can_have_get_a_sentence_and_the_marks_stay(levels):
    session = Session(DrawingLab())
    session.set({"guess": (1, 2, None)})
    session.set({"guess": levels})
    assert "squares" in session.shown["mistake"]
    assert session.values["guess"] == (1, 2, None)


def test_a_page_moves_marks_by_lists_and_they_are_named_with_their_values():
    panel = Panel(DrawingLab())
    panel.screen._handle_custom_msg({"set": {"guess": [2, None, 20]}}, [])
    assert panel.values["guess"] == (2, None, 20)
    assert 'aria-label="a"' in panel.screen.svg
    for words in ("2 cm²", "not set", "20 cm²"):
        assert f'aria-valuetext="{words}"' in panel.screen.svg


def test_show_says_how_far_off_each_mark_was_and_the_record_gets_one_line_once(workspace):
    panel = Panel(DrawingLab())
    panel.set(guess=(2, None, 3))
    assert record.guesses(workspace) == {}
    panel.set(shown=True)
    assert "× 2" in panel.screen.svg
    assert "÷ 3" in panel.screen.svg
    how_far = "far: a factor of 3 too small"
    sentence = f"The farthest of your guesses (c) is {how_far}."
    assert panel.screen.meaning == sentence
    panel.set(n=4)
    ((guess,),) = record.guesses(workspace).values()
    assert (guess.asked, guess.said, guess.measured) == ("c", 3, 9)
    # Now "a" is the farthest, but its answer has been seen.
    panel.set(shown=False, guess=(3, None, 9))
    panel.set(shown=True)
    ((guess,),) = record.guesses(workspace).values()
    assert guess.asked == "c"


def test_of_shares_the_farthest_mark_is_said_in_points_as_its_sentence_is():
    """10 % for 2 % is five times too high, but 60 % for 87 % is farther off."""
    near = Guess("step 25", 10, 2, unit="percent")
    far = Guess("step 200", 60, 86.7, unit="percent")
    assert marks.summed_up([near, far]) == (
        "The farthest of your guesses (step 200) is far: 26.7 points too low."
    )
    assert marks.summed_up([near, far, far, near, near]) == (
        "Your 5 guesses: 3 close, 2 far; the farthest (step 200): 26.7 points too low."
    )
    right = Guess("step 25", 2, 2, unit="percent")
    assert marks.summed_up([right] * 3) == "All 3 of your guesses are spot on."
    assert marks._how_far_off(far) == "−26.7"


def test_a_far_guess_of_a_small_share_is_farther_than_a_large_one_that_is_spot_on():
    small = Guess("a", 0.0005, 0.005, unit="share")
    large = Guess("b", 0.52, 0.5, unit="share")
    assert marks.summed_up([large, small]).startswith("The farthest of your guesses (a) is ")


def test_the_record_has_the_mark_in_the_middle_and_not_the_farthest(workspace):
    panel = Panel(DrawingLab())
    panel.set(guess=(1, 5, 18))
    distances = {guess.asked: guess.off for guess in panel.session.guesses()}
    panel.set(shown=True)
    ((guess,),) = record.guesses(workspace).values()
    nearest, middle, farthest = sorted(distances, key=distances.get)
    assert distances[nearest] < distances[middle] < distances[farthest]
    assert guess.asked == middle


@pytest.mark.parametrize(
    ("figure", "marks", "other"),
    [
        ("heads", {"guess": tuple(range(3)) * 4}, {"heads": 2}),
        ("walk", {"landing": (7,)}, {"stride_0": 5}),
        ("roof", {"shares": (10, 20, 30, 40, 50)}, {"table": "MI300X, by AMD, bf16"}),
        ("optimizer", {"guess": (3,)}, {"steepness": 30}),
    ],
)
def test_a_mark_is_a_guess_at_the_question_for_which_it_was_set_and_at_no_other(
    workspace, figure, marks, other
):
    first = {"guessed": "SGD"} if figure == "optimizer" else {}
    panel = labs.figure(figure, "shown", **first)
    (name,) = marks
    panel.set(**marks)
    at_first = {control: panel.values[control] for control in other}
    panel.set(**other)
    assert set(panel.values[name]) == {None}, "the sliders ask something else"
    after_restart = labs.figure(figure, "shown", **first)
    assert after_restart.values[name] == marks[name], "they are kept where they were set"
    panel.set(shown=True)
    assert record.guesses(workspace) == {}, "nobody guessed that"
    panel.set(shown=False)
    panel.set(shown=True)
    after_restart = labs.figure(figure, "shown", **first)
    assert after_restart.values[name] == marks[name], "nor does Show there take them away"
    panel.set(shown=False)
    panel.set(**at_first)
    assert panel.values[name] == marks[name]
    panel.set(shown=True)
    assert len(record.guesses(workspace)["floats"]) == 1


@pytest.mark.parametrize(
    ("figure", "first", "other", "name", "marks", "more_marks"),
    [
        ("heads", {"heads": 3}, {"heads": 2}, "guess", (1,) * 12, (0,) * 12),
        ("walk", {"stride_0": 4}, {"stride_0": 5}, "landing", (7,), (9,)),
        ("timeline", {"fused": False}, {"fused": True}, "held", (1,) * 9, (2,) * 9),
        ("timeline", {"fused": False}, {"fused": True}, "held", (1,) * 9, (1,) * 9),
        ("optimizer", {"guessed": "SGD"}, {"guessed": "AdamW"}, "guess", (3,), (4,)),
    ],
)
def test_after_a_restart_each_question_has_the_marks_that_were_drawn_for_it(
    workspace, figure, first, other, name, marks, more_marks
):
    panel = labs.figure(figure, "shown", *first)
    panel.set(**first)
    panel.set(**{name: marks})
    panel.set(**other)
    panel.set(**{name: more_marks})
    panel.set(**first)

    after_restart = labs.figure(figure, "shown", *first)
    assert after_restart.values[name] == marks
    after_restart.set(**other)
    assert after_restart.values[name] == more_marks

    # Another mark is kept beside what was kept before the restart.
    after_restart.set(**{name: marks})
    after_restart.set(**first)
    again = labs.figure(figure, "shown", *first)
    assert again.values[name] == marks
    again.set(**other)
    assert again.values[name] == marks


def test_who_has_seen_the_answer_to_another_question_does_not_guess_it_any_more(workspace):
    panel = labs.figure("heads", "heads", "shown")
    panel.set(guess=(0,) * 12)
    panel.set(shown=True)
    panel.set(heads=2)  # its answer is in the picture at once
    panel.set(shown=False, guess=(1,) * 12)
    panel.set(shown=True)
    ((guess,),) = record.guesses(workspace).values()
    assert guess.said == "head 0"


def test_marks_and_what_was_shown_are_there_after_a_restart_in_the_figure_they_were_drawn_in(
    workspace,
):
    panel = Panel(DrawingLab(), n=4)
    panel.set(guess=(2, None, 3))
    assert Panel(DrawingLab(), n=4).values["guess"] == (2, None, 3)
    assert Panel(DrawingLab(), n=5).values["guess"] == (None, None, None), "another figure"
    panel.set(shown=True)
    after_restart = Panel(DrawingLab(), n=4)
    assert after_restart.screen.svg == panel.screen.svg
    assert after_restart.values == panel.values
    after_restart.set(shown=False)
    after_restart.set(shown=True)
    assert len(record.guesses(workspace)["floats"]) == 1, "an answer that was seen is no guess"


def test_marks_come_back_with_the_controls_that_they_were_judged_at(workspace):
    panel = Panel(DrawingLab())
    panel.set(guess=(2, None, 3), n=5)
    panel.set(shown=True)
    panel.set(n=6)
    assert Panel(DrawingLab()).values == panel.values | {"n": 5}


def test_figures_with_other_controls_have_marks_of_their_own(workspace):
    Panel(DrawingLab(), "shown").set(guess=(2, None, 3))
    assert Panel(DrawingLab(), "n", "shown").values["guess"] == (None, None, None)
    assert Panel(DrawingLab(), "shown").values["guess"] == (2, None, 3)


@pytest.mark.parametrize("name", [name for name in labs.__all__ if drawn_fields(name)])
def test_what_any_labs_controls_hold_comes_back_from_the_file(workspace, name):
    panel = getattr(labs, name)()
    levels = {field: (1,) * len(marks) for field, marks in drawn_fields(name).items()}
    panel.set(**levels)
    assert getattr(labs, name)().values == panel.values
    assert all(panel.values[field] == marks for field, marks in levels.items())


def torn(text):
    return text[:-1]


def of_another_lab(text):
    (name, kept) = next(iter(json.loads(text).items()))
    return json.dumps({name: kept | {"controls": kept["controls"] | {"former": 1}}})


def with_other_marks(text):
    (name, kept) = next(iter(json.loads(text).items()))
    return json.dumps({name: kept | {"controls": kept["controls"] | {"guess": [1]}}})


def with_text_for_a_tick(text):
    (name, kept) = next(iter(json.loads(text).items()))
    return json.dumps({name: kept | {"controls": kept["controls"] | {"shown": "yes"}}})


def with_a_broken_letter(text):
    return '{"\\ud800": 1}'


@pytest.mark.parametrize(
    "spoilt",
    [
        torn,
        of_another_lab,
        with_other_marks,
        with_text_for_a_tick,
        with_a_broken_letter,
        lambda _: "[]",
        lambda text: json.dumps(dict.fromkeys(json.loads(text), 3)),
    ],
)
def test_marks_that_another_version_or_hand_has_kept_are_left_out(workspace, spoilt):
    Panel(DrawingLab()).set(guess=(2, None, 3))
    path = workspace / record.MARKS / "floats.json"
    path.write_text(spoilt(path.read_text(encoding="utf-8")), encoding="utf-8")
    panel = Panel(DrawingLab())
    assert panel.values["guess"] == (None, None, None)
    assert panel.screen.mistake == ""
    panel.set(guess=(1, 1, 1))
    assert Panel(DrawingLab()).values["guess"] == (1, 1, 1)


def test_show_without_a_mark_shows_and_records_nothing(workspace):
    panel = Panel(DrawingLab())
    panel.set(shown=True)
    assert 'class="line measured"' in panel.screen.svg
    assert record.guesses(workspace) == {}


def test_who_only_reads_sees_the_answer_and_who_has_a_copy_of_their_own_the_question(
    tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    panel = Panel(DrawingLab(), "n", "shown")
    panel.set(guess=(2, None, 3))
    bundle, metadata = panel._repr_mimebundle_()
    assert "a factor of 3 too small" in metadata["image/png"]["alt"]
    assert "a factor of 3 too small" in bundle["text/plain"]
    assert panel.values["shown"] is False  # the live lab still asks
    assert 'class="line measured"' not in panel.screen.svg
    (tmp_path / record.HIDDEN).mkdir()  # from here on it is a reader's folder
    question, metadata = panel._repr_mimebundle_()
    assert metadata["image/png"]["alt"] == f"Drawing lab. {panel.screen.meaning}"
    assert question["image/png"] != bundle["image/png"]
    panel.set(shown=True)
    answered, _ = panel._repr_mimebundle_()
    assert "a factor of 3 too small" in answered["text/plain"]


def test_a_figure_that_asks_for_no_guess_is_stored_as_it_is(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    panel = Panel(DrawingLab(), "n")
    _, metadata = panel._repr_mimebundle_()
    assert metadata["image/png"]["alt"] == f"Drawing lab. {panel.screen.meaning}"


def test_a_figure_has_the_controls_that_it_names_and_begins_with_its_answers():
    panel = Panel(DrawingLab(), "n", "shown", n=7)
    assert len(panel.children) == 2  # a row, and the screen
    assert list(panel.children[0].children) == [panel.controls["n"], panel.controls["shown"]]
    assert panel.screen.meaning == "n is 7."


def test_one_button_at_a_time_is_coloured_and_show_only_once_there_is_a_guess():
    panel = labs.figure("roof", "table", "c_us", "shown", "Fit")
    (show,) = panel._widgets["shown"]
    fit = panel._jobs[0]

    def coloured():
        return [button.description for button in (show, fit) if button.button_style]

    assert coloured() == []
    panel.set(shares=(10, None, None, None, None))
    assert coloured() == ["Show"]
    panel.set(shown=True)
    assert coloured() == ["Fit"]


def test_show_is_named_hide_while_the_answer_is_shown_and_hiding_covers_nothing_again():
    panel = Panel(DrawingLab(), "n", "shown")
    show = panel.controls["shown"]
    assert (show.description, show.tooltip) == ("Show", "Show what was measured")
    assert "course-waits" in panel._dom_classes
    show.value = True
    assert (show.description, show.tooltip) == ("Hide", "Hide what was measured")
    assert "course-waits" not in panel._dom_classes
    show.value = False
    assert (show.description, show.tooltip) == ("Show", "Show what was measured")
    assert not panel.session.revealed
    assert "course-waits" not in panel._dom_classes


@pytest.mark.parametrize("name", labs.NAMES)
def test_every_lab_with_a_show_names_it_hide_once_it_is_shown(name):
    with opened(name) as panel:
        if "shown" in panel.values:
            panel.set(shown=True)
            names = [part.label for part in panel.session.parts["shown"]]
            assert names == ["Hide"]
            panel.set(shown=False)
            assert [widget.description for widget in panel._widgets["shown"]] == ["Show"]


def test_a_figure_that_names_what_a_lab_does_not_have_fails_its_cell_with_a_sentence():
    with pytest.raises(ValueError, match=r"^Float lab has no control colour\. It has: "):
        labs.figure("float", "colour")
    with pytest.raises(ValueError, match="has no control colour"):
        labs.figure("float", colour="red")
    for name in ("stride", "draw", "session", "Float", ""):
        sentence = f"^There is no lab {name}. There are: account, box, chain, einsum, "
        with pytest.raises(ValueError, match=sentence):
            labs.figure(name, "shown")
    with pytest.raises(ValueError, match="squares"):
        Panel(DrawingLab(), guess=(1,))


def measure_otherwise(name, monkeypatch):
    """From here on, that lab measures something else."""
    change = {
        "sum": other_sums,
        "heads": other_heads,
        "roof": other_times,
        "optimizer": other_losses,
        "timeline": other_timeline,
    }
    change[name](monkeypatch)


def other_sums(monkeypatch):
    def sums(fmt):
        return [2**n for n in range(27)]

    for module in ("asked", "picture"):
        monkeypatch.setattr(f"course_utils.chapters.floats.sum_lab.{module}.sums", sums)


def other_heads(monkeypatch):
    monkeypatch.setattr(Split, "arrives", property(lambda split: [0] * 12))


def other_times(monkeypatch):
    measured = Roofed.seconds_by_size.fget

    def twice(asked):
        return {size: 2 * seconds for size, seconds in measured(asked).items()}

    monkeypatch.setattr(Roofed, "seconds_by_size", property(twice))


def other_losses(monkeypatch):
    measured = Race.end_loss

    def end_loss(race, name, lr):
        return 1.0 if name == race.guessed else measured(race, name, lr)

    monkeypatch.setattr(Race, "measured_limit", lambda race, name: 0.001)
    monkeypatch.setattr(Race, "end_loss", end_loss)


def other_timeline(monkeypatch):
    measured = Step.fullest.func

    def late(step):
        return dataclasses.replace(measured(step), share=0.987)

    monkeypatch.setattr(Step, "fullest", property(late))
    monkeypatch.setattr(Step, "at", lambda step, share: step.columns[0])


@pytest.mark.parametrize(
    ("name", "answers"),
    [
        ("sum", {}),
        ("heads", {}),
        ("roof", {}),
        ("optimizer", {"guessed": "SGD"}),
        ("optimizer", {"guessed": "AdamW", "racing": ("SGD", "AdamW")}),
        ("timeline", {"ask": "held"}),
        ("timeline", {"ask": "fullest", "machines": 8, "stage": 3}),
    ],
)
def test_before_show_another_measurement_gives_the_very_same_view(name, answers, monkeypatch):
    views = {}
    for measured in ("so", "otherwise"):
        if measured == "otherwise":
            measure_otherwise(name, monkeypatch)
        for shown in (False, True):
            session = Session(labs.lab_named(name))
            session.set(answers | {"shown": shown})
            assert not session.shown["mistake"]
            views[measured, shown] = session.view()
    assert views["so", False] == views["otherwise", False]
    assert views["so", True] != views["otherwise", True]
