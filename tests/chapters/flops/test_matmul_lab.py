"""The matmul lab's answers; test_browser_flops.py looks at them from outside."""

import dataclasses
import math
import re
from types import SimpleNamespace

import pytest

from course_utils.chapters import labs
from course_utils.chapters.flops.matmul_lab import jobs
from course_utils.chapters.flops.matmul_lab.asked import Found, Product
from course_utils.chapters.flops.matmul_lab.picture import ROOF, TIMES, view
from course_utils.core import measure
from course_utils.core.datasheets import MACHINES, Machine
from course_utils.core.say import rate_text, seconds_text
from course_utils.subjects import machines
from course_utils.subjects.child_processes import process, products
from tests.helpers.labs import centres, lines, nodes, opened, run, text_of
from tests.helpers.words import words
from tests.subjects.test_machines import CORE

A_CORE = Machine(
    "a core",
    {"fp32": 100e9, "bf16": 200e9, "fp16": 1e9},
    bytes=2**30,
    bytes_per_sec=25e9,
    source="made up for a test",
    achieved_flop_per_sec={"fp32": 100e9, "bf16": 200e9, "fp16": 1e9},
    has_data_sheet=False,
)
LAB = labs.lab_named("matmul")
RECORDED = f"{CORE} (recorded)"
BY_OPENXLA = "H100 SXM, by OpenXLA"


@pytest.fixture
def matmul(monkeypatch):
    """The lab on a machine with round numbers, in place of this one."""
    monkeypatch.setattr(jobs, "AT_MOST_S", 0.05)
    monkeypatch.setattr(jobs, "SWEEP_AT_MOST_S", 0.01)
    with opened("matmul", A_CORE) as lab:
        yield lab


def shown(found=None, **asked):
    """All that a view says."""
    if found is None:
        found = Found(A_CORE)
    return text_of(view(Product(**asked), found))


# What is predicted, and whose numbers these are.


SIZES = {"b": 1024, "d": 256, "k": 64}
IN_FP8 = {"where": "B200, by OpenXLA", "dtype": "fp8", "b": 4096, "d": 4096, "k": 4096}
IN_DOUBT = {"where": BY_OPENXLA, "dtype": "bf16", "b": 256, "d": 4096, "k": 256}
NOT_RECORDED = {"where": "MI355X, by AMD", "dtype": "fp32"}
ON_PAPER = {"where": "A100 SXM", "dtype": "bf16"}
SHOWN = [
    (SIZES, "2·B·D·K = 2 · 1,024 · 256 · 64 = 33,554,432"),
    (SIZES, "(B·D + D·K + B·K) · 4 = 1,376,256 bytes"),
    (
        SIZES,
        "33.6 MFLOPs / 100 GFLOP/s = 336 µs memory 1,376,256 bytes / 25 GB/s = 55.1 µs "
        "predicted the larger of the two: 336 µs",
    ),
    (
        SIZES,
        "24.4 FLOPs per byte, above the ridge of 4: "
        "compute-bound. Predicted: 336 µs, by measured peaks.",
    ),
    ({"b": 1, "d": 4096, "k": 4096, "dtype": "bf16"} | ON_PAPER, "1 FLOP per byte, below"),
    (SIZES | {"b": 1}, "0.49 FLOPs per byte, below the ridge of 4: memory-bound"),
    (SIZES, "measured not timed yet"),
    (IN_FP8, "(B·D + D·K) · 1 + B·K · 2 = 67,108,864 bytes"),
    (IN_DOUBT, "Recorded by OpenXLA at the nearest size ("),  # that one is left out itself
    (NOT_RECORDED, "not recorded in fp32; there are: bf16, fp8"),
    (
        ON_PAPER,
        "measured not here, only by its data sheet; this machine and recorded machines have times",
    ),
    (ON_PAPER, f"peaks A100 SXM: {MACHINES['A100 SXM'].source}."),
]


@pytest.mark.parametrize(("asked", "sentence"), SHOWN)
def test_what_is_predicted_and_recorded_is_shown_with_the_numbers_filled_in(asked, sentence):
    assert sentence in shown(**asked)


def done(job, asked, found):
    """What a job says last, and what is known then."""
    for step in job(asked, found):
        if step.change and step.change.found:
            found = step.change.found(found)
    return step.report, found


def along_a_log_axis(value, low, high, left, width):
    """Where a value lies on an axis that begins at `left`."""
    return left + width * math.log(value / low) / math.log(high / low)


