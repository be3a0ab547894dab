"""The notebooks as data, for the tests that read them."""

import functools
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import nbformat

from course_utils.checks.verdict import Verdict
from tests import NOTEBOOKS

TITLE = re.compile(r"^### Exercise (\d+) · (.+)$", re.MULTILINE)
SOLUTION = re.compile(r"<details><summary>Solution</summary>\s*```python\n(.*?)\n```\s*</details>", re.DOTALL)


@dataclass(frozen=True)
class Exercise:
    """One exercise as it stands in a notebook: the stub, the check, the folded solution."""

    notebook: Path
    title: str
    imports: str
    stub: str
    check: str
    solution: str

    @property
    def name(self) -> str:
        return f"{self.notebook.stem}: {self.title}"

    @property
    def wants_function(self) -> bool:
        return "def " in self.stub

    @functools.cached_property
    def judge(self) -> Callable[[object], Verdict]:
        """The check itself."""
        names: dict[str, object] = {}
        exec(self.imports, names)
        return eval(self.check.partition("(")[0], names)

    def verdict(self, answer: str) -> Verdict:
        """What the check says of that answer, run as the reader would run it."""
        names: dict[str, object] = {}
        exec(self.imports, names)
        exec(answer, names)
        return eval(self.check, names)


def read(path: Path) -> nbformat.NotebookNode:
    return nbformat.read(path, as_version=4)


def exercises() -> list[Exercise]:
    """Every exercise of every notebook; each is a heading, a stub, a check and a folded solution, in that order."""
    found = []
    for path in NOTEBOOKS:
        cells = read(path).cells
        imports = next(cell.source for cell in cells if cell.cell_type == "code")
        for number, cell in enumerate(cells):
            title = TITLE.search(cell.source)
            if cell.cell_type == "markdown" and title:
                stub, check, folded = cells[number + 1 : number + 4]
                solution = SOLUTION.fullmatch(folded.source.strip())
                assert solution, f"{path.name}: {title[0]} has no folded solution behind its check"
                found.append(Exercise(path, title[2], imports, stub.source, check.source, solution[1]))
    return found
