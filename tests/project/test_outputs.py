"""What the main paths store as outputs is written for people, and not as Python prints it."""

import re
from collections.abc import Iterator
from html import unescape

import pytest

from tests import NOTEBOOKS
from tests.helpers.notebooks import read

# What is meant to look as Python prints it, by cell: small tensors, whose numbers and brackets are
# the matter of notebooks 2 and 3. Elsewhere a table says it. A shape, such as (4, 6), is a word of
# the field.
TENSORS = {"431a36ae", "bb50047c", "c502a1002", "52b2e404", "c7d90b24e"}
CELL = re.compile(r"<t([dh])>(.*?)</t[dh]>", re.DOTALL)
ROW = re.compile(r"<tr>(.*?)</tr>", re.DOTALL)
FAULTS = {
    "a list, a dict or a tensor": re.compile(r"[\[{]|tensor\("),
    "a word of Python": re.compile(r"\b(?:True|False|None|nan)\b"),
    "five digits without a separator": re.compile(r"(?<![\w.,])\d{5,}(?![\w.])"),
    "a percent sign without a space": re.compile(r"\d%"),
    "a distance from 1 for a ratio": re.compile(r"\b1 [+-]\d"),
    "a large number with an exponent": re.compile(r"\de\+?\d"),
}
NUMBER = re.compile(r"(?<![\w.,])\d[\d,]*(?:\.\d+)?(?![\w.])")
LONG = 10**8  # in full only where a guess is compared, which a page judges by the table


def faults_in(text: str, *, is_reveal: bool = False) -> list[str]:
    """Return what in the text of a table's cell is not written for people."""
    found = [name for name, fault in FAULTS.items() if fault.search(text)]
    for number in NUMBER.findall(text):
        digits = number.replace(",", "").replace(".", "").lstrip("0")
        is_near_1 = number.startswith(("1.000", "0.999"))  # such as 1.000089, a ratio
        if "." in number and len(digits) > 6 and not is_near_1:
            found.append("more than six digits")
        if "." not in number and int(digits or 0) >= LONG and not is_reveal:
            found.append("a long number in full")
    return found


def main_path(path) -> Iterator[tuple[str, str, dict]]:
    """Yield the id, the source and the data of each output in front of *Beyond*."""
    for cell in read(path).cells:
        if cell.cell_type == "markdown" and cell.source.startswith("# Beyond"):
            return
        for output in cell.get("outputs", []):
            yield cell.id, cell.source, output.get("data", {"text/plain": output.get("text")})


def in_view(html: str) -> list[str]:
    """Return the cells of tables that stand open, without the names of rows and columns."""
    before_fold, _, _ = html.partition("<details>")
    texts = []
    for row in ROW.findall(before_fold):
        _, *others = CELL.findall(row)
        texts += [unescape(text) for tag, text in others if tag == "d"]
    return texts


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_outputs_of_the_main_path_are_written_for_people(path):
    found = {}
    for cell, source, data in main_path(path):
        is_reveal = "reveal(" in source or "guess=" in source
        for text in in_view(data.get("text/html", "")):
            for fault in faults_in(text, is_reveal=is_reveal):
                found[f"{cell}: {text}"] = fault
        is_picture = any(kind.startswith(("image/", "application/")) for kind in data)
        is_plain = "text/html" not in data and not is_picture
        if is_plain and cell not in TENSORS:
            found[f"{cell}: {data['text/plain']}"] = "no table"
    assert found == {}


def test_each_tensor_that_is_meant_is_there():
    shown = {cell for path in NOTEBOOKS for cell, _, data in main_path(path) if is_tensor(data)}
    assert shown == TENSORS


def is_tensor(data: dict) -> bool:
    return str(data.get("text/plain", "")).startswith("tensor(")


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("[0, 2]", "a list, a dict or a tensor"),
        ("{'a': 1}", "a list, a dict or a tensor"),
        ("tensor(24)", "a list, a dict or a tensor"),
        ("True", "a word of Python"),
        ("10000", "five digits without a separator"),
        ("99.5%", "a percent sign without a space"),
        ("1 +1.2e-04", "a distance from 1 for a ratio"),
        ("3.884e+04", "a large number with an exponent"),
        ("0.1562501", "more than six digits"),
        ("258,545,287,168", "a long number in full"),
    ],
)
def test_what_is_not_for_people_is_found(text, fault):
    assert fault in faults_in(text)


@pytest.mark.parametrize(
    "text", ["259 GFLOPs", "(4, 6)", "0.15625", "1.00012", "4,202,496 bytes", "73.3 %", "1 exactly"]
)
def test_what_is_for_people_is_not(text):
    assert faults_in(text) == []