def test_a_recorded_machine_shows_its_nearest_product_and_says_so():
    seconds = machines.recordings()[CORE].seconds_by_size["fp32"][256, 1024, 1024]
    values = {"b": 250, "d": 1000, "k": 1100, "where": RECORDED}
    asked = Product(**values)
    text = shown(**values)
    flops = 2 * 256 * 1024 * 1024
    nearest = f"Recorded at the nearest size (256 × 1,024 × 1,024): {seconds_text(seconds)}"
    assert f"{nearest}." in text
    assert f"{rate_text(flops / seconds)}, " in text

    _, (under_the_roof, _), (along_k, _) = centres(view(asked, Found()).picture, "measured")
    intensity = flops / (4 * (256 * 1024 + 1024 * 1024 + 256 * 1024))
    left, _, width, _ = ROOF
    expected = along_a_log_axis(intensity, 0.1, 10_000, left, width)
    assert under_the_roof == pytest.approx(expected, abs=0.1)
    left, _, width, _ = TIMES
    assert along_k == pytest.approx(left + width * 10 / 20, abs=0.1)  # 2^10 of 2^20

    _, found = done(LAB.time_it, asked, Found())
    said, again = done(LAB.time_it, asked, found)  # the same each time
    _, row = view(asked, again).table
    assert row[:4] == [RECORDED, "256", "1,024", "1,024"]
    assert said.startswith(f"{nearest}, ")


@pytest.mark.parametrize("n", [1, 2**20])
def test_the_roofline_reaches_as_far_as_the_product_that_is_asked_for(n):
    asked = Product(b=n, d=n, k=n, dtype="fp64", where="H100 SXM")
    machine = MACHINES["H100 SXM"]
    intensity = n / 12  # 2n³ FLOPs over 24n² bytes
    ridge = machine.peak("fp64") / machine.bytes_per_sec
    low = min(0.1, intensity)
    high = max(10_000, intensity)
    left, _, width, _ = ROOF
    picture = view(asked, Found()).picture
    ring_x, _ = centres(picture, "ring")[0]
    ridge_x, _ = lines(picture, "line dashed")[0][0]
    expected = along_a_log_axis(intensity, low, high, left, width)
    assert ring_x == pytest.approx(expected, abs=0.1)
    expected = along_a_log_axis(ridge, low, high, left, width)
    assert ridge_x == pytest.approx(expected, abs=0.1)


BY_OTHERS = [
    (name, dtype)
    for name, recording in machines.recordings().items()
    if recording.source
    for dtype in recording.seconds_by_size
]


@pytest.mark.parametrize(("name", "dtype"), BY_OTHERS)
def test_a_gpu_that_others_recorded_shows_all_its_products_and_whose_they_are(name, dtype):
    recording = machines.recordings()[name]
    recorded = recording.seconds_by_size[dtype]
    largest = max(recorded, key=math.prod)
    b, d, k = largest
    asked = Product(b, d, k, dtype, name, sweep="D")
    opened = view(asked, Found())
    text = text_of(opened)
    whose = f"Recorded by {recording.source.by}"
    assert len(nodes(opened.picture, "circle", "measured past")) == len(recorded)
    assert f"{whose}: {recording.source.where}." in text
    assert f"{whose}: {seconds_text(recorded[largest])}." in text

    _, found = done(LAB.sweep, asked, Found())
    _, *rows = view(asked, found).table
    along_d = [size[1] for size in recorded if size[0] == b and size[2] == k]
    expected = [[name, f"{b:,}", f"{other_d:,}", f"{k:,}", dtype] for other_d in along_d]
    assert sorted(row[:5] for row in rows) == sorted(expected)


# What is timed here.


def test_timing_puts_a_measured_point_and_a_row_beside_the_prediction(matmul):
    matmul.set(b=32, d=32, k=32)
    for _ in range(2):
        assert run(matmul, "Time it").startswith("Measured: ")
    head, first, second = matmul.screen.table  # each time is kept
    assert first[:5] == second[:5] == ["this machine", "32", "32", "32", "fp32"]
    share = first[head.index("of the peak")]
    assert f"{share} of the largest rate of a few" in words(matmul)
    assert "Measured: " in matmul.screen.meaning
    # A dot stands by its words, and one in each plot.
    assert len(nodes(matmul.screen.svg, "circle", "measured")) == 1 + 2
    assert len(nodes(matmul.screen.svg, "circle", "measured past")) == 2 * 2
    matmul.set(b=64)
    assert "Measured" not in matmul.screen.meaning
    assert len(nodes(matmul.screen.svg, "circle", "measured past")) == 2  # none along 64 × 32 × ·
    a_gpu = Found(dataclasses.replace(A_CORE, has_data_sheet=True), matmul.session.found.runs)
    assert "% of the data sheet's peak (MFU)" in shown(a_gpu, b=32, d=32, k=32)
    matmul.act("Clear history")
    assert matmul.screen.table == []


