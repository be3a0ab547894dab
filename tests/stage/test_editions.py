"""The course in another language is one course: English is parsed first, and translated last."""

import os
import re
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from bs4 import BeautifulSoup

from course_utils.stage.grading.reading import code_of
from course_utils.stage.notebook import prose
from course_utils.stage.notebook.about import about
from course_utils.stage.notebook.files import read, source, write
from course_utils.stage.notebook.outline import outline, parted
from course_utils.stage.pages import languages, render
from course_utils.stage.present import asking, cuts, server
from course_utils.stage.slides.deck import deck_of_cut
from course_utils.stage.translations import catalogue, language, pages, sentences
from course_utils.stage.translations.edition import Edition, in_english
from course_utils.stage.translations.units import units
from course_utils.stage.workspace import assignment, contents, copies, progress, spacers
from course_utils.stage.workspace.place import place
from tests import NOTEBOOKS, ROOT
from tests.helpers import notebooks
from tests.helpers.translations import QUOTED, quoted, write_quoted, write_some
from tests.helpers.workspace import FLOPS, started

TENSORS = NOTEBOOKS[1]
PAGES_BESIDE = ("GLOSSARY", "INSTRUCTORS")
HEADINGS = ".cell[data-kind=prose] :is(h1, h2, h3)"
MARK = '<span lang="en">'


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    folder = tmp_path_factory.mktemp("translations")
    write_quoted(folder)
    return folder


@pytest.fixture
def translated(written, monkeypatch):
    """There is one language, in which everything is translated."""
    monkeypatch.setattr(catalogue, "FOLDER", written)
    contents._page_in.cache_clear()
    yield
    contents._page_in.cache_clear()


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_translated_notebook_has_all_its_text_translated_and_is_the_same_course(translated, path):
    english = read(path)
    other = Edition(QUOTED, path.stem).notebook(english)
    assert outline(in_english(other)) == outline(english)
    assert code_of(other) == code_of(english)
    for cell, before in zip(other["cells"], english["cells"], strict=True):
        assert MARK not in source(cell)
        assert cell.get("outputs") == before.get("outputs")
        if cell["cell_type"] == "markdown" and units(source(before)):
            assert source(cell) != source(before)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_what_a_slide_or_a_cut_leaves_of_a_text_is_translated_too(translated, path):
    edition = Edition(QUOTED, path.stem)
    cells = read(path)["cells"]
    left = []
    for cell in filter(is_text, cells):
        for text in (source(cell), prose.without_contents(source(cell))):
            left.append((cell["id"], text))
            left.append((cell["id"], prose.for_a_still(prose.without_folds(text))))
        left += [
            (cell["id"], f"### {title}\n\n{text}") for title, text in prose.folds(source(cell))
        ]
    left += [(cell["id"], source(cell)) for cell in parted(cells) if is_text(cell)]
    assert [text for name, text in left if MARK in edition.text(name, text)] == []


def test_the_glossary_keeps_the_anchors_that_links_lead_to(translated):
    text = (ROOT / "notebooks" / "GLOSSARY.md").read_text(encoding="utf-8")
    shown = Edition(QUOTED, "GLOSSARY").page(text)
    anchors = set(re.findall(r'<a id="([^"]+)"></a>', shown))
    linked = set()
    for path in NOTEBOOKS:
        linked |= set(re.findall(r"GLOSSARY\.md#([\w-]+)", path.read_text(encoding="utf-8")))
    assert linked <= anchors


def test_the_translated_pages_lead_to_one_another_and_to_places_that_they_have(translated):
    """Links and anchors are those that a code-hosting page makes of Markdown."""
    texts = pages.pages(QUOTED)
    names = {path.relative_to(ROOT).as_posix() for path in texts}
    assert names == {f"README.{QUOTED}.md", *(f"notebooks/{n}.{QUOTED}.md" for n in PAGES_BESIDE)}
    for path, text in texts.items():
        assert text.startswith(f"[English]({path.name.replace(f'.{QUOTED}', '')})\n\n# <a id=")
        _, _, rest = text.partition("\n")  # without the way back to English
        for target, anchor in re.findall(r"\]\(((?!https?:)[^)#]*)#?([^)]*)\)", rest):
            led_to = path if not target else (path.parent / target).resolve()
            assert led_to in texts or led_to.exists(), target
            assert not target.endswith(tuple(f"{name}.md" for name in PAGES_BESIDE)), target
            if anchor and led_to in texts:
                assert f'<a id="{anchor}"></a>' in texts[led_to], anchor


