"""The crash lab: real processes, really killed; what it counts against other ways to count; and nobody left behind."""

import math
import re
import signal
import subprocess
import sys
from contextlib import closing
from functools import partial
from pathlib import Path
from unittest.mock import Mock
from xml.etree import ElementTree

import numpy as np
import psutil
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from course_utils import checkpoints, labs, measure, training
from course_utils.labs.crash import asked, jobs, picture
from course_utils.labs.crash import words as said
from course_utils.labs.crash.asked import PARTS, PRESETS, Life, Plan, Story
from course_utils.measure import Step
from course_utils.training import long_run
from course_utils.workers import process
from tests import ROOT
from tests.labs import lines, run
from tests.test_machines import timing_of
from tests.waiting import has_ended, wait_until
from tests.words import assert_all_can_be_read, words

STEPS = Plan().steps
LAB = labs.lab_named("crash")
WEIGHTS_ALONE = PRESETS["weights alone: same curve?"]


@pytest.fixture
def lab():
    """The crash lab as it opens."""
    with closing(labs.crash_lab()) as panel:
        yield panel


@pytest.fixture(scope="module")
def reference():
    """The losses of a run that nobody kills, by no way of the lab's."""
    shared = training.shared_states()
    with measure.cpu_threads(1):
        run = long_run.new_run()
        losses = [run.advance() for _ in range(STEPS)]
    training.restore_shared_states(shared)
    return losses


# The first view, which needs no process.


def test_it_opens_with_a_crash_that_is_really_computed_and_no_process(reference):
    before = psutil.Process().children()
    with closing(labs.crash_lab()) as lab:
        assert psutil.Process().children() == before
        killed, after = lab._workshop.story.lives
        assert list(killed.losses) == reference[: jobs.EXAMPLE_CRASH]
        assert list(after.losses) == reference[after.first :]
        classes = [node.get("class") for node in ElementTree.fromstring(lab.screen.svg).iter()]
        assert classes.count("crash") == 2  # strokes of a cross
        assert classes.count("measured") == 8 + 4 + 3  # dots of checkpoints; bars, and the key
        first, second = lines(lab.screen.svg, "line measured")
        assert first[-1] == second[0]  # the curve goes on where the checkpoint was
        assert len(lines(lab.screen.svg, "line predicted under")[0]) == STEPS


def test_it_is_that_of_a_fresh_process_whatever_the_kernel_has_set_and_leaves_that_as_it_was(reference):
    """To the last bit: a CPU that multiplies in bfloat16 shows if it may."""
    products = torch.backends.mkldnn.matmul

    def state():  # without Python's own generator, from which beartype draws
        precisions = torch.get_float32_matmul_precision(), products.fp32_precision
        return np.random.rand(), torch.rand(1).item(), torch.get_num_threads(), *precisions

    threads = torch.get_num_threads()
    torch.set_num_threads(2)
    torch.set_float32_matmul_precision("medium")
    try:
        training.seed_all(5)
        before = state()
        training.seed_all(5)
        jobs.uninterrupted.cache_clear()
        labs.crash_lab().close()
        assert state() == before
        assert list(jobs.uninterrupted().reference) == reference
    finally:
        torch.set_float32_matmul_precision("highest")
        torch.set_num_threads(threads)


LACKS = "gradient averages from 0, a second warm-up, the first batches and dropout's first masks."


@pytest.mark.parametrize(
    ("moved", "sentence"),
    [
        (
            {},
            "An example, made without a process. From step 81 on, 40 of 40 losses equal those of the run never",
        ),
        ({}, "87 - 80 = 7 steps"),
        ({"steps": 40}, "87 - 80 = 7 steps"),  # what was done stays in the picture
        ({}, "Next: Resume restores all it needs."),
        ({"every": 4}, "(4 - 1) / 2 = 1.5 on average, 4 if killed in a save"),
        ({"every": 40, "steps": 20}, "(20 - 1) / 2 = 9.5 on average, 20 if"),  # it saves at its end too
        (WEIGHTS_ALONE, f"Resume would begin with {LACKS}"),
        (WEIGHTS_ALONE, "Not tried yet, as in this example all was restored. Press Train"),
    ],
)
def test_the_controls_answer_without_a_process(moved, sentence):
    view = LAB.view(Plan(**moved), jobs.uninterrupted())
    assert sentence in f"{view.meaning} {view.picture}"


def test_without_a_kernel_it_draws_an_empty_plot_and_says_what_it_lacks():
    view = LAB.view(Plan(), LAB.found)
    assert view.meaning == "Nothing has run: a process that can be killed needs a kernel."
    assert_all_can_be_read(view.picture)


