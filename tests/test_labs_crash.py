"""The crash lab: real processes, really killed; what it counts against other ways to count; and nobody left behind."""

import re
import signal
import subprocess
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
from course_utils.labs import crash
from course_utils.labs.crash import asked, example, picture
from course_utils.labs.crash import words as said
from course_utils.labs.crash.asked import PARTS, PRESETS, Life, Plan, Story
from course_utils.measure import Step
from course_utils.training import long_run
from course_utils.workers import process
from tests.kernels import kernel_in, printed
from tests.labs import lines, run, steps_here
from tests.waiting import has_ended, wait_until
from tests.words import assert_all_can_be_read, words

STEPS = Plan().steps
LAB = labs.lab_named("crash")
WEIGHTS_ALONE = PRESETS["weights alone: same curve?"]


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


def test_it_opens_with_a_crash_that_is_really_computed_and_leaves_the_kernel_as_it_was(reference):
    def state():  # without Python's own generator, from which beartype draws
        return np.random.rand(), torch.rand(1).item(), torch.get_num_threads(), psutil.Process().children()

    example.uninterrupted.cache_clear()
    training.seed_all(5)
    before = state()
    training.seed_all(5)
    with closing(labs.crash_lab()) as lab:
        assert state() == before
        killed, after = lab.session.lab.story.lives
        assert list(killed.losses) == reference[: example.EXAMPLE_CRASH]
        assert list(after.losses) == reference[after.first :]
        classes = [node.get("class") for node in ElementTree.fromstring(lab.screen.svg).iter()]
        assert classes.count("crash") == 2  # strokes of a cross
        assert classes.count("measured") == 8 + 4 + 3  # dots of checkpoints; bars, and the key
        first, second = lines(lab.screen.svg, "line measured")
        assert first[-1] == second[0]  # the curve goes on where the checkpoint was
        assert len(lines(lab.screen.svg, "line predicted under")[0]) == STEPS


@pytest.mark.parametrize(
    ("moved", "sentence"),
    [
        ({}, "An example, made without a process. From step 81 on, 40 of 40 losses equal those of the run"),
        ({"steps": 40}, "87 - 80 = 7 steps"),  # what was done stays in the picture
        ({}, "Next: Resume restores all it needs."),
        ({"every": 4}, "(4 - 1) / 2 = 1.5 on average, 4 if killed in a save"),
        ({"every": 40, "steps": 20}, "(20 - 1) / 2 = 9.5 on average, 20 if"),  # it saves at its end too
        (WEIGHTS_ALONE, "Resume would begin with gradient averages from 0, a second warm-up, the first"),
        (WEIGHTS_ALONE, "Not tried yet, as in this example all was restored. Press Train"),
    ],
)
def test_the_controls_answer_without_a_process(moved, sentence):
    view = LAB.view(Plan(**moved), example.uninterrupted())
    assert sentence in f"{view.meaning} {view.picture}"


def test_the_parts_that_can_be_left_out_are_those_that_a_run_saves():
    assert PARTS == training.PARTS == tuple(said.WITHOUT)


# Real processes.


def test_a_run_that_is_killed_while_it_saves_goes_on_exactly_from_the_save_before(reference, monkeypatch):
    monkeypatch.setattr(crash, "SLOW_DISK_S", 0.5)  # a busy machine hits it too
    with closing(labs.crash_lab()) as lab:
        shop = lab.session.lab
        lab.act("Kill it")
        assert lab.screen.mistake == "No process runs that could be killed. Press Train or Resume first."
        lab.set(pause_ms=10, steps=30)
        lab.start("Train")  # that sentence does not keep it from being drawn
        wait_until(lambda: re.search(r"has made step 1\d", lab.screen.meaning), "10 steps")
        (process,) = shop.processes
        lab.act("Kill it while it saves")
        lab.wait()
        assert process.returncode == -signal.SIGKILL
        assert list(shop.folder.glob("step-00000020.ckpt.*.tmp"))
        assert lab.screen.report == "Killed in a save."
        assert lab.screen.meaning == "Killed in a save after step 20, and step 10 is saved. Press Resume."
        assert "step 20, not whole: never loaded" in words(lab)

        monkeypatch.setattr("course_utils.workers.process.steps_of", steps_here)  # sooner than in another
        assert run(lab, "Resume") == "Complete."
        for life in shop.story.lives:
            assert list(life.losses) == reference[life.first : life.last]
        same = "From step 11 on, 20 of 20 losses equal those of the run never killed, to the last bit."
        assert lab.screen.meaning == same
        assert "20 - 10 = 10 steps10 steps" in words(lab)
        assert "step 10, 20 and 30, whole" in words(lab)
        assert checkpoints.newest(shop.folder).step == 30
        assert not list(shop.folder.glob("*.tmp"))
        with pytest.raises(ValueError, match=r"^All 30 steps are made and saved\. Press Train, or ask for"):
            run(lab, "Resume")
    assert not shop.folder.parent.exists()