# Which language.

SYSTEMS = [
    ({}, "en"),
    ({"LANG": "C.UTF-8"}, "en"),
    ({"LANG": "zh_CN.UTF-8"}, "zh_CN"),
    ({"LANG": "zh_TW.UTF-8"}, "zh_CN"),
    ({"LANG": "zh_CN", "LC_ALL": "en_GB.UTF-8"}, "en"),
    ({"LANG": "fr_FR.UTF-8"}, "en"),
    ({"COURSE_LANG": "zh_CN", "LANG": "en_US.UTF-8"}, "zh_CN"),
    ({"COURSE_LANG": "en", "LANG": "zh_CN.UTF-8"}, "en"),
]


@pytest.fixture
def chinese(tmp_path, monkeypatch):
    """There is Chinese, with one translated title."""
    monkeypatch.setattr(catalogue, "FOLDER", tmp_path / "translations")
    some = {("title", "Tensors"): "张量"}
    write_some(tmp_path / "translations", "zh_CN", TENSORS.stem, some)


@pytest.mark.parametrize(("environment", "spoken"), SYSTEMS)
def test_the_language_is_the_one_asked_for_or_else_the_system_s(chinese, environment, spoken):
    assert language.chosen(environment) == spoken


def test_a_system_s_language_is_not_taken_while_nothing_is_translated(tmp_path, monkeypatch):
    monkeypatch.setattr(catalogue, "FOLDER", tmp_path)
    write_some(tmp_path, "zh_CN", TENSORS.stem, {("title", "Tensors"): ""})
    assert language.chosen({"LANG": "zh_CN.UTF-8"}) == "en"


def test_who_asks_for_a_language_that_is_not_there_is_told_which_are(chinese):
    with pytest.raises(ValueError, match=r"does not exist in fr\. There is: en, zh_CN"):
        language.chosen({"COURSE_LANG": "fr"})


def test_one_line_says_how_to_change_a_language_that_nobody_asked_for():
    said = language.how_to_change("zh_CN", {"LANG": "zh_CN.UTF-8"})
    assert "中文" in said
    assert "make lab LANG=en" in said
    assert language.how_to_change("zh_CN", {"COURSE_LANG": "zh_CN"}) == ""
    assert language.how_to_change("en", {"LANG": "en_US.UTF-8"}) == ""


SHOWS = 'show:\n\t@echo "$$COURSE_LANG"\n'
ASKED_FOR = [(["LANG=zh_CN"], "zh_CN"), ([], "")]


@pytest.mark.parametrize(("given", "passed_on"), ASKED_FOR)
def test_make_tells_a_language_that_is_asked_for_from_the_system_s(given, passed_on):
    environment = {**os.environ, "LANG": "zh_CN.UTF-8"}
    del environment["COURSE_LANG"]
    command = ["make", "--silent", "--file=Makefile", "--file=-", "show", *given]
    run = subprocess.run(
        command, cwd=ROOT, env=environment, input=SHOWS, capture_output=True, text=True, check=True
    )
    assert run.stdout.strip() == passed_on


# A reader's copies.

ANSWER = "alone_s = 2 * (2 * 1000 * 1000)"
TITLE = "4 · 浮点运算"
TURN = "轮到你 1 · 平方"
ASKED = "*容易，3 分钟。* 多少？"
ENGLISH_ASKED = "*easy, 3 minutes.* How many?"
CHINESE_TURN = {("turn", "Your turn 1 · The square_alone"): TURN}


@pytest.fixture
def desk(tmp_path, monkeypatch):
    """Return the paths of a short notebook, much of which is in Chinese, and of a reader's copy."""
    course = tmp_path / "notebooks"
    mine = tmp_path / "my_notebooks"
    course.mkdir()
    monkeypatch.setattr(copies, "COURSE", course)
    monkeypatch.setattr(copies, "MINE", mine)
    monkeypatch.setattr(catalogue, "FOLDER", tmp_path / "translations")
    write(course / FLOPS, notebooks.short())
    title, turn, *_ = [cell["id"] for cell in read(course / FLOPS)["cells"] if is_text(cell)]
    some = {(title, "4 · FLOPs"): TITLE, (turn, ENGLISH_ASKED): ASKED, **CHINESE_TURN}
    write_some(tmp_path / "translations", "zh_CN", Path(FLOPS).stem, some)
    return course / FLOPS, mine / FLOPS