def test_a_sweep_draws_every_product_that_takes_less_than_a_moment(matmul):
    matmul.set(b=64, d=64, k=64, dtype="fp16", sweep="K")  # at 1 GFLOP/s and worse, up to K = 2^12
    assert run(matmul, "Sweep") == "13 products along K."
    _, *rows = matmul.screen.table
    assert [row[3] for row in reversed(rows)] == [f"{2**n:,}" for n in range(13)]
    assert len(nodes(matmul.screen.svg, "circle", "measured past")) == 13 * 2  # in each plot


TOO_LARGE = {"b": 2**20, "d": 2**20, "k": 2**20}
TOO_SLOW = {"b": 4096, "d": 4096, "k": 4096, "dtype": "fp16"}  # 137 s, and perhaps five times that
CANNOT_RUN = [
    (TOO_LARGE, "Time it", "are free. Make it smaller."),
    (TOO_SLOW, "Time it", "This lab waits 60 s at most"),
    ({"b": 2**20, "d": 2**20}, "Sweep", "Already at K = 1 this takes too long to sweep."),
    (
        {"where": "A100 SXM"},
        "Time it",
        "What you see is the prediction from the data sheet of one A100 SXM. "
        "For times, choose this machine",
    ),
    (
        {"where": "MI355X, by AMD"},
        "Sweep",
        "'fp32' was not recorded on MI355X. There are: bf16, fp8.",
    ),
    ({"dtype": "tf32"}, "Sweep", "No dense peak for 'tf32' on a core"),
]


@pytest.mark.parametrize(("values", "job", "sentence"), CANNOT_RUN)
def test_what_cannot_run_is_said_before_and_not_run(matmul, monkeypatch, values, job, sentence):
    monkeypatch.setattr(products, "matmul_call", None)  # whoever calls it fails otherwise
    matmul.set(**values)
    if matmul.screen.mistake:
        assert sentence in matmul.screen.mistake
    with pytest.raises(ValueError, match=re.escape(sentence)):
        run(matmul, job)
    assert sentence in matmul.screen.report + matmul.screen.mistake
    assert matmul.screen.table == []


def test_a_product_that_exceeds_the_labs_patience_is_ended(matmul, monkeypatch):
    monkeypatch.setattr(jobs, "LONGEST_S", 1e-4)  # more than it is predicted to take
    matmul.set(b=32, d=32, k=32)
    with pytest.raises(ValueError, match="which is the most that this lab waits"):
        run(matmul, "Time it")


@pytest.mark.parametrize(
    ("size", "dtype", "where"),
    [
        ((1024, 1024, 1024), "fp32", "here"),  # 21 ms at the peak
        ((2048, 2048, 2048), "fp32", "in a process"),  # 172 ms
        ((512, 512, 512), "fp16", "in a process"),  # predicted too well, without units for it
        ((2**20, 1024, 1), "fp32", "in a process"),  # 4 GiB have to be filled first
    ],
)
def test_what_may_take_long_is_judged_with_a_margin_and_timed_in_a_process(
    monkeypatch, size, dtype, where
):
    used = []

    def timed(where, b, d, k, dtype):
        used.append((where, (b, d, k), dtype))
        yield products.MeasurementProgress(0.5, "on the way")
        return SimpleNamespace(seconds=1e-3, doubt="")

    def timed_here(b, d, k, dtype, **_):
        return timed("here", b, d, k, dtype)

    def timed_in_a_process(work, order):
        return timed("in a process", order["b"], order["d"], order["k"], order["dtype"])

    monkeypatch.setattr("course_utils.subjects.machines.device", lambda: "cpu", raising=False)
    monkeypatch.setattr(measure, "free_bytes", lambda device: 2**40)
    monkeypatch.setattr(process, "steps_of", timed_in_a_process)
    monkeypatch.setattr(products, "timing_steps", timed_here)
    _, found = done(LAB.time_it, Product(*size, dtype), Found(A_CORE))
    assert used == [(where, size, dtype)]
    (run,) = found.runs
    assert run.product.size == size
    assert run.seconds == 1e-3


# What is typed.


@pytest.mark.parametrize(
    ("typed", "size"), [("1,024", 1024), ("2^11", 2048), (" 7 ", 7), (33, 33), ("2**20", 2**20)]
)
def test_a_size_can_be_dragged_or_typed_as_people_write_it(matmul, typed, size):
    matmul.set(b=typed)
    assert f"2 · {size:,} ·" in words(matmul)
    slider, field = matmul.controls["b"].children
    step = 2 ** (round(4 * math.log2(size)) / 4)  # the nearest that the slider has
    assert slider.value == pytest.approx(step)
    slider.value = math.nextafter(step, math.inf)  # as the page says when it has put it there
    assert f"2 · {size:,} ·" in words(matmul)
    slider.value = 512
    assert field.value == "512"
    assert "2 · 512 ·" in words(matmul)
