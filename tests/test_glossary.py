"""Each word is explained once, and each notebook links it where it first uses it."""

import re

import pytest

from tests import NOTEBOOKS
from tests.notebooks import read
from tests.tools import glossary

TARGETS = re.compile(r"\]\(GLOSSARY\.md(?:#([\w-]+))?\)")
every_notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


def prose(path) -> list[str]:
    return [cell.source for cell in read(path).cells if cell.cell_type == "markdown"]


def test_the_words_stand_in_alphabetical_order_each_once_and_each_says_its_notebook():
    found = glossary.entries()
    text = glossary.GLOSSARY.read_text(encoding="utf-8")
    assert len(found) == len(re.findall("^## ", text, re.MULTILINE)) > 60
    names = [entry.names[0].lower() for entry in found]
    assert names == sorted(names)
    called = [name for entry in found for name in entry.names]
    assert len(called) == len(set(called))
    for entry in found:
        named = re.search(r"Notebooks? .*\[(\d)\]\(0\1_\w+\.ipynb\)\.\*$", entry.text)
        assert named, entry.anchor
        assert 2 < len(entry.text.split()) < 60, entry.anchor


def test_an_anchor_leads_to_its_word_on_code_hosting_pages_and_in_jupyterlab():
    # Both make anchors of headings: the one in small letters, the other with hyphens for blanks and no more.
    # Where these differ, the anchor is written out.
    text = glossary.GLOSSARY.read_text(encoding="utf-8")
    for line in re.findall("^## (.+)$", text, re.MULTILINE):
        written = re.fullmatch(r'<a id="([a-z0-9-]+)"></a>(.+)', line)
        hosted = re.sub(r"[^\w\- ]", "", line.lower()).replace(" ", "-")
        assert bool(written) != (hosted == line.replace(" ", "-")), line


@every_notebook
def test_the_first_use_of_each_word_is_its_link_and_no_other(path):
    cells = prose(path)
    wrong = [(now, then) for now, then in zip(cells, glossary.linked(cells), strict=True) if now != then]
    assert wrong == [], "make glossary sets the links anew"
    targets = [target for cell in cells for target in TARGETS.findall(cell)]
    assert len(targets) == len(set(targets))
    assert set(targets) <= {entry.anchor for entry in glossary.entries()}


def test_every_word_is_used_by_the_notebook_that_explains_it():
    targets = {path.name: {t for cell in prose(path) for t in TARGETS.findall(cell)} for path in NOTEBOOKS}
    for entry in glossary.entries():
        for name in re.findall(r"\]\((\w+\.ipynb)\)", entry.text):
            assert entry.anchor in targets[name], (entry.anchor, name)


def test_links_stand_in_running_text_alone_and_at_the_longest_word():
    text = (
        "## Bytes and `bytes`\n\n*a byte* [byte](x.md) $byte$ Activation checkpointing of bytes, byte by byte"
    )
    once = glossary.linked([text, "Byte"])
    assert once == [
        text.replace(
            "Activation checkpointing of bytes",
            "[Activation checkpointing](GLOSSARY.md#activation-checkpointing) of [bytes](GLOSSARY.md#byte)",
        ),
        "Byte",
    ]
    assert glossary.linked(once) == once
