"""Ten questions over the whole course, on paper; and the deck for Anki."""

import re
import sqlite3
import zipfile

import pytest
from bs4 import BeautifulSoup

from course_utils.stage.recall import cards
from course_utils.stage.recall import napkin as napkins
from course_utils.stage.recall.bank import QUESTIONS
from course_utils.stage.recall.napkin import napkin, to_keep

SEEDS = range(1, 31)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_napkin_has_ten_different_questions_over_all_eight_notebooks(seed):
    drawn = napkin(seed)
    assert len({one.question.name for one in drawn}) == 10
    assert len({one.question.chapter for one in drawn}) == 8
    numbers = [napkins.number_of(one.question.chapter) for one in drawn]
    assert numbers == sorted(numbers)


def test_thirty_napkins_are_thirty_different_ones_and_ask_nearly_everything():
    drawn = [tuple((one.question.name, one.asked.text) for one in napkin(seed)) for seed in SEEDS]
    assert len(set(drawn)) == 30
    assert len({name for one in drawn for name, _ in one}) >= len(QUESTIONS) - 3


def test_the_file_has_the_questions_first_and_the_answers_behind_them_on_other_sheets(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    assert napkins.main("30") == 0
    assert "napkin.html: 30 with ten questions each" in capsys.readouterr().out
    html = (tmp_path / napkins.FILE).read_text(encoding="utf-8")
    sheets = re.findall(r"<section>(.*?)</section>", html, re.DOTALL)
    headings = [re.search("<h2>(.*)</h2>", sheet)[1] for sheet in sheets]
    assert headings == [
        f"Napkin {seed}: {what}" for what in ("questions", "answers") for seed in SEEDS
    ]
    assert [sheet.count("<li>") for sheet in sheets] == [10] * 60
    seventh = napkin(7)[0].asked
    assert seventh.derivation not in sheets[6]
    assert seventh.derivation in sheets[36]
    assert "break-after: page" in html
    assert "http" not in html  # it needs no network


def test_in_chinese_its_frame_is_chinese_and_its_questions_are_marked_as_english():
    html = napkins.page([7], "zh_CN")
    page = BeautifulSoup(html, "html.parser")
    assert page.html["lang"] == "zh-CN"
    headings = [heading.get_text() for heading in page(["h1", "h2"])]
    assert headings == ["餐巾纸", "餐巾纸 7：问题", "餐巾纸 7：答案"]
    asked = napkin(7)[0].asked
    said = [span.get_text() for span in page(lang="en")]
    assert {asked.text, asked.answer_text, asked.derivation} <= set(said)
    for span in page(lang="en"):
        span.decompose()
    assert not re.search(r"[A-Za-z]{2}", page.main.get_text())


def test_a_language_that_is_not_there_gets_a_sentence(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COURSE_LANG", "xx")
    assert napkins.main("1") == 2
    assert "The course does not exist in xx." in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("count", ["0", "501", "ten", "-1", "1.5"])
def test_a_wrong_number_of_seeds_gets_a_sentence(count, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert napkins.main(count) == 2
    assert "SEEDS is how many napkins to draw, from 1 to 500." in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_without_seeds_there_is_one_napkin(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert napkins.main("") == 0
    assert (tmp_path / napkins.FILE).read_text(encoding="utf-8").count("<section>") == 2


@pytest.mark.parametrize(("module", "what"), [(napkins, ["3"]), (cards, [])])
def test_a_folder_that_cannot_be_written_gets_a_sentence(
    module, what, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    module.FILE.parent.write_text("a file is in the way")
    assert module.main(*what) == 1
    assert capsys.readouterr().err.startswith("Nothing was written: ")


def test_the_line_to_keep_names_the_notebooks_to_read_again_each_once():
    assert to_keep(7, napkin(7)) == "Napkin 7: 10 of 10 right."
    assert to_keep(7, []).endswith("To read again: notebooks 1, 2, 3, 4, 5, 6, 7 and 8.")


def test_the_deck_has_each_question_four_times_with_its_answer(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert cards.main() == 0
    with zipfile.ZipFile(cards.FILE) as package:
        package.extract("collection.anki2")
    with sqlite3.connect("collection.anki2") as collection:
        notes = collection.execute("select guid, flds, tags from notes").fetchall()
        (count,) = collection.execute("select count(*) from cards").fetchone()
    assert len(notes) == count == 4 * len(QUESTIONS)
    assert len({guid for guid, _, _ in notes}) == count
    fronts = {flds.split("\x1f")[0] for _, flds, _ in notes}
    assert len(fronts) == count, "each with other sizes"
    stops = QUESTIONS["floats.stops"].draw(0).asked
    fields = f"{stops.text}\x1f<b>{stops.answer_text}</b><br>{stops.derivation}"
    assert (fields, " notebook-1 ") in [(flds, tags) for _, flds, tags in notes]
