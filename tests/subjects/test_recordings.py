"""What was recorded elsewhere: read and asked; by others, as they published it; by readers, looked through."""

import copy
import itertools
import json
import math
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
BY_OTHERS = {name: one for name, one in machines.recordings().items() if one.source}
FILES = {one.name: recording_files.FOLDER / one.file_name for one in machines.recordings().values()}
H100 = "H100 SXM, by OpenXLA"


def with_few_products(path):
    """What the file holds, with the first of its products and the large cubes."""
    data = json.loads(path.read_text())
    for rows in data["products"].values():
        rows[:] = [row for n, row in enumerate(rows) if n < 6 or row[0] == row[1] == row[2] >= 1024]
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
        """By how much the sides differ, multiplied, exactly: 2 for one side that is twice or half as long."""
        return math.prod(
            Fraction(max(m, n), min(m, n)) for m, n in zip((b, d, k), there, strict=True)
        )

    nearest = recording(*sizes).nearest(b, d, k, "fp32")
    assert nearest in sizes
    assert factor(nearest) <= min(map(factor, sizes)) * (1 + Fraction(1, 10**9))  # which is a tie


def test_what_was_not_recorded_is_named_with_what_was():
    with pytest.raises(
        ValueError, match=r"'fp8' was not recorded on A machine \(made up\)\. There are: fp32\."
    ):
        recording((1, 1, 1)).nearest(1, 1, 1, "fp8")
    with pytest.raises(ValueError, match=r"'copy' was not recorded on .*\. There are: none\."):
        recording((1, 1, 1)).workload("copy")
    with pytest.raises(
        ValueError, match=r"'copy' was not recorded on .*\. There are: a step, softmax\."
    ):
        with_workloads().workload("copy")
    with pytest.raises(
        ValueError, match=r"No training step was recorded on A machine \(made up\)\."
    ):
        recording((1, 1, 1)).memory_peaks()


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
    assert (dict(peaks.predicted), dict(peaks.measured)) == ({"a step": 1000}, {"a step": 1100})


def test_what_the_notebooks_say_of_the_recorded_core_is_what_was_recorded():
    core = machines.recordings()[CORE]
    share = {row[0]: float(row[-1].rstrip("%")) for row in core.workload_table().rows[1:]}
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
        assert list(kept) == sorted(
            kept
        )  # what is in doubt stands where it belongs, and not at the end
        by_seconds = published["unit"] == "seconds"
        times = {
            (b, d, k): value if by_seconds else 2 * b * d * k / value for b, d, k, value in rows
        }
        assert kept == pytest.approx(times, rel=1e-5)
    assert (found.source.where, found.source.licence) == (published["source"], "Apache-2.0")
    assert found.median_spread is None
    assert found.source.not_said


def test_what_cannot_be_and_what_has_no_name_is_kept_and_never_used():
    doubts = [
        (name, one.dtype, len(one.seconds_by_size))
        for name, recording in BY_OTHERS.items()
        for one in recording.set_apart
    ]
    h100s = [(H100, dtype, n) for dtype, n in (("bf16", 1), ("tf32", 9), ("fp8", 125))]
    assert doubts == [*h100s, ("MI300X, by AMD", "fp8", 125), ("MI355X, by AMD", "f32", 125)]
    for one in BY_OTHERS.values():
        for dtype, times in one.seconds_by_size.items():
            rates = [2 * math.prod(size) / s for size, s in times.items()]
            assert one.machine.achieved_flop_per_sec[dtype] == max(rates) <= one.machine.peak(dtype)


def test_on_the_h100_more_work_never_takes_clearly_less_time_in_what_is_used():
    tables = BY_OTHERS[H100].seconds_by_size
    for times in tables.values():
        pairs = itertools.permutations(times, 2)
        longer = [(one, two) for one, two in pairs if one[::2] == two[::2] and one[1] < two[1]]
        assert all(times[two] > 0.9 * times[one] for one, two in longer)
    (bf16,) = (one.seconds_by_size for one in BY_OTHERS[H100].set_apart if one.dtype == "bf16")
    assert list(bf16) == [(256, 4096, 256)]


