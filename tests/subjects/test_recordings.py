"""Recordings: what they say, those that others published, and those that readers add."""

import copy
import itertools
import json
import math
import re
import shutil
import statistics
from dataclasses import MISSING, fields, replace
from fractions import Fraction

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from course_utils.core import predict
from course_utils.subjects import machines
from course_utils.subjects.machines import MACHINES, Recording, Workload, schema
from course_utils.subjects.machines import recording as recording_files
from tests.subjects.test_machines import CORE, STUB
from tests.tools import recordings as by_others
from tests.tools import review

PUBLISHED = json.loads(by_others.PUBLISHED.read_text())["gpus"]
BY_OTHERS = {}
FILES = {}
for name, recorded in machines.recordings().items():
    FILES[name] = recording_files.FOLDER / recorded.file_name
    if recorded.source:
        BY_OTHERS[name] = recorded
H100 = "H100 SXM, by OpenXLA"


def with_few_products(path):
    """What the file holds, with the first of its products and the large cubes."""
    data = json.loads(path.read_text())
    for dtype, rows in data["products"].items():
        cubes = [row for row in rows[6:] if row[0] == row[1] == row[2] >= 1024]
        data["products"][dtype] = rows[:6] + cubes
    return data


DATA = {name: with_few_products(FILES[name]) for name in (CORE, H100)}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty folder of recordings."""
    monkeypatch.setattr(recording_files, "FOLDER", tmp_path)
    machines.recordings.cache_clear()
    yield tmp_path
    machines.recordings.cache_clear()


def problem(data):
    """What is wrong with it as a recording, if anything is."""
    try:
        schema.decoded(Recording, data)
    except ValueError as error:
        return str(error)
    return ""


# A recording, asked.


def recording(*sizes):
    times = {"fp32": dict.fromkeys(sizes, 1.0)}
    return Recording(machine=STUB, taken="", software="", seconds_by_size=times)


size = st.integers(1, 2**20)


@given(st.lists(st.tuples(size, size, size), min_size=1, max_size=6), size, size, size)
@example([(100, 100, 100), (1000, 100, 100)], 317, 100, 100)
@example([(1, 64, 64), (64, 1, 64)], 60, 2, 64)
def test_no_recorded_product_is_nearer_than_the_nearest(sizes, b, d, k):
    def factor(there):
        """The product of the sides' ratios, exactly: 2 if one side is twice or half as long."""
        sides = zip((b, d, k), there, strict=True)
        return math.prod(Fraction(max(side), min(side)) for side in sides)

    nearest = recording(*sizes).nearest(b, d, k, "fp32")
    assert nearest in sizes
    least = min(factor(size) for size in sizes)
    assert factor(nearest) <= least * (1 + Fraction(1, 10**9))  # floats see a tie there


def test_what_was_not_recorded_is_named_with_what_was():
    asked = recording((1, 1, 1))
    sentence = r"'fp8' was not recorded on A machine \(made up\)\. There are: fp32\."
    with pytest.raises(ValueError, match=sentence):
        asked.nearest(1, 1, 1, "fp8")
    with pytest.raises(ValueError, match=r"'copy' was not recorded on .*\. There are: none\."):
        asked.workload("copy")
    sentence = r"'copy' was not recorded on .*\. There are: a step, softmax\."
    with pytest.raises(ValueError, match=sentence):
        with_workloads().workload("copy")
    sentence = r"No training step was recorded on A machine \(made up\)\."
    with pytest.raises(ValueError, match=sentence):
        asked.memory_peaks()


def with_workloads(**changes):
    counts = {"flops": 10**9, "tokens": 4096, **changes}
    step = Workload("a step", {"batch": 4, "sequence": 1024}, "bf16", 2.0, 0.01, **counts)
    softmax = Workload("softmax", {"rows": 2}, "fp8", 0.5, 0.01, bytes=10**8)
    return replace(recording((1, 1, 1)), workloads=(step, softmax))


