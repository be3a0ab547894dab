"""The panel that every lab has; tests/chapters/floats/test_browser.py looks at it from outside."""

import re
import sys
import threading
import time
import types
from dataclasses import dataclass
from xml.etree import ElementTree

import pytest

from course_utils.engine.labs.draw import still, svg
from course_utils.engine.labs.fields import whole
from course_utils.engine.labs.lab import Change, Progress, View
from course_utils.engine.labs.panel import Panel
from course_utils.engine.labs.powers import power_of_two
from tests.helpers.hostile import button
from tests.helpers.small_lab import draw, made, small_lab
from tests.helpers.waiting import wait_until


def test_picture_and_meaning_follow_a_control_and_what_is_wrong_is_said_until_it_is_right():
    lab = small_lab()
    assert lab.screen.meaning == "n is 3"
    lab.controls["n"].value = 13
    assert lab.screen.mistake == "13 is not allowed here; take 12."
    assert lab.screen.meaning == "n is 3"
    lab.controls["n"].value = 8
    assert lab.screen.mistake == ""
    assert lab.screen.meaning == "n is 8"
    assert lab.session.error is None
    assert ">8</text>" in lab.screen.svg


def test_a_fault_of_the_lab_is_raised_to_the_caller_and_one_at_the_start_fails_its_cell():
    lab = small_lab()
    with pytest.raises(RuntimeError, match="a fault of the lab"):
        lab.controls["n"].value = 14
    assert lab.screen.mistake.endswith("which is not your doing: RuntimeError: a fault of the lab")
    with pytest.raises(ZeroDivisionError):
        small_lab(lambda n: n / 0)


@dataclass(frozen=True)
class Two:
    a: int = whole("a", 0, 0, 9)
    b: int = whole("b", 0, 0, lambda said: 3 + said["a"])


def test_several_controls_move_with_one_drawing_or_with_a_sentence():
    drawn = []

    def show(asked, found):
        drawn.append((asked.a, asked.b))
        if asked.b == 12:
            raise ValueError("12 is too much.")
        return View(svg.picture(1, 1), "")

    lab = Panel(made(Two, show, presets={"nine?": {"a": 9}}))
    lab.set(a=1, b=2)
    lab.set(a=3, b="many")
    assert lab.screen.mistake.startswith("b cannot be 'many'.")
    assert lab.screen.stale, "a has moved, and the picture has not"
    lab.set(b=4)
    assert lab.screen.mistake == ""
    assert not lab.screen.stale
    lab.set(a=9, b=12)  # which b can be from now on
    lab.preset("nine?")  # what is nonsense beside it goes
    assert lab.screen.mistake == ""
    assert drawn == [(0, 0), (1, 2), (3, 4), (9, 12), (9, 12), (9, 0)]


@dataclass(frozen=True)
class Power:
    n: int = power_of_two("ones", 4, 40, play=True)


def test_a_slider_of_powers_shows_the_number_and_its_answer_is_the_exponent():
    lab = Panel(made(Power, lambda asked, found: draw(asked.n)))
    slider, readout, play = lab.controls["n"].children
    assert readout.value == "2^4 = 16"
    slider.index = 12  # to where a reader drags it, or the button beside it moves it
    assert (readout.value, lab.screen.meaning) == ("2^12 = 4,096", "n is 12")
    slider.index = 40
    assert (readout.value, lab.screen.meaning) == ("2^40 ≈ 1.1 trillion", "n is 40")
    lab.set(n=9)
    assert (slider.index, play.max) == (9, 40)
    for nonsense in (1.5, None):
        lab.set(n=nonsense)
        assert lab.screen.mistake.startswith("ones cannot be")
    lab.session.move("n", 0, "2^99")  # as a page could send it
    assert "“2^99” is no power of two from 1 to 2^40." in lab.session.shown["mistake"]


