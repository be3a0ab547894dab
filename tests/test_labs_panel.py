"""The panel every lab stands on; test_browser.py looks at it from outside."""

import base64
import threading
import time
import types
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass

import pytest

from course_utils import labs
from course_utils.labs.draw import still, svg
from course_utils.labs.fields import whole
from course_utils.labs.lab import Change, Lab, Progress, View
from course_utils.labs.panel import Panel
from tests.hostile import button
from tests.small_lab import small_lab


def test_the_first_state_is_drawn_at_once_and_a_broken_lab_fails_its_cell():
    assert small_lab().screen.meaning == "n is 3"

    def broken(n):
        raise ValueError("no first state")

    with pytest.raises(ValueError, match="no first state"):
        small_lab(broken)


def test_moving_a_control_moves_picture_and_meaning():
    lab = small_lab()
    lab.controls["n"].value = 7
    assert lab.screen.meaning == "n is 7"
    assert ">7</text>" in lab.screen.svg


@dataclass(frozen=True)
class Two:
    a: int = whole("a", 0, 0, 9)
    b: int = whole("b", 0, 0, 9)


def test_several_controls_move_with_one_drawing():
    drawn = []

    def show(a, b):
        drawn.append((a, b))
        return View(svg.picture(1, 1), "")

    lab = Panel(Lab("Two", Two, lambda asked, found: show(asked.a, asked.b)))
    lab.set(a=1, b=2)
    assert drawn == [(0, 0), (1, 2)]


def test_nonsense_is_a_sentence_in_the_panel_and_the_next_good_input_clears_it():
    lab = small_lab()
    lab.controls["n"].value = 13
    assert lab.screen.mistake == "13 is not allowed here; take 12."
    assert isinstance(lab.error, ValueError)
    lab.controls["n"].value = 12
    assert (lab.screen.mistake, lab.screen.meaning, lab.error) == ("", "n is 12", None)


def test_a_fault_of_the_lab_stands_in_the_panel_and_reaches_the_test():
    lab = small_lab()
    with pytest.raises(RuntimeError, match="a fault of the lab"):
        lab.controls["n"].value = 14
    assert "not your doing: RuntimeError: a fault of the lab" in lab.screen.mistake


def test_a_control_that_is_not_there_is_named_with_those_that_are():
    lab = small_lab()
    lab.set(m=1)
    assert lab.screen.mistake == "This lab has no control m. It has: n."


def waiting_job(go: threading.Event, steps: int = 1000):
    """A job that begins, and goes on once it may."""

    def job(n):
        for step in range(steps):
            yield Progress(step / steps, f"step {step}")
            go.wait(10)
        yield Progress(1, "all steps done")

    return job


def test_a_job_runs_once_at_a_time_while_the_panel_stays_awake_and_stops_at_its_next_step():
    go, begun = threading.Event(), []

    def job(n):
        begun.append(n)
        yield from waiting_job(go)(n)

    lab = small_lab(jobs={"work": job})
    lab.start("work")
    lab.start("work")  # a second click while it runs
    lab.controls["n"].value = 5
    assert lab.screen.meaning == "n is 5"
    lab.stop()
    go.set()
    lab.wait(10)
    assert begun == [3]
    assert lab.screen.report.startswith("Stopped. step")


def test_a_job_ends_with_a_sentence_when_it_has_had_its_time(monkeypatch):
    monkeypatch.setattr("course_utils.labs.jobs.LONGEST_S", 0.05)

    def endless(n):
        while True:
            time.sleep(0.01)
            yield Progress(0.5, "on and on")

    lab = small_lab(jobs={"Go": endless})
    lab.start("Go")
    with pytest.raises(ValueError, match="the most that a lab waits"):
        lab.wait()
    assert lab.screen.failed


def test_after_stop_a_job_can_be_started_again_and_runs_to_its_end():
    go = threading.Event()
    go.set()
    lab = small_lab(jobs={"work": waiting_job(go, steps=3)})
    lab.stop()  # with nothing to stop
    for _ in range(2):
        lab.start("work")
        lab.wait(10)
        assert lab.screen.report == "all steps done"


def test_buttons_do_what_their_names_say_and_are_grey_while_they_cannot():
    go = threading.Event()
    lab = small_lab(jobs={"work": waiting_job(go)}, presets={"seven": {"n": 7}})
    button(lab, "seven").click()
    assert lab.screen.meaning == "n is 7"
    assert button(lab, "Stop").disabled
    progress = []
    lab.screen.observe(lambda change: progress.append(change.new), "progress")
    button(lab, "work").click()
    assert (button(lab, "work").disabled, button(lab, "Stop").disabled) == (True, False)
    button(lab, "Stop").click()
    go.set()
    lab.wait(10)
    assert (button(lab, "work").disabled, button(lab, "Stop").disabled) == (False, True)
    assert progress[0] >= 0 > progress[-1]


def test_a_jobs_failure_stays_in_the_panel_while_the_reader_goes_on_and_wait_raises_it():
    def job(n):
        yield Progress(0, "so far so good")
        raise OSError("no room")

    lab = small_lab(jobs={"work": job})
    lab.start("work")
    with pytest.raises(OSError, match="no room"):
        lab.wait(10)
    lab.set(n=5)
    assert "OSError: no room" in lab.screen.report
    assert lab.screen.failed
    with pytest.raises(OSError, match="no room"):
        lab.wait(10)