def test_a_workloads_shares_are_of_the_dtypes_peak_and_of_the_bandwidth():
    head, step, softmax = with_workloads().workload_table().rows
    assert head == [STUB.name, "sizes", "dtype", "time", "rate", "of largest"]
    assert step == ["a step", "4 × 1,024", "bf16", "2 s", "500 MFLOP/s", "25.0%"]
    assert softmax == ["softmax", "2", "fp8", "500 ms", "200 MB/s", "20.0%"]
    assert with_workloads().workload("softmax").bytes == 10**8


def test_peaks_of_memory_stand_beside_their_prediction():
    peaks = with_workloads(predicted_peak_bytes=1000, peak_bytes=1100).memory_peaks()
    assert dict(peaks.predicted) == {"a step": 1000}
    assert dict(peaks.measured) == {"a step": 1100}


def test_what_the_notebooks_say_of_the_recorded_core_is_what_was_recorded():
    core = machines.recordings()[CORE]
    _, *rows = core.workload_table().rows
    share = {row[0]: float(row[-1].rstrip("%")) for row in rows}
    assert round(share["GPT-2 small, a training step"]) == 59
    around = ("LayerNorm, forward", "LayerNorm, forward + backward", "softmax", "cross-entropy")
    assert max(share[name] for name in around) < 34  # "a third of the bandwidth, or less"
    in_place = ("AdamW, fused", "scale in place")
    assert [share[name] for name in in_place] == pytest.approx([170, 170], abs=5)  # "by some 70 %"
    peaks = core.memory_peaks()
    plain, recomputed = peaks.measured.values()
    assert dict(peaks.measured) == pytest.approx(dict(peaks.predicted), abs=8)
    assert recomputed < plain


# By others.


def test_the_committed_recordings_are_those_that_are_built_from_what_was_published():
    committed = {path.name: path.read_text() for path in recording_files.FOLDER.glob("*_by_*.json")}
    assert by_others.built() == committed
    assert {one.file_name for one in BY_OTHERS.values()} == set(committed)
    assert all(path.stat().st_size < 200_000 for path in FILES.values())


@pytest.mark.parametrize("published", PUBLISHED, ids=lambda published: published["gpu"])
def test_every_published_product_is_used_or_in_doubt_with_the_time_that_was_published(published):
    found = BY_OTHERS[f"{published['sheet']}, by {published['by']}"]
    for theirs, rows in published["products"].items():
        ours = published["f32"] if theirs.startswith("f32 ") else theirs.split(" ")[0]
        kept = found.as_published(ours)
        assert list(kept) == sorted(kept)  # products in doubt are among the others by their size
        times = {}
        for b, d, k, value in rows:
            is_seconds = published["unit"] == "seconds"
            times[b, d, k] = value if is_seconds else 2 * b * d * k / value
        assert kept == pytest.approx(times, rel=1e-5)
    assert found.source.where == published["source"]
    assert found.source.licence == "Apache-2.0"
    assert found.median_spread is None
    assert found.source.not_said


def test_what_cannot_be_and_what_has_no_name_is_kept_and_never_used():
    doubts = []
    for name, published in BY_OTHERS.items():
        for apart in published.set_apart:
            doubts.append((name, apart.dtype, len(apart.seconds_by_size)))
    assert doubts == [
        (H100, "bf16", 1),
        (H100, "tf32", 9),
        (H100, "fp8", 125),
        ("MI300X, by AMD", "fp8", 125),
        ("MI355X, by AMD", "f32", 125),
    ]
    for published in BY_OTHERS.values():
        machine = published.machine
        for dtype, times in published.seconds_by_size.items():
            largest = max(2 * math.prod(size) / seconds for size, seconds in times.items())
            assert machine.achieved_flop_per_sec[dtype] == largest
            assert largest <= machine.peak(dtype)