def is_text(cell):
    return cell["cell_type"] == "markdown"


def brought(desk, spoken):
    """Bring the copy up to date in that language; returns what is said."""
    course, own = desk
    return list(copies.bring_up_to_date(course.parent, own.parent, language=spoken))


def edit(path, old, new):
    """Write `new` in place of `old`, in the one cell that has it."""
    notebook = read(path)
    (cell,) = [cell for cell in notebook["cells"] if old in source(cell)]
    cell["source"] = source(cell).replace(old, new)
    write(path, notebook)


def shown(path):
    return [source(cell) for cell in read(path)["cells"]]


def text_of(path):
    return "\n".join(shown(path))


def test_a_copy_is_in_the_language_and_says_what_is_still_english(desk):
    assert brought(desk, "zh_CN") == []
    _, own = desk
    assert f"# {TITLE}\n\n{MARK}See [the glossary](GLOSSARY.md), or the" in text_of(own)
    assert f"### {TURN}\n\n{ASKED}" in text_of(own)
    assert "[contents](/contents)" in text_of(own)
    assert progress.known(own).turns == progress.known(desk[0]).turns


def test_what_keeps_an_answer_out_of_view_is_in_the_language(desk, tmp_path):
    waits = "先猜一猜。"
    write_some(tmp_path / "translations", "zh_CN", "contents", {("sentence", spacers.WORDS): waits})
    _, own = desk
    for spoken, words in (("zh_CN", waits), ("en", spacers.WORDS), ("zh_CN", waits)):
        brought(desk, spoken)
        spaced = [cell for cell in read(own)["cells"] if spacers.has_spacer(cell)]
        assert [spacers.words_of(cell) for cell in spaced] == [words]
    assert not any(map(spacers.has_spacer, spacers.without_spacers(read(own))["cells"]))
    copies.show_results(desk[0], own.parent)
    assert waits not in own.read_text(encoding="utf-8")


def test_an_answer_stays_when_the_language_changes_and_changes_back(desk):
    _, own = desk
    brought(desk, "en")
    as_in_english = shown(own)
    edit(own, "alone_s = ...", ANSWER)
    brought(desk, "zh_CN")
    assert ANSWER in shown(own)
    assert TURN in text_of(own)
    edit(own, "really = ...", "really = 'tf32'")
    brought(desk, "en")
    answered = {"alone_s = ...": ANSWER, "really = ...": "really = 'tf32'"}
    assert shown(own) == [answered.get(text, text) for text in as_in_english]


def test_an_edit_of_the_english_reaches_a_chinese_copy_and_is_shown_in_english(desk):
    course, own = desk
    brought(desk, "zh_CN")
    edit(own, "alone_s = ...", ANSWER)
    edit(
        course,
        "### Your turn 1 · The square_alone\n\n*easy, 3",
        "### Your turn 1 · The square_alone\n\n*easy, 4",
    )
    (said,) = brought(desk, "zh_CN")
    assert "what you wrote is in it" in said
    assert f"### {TURN}\n\n{MARK}*easy, 4 minutes.* How many?</span>" in text_of(own)
    assert ANSWER in shown(own)


def test_what_a_reader_wrote_into_a_translated_text_stays(desk):
    course, own = desk
    brought(desk, "zh_CN")
    edit(own, f"{TURN}\n\n{ASKED}", f"{TURN}\n\n{ASKED}\n\n我的笔记")
    edit(course, "· The square_alone", "· The square")
    brought(desk, "zh_CN")
    assert f"### {MARK}Your turn 1 · The square</span>\n\n{ASKED}\n\n我的笔记" in text_of(own)
    assert "The course has changed this cell" not in text_of(own)


def test_a_turn_of_a_chinese_copy_begins_anew(desk):
    course, own = desk
    brought(desk, "zh_CN")
    edit(own, "alone_s = ...", ANSWER)
    assert "Your turn 1" in copies.begin_anew(course, 1, own.parent)
    assert ANSWER not in shown(own)
    assert TURN in text_of(own)


