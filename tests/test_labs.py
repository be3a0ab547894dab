"""The panel every lab stands on, and the float lab's answers; test_browser.py looks at them from outside."""

import base64
import csv
import dataclasses
import io
import math
import re
import sys
import threading
import time
import types
import xml.etree.ElementTree as ElementTree

import ipywidgets as widgets
import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from course_utils import floats, labs, machines
from course_utils.datasheets import MACHINES, Machine
from course_utils.labs import panel, svg
from course_utils.labs.matmul_picture import Asked
from course_utils.labs.panel import Download, Panel, Progress, View
from course_utils.quantities import seconds_text
from tests.hostile import button
from tests.test_machines import CORE
from tests.words import boxes


def small_lab(show=None, **options):
    """A lab of one slider that draws its number."""

    def draw(n):
        if n == 13:
            raise ValueError("13 is not allowed here; take 12.")
        if n == 14:
            raise RuntimeError("a fault of the lab")
        return View(svg.picture(10, 10, svg.text(0, 9, str(n))), f"n is {n}")

    return Panel("Small lab", show or draw, {"n": widgets.IntSlider(3, 0, 20)}, **options)


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


def test_several_controls_move_with_one_drawing():
    drawn = []

    def show(a, b):
        drawn.append((a, b))
        return View(svg.picture(1, 1), "")

    lab = Panel("Two", show, {"a": widgets.IntSlider(0), "b": widgets.IntSlider(0)})
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
    monkeypatch.setattr("course_utils.labs.panel.LONGEST_S", 0.05)

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
        yield Progress(1, "done", changed=True)

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
        yield Progress(1, f"found for {n}", changed=True)

    lab = small_lab(show, jobs={"work": job})
    lab.start("work")
    lab.set(n=7)
    moved.set()
    lab.wait(10)
    assert drawn == [3, 7, 7]
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
            yield Progress(0, "", changed=True)

    lab = small_lab(show, jobs={"work": job})
    lab.start("work")
    for n in [1, 2] * 25:
        lab.set(n=n)
    lab.wait()
    assert overlaps == [False] * (1 + 50 + 50)  # the first, the job's and the reader's


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


def test_an_action_is_done_at_once_and_may_hand_the_reader_a_file():
    kept, sent = [1, 2], []

    def clear(n):
        kept.clear()
        return Download("kept.csv", "n\n")

    lab = small_lab(
        lambda n: View(svg.picture(1, 1), f"{len(kept)} kept", table=[["n"], *([str(k)] for k in kept)]),
        actions={"Clear": clear},
    )
    lab.screen.send = sent.append
    assert lab.screen.table == [["n"], ["1"], ["2"]]
    button(lab, "Clear").click()
    assert (lab.screen.meaning, lab.screen.table) == ("0 kept", [["n"]])
    assert sent == [{"download": "kept.csv", "text": "n\n"}]


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
    assert bundle["text/plain"].startswith("Float lab. 0.1 is exact in none of the eight")
    assert "run this cell" in bundle["text/plain"]
    assert bundle["text/plain"].startswith(metadata["image/png"]["alt"])


@pytest.mark.parametrize("name", [name for name in labs.__all__ if name.endswith("_lab")])
def test_a_still_picture_says_below_it_how_to_bring_the_lab_to_life(name):
    lab = getattr(labs, name)()
    drawn = lab.screen.svg
    still = svg.captioned(drawn, panel.STILL)
    *_, (words, left, top, right, _) = boxes(still)
    assert words == "A picture of a live lab. To move its controls, run its cell in JupyterLab (Shift+Enter)."
    width = float(re.search(r'viewBox="0 0 (\S+) ', drawn)[1])
    assert 0 < left < right < width
    assert top > max(bottom for *_, bottom in boxes(drawn))
    plain, told = (
        png_size(svg.still_png(drawn)),
        png_size(base64.b64decode(lab._repr_mimebundle_()[0]["image/png"])),
    )
    assert told[1] - plain[1] == pytest.approx(34 * 1400 / width, abs=2)
    assert panel.STILL not in lab.screen.svg
    lab.close()


def test_the_still_picture_has_its_colours_and_its_letters():
    plain = svg.still_png(svg.picture(40, 20))
    assert svg.still_png(svg.picture(40, 20, svg.rect(0, 0, 9, 9, class_="sign"))) != plain
    assert svg.still_png(svg.picture(40, 20, svg.text(0, 15, "bits"))) != plain
    assert "var(" not in svg.STILL_CSS
    assert "$" not in svg.PICTURE_CSS


# The float lab.


