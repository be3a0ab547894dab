"""Recordings by others are what they published; recordings by readers are looked through; none takes another down."""

import copy
import dataclasses
import json
import math
import re
import shutil
from fractions import Fraction

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from course_utils import machines, measure
from course_utils.machines import fields, recorded, recorder, review
from tests.tools import recordings as by_others

PUBLISHED = {one["gpu"]: one for one in json.loads(by_others.PUBLISHED.read_text())["gpus"]}
BY_OTHERS = {name: one for name, one in machines.recordings().items() if one.source}
CORE = recorded.FOLDER / "one_core_of_amd_epyc_with_avx_512_bf16.json"
H100 = recorded.FOLDER / "h100_sxm_by_openxla.json"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty folder of recordings."""
    monkeypatch.setattr(recorded, "FOLDER", tmp_path)
    machines.recordings.cache_clear()
    yield tmp_path
    machines.recordings.cache_clear()


# By others.


def test_the_committed_recordings_are_those_that_are_built_from_what_was_published():
    built = by_others.built()
    committed = {path.name: path.read_text() for path in recorded.FOLDER.glob("*_by_*.json")}
    assert built == committed
    assert {one.file_name for one in BY_OTHERS.values()} == set(built)


@pytest.mark.parametrize("taken", by_others.TAKEN, ids=lambda taken: taken.gpu)
def test_every_published_product_is_used_or_in_doubt_with_the_time_that_was_published(taken):
    published, recording = PUBLISHED[taken.gpu], BY_OTHERS[f"{taken.sheet}, by {taken.by}"]
    for theirs, rows in published["products"].items():
        ours = "f32" if theirs.startswith("f32 ") and not taken.f32 else None
        ours = ours or (taken.f32 if theirs.startswith("f32 ") else theirs.split(" ")[0])
        kept = recording.as_published(ours)
        assert list(kept) == sorted(kept)  # what is in doubt stands where it belongs, and not at the end
        assert set(kept) == {(b, d, k) for b, d, k, _ in rows}
        for b, d, k, value in rows:
            seconds = value if published["unit"] == "seconds" else 2 * b * d * k / value
            assert kept[b, d, k] == pytest.approx(seconds, rel=1e-5)
    assert recording.source.where == published["source"]
    assert recording.source.licence == "Apache-2.0"
    assert recording.spread is None
    assert recording.source.not_said


def test_what_cannot_be_and_what_has_no_name_is_kept_and_never_used():
    found = {
        name: [(apart.dtype, len(apart.seconds_by_size)) for apart in one.set_apart]
        for name, one in BY_OTHERS.items()
        if one.set_apart
    }
    assert found == {
        "H100 SXM, by OpenXLA": [("fp8", 6), ("fp8", 9)],
        "MI300X, by AMD": [("fp8", 125)],
        "MI355X, by AMD": [("f32", 125)],
    }
    for recording in BY_OTHERS.values():
        for dtype, seconds_by_size in recording.seconds_by_size.items():
            peak = recording.machine.peak(dtype)
            assert all(2 * math.prod(size) / s <= peak for size, s in seconds_by_size.items())
            assert len(recording.points(dtype)) == len(seconds_by_size)
            best = max(2 * math.prod(size) / s for size, s in seconds_by_size.items())
            assert recording.machine.achieved_flop_per_sec[dtype] == best
    impossible, unproven = (
        [2 * math.prod(size) / s for size, s in apart.seconds_by_size.items()]
        for apart in BY_OTHERS["H100 SXM, by OpenXLA"].set_apart
    )
    assert min(impossible) > 1979e12 > max(unproven) > min(unproven) > 1402.6e12
    assert BY_OTHERS["H100 SXM, by OpenXLA"].machine.achieved_flop_per_sec["fp8"] < 1402.6e12


def test_f32_is_called_what_it_is():
    dtypes = {name: list(one.seconds_by_size) for name, one in BY_OTHERS.items()}
    assert dtypes == {
        "B200, by OpenXLA": ["bf16", "tf32", "fp8"],
        "H100 SXM, by OpenXLA": ["bf16", "tf32", "fp8"],
        "MI300X, by AMD": ["bf16", "xf32"],
        "MI355X, by AMD": ["bf16", "fp8"],
        "T4, by DeepBench": ["fp32", "fp16"],
        "V100 SXM2, by DeepBench": ["fp32", "fp16"],
    }


size = st.integers(1, 2**20)


@given(st.sampled_from(sorted(BY_OTHERS)), st.integers(0, 2), size, size, size)
@example("H100 SXM, by OpenXLA", 2, 4096, 4096, 4096)  # which is in doubt itself
def test_no_recorded_product_is_nearer_than_the_nearest(name, place, b, d, k):
    recording = BY_OTHERS[name]
    dtypes = list(recording.seconds_by_size)
    dtype = dtypes[place % len(dtypes)]
    nearest = recording.nearest(b, d, k, dtype)

    def factor(there):
        """By how much the sides differ, multiplied, exactly."""
        return math.prod(Fraction(max(m, n), min(m, n)) for m, n in zip((b, d, k), there, strict=True))

    apart = {size for one in recording.set_apart if one.dtype == dtype for size in one.seconds_by_size}
    published = set(recording.as_published(dtype)) - apart
    assert nearest in published
    assert factor(nearest) <= min(map(factor, published)) * (1 + Fraction(1, 10**9))  # which is a tie


def test_the_table_by_limits_holds_every_product_once():
    table = machines.over_prediction_table({"H100 SXM, by OpenXLA": "bf16", "B200, by OpenXLA": "fp8"})
    assert sum(int(row[2]) for row in table.rows[1:] if row[0].startswith("H100")) == 125
    assert [row[1] for row in table.rows[1:] if row[0].startswith("B200")] == ["arithmetic", "small"]
    ratios = BY_OTHERS["H100 SXM, by OpenXLA"].over_prediction("bf16")
    assert ratios["arithmetic"][4096, 4096, 4096] == pytest.approx(989.5 / 780.193877565849, rel=1e-5)
    assert ratios["small"][256, 256, 256] == pytest.approx(
        (2 * 256**3 / 6721641025641) / (3 * 2 * 256**2 / 3.35e12), rel=1e-5
    )


# Files that are none.


def test_a_damaged_or_foreign_file_costs_a_sentence_that_names_it_and_no_other_recording(folder):
    shutil.copy(H100, folder / "h100.json")
    (folder / "a_foreign.json").write_text('{"name": "a-package", "version": "1.0"}')
    vast = json.loads(CORE.read_text())
    vast["products"]["fp32"][0][3] = 10**400  # which no float can hold
    (folder / "vast.json").write_text(json.dumps(vast))
    (folder / "cut.json").write_text(CORE.read_text()[:5000])
    (folder / "empty.json").write_text("")
    (folder / "latin.json").write_bytes(b'"\xe9"')
    (folder / "twin.json").write_text(H100.read_text())
    with pytest.warns(UserWarning, match="is left out") as warned:
        assert list(machines.recordings()) == ["H100 SXM, by OpenXLA"]
    said = [str(one.message) for one in warned]
    assert [words.split(" is left out: ")[0] for words in said] == [
        f"The recording {name}.json" for name in ("a_foreign", "cut", "empty", "latin", "twin", "vast")
    ]
    assert "the field machine is missing." in said[0]
    assert all("it is no JSON" in words for words in said[1:4])
    assert "there is another recording of H100 SXM, by OpenXLA." in said[4]
    assert "products.fp32[0] is [B, D, K, seconds]" in said[5]


WRONG = {
    "taken": ("yesterday", "taken is a date, such as 2026-11-22; got 'yesterday'."),
    "software": ("", "software is a text of one line and at most 500 characters; got ''."),
    "median_spread": (-0.1, "median_spread is a number from 0 up, or null where nobody said; got -0.1."),
    "machine": ([], "machine is an object with the fields name, "),
    "products": ({}, "products are rows by dtype, at least one; got {}."),
    "workloads": ("none", "workloads is a list; got 'none'."),
    "left_out": ([1], "left_out is a list of sentences; got [1]."),
    "state": ([], "state is numbers by name, by when they were read; got []."),
    "notes": ("hello", "the field notes is none of a recording's; there are: "),
    "machine.bytes": (1.5, "machine.bytes is a whole number from 1 up; got 1.5."),
    "machine.name": ("a" * 100, "machine.name is a name of one line and at most 60 characters; got 'aaa"),
    "machine.bytes_per_sec": (0, "machine.bytes_per_sec is a number above 0, and at most 10^18; got 0."),
    "machine.achieved_bytes_per_sec": (10**400, "machine.achieved_bytes_per_sec is a number above 0, or null; got 1000"),
    "machine.source": ("\x1b[2J", "machine.source is a text of one line and at most 500 characters; got '\\x1b[2J'."),
    "machine.peak_flop_per_sec": ({"bf16": "fast"}, "machine.peak_flop_per_sec is rates above 0 by dtype; "),
    "machine.has_data_sheet": ("yes", "machine.has_data_sheet is true or false; got 'yes'."),
    "products.fp32": ([], "products.fp32 is a list of rows, at least one; got []."),
    "workloads.0.seconds": (math.inf, "workloads[0].seconds is a time in seconds, between a nanosecond and 10^6 s; got inf."),
    "workloads.0.flops": (-1, "workloads[0].flops is a whole number from 0 up; got -1."),
    "products.fp32.3": ([1, 1, 1.5, 1e-6], "products.fp32[3] is [B, D, K, seconds], three whole sizes from 1 to 2^40 and a time "),
    "products.fp32.4": ([1, 1, 1, 0], "products.fp32[4] is [B, D, K, seconds], "),
    "products.fp32.6": ([1, 1, 1, 10**400], "products.fp32[6] is [B, D, K, seconds], "),
    "products.fp32.5": ([1, 1, 1, 1e-6], "products.fp32 has 1 × 1 × 1 2 times."),
    "repeats.0.size": ([1, 2], "repeats[0].size is [B, D, K]; got [1, 2]."),
    "source": ({"by": "me"}, "the field source.where is missing."),
    "set_apart": ([{"dtype": "fp8", "why": "so", "products": [1]}], "set_apart[0].products[0] is [B, D, K, seconds], "),
}  # fmt: skip


@pytest.mark.parametrize("where", WRONG)
def test_a_field_that_is_wrong_is_named_with_what_is_allowed(where, tmp_path):
    value, sentence = WRONG[where]
    data = inner = json.loads(CORE.read_text())
    *path, last = where.split(".")
    for step in path:
        inner = inner[int(step) if step.isdigit() else step]
    inner[int(last) if last.isdigit() else last] = value
    said = list(fields.problems(data))
    assert any(words.startswith(sentence) for words in said), said
    (tmp_path / "wrong.json").write_text(json.dumps(data))
    with pytest.raises(ValueError, match=f"^{re.escape(said[0])}$"):
        recorded.read(tmp_path / "wrong.json")


@pytest.mark.parametrize("name", [*fields.WHOLE, *(f"machine.{one}" for one in fields.MACHINE_NEEDED)])
def test_a_field_that_is_missing_is_named(name):
    data = json.loads(CORE.read_text())
    *path, last = name.split(".")
    del (data[path[0]] if path else data)[last]
    assert f"the field {name} is missing." in list(fields.problems(data))


def leaves(data, path=()):
    """Every place of the data, but only the first of a long list's."""
    yield path
    if isinstance(data, dict | list):
        items = data.items() if isinstance(data, dict) else list(enumerate(data))[:2]
        for name, inner in items:
            yield from leaves(inner, (*path, name))