def test_without_a_translation_a_copy_is_the_english_one(desk):
    course, own = desk
    brought(desk, "en")
    english = own.read_bytes()
    (catalogue.FOLDER / "zh_CN" / f"{own.stem}.po").unlink()
    own.unlink()
    brought(desk, "zh_CN")
    assert own.read_bytes() == english
    assert (own.parent / ".course" / FLOPS).read_bytes() == course.read_bytes().replace(
        copies.TO_README, b"(/contents)"
    )


# What surrounds a notebook.


def test_a_room_is_asked_in_its_language_with_the_units_of_the_english(translated, tmp_path):
    path = tmp_path / TENSORS.name
    path.write_bytes(TENSORS.read_bytes())
    server.prepare(path, cuts.plan(TENSORS, "25"), shows_results=False, spoken=QUOTED)
    copy = read(path)
    parts = asking.parts_of(copy)
    in_english_parts = outline(in_english(copy)).parts
    assert not any(MARK in source(cell) for cell in copy["cells"])
    asked = [value for part in parts for value in part.asked if part.is_guess]
    assert asked
    for part, english in zip(parts, in_english_parts, strict=True):
        for value, before in zip(part.asked, english.asked, strict=True):
            for one, other in zip(value.questions, before.questions, strict=True):
                assert "«" in one.words
                assert replace(one, words=other.words) == other


def test_a_deck_is_translated_and_finds_its_notes_by_the_english(translated):
    (english,) = deck_of_cut(TENSORS, "25").values()
    (html,) = deck_of_cut(TENSORS, "25", QUOTED).values()
    before = BeautifulSoup(english, "html.parser")
    page = BeautifulSoup(html, "html.parser")
    titles = [heading.get_text() for heading in before.select(HEADINGS)]
    assert titles
    assert [heading["data-english"] for heading in page.select(HEADINGS)] == titles
    assert len(page(class_="cell")) == len(before(class_="cell"))
    assert page.html["lang"] == QUOTED
    assert page(lang="en") == []
    asked = [guess.get_text() for guess in page.select(".guess")]
    assert asked[0].startswith("«Your guess")
    assert all(guess["data-english"] for guess in page.select(".guess"))


def test_the_presenters_notes_are_translated_and_know_their_names_by_the_english():
    path = NOTEBOOKS[5]
    (html,) = deck_of_cut(path, "25", "zh_CN").values()
    (english,) = deck_of_cut(path, "25").values()
    notes, before = (
        BeautifulSoup(text.replace("template", "div"), "html.parser").select_one("#notes")
        for text in (html, english)
    )
    assert notes.h2.get_text() == "6 · 优化器"
    names = {name["data-english"].lower() for name in notes("strong")}
    there_are = {name.get_text().lower() for name in before("strong")}
    # Of a turn's whole name, the English notes have the words before its title in bold once more.
    assert {"minutes:", "moves, timeline lab:", "the bill", "your turn 3"} <= names
    assert names <= there_are
    assert not any(name.has_attr("data-english") for name in before("strong"))


def test_what_a_deck_has_no_translation_for_is_marked(chinese):
    (html,) = deck_of_cut(TENSORS, "25", "zh_CN").values()
    assert "&lt;span" not in html
    marked = BeautifulSoup(html, "html.parser").find_all("span", lang="en")
    assert any("view" in span.get_text() for span in marked)


def test_a_page_leads_to_pages_in_its_language_and_to_itself_in_english(translated):
    page = BeautifulSoup(render.notebook_page(TENSORS, {}, QUOTED), "html.parser")
    links = [link["href"] for link in page("a")]
    assert page.html["lang"] == QUOTED
    assert f"01_floats.{QUOTED}.html" in links
    assert any(link.startswith(f"glossary.{QUOTED}.html#") for link in links)
    buttons = [button.get_text() for button in page(["summary", "button"])]
    assert "«Sections»" in buttons
    assert page(lang="en", href=False) == []
    (to_english,) = page("a", hreflang="en")
    assert to_english["href"] == "02_tensors.html"
    heads = {heading["id"] for heading in page(["h1", "h2", "h3"])}
    in_page = [link.removeprefix("#") for link in links if link.startswith("#")]
    assert set(in_page) <= heads
    assert any("«" in link for link in in_page)


