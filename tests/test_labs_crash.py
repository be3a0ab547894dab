"""The crash lab: real processes, really killed; what it counts against other ways to count; and nobody left behind."""

import itertools
import math
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import unittest.mock
import xml.etree.ElementTree as ElementTree
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import psutil
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from course_utils import checkpoints, labs, measure, training
from course_utils.labs.crash import jobs, picture
from course_utils.labs.crash import words as said
from course_utils.labs.crash.asked import (
    CRASHES,
    DONE,
    KILLED,
    KILLED_SAVING,
    PARTS,
    RUNS,
    STOPPED,
    Life,
    Plan,
    Story,
)
from course_utils.measure import Step
from course_utils.training import long_run
from course_utils.workers import process
from tests import ROOT
from tests.hostile import button
from tests.test_machines import timing_of
from tests.waiting import has_ended, wait_until
from tests.words import assert_all_can_be_read, words

STEPS = Plan().steps
untimed = settings(deadline=None)


def inside(lab):
    """The workshop behind the panel."""
    return lab._workshop


def story(lab):
    return inside(lab).story


def children():
    return set(psutil.Process().children())


def begin(lab, job, losses=1):
    """Start a job, and wait until its process has told so many losses; the process."""
    lives = len(story(lab).lives)
    lab.start(job)
    if job == "Resume":
        wait_until(lambda: len(story(lab).lives) > lives, "a new life")
    else:
        wait_until(lambda: not story(lab).example and story(lab).now.end == RUNS, "a new life")
    (process,) = wait_until(lambda: inside(lab).processes, "its process")
    wait_until(lambda: len(story(lab).now.losses) >= losses, "its losses")
    return process


@pytest.fixture
def before():
    """The processes that were there already."""
    return children()


@pytest.fixture
def crash(before, monkeypatch):
    """The crash lab as it opens, and a disk and a run that are quick."""
    monkeypatch.setattr(jobs, "SLOW_DISK_S", 0.0)
    lab = labs.crash_lab()
    lab.set(pause_ms=10)
    yield lab
    lab.close()
    wait_until(lambda: not inside(lab).processes, "the process is gone")
    assert children() <= before


@pytest.fixture
def played(monkeypatch):
    """Where no process need be real: what is put in here is work that plays one."""

    def play(steps):
        def steps_apart(work, order, *, begun, **limits):
            begun(unittest.mock.Mock(spec=subprocess.Popen))
            yield from steps(work, order)

        monkeypatch.setattr("course_utils.workers.process.steps_of", steps_apart)

    return play


def trained_here(work, order):
    """Nobody kills it, so it may as well live among us."""
    said, shared = [], training.shared_states()
    with measure.cpu_threads(1):
        work(said.append, **order)
    training.restore_shared_states(shared)
    yield from said


@pytest.fixture(scope="module")
def reference():
    """The losses of a run that nobody kills, by no way of the lab's."""
    shared, threads = training.shared_states(), torch.get_num_threads()
    torch.set_num_threads(1)
    run = long_run.the_run()
    losses = [run.advance() for _ in range(STEPS)]
    torch.set_num_threads(threads)
    training.restore_shared_states(shared)
    return losses


# The first view, which needs no process.


def test_it_opens_with_a_crash_that_is_really_computed_and_no_process(before, crash, reference):
    assert children() <= before
    killed, after = story(crash).lives
    assert list(killed.losses) == reference[: jobs.EXAMPLE_CRASH]
    assert list(after.losses) == reference[after.first :]
    assert crash.screen.meaning == (
        "An example, made without a process. "
        "From step 81 on, 40 of 40 losses equal those of the run never killed, to the last bit."
    )
    assert "87 - 80 = 7 steps" in words(crash)
    assert not re.search(r"/|\bpid\b|0x", words(crash).replace(") / 2 =", ""))


def test_its_losses_are_those_of_a_fresh_process_whatever_the_kernel_has_set(reference):
    """To the last bit: a CPU that multiplies in bfloat16 shows if it may."""
    jobs.uninterrupted.cache_clear()
    torch.set_float32_matmul_precision("medium")
    products = torch.backends.mkldnn.matmul
    try:
        asked = products.fp32_precision
        assert list(jobs.uninterrupted().reference) == reference
        assert (torch.get_float32_matmul_precision(), products.fp32_precision) == ("medium", asked)
    finally:
        torch.set_float32_matmul_precision("highest")


