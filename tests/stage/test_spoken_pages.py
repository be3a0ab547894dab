"""What stands around the course's text, on pages, desks and slides, is in the reader's language."""

import json

import pytest
from bs4 import BeautifulSoup

from course_utils.core.say import Guess
from course_utils.core.say.language import speak, translated
from course_utils.stage.notebook.about import about
from course_utils.stage.notebook.files import read
from course_utils.stage.pages import __main__, host, labs, recall_page, render
from course_utils.stage.recall import in_class
from course_utils.stage.slides.deck import deck_of_cut
from course_utils.stage.translations import catalogue, package, sentences
from course_utils.stage.translations.edition import Edition
from course_utils.stage.translations.spoken import speaking
from course_utils.stage.workspace import copies, estimates, progress, recall_pages
from tests import NOTEBOOKS, ROOT
from tests.helpers.pages import ALIVE
from tests.helpers.translations import QUOTED, quoted, write_quoted
from tests.stage.test_recall_pages import Reader

FLOATS = NOTEBOOKS[0]
NOTHING_COMPUTED = dict.fromkeys(ALIVE)


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    folder = tmp_path_factory.mktemp("translations")
    write_quoted(folder)
    return folder


@pytest.fixture
def quoted_course(written, monkeypatch):
    """There is one other language, in which everything is «quoted»; then English again."""
    monkeypatch.setattr(catalogue, "FOLDER", written)
    yield
    speak({})


def parsed(html: str) -> BeautifulSoup:
    return BeautifulSoup(html, "html.parser")


# What is listed for translators.


def test_sentences_of_scripts_and_templates_are_listed_with_those_of_python():
    listed = {sentence for _, sentence in package.sentences_of(ROOT / "course_utils")}
    in_a_script = "It is forgotten."
    in_a_template = "Another napkin"
    in_python = "There is no record."
    assert {in_a_script, in_a_template, in_python} <= listed
    assert package.said_in(r'template("a \"b\" {c}") untranslated("d")') == ['a "b" {c}']


# The pages of the site.


def test_the_front_page_has_its_buttons_captions_and_bricks_in_the_language(quoted_course):
    page = parsed(render.contents_page(QUOTED))
    assert page.select_one(".player button").get_text() == "«Pause»"
    assert page.select_one(".player button")["data-play"] == "«Play»"
    assert page.select_one("figcaption").get_text().startswith("«One training step")
    assert all(brick.get_text().startswith("«") for brick in page.select(".brick .small"))
    assert page.select_one(".begin a").get_text() == "«Start: 1, «Floats»»"
    in_english = parsed(render.contents_page())
    assert in_english.select_one(".player button").attrs == {"type": "button"}
    assert "«" not in in_english.get_text()


def test_a_page_has_its_guesses_and_labs_in_the_language(quoted_course):
    page = parsed(render.notebook_page(FLOATS, dict(NOTHING_COMPUTED), QUOTED))
    assert all(guess.get_text().startswith("«Your guess") for guess in page.select(".guess p"))
    assert page.select_one(".course-note").get_text() == quoted(labs.NOT_YET)
    pictures = [picture["aria-label"] for picture in page.select("main .course-picture")]
    assert pictures
    assert all(name.startswith("«") for name in pictures)


@pytest.mark.parametrize("name", ["account", "recall"])
def test_the_account_and_the_recall_page_are_in_the_language(quoted_course, name):
    pages = {
        "account": lambda spoken: render.account_page(dict(NOTHING_COMPUTED), spoken),
        "recall": render.recall_page,
    }
    page = parsed(pages[name](QUOTED))
    assert page.html["lang"] == QUOTED
    assert page.title.get_text().startswith("«")
    text = page.select("main > :is(h1, h2, p:not(.needs)), main > ul > li")
    assert len(text) > 3
    assert all(one.get_text().strip().startswith("«") for one in text)
    assert page.find("a", hreflang="en")["href"] == f"{name}.html"
    english = parsed(pages[name]("en"))
    assert english.find("a", hreflang=QUOTED)["href"] == f"{name}.{QUOTED}.html"
    assert english.find("script", {"data-sections": True}) is None


def test_a_question_leads_to_the_page_in_the_language(quoted_course):
    page = parsed(recall_page.sections_in(QUOTED))
    sections = json.loads(page.script.get_text())
    of_the_first = sections["floats.stops"]
    assert of_the_first["section"].startswith("«")
    name, _, anchor = of_the_first["link"].partition("#")
    assert name == f"01_floats.{QUOTED}.html"
    assert f'id="{anchor}"' in render.notebook_page(FLOATS, dict(NOTHING_COMPUTED), QUOTED)


