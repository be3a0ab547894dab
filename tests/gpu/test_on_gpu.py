"""What can be tried without a GPU of the commands for GPUs.

These are the table of timers, the parts of `make gpu`, and notebooks as they are shown here.
"""

import importlib.metadata
import importlib.util
import json
import re
import sys

import pytest
import torch

import course_utils.chapters
from course_utils.chapters import labs
from tests import ROOT
from tests.tools import bench_gpu, on_gpu, shown_here


def test_every_way_of_timing_gets_a_rate_and_a_spread(monkeypatch):
    head, small, refused = bench_gpu.timers("cpu", ("fp32", "fp8"), (16,), repeats=2).rows
    assert head == ["n × n × n", "dtype", "time_call", "spread", "events", "spread", "ours / best"]
    assert small[:2] == ["16", "fp32"]
    assert "FLOP/s" in small[2]
    assert "FLOP/s" in small[4]
    assert 0 < float(small[-1]) <= 1
    assert "no units for NVIDIA's fp8" in refused[2]
    ours_takes_twice = {"time_call": lambda _: 2.0, "events": lambda _: 1.0}
    monkeypatch.setattr(bench_gpu, "methods", lambda _: ours_takes_twice)
    (_, ours_is_slower) = bench_gpu.timers("cpu", ("fp32",), (16,), repeats=3).rows
    assert ours_is_slower[3::2] == ["0.00%", "0.00%"]
    assert ours_is_slower[-1] == "0.5000"
    monkeypatch.setattr(bench_gpu, "samples", lambda call, device, count: [0.5] * count)
    (_, too_long) = bench_gpu.timers("cpu", ("fp32",), (16,), repeats=3).rows
    assert too_long[2] == "none: a call takes 500 ms"


# Where there is no GPU.


@pytest.mark.skipif(torch.cuda.is_available(), reason="There is a GPU here.")
def test_without_a_gpu_a_sentence_says_that_nothing_was_run(capsys):
    bench_gpu.report()
    assert on_gpu.main([]) == 1
    assert capsys.readouterr().out == (
        "There is no NVIDIA GPU here, so our timer is not held against others on one.\n"
        "There is no NVIDIA GPU here that torch can use; nothing was run.\n"
    )


def test_each_part_is_bounded_and_one_that_fails_does_not_keep_the_next_from_running(
    monkeypatch, capfd, tmp_path
):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda: "a GPU")
    parts = {
        "fails": (20, ["-c", "raise SystemExit(3)"]),
        "hangs": (0.3, ["-c", "import time; time.sleep(60)"]),
        "works": (20, ["-c", "print('here')"]),
    }
    monkeypatch.setattr(on_gpu, "PARTS", parts)
    assert on_gpu.main(["--to", str(tmp_path / "here")]) == 1
    assert (tmp_path / "here").is_dir()
    said = capfd.readouterr().out
    *_, fails, hangs, works = said.splitlines()
    assert re.fullmatch(r"fails: failed \(3\) in \d+ s", fails)
    assert hangs == "hangs: ended after 0.3 s"
    assert re.fullmatch(r"works: done in \d+ s", works)
    assert "\nhere\n" in said
    assert on_gpu.main(["--to", str(tmp_path), "works"]) == 0
    assert on_gpu.main(["wroks"]) == 2
    assert "There is no part wroks. There are: fails, hangs, works." in capfd.readouterr().out


def test_every_part_is_there_to_be_run_and_what_is_here_in_another_version_is_told(monkeypatch):
    for _, (_, module, *_) in on_gpu.PARTS.values():
        assert importlib.util.find_spec(module), module
    assert sum(longest_s for longest_s, _ in on_gpu.PARTS.values()) <= 9 * 60
    _, arguments = on_gpu.PARTS["tests"]
    assert (ROOT / arguments[-1]).exists()
    assert on_gpu.differing() == []
    real = importlib.metadata.version

    def with_an_older_torch(name):
        return "2.11.0+cu130" if name == "torch" else real(name)

    monkeypatch.setattr(importlib.metadata, "version", with_an_older_torch)
    assert on_gpu.differing() == ["torch 2.11.0+cu130 (pinned: 2.13.0)"]


# Notebooks, as they are here.


def code(source, *stored, tags=()):
    """A code cell, with these lines as its stored result."""
    outputs = []
    if stored:
        outputs.append({"output_type": "execute_result", "data": {"text/plain": list(stored)}})
    return {
        "cell_type": "code",
        "id": "abc",
        "source": [source],
        "outputs": outputs,
        "metadata": {"tags": list(tags)},
    }


@pytest.fixture
def ran(tmp_path):
    """A function that runs cells, and returns what is said of each."""
    main = sys.modules["__main__"]

    def run(*cells):
        path = tmp_path / "1.ipynb"
        path.write_text(json.dumps({"cells": cells}))
        return [shown_here.words_on(outcome) for outcome in shown_here.outcomes(path)]

    yield run
    sys.modules["__main__"] = main


def test_cells_run_in_one_module_and_what_differs_fails_or_takes_long_is_named(ran, monkeypatch):
    said = ran(
        code("x = 3\nprint('so')", "so\n"),
        code("x * 2;"),
        code("y = x\n(x * 2, 'a')", "(6,\n", " 'a')"),
        code("import pickle\nclass Kept: pass"),
        code("type(pickle.loads(pickle.dumps(Kept()))) is Kept", "True"),
    )
    assert said == [""] * 5
    differs, fails, goes_on = ran(code("x = 3\nx", "4"), code("1 / 0"), code("x", "3"))
    assert differs == "abc DIFFERS\n  stored: 4\n  here:   3"
    assert fails == "abc FAILED: ZeroDivisionError: division by zero"
    assert goes_on == ""
    monkeypatch.setattr(shown_here, "SLOW_S", 0.0)
    slow, timed = ran(code("4", "4"), code("3", "4", tags=["nbval-ignore-output"]))
    assert slow == "abc took 0.0 s"
    assert timed.startswith("abc (a time or a device) took 0.0 s\n  stored: 4")


def test_without_jupyters_widgets_the_labs_alone_are_left_out(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "course_utils.chapters.labs", labs)
    monkeypatch.setattr(course_utils.chapters, "labs", labs)
    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(shown_here, "find_spec", lambda _: None)
    cells = (
        code("from course_utils import labs"),
        code("labs.float_lab()", "Float lab."),
        code("1", "2"),
    )
    (tmp_path / "1.ipynb").write_text(json.dumps({"cells": cells}))
    assert shown_here.one(tmp_path / "1.ipynb") == 1
    first, second, *_, last = capsys.readouterr().out.splitlines()
    assert first == "Labs are left out: Jupyter's widgets are not installed."
    assert second == "abc DIFFERS"
    assert last == "1.ipynb: 3 cells, 1 failed or differ."
    assert shown_here.main(["09_more"]) == 2
    assert capsys.readouterr().out.startswith(
        "No notebook 09_more. There are: 01_floats, 02_tensors, "
    )