def test_the_h100s_fp8_times_are_half_of_a_product_and_a_transposition_and_its_bf16_times_are_not():
    square, wide, narrow = (4096, 4096, 4096), (512, 4096, 4096), (4096, 4096, 512)
    fp8, bf16 = map(BY_OTHERS[H100].as_published, ("fp8", "bf16"))
    transposition_s = 2 * (fp8[wide] - fp8[narrow]) * 8 / 7
    alone = 2 * math.prod(square) / (2 * fp8[square] - transposition_s)
    assert alone == pytest.approx(MACHINES["H100 SXM"].achieved_flop_per_sec["fp8"], rel=0.01)
    assert bf16[wide] == pytest.approx(bf16[narrow], rel=0.01)


# From a bound to a forecast.

MISSED = [  # at most, by the forecast of the other half: the median product, in the median of ten halves
    *((H100, "bf16", 0.06), (H100, "tf32", 0.16), ("B200, by OpenXLA", "bf16", 0.07)),
    *(
        ("MI300X, by AMD", "bf16", 0.2),
        ("MI355X, by AMD", "bf16", 0.18),
        ("B200, by OpenXLA", "fp8", 0.07),
    ),
    *(
        ("V100 SXM2, by DeepBench", "fp16", 0.09),
        ("T4, by DeepBench", "fp16", 0.14),
        (CORE, "fp32", 0.19),
    ),
]


@pytest.mark.parametrize(("name", "dtype", "at_most"), MISSED)
def test_a_forecast_fitted_to_half_of_the_products_holds_for_the_other_half(name, dtype, at_most):
    machine, timed = (
        machines.recordings()[name].machine,
        machines.recordings()[name].seconds_by_size[dtype],
    )
    missed = []
    for seed in range(10):
        fitted, tried = predict.random_halves(timed, seed)
        assert sorted([*fitted, *tried]) == sorted(timed)
        c, e = predict.fitted_forecast(fitted, machine, dtype)
        ratios = []
        for (b, d, k), seconds in tried.items():
            moved_s = predict.matmul_bytes(b, d, k, dtype) / machine.bytes_per_sec
            ratios.append(seconds / (c + max(2 * b * d * k / machine.peak(dtype), moved_s) / e))
        missed.append(statistics.median(abs(ratio - 1) for ratio in ratios))
        errors = missed[-1], max(*ratios, 1 / min(ratios))
        assert predict.forecast_errors(tried, machine, dtype, c, e) == pytest.approx(errors)
    assert statistics.median(missed) < at_most
    assert machines.forecast_table({name: dtype}).rows[1][5] == f"{statistics.median(missed):.0%}"


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
        **dict.fromkeys(("cut", "deep", "empty", "latin"), "it is no JSON ("),
        "twin": "there is another recording of H100 SXM, by OpenXLA.",
    }
    for one, (name, sentence) in zip(warned, expected.items(), strict=True):
        assert str(one.message).startswith(f"The recording {name}.json is left out: {sentence}")


WRONG = {
    "taken": ("20261122", "taken is a date, such as 2026-11-22; got '20261122'."),
    "software": ("", "software is a text of one line and at most 500 characters; got ''."),
    "median_spread": (-0.1, "median_spread is a number from 0 up, and at most 10^24; got -0.1."),
    "machine": ([], "machine is an object with the fields name, "),
    "products": ({}, "products is an object with something in it; got {}."),
    "workloads": ("none", "workloads is a list with something in it; got 'none'."),
    "machine.bytes": (1.5, "machine.bytes is a whole number above 0, and at most 10^24; got 1.5."),
    "machine.bytes_per_sec": (0, "machine.bytes_per_sec is a number above 0, and at most 10^24; got 0."),
    "machine.achieved_bytes_per_sec": (10**400, "machine.achieved_bytes_per_sec is a number above 0, and at most 10^24; got 1000"),
    "machine.name": ("a" * 100, "machine.name is a text of one line and at most 60 characters; got 'aaa"),
    "machine.source": ("\x1b[2J", "machine.source is a text of one line and at most 500 characters; got '\\x1b[2J'."),
    "machine.has_data_sheet": ("yes", "machine.has_data_sheet is true or false; got 'yes'."),
    "products.fp32": ([], "products.fp32 is a list with something in it; got []."),
    "products.fp32.3": ([1, 1, 1.5, 1e-6], "products.fp32[3][2] is a whole number above 0, and at most 10^24; got 1.5."),
    "products.fp32.5": ([1, 1, 1, 1e-6], "products.fp32 is a list of rows, each of another size; got [["),
    "products.bf16.0": ([1, 1, 1], "products.bf16[0] is a list of 4; got [1, 1, 1]."),
    "workloads.0.seconds": (math.inf, "workloads[0].seconds is a number above 0, and at most 10^24; got inf."),
    "workloads.0.flops": (True, "workloads[0].flops is a whole number above 0, and at most 10^24; got True."),
    "source": ({"by": "me"}, "the field source.where is missing."),
}  # fmt: skip