@pytest.mark.parametrize(
    "words", ["0.15625", "1e-8", "2^-24", "-3 * 2^-20", "−inf", "nan", "-0", "1e400", ".5", "7."]
)
def test_the_float_lab_takes_numbers_as_people_write_them(words):
    lab = labs.float_lab()
    lab.set(number=words)
    assert lab.screen.mistake == ""
    assert lab.screen.meaning.startswith(words)


@pytest.mark.parametrize(
    "words",
    ["", " ", "abc", "1e", "--1", "1_000", "٣", "0x10", "1e99999", "9" * 61, "2^2^2", "__import__('os')"],
)
def test_the_float_lab_answers_nonsense_with_a_sentence(words):
    lab = labs.float_lab()
    lab.set(number=words)
    assert lab.screen.mistake.endswith(".")
    lab.set(number="1")
    assert lab.screen.mistake == ""


@given(st.text(max_size=30), st.integers(-170, 140), st.booleans())
def test_the_float_lab_survives_any_text(words, power, saturate):
    lab = ANY_LAB
    lab.set(number=words, times_two_to_the=power, saturate=saturate)
    assert lab.error is None or re.search(
        r"(are enough for any number here|like fp16 0x3c01|an integer of \d+ bits.*)\.$",
        str(lab.error),
        re.DOTALL,
    )
    ElementTree.fromstring(lab.screen.svg)


ANY_LAB = labs.float_lab()


@pytest.mark.parametrize("fmt", list(floats.FORMATS))
def test_clicking_any_bit_of_any_format_flips_that_bit_alone(fmt):
    lab = labs.float_lab()
    for place in range(floats.FORMATS[fmt].bits):
        lab.set(number="0.1", times_two_to_the=3)
        before = shown_bits(lab, fmt)
        lab.pick(f"{fmt}:{place}")
        assert lab.error is None
        assert shown_bits(lab, fmt) == before ^ 1 << place


def shown_bits(lab: Panel, fmt: str) -> int:
    """The pattern that the picture shows for that format."""
    tree = ElementTree.fromstring(lab.screen.svg)
    rows = [node for node in tree.iter() if node.get("data-row") == fmt]
    return int("".join("1" if node.get("aria-checked") == "true" else "0" for node in rows), 2)


def test_a_nan_keeps_the_bits_that_were_clicked():
    lab = labs.float_lab()
    lab.set(number="fp16 0x7c00")
    lab.pick("fp16:0")
    assert lab.controls["number"].value == "fp16 0x7c01"
    assert shown_bits(lab, "fp16") == 0x7C01
    assert "NaN, not a number" in lab.screen.svg


@pytest.mark.parametrize(
    ("words", "saturate", "said"),
    [
        ("65520", False, "overflow: infinity"),
        ("65520", True, "overflow: held at 65504.0"),
        ("465", False, "overflow: NaN"),
        ("465", True, "overflow: held at 448.0"),
        ("1e-8", False, "underflow: 0"),
        ("2^-24", False, "subnormal, exact"),
        ("inf", False, "infinity"),
        ("nan", False, "E2M1 has no NaN: all 16 patterns are numbers"),
        ("257", False, "error -1"),
    ],
)
def test_what_happens_to_a_number_is_named(words, saturate, said):
    lab = labs.float_lab()
    lab.set(number=words, saturate=saturate)
    assert f">{said}</text>" in lab.screen.svg


def test_every_preset_is_a_state_worth_showing():
    lab = labs.float_lab()
    for label in lab._presets:
        lab.preset(label)
        assert lab.error is None
        assert label in lab.screen.meaning


def test_checking_every_pattern_counts_them_all_and_finds_no_difference(monkeypatch):
    monkeypatch.setattr("course_utils.measure.SMALL_FORMATS", ("fp16", "e4m3", "e2m1"))
    lab = labs.float_lab()
    job = "Check every pattern against torch and ml_dtypes"
    lab.start(job)
    lab.wait()
    assert lab.screen.report == "All 65,808 patterns of fp16, E4M3 and E2M1: 0 differ."
    monkeypatch.setattr("course_utils.measure.every_value", lambda fmt: [0.0, 0.5, 7.0])
    lab.start(job)
    lab.wait()
    assert "differ" in lab.screen.report
    assert ": 0 differ" not in lab.screen.report


# The matmul lab.


@pytest.fixture(scope="module")
def a_core():
    """A machine with round numbers, in place of this one."""
    return Machine(
        "a core",
        {"fp32": 100e9, "bf16": 200e9, "fp16": 1e9},
        bytes=2**30,
        bytes_per_sec=25e9,
        source="made up for a test",
        achieved_flop_per_sec={"fp32": 100e9, "bf16": 200e9, "fp16": 1e9},
        has_data_sheet=False,
    )


