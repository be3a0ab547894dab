"""A run that trains in a process of its own: kill it, resume it, and see whether its losses go on as before."""

import shutil
import subprocess
import tempfile
import time
import weakref
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import torch

from course_utils import checkpoints, measure, training
from course_utils.labs.crash.asked import DONE, ENDED, KILLED, KILLED_SAVING, STOPPED, Life, Plan, Story
from course_utils.labs.lab import Change, Progress
from course_utils.measure import Step
from course_utils.training import long_run
from course_utils.workers import process

EXAMPLE_CRASH = 87  # the step
LONGEST_S = 120.0  # that a process may live
SLOW_DISK_S = 0.15  # so much longer each of a save's two flushes takes, for a kill to hit it
FRAME_S, WATCH_S, WATCH_AT_MOST_S = 0.1, 0.002, 2.0


@lru_cache(maxsize=1)
def uninterrupted() -> Story:
    """An example of a crash, and the losses of a run that had none; computed here as the processes do."""
    plan = Plan()
    before = tuple(range(plan.every, EXAMPLE_CRASH + 1, plan.every))
    after = tuple(range(before[-1] + plan.every, plan.steps + 1, plan.every))
    with measure.cpu_threads(1), _as_in_a_fresh_process():
        run = long_run.new_run()
        reference = tuple(run.losses(before[-1]))
        state = run.state()
        reference += tuple(run.losses(plan.steps))
        again = long_run.new_run()
        again.restore(state)
        resumed = Life(before[-1], tuple(again.losses(plan.steps)), after, end=DONE)
    killed = Life(0, reference[:EXAMPLE_CRASH], before, end=KILLED)
    return Story(plan.steps, (killed, resumed), after[-3:], reference=reference, example=True)


@contextmanager
def _as_in_a_fresh_process() -> Iterator[None]:
    """float32 products in float32, though the kernel may allow the CPU fewer bits; generators stay as they were."""
    products, shared = torch.backends.mkldnn.matmul, training.shared_states()
    before, products.fp32_precision = products.fp32_precision, "ieee"
    try:
        yield
    finally:
        products.fp32_precision = before
        training.restore_shared_states(shared)


