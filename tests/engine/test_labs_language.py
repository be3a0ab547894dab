"""What a lab's panel says comes in the reader's language; what it keeps is in English."""

import base64
import re
from pathlib import Path

import pytest

from course_utils.chapters import labs
from course_utils.core import record
from course_utils.core.say import listed
from course_utils.core.say.language import in_a_row, speak, translated
from course_utils.engine.labs import screen, stored
from course_utils.engine.labs.draw import still
from course_utils.engine.labs.draw.lettering import fitted, width_of
from course_utils.engine.labs.draw.plot import Axis
from course_utils.engine.labs.draw.svg import picture, text
from course_utils.engine.labs.lab import Progress
from course_utils.engine.labs.panel import Panel
from tests.helpers.hostile import button
from tests.helpers.small_lab import DrawingLab, small_lab
from tests.helpers.waiting import wait_until

ESPERANTO = {
    "Show": "Montri",
    "Show what was measured": "Montri la mezuron",
    "Stop": "Halti",
    "More controls": "Pli da regiloj",
    "All numbers": "Ĉiuj nombroj",
    "Small lab": "Malgranda laboratorio",
    "seven?": "ĉu sep?",
    "work": "labori",
    "Stopped. {report}": "{report} Haltigite.",
    "{label} cannot be {value}. It is a whole number.": "{value}: {label} estas nombro.",
    "The farthest of your guesses ({asked}) is {word}: {how_far}.": "{word} {asked}: {how_far}.",
    "not set": "ne metita",
    "far": "malproksima",
    "{text} {sentence}": "{sentence} {text}",
    stored.STILL: "Bildo. Ĝi moviĝas en JupyterLab.",
}  # fmt: skip


@pytest.fixture
def workspace(tmp_path, monkeypatch):
    (tmp_path / record.HIDDEN).mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(record, "notebook", "floats")
    return tmp_path


@pytest.fixture
def in_esperanto():
    speak(ESPERANTO)
    yield
    speak({})


def test_buttons_have_names_in_the_readers_language_and_do_the_same(in_esperanto):
    lab = small_lab(presets={"seven?": {"n": 7}})
    button(lab, "ĉu sep?").click()
    assert lab.screen.meaning == "n is 7"
    assert lab.screen.name == "Malgranda laboratorio"
    guessed = Panel(DrawingLab())
    show = guessed.controls["shown"]
    assert (show.description, show.tooltip) == ("Montri", "Montri la mezuron")
    show.value = True
    assert guessed.session.revealed
    assert guessed.controls["n"].children[0].description == "n", "controls keep their names"


def test_a_job_that_is_stopped_says_so_in_the_readers_language(in_esperanto):
    def job(n):
        while True:
            yield Progress(0.5, "Duono.")

    lab = small_lab(jobs={"work": job})
    button(lab, "labori").click()
    wait_until(lambda: lab.screen.report == "Duono.", "the job reports")
    button(lab, "Halti").click()
    lab.wait()
    assert lab.screen.report == "Duono. Haltigite."


def test_nonsense_in_a_field_is_refused_in_the_readers_language(in_esperanto):
    lab = small_lab()
    lab.set(n="many")
    assert lab.screen.mistake == "'many': n estas nombro."


def test_marks_and_how_far_they_were_are_said_in_the_readers_language(in_esperanto, workspace):
    panel = Panel(DrawingLab())
    assert panel.screen.svg.count('aria-valuetext="ne metita"') == 3
    panel.set(guess=(20, None, 9), shown=True)
    assert panel.screen.meaning.startswith("malproksima a: ")
    (kept,) = record.guesses(workspace).values()
    assert kept[0].asked in ("a", "c"), "the record has what was asked, in English"


def test_the_words_of_the_screen_come_from_python(in_esperanto):
    lab = small_lab()
    assert lab.screen.labels["All numbers"] == "Ĉiuj nombroj"
    assert lab.screen.labels["Progress"] == "Progress", "what has no translation stays English"
    script = Path(screen.__file__).with_suffix(".js").read_text(encoding="utf-8")
    said = set(re.findall(r'\bsay\("([^"]+)"', script))
    assert said == set(screen.WORDS)


def test_sentences_stand_in_a_row_as_the_language_has_them(in_esperanto):
    assert in_a_row("Unu.", "", "Du.") == "Du. Unu."
    speak({"{text} {sentence}": "{text}{sentence}", "{names}, {next}": "{names}、{next}",
           "{names} and {last}": "{names} 和 {last}"})  # fmt: skip
    assert in_a_row("一。", "", "二。", "三。") == "一。二。三。"
    assert [listed("a"), listed("ab"), listed("abc")] == ["a", "a 和 b", "a、b 和 c"]


def test_an_axis_that_rescales_says_its_ends_in_the_readers_language():
    axis = Axis(1, 100, "time", rescales=True)
    assert axis.title == "time: 1 to 100"
    speak({"{name}: {low} to {high}": "{name}：{low} 到 {high}"})
    try:
        assert axis.title == "time：1 到 100"
    finally:
        speak({})


# A still picture is drawn in a font that has few letters.


def test_a_still_picture_is_in_the_readers_language_where_its_font_has_the_letters(in_esperanto):
    lab = small_lab()
    bundle, metadata = lab._repr_mimebundle_()
    assert metadata["image/png"]["alt"] == "Malgranda laboratorio. n is 3"
    drawn = still.captioned(lab.screen.svg, ESPERANTO[stored.STILL])
    assert still.can_draw(drawn)
    assert bundle["image/png"] == png(drawn, "Malgranda laboratorio. n is 3")


def test_where_the_font_lacks_a_letter_the_still_picture_is_in_english():
    lab = labs.figure("sum")
    in_english = lab._repr_mimebundle_()[0]["image/png"]
    speak({"Where does it stop?": "它停在哪里？", stored.ANSWERED: "这是龘案。"})
    try:
        assert not still.can_draw(picture(9, 9, text(0, 9, "龘")))
        assert labs.figure("sum")._repr_mimebundle_()[0]["image/png"] == in_english
        assert translated("Where does it stop?") == "它停在哪里？", "only the picture is in English"
    finally:
        speak({})


def png(drawn: str, words: str) -> str:
    return base64.b64encode(still.still_png(drawn, words)).decode()


@pytest.mark.parametrize("class_", ["", "strong", "code", "small alarm"])
def test_chinese_letters_are_as_wide_as_high(class_):
    size = 12 if "small" in class_ else 14
    words = "总和停在哪里？"
    assert width_of(words, class_) == pytest.approx(size * len(words))
    alone = width_of("bf16 ", class_)
    assert width_of("bf16 " + words, class_) == pytest.approx(alone + size * len(words))
    assert "scale(0.5)" in fitted(0, 20, words, size * len(words) / 2, class_)
    assert "scale" not in fitted(0, 20, words, size * len(words) + 1, class_)