CELL = """
from course_utils.labs.crash import CrashLab
from course_utils.labs.crash.asked import Life, Plan, Story
shop = CrashLab()
shop.story = Story(120, (Life(),))
steps = shop.train(Plan(), None)
while not shop.processes:
    next(steps)
print(shop.processes[0].pid, shop.folder.parent, shop.folder.parent.exists())
"""


@pytest.mark.parametrize("killed", [False, True])
def test_the_process_ends_with_its_kernel_which_takes_the_folder_along_when_it_is_restarted(killed, tmp_path):
    with kernel_in(tmp_path) as (manager, client):
        printed(client, f"import tempfile; tempfile.tempdir = {str(tmp_path)!r}")
        pid, folder, there = printed(client, CELL).split()
        assert there == "True"
        manager.restart_kernel(now=killed)
        wait_until(partial(has_ended, int(pid)), "the process has ended")
        assert Path(folder).exists() == killed  # who is killed can tidy up nothing


def test_a_child_is_heard_though_nothing_follows_and_ends_after_its_time_though_its_parent_hangs():
    begun, heard = [], []
    order = {"lines": 500}
    steps = process.steps_of("tests.worker_jobs.much_at_once", order, on_start=begun.append, at_most_s=1)
    while len(heard) < 500:
        step = next(steps)
        heard += [step.numbers["number"]] if step.numbers else []
    assert heard == list(range(500))
    assert begun[0].wait(30) != 0  # and nobody reads any more
    steps.close()


def test_a_slow_disk_takes_longer_for_each_flush(monkeypatch):
    done = []
    monkeypatch.setattr("os.fsync", done.append)
    monkeypatch.setattr("time.sleep", done.append)
    process._slow_the_disk(0.25)
    process.os.fsync(7)
    assert done == [0.25, 7]


# A run's story, where no process need be real.


@pytest.fixture
def shop(monkeypatch):
    """The lab itself. Its processes are played: they tell the losses of the reference, save, and can be killed."""
    monkeypatch.setattr(crash, "WATCH_AT_MOST_S", 0.05)
    shop = crash.CrashLab()
    shop.known(Plan(), None)
    shop.dies_after_saving = None

    def steps_of(work, order, *, on_start, at_most_s, slow_disk_s):
        assert (work, at_most_s, slow_disk_s) == (long_run.train, 120, 0.15)
        on_start(process := Mock(spec=subprocess.Popen))
        folder, first = Path(order["folder"]), shop.story.now.first
        folder.mkdir(exist_ok=True)
        for step in range(first + 1, order["until"] + 1):
            saves = step % order["every"] == 0 or step == order["until"]
            half_written = folder / f"step-{step:08d}.ckpt.0123abcd.tmp"
            if saves:
                half_written.touch()
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
    assert not shop.folder.parent.exists()


def live(shop, job, plan=None, **acts):
    """One process from its beginning to its end; at a step a button may be pressed, or Stop. What is said of it then."""
    plan, pressed = plan or Plan(), {step: act for act, step in acts.items()}
    steps = getattr(shop, job)(plan, None)
    for _ in steps:
        act = pressed.pop(shop.story.now.last, "") if shop.processes else ""
        if act == "stop":
            steps.close()
        elif act:
            getattr(shop, act)(plan, None)
    return said.meaning(Plan(), shop.story)


def rows(shop):
    """Of the table: predicted and measured, by what."""
    return {what: cells for what, *cells in said.rows(Plan(), shop.story)}


def test_what_an_earlier_process_had_half_written_is_no_save_of_this_one(shop):
    live(shop, "train", kill=20)
    live(shop, "resume", kill=13)
    assert "step 20, not whole: never loaded" in LAB.view(Plan(), shop.story).picture
    live(shop, "resume", kill_while_it_saves=15)
    ends = [(life.first, life.last, life.end) for life in shop.story.lives]
    assert ends == [(0, 20, asked.KILLED_SAVING), (10, 13, asked.KILLED), (10, 20, asked.KILLED_SAVING)]