def test_the_readers_mistake_is_not_the_jobs():
    def job(n):
        yield Progress(1, "done", Change())

    lab = small_lab(jobs={"work": job})
    lab.set(n=13)
    lab.start("work")
    lab.set(n=13)
    lab.wait(10)
    assert lab.screen.mistake == "13 is not allowed here; take 12."
    assert lab.screen.report == "done"


def test_of_a_job_that_reports_at_every_turn_the_page_hears_ten_times_a_second(monkeypatch):
    now_s = [0.0]
    monkeypatch.setattr("course_utils.labs.panel.time", types.SimpleNamespace(monotonic=lambda: now_s[0]))

    def job(n):
        for step in range(1024):
            yield Progress(step / 1024, f"step {step}")
            now_s[0] += 1 / 128
        yield Progress(1, "done")

    lab, reports = small_lab(jobs={"work": job}), []
    lab.screen.observe(lambda change: reports.append(change.new), "report")
    lab.start("work")
    lab.wait()
    assert reports == [
        *(f"step {step}" for step in range(0, 1024, 13)),
        "done",
    ]  # 13 / 128 s is the first above 0.1


def test_what_a_job_cleans_up_is_done_before_the_next_one_can_start():
    cleaned = []

    def job(n):
        try:
            while True:
                yield Progress(0, "working")
        finally:
            cleaned.append(button(lab, "work").disabled)
            raise OSError("could not clean up")

    lab = small_lab(jobs={"work": job})
    lab.start("work")
    lab.stop()
    with pytest.raises(OSError, match="could not clean up"):
        lab.wait(10)
    assert cleaned == [True]


def test_a_job_draws_the_state_of_the_moment_not_that_of_its_start():
    moved, drawn = threading.Event(), []

    def show(n):
        drawn.append(n)
        return View(svg.picture(1, 1, svg.text(0, 0, f"{n}")), f"n is {n}")

    def job(n):
        yield Progress(0, "begun")
        moved.wait(10)
        yield Progress(1, f"found for {n}", Change())

    lab = small_lab(show, jobs={"work": job})
    lab.start("work")
    lab.set(n=7)
    moved.set()
    lab.wait(10)
    assert drawn == [3, 7, 7, 7]  # at first, by the reader, by the job, and at its end
    assert (lab.screen.meaning, lab.screen.report) == ("n is 7", "found for 3")


def test_a_drawing_is_never_overtaken_by_another():
    inside, overlaps = threading.Semaphore(1), []

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
    assert overlaps == [False] * (1 + 50 + 50 + 1)  # the first, the job's, the reader's, and at the job's end


def test_running_the_cell_again_stops_the_job_of_the_panel_that_it_replaces():
    go = threading.Event()
    former = small_lab(jobs={"work": waiting_job(go)})
    former.start("work")
    small_lab()
    go.set()
    former.wait(10)
    assert former.screen.report.startswith("Stopped.")


def test_closing_a_panel_stops_its_job_and_closes_its_controls():
    go = threading.Event()
    lab = small_lab(jobs={"work": waiting_job(go)})
    lab.start("work")
    lab.close()
    go.set()
    lab.wait(10)
    assert lab.controls["n"].comm is None


def test_an_action_is_done_at_once():
    kept = [1, 2]

    def clear(n):
        kept.clear()
        return Change()

    lab = small_lab(
        lambda n: View(svg.picture(1, 1), f"{len(kept)} kept", table=[["n"], *([str(k)] for k in kept)]),
        actions={"Clear": clear},
    )
    assert lab.screen.table == [["n"], ["1"], ["2"]]
    button(lab, "Clear").click()
    assert (lab.screen.meaning, lab.screen.table) == ("0 kept", [["n"]])


def test_a_value_that_a_control_cannot_take_moves_nothing():
    lab = small_lab()
    lab.set(n="many")
    assert lab.screen.mistake.startswith("n cannot be 'many'.")
    assert lab.controls["n"].value == 3
    for wrong in (lab.preset, lab.start, lab.act):
        wrong("nope")
        assert "This lab has no" in lab.screen.mistake


def test_words_never_become_markup():
    tree = ElementTree.fromstring(svg.picture(1, 1, svg.text(0, 0, "<script>&</script>", class_='"><b>')))
    (words,) = tree
    assert words.text == "<script>&</script>"
    assert words.get("class") == '"><b>'


def png_size(png: bytes) -> tuple[int, int]:
    assert png.startswith(b"\x89PNG")
    return int.from_bytes(png[16:20], "big"), int.from_bytes(png[20:24], "big")


def test_a_lab_leaves_a_picture_and_a_text_beside_the_widget():
    bundle, metadata = labs.float_lab()._repr_mimebundle_()
    assert set(bundle) == {"application/vnd.jupyter.widget-view+json", "image/png", "text/plain"}
    width, height = png_size(base64.b64decode(bundle["image/png"]))
    assert width == 1400
    assert height > 600
    assert bundle["text/plain"].startswith(
        "Float lab. The number 0.1 is too small for E2M1; exact in none of the eight"
    )
    assert "run this cell" in bundle["text/plain"]
    assert bundle["text/plain"].startswith(metadata["image/png"]["alt"])


def test_the_still_picture_has_its_colours_and_its_letters():
    plain = still.still_png(svg.picture(40, 20))
    assert still.still_png(svg.picture(40, 20, svg.rect(0, 0, 9, 9, class_="sign"))) != plain
    assert still.still_png(svg.picture(40, 20, svg.text(0, 15, "bits"))) != plain
    assert "var(" not in still.STILL_CSS
    assert "$" not in still.PICTURE_CSS
