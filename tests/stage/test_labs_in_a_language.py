"""Labs speak in whole sentences: in a language of brackets, nothing stands outside of a bracket."""

import re
from pathlib import Path

import pytest

from course_utils.chapters import labs
from course_utils.chapters.gradients.timeline_lab import picture as timeline
from course_utils.chapters.gradients.timeline_lab.picture import Scale
from course_utils.core.say import language
from course_utils.stage.translations import catalogue, package
from course_utils.stage.translations.in_kernel import sentences_in
from tests.engine.test_labs_contract import found_and_shown, states
from tests.helpers.labs import opened
from tests.helpers.words import assert_all_can_be_read

PACKAGE = Path(language.__file__).parents[2]
TRANSLATED = tuple(name for name in labs.NAMES if name != "account")
STATES = 40  # of each lab, beside its presets
ROW = "{text} {sentence}"


def in_brackets() -> dict[str, str]:
    """Return a translation of each sentence: the English in brackets; a row stays a row."""
    found = {english: f"⟦{english}⟧" for _, english in package.sentences_of(PACKAGE)}
    return {**found, ROW: ROW}


@pytest.fixture(params=TRANSLATED)
def shown(request):
    """Yield a function that returns what a lab shows in a language, for each of its states."""

    def in_language(translations: dict[str, str]) -> list[object]:
        language.speak(translations)
        with opened(request.param) as panel:
            return [found_and_shown(panel, said)[1] for said in states(request.param, STATES)]

    yield in_language
    language.speak({})


def outside(text: str) -> str:
    """Return what of the text stands in no bracket.

    >>> outside("a ⟦b ⟦c⟧ d⟧ e")
    'a  e'
    """
    innermost = re.compile("⟦[^⟦⟧]*⟧")
    while innermost.search(text):
        text = innermost.sub("", text)
    return text


def test_every_meaning_and_every_refusal_is_made_of_whole_sentences(shown):
    views = shown(in_brackets())
    for view in views:
        said = view if isinstance(view, str) else view.meaning
        assert "⟦" in said
        assert not outside(said).strip(), said


def test_in_chinese_words_have_room_and_no_meaning_is_left_in_english(shown):
    views = shown(sentences_in("zh_CN"))
    for view in views:
        said = view if isinstance(view, str) else view.meaning
        assert re.search("[\u4e00-\u9fff]", said), said
        if not isinstance(view, str):
            assert_all_can_be_read(view.picture)


@pytest.mark.parametrize(
    "nonsense",
    ["b d", "b -> b -> b", "b d -> b, d", "b -> k", "b -> kd", "b b -> b", "... -> b", "(b) -> b",
     "b > d", "b d- -> b", "9 -> 9", "a" * 401, "a,b,c,d,e,f -> a", "a b c d e f g h i -> a"],
)  # fmt: skip
def test_what_is_wrong_with_a_pattern_is_said_in_chinese(nonsense):
    language.speak(sentences_in("zh_CN"))
    try:
        with opened("einsum") as panel:
            panel.set(pattern=nonsense)
            assert re.search("[\u4e00-\u9fff]", panel.screen.mistake)
    finally:
        language.speak({})


def test_buttons_of_all_labs_are_listed_for_translators():
    listed = {label for _, label in package.labels_of_labs()}
    for name in labs.NAMES:
        lab = labs.lab_named(name)
        assert {lab.name, *lab.presets, *lab.jobs, *lab.actions} <= listed
    known = catalogue.translations("zh_CN", "sentences").by_english
    assert known["Time it"] == "计时 Time it", "with the name by which the text calls it"


def test_in_chinese_the_words_on_the_timelines_scale_stand_clear_of_the_axis_number():
    scale = Scale(most=190 * 10**9, memory=80 * 10**9)
    heights = []
    for sentences in ({}, sentences_in("zh_CN")):
        language.speak(sentences)
        words = timeline._words_on_scale(scale)
        heights.append(float(re.search(r' y="([\d.]+)"|translate\([\d.]+[ ,]+([\d.]+)', words)[1]))
    language.speak({})
    english, chinese = heights
    assert english - chinese == 4