def test_a_run_that_is_stopped_keeps_its_folder_and_resumes_with_the_controls_as_they_are_then(shop):
    stopped = live(shop, "train", Plan(steps=40), stop=27)
    assert stopped == "Ended after step 27, and step 20 is saved. Press Resume."
    assert (shop.story.steps, shop.story.now.saved) == (40, (10, 20))
    assert rows(shop)["done again after the crash"] == ["27 - 20 = 7 steps", "no resume yet"]
    live(shop, "resume", Plan(every=30, steps=60))
    assert (shop.story.now.first, shop.story.now.saved, shop.story.steps) == (20, (30, 60), 60)
    assert rows(shop)["done again after the crash"] == ["27 - 20 = 7 steps", "7 steps"]
    live(shop, "resume", Plan(steps=70))
    assert rows(shop)["done again after the crash"] == ["60 - 60 = 0 steps", "0 steps"]  # that was no crash
    begun_anew = live(shop, "train", Plan(steps=20), kill=1)
    assert begun_anew == "Killed after step 1, and no step is saved. Press Train."
    assert (shop.story.now.saved, shop.story.whole) == ((), ())
    with pytest.raises(ValueError, match=r"^No process has saved anything to go on from\. Press Train"):
        live(shop, "resume")
    assert rows(shop)["done again after the crash"] == ["1 - 0 = 1 step", "no resume yet"]


def test_an_example_cannot_be_resumed_and_a_save_that_was_not_reported_counts(shop):
    with pytest.raises(ValueError, match=r"^No process has saved anything to go on from\. Press Train"):
        live(shop, "resume")
    with pytest.raises(ValueError, match=r"^No process runs that could be killed\. Press Train or Resume"):
        shop.kill_while_it_saves(Plan(), None)
    shop.dies_after_saving = 10
    with pytest.raises(ValueError, match=r"^Its status is -9\.$"):
        live(shop, "train")
    assert (shop.story.now.saved, shop.story.newest, shop.story.now.end) == ((10,), 10, asked.ENDED)


def test_what_is_left_out_is_named_and_inherited_and_the_curve_departs(shop):
    live(shop, "train", kill=11)
    left_out = []
    for plan, kill in ((Plan(optimizer=False), 25), (Plan(), 35), (Plan(data=False), None)):
        meaning = live(shop, "resume", plan, kill=kill)
        left_out.append(shop.story.now.left_out)
    assert left_out == [("optimizer",), ("optimizer",), ("data", "optimizer")]
    assert meaning == (
        "Without data and optimizer, 0 of 90 losses equal those of the run never killed; "
        "they first differ at step 31, by up to 0.25."
    )
    assert rows(shop)["losses equal to a run never killed"] == ["not all", "0 of 90"]


@pytest.mark.parametrize("without", [("optimizer",), ("step",), ("optimizer", "step")])
def test_without_parts_that_a_loss_does_not_read_only_the_first_loss_is_equal(without):
    trained = example.uninterrupted(without)
    counts = {what: cells for what, *cells in said.rows(Plan(), trained)}
    assert counts["losses equal to a run never killed"] == ["only the first", f"1 of {len(trained.gaps)}"]
    assert not next(iter(trained.gaps.values()))


@pytest.mark.parametrize(("every", "steps"), [(10, 120), (40, 50), (40, 100), (30, 40), (7, 120)])
def test_what_a_crash_costs_is_the_mean_over_all_moments_of_the_run(every, steps):
    since = [step - max(save for save in range(0, step + 1, every)) for step in range(steps)]
    mean, worst = sum(since) / steps, max(since) + 1
    *_, (_, expected, _) = said.rows(Plan(every, steps), Story(steps, (Life(0, ()),), (), None, REFERENCE))
    assert f"{mean:.3g} on average, {'at most ' * (steps % every > 0)}{worst} if killed in a save" in expected


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
    counts = {what: cells for what, *cells in said.rows(plan, tale)}
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
    assert re.fullmatch(r"\S+( \S+)+\.", view.meaning)
    assert len(view.meaning) <= 236  # two lines in the page
    assert_all_can_be_read(view.picture)
