"""Processes that save are really killed, and disks really fill up: nothing that was saved is lost or torn.

Where the kills land depends on the machine and is only reported (`pytest -s`); what must hold, holds wherever.
"""

import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
from collections import Counter
from contextlib import suppress

import pytest
import torch

from course_utils import checkpoints
from course_utils.training import long_run
from course_utils.workers import process
from tests import crashes
from tests.waiting import has_ended, wait_until

KILLS_OF_A_RUN, KILLS_OF_SAVERS = 110, 25
UNTIL, EVERY = 180, 1
MOST_S = 0.010  # after its last word: about as long as a save or two steps take


@pytest.fixture(scope="module")
def nursery():
    nursery = crashes.Nursery()
    yield nursery
    nursery.end()


@pytest.fixture(scope="module")
def whole(nursery, tmp_path_factory):
    """A run that nobody disturbed: its losses by step, and the bytes of its last checkpoint."""
    folder = tmp_path_factory.mktemp("whole")
    life = nursery.live("train", folder=str(folder), until=UNTIL, every=EVERY)
    assert not life.killed
    losses = {said["step"]: said["loss"] for said in life.said if "loss" in said}
    assert list(losses) == list(range(1, UNTIL + 1))
    return losses, checkpoints.newest(folder).path.read_bytes()


def assert_good(state, step):
    """The state of this step, and not half of another's."""
    assert state["step"] == step
    for tensor, number in zip(state["numbers"], (step, -step), strict=True):
        assert tensor.shape == (crashes.NUMBERS,)
        assert tensor.eq(number).all()


def temporary_files(folder):
    return [path.name for path in folder.iterdir() if path.suffix == ".tmp"]


# Kills.


def test_a_training_process_killed_a_hundred_times_ends_where_an_undisturbed_one_does_bit_for_bit(
    nursery, whole, tmp_path
):
    losses, last_file = whole
    draw, phases, kills, runs = random.Random(0), Counter(), 0, 0
    while kills < KILLS_OF_A_RUN:
        runs += 1
        folder, told, acknowledged = tmp_path / f"{runs}", {}, 0
        while True:
            # The kill is so long after some word of this life's, which is a loss or a save: it lands anywhere.
            words, delay_s = draw.randint(0, 9), draw.uniform(0, MOST_S)
            words = words if kills < KILLS_OF_A_RUN else None  # enough: it may come to its end
            order = {"folder": str(folder), "until": UNTIL, "every": EVERY}
            life = nursery.live("train", words=words, delay_s=delay_s, **order)
            kills += life.killed
            phases[life.phase] += life.killed
            for said in life.said:
                if "resumed" in said:
                    assert said["resumed"] >= acknowledged  # nothing that was saved is lost
                if "loss" in said:
                    assert said["loss"] == losses[said["step"]]  # and each step is the undisturbed run's
                    told[said["step"]] = said["loss"]
                acknowledged = said.get("saved", acknowledged)
            newest = checkpoints.newest(folder)
            assert (newest.step if newest else 0) >= acknowledged
            assert not (newest and newest.passed_over)
            if acknowledged == UNTIL:
                break
        assert told == losses
        assert newest.path.read_bytes() == last_file
    print(f"\nA training process was killed {kills} times in {runs} runs, while {dict(phases)}.")


@pytest.mark.parametrize("work", ["save_steps", "save_one_file"])
def test_what_a_killed_saver_had_saved_is_there_and_whole(nursery, tmp_path, work):
    draw, phases, last = random.Random(1), Counter(), -1
    where = {"folder": str(tmp_path)} if work == "save_steps" else {"path": str(tmp_path / "one.ckpt")}
    for _ in range(KILLS_OF_SAVERS):
        life = nursery.live(work, words=draw.randint(0, 2), delay_s=draw.uniform(0, 2 * MOST_S), **where)
        assert life.killed
        phases[life.phase] += 1
        last = max([last, *life.said])
        if work == "save_steps":
            found = checkpoints.newest(tmp_path)
            if found is None:
                assert last == -1
                continue
            assert found.passed_over == ()
            step, state = found.step, found.state
        elif not (tmp_path / "one.ckpt").exists():
            assert last == -1
            continue
        else:
            state = checkpoints.load(tmp_path / "one.ckpt")
            step = state["step"]
        assert step in (last, last + 1)  # killed before it could say so
        assert_good(state, step)
        last = step
        assert len(temporary_files(tmp_path)) <= 1  # and the next save removes it
    assert last > 0
    print(f"\n{work}: {KILLS_OF_SAVERS} kills, while {dict(phases)}.")