CORES = json.loads(CORE.read_text())
JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


@given(st.sampled_from(list(leaves(CORES))[1:]), JUNK | st.integers(2**1024, 2**1030))
def test_whatever_stands_in_a_field_is_refused_in_a_sentence_or_can_be_used(path, junk):
    data = inner = copy.deepcopy(CORES)
    for step in path[:-1]:
        inner = inner[step]
    inner[path[-1]] = junk
    said = list(fields.problems(data))
    assert all(words.endswith(".") and len(words) < 600 for words in said)
    if not said:
        machines.Machine(**data["machine"])
        for rows in data["products"].values():
            assert all(2 * b * d * k / seconds >= 0 for b, d, k, seconds in rows)


# Recordings by readers.


@pytest.mark.parametrize("path", sorted(recorded.FOLDER.glob("*.json")), ids=lambda path: path.stem)
def test_the_courses_own_recordings_may_be_added(path, capsys):
    assert review.review(path) == []
    assert review.main([str(path)]) == 0
    assert capsys.readouterr().out.startswith(f"{path.name} may be added: ")


def reviewed(tmp_path, path, change):
    data = json.loads(path.read_text())
    change(data)
    (tmp_path / "theirs.json").write_text(json.dumps(data))
    return review.review(tmp_path / "theirs.json")