def test_making_the_lab_draws_no_random_number_from_anybody():
    jobs.uninterrupted.cache_clear()
    threads = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        training.seed_all(5)
        expected = (
            np.random.rand(),
            torch.rand(1).item(),
        )  # beartype draws from Python's own, so not that here
        training.seed_all(5)
        labs.crash_lab().close()
        assert (np.random.rand(), torch.rand(1).item()) == expected
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(threads)


def test_the_controls_answer_without_a_process(crash):
    crash.set(every=4)
    assert "(4 - 1) / 2 = 1.5 on average, 4 if killed in a save" in words(crash)
    crash.set(every=40, steps=20)  # it saves at its end too
    assert "(20 - 1) / 2 = 9.5 on average, 20 if" in words(crash)
    crash.set(steps=40)
    assert "Next: Resume restores all it needs." in words(crash)
    assert "87 - 80 = 7 steps" in words(crash)  # what was done stays in the picture
    crash.preset("weights alone: same curve?")
    lacks = "gradient averages from 0, a second warm-up, the first batches and dropout's first masks."
    assert f"Resume would begin with {lacks}" in words(crash)
    assert crash.screen.meaning.startswith("Not tried yet, as in this example all was restored.")
    crash.preset("all restored: same curve?")
    assert "Resume restores all it needs." in words(crash)


# Killed and resumed.


def test_a_killed_run_goes_on_exactly_where_it_was(crash, reference, monkeypatch):
    for label in ("Kill it", "Kill it while it saves"):
        crash.act(label)
        assert crash.screen.mistake == "No process runs that could be killed. Press Train or Resume first."
    crash.set(pause_ms=60)
    process = begin(crash, "Train", losses=13)  # that sentence does not keep it from being drawn
    wait_until(lambda: "Process 1 has made" in crash.screen.meaning, "the run is drawn")
    assert process.pid != os.getpid()
    crash.act("Kill it")
    crash.act("Kill it")  # a double click
    assert crash.screen.mistake == ""
    crash.wait()
    crash.act("Kill it")  # its second click, when the process is gone already
    assert crash.screen.mistake == ""
    assert process.returncode == -signal.SIGKILL
    killed_at, newest = story(crash).now.last, story(crash).newest
    assert killed_at - newest in range(11)  # 10: before or in a save
    assert f"step-{newest:08d}.ckpt" == max(path.name for path in inside(crash).folder.glob("*.ckpt"))
    assert crash.screen.report == "Killed."
    assert crash.screen.meaning == f"Killed after step {killed_at}, and step {newest} is saved. Press Resume."
    assert f"{killed_at} - {newest} = " in words(crash)
    assert "no resume yet" in words(crash)
    assert list(story(crash).now.losses) == reference[:killed_at]

    # Once more, in the middle of a save.
    monkeypatch.setattr(jobs, "SLOW_DISK_S", 0.5)  # and flushed twice: a busy machine hits it too
    crash.set(pause_ms=10)
    process = begin(crash, "Resume")
    crash.act("Kill it while it saves")
    crash.wait()
    monkeypatch.setattr(jobs, "SLOW_DISK_S", 0.0)
    told = story(crash)
    torn, whole = told.unfinished, told.newest
    assert process.returncode == -signal.SIGKILL
    assert (told.now.first, told.now.end, told.now.last, whole) == (newest, KILLED_SAVING, torn, torn - 10)
    *_, last = sorted(path.name for path in inside(crash).folder.iterdir())
    assert last.startswith(f"step-{torn:08d}.ckpt.")
    assert last.endswith(".tmp")
    assert f"Killed in a save after step {torn}, and step {whole} is saved." in crash.screen.meaning
    assert f"step {torn}, not whole: never loaded" in words(crash)

    crash.start("Resume")
    crash.wait()
    lives = story(crash).lives
    assert [life.first for life in lives] == [0, newest, whole]
    for life in lives:
        assert list(life.losses) == reference[life.first : life.last]
    assert lives[-1].last == STEPS
    equal = STEPS - whole
    losses = f"{equal} of {equal} losses equal those of the run never killed, to the last bit."
    assert f"From step {whole + 1} on, {losses}" in crash.screen.meaning
    assert f"{torn} - {whole} = 10 steps10 steps" in words(crash)
    found = checkpoints.newest(inside(crash).folder)
    assert found.step == STEPS
    assert "step 100, 110 and 120, whole" in words(crash)
    assert not list(inside(crash).folder.glob("*.tmp"))

    crash.start("Resume")
    with pytest.raises(
        ValueError, match=r"All 120 steps are made and saved\. Ask for more than 120, or press Train\."
    ):
        crash.wait()
    assert story(crash).lives == lives