def test_the_parts_that_can_be_left_out_are_those_that_a_run_saves():
    assert PARTS == training.PARTS == tuple(said.WITHOUT)


# Real processes.


def test_a_killed_run_goes_on_exactly_where_it_was(lab, reference, monkeypatch):
    shop = lab._workshop
    lab.set(pause_ms=60)
    lab.act("Kill it")
    assert lab.screen.mistake == "No process runs that could be killed. Press Train or Resume first."
    lab.start("Train")  # that sentence does not keep it from being drawn
    wait_until(lambda: re.search("Process 1 has made step 1[3-9]", lab.screen.meaning), "13 steps")
    (process,) = shop.processes
    for _ in range(2):  # a double click
        lab.act("Kill it")
        assert lab.screen.mistake == ""
    lab.wait()
    assert process.returncode == -signal.SIGKILL
    lab.act("Kill it")  # its second click, when the process is gone already
    assert lab.screen.mistake == ""
    killed_at, newest = shop.story.now.last, shop.story.newest
    assert killed_at - newest in range(11)  # 10: before or in a save
    assert lab.screen.report == "Killed."
    assert lab.screen.meaning == f"Killed after step {killed_at}, and step {newest} is saved. Press Resume."

    # Once more, in the middle of a save.
    monkeypatch.setattr(jobs, "SLOW_DISK_S", 0.5)  # and flushed twice: a busy machine hits it too
    lab.set(pause_ms=10)
    lab.start("Resume")
    wait_until(lambda: shop.processes, "its process")
    lab.act("Kill it while it saves")
    lab.wait()
    torn, whole = shop.story.unfinished, shop.story.newest
    assert (shop.story.now.end, shop.story.now.last, whole) == (asked.KILLED_SAVING, torn, torn - 10)
    assert list(shop.folder.glob(f"step-{torn:08d}.ckpt.*.tmp"))
    assert f"Killed in a save after step {torn}, and step {whole} is saved." in lab.screen.meaning
    assert f"step {torn}, not whole: never loaded" in words(lab)

    monkeypatch.setattr(jobs, "SLOW_DISK_S", 0.0)
    run(lab, "Resume")
    assert [life.first for life in shop.story.lives] == [0, newest, whole]
    for life in shop.story.lives:
        assert list(life.losses) == reference[life.first : life.last]
    equal = STEPS - whole
    losses = f"{equal} of {equal} losses equal those of the run never killed, to the last bit."
    assert lab.screen.meaning == f"From step {whole + 1} on, {losses}"
    assert f"{torn} - {whole} = 10 steps10 steps" in words(lab)
    assert "step 100, 110 and 120, whole" in words(lab)
    assert checkpoints.newest(shop.folder).step == STEPS
    assert not list(shop.folder.glob("*.tmp"))
    with pytest.raises(
        ValueError, match=r"All 120 steps are made and saved\. Ask for more than 120, or press"
    ):
        run(lab, "Resume")


KERNEL = """
import time
from course_utils import labs
lab = labs.crash_lab()
lab.start("Train")
while not lab._workshop.processes:
    assert not lab.screen.failed, lab.screen.report
    time.sleep(0.01)
print(lab._workshop.processes[0].pid, lab._workshop.folder, flush=True)
input()
"""


def test_the_process_ends_with_its_kernel_which_takes_the_folder_along():
    command = [sys.executable, "-c", KERNEL]
    with subprocess.Popen(command, stdin=-1, stdout=-1, text=True, cwd=ROOT) as kernel:
        pid, folder = kernel.stdout.readline().split()
        assert not has_ended(int(pid))
        assert Path(folder).parent.exists()
    wait_until(partial(has_ended, int(pid)), "the process has ended")
    assert not Path(folder).parent.exists()


def test_a_child_is_heard_though_nothing_follows_and_ends_after_its_time_though_its_parent_hangs():
    begun, heard = [], []
    talks = [
        process.steps_of("tests.talking.much_at_once", {"lines": lines}, begun=begun.append, at_most_s=limit)
        for lines, limit in ((10**9, 1), (500, 60))
    ]
    for steps in talks:
        next(steps)  # and of the first never again: the pipe fills, and nobody reads it
    while len(heard) < 500:
        step = next(talks[1])
        if step.numbers:
            heard.append(step.numbers["number"])
    assert heard == list(range(500))
    assert begun[0].wait(30) != 0
    for steps, child in zip(talks, begun, strict=True):
        steps.close()
        assert child.returncode is not None


