"""The glossary explains each word once, and links to it lead there.

tests/project/test_notebooks.py checks where the notebooks link to it.
"""

import re

from tests import NOTEBOOKS
from tests.helpers.notebooks import prose
from tests.tools import glossary

TEXT = glossary.GLOSSARY.read_text(encoding="utf-8")
ENTRIES = glossary.entries()


def test_the_words_stand_in_alphabetical_order_each_once_and_each_says_its_notebook():
    assert len(ENTRIES) == len(re.findall("^## ", TEXT, re.MULTILINE)) > 60
    names = [entry.names[0].lower() for entry in ENTRIES]
    assert names == sorted(names)
    called = [name for entry in ENTRIES for name in entry.names]
    assert len(called) == len(set(called))
    for entry in ENTRIES:
        assert re.search(r"Notebooks? .*\[(\d)\]\(0\1_\w+\.ipynb\)\.\*$", entry.text), entry.anchor
        assert 2 < len(entry.text.split()) < 60, entry.anchor


def test_an_anchor_leads_to_its_word_on_code_hosting_pages_and_in_jupyterlab():
    # Both make anchors of headings. JupyterLab only puts hyphens for blanks; the pages also make
    # letters small and drop punctuation. Where the two differ, the anchor is written out.
    for line in re.findall("^## (.+)$", TEXT, re.MULTILINE):
        is_written_out = bool(re.fullmatch(r'<a id="([a-z0-9-]+)"></a>(.+)', line))
        in_jupyterlab = line.replace(" ", "-")
        are_the_same = glossary.hosted_anchor(line) == in_jupyterlab
        assert is_written_out != are_the_same, line


def test_every_word_is_used_by_the_notebook_that_explains_it():
    linked = {}
    for path in NOTEBOOKS:
        links = glossary.LINK.findall("\n".join(prose(path)))
        linked[path.name] = {anchor for _, anchor in links}
    for entry in ENTRIES:
        for name in re.findall(r"\]\((\w+\.ipynb)\)", entry.text):
            assert entry.anchor in linked[name], (entry.anchor, name)


def test_links_stand_in_running_text_alone_and_at_the_longest_word():
    apart = "## Bytes and `bytes`\n\n*a byte* [byte](x.md) $byte$ "
    running = "Activation checkpointing of bytes, byte by byte"
    linked = (
        "[Activation checkpointing](GLOSSARY.md#activation-checkpointing) "
        "of [bytes](GLOSSARY.md#byte), byte by byte"
    )
    once = glossary.linked([apart + running, "Byte"])
    assert once == [apart + linked, "Byte"]
    assert glossary.linked(once) == once