def renamed(data):
    data["machine"]["name"] = "one core of another"


def with_a_slow_repeat(data):
    renamed(data)
    data["repeats"][0] |= {"seconds": 1.2 * data["repeats"][0]["seconds"], "spread": 0.02}


def with_one_repeat_alone(data):
    renamed(data)
    del data["repeats"][1:]
    del data["products"]["fp16"], data["products"]["fp64"]


def with_a_wide_repeat(data):
    renamed(data)
    data["repeats"][0] |= {"seconds": 3 * data["repeats"][0]["seconds"], "spread": 1e9}


def without_its_sheet(data):
    data["source"]["by"] = "somebody"
    data["machine"]["has_data_sheet"] = False


def with_a_workload_in_an_unknown_dtype(data):
    renamed(data)
    data["workloads"][-1]["dtype"] = "fp12"


def with_a_foreign_repeat(data):
    renamed(data)
    data["repeats"][0]["size"] = [3, 3, 3]


def with_a_rate_above_the_peak(data):
    data["products"]["bf16"][-1][3] /= 2
    data["source"]["by"] = "somebody"


def with_a_workload_above_the_peak(data):
    renamed(data)
    data["workloads"][-1]["seconds"] /= 10


def with_other_peaks(data):
    data["source"]["by"] = "somebody"
    data["machine"]["peak_flop_per_sec"]["bf16"] *= 2