def test_a_save_may_die_before_or_after_any_call_of_the_system(nursery, tmp_path):
    events = nursery.live("die_at", folder=str(tmp_path / "count"), step=1, event=-1).said[0]
    assert events > 40
    old_ones, new_ones, folder = 0, 0, tmp_path / "steps"
    checkpoints.save_step(folder, 0, {"step": 0})
    for event in range(1, events + 1):
        assert nursery.live("die_at", folder=str(folder), step=2 * event - 1, event=event).killed
        found = checkpoints.newest(folder)
        assert found.passed_over == ()
        if found.step == 2 * event - 1:
            assert_good(found.state, found.step)
            new_ones += 1
        else:
            assert found.state == {"step": 2 * event - 2}
            old_ones += 1
        checkpoints.save_step(folder, 2 * event, {"step": 2 * event}, keep=1)
        assert os.listdir(folder) == [f"step-{2 * event:08d}.ckpt"]  # nothing is left behind
    assert old_ones + new_ones == events
    assert min(old_ones, new_ones) > 10  # before the renaming, and after
    print(
        f"\nKilled at each of {events} calls: {old_ones} times before the new one counted, {new_ones} after."
    )


def test_the_naive_way_does_lose_what_was_saved(nursery, tmp_path):
    """So the tests above are able to fail."""
    events = nursery.live("die_at", folder=str(tmp_path), step=1, event=-1, naively=True).said[0]
    lost = 0
    for event in range(1, events + 1):
        life = nursery.live("die_at", folder=str(tmp_path), step=1, event=event, naively=True)
        assert life.killed
        with suppress(ValueError):
            checkpoints.newest(tmp_path)
            continue
        lost += 1
    assert lost > 4
    draw, torn, path = random.Random(2), 0, tmp_path / "one.ckpt"
    for _ in range(20):
        order = {"path": str(path), "naively": True}
        nursery.live("save_one_file", words=1, delay_s=draw.uniform(0, MOST_S), **order)
        try:
            checkpoints.load(path)
        except ValueError:
            torn += 1
    print(f"\nOverwriting in place: torn at {lost} of {events} calls, and by {torn} of 20 kills at random.")


# Processes.


def test_a_run_apart_is_killed_and_goes_on_and_tells_all_its_losses_to_the_last_bit(whole, tmp_path):
    losses, last_file = whole
    told, processes = [], []
    order = {"folder": str(tmp_path), "until": UNTIL, "every": 20}
    steps = process.steps_of(long_run.train, order | {"pace_s": 0.002}, begun=processes.append)

    def hear(kill_at=-1):
        for step in steps:
            if step.numbers:
                told.append(step.numbers)
            if step.numbers.get("step") == kill_at:
                processes[-1].send_signal(signal.SIGKILL)

    with pytest.raises(RuntimeError, match=f"ended early. Its status is -{signal.SIGKILL:d}"):
        hear(kill_at=50)
    heard = [said["step"] for said in told if "loss" in said]
    assert heard == list(range(1, len(heard) + 1))  # every one, once
    assert len(heard) >= 50
    steps = process.steps_of(long_run.train, order, begun=processes.append)
    hear()
    resumed = next(said["resumed"] for said in told if "resumed" in said)
    assert resumed >= 40
    assert resumed % 20 == 0
    later = [said for said in told if "loss" in said][len(heard) :]
    assert [said["step"] for said in later] == list(range(resumed + 1, UNTIL + 1))
    assert all(said["loss"] == losses[said["step"]] for said in told if "loss" in said)
    assert checkpoints.newest(tmp_path).path.read_bytes() == last_file


PARENT = """
import sys
from course_utils.workers import process
from course_utils.training import long_run
order = {"folder": sys.argv[1], "until": 300, "every": 10, "pace_s": 300.0}
for step in process.steps_of(long_run.train, order, begun=lambda child: print(child.pid, flush=True)):
    if "loss" in step.numbers:
        print("trains", flush=True)
"""


def test_a_run_ends_when_its_parent_is_killed(tmp_path):
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, str(tmp_path)], stdout=subprocess.PIPE, text=True, cwd=crashes.ROOT
    )
    with parent.stdout:
        child = int(parent.stdout.readline())
        assert parent.stdout.readline() == "trains\n"
        parent.kill()
        parent.wait()
    try:
        wait_until(lambda: has_ended(child), "the run has ended with its parent")
    finally:
        with suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)


# Full disks.


FULL_AT, FREE_AT = 25, 45