def test_what_an_earlier_process_had_half_written_is_no_save_of_this_one(crash, played, monkeypatch):
    monkeypatch.setattr(jobs, "WATCH_AT_MOST_S", 0.05)
    folder = inside(crash).folder
    writes = "step-{:08d}.ckpt.1-0123abcd.tmp".format

    def steps(*numbers):
        for step in numbers:
            yield Step(step / 120, "", {"step": step, "loss": 1.0})

    def killed_in_its_first_save(work, order):
        yield from steps(*range(1, 11))
        checkpoints.save_step(folder, 10, {"step": 10})
        yield from steps(*range(11, 21))
        (folder / writes(20)).touch()
        crash.act("Kill it")
        raise RuntimeError

    def killed_between_two_saves(work, order):
        yield from steps(11, 12, 13)
        crash.act("Kill it")
        raise RuntimeError

    def killed_when_it_saves(work, order):
        crash.act("Kill it while it saves")
        yield from steps(*range(11, 30))
        (folder / writes(30)).touch()
        yield from itertools.takewhile(lambda _: not inside(crash).killed, steps(*range(30, 121)))
        raise RuntimeError

    lives = [killed_in_its_first_save, killed_between_two_saves, killed_when_it_saves]
    for number, (life, job) in enumerate(zip(lives, ["Train", "Resume", "Resume"], strict=True)):
        played(life)
        crash.start(job)
        crash.wait()
        assert len(story(crash).lives) == number + 1
        if life is killed_between_two_saves:
            assert "Killed after step 13" in crash.screen.meaning
            assert "step 20, not whole: never loaded" in words(crash)
    assert [(life.last, life.end) for life in story(crash).lives] == [
        (20, KILLED_SAVING),
        (13, KILLED),
        (30, KILLED_SAVING),
    ]


def test_what_is_left_out_is_named_and_the_curve_departs(crash, reference, played):
    played(trained_here)
    crash.set(steps=20)
    crash.start("Train")
    crash.wait()
    assert "From step 1 on, 20 of 20 losses equal" in crash.screen.meaning
    assert "no resume yet" in words(crash)
    crash.preset("weights alone: same curve?")
    crash.set(steps=40)
    crash.start("Resume")
    crash.wait()
    life = story(crash).now
    assert life.left_out == ("optimizer", "step", "data", "generators")
    gaps = [abs(a - b) for a, b in zip(life.losses, reference[20:40], strict=True)]
    assert gaps[0] > 0
    assert crash.screen.meaning == (
        "Without optimizer, step, data and generators, 0 of 20 losses equal those of the run never killed; "
        f"first off at step 21, by {max(gaps):.2g} at most."
    )
    assert "not all" in words(crash)
    assert "20 - 20 = 0 steps0 steps" in words(crash)  # to ask for more steps is no crash


def test_a_job_that_is_stopped_before_its_process_begins_has_ended(crash):
    job = inside(crash).train(Plan(), story(crash))
    next(job)
    job.close()
    assert story(crash).now.end == STOPPED
    crash.act("Kill it")
    assert "No process runs" in crash.screen.mistake


def test_a_process_ends_by_itself_after_its_time(before, crash, monkeypatch):
    monkeypatch.setattr(jobs, "LONGEST_S", 0.5)
    crash.start("Train")
    crash.wait()
    assert "Ended after 0.5 s, which is the most that it was given." in crash.screen.report
    assert story(crash).now.end == "ended"
    assert children() <= before


# Sentences.


def test_there_is_nothing_to_resume_in_an_example(crash):
    crash.start("Resume")
    with pytest.raises(ValueError, match=r"^No process has saved anything to go on from\. Press Train"):
        crash.wait()