def changed(data, path, value):
    """A copy with another value in that place."""
    data = inner = copy.deepcopy(data)
    for step in path[:-1]:
        inner = inner[step]
    inner[path[-1]] = value
    return data


@pytest.mark.parametrize("where", WRONG)
def test_a_field_that_is_wrong_is_named_with_what_is_allowed(where):
    value, sentence = WRONG[where]
    path = [int(step) if step.isdigit() else step for step in where.split(".")]
    assert problem(changed(DATA[CORE], path, value)).startswith(sentence)
    assert problem(DATA[CORE] | {"taken": 3}) == "taken is a date, such as 2026-11-22; got 3."


WHOLE = {
    Recording: DATA[CORE],
    machines.Machine: DATA[CORE]["machine"],
    Workload: DATA[CORE]["workloads"][0],
}


@pytest.mark.parametrize(("kind", "whole"), WHOLE.items())
def test_a_field_may_be_missing_or_nothing_only_if_it_has_a_default(kind, whole):
    for one in fields(kind):
        name, default = schema.name_of(one), schema.default_of(one)
        without = {key: value for key, value in whole.items() if key != name}
        if default is MISSING:
            with pytest.raises(ValueError, match=rf"^the field {name} is missing\.$"):
                schema.decoded(kind, without)
        else:
            read = [
                schema.decoded(kind, data)
                for data in (without, whole | {name: schema.encoded(default)})
            ]
            assert [getattr(found, one.name) for found in read] == [default] * 2
    assert schema.decoded(kind, whole | {"of another version": []}) == schema.decoded(kind, whole)


# Recordings by readers.


@pytest.mark.parametrize("name", FILES)
def test_the_courses_own_recordings_may_be_added_and_are_written_as_they_were_read(name, capsys):
    assert review.main([str(FILES[name])]) == 0
    assert capsys.readouterr().out.startswith(f"{FILES[name].name} may be added: {name}, ")
    assert recording_files.text_of(recording_files.read(FILES[name])) == FILES[name].read_text()


THEIRS = {CORE: (("machine", "name"), "one core of another"), H100: (("source", "by"), "somebody")}
LAST = DATA[CORE]["workloads"][-1]


@pytest.mark.parametrize(
    ("name", "path", "value", "sentence"),
    [
        (CORE, ("workloads", -1, "dtype"), "fp12", "workloads: GPT-2 small, a training step, each layer recomputed: machine.peak_flop_per_sec has no fp12"),
        (CORE, ("workloads", -1, "seconds"), LAST["seconds"] / 10, "workloads: GPT-2 small, a training step, each layer recomputed is "),
        (CORE, ("machine", "name"), CORE, f"machine.name: {FILES[CORE].name} is a recording of "),
        (H100, ("machine", "has_data_sheet"), False, "machine.has_data_sheet: in datasheets.toml is a sheet of H100 SXM"),
        (H100, ("machine", "name"), "H1000", "machine.has_data_sheet: in datasheets.toml is no sheet of H1000."),
        (H100, ("machine", "peak_flop_per_sec", "bf16"), 2e15, "machine.peak_flop_per_sec is not that of the data sheet of H100 SXM"),
        (H100, ("products", "bf16", -1, 3), 88.1e-6, "products.bf16: 4,096 × 4,096 × 4,096 in 88.1 µs is 1.56 PFLOP/s, above the dense peak"),
        (H100, ("products", "e2m1"), DATA[H100]["products"]["bf16"], "products.e2m1: no dtype is called that here; there are: fp64, "),
    ],
)  # fmt: skip
def test_a_recording_that_may_not_be_added_is_told_why(
    tmp_path, capsys, name, path, value, sentence
):
    data = changed(changed(DATA[name], *THEIRS[name]), path, value)
    (tmp_path / "theirs.json").write_text(json.dumps(data))
    assert review.main([str(tmp_path / "theirs.json")]) == 1
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
