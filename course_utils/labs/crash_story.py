"""What became of a run: the processes that made it, one after the other, and what they left in the folder."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from course_utils.quantities import Number

RUNS, DONE, STOPPED, ENDED = "runs", "complete", "stopped", "ended"
KILLED, KILLED_SAVING = "killed", "killed saving"
CRASHES = (KILLED, KILLED_SAVING, STOPPED, ENDED)  # after which somebody may resume


@dataclass(frozen=True)
class Life:
    """Of one process: the checkpoint that it went on from, the losses that it told, what it saved, how it ended."""

    first: int = 0  # the checkpoint's step; a process that begins the run has none
    losses: tuple[Number, ...] = ()  # of the steps first + 1, ...
    saved: tuple[int, ...] = ()
    left_out: tuple[str, ...] = ()
    end: str = RUNS

    @property
    def last(self) -> int:
        """The steps that the run has made."""
        return self.first + len(self.losses)

    @property
    def by_step(self) -> dict[int, Number]:
        """The losses, each under its step."""
        return dict(enumerate(self.losses, self.first + 1))


@dataclass(frozen=True)
class Story:
    """A run of so many steps: the lives of its processes, the latest last, and what lies in its folder now."""

    steps: int
    lives: tuple[Life, ...]
    whole: tuple[int, ...] = ()  # the steps of the checkpoints
    unfinished: int | None = None  # the step of a file that was being written when its process was killed
    file_bytes: int = 0
    example: bool = False  # made without a process

    @property
    def now(self) -> Life:
        """The latest life."""
        return self.lives[-1]

    @property
    def newest(self) -> int | None:
        """The step of the newest checkpoint."""
        return max(self.whole, default=None)

    @property
    def left_out(self) -> tuple[str, ...]:
        """The parts that the latest process, or one on whose checkpoint it builds, went on without."""
        life, parts = self.now, list(self.now.left_out)
        for before in reversed(self.lives[:-1]):
            if life.first in before.saved:
                life = before
                parts += life.left_out
        return tuple(dict.fromkeys(parts))

    @property
    def lost(self) -> list[int]:
        """For each crash that was resumed from: where it was, minus where the next process began."""
        return [before.last - life.first for before, life in zip(self.lives, self.lives[1:], strict=False)]

    def kept(self, n: int) -> int:
        """The last step of that life which no later one began before: what comes after it was lost."""
        return min([self.lives[n].last, *(life.first for life in self.lives[n + 1 :])])

    @property
    def done_again(self) -> int:
        """The steps of the latest life that the one before it had made already: counted one by one."""
        before = self.lives[-2].by_step if len(self.lives) > 1 else {}
        return sum(step in before for step in self.now.by_step)


@dataclass(frozen=True)
class Agreement:
    """How many losses of a life equal those of a run that was never killed, to the last bit; and where they do not."""

    equal: int
    compared: int
    first: int | None = None  # step at which they differ
    largest: Number = 0  # difference
    at: int | None = None  # which step

    @property
    def exact(self) -> bool:
        """Whether all of them are equal."""
        return self.equal == self.compared


def agreement(life: Life, reference: Sequence[Number]) -> Agreement:
    """Each loss beside that of the same step in the reference."""
    pairs = {
        step: (loss, reference[step - 1]) for step, loss in life.by_step.items() if step <= len(reference)
    }
    gaps = {step: abs(ours - theirs) for step, (ours, theirs) in pairs.items() if ours != theirs}
    if not gaps:
        return Agreement(len(pairs), len(pairs))
    at = max(gaps, key=lambda step: gaps[step] if math.isfinite(gaps[step]) else math.inf)
    return Agreement(len(pairs) - len(gaps), len(pairs), min(gaps), gaps[at], at)