def test_on_the_h100_more_work_never_takes_clearly_less_time_in_what_is_used():
    h100 = BY_OTHERS[H100]
    for times in h100.seconds_by_size.values():
        for less, more in itertools.permutations(times, 2):
            (b, d, k), (more_b, more_d, more_k) = less, more
            if b == more_b and k == more_k and d < more_d:
                assert times[more] > 0.9 * times[less]
    (bf16,) = (apart for apart in h100.set_apart if apart.dtype == "bf16")
    assert list(bf16.seconds_by_size) == [(256, 4096, 256)]


def test_the_h100s_fp8_times_are_half_of_a_product_and_a_transposition_and_its_bf16_times_are_not():
    square = (4096, 4096, 4096)
    wide = (512, 4096, 4096)
    narrow = (4096, 4096, 512)
    fp8 = BY_OTHERS[H100].as_published("fp8")
    bf16 = BY_OTHERS[H100].as_published("bf16")
    transposition_s = 2 * (fp8[wide] - fp8[narrow]) * 8 / 7
    alone = 2 * math.prod(square) / (2 * fp8[square] - transposition_s)
    assert alone == pytest.approx(MACHINES["H100 SXM"].achieved_flop_per_sec["fp8"], rel=0.01)
    assert bf16[wide] == pytest.approx(bf16[narrow], rel=0.01)


# From a bound to a forecast.

# The most that the forecast of one half misses the median product of the other by; the median of
# ten halves.
MISSED = [
    (H100, "bf16", 0.06),
    (H100, "tf32", 0.16),
    ("B200, by OpenXLA", "bf16", 0.07),
    ("MI300X, by AMD", "bf16", 0.2),
    ("MI355X, by AMD", "bf16", 0.18),
    ("B200, by OpenXLA", "fp8", 0.07),
    ("V100 SXM2, by DeepBench", "fp16", 0.09),
    ("T4, by DeepBench", "fp16", 0.14),
    (CORE, "fp32", 0.19),
]


@pytest.mark.parametrize(("name", "dtype", "at_most"), MISSED)
def test_a_forecast_fitted_to_half_of_the_products_holds_for_the_other_half(name, dtype, at_most):
    machine = machines.recordings()[name].machine
    timed = machines.recordings()[name].seconds_by_size[dtype]
    missed = []
    for seed in range(10):
        fitted, tried = predict.random_halves(timed, seed)
        assert sorted([*fitted, *tried]) == sorted(timed)
        c, e = predict.fitted_forecast(fitted, machine, dtype)
        ratios = []
        for (b, d, k), seconds in tried.items():
            computed_s = 2 * b * d * k / machine.peak(dtype)
            moved_s = predict.matmul_bytes(b, d, k, dtype) / machine.bytes_per_sec
            ratios.append(seconds / (c + max(computed_s, moved_s) / e))
        median = statistics.median(abs(ratio - 1) for ratio in ratios)
        worst = max(*ratios, 1 / min(ratios))
        errors = predict.forecast_errors(tried, machine, dtype, c, e)
        assert errors == pytest.approx((median, worst))
        missed.append(median)
    assert statistics.median(missed) < at_most
    _, row = machines.forecast_table({name: dtype}).rows
    assert row[5] == f"{100 * statistics.median(missed):.0f} %"


def test_a_fit_finds_the_two_numbers_that_made_the_times():
    sizes = [(b, d, 4096) for b in (1, 64, 512, 4096) for d in (64, 1024, 8192)]
    made = {size: predict.product_seconds(*size, STUB, "fp32", c=7e-6, e=0.35) for size in sizes}
    assert predict.fitted_forecast(made, STUB, "fp32") == pytest.approx((7e-6, 0.35))


# Files, and those that are none.