def test_a_slow_disk_takes_longer_for_each_flush():
    steps = process.steps_of("tests.talking.flushed", {}, at_most_s=60, slow_disk_s=0.25)
    assert timing_of(steps)[1] == {"slept": [0.25]}


# A run's story, where no process need be real.


@pytest.fixture
def shop(monkeypatch):
    """The lab's workshop. Its processes are played: they tell the losses of the reference, save, and can be killed."""
    monkeypatch.setattr(jobs, "WATCH_AT_MOST_S", 0.05)
    shop = jobs.Workshop()
    shop.dies_after_saving = None

    def steps_of(work, order, *, begun, at_most_s, slow_disk_s):
        assert (work, at_most_s, slow_disk_s) == (long_run.train, 120, 0.15)
        begun(process := Mock(spec=subprocess.Popen))
        folder, first = Path(order["folder"]), shop.story.now.first
        folder.mkdir(exist_ok=True)
        for step in range(first + 1, order["until"] + 1):
            saves = step % order["every"] == 0 or step == order["until"]
            half_written = folder / f"step-{step:08d}.ckpt.1-0123abcd.tmp"
            if saves:
                half_written.touch()
            if process.kill.called:  # that early
                raise RuntimeError("Its status is -9.")
            loss = shop.story.reference[step - 1] + (0.25 if order["without"] else 0)
            yield Step(step / 120, f"{step} made.", {"step": step, "loss": loss})
            if process.kill.called:
                raise RuntimeError("Its status is -9.")
            if saves:
                half_written.unlink()
                checkpoints.save_step(folder, step, {"step": step}, keep=3)
                if step == shop.dies_after_saving:
                    raise RuntimeError("Its status is -9.")
                yield Step(step / 120, f"{step} saved.", {"step": step, "saved": step})

    monkeypatch.setattr("course_utils.workers.process.steps_of", steps_of)
    yield shop
    shop.close()


def live(shop, job, plan=None, **acts):
    """One process from its beginning to its end; at a step a button may be pressed, or Stop. Its last report."""
    plan, pressed = plan or Plan(), {step: act for act, step in acts.items()}
    steps = getattr(shop, job)(plan, shop.story)
    reports = []
    for progress in steps:
        reports.append(progress.report)
        act = pressed.pop(shop.story.now.last, "") if shop.runs else ""
        if act == "stop":
            steps.close()
        elif act:
            getattr(shop, act)(plan, shop.story)
    return reports[-1]


def rows(shop, plan=None):
    """Of the account: predicted and measured, by what."""
    return {what: cells for what, *cells in said.account(plan or Plan(), shop.story)}


def test_what_an_earlier_process_had_half_written_is_no_save_of_this_one(shop):
    live(shop, "train", kill=20)
    assert live(shop, "resume", kill=13) == "Killed."
    assert "step 20, not whole: never loaded" in LAB.view(Plan(), shop.story).picture
    live(shop, "resume", kill_while_it_saves=15)
    ends = [(life.first, life.last, life.end) for life in shop.story.lives]
    assert ends == [(0, 20, asked.KILLED_SAVING), (10, 13, asked.KILLED), (10, 30, asked.KILLED_SAVING)]


def test_a_run_that_is_stopped_keeps_its_folder_and_goes_on_as_is_asked_then(shop):
    live(shop, "train", Plan(steps=40), stop=27)
    assert (shop.story.now.end, shop.story.steps, shop.story.now.saved) == (asked.STOPPED, 40, (10, 20))
    assert said.meaning(Plan(), shop.story) == "Stopped after step 27, and step 20 is saved. Press Resume."
    assert rows(shop)["done again after the crash"] == ["27 - 20 = 7 steps", "no resume yet"]
    live(shop, "resume", Plan(every=30, steps=60))
    assert (shop.story.now.first, shop.story.now.saved, shop.story.steps) == (20, (30, 60), 60)
    assert rows(shop)["done again after the crash"] == ["27 - 20 = 7 steps", "7 steps"]
    live(shop, "resume", Plan(steps=70))
    assert rows(shop)["done again after the crash"] == ["60 - 60 = 0 steps", "0 steps"]  # that was no crash
    live(shop, "train", Plan(steps=20), stop=1)
    assert (shop.story.now.saved, shop.story.whole) == ((), ())  # it begins from nothing
    shop.close()
    assert not shop.folder.parent.exists()