@pytest.mark.parametrize(
    ("typed", "exponent"),
    [
        ("16", 16),
        ("0", 0),
        ("65536", 16),
        ("65,536", 16),
        ("2^16", 16),
        ("2**3", 3),  # and not 8, as somebody who writes 8 means the exponent
        ("2¹⁶", 16),
        ("64 * 1024", 16),
        ("1", 1),
        (" 2^17 = 65,536 ", 17),  # the words of the field, in which the exponent was changed
        ("2^39 ≈ 1.1 trillion", 39),
        ("64", 6),  # above the largest exponent, it can only be the number
    ],
)
def test_beside_a_slider_of_powers_an_exponent_or_a_number_is_typed(typed, exponent):
    lab = Panel(made(Power, lambda asked, found: draw(asked.n)))
    slider, readout, _ = lab.controls["n"].children
    readout.value = typed
    assert lab.screen.mistake == ""
    assert (slider.index, lab.screen.meaning) == (exponent, f"n is {exponent}")
    assert readout.value == slider.options[exponent], "the field says how it was understood"


@pytest.mark.parametrize("typed", ["many", "", "-1", "1.5", "60000", "2^41", "1/2", "9" * 5000])
def test_nonsense_beside_a_slider_of_powers_gets_a_sentence_and_the_slider_stays(typed):
    lab = Panel(made(Power, lambda asked, found: draw(asked.n)))
    slider, readout, _ = lab.controls["n"].children
    readout.value = "12"
    readout.value = typed
    repeated = typed if len(typed) < 40 else f"{typed[:30]} …"
    assert lab.screen.mistake == (
        f"“{repeated}” is no power of two from 1 to 2^40. Type its exponent, like 10, or the "
        "number itself, like 1024 or 2^10."
    )
    assert (slider.index, readout.value) == (12, "2^12 = 4,096")
    assert not lab.screen.stale, "the picture is of 2^12, where the slider still is"
    readout.value = "12"
    assert (lab.screen.mistake, lab.screen.meaning) == ("", "n is 12")


def test_controls_that_are_seldom_used_are_folded_until_a_button_or_a_preset_brings_them():
    def show(asked, found):
        return draw(asked.a + asked.b)

    presets = {"as at first?": {"a": 1, "b": 0}, "two?": {"b": 2}}
    lab = Panel(made(Two, show, rows=(("a",),), more=(("b",),), presets=presets))
    first, folded, *_ = lab.children
    assert lab.controls["a"] in first.children
    assert lab.controls["b"] in folded.children

    def is_open():
        return "course-folded" not in folded._dom_classes

    assert not is_open()
    button(lab, "More controls").click()
    assert is_open()
    button(lab, "Fewer controls").click()
    assert not is_open()
    button(lab, "as at first?").click()
    assert not is_open(), "none of them has changed"
    button(lab, "two?").click()
    assert is_open(), "one has changed, and is seen"
    button(lab, "Fewer controls").click()
    lab.controls["a"].value = 3
    assert not is_open(), "the reader has folded them"
    assert lab.screen.meaning == "n is 5"
    alone = Panel(made(Two, show, rows=(("a",),), more=(("b",),)), "b")
    assert alone.controls["b"] in alone.children[0].children, "a figure has what it names"


def test_a_name_that_does_not_exist_gets_a_sentence_with_those_that_do():
    lab = small_lab()
    lab.set(m=1)
    assert lab.screen.mistake == "This lab has no control m. It has: n."
    for what, use in (("preset", lab.preset), ("job", lab.start), ("action", lab.act)):
        use("nope")
        assert lab.screen.mistake == f"This lab has no {what} nope. It has: none."


def test_buttons_do_what_their_names_say():
    kept = [1, 2]

    def clear(n):
        kept.clear()
        return Change()

    def show(n):
        rows = [[str(number)] for number in kept]
        return View(svg.picture(1, 1), f"{n}, {len(kept)} kept", table=[["n"], *rows])

    lab = small_lab(show, presets={"seven": {"n": 7}}, actions={"Clear": clear})
    button(lab, "seven").click()
    assert lab.screen.meaning == "7, 2 kept"
    assert lab.screen.table == [["n"], ["1"], ["2"]]
    button(lab, "Clear").click()
    assert lab.screen.meaning == "7, 0 kept"
    assert lab.screen.table == [["n"]]