def test_recordings_are_all_files_of_the_folder_and_one_that_is_none_costs_a_sentence(folder):
    assert machines.recordings() == {}
    machines.recordings.cache_clear()
    shutil.copy(FILES[H100], folder / "h100.json")
    shutil.copy(FILES[CORE], folder / "mine.json")
    (folder / "a_foreign.json").write_text('{"name": "a-package", "version": "1.0"}')
    (folder / "cut.json").write_text(FILES[CORE].read_text()[:5000])
    (folder / "deep.json").write_text("[" * 100_000)
    (folder / "empty.json").write_text("")
    (folder / "latin.json").write_bytes(b'"\xe9"')
    shutil.copy(FILES[H100], folder / "twin.json")
    with pytest.warns(UserWarning, match="is left out") as warned:
        assert list(machines.recordings()) == [H100, CORE]
    expected = {
        "a_foreign": "the field machine is missing.",
        "cut": "it is no JSON (",
        "deep": "it is no JSON (",
        "empty": "it is no JSON (",
        "latin": "it is no JSON (",
        "twin": "there is another recording of H100 SXM, by OpenXLA.",
    }
    for warning, (name, sentence) in zip(warned, expected.items(), strict=True):
        words = f"The recording {name}.json is left out: {sentence}"
        assert str(warning.message).startswith(words)


NUMBER = "a number above 0, and at most 10^24"
WHOLE_NUMBER = "a whole number above 0, and at most 10^24"
WRONG = {  # by place: a wrong value, and what is allowed there
    "taken": ("20261122", "a date, such as 2026-11-22; got '20261122'."),
    "software": ("", "a text of one line and at most 500 characters; got ''."),
    "median_spread": (-0.1, "a number from 0 up, and at most 10^24; got -0.1."),
    "machine": ([], "an object with the fields name, "),
    "products": ({}, "an object with something in it; got {}."),
    "workloads": ("none", "a list with something in it; got 'none'."),
    "machine.bytes": (1.5, f"{WHOLE_NUMBER}; got 1.5."),
    "machine.bytes_per_sec": (0, f"{NUMBER}; got 0."),
    "machine.achieved_bytes_per_sec": (10**400, f"{NUMBER}; got 1000"),
    "machine.name": ("a" * 100, "a text of one line and at most 60 characters; got 'aaa"),
    "machine.source": (
        "\x1b[2J",
        "a text of one line and at most 500 characters; got '\\x1b[2J'.",
    ),
    "machine.has_data_sheet": ("yes", "true or false; got 'yes'."),
    "products.fp32": ([], "a list with something in it; got []."),
    "products.fp32[3][2]": (1.5, f"{WHOLE_NUMBER}; got 1.5."),
    "products.bf16[0]": ([1, 1, 1], "a list of 4; got [1, 1, 1]."),
    "workloads[0].seconds": (math.inf, f"{NUMBER}; got inf."),
    "workloads[0].flops": (True, f"{WHOLE_NUMBER}; got True."),
}


def changed(data, path, value):
    """A copy with another value in that place."""
    data = copy.deepcopy(data)
    inner = data
    *first, last = path
    for step in first:
        inner = inner[step]
    inner[last] = value
    return data


@pytest.mark.parametrize("where", WRONG)
def test_a_field_that_is_wrong_is_named_with_what_is_allowed(where):
    value, allowed = WRONG[where]
    steps = re.findall(r"\w+", where)
    path = [int(step) if step.isdigit() else step for step in steps]
    assert problem(changed(DATA[CORE], path, value)).startswith(f"{where} is {allowed}")


def test_a_number_in_place_of_a_date_two_rows_of_a_size_and_half_a_source_are_named():
    data = DATA[CORE]
    assert problem(data | {"taken": 3}) == "taken is a date, such as 2026-11-22; got 3."
    assert problem(data | {"source": {"by": "me"}}) == "the field source.where is missing."
    first_size = data["products"]["fp32"][0][:3]
    twice = changed(data, ("products", "fp32", 5), [*first_size, 1e-6])
    sentence = "products.fp32 is a list of rows whose sizes all differ; got [["
    assert problem(twice).startswith(sentence)


WHOLE = {
    Recording: DATA[CORE],
    machines.Machine: DATA[CORE]["machine"],
    Workload: DATA[CORE]["workloads"][0],
}