def test_a_process_that_is_killed_before_it_has_made_a_step_is_a_crash_too(crash, monkeypatch):
    real = process.steps_of

    def killed_at_once(*work, begun, **options):
        def kill(process):
            begun(process)
            crash.act("Kill it")  # as early as can be

        return real(*work, begun=kill, **options)

    monkeypatch.setattr("course_utils.workers.process.steps_of", killed_at_once)
    crash.start("Train")
    crash.wait()
    assert crash.screen.meaning == "Killed before it made a step, and no step is saved. Press Train."
    assert "killed at 0" in words(crash)
    assert "nothing yet" in words(crash)
    crash.start("Resume")
    with pytest.raises(ValueError, match="No process has saved anything"):
        crash.wait()


def test_a_press_on_kill_before_the_process_is_there_is_remembered(crash, monkeypatch):
    real, may_begin = process.steps_of, threading.Event()

    def late(*work, **options):
        may_begin.wait(10)
        yield from real(*work, **options)

    monkeypatch.setattr("course_utils.workers.process.steps_of", late)
    crash.start("Train")
    wait_until(lambda: inside(crash).runs, "the job has begun")
    crash.act("Kill it")
    assert not crash.screen.mistake
    may_begin.set()
    crash.wait(60)
    assert crash.screen.report.startswith("Killed")
    assert story(crash).now.last < 120


def test_what_was_saved_counts_though_its_process_was_killed_before_it_could_say_so(crash, played):
    def killed_late(work, order):
        for step in range(1, 11):
            yield Step(step / 20, "", {"step": step, "loss": 1.0})
        checkpoints.save_step(order["folder"], 10, {"step": 10})
        raise RuntimeError("Its status is -9.")

    played(killed_late)
    crash.start("Train")
    crash.wait()
    assert (story(crash).now.saved, story(crash).newest) == ((10,), 10)
    assert crash.screen.report == "Its status is -9."
    assert crash.screen.meaning == "Ended after step 10, and step 10 is saved. Press Resume."


# Nobody is left behind.


def test_a_process_has_ended_when_it_is_gone_or_only_waits_to_be_asked_for():
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        assert not has_ended(process.pid)
        process.kill()
        wait_until(lambda: has_ended(process.pid), "it is a zombie")
        assert psutil.pid_exists(process.pid)
    assert has_ended(process.pid)


KERNELS = """
import os, sys, time
from course_utils import labs
from course_utils.labs.crash import jobs
jobs.uninterrupted()
ends = os.fork()  # two kernels for one import
lab = labs.crash_lab()
lab.set(pause_ms=250)
lab.start("Train")
inside = lab._workshop
while not inside.story.now.losses or inside.story.example:
    assert not lab.screen.failed, lab.screen.report
    time.sleep(0.01)
print("ends" if ends else "is_killed", os.getpid(), inside.processes[0].pid, inside.folder, flush=True)
if not ends:
    time.sleep(60)
"""


def test_the_process_ends_with_its_kernel_which_takes_the_folder_along_if_it_can():
    kernels = subprocess.Popen(
        [sys.executable, "-c", KERNELS], stdout=subprocess.PIPE, text=True, cwd=ROOT, start_new_session=True
    )
    try:
        told = dict(kernels.stdout.readline().split(maxsplit=1) for _ in range(2))
        kernels.wait(60)
        for end in ("ends", "is_killed"):
            kernel, process, folder = told[end].split()
            if end == "is_killed":
                assert not has_ended(int(process))
                os.kill(int(kernel), signal.SIGKILL)
            wait_until(partial(has_ended, int(process)), "the process has ended")
            assert Path(folder).parent.exists() == (end == "is_killed")
            shutil.rmtree(Path(folder).parent, ignore_errors=True)
    finally:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(kernels.pid, signal.SIGKILL)
        kernels.wait()
        kernels.stdout.close()


