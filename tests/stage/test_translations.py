"""What there is to translate, what of it is translated, and what is wrong with an entry."""

import json
import re
from dataclasses import replace
from html import unescape
from pathlib import Path

import mistune
import polib
import pytest
from hypothesis import given
from hypothesis import strategies as st

from course_utils.stage.notebook import prose
from course_utils.stage.notebook.files import read, source
from course_utils.stage.translations import catalogue, language, pages
from course_utils.stage.translations.__main__ import COUNTS, counted, main, wrong_with
from course_utils.stage.translations.edition import Edition
from course_utils.stage.translations.entry import faults
from course_utils.stage.translations.sources import PAGES, of_notebook, sources
from course_utils.stage.translations.units import pieces, units
from tests import NOTEBOOKS, ROOT
from tests.helpers.translations import write_some

HERE = catalogue.FOLDER
WORD = re.compile(r"[A-Za-z]{2,}")
ENGLISH_MARK = '<span lang="en">'


# What is taken out of a text to be translated.


def texts() -> dict[str, str]:
    found = {}
    for path in NOTEBOOKS:
        for cell in read(path)["cells"]:
            if cell["cell_type"] == "markdown":
                found[f"{path.stem} {cell['id']}"] = source(cell)
    for page in PAGES:
        found[page] = (ROOT / page).read_text(encoding="utf-8")
    return found


def test_the_pieces_of_every_text_are_the_text():
    for place, text in texts().items():
        assert "".join(piece.text for piece in pieces(text)) == text, place


def test_every_word_that_a_page_shows_is_in_a_unit():
    """What a page shows is found by rendering it, which knows nothing of units."""
    for place, text in texts().items():
        without_formulas = re.sub(r"\$\$.*?\$\$", "", text, flags=re.DOTALL)
        alone = [piece.text for piece in pieces(text) if not piece.is_unit]
        names = set(WORD.findall("\n".join(line for line in alone if "\n" not in line)))
        assert words_of(without_formulas) - words_of("\n\n".join(units(text))) <= names, place


def words_of(text: str) -> set[str]:
    """The words that a text in Markdown shows, but for its blocks of code."""
    html = re.sub(r"<pre>.*?</pre>", "", mistune.html(text), flags=re.DOTALL)
    return set(WORD.findall(unescape(re.sub(r"<[^>]*>", " ", html))))


def test_no_solution_is_in_a_catalogue():
    solutions = []
    for path in NOTEBOOKS:
        cells = read(path)["cells"]
        here = [prose.solution_in(source(cell)) for cell in cells if source(cell)]
        everything = "\n".join(unit.english for unit in of_notebook(read(path)))
        solutions += [solution for solution in here if solution]
        assert not any(solution in everything for solution in here if solution)
    assert len(solutions) > 50


# The catalogues as they are.


def test_the_counts_are_those_of_the_notebooks_as_they_are():
    """If this fails, `make translations` brings the catalogues up to date."""
    stored = json.loads((HERE / COUNTS).read_text(encoding="utf-8"))
    assert counted() == stored


@pytest.mark.parametrize("spoken", catalogue.languages())
def test_no_entry_changes_code_formulas_links_numbers_or_marks(spoken):
    wrong = []
    for name, now in sources().items():
        entries = catalogue.entries(catalogue.path_of(spoken, name))
        for row in catalogue.compared(now, entries).rows:
            wrong += [(name, row.unit.english, fault) for fault in wrong_with(row, spoken)]
    assert wrong == []


@pytest.mark.parametrize("spoken", catalogue.languages())
def test_the_translated_pages_are_those_of_the_catalogues(spoken):
    for path, text in pages.pages(spoken).items():
        assert path.read_text(encoding="utf-8") == text, "make translations writes it"


# What is wrong with an entry.

