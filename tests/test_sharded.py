"""A state in shards, over real processes: saved by some, loaded by another number, and none of them left behind."""

import pickle
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
import torch
import torch.distributed.checkpoint as dcp
from torch.distributed.run import main as torchrun

from course_utils import checkpoints, measure, models
from course_utils.training import sharded
from course_utils.workers import process
from tests import ROOT
from tests.test_checkpoints import Payload
from tests.waiting import has_ended, wait_until

P, TENSORS = 64 * 128 + 128 * 64, 2
SAVED_AND_LOADED = "course_utils.training.sharded.saved_and_loaded"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("sharded") / "state"


@pytest.fixture(scope="module")
def reports(folder: Path) -> dict[str, list[dict[str, object]]]:
    order = {"folder": str(folder), "save_by": 2, "load_by": [3, 1]}
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setenv("TMPDIR", str(folder.parent))  # where the launcher would leave something
        return process.result_of("tests.worker_jobs.where_they_meet", order, at_most_s=100)


def test_its_processes_meet_at_loopback_whatever_the_machine_is_called_and_leave_no_folder(reports, folder):
    started = [report for of_all in reports.values() if len(of_all) > 1 for report in of_all]
    met = {(report["address"], report["interface"]) for report in started}
    assert met == {("127.0.0.1", sharded.LOOPBACK)}
    assert [path.name for path in folder.parent.iterdir()] == ["state"]


def test_every_process_holds_its_part_of_one_state(reports):
    assert [len(of_all) for of_all in reports.values()] == [2, 3, 1]
    assert len({report["digest"] for of_all in reports.values() for report in of_all}) == 1
    shared = 4 * TENSORS  # everybody counts steps
    for of_all in reports.values():
        assert sum(report["bytes"] - shared for report in of_all) == 12 * P
    assert [report["bytes"] for report in reports["saved by 2"]] == [6 * P + shared] * 2


@pytest.mark.filterwarnings("ignore:torch.distributed is disabled")
def test_training_over_two_processes_is_training_on_both_of_their_batches(reports, folder):
    """The mean of two gradients is that of one batch of both; rounded elsewhere, so not to the last bit."""
    model = models.MLP(sharded.WIDTHS, nonlinearity="gelu", generator=torch.Generator().manual_seed(0))
    optimizer = torch.optim.AdamW(model.parameters())
    draws = [torch.Generator().manual_seed(rank) for rank in range(2)]
    for _ in range(sharded.STEPS):
        optimizer.zero_grad()
        x = torch.cat([torch.randn(sharded.BATCH, sharded.WIDTHS[0], generator=draw) for draw in draws])
        (model(x) - x).square().mean().backward()
        optimizer.step()
    state = sharded.whole_state()
    fresh = sharded.digest(state)
    dcp.load(state, checkpoint_id=folder)
    assert sharded.digest(state) == reports["saved by 2"][0]["digest"] != fresh
    assert sharded.local_bytes(state) == 12 * P + 4 * TENSORS
    for name, weight in model.state_dict().items():
        torch.testing.assert_close(state["model"][name], weight, rtol=1e-4, atol=1e-6)


def test_the_command_torchrun_saves_the_same(reports, tmp_path, monkeypatch):
    script = tmp_path / "train.py"
    # It leaves at once: a thread of torch's that wants Python while Python ends would abort one process of forty.
    script.write_text(
        "import os, pathlib, sys\nfrom course_utils.training import sharded\n"
        "report = sharded._within_a_group(sharded._train_and_save, sys.argv[1])\n"
        "pathlib.Path(sys.argv[1] + os.environ['RANK']).write_text(report['digest'])\n"
        "os._exit(0)\n"
    )
    # --local-addr, since to look up the machine's own name may take long.
    options = ["--standalone", "--local-addr=127.0.0.1", "--nproc-per-node=2", "--max-restarts=2"]
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    torchrun([*options, str(script), str(tmp_path / "state")])
    digests = [(tmp_path / f"state{rank}").read_text() for rank in range(2)]
    assert digests == [reports["saved by 2"][0]["digest"]] * 2


@pytest.mark.filterwarnings("ignore:torch.distributed is disabled")
def test_its_metadata_can_run_code_and_checkpoints_refuses_it(tmp_path):
    trace = tmp_path / "it ran"
    (tmp_path / ".metadata").write_bytes(pickle.dumps(Payload(trace)))
    for path, why in ((tmp_path / ".metadata", "is no checkpoint"), (tmp_path, "is no file")):
        with pytest.raises(ValueError, match=why):
            checkpoints.load(path)
    assert checkpoints.newest(tmp_path) is None
    assert not trace.exists()
    with pytest.raises(dcp.CheckpointException):  # by then the code has run
        dcp.load({"w": torch.zeros(1)}, checkpoint_id=tmp_path)
    assert trace.exists()


# How they end.


def started_by(process: psutil.Process) -> set[int]:
    return {child.pid for child in process.children(recursive=True)}


def wait_until_gone(pids: set[int]) -> None:
    wait_until(lambda: all(map(has_ended, pids)), "all of its processes have ended")


def test_work_that_is_killed_has_ended_though_what_it_started_holds_its_pipe():
    heard: list[measure.Step] = []
    with pytest.raises(RuntimeError, match=r"^The process ended early\. Its status is -9\.$"):
        heard.extend(process.steps_of("tests.worker_jobs.orphaned", {}, at_most_s=60))
    (child,) = (step.numbers["child"] for step in heard if step.numbers)
    wait_until_gone({child})


def test_its_workers_end_when_the_parent_is_killed(tmp_path):
    order = {"folder": str(tmp_path / "state"), "save_by": 2, "load_by": [2]}
    code = f"from course_utils.workers import process\nprocess.result_of({SAVED_AND_LOADED!r}, {order!r})"
    parent = subprocess.Popen([sys.executable, "-c", code], cwd=ROOT)
    try:
        workers = psutil.Process(parent.pid)
        wait_until(lambda: len(started_by(workers)) >= 3, "its workers run")
        pids = started_by(workers)
    finally:
        parent.send_signal(signal.SIGKILL)
        parent.wait()
    wait_until_gone(pids)
