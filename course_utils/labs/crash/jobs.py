"""A run that trains in a process of its own: kill it, resume it, and see whether its losses go on as before."""

import shutil
import subprocess
import tempfile
import time
import weakref
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from course_utils import measure, training
from course_utils.labs.crash.asked import DONE, ENDED, KILLED, KILLED_SAVING, Life, Plan, Story
from course_utils.labs.lab import Change, Progress
from course_utils.measure import Step
from course_utils.quantities import Number
from course_utils.training import long_run
from course_utils.workers import process

EXAMPLE_CRASH, EXAMPLE_SAVED = 87, (10, 20, 30, 40, 50, 60, 70, 80)  # steps
LONGEST_S = 120.0  # that a process may live
SLOW_DISK_S = 0.15  # so much longer each of a save's two flushes takes, for a kill to hit it
FRAME_S, WATCH_S, WATCH_AT_MOST_S = 0.1, 0.002, 2.0


@lru_cache
def uninterrupted(left_out: tuple[str, ...] = ()) -> Story:
    """An example of a crash, and the losses of a run that had none; computed here as the processes do.

    What is left out is not restored after the crash.
    """
    plan, shared = Plan(), training.shared_states()
    with measure.cpu_threads(1):
        reference, state = _never_killed()
        again = long_run.new_run()  # which seeds the shared generators, as a new process does
        again.restore(state, without=left_out)
        resumed = tuple(again.advance() for _ in range(EXAMPLE_SAVED[-1], plan.steps))
    training.restore_shared_states(shared)
    killed = Life(0, reference[:EXAMPLE_CRASH], EXAMPLE_SAVED, end=KILLED)
    after = tuple(range(EXAMPLE_SAVED[-1], plan.steps + 1, plan.every))[1:]
    lives = (killed, Life(EXAMPLE_SAVED[-1], resumed, after, left_out, DONE))
    return Story(plan.steps, lives, after[-3:], reference=reference, example=True)


@lru_cache(maxsize=1)
def _never_killed() -> tuple[tuple[Number, ...], dict[str, object]]:
    """The losses of such a run, and its state when the example was last saved."""
    run = long_run.new_run()
    losses = tuple(run.losses(EXAMPLE_SAVED[-1]))
    state = run.state()
    return losses + tuple(run.losses(Plan().steps)), state


class Workshop:
    """A run's folder, the process that makes it, and its story so far."""

    def __init__(self) -> None:
        self.story = uninterrupted()
        self.folder = Path(tempfile.mkdtemp(prefix="crash-lab-")) / "run"
        self.processes: list[subprocess.Popen] = []  # the one that runs, if one does
        self.killed = self.kill_when_saving = False
        weakref.finalize(self, _sweep, self.folder.parent, self.processes)  # at the latest

    def refresh(self, plan: Plan, found: object) -> Story:
        """What became of the run so far; at first an example."""
        return self.story

    def close(self) -> None:
        """Its process ends, and its folder goes."""
        _sweep(self.folder.parent, self.processes)

    # Jobs.

    def train(self, plan: Plan, found: object) -> Iterator[Progress]:
        """Begin from nothing."""
        shutil.rmtree(self.folder, ignore_errors=True)
        self.story = Story(plan.steps, (Life(),), reference=self.story.reference)
        yield from self._live(plan)

    def resume(self, plan: Plan, found: object) -> Iterator[Progress]:
        """Go on from the newest whole checkpoint."""
        newest, lives = self.story.newest, self.story.lives
        if self.story.example or not newest:
            raise ValueError("No process has saved anything to go on from. Press Train, or save more often.")
        if newest >= plan.steps:
            raise ValueError(f"All {plan.steps} steps are made and saved. Press Train, or ask for more.")
        saver = next(life for life in reversed(lives) if newest in life.saved)
        life = Life(newest, left_out=tuple(dict.fromkeys(plan.left_out + saver.left_out)))
        self.story = replace(self.story, steps=plan.steps, lives=(*lives, life))
        yield from self._live(plan, plan.left_out)

    def _live(self, plan: Plan, left_out: tuple[str, ...] = ()) -> Iterator[Progress]:
        """One process from its beginning to its end."""
        self.killed = self.kill_when_saving = False
        order = {"folder": str(self.folder), "until": plan.steps, "every": plan.every}
        order |= {"without": left_out, "pace_s": plan.pause_ms / 1000}
        limits = {"at_most_s": LONGEST_S, "slow_disk_s": SLOW_DISK_S}
        end = ENDED
        try:
            yield Progress(0, f"A process starts; it ends after {LONGEST_S:.0f} s at the latest.", Change())
            begun = self.processes.append
            with closing(process.steps_of(long_run.train, order, begun=begun, **limits)) as steps:
                yield from self._heard(steps, plan)
            end = DONE
        except RuntimeError as death:
            if not self.killed:
                raise ValueError(str(death)) from death
            end = KILLED_SAVING if self._is_in_a_save() else KILLED
        finally:
            self.processes.clear()
            self._now(end=end)
            self._see_the_folder()
        yield Progress(1, f"{end.capitalize()}.")

    def _heard(self, steps: Iterator[Step], plan: Plan) -> Iterator[Progress]:
        next_frame_s = 0.0
        for step in steps:
            if "loss" in step.numbers:
                self._now(losses=(*self.story.now.losses, step.numbers["loss"]))
                made = self.story.now.last
                if self.kill_when_saving and (made % plan.every == 0 or made == plan.steps):
                    self._kill_once_it_saves(plan)
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
        kinds = (self.folder.glob(f"step-*.{kind}") for kind in ("ckpt", "tmp"))
        whole, torn = (sorted(int(file.name[5:13]) for file in files) for files in kinds)
        self.story = replace(self.story, whole=tuple(whole), unfinished=max(torn, default=None))
        life = self.story.now
        self._now(saved=tuple(sorted({*life.saved, *(step for step in whole if step > life.first)})))

    # Actions.

    def kill(self, plan: Plan, found: object) -> Change:
        """SIGKILL: the process is gone before it can do anything about it."""
        self._check_that_it_runs()
        self.killed = True
        for run in self.processes:
            run.kill()
        return Change()

    def kill_while_it_saves(self, plan: Plan, found: object) -> Change:
        """The same, as soon as the file of its next checkpoint has begun."""
        self._check_that_it_runs()
        self.kill_when_saving = True
        return Change()

    def _check_that_it_runs(self) -> None:
        if not self.processes:
            raise ValueError("No process runs that could be killed. Press Train or Resume first.")

    def _kill_once_it_saves(self, plan: Plan) -> None:
        end = time.monotonic() + WATCH_AT_MOST_S
        while time.monotonic() < end and not self._is_in_a_save():
            time.sleep(WATCH_S)
        self.kill(plan, self.story)

    def _is_in_a_save(self) -> bool:
        """Whether the file of its latest step is half written."""
        return any(self.folder.glob(f"step-{self.story.now.last:08d}.*.tmp"))


def _sweep(folder: Path, processes: list[subprocess.Popen]) -> None:
    """When the lab goes, or the kernel ends: its process and its folder."""
    for run in processes:
        run.kill()
        run.wait()
    shutil.rmtree(folder, ignore_errors=True)
