"""A run that restores all of its state goes on from a crash as if there had been none, and loses what was not saved.

After two minutes the reader has seen a process killed and its run resumed on the very curve of a run never killed,
counted the steps that were done twice, and watched the curve depart when a part of the state was left out.
"""

import shutil
import subprocess
import tempfile
import time
import weakref
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from functools import cached_property
from pathlib import Path

from course_utils.labs.crash import asked
from course_utils.labs.crash.asked import Life, Plan, Story
from course_utils.labs.crash.picture import view
from course_utils.labs.lab import Change, Lab, Progress

LONGEST_S = 120.0  # that a process may live
SLOW_DISK_S = 0.15  # so much longer each of a save's two flushes takes, for a kill to hit it
FRAME_S, WATCH_S, WATCH_AT_MOST_S = 0.1, 0.002, 2.0


class CrashLab(Lab):
    """A run that trains in a process of its own: kill it, resume it, and see whether its losses go on as before."""

    name = "Crash lab"
    asks, presets = Plan, asked.PRESETS
    rows = (("every", "steps", "pause_ms"), asked.PARTS)
    view = staticmethod(view)

    def __init__(self) -> None:
        self.story: Story | None = None  # the run's, so far
        self.processes: list[subprocess.Popen] = []  # the one that runs, if one does
        self.killed = self.kill_when_saving = False

    @cached_property
    def folder(self) -> Path:
        """Where the run saves. It is removed with the lab at the latest."""
        home = Path(tempfile.mkdtemp(prefix="crash-lab-"))
        weakref.finalize(self, _sweep, home, self.processes)
        return home / "run"

    def known(self, plan: Plan, found: object) -> Story:
        """The run so far; at first an example."""
        from course_utils.labs.crash.example import uninterrupted

        self.story = self.story or uninterrupted()
        return self.story

    def close(self) -> None:
        """Its process ends, and its folder goes."""
        _sweep(self.folder.parent, self.processes)

    # Jobs.

    def train(self, plan: Plan, found: object) -> Iterator[Progress]:
        """Begin the run anew, in an empty folder."""
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
        from course_utils.training import long_run
        from course_utils.workers import process

        self.killed = self.kill_when_saving = False
        order = {"folder": str(self.folder), "until": plan.steps, "every": plan.every}
        order |= {"without": left_out, "pace_s": plan.pause_ms / 1000}
        limits = {"at_most_s": LONGEST_S, "slow_disk_s": SLOW_DISK_S}
        end = asked.ENDED
        try:
            yield Progress(0, f"A process starts; it ends after {LONGEST_S:.0f} s at the latest.", Change())
            begun = self.processes.append
            with closing(process.steps_of(long_run.train, order, on_start=begun, **limits)) as steps:
                yield from self._heard(steps, plan)
            end = asked.DONE
        except RuntimeError as death:
            if not self.killed:
                raise ValueError(str(death)) from death
            end = asked.KILLED_SAVING if self._is_in_a_save() else asked.KILLED
        finally:
            self.processes.clear()
            self._now(end=end)
            self._see_the_folder()
        yield Progress(1, f"{end.capitalize()}.")

    def _heard(self, steps: Iterator, plan: Plan) -> Iterator[Progress]:
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
        """Note which checkpoints are whole, which are not, and which this process saved without reporting it."""
        kinds = (self.folder.glob(f"step-*.{kind}") for kind in ("ckpt", "tmp"))
        whole, torn = (sorted(int(file.name[5:13]) for file in files) for files in kinds)
        self.story = replace(self.story, whole=tuple(whole), unfinished=max(torn, default=None))
        life = self.story.now
        self._now(saved=tuple(sorted({*life.saved, *(step for step in whole if step > life.first)})))

    # Actions.

    def kill(self, plan: Plan, found: object) -> Change:
        """SIGKILL: the process ends at once, and cannot do anything before."""
        self._check_that_it_runs()
        self.killed = True
        for run in self.processes:
            run.kill()
        return Change()

    def kill_while_it_saves(self, plan: Plan, found: object) -> Change:
        """SIGKILL as soon as it begins to write its next checkpoint."""
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

    jobs = {"Train": train, "Resume": resume}
    actions = {"Kill it": kill, "Kill it while it saves": kill_while_it_saves}
    needs_kernel = {*jobs, *actions}


def _sweep(folder: Path, processes: list[subprocess.Popen]) -> None:
    """End its process and remove its folder, when the lab goes or the kernel ends."""
    for run in processes:
        run.kill()
        run.wait()
    shutil.rmtree(folder, ignore_errors=True)