def test_stop_keeps_the_folder_and_a_cell_run_again_or_a_closed_panel_takes_it_along(crash, reference):
    process = begin(crash, "Train", losses=0)
    inside(crash).folder.mkdir(exist_ok=True)
    lab = labs.crash_lab()
    crash.wait()
    assert (story(crash).now.end, process.returncode) == (STOPPED, -signal.SIGKILL)
    assert not inside(crash).folder.parent.exists()

    lab.set(steps=40, pause_ms=100)
    process, folder = begin(lab, "Train", losses=11), inside(lab).folder.parent
    assert button(lab, "Train").disabled
    assert button(lab, "Resume").disabled
    lab.start("Train")  # while it trains: nothing
    assert inside(lab).processes == [process]
    lab.set(every=20, steps=60, pause_ms=10)  # for the next process; this one keeps its own
    lab.stop()
    lab.wait()
    assert process.returncode is not None
    assert lab.screen.report.startswith("Stopped.")
    assert (story(lab).now.end, story(lab).steps) == (STOPPED, 40)
    assert "Stopped after step" in lab.screen.meaning
    assert story(lab).now.saved[0] == 10
    newest = story(lab).newest

    process = begin(lab, "Resume")
    wait_until(lambda: story(lab).now.saved, "it has saved")
    assert folder.is_dir()
    lab.close()
    assert process.returncode is not None
    assert not folder.exists()
    life = story(lab).now
    assert all(step % 20 == 0 for step in life.saved)
    assert (life.first, story(lab).steps) == (newest, 60)
    assert list(life.losses) == reference[newest : life.last]
    lab.wait()
    assert not folder.exists()


# Work in a process of its own, of which the lab asks more than others did.


def test_a_child_is_heard_though_nothing_follows_and_ends_after_its_time_though_its_parent_hangs():
    begun, heard = [], []
    talks = [
        process.steps_of("tests.talking.much_at_once", {"lines": lines}, begun=begun.append, at_most_s=limit)
        for lines, limit in ((10**9, 1), (500, 60))
    ]
    for steps in talks:
        next(steps)  # and of the first never again: the pipe fills, and nobody reads it
    for step in talks[1]:
        if step.numbers and heard[-1:] != [step.numbers["number"]]:
            heard.append(step.numbers["number"])
        if len(heard) == 500:
            break
    assert heard == list(range(500))
    assert begun[0].wait(30) != 0
    for steps, child in zip(talks, begun, strict=True):
        steps.close()
        assert child.returncode is not None


def test_a_slow_disk_takes_longer_for_each_flush():
    steps = process.steps_of("tests.talking.flushed", {}, at_most_s=60, slow_disk_s=0.25)
    assert timing_of(steps)[1] == {"slept": [0.25]}


# What it counts and draws, over made-up stories.


REFERENCE = tuple(6 / (1 + n) + 1 + n * 37 % 11 / 10 for n in range(STEPS))


