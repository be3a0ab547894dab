"""Processes to be killed. Importing torch takes longer than most of their lives, so a warm process forks them.

`python -m tests.crashes` is that process: it reads an order a line and answers with how that life went.
"""

import itertools
import json
import mmap
import os
import signal
import subprocess
import sys
import time
import traceback
from collections import namedtuple
from pathlib import Path

import torch

from course_utils import checkpoints
from course_utils.checkpoints import contents
from course_utils.training import long_run

ROOT = Path(__file__).parents[1]
NUMBERS = 300_000  # of each of the two tensors that savers save: some milliseconds of writing
Life = namedtuple("Life", "said killed phase")


class Nursery:
    """Lives in processes of their own, one after the other."""

    def __init__(self):
        quiet = {"OMP_NUM_THREADS": "1", "VECLIB_MAXIMUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.crashes"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env=os.environ | quiet,
        )

    def live(self, work, *, words=None, delay_s=0.0, **order):
        """A life that ends by SIGKILL so long after so many words, or by itself."""
        order = {"work": work, "words": words, "delay_s": delay_s, "order": order}
        print(json.dumps(order), file=self.process.stdin, flush=True)
        return Life(**json.loads(self.process.stdout.readline()))

    def end(self):
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


# In the forked process.


def state_of(step):
    """A state that shows if it was put together from two saves."""
    return {"step": step, "numbers": [torch.full((NUMBERS,), float(n)) for n in (step, -step)]}


def save_steps(say, folder):
    found = checkpoints.newest(folder)
    for step in itertools.count(found.step + 1 if found else 0):
        checkpoints.save_step(folder, step, state_of(step), keep=2)
        say(step)


def save_one_file(say, path, naively=False):
    """Again and again to one path."""
    first = 0 if naively or not Path(path).exists() else checkpoints.load(path)["step"] + 1
    for step in itertools.count(first):
        (overwrite if naively else checkpoints.save)(path, state_of(step))
        say(step)


def overwrite(path, state):
    """As one would without a thought for crashes."""
    with Path(path).open("wb") as file:
        contents.write(file, *contents.packed(state))


def die_at(say, folder, step, event, naively=False):
    """Save a step, and be killed just before or after the event-th call of the system or of a file's method."""
    events = itertools.count(1)

    def watch(_frame, kind, function):
        owner = getattr(function, "__self__", None)
        about_files = getattr(owner, "__name__", "") == "posix" or hasattr(owner, "fileno")
        if kind in ("c_call", "c_return") and about_files and next(events) == event:
            os.kill(os.getpid(), signal.SIGKILL)

    state = state_of(step)
    sys.setprofile(watch)
    if naively:
        overwrite(Path(folder) / f"step-{step:08d}.ckpt", state)
    else:
        checkpoints.save_step(folder, step, state, keep=1)
    sys.setprofile(None)
    say(next(events) - 1)


def train(say, **order):
    def hear(said):
        say(said.numbers | ({"report": said.report} if "loss" not in said.numbers else {}))

    long_run.train(hear, **order)


def train_on_a_disk_that_fills_up(say, full_at, free_at, fill, free, **order):
    """`fill` and `free` are names of functions here."""

    def hear(said):
        if "step" in said.numbers:
            step = said.numbers["step"]
            if step in (full_at, free_at):
                globals()[fill if step == full_at else free](order["folder"])
        say(said.numbers | {"report": said.report})
        if "not_saved" in said.numbers:
            say({"files": sorted(path.name for path in Path(order["folder"]).iterdir())})
            say({"newest": checkpoints.newest(order["folder"]).step})

    long_run.train(hear, **order)


def limit_files(_folder):
    import resource

    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))


def lift_the_limit(_folder):
    import resource

    hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))


def use_up_the_disk(folder):
    with (Path(folder).parent / "ballast").open("wb", buffering=0) as ballast:
        try:
            while True:
                ballast.write(bytes(4096))
        except OSError:
            pass


def clear_the_disk(folder):
    (Path(folder).parent / "ballast").unlink()


# In the warm process.


def main():
    torch.set_num_threads(1)
    torch.optim.AdamW([torch.nn.Parameter(torch.zeros(1))])  # whose first one imports half of torch
    for line in sys.stdin:
        print(json.dumps(one_life(**json.loads(line))._asdict()), flush=True)


def one_life(work, words, delay_s, order):
    phase = mmap.mmap(-1, 16)  # both processes see it
    ear, mouth = os.pipe()
    child = os.fork()
    if not child:
        os.close(ear)
        status = 1
        try:
            tell_phases(phase)
            globals()[work](lambda word: os.write(mouth, json.dumps(word).encode() + b"\n"), **order)
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)
    os.close(mouth)
    said = b""
    while words is None or said.count(b"\n") < words:
        heard = os.read(ear, 2**16)
        if not heard:
            break
        said += heard
    else:
        time.sleep(delay_s)
        os.kill(child, signal.SIGKILL)
    while heard := os.read(ear, 2**16):
        said += heard
    os.close(ear)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if status not in (0, -signal.SIGKILL):
        raise RuntimeError(f"{work} ended with status {status}.")
    lines = said.splitlines()
    return Life(
        [json.loads(line) for line in lines], status != 0, phase[:].rstrip(b"\0").decode() or "beginning"
    )


def tell_phases(phase):
    """What a save is at, for the record of where the kills landed; it is done as ever."""

    def told(function, name):
        def work(*given):
            phase[:] = name.encode().ljust(16, b"\0")
            result = function(*given)
            phase[:] = b"elsewhere".ljust(16, b"\0")
            return result

        return work

    contents.write = told(contents.write, "writing")
    os.fsync = told(os.fsync, "flushing")
    os.replace = told(os.replace, "renaming")


if __name__ == "__main__":
    if sys.argv[1:]:  # one life, here
        globals()[sys.argv[1]](lambda word: print(json.dumps(word), flush=True), **json.loads(sys.argv[2]))
    else:
        main()