@pytest.mark.parametrize(("kind", "whole"), WHOLE.items())
def test_a_field_may_be_missing_or_nothing_only_if_it_has_a_default(kind, whole):
    for field in fields(kind):
        name = schema.name_of(field)
        default = schema.default_of(field)
        without = {key: value for key, value in whole.items() if key != name}
        if default is MISSING:
            with pytest.raises(ValueError, match=rf"^the field {name} is missing\.$"):
                schema.decoded(kind, without)
        else:
            with_default = whole | {name: schema.encoded(default)}
            for data in (without, with_default):
                assert getattr(schema.decoded(kind, data), field.name) == default
    assert schema.decoded(kind, whole | {"of another version": []}) == schema.decoded(kind, whole)


# Recordings by readers.


@pytest.mark.parametrize("name", FILES)
def test_the_courses_own_recordings_may_be_added_and_are_written_as_they_were_read(name, capsys):
    assert review.main([str(FILES[name])]) == 0
    assert capsys.readouterr().out.startswith(f"{FILES[name].name} may be added: {name}, ")
    assert recording_files.text_of(recording_files.read(FILES[name])) == FILES[name].read_text()


THEIRS = {CORE: (("machine", "name"), "one core of another"), H100: (("source", "by"), "somebody")}
LAST_S = DATA[CORE]["workloads"][-1]["seconds"]
LAST = "workloads: GPT-2 small, a training step, each layer recomputed"
BF16 = DATA[H100]["products"]["bf16"]
MAY_NOT_BE_ADDED = [
    (
        CORE,
        ("workloads", -1, "dtype"),
        "fp12",
        f"{LAST}: machine.peak_flop_per_sec has no fp12",
    ),
    (CORE, ("workloads", -1, "seconds"), LAST_S / 10, f"{LAST} is "),
    (
        CORE,
        ("machine", "name"),
        CORE,
        f"machine.name: {FILES[CORE].name} is a recording of ",
    ),
    (
        H100,
        ("machine", "has_data_sheet"),
        False,
        "machine.has_data_sheet: in datasheets.toml is a sheet of H100 SXM",
    ),
    (
        H100,
        ("machine", "name"),
        "H1000",
        "machine.has_data_sheet: in datasheets.toml is no sheet of H1000.",
    ),
    (
        H100,
        ("machine", "peak_flop_per_sec", "bf16"),
        2e15,
        "machine.peak_flop_per_sec is not that of the data sheet of H100 SXM",
    ),
    (
        H100,
        ("products", "bf16", -1, 3),
        88.1e-6,
        "products.bf16: 4,096 × 4,096 × 4,096 in 88.1 µs is 1.56 PFLOP/s, above the dense peak",
    ),
    (
        H100,
        ("products", "e2m1"),
        BF16,
        "products.e2m1: no dtype is called that here; there are: fp64, ",
    ),
]


@pytest.mark.parametrize(("name", "path", "value", "sentence"), MAY_NOT_BE_ADDED)
def test_a_recording_that_may_not_be_added_is_told_why(
    tmp_path, capsys, name, path, value, sentence
):
    theirs = changed(DATA[name], *THEIRS[name])
    file = tmp_path / "theirs.json"
    file.write_text(json.dumps(changed(theirs, path, value)))
    assert review.main([str(file)]) == 1
    assert capsys.readouterr().out.startswith(f"theirs.json may not be added:\n- {sentence}")


def test_the_command_says_what_is_no_recording_how_many_more_and_how_it_is_called(tmp_path, capsys):
    path = tmp_path / "theirs.json"
    assert review.main([str(path)]) == 1
    missing = "theirs.json may not be added:\n- it cannot be opened (No such file"
    assert capsys.readouterr().out.startswith(missing)
    rows = [[n, 4096, 4096, 1e-9] for n in range(1, 30)]
    path.write_text(json.dumps(changed(DATA[H100], ("products", "bf16"), rows)))
    assert review.main([str(path)]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2 + review.MOST_SAID
    assert lines[-1].endswith(" more of the kind.")
    assert review.main([""]) == 2
    assert "make recording FILE=" in capsys.readouterr().out
