"""The roof is a bound: small products stay far below it. Two numbers, c and e, make it a forecast.

After two minutes the reader has drawn what products of n × n matrices reach, has seen what a GPU
reached, and has bent the roof by c and e until it goes through the recorded times.
"""

from collections.abc import Iterator, Sequence

from course_utils.chapters.flops.roof_lab import picture
from course_utils.chapters.flops.roof_lab.asked import (
    C_STEP_US,
    MOST_C_US,
    PRESETS,
    QUESTIONS,
    SQUARES,
    Roofed,
)
from course_utils.core import predict
from course_utils.core.say import Guess, seconds_text
from course_utils.core.say.language import translated
from course_utils.engine.labs.lab import Change, Lab, Progress, View


class RoofLab(Lab):
    """The share of the peak that products of n × n matrices reach: drawn, recorded and forecast."""

    name = "Roof lab"
    asks = Roofed
    presets = PRESETS
    rows = (("table", "shown", "c_us", "e_percent"),)

    def guesses(self, asked: Roofed, found: object) -> Sequence[Guess]:
        """Return each share that the reader has drawn, with the recorded share, both in percent."""
        guesses = []
        for n, percent in zip(SQUARES, asked.shares, strict=True):
            if percent is not None:
                recorded = asked.recorded(n)
                guesses.append(
                    Guess(
                        QUESTIONS[n], percent, recorded, kind="reported", digits=2, unit="percent"
                    )
                )
        return guesses

    def view(self, asked: Roofed, found: object) -> View:
        """Draw the squares, and beside them all products of the table."""
        return picture.view(asked, self.guesses(asked, found))

    def fit(self, asked: Roofed, found: object) -> Iterator[Progress]:
        """Fit c and e to a random half of the recorded products; test them on the other half."""
        if not asked.shown:
            raise ValueError(
                translated(
                    "A fit uses what was recorded. Draw what you expect, and press Show first."
                )
            )
        fitted, others = predict.random_halves(asked.seconds_by_size)
        c, e = predict.fitted_forecast(fitted, asked.machine, asked.dtype)
        # The sliders go to their nearest positions, c in microseconds and e in percent.
        steps = round(c * 1e6 / C_STEP_US)
        percent = round(100 * e)
        values = {"c_us": min(C_STEP_US * steps, MOST_C_US), "e_percent": percent}
        error_percent, worst_factor = asked.errors(others, c, e)
        report = translated(
            "Fitted to {fitted} products, drawn by chance: c = {c}, e = {e} %. "
            "The other {others} products: median error {error} %, worst factor {factor}.",
            fitted=f"{len(fitted)}",
            c=seconds_text(c),
            e=f"{percent}",
            others=f"{len(others)}",
            error=error_percent,
            factor=worst_factor,
        )
        yield Progress(1, report, Change(values))

    jobs = {"Fit": fit}
