"""One matrix product, predicted at every movement and timed on request: sizes, dtype, machine."""

import csv
import io
from collections.abc import Generator, Iterator
from dataclasses import replace

import ipywidgets as widgets

from course_utils import machines, measure, products
from course_utils.labs.matmul_picture import (
    HERE,
    LONGEST_S,
    Asked,
    Run,
    asked_for,
    place,
    recordings_by_label,
    typed_seconds,
    view,
)
from course_utils.labs.panel import Download, Panel, Progress, View, as_progress
from course_utils.labs.size_control import SizeControl
from course_utils.quantities import Number, rate_text, seconds_text

ON_PAPER = ("A100 SXM", "H200 SXM")  # a T4, an H100, a B200 and an MI300X stand among the recorded
DTYPES = (*products.DTYPES, "xf32")  # in which an MI300X was recorded
AT_MOST_S = 2.0  # of sampling, on a press of a button
SAVED = (
    "machine",
    *"bdk",
    "dtype",
    "seconds",
    "spread",
    "quiet",
    "recorded",
    "source",
    "guess",
    "flops",
    "rate",
)
PRESETS = {
    "a CPU's sizes": {"b": 1024, "d": 256, "k": 64},
    "square, 1024": {"b": 1024, "d": 1024, "k": 1024},
    "one token": {"b": 1, "d": 4096, "k": 4096},
    "a GPU's sizes": {"b": 16384, "d": 32768, "k": 8192},
}


def matmul_lab() -> Panel:
    """The matmul lab."""
    return _MatmulLab().panel()


class _MatmulLab:
    def __init__(self) -> None:
        self.runs: list[Run] = []  # only ever appended to by jobs, or emptied

    def panel(self) -> Panel:
        wide = widgets.Layout(width="auto")
        narrow = {"button_width": "auto", "description_width": "initial"}
        controls = {
            "b": SizeControl("B", 1024),
            "d": SizeControl("D", 1024),
            "k": SizeControl("K", 1024),
            "dtype": widgets.ToggleButtons(
                options=DTYPES, value="fp32", description="dtype", layout=wide, style=narrow
            ),
            "where": widgets.ToggleButtons(
                options=[HERE, *recordings_by_label(), *ON_PAPER],
                description="machine",
                layout=wide,
                style=narrow,
            ),
            "guess": widgets.Text(
                "", description="my guess", placeholder="like 5 ms", layout=widgets.Layout(width="200px")
            ),
            "sweep": widgets.ToggleButtons(
                options=["B", "D", "K"], value="K", description="sweep over", layout=wide, style=narrow
            ),
        }
        return Panel(
            "Matmul lab",
            self.show,
            controls,
            presets=PRESETS,
            jobs={"Time it": self.time_it, "Sweep": self.sweep},
            actions={"Save history as CSV": self.save, "Clear history": self.clear},
        )

    def show(self, b: object, d: object, k: object, dtype: str, where: str, guess: str, sweep: str) -> View:
        """What there is to see for one state of the controls."""
        return view(asked_for(b, d, k, dtype, where), self.runs, typed_seconds(guess), sweep)

    # What is done.

    def time_it(
        self, b: object, d: object, k: object, dtype: str, where: str, guess: str, sweep: str
    ) -> Iterator[Progress]:
        """Time the product, or bring the nearest one that was recorded."""
        asked = asked_for(b, d, k, dtype, where)
        guessed = typed_seconds(guess)
        run = yield from self._run(asked, guessed)
        same = run.size == asked.size
        off = _judged(guessed, asked, run) if guessed else ""
        doubt = f" Take it as an upper bound: {run.doubt}." if run.doubt else ""
        sizes = "" if same else " at {:,} × {:,} × {:,}".format(*run.size)
        yield Progress(
            1,
            f"{run.verb}{sizes}: {seconds_text(run.seconds)}, {rate_text(run.rate)}.{off}{doubt}",
            changed=True,
        )

    def sweep(
        self, b: object, d: object, k: object, dtype: str, where: str, guess: str, sweep: str
    ) -> Iterator[Progress]:
        """Time the product along one dimension, as far as each takes less than a moment."""
        asked = asked_for(b, d, k, dtype, where)
        if asked.recording:
            yield self._recorded_along(asked, sweep)
            return
        along = [asked.with_size(sweep, 2**power) for power in range(21)]
        along = [one for one in along if one.fits and not one.runs_apart]
        if not along:
            raise ValueError(
                f"Already at {sweep} = 1 this takes too long to sweep. Make the other two smaller."
            )
        for number, one in enumerate(along):
            name = f"{sweep} = {one.size[place(sweep)]:,}"
            for step in self._run(one, None, at_most_s=0.4):
                yield Progress(number / len(along), f"{name}: {step.report}")
            yield Progress(number / len(along), f"{name} is done.", changed=True)
        yield Progress(1, f"{len(along)} products along {sweep}.", changed=True)

    def _recorded_along(self, asked: Asked, sweep: str) -> Progress:
        along = asked.recorded_along(sweep)
        for run in along:
            self._keep(run)
        others = " × ".join("·" if name == sweep else f"{along[0].size[place(name)]:,}" for name in "BDK")
        number = "1 product was" if len(along) == 1 else f"{len(along)} products were"
        return Progress(1, f"{number} recorded along {sweep}, at {others}.", changed=True)

    def _run(
        self, asked: Asked, guess: Number | None, *, at_most_s: Number = AT_MOST_S
    ) -> Generator[Progress, None, Run]:
        if asked.recording:
            run = asked.nearest_recorded()
            return self._keep(replace(run, guess=guess if run.size == asked.size else None))
        if asked.where != HERE:
            raise ValueError(
                f"There is no {asked.where} here, and no recording of one: what you see is its data sheet's prediction."
            )
        asked.check_that_it_can_run()
        timing = yield from as_progress(_steps(asked, at_most_s), at_most_s=LONGEST_S)
        found = timing.seconds, timing.spread, timing.doubt
        return self._keep(Run(asked.where, *asked.size, asked.dtype, *found, guess=guess))

    def _keep(self, run: Run) -> Run:
        if run.recorded:  # which is the same each time, but for the guess
            self.runs[:] = [one for one in self.runs if replace(one, guess=run.guess) != run]
        self.runs.append(run)
        return run

    def save(self, **_: object) -> Download:
        """Every run so far, in full digits."""
        if not self.runs:
            raise ValueError("There is nothing to save yet. Press Time it first.")
        text = io.StringIO()
        table = csv.writer(text)
        table.writerow(SAVED)
        for run in self.runs:
            source = f"{run.source.by}: {run.source.where}" if run.source else ""
            table.writerow([source if name == "source" else getattr(run, name) for name in SAVED])
        return Download("matmul_runs.csv", text.getvalue())

    def clear(self, **_: object) -> None:
        """Forget every run."""
        self.runs.clear()


def _judged(guess: Number, asked: Asked, run: Run) -> str:
    """How far off the guess was: from the product that was asked for, if its time is known, and else from the prediction."""
    if run.size == asked.size:
        return f" Your guess was {guess / run.seconds:.3g} times that."
    return (
        f" Your guess was for other sizes: {guess / asked.predicted_s:.3g} times what is predicted for them."
    )


def _steps(asked: Asked, at_most_s: Number) -> Generator[measure.Step, None, measure.Timing]:
    steps = products.timing_steps_apart if asked.runs_apart else products.timing_steps
    return steps(asked.b, asked.d, asked.k, asked.dtype, device=machines.device(), at_most_s=at_most_s)
