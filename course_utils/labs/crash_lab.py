"""A run that trains in a process of its own: kill it, resume it, and see whether its losses go on as before."""

import shutil
import subprocess
import tempfile
import time
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path

import ipywidgets as widgets
import torch

from course_utils import apart, checkpoints, long_run, measure, training
from course_utils.labs import crash_words as words
from course_utils.labs.crash_picture import view
from course_utils.labs.crash_story import DONE, ENDED, KILLED, KILLED_SAVING, STOPPED, Life, Story
from course_utils.labs.panel import Panel, Progress, View
from course_utils.measure import Step
from course_utils.quantities import Number

STEPS, EVERY, PAUSE_MS = 120, 10, 80
EXAMPLE_CRASH = 87  # the step
LONGEST_S = 120.0  # that a process may live
SLOW_DISK_S = 0.15  # so much longer each of a save's two flushes takes, for a kill to hit it
FRAME_S, WATCH_S, WATCH_AT_MOST_S = 0.1, 0.002, 2.0
END_AT_MOST_S = 5.0  # that a job is given, to see the end of its process
PRESETS: Mapping[str, Mapping[str, object]] = {
    "restore everything": dict.fromkeys(training.PARTS, True),
    "the weights alone": dict.fromkeys(training.PARTS, False) | {"model": True},
}


def crash_lab() -> Panel:
    """The crash lab."""
    return _CrashLab().panel


@lru_cache(maxsize=1)
def uninterrupted() -> tuple[Story, tuple[Number, ...]]:
    """An example of a crash, and the losses of a run that had none; computed here as the processes do."""
    shared = training.shared_states()
    saved = EXAMPLE_CRASH // EVERY * EVERY
    try:
        with measure.cpu_threads(1), _whole_products():
            run = long_run.the_run()
            reference = tuple(run.losses(saved))
            state = run.state()
            reference += tuple(run.losses(STEPS))
            again = long_run.the_run()
            again.restore(state)
            resumed = tuple(again.losses(STEPS))
    finally:
        training.restore_shared_states(shared)
    lives = (
        Life(0, reference[:EXAMPLE_CRASH], _saves(0, EXAMPLE_CRASH), end=KILLED),
        Life(saved, resumed, _saves(saved, STEPS), end=DONE),
    )
    return Story(STEPS, lives, _saves(0, STEPS)[-3:], example=True), reference


@contextmanager
def _whole_products() -> Iterator[None]:
    """float32 products in float32, as in a fresh process, though the kernel may allow the CPU fewer bits for them."""
    products = torch.backends.mkldnn.matmul
    before, products.fp32_precision = products.fp32_precision, "ieee"
    try:
        yield
    finally:
        products.fp32_precision = before


def _saves(begin: int, end: int) -> tuple[int, ...]:
    return tuple(range(begin + EVERY, end + 1, EVERY))


class _CrashPanel(Panel):
    """A panel that takes its process and its folder with it."""

    sweep: Callable[[], object]

    def give_way(self) -> None:
        """Its process ends, and when the job has seen that, the folder goes too."""
        super().give_way()
        with suppress(Exception):  # a job's failure is told where somebody waits for it
            self.wait(END_AT_MOST_S)
        self.sweep()

    def close(self) -> None:
        """Off the page, and off the machine."""
        super().close()
        self.give_way()