BUDGET = (
    "Each bit can be spent on how large and how small numbers may get, or on how close they are, "
    "but not on both. That is why a format has a budget."
)
RIGHT = [
    ("It takes 1,024 H100s and 15 trillion tokens.", "用 1024 块 H100 和 15 万亿个 token。"),
    ("a model of 70 billion parameters", "一个有 700 亿参数的模型"),
    ("reported in October 2024", "2024 年 10 月公布"),
    ("50 to 60 billion", "500 亿到 600 亿"),
    ("50 to 60 billion", "500 到 600 亿"),
    ("three quarters of eight GPUs", "8 块 GPU 的 3/4"),
    ("6 is 2 forward and 4 backward", "六是前向的二加上反向的四"),
    ("half a million steps", "50 万步"),
    ("32 bits", "三十二位"),
    ("[a view](GLOSSARY.md#view) of `x`", "`x` 的[视图](GLOSSARY.md#view)"),
    ("so **[fp16](G.md)** has fewer", "所以 **[fp16](G.md)** 的更少"),
    ("**a format** is", "**格式**是"),
    ("AdamW", "AdamW"),
    ("{minutes} minutes.", "{minutes} 分钟。"),
    ("below 2^-9, from -1 on", "低于 2^-9，从 −1 开始"),
    (
        BUDGET,
        "每一位可以用来决定数能有多大、多小，也可以用来决定数之间有多近，但不能两者兼得。所以每种格式都有预算。",
    ),
    ("GPT-3 has 3-5 of them", "GPT-3 有 3-5 个"),
]
WRONG = [
    ("It stops at 256.", "它停在 265。", "265 is not in the English"),
    ("It stops at 256.", "它停下来。", "256 is missing"),
    ("70 billion parameters", "70 亿参数", "70,000,000,000 is missing"),
    ("15 trillion tokens", "15 亿个 token", "15,000,000,000,000 is missing"),
    ("It begins at -1.", "它从 1 开始。", "-1 is missing"),
    ("It has 6 bytes.", "它有八个字节。", "6 is missing"),
    ("Call `view`.", "调用 `reshape`。", "`view` is missing"),
    ("Call `view`.", "调用 view。", "`view` is missing"),
    ("see [here](a.md#b)", "见[这里](a.md#c)", "link a.md#b is missing"),
    ("$$-x$$ falls", "$$x$$ 下降", "formula $$-x$$ is missing"),
    ('<a id="gb"></a>a unit', "一个单位", "tag"),
    ("{minutes} minutes.", "{minute} 分钟。", "placeholder {minutes} is missing"),
    ("| a | b |", "| 甲 |", "columns"),
    ("one line", "一\n行", "lines"),
    ("a format, half precision", "格式**（半精度）**是", "stars"),
    ("**fp16 (half)** is", "**fp16（半精度）**是", "stars"),
    ("**a** b", "**甲 乙", "partner"),
    ("this is not translated", "this is not translated", "not in Chinese"),
    (
        BUDGET,
        "所以每种格式都有预算。",
        "is a sentence left out?",
    ),
    ("no heading", "# 标题", "begins with #"),
]


@pytest.mark.parametrize(("english", "chinese"), RIGHT)
def test_a_faithful_entry_passes(english, chinese):
    assert faults(english, chinese, "zh_CN") == []


@pytest.mark.parametrize(("english", "chinese", "what"), WRONG)
def test_an_entry_that_says_something_else_is_found(english, chinese, what):
    assert what in " ".join(faults(english, chinese, "zh_CN"))


def test_other_languages_write_their_thousands_as_they_like():
    assert faults("1,024 GPUs and 2.42 GB", "1.024 GPUs und 2,42 GB", "de") == []
    assert faults("1,024 GPUs", "1.042 GPUs", "de") != []


# An edit of the English makes its entry stale.

SUM = ("c1", "The sum stops at 256.")
ASK = ("c1", "Where does it stop, and why?")
TITLE = ("c2", "Takeaways")
GERMAN = {SUM: "Die Summe bleibt bei 256 stehen.", ASK: "Wo, und warum?", TITLE: "Das Wichtigste"}


@pytest.fixture
def german(tmp_path, monkeypatch):
    """A second language with three entries, and a notebook whose English they have."""
    monkeypatch.setattr(catalogue, "FOLDER", tmp_path)
    write_some(tmp_path, "de", "09_short", GERMAN)
    return tmp_path / "de" / "09_short.po"


def short(first: str = f"{SUM[1]}\n\n{ASK[1]}", second: str = f"## {TITLE[1]}") -> dict:
    cells = []
    for name, text in (("c1", first), ("c2", second)):
        cells.append({"cell_type": "markdown", "id": name, "metadata": {}, "source": text})
    return {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}


def shown(notebook: dict) -> list[str]:
    return [source(cell) for cell in Edition("de", "09_short").notebook(notebook)["cells"]]


def states(notebook: dict, path: Path) -> list[tuple[str, str]]:
    compared = catalogue.compared(of_notebook(notebook), catalogue.entries(path))
    return [(row.state, row.before) for row in compared.rows]


def test_three_entries_are_a_language(german):
    assert catalogue.languages() == ["de"]
    assert shown(short()) == [
        "Die Summe bleibt bei 256 stehen.\n\nWo, und warum?",
        "## Das Wichtigste",
    ]
    assert language.chosen({"LANG": "de_AT.UTF-8"}) == "de"


