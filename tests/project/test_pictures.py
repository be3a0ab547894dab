"""The pictures of the README and of the cards are those that the labs draw now."""

import re
from dataclasses import replace

import pytest
from PIL import Image

from course_utils.engine.labs.draw import still
from course_utils.stage.front.cards import FOLDER
from course_utils.stage.notebook.files import read
from course_utils.stage.notebook.outline import outline
from tests import NOTEBOOKS, ROOT
from tests.tools import light_pictures, pictures

README = (ROOT / "README.md").read_text(encoding="utf-8")
OTHER_ANSWERS = {"timeline": {"moment": 90}, "float": {"number": "0.5"}}

# Of labs that ask for a guess about one thing at a time, the field that says about which.
TOLD_APART_BY = {"walk": "shape"}

every_picture = pytest.mark.parametrize("name", pictures.PICTURES)


@every_picture
def test_a_picture_shows_what_its_lab_shows_now(name):
    assert not pictures.is_stale(name), "make pictures draws it anew"


def test_each_picture_that_is_shown_is_drawn_by_the_command_and_the_other_way_round():
    drawn = set(pictures.PICTURES)
    shown = re.findall(r"\(notebooks/pictures/(\S+)\)", README)
    assert set(shown) == drawn
    assert {path.name for path in pictures.FOLDER.iterdir()} == drawn


@every_picture
def test_a_picture_that_would_be_drawn_otherwise_is_stale_and_is_drawn_anew(
    name, tmp_path, monkeypatch
):
    picture = pictures.PICTURES[name]
    monkeypatch.setattr(pictures, "PICTURES", {name: picture})
    pictures.draw(tmp_path)
    assert not pictures.is_stale(name, tmp_path)
    before = (tmp_path / name).read_bytes()
    pictures.draw(tmp_path)
    assert (tmp_path / name).read_bytes() == before
    with monkeypatch.context() as other:
        in_red = still.STILL_CSS.replace("font", "color: red; font", 1)
        other.setattr(still, "STILL_CSS", in_red)
        assert pictures.is_stale(name, tmp_path)
    changed = replace(picture, answers=picture.answers | OTHER_ANSWERS[picture.lab])
    monkeypatch.setattr(pictures, "PICTURES", {name: changed})
    assert pictures.is_stale(name, tmp_path)
    pictures.draw(tmp_path)
    assert not pictures.is_stale(name, tmp_path)
    assert (tmp_path / name).read_bytes() != before


@every_picture
def test_a_picture_says_its_words_and_is_wide_enough_for_a_large_screen(name):
    with Image.open(pictures.FOLDER / name) as image:
        assert image.width >= 1400
        assert len(image.text["Description"]) > 30
    assert (pictures.FOLDER / name).stat().st_size < 80_000


def test_each_notebook_has_a_card_with_what_one_of_its_labs_shows_now():
    now = light_pictures.drawn()
    assert {path.name for path in FOLDER.iterdir()} == now.keys()
    for name, text in now.items():
        stored = (FOLDER / name).read_text(encoding="utf-8")
        assert stored == text, f"{name}: make pictures draws it anew"
    chapters = {path.stem[3:] for path in NOTEBOOKS}
    assert light_pictures.CARDS.keys() == chapters


def test_no_card_gives_away_what_its_notebook_asks_to_guess():
    for path in NOTEBOOKS:
        card = light_pictures.CARDS[path.stem[3:]]
        values = card.session().values
        for part in outline(read(path)).parts:
            figure = part.figure
            if figure and figure.asks and figure.lab == card.lab:
                by = TOLD_APART_BY.get(figure.lab)
                is_another_question = by is not None and values[by] != figure.answers[by]
                assert is_another_question or not values["shown"], f"{path.stem}: {part.text}"


def test_a_card_has_no_words_and_nothing_that_could_be_moved(tmp_path):
    light_pictures.draw(tmp_path)
    for chapter in light_pictures.CARDS:
        text = (tmp_path / f"{chapter}.svg").read_text(encoding="utf-8")
        assert len(re.findall(r"<(?:rect|polyline|polygon|circle)\b", text)) > 10, chapter
        assert not re.search(r"<text|<title|data-|role=|tabindex|aria-|url\(|\bid=", text), chapter
        assert len(text) < 40_000, "it is in each page"