def assert_it_went_on(said, whole, why):
    """Past the full disk, with every loss, the old checkpoint whole, no half one left, and later saves good."""
    losses = {word["step"]: word["loss"] for word in said if "loss" in word}
    assert losses == {step: whole[0][step] for step in range(1, 61)}
    assert [word["saved"] for word in said if "saved" in word] == [10, 20, 50, 60]
    failures = [word for word in said if "not_saved" in word]
    assert [word["not_saved"] for word in failures] == [30, 40]
    for word in failures:
        assert re.search(
            rf"The state was not saved: {why}\. There is still nothing at .*; make room", word["report"]
        )
    assert [word["newest"] for word in said if "newest" in word] == [20, 20]
    files = ["step-00000010.ckpt", "step-00000020.ckpt"]
    assert [word["files"] for word in said if "files" in word] == [files, files]


def filling(folder, fill, free):
    order = {"folder": str(folder), "until": 60, "every": 10, "keep": 2}
    return order | {"full_at": FULL_AT, "free_at": FREE_AT, "fill": fill, "free": free}


def test_a_limit_on_files_stops_the_saves_and_not_the_run(nursery, whole, tmp_path):
    order = filling(tmp_path / "steps", "limit_files", "lift_the_limit")
    life = nursery.live("train_on_a_disk_that_fills_up", **order)
    assert_it_went_on(life.said, whole, "File too large")
    found = checkpoints.newest(tmp_path / "steps")
    assert (found.step, found.passed_over) == (60, ())


MOUNT = 'mount -t tmpfs -o size=4m none "$0" && exec "$@"'


def test_a_full_disk_stops_the_saves_and_not_the_run(whole, tmp_path):
    small = ["unshare", "--map-root-user", "--mount", "sh", "-c", MOUNT, str(tmp_path)]
    if (
        not shutil.which("unshare")
        or subprocess.run([*small, "true"], capture_output=True, check=False).returncode
    ):
        pytest.skip("A small file system needs `unshare` and a kernel that lets its user mount one.")
    order = filling(tmp_path / "steps", "use_up_the_disk", "clear_the_disk")
    work = [sys.executable, "-m", "tests.crashes", "train_on_a_disk_that_fills_up", json.dumps(order)]
    run = subprocess.run([*small, *work], capture_output=True, text=True, check=True, cwd=crashes.ROOT)
    assert_it_went_on([*map(json.loads, run.stdout.splitlines())], whole, "No space left on device")
    assert list(tmp_path.iterdir()) == []  # it was another file system


# What each part of the state is for.


@pytest.fixture(scope="module")
def at_100(nursery, tmp_path_factory):
    folder = tmp_path_factory.mktemp("at_100")
    nursery.live("train", folder=str(folder), until=100, every=100)
    return folder


@pytest.mark.parametrize("part", [None, *long_run.training.PARTS])
def test_a_part_that_is_left_out_shows_in_the_losses(nursery, whole, at_100, tmp_path, part):
    shutil.copytree(at_100, tmp_path, dirs_exist_ok=True)
    life = nursery.live("train", folder=str(tmp_path), until=160, every=100, without=[part] if part else [])
    assert life.said[0]["resumed"] == 100
    differences = [abs(said["loss"] - whole[0][said["step"]]) for said in life.said if "loss" in said]
    assert len(differences) == 60
    assert (max(differences) > 0.1) is (part is not None)
    assert (differences == [0] * 60) is (part is None)


def test_a_damaged_newest_checkpoint_is_passed_over_and_the_run_says_so(nursery, whole, tmp_path):
    nursery.live("train", folder=str(tmp_path), until=30, every=10)
    path = tmp_path / "step-00000030.ckpt"
    path.write_bytes(path.read_bytes()[:-1])
    life = nursery.live("train", folder=str(tmp_path), until=31, every=10)
    resumed, *later = life.said
    assert resumed["resumed"] == 20
    assert re.fullmatch(
        r"Goes on from step 20\. Passed over: .*step-00000030\.ckpt is torn .*\.", resumed["report"]
    )
    assert [said["loss"] for said in later if "loss" in said] == [whole[0][step] for step in range(21, 32)]


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_a_run_of_nothing_raises_a_sentence(tmp_path, order):
    with pytest.raises(
        ValueError, match=r"^A run has 1 step or more, and saves every 1 or more; got \d and \d\.$"
    ):
        long_run.train(print, str(tmp_path), *order)


def test_what_the_processes_told_is_what_the_run_does_here_and_now(whole):
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    losses = list(long_run.the_run().losses(20))
    torch.set_num_threads(threads)
    assert losses == [whole[0][step] for step in range(1, 21)]