@pytest.fixture
def matmul(monkeypatch, a_core):
    """The matmul lab on that machine."""
    monkeypatch.setattr("course_utils.machines.this_machine", lambda: a_core)
    return labs.matmul_lab()


def words(lab):
    """All that the picture says."""
    return " ".join("".join(node.itertext()) for node in ElementTree.fromstring(lab.screen.svg))


def test_the_matmul_lab_shows_formula_and_prediction_with_the_numbers_filled_in(matmul):
    matmul.set(b=1024, d=256, k=64, dtype="fp32")
    assert "2·B·D·K = 2 · 1,024 · 256 · 64 = 33,554,432" in words(matmul)
    assert "= 1,376,256 bytes" in words(matmul)
    assert "33.6 MFLOPs / 100 GFLOP/s = 336 µs" in words(matmul)
    assert "1,376,256 / 25 GB/s = 55.1 µs" in words(matmul)
    assert "the larger of the two: 336 µs" in words(matmul)
    assert "arithmetic is the limit" in matmul.screen.meaning
    matmul.set(b=1)
    assert "memory is the limit" in matmul.screen.meaning


@pytest.mark.parametrize(
    ("typed", "size"), [("1,024", 1024), ("2^11", 2048), (" 7 ", 7), (33, 33), ("2**20", 2**20)]
)
def test_a_size_can_be_dragged_or_typed_as_people_write_it(matmul, typed, size):
    matmul.controls["b"].value = typed
    assert f"2 · {size:,} ·" in words(matmul)
    slider, field = matmul.controls["b"].children
    step = 2 ** (round(4 * math.log2(size)) / 4)  # the nearest that the slider has
    assert slider.value == pytest.approx(step)
    slider.value = math.nextafter(step, math.inf)  # as the page says when it has put it there
    assert f"2 · {size:,} ·" in words(matmul)
    slider.value = 512
    assert field.value == "512"
    assert "2 · 512 ·" in words(matmul)


@pytest.mark.parametrize(
    ("control", "typed"),
    [
        *(("b", words) for words in ("", "0", "-3", "1.5", "2^21", "2^999", "many", "1e3", "٣", "9" * 50)),
        *(("guess", words) for words in ("5", "fast", "5 apples", "-1 ms", "0 s", "ms", "1e999 s")),
    ],
)
def test_the_matmul_lab_answers_nonsense_with_a_sentence_and_recovers(matmul, control, typed):
    matmul.set(**{control: typed})
    assert matmul.screen.mistake.endswith(("is none.", "1,048,576, like 1024 or 2^10."))
    matmul.set(**{control: 4 if control == "b" else "3 ms"})
    assert matmul.screen.mistake == ""


@given(
    st.text(max_size=12), st.text(max_size=12), st.sampled_from(["fp32", "tf32", "fp8"]), st.integers(0, 8)
)
def test_the_matmul_lab_survives_any_text(b, guess, dtype, where):
    lab = RECORDED_LAB
    lab.set(b=b, guess=guess, dtype=dtype, where=lab.controls["where"].options[1:][where % 7])
    assert lab.error is None or str(lab.error).endswith(
        ("is none.", "bf16, fp16.", "fp16, fp64.", "fp16, fp8.", "fp16.")
    )
    ElementTree.fromstring(lab.screen.svg)