class _CrashLab:
    def __init__(self) -> None:
        self.story, self.reference = uninterrupted()
        self.folder = Path(tempfile.mkdtemp(prefix="crash-lab-")) / "run"
        self.processes: list[subprocess.Popen] = []  # the one that runs, if one does
        self.leftovers: set[Path] = set()  # what earlier processes had half written when this one began
        self.runs = self.killed = self.kill_when_saving = False
        wide = {"layout": widgets.Layout(width="260px"), "style": {"description_width": "initial"}}
        controls = {
            "every": widgets.IntSlider(EVERY, 1, 40, description="save every … steps", **wide),
            "steps": widgets.IntSlider(STEPS, 20, STEPS, step=10, description="steps", **wide),
            "pause_ms": widgets.IntSlider(PAUSE_MS, 10, 250, step=10, description="pause a step, ms", **wide),
        } | {
            part: widgets.Checkbox(
                True, description=f"restore {part}", indent=False, layout=widgets.Layout(width="auto")
            )
            for part in training.PARTS
        }
        self.panel = _CrashPanel(
            "Crash lab",
            self.show,
            controls,
            presets=PRESETS,
            jobs={"Train": self.train, "Resume": self.resume},
            actions={"Kill it": self.kill, "Kill it while it saves": self.kill_while_it_saves},
        )
        self.panel.sweep = partial(_sweep, self.folder.parent, self.processes)
        weakref.finalize(self, self.panel.sweep)  # at the latest

    def show(self, every: int, steps: int, **said: object) -> View:
        """What there is to see for one state of the controls."""
        return view(self.story, self.reference, steps, every, _left_out(**said))

    # Jobs.

    def train(self, steps: int, **said: object) -> Iterator[Progress]:
        """Begin from nothing."""
        shutil.rmtree(self.folder, ignore_errors=True)
        self.story = Story(steps, (Life(),))
        yield from self._live(**said)

    def resume(self, steps: int, **said: object) -> Iterator[Progress]:
        """Go on from the newest whole checkpoint."""
        if self.story.example:
            raise ValueError("This is an example, and no process has saved anything yet. Press Train.")
        self._see_the_folder()
        story = self.story
        if story.newest is None:
            raise ValueError(
                "Nothing was saved, so there is nothing to resume. Press Train, or save more often."
            )
        if story.newest >= steps:
            raise ValueError(
                f"All {steps} steps are made and saved. Ask for more than {story.newest}, or press Train."
            )
        life = Life(story.newest, left_out=_left_out(**said))
        self.story = replace(story, steps=steps, lives=(*story.lives, life))
        yield from self._live(**said)

    def _live(self, every: int, pause_ms: int, **_: object) -> Iterator[Progress]:
        """One process from its beginning to its end."""
        self.runs, self.killed, self.kill_when_saving = True, False, False
        self.leftovers = self._half_written()
        steps, end, last_words = self.story.steps, ENDED, ""
        order = {
            "folder": str(self.folder),
            "until": steps,
            "every": every,
            "without": self.story.now.left_out,
            "pace_s": pause_ms / 1000,
        }
        process = apart.steps_apart(
            long_run.train, order, begun=self._begun, at_most_s=LONGEST_S, slow_disk_s=SLOW_DISK_S
        )
        try:
            yield Progress(
                0, f"A process starts; it ends after {LONGEST_S:.0f} s at the latest.", changed=True
            )
            with closing(process):
                yield from self._heard(process, every)
            end = DONE
        except RuntimeError as death:
            end, last_words = (KILLED, "") if self.killed else (ENDED, f" {death}")
        except GeneratorExit:
            end = STOPPED
            raise
        finally:
            self.runs = False
            self.processes.clear()
            self._see_the_folder()
            told, whole = self.story.now.saved, self.story.whole
            untold = [step for step in whole if step > max(told, default=self.story.now.first)]
            end = KILLED_SAVING if end == KILLED and self._half_written() - self.leftovers else end
            self._now(saved=(*told, *untold), end=end)
            self.panel.set()  # also where the job ends with this
        yield Progress(1, f"{words.ended(self.story.now)}.{last_words}")

    def _heard(self, process: Iterator[Step], every: int) -> Iterator[Progress]:
        next_frame_s = 0.0
        for step in process:
            said, life = step.numbers, self.story.now
            if "loss" in said:
                first = int(said["step"]) - 1 - len(life.losses)
                self._now(first=first, losses=(*life.losses, said["loss"]))
                if self.kill_when_saving and (said["step"] % every == 0 or said["step"] == self.story.steps):
                    self._kill_once_it_writes()
            if "saved" in said:
                self._now(saved=(*life.saved, int(said["saved"])))
                self._see_the_folder()
            draw = bool(said) and ("loss" not in said or time.monotonic() >= next_frame_s)
            if draw:
                next_frame_s = time.monotonic() + FRAME_S
            report = step.report
            if self.kill_when_saving:
                report += " It will be killed in its next save."
            yield Progress(min(step.fraction, 0.99), report, changed=draw)

    def _now(self, **changes: object) -> None:
        lives = self.story.lives
        self.story = replace(self.story, lives=(*lives[:-1], replace(lives[-1], **changes)))

    def _see_the_folder(self) -> None:
        """What is whole in it, and what is not."""
        newest = checkpoints.newest(self.folder)
        whole = sorted(map(_step_of, self.folder.glob("step-*.ckpt"))) if newest else []
        self.story = replace(
            self.story,
            whole=tuple(step for step in whole if step <= newest.step),
            unfinished=max(map(_step_of, self._half_written()), default=None),
            file_bytes=newest.path.stat().st_size if newest else 0,
        )

    def _half_written(self) -> set[Path]:
        return set(self.folder.glob("step-*.tmp"))

    # Actions.

    def kill(self, **_: object) -> None:
        """SIGKILL: the process is gone before it can do anything about it. Once more, and nothing is left to do."""
        if self.killed and not self.runs:
            return
        self._check_that_it_runs()
        self.killed = True
        for process in self.processes:
            process.kill()

    def kill_while_it_saves(self, **_: object) -> None:
        """The same, as soon as the file of its next checkpoint has begun."""
        self._check_that_it_runs()
        self.kill_when_saving = True

    def _check_that_it_runs(self) -> None:
        if not self.runs:
            raise ValueError("No process runs that could be killed. Press Train or Resume first.")

    def _begun(self, process: subprocess.Popen) -> None:
        self.processes.append(process)
        if self.killed:  # that early
            process.kill()

    def _kill_once_it_writes(self) -> None:
        end = time.monotonic() + WATCH_AT_MOST_S
        while time.monotonic() < end and not self.killed:
            if self._half_written() - self.leftovers:
                self.kill()
            time.sleep(WATCH_S)


def _left_out(**said: object) -> tuple[str, ...]:
    return tuple(part for part in training.PARTS if not said[part])


def _step_of(file: Path) -> int:
    return int(file.name.split(".")[0].removeprefix("step-"))


def _sweep(folder: Path, processes: list[subprocess.Popen]) -> None:
    """When the lab goes, or the kernel ends: its process and its folder."""
    for process in processes:
        process.kill()
        process.wait()
    shutil.rmtree(folder, ignore_errors=True)