def of_an_unknown_card(data):
    data["machine"]["name"] = "H1000"


def with_a_dtype_without_a_peak(data):
    data["source"]["by"] = "somebody"
    data["products"]["e2m1"] = data["products"]["bf16"]


@pytest.mark.parametrize(
    ("path", "change", "sentence"),
    [
        (CORE, with_one_repeat_alone, "repeats: no product in bf16 was timed twice. Record again with this version."),
        (CORE, with_a_wide_repeat, "repeats: 1,024 × 1,024 × 1,024 in fp32 took "),
        (H100, without_its_sheet, "machine.has_data_sheet: there is a data sheet of H100 SXM"),
        (CORE, with_a_workload_in_an_unknown_dtype, "workloads: machine.peak_flop_per_sec has no fp12, so GPT-2"),
        (CORE, with_a_slow_repeat, "repeats: 1,024 × 1,024 × 1,024 in fp32 took "),
        (CORE, with_a_foreign_repeat, "repeats: 3 × 3 × 3 in fp32 is not among the products."),
        (CORE, lambda data: None, "machine.name: one_core_of_amd_epyc_with_avx_512_bf16.json is a recording of "),
        (H100, with_a_rate_above_the_peak, "products.bf16: 4,096 × 4,096 × 4,096 in 88.1 µs are 1.56 PFLOP/s, above the dense peak"),
        (CORE, with_a_workload_above_the_peak, "workloads: GPT-2 small, a training step, each layer recomputed at "),
        (H100, with_other_peaks, "machine.peak_flop_per_sec is not that of the data sheet of H100 SXM"),
        (H100, of_an_unknown_card, "machine.name: no data sheet here is called 'H1000'."),
        (H100, with_a_dtype_without_a_peak, "products.e2m1: no dtype is called that here; there are: fp64, "),
        (CORE, lambda data: data.pop("taken"), "the field taken is missing."),
    ],
)  # fmt: skip
def test_a_recording_that_may_not_be_added_is_told_why(tmp_path, path, change, sentence):
    said = reviewed(tmp_path, path, change)
    assert len(said) == 1, said
    assert said[0].startswith(sentence)


def test_the_command_names_the_file_the_fields_and_how_many_more(tmp_path, capsys):
    path = tmp_path / "theirs.json"
    assert review.main([str(path)]) == 1
    assert capsys.readouterr().out.startswith(
        "theirs.json may not be added:\n- it cannot be opened (No such file"
    )
    data = json.loads(H100.read_text())
    data["products"]["bf16"] = [[*size, s / 100] for *size, s in data["products"]["bf16"]]
    path.write_text(json.dumps(data))
    assert review.main([str(path)]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2 + review.MOST_SAID
    assert lines[-1].endswith(" more of the kind.")
    assert review.main([""]) == 2
    assert "make recording FILE=" in capsys.readouterr().out


def test_the_recorder_times_a_product_of_each_dtype_once_more(monkeypatch):
    asked = []

    def timed(call, **_):
        call()
        asked.append(call)
        return measure.Timing((1e-3, 1.1e-3), "best", True, "wall time", 1.0)

    monkeypatch.setattr(measure, "time_call", timed)
    core = recorded.read(CORE)
    small = {dtype: {(16, 16, 16): 1e-3, (8, 8, 8): 1e-3} for dtype in ("fp32", "bf16")}
    again = recorder.repeats(dataclasses.replace(core, seconds_by_size=small), "cpu")
    assert [(one.dtype, one.size, one.seconds) for one in again] == [
        ("fp32", (16, 16, 16), 1e-3),
        ("bf16", (16, 16, 16), 1e-3),
    ]
    assert len(asked) == 2
