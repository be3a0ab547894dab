"""A small run over several processes. All of them save its state in shards, and another number of processes loads it.

`torch.distributed.checkpoint` writes a file for each process and a pickle, `.metadata`, which says what lies
where. Loading a pickle can run code, so this is for folders that you trust; `checkpoints` never reads them.
"""

import hashlib
import os
import sys
import warnings
from collections.abc import Callable, Sequence

import torch
import torch.distributed
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.state_dict import get_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.elastic.multiprocessing import DefaultLogsSpecs
from torch.distributed.fsdp import fully_shard
from torch.distributed.launcher.api import LaunchConfig, elastic_launch
from torch.distributed.tensor import DTensor

from course_utils import models
from course_utils.measure import Step
from course_utils.measure.results import OnStep

# Imports torch's compiler: once here, and not in every process that is forked.
torch.optim.SGD([torch.zeros(1)])

WIDTHS, STEPS, BATCH = (64, 128, 64), 3, 8
LOOPBACK = "lo" if sys.platform == "linux" else "lo0"  # the interface's name
# A forked process has torch already; elsewhere than on Linux, forking is not safe.
START = "fork" if sys.platform == "linux" else "spawn"
State = dict[str, object]
Report = dict[str, int | str]


def saved_and_loaded(on_step: OnStep, folder: str, save_by: int, load_by: Sequence[int]) -> dict[str, object]:
    """Train over `save_by` processes and save; then load over each number of processes in `load_by`, the largest first.

    For each number of processes, what every one of them reports: the bytes that it holds, and the whole
    state's digest. Work for process.steps_of. One process is this one; more are started by what torchrun
    starts them with.
    """
    if not all(count >= 1 for count in (save_by, *load_by)):
        raise ValueError(
            f"A state is saved and loaded by 1 process or more; got {save_by} and {list(load_by)}."
        )
    torch.set_num_threads(1)  # a pool of threads would not be there in a process forked from this one
    on_step(Step(0.3, f"{save_by} processes train, and save what each of them holds."))
    reports: dict[str, object] = {f"saved by {save_by}": _launched(save_by, _train_and_save, folder)}
    for count in sorted(load_by, reverse=True):  # this process itself comes last, as it then has threads
        on_step(Step(0.6, f"The same state is loaded by {count}."))
        reports[f"loaded by {count}"] = [_load(folder)] if count == 1 else _launched(count, _load, folder)
    return reports


def whole_state() -> State:
    """Tensors for the same state in one process, to be filled by `dcp.load(state, checkpoint_id=folder)`."""
    return _state(*_built())


def digest(state: State) -> str:
    """SHA-256 over all numbers of the state; shards are put together first."""
    sha = hashlib.sha256()
    for name, tensor in sorted(_tensors(state).items()):
        whole = tensor.full_tensor() if isinstance(tensor, DTensor) else tensor
        sha.update(name.encode() + whole.detach().numpy().tobytes())
    return sha.hexdigest()


def local_bytes(state: State) -> int:
    """Bytes of the state that this process holds."""
    here = (t.to_local() if isinstance(t, DTensor) else t for t in _tensors(state).values())
    return sum(tensor.nbytes for tensor in here)


def _launched(processes: int, work: Callable[[str], Report], folder: str) -> list[Report]:
    config = LaunchConfig(
        min_nodes=1,
        max_nodes=1,
        nproc_per_node=processes,
        rdzv_backend="c10d",
        rdzv_endpoint="localhost:0",
        max_restarts=2,
        local_addr="127.0.0.1",  # not the machine's own name, which without a network may be nobody's
        run_id=f"{work.__name__} {processes}",
        start_method=START,
        logs_specs=DefaultLogsSpecs(log_dir=os.devnull),  # or a folder would be left behind
    )
    reports = elastic_launch(config, _within_a_group)(work, folder)
    return [reports[rank] for rank in range(processes)]


def _within_a_group(work: Callable[[str], Report], folder: str) -> Report:
    os.environ["GLOO_SOCKET_IFNAME"] = LOOPBACK
    torch.distributed.init_process_group("gloo")
    try:
        report = work(folder)
        torch.distributed.barrier()  # whoever left now would close a connection that another still reads
        return report
    finally:
        torch.distributed.destroy_process_group()


def _built() -> tuple[torch.nn.Module, torch.optim.Optimizer]:
    model = models.MLP(WIDTHS, nonlinearity="gelu", generator=torch.Generator().manual_seed(0))
    if torch.distributed.is_initialized():
        mesh = init_device_mesh("cpu", (torch.distributed.get_world_size(),))  # also where there is a GPU
        for part in (*model.layers, model):
            fully_shard(part, mesh=mesh)
    return model, torch.optim.AdamW(model.parameters())


def _state(model: torch.nn.Module, optimizer: torch.optim.Optimizer) -> State:
    of_model, of_optimizer = get_state_dict(model, optimizer)
    return {"model": of_model, "optimizer": of_optimizer}


def _train_and_save(folder: str) -> Report:
    model, optimizer = _built()
    draw = torch.Generator().manual_seed(torch.distributed.get_rank())  # each its own part of the batch
    for _ in range(STEPS):
        optimizer.zero_grad()
        x = torch.randn(BATCH, WIDTHS[0], generator=draw)
        (model(x) - x).square().mean().backward()
        optimizer.step()
    state = _state(model, optimizer)
    dcp.save(state, checkpoint_id=folder)
    return _report(state)


def _load(folder: str) -> Report:
    state = whole_state()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # that one process alone loads, which is meant
        dcp.load(state, checkpoint_id=folder)
    return _report(state)


def _report(state: State) -> Report:
    return {"bytes": local_bytes(state), "digest": digest(state)}


def _tensors(tree: object, name: str = "") -> dict[str, torch.Tensor]:
    if isinstance(tree, torch.Tensor):
        return {name: tree}
    if not isinstance(tree, dict):
        return {}
    return {key: t for inner, part in tree.items() for key, t in _tensors(part, f"{name}.{inner}").items()}