def test_a_changed_paragraph_is_stale_at_once_and_shown_in_english(german):
    changed = short(first=f"The sum stops at 257.\n\n{ASK[1]}")
    assert shown(changed)[0] == f"{ENGLISH_MARK}The sum stops at 257.</span>\n\nWo, und warum?"
    assert states(changed, german) == [("stale", SUM[1]), ("translated", ""), ("translated", "")]


def test_a_stale_entry_keeps_the_older_english_until_somebody_has_looked(german):
    for now in ("The sum stops at 257.", "The sum stops at 258, always."):
        notebook = short(first=f"{now}\n\n{ASK[1]}")
        compared = catalogue.compared(of_notebook(notebook), catalogue.entries(german))
        catalogue.write(german, "de", compared.rows)
        assert states(notebook, german)[0] == ("stale", SUM[1])
    (entry,) = [entry for entry in polib.pofile(str(german)) if entry.fuzzy]
    assert (entry.msgid, entry.previous_msgid) == ("The sum stops at 258, always.", SUM[1])
    assert entry.msgstr == GERMAN[SUM]
    file = polib.pofile(str(german), wrapwidth=0)
    for entry in file:
        entry.flags = []
        entry.previous_msgid = None
    file.save()
    assert [state for state, _ in states(notebook, german)] == ["translated"] * 3


@given(st.data())
def test_whatever_paragraph_is_edited_it_alone_is_stale(data):
    """A word is put at any place of any paragraph of a notebook in which all is translated."""
    now = of_notebook(read(NOTEBOOKS[1]))
    entries = []
    for unit in now:
        english = unit.english
        entries.append(polib.POEntry(msgctxt=unit.context, msgid=english, msgstr=f"«{english}»"))
    long_enough = [at for at, unit in enumerate(now) if len(unit.english) > 20]
    at = data.draw(st.sampled_from(long_enough))
    before = now[at].english
    place = data.draw(st.integers(0, len(before)))
    now[at] = replace(now[at], english=f"{before[:place]} not {before[place:]}")
    compared = catalogue.compared(now, entries)
    stale = [row for row in compared.rows if row.state != "translated"]
    assert [(row.state, row.unit, row.before) for row in stale] == [("stale", now[at], before)]
    assert stale[0].translation == f"«{before}»"
    assert compared.orphans == []


def test_what_a_header_says_is_not_believed(german):
    text = german.read_text(encoding="utf-8")
    german.write_text(text.replace("Language: de", "X-Source: newest\\nLanguage: fr"), "utf-8")
    assert [state for state, _ in states(short(first="All is new here."), german)] == [
        "missing",
        "translated",
    ]


def test_a_paragraph_that_moves_to_another_cell_keeps_its_translation(german):
    moved = short(first=ASK[1], second=f"## {TITLE[1]}\n\n{SUM[1]}")
    assert shown(moved) == ["Wo, und warum?", f"## Das Wichtigste\n\n{GERMAN[SUM]}"]
    assert [state for state, _ in states(moved, german)] == ["translated"] * 3


def test_an_entry_without_any_english_is_an_orphan(german):
    entries = catalogue.entries(german)
    compared = catalogue.compared(of_notebook(short(second="")), entries)
    assert compared.counts == {"translated": 2, "stale": 0, "missing": 0, "orphaned": 1}
    assert [entry.msgid for entry in compared.orphans] == [TITLE[1]]


def test_a_source_without_any_translation_is_the_english_one():
    notebook = short()
    assert Edition("de", "10_none").notebook(notebook) is notebook
    assert Edition("en", "01_floats").text("c1", "As it is.") == "As it is."


def test_a_language_begins_with_a_command(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(catalogue, "FOLDER", tmp_path)
    assert main(["eo"]) == 0
    assert {path.stem for path in (tmp_path / "eo").iterdir()} == set(sources())
    assert "eo/02_tensors.po: 0 translated" in capsys.readouterr().out
    assert main(["klingon"]) == 2
    assert "klingon is no code" in capsys.readouterr().out


def test_a_line_that_leads_to_another_language_is_no_unit_and_not_on_that_languages_page():
    assert list(units("# Title\n\n[中文](README.zh.md)\n\nText.")) == ["Title", "Text."]
    chinese = (ROOT / "README.zh.md").read_text(encoding="utf-8")
    assert chinese.startswith("[English](README.md)\n\n# ")
    assert "(README.zh.md)" not in chinese
    assert "[中文](README.zh.md)\n" in (ROOT / "README.md").read_text(encoding="utf-8")
