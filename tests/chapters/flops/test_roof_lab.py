"""The roof lab: the shares that were recorded, the forecast's line, and what a fit finds."""

import pytest

from course_utils.chapters import labs
from course_utils.chapters.flops.roof_lab.asked import SQUARES, TABLES, Roofed
from course_utils.chapters.flops.roof_lab.picture import ALONG, SHARES
from course_utils.core import predict
from course_utils.subjects import machines
from tests.helpers.labs import centres, lines

LAB = labs.lab_named("roof")
DRAWN = (10, 20, None, 40, 50)


@pytest.mark.parametrize("table", TABLES)
def test_each_drawn_share_stands_beside_the_one_that_was_recorded(table):
    asked, (name, dtype) = Roofed(table=table, shares=DRAWN, shown=True), TABLES[table]
    recording = machines.recordings()[name]
    peak, timed = recording.machine.peak(dtype), recording.seconds_by_size[dtype]
    shares = {n: 200 * n**3 / timed[n, n, n] / peak for n in SQUARES}
    said = [(guess.said, guess.measured) for guess in LAB.guesses(asked, None)]
    assert said == [
        (level, pytest.approx(shares[n])) for level, n in zip(DRAWN, SQUARES, strict=True) if level
    ]
    picture = LAB.view(asked, None).picture
    drawn = centres(picture, "measured", radius="6")
    assert drawn == [pytest.approx(SHARES.at(n, share), abs=0.1) for n, share in shares.items()]
    assert len(centres(picture, "measured past")) == len(timed)
    assert recording.source.by in LAB.view(asked, None).meaning


def test_the_roof_is_full_from_the_ridge_on_and_c_and_e_bend_it():
    asked = Roofed(c_us=5.0, e_percent=50)
    roof = {n: asked.forecast(n, 0, 1) for n in ALONG}
    forecast = {n: asked.forecast(n, *asked.c_and_e) for n in ALONG}
    bandwidth, peak = 3.35e12, 989.5e12
    assert {n for n, share in roof.items() if share > 99.999} == {
        n for n in roof if n / 3 >= peak / bandwidth
    }
    assert roof[512] == pytest.approx(100 * 512 / 3 * bandwidth / peak)
    assert forecast[4096] == pytest.approx(100 / (5e-6 * peak / (2 * 4096**3) + 1 / 0.5))
    dashed, of_all = lines(LAB.view(asked, None).picture, "line predicted dashed")
    assert dashed == [pytest.approx(SHARES.at(n, share), abs=0.1) for n, share in forecast.items()]
    (_, first), (_, last) = of_all[0], of_all[-1]
    assert first > last


def test_a_fit_waits_for_show_and_says_what_the_others_are_missed_by():
    with pytest.raises(ValueError, match="press Show first"):
        next(LAB.fit(Roofed(), None))
    asked = Roofed(shown=True)
    step = next(LAB.fit(asked, None))
    assert step.change.values == {"c_us": 5.5, "e_percent": 80}
    fitted, others = predict.random_halves(asked.seconds_by_size)
    error, worst = predict.forecast_errors(
        others, asked.machine, "bf16", *predict.fitted_forecast(fitted, asked.machine, "bf16")
    )
    assert (
        f"The other {len(others)} products: median error {100 * error:.3g} %, worst factor {worst:.3g}."
        in step.report
    )