@st.composite
def plots(draw):
    """How lives came after each other, each but the first from a checkpoint of an earlier one; and a slider."""
    steps, every = draw(st.integers(20, 120)), draw(st.integers(1, 40))
    lives, whole = [], [0]
    while len(lives) < 9:
        first = draw(st.sampled_from(whole[-3:]))  # the newer ones may be damaged
        last = draw(st.integers(first, steps))
        left_out = tuple(part for part in training.PARTS if lives and draw(st.booleans()))
        off = draw(st.sampled_from([0, 1e-12, 0.3, 40])) if left_out else 0
        saved = tuple(range((first // every + 1) * every, last + 1, every))
        end = draw(st.sampled_from([*CRASHES, RUNS, DONE]))
        lives.append((first, tuple(x + off for x in REFERENCE[first:last]), saved, left_out, end))
        whole += saved
        if end in (RUNS, DONE):
            break
    return steps, lives, tuple(whole[1:][-3:]), draw(st.sampled_from([None, steps])), every


def told(plot):
    """The story of a plot; not made in its strategy, where nobody else may draw at random, and beartype does."""
    steps, lives, *folder, _ = plot
    return Story(steps, tuple(Life(*life) for life in lives), *folder, REFERENCE)


@untimed
@given(plots())
def test_its_counts_are_those_of_a_slow_and_plain_count(plot):
    tale = told(plot)
    rows = {what: cells for what, *cells in said.account(Plan(plot[-1]), tale)}
    if len(tale.lives) > 1:
        before, now = tale.lives[-2:]
        twice = [step for step in range(now.first + 1, now.last + 1) if before.first < step <= before.last]
        if now.end not in CRASHES:
            expected, found = rows["done again after the crash"]
            assert expected.startswith(f"{before.last} - {now.first} = ")
            assert found.startswith(f"{len(twice)} step")
    equal = [a == b for a, b in zip(tale.now.losses, REFERENCE[tale.now.first :], strict=False)]
    assert [not gap for gap in tale.gaps.values()] == equal
    assert list(tale.gaps) == list(range(tale.now.first + 1, tale.now.last + 1))
    for n, life in enumerate(tale.lives):
        redone = {s for later in tale.lives[n + 1 :] for s in range(later.first + 1, STEPS + 1)}
        kept = [s for s in range(life.first + 1, life.last + 1) if s not in redone]
        assert max(kept, default=min(life.last, tale.kept(n))) == tale.kept(n)


def test_who_departs_by_what_it_inherited_is_not_blamed(crash, played):
    def goes_on(work, order):
        begin = story(crash).now.first
        for step in range(begin + 1, begin + 11):
            yield Step(step / 120, "", {"step": step, "loss": 9.0 if order["without"] else float(step)})
        checkpoints.save_step(inside(crash).folder, step, {"step": step})
        yield Step(step / 120, "", {"step": step, "saved": step})
        raise RuntimeError

    played(goes_on)
    left_out, order = [], ["Train", "Resume", "Resume", "Resume"]
    for job, without in zip(order, [(), ("optimizer",), (), ("data",)], strict=True):
        crash.set(**{part: part not in without for part in PARTS})
        crash.start(job)
        crash.wait()
        left_out.append(story(crash).now.left_out)
    assert left_out == [(), ("optimizer",), ("optimizer",), ("data", "optimizer")]
    now = replace(story(crash).now, end=DONE)
    tale = replace(story(crash), lives=(*story(crash).lives[:-1], now))
    assert said.meaning(Plan(), tale).startswith("Without data and optimizer, 0 of 10 losses equal")
    nan = Story(1, (Life(0, (math.nan,), end=DONE),), reference=REFERENCE)
    assert "0 of 1 losses equal those of the run never killed; first off at step 1" in said.meaning(
        Plan(), nan
    )


def test_a_new_crash_has_the_last_resumes_count_no_more():
    losses = REFERENCE[:47]
    lives = Life(0, losses[:20], (20,), end=KILLED), Life(20, losses[20:], (30, 40), end=KILLED)
    rows = said.account(Plan(), Story(120, lives, (20, 30, 40), None, REFERENCE))
    assert ("done again after the crash", "47 - 40 = 7 steps", "no resume yet") in rows
    never = Story(120, (Life(0, losses[:1], end=KILLED),), reference=REFERENCE)
    assert ("done again after the crash", "1 - 0 = 1 step", "no resume yet") in said.account(Plan(), never)


@settings(untimed, max_examples=60)
@given(plots(), st.integers(20, STEPS), st.sets(st.sampled_from(PARTS)))
def test_no_words_overlap_or_run_out_whatever_has_happened(plot, steps, without):
    view = picture.view(Plan(plot[-1], steps, **dict.fromkeys(without, False)), told(plot))
    assert view.meaning.endswith(".")
    assert len(view.meaning) <= 236  # two lines in the page
    assert "  " not in view.meaning
    assert_all_can_be_read(view.picture)
    for node in ElementTree.fromstring(view.picture).iter():
        for x, y in re.findall(r"([-\d.einfa]+),([-\d.einfa]+)", node.get("points", "")):
            assert 0 <= float(x) <= picture.WIDTH + 8
            assert 0 <= float(y) <= picture.HEIGHT


def test_without_a_kernel_it_draws_an_empty_plot_and_says_what_it_lacks():
    lab = labs.lab_named("crash")
    view = lab.view(Plan(), lab.found)
    assert view.meaning == "Nothing has run: a process that can be killed needs a kernel."
    assert_all_can_be_read(view.picture)


def test_the_parts_that_can_be_left_out_are_those_that_a_run_saves():
    assert PARTS == training.PARTS == tuple(said.WITHOUT)


def test_every_crash_has_its_cross_and_every_checkpoint_its_dot(crash):
    svg = ElementTree.fromstring(crash.screen.svg)
    classes = [node.get("class") for node in svg.iter()]
    assert classes.count("crash") == 2  # strokes
    assert classes.count("measured") - 3 == 8 + 4  # bars of two processes, and the key
    assert classes.count("line predicted under") == 1
    before, after = (node for node in svg.iter() if node.get("class") == "line measured")
    ends = [line.get("points").split() for line in (before, after)]
    assert ends[0][-1] == ends[1][0]  # the curve goes on where the checkpoint was
