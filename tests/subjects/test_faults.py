"""Processes are killed while they save, at any moment: nothing that was saved is lost or torn."""

import os
import random
import shutil

import psutil
import pytest
import torch

from course_utils.chapters.checkpointing import killed, long_run
from course_utils.chapters.checkpointing.killed import left_by_a_kill
from course_utils.core import measure
from course_utils.subjects import checkpoints
from tests.helpers import crashes
from tests.helpers.in_bits import in_bits

KILLS_OF_A_RUN = 20
KILLS_OF_SAVERS = 12
UNTIL = 100  # steps
EVERY = 1  # step there is a save
MOST_S = 0.010  # from a process's last word to its kill: about as long as a save or two steps take


@pytest.fixture(scope="module")
def nursery():
    nursery = crashes.Nursery()
    with nursery.process:
        yield nursery


@pytest.fixture(scope="module")
def whole(nursery, tmp_path_factory):
    """A run that nobody disturbed: its losses by step, and its last checkpoint."""
    path = tmp_path_factory.mktemp("whole") / "run.ckpt"
    life = nursery.live("train", path=str(path), until=UNTIL, every=EVERY)
    assert not life.killed
    losses = {said["step"]: said["loss"] for said in life.said if "loss" in said}
    assert list(losses) == list(range(1, UNTIL + 1))
    return losses, checkpoints.load(path)


def assert_good(state, step):
    """The state of this step, and not half of another's."""
    assert state["step"] == step
    for tensor, number in zip(state["numbers"], (step, -step), strict=True):
        assert tensor.shape == (crashes.NUMBERS,)
        assert tensor.eq(number).all()


# Kills.


def test_a_training_process_killed_again_and_again_ends_where_an_undisturbed_one_does_bit_for_bit(
    nursery, whole, tmp_path
):
    losses, last = whole
    draw = random.Random(0)
    kills = 0
    runs = 0
    while kills < KILLS_OF_A_RUN:
        runs += 1
        path = tmp_path / f"{runs}.ckpt"
        heard = {}  # the losses of this run, by step
        acknowledged = 0  # the last step whose save was reported
        while acknowledged < UNTIL:
            # The kill comes some time after one of this life's words, which are losses and saves.
            # So it may come at any moment.
            words = draw.randint(0, 9)
            delay_s = draw.uniform(0, MOST_S)
            if kills >= KILLS_OF_A_RUN:
                words = None  # there were enough kills, so this life may come to its end
            order = {"path": str(path), "until": UNTIL, "every": EVERY}
            life = nursery.live("train", words=words, delay_s=delay_s, **order)
            kills += life.killed
            for said in life.said:
                if "resumed" in said:
                    assert said["resumed"] >= acknowledged  # nothing that was saved is lost
                if "loss" in said:
                    assert said["loss"] == losses[said["step"]]  # as in the undisturbed run
                    heard[said["step"]] = said["loss"]
                acknowledged = said.get("saved", acknowledged)
            saved_step = checkpoints.load(path)["step"] if path.exists() else 0
            assert saved_step >= acknowledged
        assert heard == losses
        assert in_bits(checkpoints.load(path)) == in_bits(last)


def test_what_a_killed_saver_had_saved_is_there_and_whole(nursery, tmp_path):
    draw = random.Random(1)
    last = -1
    path = tmp_path / "run.ckpt"
    for _ in range(KILLS_OF_SAVERS):
        words = draw.randint(0, 2)
        delay_s = draw.uniform(0, 2 * MOST_S)
        life = nursery.live("save_again_and_again", words=words, delay_s=delay_s, path=str(path))
        assert life.killed
        last = max([last, *life.said])
        if not path.exists():
            assert last == -1
            continue
        state = checkpoints.load(path)
        assert_good(state, state["step"])
        assert state["step"] in (last, last + 1)  # killed before it could say so
        last = state["step"]
    assert last > 0


def test_two_processes_that_save_under_one_name_leave_a_whole_file(nursery, tmp_path):
    life = nursery.live("save_beside_another", path=str(tmp_path / "one.ckpt"))
    assert (life.said, life.killed) == ([0], False)
    assert sorted(os.listdir(tmp_path)) == ["one.ckpt"]


def test_a_save_may_die_between_any_two_calls_of_the_system(nursery, tmp_path):
    path = tmp_path / "run.ckpt"
    checkpoints.save(path, {"step": 0})
    events = nursery.live("die_at", path=str(path), step=1, event=-1).said[0]
    assert events > 20
    old_ones = 0
    new_ones = 0
    writes = range(1, events - 20, 4)  # they are alike, so not every one is tried
    tried = [*writes, *range(events - 20, events + 1)]
    for event in tried:
        checkpoints.save(path, {"step": 0})
        assert nursery.live("die_at", path=str(path), step=event, event=event).killed
        found = checkpoints.load(path)
        if found["step"]:
            assert_good(found, event)
            new_ones += 1
        else:
            assert found == {"step": 0}
            old_ones += 1
    assert old_ones + new_ones == len(tried)
    assert min(old_ones, new_ones) > 3  # before the renaming, and after


# What each part of the state is for.


@pytest.fixture(scope="module")
def at_60(nursery, tmp_path_factory):
    path = tmp_path_factory.mktemp("at_60") / "run.ckpt"
    nursery.live("train", path=str(path), until=60, every=60)
    return path


@pytest.mark.parametrize("part", [None, *long_run.training.PARTS])
def test_a_part_that_is_left_out_shows_in_the_losses(nursery, whole, at_60, tmp_path, part):
    path = shutil.copy(at_60, tmp_path)
    without = [part] if part else []
    life = nursery.live("train", path=str(path), until=UNTIL, every=100, without=without)
    assert life.said[0]["resumed"] == 60
    losses, _ = whole
    differences = []
    for said in life.said:
        if "loss" in said:
            differences.append(abs(said["loss"] - losses[said["step"]]))
    assert len(differences) == UNTIL - 60
    if part is None:
        assert not any(differences)
    else:
        assert max(differences) > 0.1


def test_a_run_in_another_process_is_the_run_here_and_now(whole):
    with measure.cpu_threads(1):
        losses = list(long_run.new_run().losses(20))
    expected, _ = whole
    assert losses == [expected[step] for step in range(1, 21)]


def test_what_is_left_by_a_kill_is_nothing_where_a_file_is_overwritten_and_all_where_it_is_replaced(
    tmp_path,
):
    """The notebook kills a process that saves in either way; none of these processes lives on."""
    state = {"weights": torch.zeros(1_000_000)}
    children = set(psutil.Process().children())

    def too_soon_done(state, path):
        if not path.exists():
            path.write_bytes(b"whole")

    def save(state, path):
        checkpoints.save(path, state)

    assert left_by_a_kill(torch.save, torch.load, state) is None
    left = left_by_a_kill(save, checkpoints.load, state)
    assert torch.equal(left["weights"], state["weights"])
    assert left_by_a_kill(too_soon_done, type(tmp_path).read_bytes, state, attempts=2) == b"whole"
    assert set(psutil.Process().children()) <= children


def test_a_file_that_goes_between_two_looks_at_it_is_not_whole(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "listdir", lambda folder: ["run.pt"])
    assert not killed._is_whole(tmp_path / "run.pt", 3)
    (tmp_path / "run.pt").write_bytes(b"run")
    assert killed._is_whole(tmp_path / "run.pt", 3)
