"""The roof lab: the shares that were recorded, the forecast's line, and what a fit finds."""

import re

import pytest

from course_utils.chapters import labs
from course_utils.chapters.flops.roof_lab.asked import SQUARES, TABLES, Roofed
from course_utils.chapters.flops.roof_lab.picture import ALONG, SHARES
from course_utils.core import predict
from course_utils.engine.labs.draw.lettering import width_of
from course_utils.engine.labs.draw.naming import Box
from course_utils.subjects import machines
from tests.helpers.labs import centres, lines

LAB = labs.lab_named("roof")
DRAWN = (10, 20, None, 40, 50)
NOT_DRAWN = 1024


@pytest.mark.parametrize("table", TABLES)
def test_each_drawn_share_stands_beside_the_one_that_was_recorded(table):
    asked = Roofed(table=table, shares=DRAWN, shown=True)
    name, dtype = TABLES[table]
    recording = machines.recordings()[name]
    peak = recording.machine.peak(dtype)
    timed = recording.seconds_by_size[dtype]
    percents = {n: 100 * 2 * n**3 / timed[n, n, n] / peak for n in SQUARES}

    guesses = LAB.guesses(asked, None)
    assert [guess.said for guess in guesses] == [10, 20, 40, 50]
    of_drawn = [percents[n] for n in SQUARES if n != NOT_DRAWN]
    assert [guess.measured for guess in guesses] == pytest.approx(of_drawn)

    view = LAB.view(asked, None)
    dots = centres(view.picture, "measured", radius="6")
    assert dots == [pytest.approx(SHARES.at(n, percents[n]), abs=0.1) for n in SQUARES]
    assert len(centres(view.picture, "measured past")) == len(timed)
    assert recording.source.by in view.meaning


@pytest.mark.parametrize(("c_us", "e_percent"), [(0, 100), (5.5, 80), (8, 39)])
@pytest.mark.parametrize("table", TABLES)
def test_the_forecasts_name_covers_no_point(table, c_us, e_percent):
    asked = Roofed(table=table, c_us=c_us, e_percent=e_percent, shown=True)
    picture = LAB.view(asked, None).picture
    [(x, y)] = re.findall(r'<text x="([^"]+)" y="([^"]+)"[^>]*>c \+ roof / e<', picture)
    left = float(x)
    right = left + width_of("c + roof / e", "formula small halo")
    name = Box(left, float(y) - 10, right, float(y) + 2)  # its letters
    for across, down in centres(picture, "measured past"):
        assert not name.meets(Box(across - 4, down - 4, across + 4, down + 4))


def test_the_roof_is_full_from_the_ridge_on_and_c_and_e_bend_it():
    asked = Roofed(c_us=5.0, e_percent=50, shown=True)
    roof = {n: asked.forecast(n, 0, 1) for n in ALONG}
    forecast = {n: asked.forecast(n, *asked.c_and_e) for n in ALONG}
    peak = 989.5e12
    ridge = peak / 3.35e12
    full = {n for n, share in roof.items() if share > 99.999}
    assert full == {n for n in ALONG if n / 3 >= ridge}  # n / 3 FLOPs per byte in bf16
    assert roof[512] == pytest.approx(100 * 512 / 3 / ridge)
    roof_s = 2 * 4096**3 / peak
    assert forecast[4096] == pytest.approx(100 * roof_s / (5e-6 + roof_s / 0.5))
    dashed, of_all = lines(LAB.view(asked, None).picture, "line predicted dashed")
    assert dashed == [pytest.approx(SHARES.at(n, share), abs=0.1) for n, share in forecast.items()]
    _, first_y = of_all[0]
    _, last_y = of_all[-1]
    assert first_y > last_y


def test_the_forecast_comes_with_show_because_c_and_e_are_explained_below():
    before = LAB.view(Roofed(c_us=5.0), None)
    assert "c + roof" not in before.picture + before.meaning
    assert "dashed" not in before.picture
    for name in ("c_us", "e_percent"):
        question = Roofed.__dataclass_fields__[name].metadata["field"]
        assert not question.asked({"shown": False})
        assert question.asked({"shown": True})


def test_a_fit_waits_for_show_and_says_what_the_others_are_missed_by():
    with pytest.raises(ValueError, match="press Show first"):
        next(LAB.fit(Roofed(), None))
    asked = Roofed(shown=True)
    step = next(LAB.fit(asked, None))
    assert step.change.values == {"c_us": 5.5, "e_percent": 80}
    fitted, others = predict.random_halves(asked.seconds_by_size)
    c, e = predict.fitted_forecast(fitted, asked.machine, "bf16")
    error, worst = predict.forecast_errors(others, asked.machine, "bf16", c, e)
    errors = f"median error {100 * error:.3g} %, worst factor {worst:.3g}."
    assert f"The other {len(others)} products: {errors}" in step.report