# Jobs.


class Waits:
    """A lab whose job begins, and goes on once `go` is set; at its end the lab is drawn anew."""

    def __init__(self, steps=1000, show=draw):
        self.steps = steps
        self.go = threading.Event()
        self.begun = []  # what was asked when a job began
        self.lab = small_lab(show, jobs={"work": self.job})

    def job(self, n):
        self.begun.append(n)
        for step in range(self.steps):
            yield Progress(step / self.steps, f"step {step}")
            self.go.wait(10)
        yield Progress(1, "all steps done", Change())

    def ends(self):
        """Let the job go on, and return what it says at its end."""
        self.go.set()
        self.lab.wait(10)
        return self.lab.screen.report


def test_a_job_runs_once_at_a_time_while_the_panel_stays_awake_and_stops_at_its_next_step():
    waits = Waits()
    lab = waits.lab
    work = button(lab, "work")
    stop = button(lab, "Stop")
    progress = []
    lab.stop()  # with nothing to stop
    assert (work.disabled, stop.disabled) == (False, True)
    lab.screen.observe(lambda change: progress.append(change.new), "progress")
    for _ in range(2):  # the second click while it runs
        work.click()
    assert (work.disabled, stop.disabled) == (True, False)
    lab.set(n=5)
    assert lab.screen.meaning == "n is 5"
    stop.click()
    assert waits.ends().startswith("Stopped. step")
    assert (work.disabled, stop.disabled) == (False, True)
    assert progress[0] >= 0 > progress[-1]
    waits.steps = 3
    work.click()
    assert waits.ends() == "all steps done"
    assert waits.begun == [3, 5]


def test_a_job_that_is_done_is_not_said_to_be_stopped():
    waits = Waits(steps=1)
    waits.lab.start("work")
    wait_until(lambda: waits.lab.screen.report == "step 0", "its only step is done")
    waits.lab.stop()
    assert waits.ends() == "all steps done"


@pytest.mark.parametrize("end", [lambda lab: small_lab(), Panel.close])
def test_running_the_cell_again_or_closing_the_panel_stops_its_job(end):
    waits = Waits()
    waits.lab.start("work")
    end(waits.lab)
    assert waits.ends().startswith("Stopped.")


def test_a_job_ends_with_a_sentence_when_it_has_had_its_time(monkeypatch):
    monkeypatch.setattr("course_utils.engine.labs.session.LONGEST_S", -1)
    waits = Waits()
    waits.lab.start("work")
    with pytest.raises(ValueError, match="the most that a lab waits"):
        waits.ends()
    assert waits.lab.screen.failed


def test_a_failure_is_shown_until_the_reader_goes_on_and_before_the_next_job_can_start():
    disabled = []

    def job(n):
        try:
            yield Progress(0, "so far so good")
        finally:
            disabled.append(button(lab, "work").disabled)
            raise OSError("could not clean up")

    lab = small_lab(jobs={"work": job})
    lab.start("work")
    with pytest.raises(OSError, match="could not clean up"):
        lab.wait(10)
    assert lab.screen.report.endswith("OSError: could not clean up")
    assert lab.screen.failed
    lab.set(n=6)
    assert lab.screen.report == ""
    assert disabled == [True]


def test_what_a_job_found_goes_as_soon_as_something_else_is_asked():
    waits = Waits()
    waits.lab.start("work")
    assert waits.ends() == "all steps done"
    waits.lab.controls["n"].value = 4
    assert waits.lab.screen.report == ""


def test_a_mistake_of_the_reader_does_not_end_the_job():
    waits = Waits()
    waits.lab.start("work")
    waits.lab.set(n=13)
    assert waits.ends() == "all steps done"
    assert waits.lab.screen.mistake == "13 is not allowed here; take 12."