def test_a_page_in_another_language_leaves_the_next_one_in_english(quoted_course):
    before = render.contents_page(), render.account_page(dict(NOTHING_COMPUTED))
    render.contents_page(QUOTED)
    render.account_page(dict(NOTHING_COMPUTED), QUOTED)
    assert (render.contents_page(), render.account_page(dict(NOTHING_COMPUTED))) == before


def test_the_browser_gets_all_sentences_and_its_labs_speak_them(quoted_course):
    said = json.loads(__main__.sentences(QUOTED))
    assert said["It is forgotten."] == "«It is forgotten.»"
    host.speak_in(json.dumps(said))
    assert translated("It is forgotten.") == "«It is forgotten.»"


# The desk.


def test_the_recall_pages_are_in_the_language_but_for_their_questions(
    quoted_course, tmp_path, monkeypatch
):
    monkeypatch.setenv("COURSE_LANG", QUOTED)
    reader = Reader(tmp_path)
    three = parsed(reader.html("/contents/recall"))
    assert three.html["lang"] == QUOTED
    assert three.h1.get_text() == "«Three to recall, two minutes»"
    links = [link.get_text() for link in three("a")]
    assert links[-2:] == ["«Contents»", "«The napkin: ten questions over the whole course»"]
    asked = parsed(reader.html("/contents/napkin?seed=7"))
    questions = asked.select(".question")
    assert len(questions) == 10
    assert {question["lang"] for question in questions} == {"en"}
    assert asked.button.get_text() == "Show what was right"  # as its whole paragraph is quoted
    typed = {f"typed-{number}": "" for number in range(1, 11)}
    told = parsed(reader.html("/contents/napkin?seed=7", seed="7", **typed))
    assert told.select_one(".keep").get_text().startswith("««Napkin 7: 0 of 10 right.»")
    assert told.select_one(".reply strong").get_text().startswith("«It is ")


def test_what_was_done_is_counted_in_the_language(quoted_course):
    with speaking(QUOTED):
        count = progress.in_words(progress.Count((1, 3), (0, 2)))
        assert count == "««1 of 3 right on the main path», «0 of 2 beyond»»"
        assert estimates.summary([estimates.Guess("a", 5, 5)]) == "«1 guess: «spot on»»"
        assert recall_pages.in_words(recall_pages.date(2026, 5, 4)) == "««Monday», 4 «May»»"
    assert recall_pages.in_words(recall_pages.date(2026, 5, 4)) == "Monday, 4 May"


def test_chinese_has_its_own_comma_in_a_list_and_no_space_between_sentences():
    known = about(read(NOTEBOOKS[7]), NOTEBOOKS[7].name)
    edition = Edition("zh_CN", NOTEBOOKS[7].stem)
    said = sentences.minutes_and_needs("zh_CN", known, edition)
    assert said.endswith("分钟。需要先学：笔记本 5、6 和 7。")


def test_the_picture_of_guesses_has_room_for_its_longest_words():
    guesses = {1: [Guess("a", 9, 3)]}
    assert estimates.picture(guesses)["left"] == 104
    with speaking("zh_CN"):
        drawn = estimates.picture(guesses)
    longest = drawn["marks"][-1][1]
    assert longest == "差 1,000 倍或没猜中"
    # They end 8 before the grid, and of 12 pixels each Chinese letter has all and a digit 7.
    assert drawn["left"] - 8 >= 12 * 6 + 7 * 4 + 4 * 3


# Slides, and a notebook that is presented.


def test_a_decks_own_words_are_in_the_language(quoted_course):
    (html,) = deck_of_cut(FLOATS, "25", QUOTED).values()
    page = parsed(html)
    words = json.loads(page.select_one("#notes")["data-words"])
    assert words["The next slide"] == "«The next slide»"
    assert page.output["aria-label"] == "«Slide»"
    (english,) = deck_of_cut(FLOATS, "25").values()
    assert "data-words" not in parsed(english).select_one("#notes").attrs


def test_questions_at_the_head_of_a_lecture_are_announced_in_the_language(quoted_course):
    with speaking(QUOTED):
        head, *_ = in_class.cells(4, recall_pages.date(2026, 5, 4), copies.COURSE)
    heading, _, rest = head["source"].partition("\n\n")
    assert heading == "## «From earlier notebooks»"
    assert rest.startswith("«Three questions come back")
