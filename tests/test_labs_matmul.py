"""The matmul lab's answers; test_browser_flops.py looks at them from outside."""

import dataclasses
import math
import re
import time
import xml.etree.ElementTree as ElementTree

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from course_utils import labs, machines
from course_utils.datasheets import MACHINES, Machine
from course_utils.labs.matmul import jobs
from course_utils.labs.matmul.asked import Product
from course_utils.quantities import seconds_text
from tests.test_machines import CORE
from tests.words import words


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
    lab.set(b=b, guess=guess, dtype=dtype, where=lab.controls["where"].options[1:][where % 7][1])
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
    assert re.search(r"1 ms, [\d.,]+ times what is measured", words(matmul))
    head, row = matmul.screen.table
    assert row[:5] == ["this machine", "32", "32", "32", "fp32"]
    assert (
        row[head.index("of the peak")]
        in re.search(r"[\d.]+ % of what large products reach", words(matmul))[0]
    )
    assert "Measured: " in matmul.screen.meaning
    assert 'class="measured"' in matmul.screen.svg
    matmul.set(b=64)
    assert "Measured" not in matmul.screen.meaning


def test_history_keeps_each_time_until_it_is_cleared(matmul):
    matmul.set(b=16, d=16, k=16)
    for _ in range(2):
        matmul.start("Time it")
        matmul.wait()
    assert [row[1:5] for row in matmul.screen.table[1:]] == [["16", "16", "16", "fp32"]] * 2
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
    monkeypatch.setattr("course_utils.workers.products.matmul_call", None)  # whoever calls it fails otherwise
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
    expected = f"Recorded at the nearest size (256 × 1,024 × 1,024): {seconds_text(seconds)}."
    assert expected in lab.screen.meaning
    assert "Time along K, at 256 × 1,024 × ·" in words(lab)
    lab.set(guess="3 ms")
    assert " times what is predicted" in words(lab)
    for _ in range(2):  # the same each time
        lab.start("Time it")
        lab.wait()
    _, row = lab.screen.table
    assert row[:4] == [f"{recording.machine.name} (recorded)", "256", "1,024", "1,024"]
    lab.start("Sweep")
    lab.wait()
    assert lab.screen.report == "6 products recorded along K, at 256 × 1,024 × ·."


def test_mfu_is_against_the_data_sheet_and_says_so_where_there_is_one(monkeypatch, a_core):
    gpu = dataclasses.replace(a_core, has_data_sheet=True)
    monkeypatch.setattr("course_utils.machines.this_machine", lambda: gpu)
    lab = labs.matmul_lab()
    lab.set(b=32, d=32, k=32)
    lab.start("Time it")
    lab.wait()
    assert "% of the data sheet's peak (MFU)" in words(lab)


def test_what_may_take_long_is_judged_with_a_margin_and_runs_apart(monkeypatch, a_core):
    monkeypatch.setattr("course_utils.machines.device", lambda: "cpu", raising=False)
    apart = [
        jobs.runs_apart(Product(*asked), a_core)
        for asked in (
            (1024, 1024, 1024, "fp32"),  # 21 ms at the peak
            (2048, 2048, 2048, "fp32"),  # 172 ms
            (512, 512, 512, "fp16"),  # predicted too well, without units for it
            (2**20, 1024, 1, "fp32"),  # 4 GiB have to be filled first
        )
    ]
    assert apart == [False, True, True, True]


def test_a_machine_on_paper_is_not_the_recording_of_the_same_name():
    by_openxla = machines.recordings()["H100 SXM, by OpenXLA"]
    assert Product(1, 1, 1, "bf16", "H100 SXM").recording is None
    assert Product(1, 1, 1, "bf16", "H100 SXM, by OpenXLA").recording is by_openxla
    assert Product(1, 1, 1, "bf16", f"{CORE} (recorded)").recording is machines.recordings()[CORE]


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
    assert f"{1e-3 / products[size]:.3g} times what is measured" in words(lab)
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
    assert "In doubt and left out: 15 in fp8." in words(lab)
    assert (
        "Recorded by OpenXLA at the nearest size (" in lab.screen.meaning
    )  # a neighbour: that one is set apart itself
    for dtype in ("bf16", "fp16", "fp32"):
        lab.set(dtype=dtype)
        assert "In doubt" not in words(lab)
    lab.set(where="MI355X, by AMD", dtype="fp32")
    assert "not recorded in fp32; there are: bf16, fp8" in words(lab)
    for label in ("Time it", "Sweep"):
        lab.start(label)
        with pytest.raises(ValueError, match=r"'fp32' was not recorded on MI355X\. There are: bf16, fp8\."):
            lab.wait()
    assert lab.screen.table == []
    lab.set(dtype="tf32")
    assert "No dense peak for 'tf32' on MI355X." in lab.screen.mistake
    lab.set(where="A100 SXM", dtype="bf16")
    assert "only on paper: no such machine here, and no recording" in words(lab)
    assert f"{MACHINES['A100 SXM'].source}." in words(lab)
    lab.set(where=f"{CORE} (recorded)", dtype="fp32")


def test_a_product_that_exceeds_the_labs_patience_is_ended(matmul, monkeypatch):
    monkeypatch.setattr(jobs, "LONGEST_S", 1e-4)  # more than it is predicted to take
    matmul.set(b=32, d=32, k=32)
    matmul.start("Time it")
    with pytest.raises(ValueError, match="which is the most that this lab waits"):
        matmul.wait()


@pytest.mark.parametrize("job", ["Time it", "Sweep"])
def test_a_dtype_that_the_machine_lacks_gets_its_sentence_from_a_job_too(matmul, job):
    matmul.set(dtype="tf32")
    assert "No dense peak for 'tf32' on a core." in matmul.screen.mistake
    matmul.start(job)
    with pytest.raises(ValueError, match="No dense peak for 'tf32' on a core"):
        matmul.wait()