def recorded_lab():
    """The lab as it stands on the recorded machine, which takes no measuring."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("course_utils.machines.this_machine", lambda: MACHINES["H100 SXM"])
        lab = labs.matmul_lab()
        lab.set(where=f"{CORE} (recorded)")
    return lab


RECORDED_LAB = recorded_lab()


def test_timing_it_puts_a_measured_point_and_a_row_beside_the_prediction(matmul):
    matmul.set(b=32, d=32, k=32, dtype="fp32", guess="1 ms")
    matmul.start("Time it")
    matmul.wait()
    assert matmul.screen.report.startswith("Measured: ")
    assert "Your guess was" in matmul.screen.report
    head, row = matmul.screen.table
    assert row[:5] == ["this machine", "32", "32", "32", "fp32"]
    assert row[head.index("MFU")] == "no data sheet"
    assert "Measured: " in matmul.screen.meaning
    assert 'class="measured"' in matmul.screen.svg
    matmul.set(b=64)
    assert "Measured" not in matmul.screen.meaning


def test_history_can_be_saved_and_cleared(matmul):
    sent = []
    matmul.screen.send = sent.append
    matmul.act("Save history as CSV")
    assert "nothing to save" in matmul.screen.mistake
    matmul.set(b=16, d=16, k=16)
    for _ in range(2):
        matmul.start("Time it")
        matmul.wait()
    matmul.act("Save history as CSV")
    (message,) = sent
    rows = list(csv.DictReader(io.StringIO(message["text"])))
    assert [(row["b"], row["dtype"], row["flops"]) for row in rows] == [("16", "fp32", "8192")] * 2
    assert all(float(row["rate"]) == 8192 / float(row["seconds"]) for row in rows)
    matmul.act("Clear history")
    assert matmul.screen.table == []


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"b": 2**20, "d": 2**20, "k": 2**20}, "are free. Make it smaller."),
        ({"b": 4096, "d": 4096, "k": 4096, "dtype": "fp16"}, "This lab waits 60 s at most"),
        ({"where": "A100 SXM"}, "There is no A100 SXM here, and no recording of one"),
    ],
)
def test_what_cannot_run_is_said_before_and_not_run(matmul, monkeypatch, values, sentence):
    monkeypatch.setattr("course_utils.products.matmul_call", None)  # whoever calls it fails otherwise
    matmul.set(**values)
    assert matmul.screen.mistake == ""
    matmul.start("Time it")
    with pytest.raises(ValueError, match=sentence):
        matmul.wait()
    assert sentence in matmul.screen.report
    assert matmul.screen.table == []


def test_a_long_product_runs_in_a_process_that_stop_kills(matmul):
    matmul.set(b=1024, d=1024, k=1024, dtype="fp16")  # some seconds, by the made-up peak
    matmul.start("Time it")
    children, end = [], time.monotonic() + 20
    while not children and time.monotonic() < end:
        children = psutil.Process().children()
    assert children, matmul.screen.report
    matmul.stop()
    matmul.wait()
    assert matmul.screen.report.startswith("Stopped.")
    assert not any(child.is_running() for child in children)
    assert matmul.screen.table == []


def test_a_sweep_draws_every_product_that_takes_less_than_a_moment(matmul):
    matmul.set(b=64, d=64, k=64, dtype="fp16", sweep="K")  # at 1 GFLOP/s and worse, up to K = 2^11
    matmul.start("Sweep")
    matmul.wait()
    assert matmul.screen.report == "12 products along K."
    assert matmul.screen.svg.count('class="measured') >= 12 * 2  # in both plots
    matmul.set(b=2**20, d=2**20)
    matmul.start("Sweep")
    with pytest.raises(ValueError, match="takes too long to sweep"):
        matmul.wait()


def test_a_recorded_machine_shows_its_nearest_product_and_says_so():
    lab = RECORDED_LAB
    recording = machines.recordings()[CORE]
    lab.set(b=250, d=1000, k=1100, dtype="fp32", guess="", where=f"{recording.machine.name} (recorded)")
    seconds = recording.seconds_by_size["fp32"][256, 1024, 1024]
    assert f"Recorded at 256 × 1,024 × 1,024: {seconds_text(seconds)}." in lab.screen.meaning
    assert "Time along K, at 256 × 1,024 × ·" in words(lab)
    lab.set(guess="3 ms")
    lab.start("Time it")
    lab.wait()
    assert "Your guess was for other sizes: " in lab.screen.report
    assert lab.screen.report.endswith(" times what is predicted for them.")
    assert lab.screen.table[1][-2] == ""
    assert lab.screen.table[1][:4] == [f"{recording.machine.name} (recorded)", "256", "1,024", "1,024"]
    assert lab.screen.table[1][-1] == "recorded"
    lab.start("Sweep")
    lab.wait()
    assert lab.screen.report == "6 products were recorded along K, at 256 × 1,024 × ·."


def test_mfu_is_against_the_data_sheet_and_says_so_where_there_is_one(monkeypatch, a_core):
    gpu = dataclasses.replace(a_core, has_data_sheet=True, achieved_flop_per_sec={"fp32": 50e9})
    monkeypatch.setattr("course_utils.machines.this_machine", lambda: gpu)
    lab = labs.matmul_lab()
    lab.set(b=32, d=32, k=32)
    lab.start("Time it")
    lab.wait()
    assert "of the sheet" in words(lab)
    assert "of the largest rate" in words(lab)
    head, row = lab.screen.table
    share, achieved = (float(row[head.index(name)].rstrip("%")) for name in ("MFU", "of achieved"))
    assert achieved == pytest.approx(2 * share, rel=0.02, abs=0.2)


def test_what_may_take_long_is_judged_with_a_margin_and_runs_apart(monkeypatch, a_core):
    monkeypatch.setattr("course_utils.machines.this_machine", lambda: a_core)
    monkeypatch.setattr("course_utils.machines.device", lambda: "cpu")
    small, large = (Asked(n, n, n, "fp32", "this machine") for n in (1024, 2048))
    assert (small.runs_apart, large.runs_apart) == (False, True)  # 21 and 172 ms at the peak
    assert Asked(512, 512, 512, "fp16", "this machine").runs_apart  # predicted too well, without units for it
    assert Asked(2**20, 1024, 1, "fp32", "this machine").runs_apart  # 4 GiB have to be filled first


def test_a_machine_on_paper_is_not_the_recording_of_the_same_name():
    by_openxla = machines.recordings()["H100 SXM, by OpenXLA"]
    assert Asked(1, 1, 1, "bf16", "H100 SXM").recording is None
    assert Asked(1, 1, 1, "bf16", "H100 SXM, by OpenXLA").recording is by_openxla
    assert Asked(1, 1, 1, "bf16", f"{CORE} (recorded)").recording is machines.recordings()[CORE]


BY_OTHERS = [
    (name, dtype)
    for name, recording in machines.recordings().items()
    if recording.source
    for dtype in recording.seconds_by_size
]


@pytest.mark.parametrize(("name", "dtype"), BY_OTHERS)
def test_a_gpu_that_others_recorded_shows_all_its_products_and_whose_they_are(name, dtype):
    lab, recording = RECORDED_LAB, machines.recordings()[name]
    lab.act("Clear history")
    products = recording.seconds_by_size[dtype]
    size = max(products, key=math.prod)
    lab.set(where=name, dtype=dtype, **dict(zip("bdk", size, strict=True)), guess="1 ms", sweep="D")
    assert lab.screen.svg.count('class="measured past"') == len(products)
    assert f"Recorded by {recording.source.by}: {recording.source.where}." in words(lab)
    assert f"Recorded by {recording.source.by}: {seconds_text(products[size])}." in lab.screen.meaning
    lab.start("Time it")
    lab.wait()
    off = 1e-3 / products[size]
    assert f"Your guess was {off:.3g} times that." in lab.screen.report
    lab.start("Sweep")
    lab.wait()
    along = {(size[0], d, size[2]) for d in {d for _, d, _ in products}} & set(products)
    drawn = {tuple(int(side.replace(",", "")) for side in row[1:4]) for row in lab.screen.table[1:]}
    assert drawn == along
    assert {row[0] for row in lab.screen.table[1:]} == {name}
    assert {row[6] for row in lab.screen.table[1:]} == {"not said"}


def test_what_was_not_recorded_is_said_and_what_was_set_apart_too():
    lab = RECORDED_LAB
    lab.act("Clear history")
    lab.set(where="H100 SXM, by OpenXLA", dtype="fp8", b=4096, d=4096, k=4096, guess="")
    assert "Not drawn: 6 products in fp8, above the dense peak of the data sheet" in lab.screen.meaning
    assert "Not drawn: 9 products in fp8, in the same table" in lab.screen.meaning
    assert "Recorded by OpenXLA at " in lab.screen.meaning  # a neighbour: that one is set apart itself
    for dtype in ("bf16", "fp16", "fp32"):
        lab.set(dtype=dtype)
        assert "Not drawn" not in lab.screen.meaning
    lab.set(where="MI355X, by AMD", dtype="fp32")
    assert "not recorded in fp32; there are: bf16, fp8" in words(lab)
    assert "Not drawn: 125 products in f32, and the table does not say" in lab.screen.meaning
    for label in ("Time it", "Sweep"):
        lab.start(label)
        with pytest.raises(ValueError, match=r"'fp32' was not recorded on MI355X\. There are: bf16, fp8\."):
            lab.wait()
    assert lab.screen.table == []
    lab.set(dtype="tf32")
    assert "No dense peak for 'tf32' on MI355X." in lab.screen.mistake
    lab.set(where="A100 SXM", dtype="bf16")
    assert "only on paper; others reached 271 TFLOP/s with some shape, 87% of the peak" in words(lab)
    assert "Reached: mamf-finder's table" in words(lab)
    lab.set(dtype="fp32")
    assert "Reached" not in words(lab)
    lab.set(where=f"{CORE} (recorded)", dtype="fp32")


def test_a_product_that_exceeds_the_labs_patience_is_ended(matmul, monkeypatch):
    monkeypatch.setattr(sys.modules["course_utils.labs.matmul_lab"], "LONGEST_S", 0.0)
    matmul.set(b=32, d=32, k=32)
    matmul.start("Time it")
    with pytest.raises(ValueError, match="which is the most that this lab waits"):
        matmul.wait()