def test_a_process_that_is_killed_before_it_has_made_a_step_is_a_crash_too(shop):
    assert live(shop, "train", kill=0) == "Killed."  # before it is there
    view = LAB.view(Plan(), shop.story)
    assert view.meaning == "Killed before it made a step, and no step is saved. Press Train."
    assert "killed at 0" in view.picture
    assert "nothing yet" in view.picture
    with pytest.raises(ValueError, match=r"^No process has saved anything to go on from\. Press Train"):
        live(shop, "resume")
    live(shop, "train", kill=1)
    assert rows(shop)["done again after the crash"] == ["1 - 0 = 1 step", "no resume yet"]


def test_what_was_saved_counts_though_its_process_was_killed_before_it_could_say_so(shop):
    shop.dies_after_saving = 10
    assert live(shop, "train") == "Its status is -9."
    assert (shop.story.now.saved, shop.story.newest, shop.story.now.end) == ((10,), 10, asked.ENDED)
    assert said.meaning(Plan(), shop.story) == "Ended after step 10, and step 10 is saved. Press Resume."


def test_what_is_left_out_is_named_and_inherited_and_the_curve_departs(shop):
    live(shop, "train", kill=11)
    left_out = []
    for plan, kill in ((Plan(optimizer=False), 25), (Plan(), 35), (Plan(data=False), None)):
        live(shop, "resume", plan, kill=kill)
        left_out.append(shop.story.now.left_out)
    assert left_out == [("optimizer",), ("optimizer",), ("data", "optimizer")]
    assert said.meaning(Plan(), shop.story) == (
        "Without data and optimizer, 0 of 90 losses equal those of the run never killed; "
        "first off at step 31, by 0.25 at most."
    )
    assert rows(shop)["losses equal to a run never killed"] == ["not all", "0 of 90"]


def test_there_is_nothing_to_resume_in_an_example_and_nothing_to_kill(shop):
    with pytest.raises(ValueError, match=r"^No process has saved anything to go on from\. Press Train"):
        live(shop, "resume")
    with pytest.raises(
        ValueError, match=r"^No process runs that could be killed\. Press Train or Resume first"
    ):
        shop.kill_while_it_saves(Plan(), shop.story)


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
        off = draw(st.sampled_from([0, 1e-12, 0.3, 40, math.nan])) if left_out else 0
        saved = tuple(range((first // every + 1) * every, last + 1, every))
        end = draw(st.sampled_from([*asked.CRASHES, asked.RUNS, asked.DONE]))
        lives.append((first, tuple(x + off for x in REFERENCE[first:last]), saved, left_out, end))
        whole += saved
        if end in (asked.RUNS, asked.DONE):
            break
    return steps, lives, tuple(whole[1:][-3:]), draw(st.sampled_from([None, steps])), every


@settings(max_examples=60)
@given(plots(), st.integers(20, STEPS), st.sets(st.sampled_from(PARTS)))
def test_its_counts_are_those_of_a_slow_and_plain_count_and_its_words_can_be_read(plot, until, without):
    steps, lives, *folder, every = plot
    tale = Story(steps, tuple(Life(*life) for life in lives), *folder, REFERENCE)  # here, as beartype draws
    plan = Plan(every, until, **dict.fromkeys(without, False))
    counts = {what: cells for what, *cells in said.account(plan, tale)}
    if len(tale.lives) > 1 and tale.now.end not in asked.CRASHES:
        before, now = tale.lives[-2:]
        twice = [step for step in range(now.first + 1, now.last + 1) if before.first < step <= before.last]
        expected, found = counts["done again after the crash"]
        assert expected.startswith(f"{before.last} - {now.first} = ")
        assert found.startswith(f"{len(twice)} step")
    equal = [a == b for a, b in zip(tale.now.losses, REFERENCE[tale.now.first :], strict=False)]
    assert [not gap for gap in tale.gaps.values()] == equal
    assert list(tale.gaps) == list(range(tale.now.first + 1, tale.now.last + 1))
    for n, life in enumerate(tale.lives):
        redone = {s for later in tale.lives[n + 1 :] for s in range(later.first + 1, STEPS + 1)}
        kept = [s for s in range(life.first + 1, life.last + 1) if s not in redone]
        assert max(kept, default=min(life.last, tale.kept(n))) == tale.kept(n)
    view = picture.view(plan, tale)
    assert view.meaning.endswith(".")
    assert len(view.meaning) <= 236  # two lines in the page
    assert "  " not in view.meaning
    assert_all_can_be_read(view.picture)
    for x, y in re.findall(
        r"([-\d.einfa]+),([-\d.einfa]+)", " ".join(re.findall('points="(.*?)"', view.picture))
    ):
        assert 0 <= float(x) <= picture.WIDTH + 8
        assert 0 <= float(y) <= picture.HEIGHT