def test_a_job_that_reports_all_the_time_is_shown_ten_times_a_second(monkeypatch):
    now_s = [0.0]
    clock = types.SimpleNamespace(monotonic=lambda: now_s[0])
    monkeypatch.setattr("course_utils.engine.labs.panel.time", clock)

    def job(n):
        for step in range(1024):
            yield Progress(step / 1024, f"step {step}")
            now_s[0] += 1 / 128
        yield Progress(1, "done")

    lab = small_lab(jobs={"work": job})
    reports = []
    lab.screen.observe(lambda change: reports.append(change.new), "report")
    lab.start("work")
    lab.wait()
    # 13 / 128 s is the first above 0.1.
    assert reports == [*(f"step {step}" for step in range(0, 1024, 13)), "done"]


def test_a_job_draws_the_state_of_the_moment_not_that_of_its_start():
    drawn = []

    def show(n):
        drawn.append(n)
        return draw(n)

    waits = Waits(show=show)
    waits.lab.start("work")
    waits.lab.set(n=7)
    assert waits.ends() == "all steps done"
    assert drawn == [3, 7, 7, 7]  # at first, by the reader, by the job, and at its end
    assert waits.lab.screen.meaning == "n is 7"
    assert waits.begun == [3]


def test_where_a_front_end_shows_nothing_from_threads_a_job_runs_in_the_click(monkeypatch):
    monkeypatch.setitem(sys.modules, "google.colab", types.ModuleType("google.colab"))
    waits = Waits(steps=2)
    waits.go.set()
    work = button(waits.lab, "work")
    work.click()
    assert waits.lab.screen.report == "all steps done"
    assert not work.disabled


def test_there_stop_says_what_to_do_instead_and_an_interrupted_job_ends(monkeypatch):
    def job(n):
        yield Progress(0.5, "half")
        assert button(lab, "To stop: Runtime → Interrupt execution").disabled
        raise KeyboardInterrupt

    monkeypatch.setitem(sys.modules, "google.colab", types.ModuleType("google.colab"))
    lab = small_lab(jobs={"work": job})
    work = button(lab, "work")
    work.click()
    assert lab.screen.report == "Stopped."
    assert lab.screen.progress == -1
    assert not work.disabled


def test_a_drawing_is_never_overtaken_by_another():
    inside = threading.Semaphore(1)
    overlaps = []

    def show(n):
        overlaps.append(not inside.acquire(blocking=False))
        time.sleep(0.002)
        inside.release()
        return View(svg.picture(1, 1), "")

    def job(n):
        for _ in range(50):
            yield Progress(0, "", Change())

    lab = small_lab(show, jobs={"work": job})
    lab.start("work")
    for n in [1, 2] * 25:
        lab.set(n=n)
    lab.wait()
    drawings = 1 + 50 + 50 + 1  # the first, the job's, the reader's, and the one at the job's end
    assert overlaps == [False] * drawings


# What is drawn.


def test_words_never_become_markup():
    text = svg.text(0, 0, "<script>&</script>", class_='"><b>')
    (words,) = ElementTree.fromstring(svg.picture(1, 1, text))
    assert words.text == "<script>&</script>"
    assert words.get("class") == '"><b>'


def test_the_still_picture_has_its_size_its_colours_and_its_letters():
    shapes = ("", svg.rect(0, 0, 9, 9, class_="sign"), svg.text(0, 15, "bits"))
    pictures = [still.still_png(svg.picture(40, 20, shape)) for shape in shapes]
    width = int.from_bytes(pictures[0][16:20], "big")
    height = int.from_bytes(pictures[0][20:24], "big")
    assert (width, height) == (1400, 700)
    assert len(set(pictures)) == 3
    assert "var(" not in still.STILL_CSS
    assert "$" not in still.PICTURE_CSS


def test_no_rule_for_a_picture_reaches_beyond_it():
    rules = re.sub(r"/\*.*?\*/", "", still.PAGE_CSS, flags=re.DOTALL)
    selectors = []
    for rule in re.findall(r"([^{}]+)\{[^}]*\}", rules):
        selectors += rule.split(",")
    assert len(selectors) > 100
    assert {selector.split()[0] for selector in selectors} == {".course-picture"}