def test_the_front_page_says_all_that_it_says_in_its_language(translated):
    page = BeautifulSoup(render.contents_page(QUOTED), "html.parser")
    assert page.html["lang"] == QUOTED
    assert page.main(lang="en") == []
    assert page.find("a", hreflang="en")["href"] == "index.html"
    for card in page.select(".card"):
        assert card.h2.get_text().split(" · ")[1].startswith("«")
        assert card.select_one(".question").get_text().startswith("«")
    turns = render.notebook_page(NOTEBOOKS[0], {}, QUOTED)
    (first,) = [a["href"] for a in page.select(".brick a") if "01_floats" in a["href"]][:1]
    name, _, anchor = first.partition("#")
    assert name == f"01_floats.{QUOTED}.html"
    assert f'id="{anchor}"' in turns


def test_english_pages_lead_to_another_language_only_if_there_is_any(translated, monkeypatch):
    assert languages.there_are() == ["en", QUOTED]
    assert f'href="glossary.{QUOTED}.html"' in render.glossary_page()
    monkeypatch.setattr(catalogue, "FOLDER", Path("/nonexistent"))
    assert "hreflang" not in render.glossary_page()


def test_the_contents_page_is_in_the_language(translated):
    other_languages = [("English", "en")]
    template = contents._page_in(QUOTED)
    html = template.render(place=place(), notebooks=[], languages=other_languages)
    page = BeautifulSoup(html, "html.parser")
    assert page.html["lang"] == QUOTED
    assert page(lang="en") == []
    assert "English: make lab LANG=en" in page.get_text()
    assert page.h1.get_text() == quoted("Where the memory and the compute go")


class ContentsPage(contents.Contents):
    """The contents page without a server."""

    base_url = "/"

    def __init__(self, **given):
        self.initialize(**given)

    def xsrf_form_html(self):
        return ""


def test_the_server_of_a_chinese_system_says_so_and_serves_a_chinese_contents_page(
    desk, tmp_path, monkeypatch
):
    monkeypatch.delenv("COURSE_LANG")
    monkeypatch.setenv("LC_ALL", "zh_CN.UTF-8")
    heading = {("workspace/contents.html", "Turn by turn"): "逐个练习"}
    stem = Path(FLOPS).stem
    some = {("title", "FLOPs"): "浮点运算", **CHINESE_TURN}
    write_some(tmp_path / "translations", "zh_CN", stem, some)
    write_some(tmp_path / "translations", "zh_CN", "contents", heading)
    contents._page_in.cache_clear()
    server_of_copies = started(tmp_path)
    (given,) = [given for _, page, given in server_of_copies.pages if page is contents.Contents]
    page = BeautifulSoup(ContentsPage(**given)._page(""), "html.parser")
    contents._page_in.cache_clear()
    assert ["make lab LANG=en" in said for said in server_of_copies.said] == [True]
    assert page.html["lang"] == "zh-CN"
    assert page.select_one(".card h2").get_text() == "1 · 浮点运算"
    assert "逐个练习" in [heading.get_text() for heading in page("h2")]
    assert "1 · 平方" in page.select_one(".exercises li").get_text()
    assert page.h1["lang"] == "en"
    assert TURN in text_of(desk[1])


def test_the_words_of_the_contents_pages_are_whole_sentences(translated):
    for path in NOTEBOOKS:
        known = about(read(path), path.name)
        edition = Edition(QUOTED, path.stem)
        english = Edition("en", path.stem)
        assert sentences.minutes_and_needs("en", known, english) == known.minutes_and_needs
        said = sentences.minutes_and_needs(QUOTED, known, edition)
        assert said.count("«") == said.count("»") >= 2
        assert str(known.minutes) in said


def test_what_a_class_gets_in_another_language_has_no_solution(translated, tmp_path, monkeypatch):
    monkeypatch.setenv("COURSE_LANG", QUOTED)
    folder = tmp_path / "assignment"
    assignment.write_notebook(TENSORS, folder)
    handed_out = text_of(folder / TENSORS.name)
    assert "«Your turn 1" in handed_out
    assert "«" in (folder / "GLOSSARY.md").read_text(encoding="utf-8")
    for turn in outline(read(TENSORS)).turns:
        assert turn.solution
        assert turn.solution not in handed_out
