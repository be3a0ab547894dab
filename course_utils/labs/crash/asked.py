"""How a run is to go on, and what became of it: its processes, one after the other, and what they left in the folder."""

from dataclasses import dataclass

from course_utils.labs.fields import tick, whole
from course_utils.quantities import Number

PARTS = ("model", "optimizer", "step", "data", "generators")  # of a run's state; they are those of `training`
PRESETS = {
    "all restored: same curve?": dict.fromkeys(PARTS, True),
    "weights alone: same curve?": dict.fromkeys(PARTS, False) | {"model": True},
}
MOST_STEPS = 120
RUNS, DONE, ENDED, KILLED, KILLED_SAVING = "now", "complete", "ended", "killed", "killed in a save"
CRASHES = (KILLED, KILLED_SAVING, ENDED)  # after which somebody may resume


@dataclass(frozen=True)
class Plan:
    """What the next process does: how often it saves, how far and how fast it goes, and what it restores if it resumes."""

    every: int = whole("save every … steps", 10, 1, 40, width_px=284)
    steps: int = whole("steps", MOST_STEPS, 20, MOST_STEPS, step=10, width_px=284)
    pause_ms: int = whole("pause a step, ms", 80, 10, 250, step=10, width_px=284)
    model: bool = tick("restore model", True)
    optimizer: bool = tick("restore optimizer", True)
    step: bool = tick("restore step", True)
    data: bool = tick("restore data", True)
    generators: bool = tick("restore generators", True)

    @property
    def left_out(self) -> tuple[str, ...]:
        """The parts that a resume would not restore."""
        return tuple(part for part in PARTS if not getattr(self, part))


@dataclass(frozen=True)
class Life:
    """One process: the checkpoint that it started from, its losses, its saved steps, and how it ended."""

    first: int = 0  # the checkpoint's step; a process that begins the run has none
    losses: tuple[Number, ...] = ()  # of the steps first + 1, ...
    saved: tuple[int, ...] = ()
    left_out: tuple[str, ...] = ()  # what it, or one on whose checkpoint it builds, went on without
    end: str = RUNS

    @property
    def last(self) -> int:
        """The last step that it made."""
        return self.first + len(self.losses)

    @property
    def by_step(self) -> dict[int, Number]:
        """The losses, each under its step."""
        return dict(enumerate(self.losses, self.first + 1))


@dataclass(frozen=True)
class Story:
    """A run: its length, its processes in order, and what lies in its folder now."""

    steps: int
    lives: tuple[Life, ...]
    whole: tuple[int, ...] = ()  # the steps of the checkpoints
    unfinished: int | None = None  # the step of a file that was being written when its process was killed
    reference: tuple[Number, ...] = ()  # the losses of the same run, never killed
    example: bool = False  # made without a process

    @property
    def now(self) -> Life:
        """The latest process."""
        return self.lives[-1]

    @property
    def newest(self) -> int:
        """The step of the newest checkpoint; 0 for none."""
        return max(self.whole, default=0)

    @property
    def crash(self) -> tuple[Life, int] | None:
        """The latest process that ended early, and the newest checkpoint's step at that time."""
        if self.now.end in CRASHES:
            return self.now, self.newest
        return (self.lives[-2], self.now.first) if len(self.lives) > 1 else None

    def kept(self, n: int) -> int:
        """The last step of process n that later ones built on. Its steps after that were lost."""
        return min([self.lives[n].last, *(life.first for life in self.lives[n + 1 :])])

    @property
    def gaps(self) -> dict[int, Number]:
        """The difference of each loss of the latest process from the reference's at the same step."""
        pairs = zip(self.now.losses, self.reference[self.now.first :], strict=False)
        return {step: abs(a - b) for step, (a, b) in enumerate(pairs, self.now.first + 1)}
