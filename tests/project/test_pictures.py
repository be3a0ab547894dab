"""The pictures of the README and of the pages are those that the labs draw now."""

import re
from dataclasses import replace

import pytest
from PIL import Image

from course_utils.engine.labs.draw import still
from tests import ROOT
from tests.tools import pictures

README = (ROOT / "README.md").read_text(encoding="utf-8")
every_picture = pytest.mark.parametrize("name", pictures.PICTURES)


@every_picture
def test_a_picture_shows_what_its_lab_shows_now(name):
    assert not pictures.is_stale(name), "make pictures draws it anew"


def test_each_picture_that_is_shown_is_drawn_by_the_command_and_the_other_way_round():
    there_are = {path.name for path in pictures.FOLDER.iterdir()}
    assert (
        {*pictures.PICTURES} == there_are == {*re.findall(r"\(notebooks/pictures/(\S+)\)", README)}
    )


@every_picture
def test_a_picture_that_would_be_drawn_otherwise_is_stale_and_is_drawn_anew(
    name, tmp_path, monkeypatch
):
    monkeypatch.setattr(pictures, "PICTURES", {name: pictures.PICTURES[name]})
    pictures.draw(tmp_path)
    assert not pictures.is_stale(name, tmp_path)
    before = (tmp_path / name).read_bytes()
    pictures.draw(tmp_path)
    assert (tmp_path / name).read_bytes() == before
    with monkeypatch.context() as other:
        other.setattr(still, "STILL_CSS", still.STILL_CSS.replace("font", "color: red; font", 1))
        assert pictures.is_stale(name, tmp_path)
    moved = {"timeline": {"moment": 90}, "float": {"number": "0.5"}}[pictures.PICTURES[name].lab]
    changed = replace(pictures.PICTURES[name], answers=pictures.PICTURES[name].answers | moved)
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