class Workshop:
    """A run's folder, the process that makes it, and its story so far."""

    def __init__(self) -> None:
        self.story = uninterrupted()
        self.folder = Path(tempfile.mkdtemp(prefix="crash-lab-")) / "run"
        self.processes: list[subprocess.Popen] = []  # the one that runs, if one does
        self.leftovers: set[Path] = set()  # what earlier processes had half written when this one began
        self.runs = self.killed = self.kill_when_saving = False
        weakref.finalize(self, _sweep, self.folder.parent, self.processes)  # at the latest

    def refresh(self, plan: Plan, found: Story) -> Story:
        """What became of the run so far; at first an example."""
        return self.story

    def close(self) -> None:
        """Its process ends, and its folder goes."""
        _sweep(self.folder.parent, self.processes)

    # Jobs.

    def train(self, plan: Plan, found: Story) -> Iterator[Progress]:
        """Begin from nothing."""
        shutil.rmtree(self.folder, ignore_errors=True)
        self.story = Story(plan.steps, (Life(),), reference=self.story.reference)
        yield from self._live(plan)

    def resume(self, plan: Plan, found: Story) -> Iterator[Progress]:
        """Go on from the newest whole checkpoint."""
        if not self.story.example:
            self._see_the_folder()  # it may have changed since
        newest = self.story.newest
        if self.story.example or newest is None:
            raise ValueError("No process has saved anything to go on from. Press Train, or save more often.")
        if newest >= plan.steps:
            done = f"All {plan.steps} steps are made and saved"
            raise ValueError(f"{done}. Ask for more than {newest}, or press Train.")
        saver = next((life for life in reversed(self.story.lives) if newest in life.saved), Life())
        life = Life(newest, left_out=tuple(dict.fromkeys(plan.left_out + saver.left_out)))
        self.story = replace(self.story, steps=plan.steps, lives=(*self.story.lives, life))
        yield from self._live(plan, plan.left_out)

    def _live(self, plan: Plan, left_out: tuple[str, ...] = ()) -> Iterator[Progress]:
        """One process from its beginning to its end."""
        self.runs, self.killed, self.kill_when_saving = True, False, False
        self.leftovers = self._half_written()
        order = {"folder": str(self.folder), "until": plan.steps, "every": plan.every}
        order |= {"without": left_out, "pace_s": plan.pause_ms / 1000}
        limits = {"at_most_s": LONGEST_S, "slow_disk_s": SLOW_DISK_S}
        end, last_words = ENDED, ""
        try:
            yield Progress(0, f"A process starts; it ends after {LONGEST_S:.0f} s at the latest.", Change())
            with closing(process.steps_of(long_run.train, order, begun=self._begun, **limits)) as steps:
                yield from self._heard(steps, plan)
            end = DONE
        except RuntimeError as death:
            end, last_words = (KILLED, "") if self.killed else (ENDED, str(death))
        except GeneratorExit:
            end = STOPPED
            raise
        finally:
            self.runs = False
            self.processes.clear()
            saving = end == KILLED and self._half_written() - self.leftovers
            self._now(end=KILLED_SAVING if saving else end)
            self._see_the_folder()  # last: it may find a folder that it cannot read
        yield Progress(1, last_words or f"{self.story.now.end.capitalize()}.")

    def _heard(self, process: Iterator[Step], plan: Plan) -> Iterator[Progress]:
        next_frame_s = 0.0
        for step in process:
            if "loss" in step.numbers:
                made, losses = int(step.numbers["step"]), (*self.story.now.losses, step.numbers["loss"])
                self._now(first=made - len(losses), losses=losses)
                if self.kill_when_saving and (made % plan.every == 0 or made == plan.steps):
                    self._kill_once_it_writes()
            if "saved" in step.numbers:
                self._see_the_folder()
            draw = time.monotonic() >= next_frame_s
            if draw:
                next_frame_s = time.monotonic() + FRAME_S
            report = step.report + " It will be killed in its next save." * self.kill_when_saving
            yield Progress(min(step.fraction, 0.99), report, Change() if draw else None)

    def _now(self, **changes: object) -> None:
        *before, now = self.story.lives
        self.story = replace(self.story, lives=(*before, replace(now, **changes)))

    def _see_the_folder(self) -> None:
        """What is whole in it and what is not, and which of it this process has saved, though it could not say so."""
        newest, life = checkpoints.newest(self.folder), self.story.now
        steps = sorted(map(_step_of, self.folder.glob("step-*.ckpt")))
        whole = tuple(step for step in steps if newest and step <= newest.step)
        unfinished = max(map(_step_of, self._half_written()), default=None)
        self.story = replace(self.story, whole=whole, unfinished=unfinished)
        self._now(saved=tuple(sorted({*life.saved, *(step for step in whole if step > life.first)})))

    def _half_written(self) -> set[Path]:
        return set(self.folder.glob("step-*.tmp"))

    # Actions.

    def kill(self, plan: Plan, found: Story) -> Change:
        """SIGKILL: the process is gone before it can do anything about it. Once more, and nothing is left to do."""
        if self.runs or not self.killed:  # else it is the second half of a double click
            self._check_that_it_runs()
            self._kill()
        return Change()

    def kill_while_it_saves(self, plan: Plan, found: Story) -> Change:
        """The same, as soon as the file of its next checkpoint has begun."""
        self._check_that_it_runs()
        self.kill_when_saving = True
        return Change()

    def _check_that_it_runs(self) -> None:
        if not self.runs:
            raise ValueError("No process runs that could be killed. Press Train or Resume first.")

    def _begun(self, run: subprocess.Popen) -> None:
        self.processes.append(run)
        if self.killed:  # that early
            run.kill()

    def _kill(self) -> None:
        self.killed = True
        for run in self.processes:
            run.kill()

    def _kill_once_it_writes(self) -> None:
        end = time.monotonic() + WATCH_AT_MOST_S
        while time.monotonic() < end and not self.killed:
            if self._half_written() - self.leftovers:
                self._kill()
            time.sleep(WATCH_S)


def _step_of(file: Path) -> int:
    return int(file.name.split(".")[0].removeprefix("step-"))


def _sweep(folder: Path, processes: list[subprocess.Popen]) -> None:
    """When the lab goes, or the kernel ends: its process and its folder."""
    for run in processes:
        run.kill()
        run.wait()
    shutil.rmtree(folder, ignore_errors=True)
