"""How a run is to go on, and what became of it: its processes, one after the other, and what they left in the folder."""

from dataclasses import dataclass

from course_utils.labs.fields import tick, whole
from course_utils.quantities import Number

PARTS = ("model", "optimizer", "step", "data", "generators")  # of a run's state; they are those of `training`
PRESETS = {
    "all restored: same curve?": dict.fromkeys(PARTS, True),
    "weights alone: same curve?": dict.fromkeys(PARTS, False) | {"model": True},
}
RUNS, DONE, STOPPED, ENDED = "now", "complete", "stopped", "ended"
KILLED, KILLED_SAVING = "killed", "killed in a save"
CRASHES = (KILLED, KILLED_SAVING, STOPPED, ENDED)  # after which somebody may resume


@dataclass(frozen=True)
class Plan:
    """Of the next process: how often it saves, how far it goes and how fast, and what it restores if it resumes."""

    every: int = whole("save every … steps", 10, 1, 40, width_px=284)
    steps: int = whole("steps", 120, 20, 120, step=10, width_px=284)
    pause_ms: int = whole("pause a step, ms", 80, 10, 250, step=10, width_px=284)
    model: bool = tick("restore model", True)
    optimizer: bool = tick("restore optimizer", True)
    step: bool = tick("restore step", True)
    data: bool = tick("restore data", True)
    generators: bool = tick("restore generators", True)

    @property
    def left_out(self) -> tuple[str, ...]:
        """The parts that a resume would go on without."""
        return tuple(part for part in PARTS if not getattr(self, part))


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
class Agreement:
    """How many losses of a life equal those of a run that was never killed, to the last bit; and where they do not."""

    equal: int
    compared: int
    first: int | None = None  # step at which they differ
    largest: Number = 0  # difference

    @property
    def exact(self) -> bool:
        """Whether all of them are equal."""
        return self.equal == self.compared


@dataclass(frozen=True)
class Story:
    """A run of so many steps: the lives of its processes, the latest last, and what lies in its folder now."""

    steps: int
    lives: tuple[Life, ...]
    whole: tuple[int, ...] = ()  # the steps of the checkpoints
    unfinished: int | None = None  # the step of a file that was being written when its process was killed
    reference: tuple[
        Number, ...
    ] = ()  # the losses of the same run, never killed; without a kernel there are none
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

    @property
    def costs(self) -> list[int]:
        """The same of crashes alone: a run that was complete can be resumed too, for more steps."""
        return [cost for cost, life in zip(self.lost, self.lives, strict=False) if life.end in CRASHES]

    def kept(self, n: int) -> int:
        """The last step of that life which no later one began before: what comes after it was lost."""
        return min([self.lives[n].last, *(life.first for life in self.lives[n + 1 :])])

    @property
    def done_again(self) -> int:
        """The steps of the latest life that the one before it had made already: counted one by one."""
        before = self.lives[-2].by_step if len(self.lives) > 1 else {}
        return sum(step in before for step in self.now.by_step)

    @property
    def agreement(self) -> Agreement:
        """Each loss of the latest life beside that of the same step in the reference."""
        first, losses = self.now.first, self.now.losses
        pairs = list(zip(losses, self.reference[first:], strict=False))
        gaps = {step: abs(a - b) for step, (a, b) in enumerate(pairs, first + 1) if a != b}
        equal = len(pairs) - len(gaps)
        return Agreement(equal, len(pairs), min(gaps, default=None), max(gaps.values(), default=0))
