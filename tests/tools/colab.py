"""Writes copies of the notebooks for Colab into colab/: `make colab`.

A copy has the same cells without results, and before them a cell that brings the course to Colab's
machine. The course's address is that of git's remote, at the tag or the branch of this checkout;
REPO=owner/name TAG=v1.0 name others. With LINKS=1, links to Colab, Codespaces and Binder are
written into the README. Only maintainers need that; without it the checkout stays clean.
"""

import re
import subprocess
import sys

import nbformat

from course_utils.core.record import write_whole
from course_utils.stage.translations import language
from course_utils.stage.translations.edition import Edition
from tests import NOTEBOOKS, ROOT
from tests.helpers.notebooks import read

FOLDER = ROOT / "colab"
README = ROOT / "README.md"
# Where a line below ends in a backslash, the next one belongs to the same line of the cell.
FIRST_CELL = """\
# Run this cell first (Shift+Enter). \
It brings the course to this machine in half a minute, and replaces nothing there.
![ -d course ] || git -c advice.detachedHead=false clone -q --depth 1 -b {tag} \
https://github.com/{repository} course
import sys

sys.path.insert(0, "course")
from course_utils.stage import colab

colab.settle()

# What you answer and guess is kept on this machine. \
When Colab takes the machine back, it is gone. To keep it on your
# Google Drive, take the # off the next line, and run this cell. \
To download it when you stop, do so with the last line.
# colab.keep_on_drive()
# colab.download()"""
METADATA = {"accelerator": "GPU", "colab": {"gpuType": "T4"}}
ON_GITHUB = re.compile(r"github\.com[:/]([\w.-]+/[\w.-]+?)(?:\.git)?/?$")
ONE_CLICK = {
    "Colab": "https://colab.research.google.com/github/{}/blob/colab/{}",
    "Codespaces": "https://codespaces.new/{}",
    "Binder": "https://mybinder.org/v2/gh/{}/HEAD?urlpath=lab/tree/notebooks/{}",
}
# What stands in the README between two comments of HTML.
LINKS = re.compile(r"(?<=<!-- one click -->\n).*?(?=<!-- end -->)", re.DOTALL)


def made(notebook: nbformat.NotebookNode, repository: str, tag: str) -> nbformat.NotebookNode:
    """Make a copy whose first cell brings the course from that repository at that tag."""
    source = FIRST_CELL.format(repository=repository, tag=tag)
    cells = [nbformat.v4.new_code_cell(source, id="the-course")]
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell = cell | {"outputs": [], "execution_count": None}
        cells.append(cell)
    changed = {"cells": cells, "metadata": notebook.metadata | METADATA}
    return nbformat.from_dict(notebook | changed)


def with_links(readme: str, repository: str) -> str:
    """Return the README with links that open the course with one click.

    Without a repository, the README has no such links.
    """
    line = ""
    if repository:
        links = []
        for name, address in ONE_CLICK.items():
            links.append(f"[{name}]({address.format(repository, NOTEBOOKS[0].name)})")
        line = f"Open it with one click: {' · '.join(links)}\n"
    return LINKS.sub(line, readme)


def git(*asked: str) -> str:
    """Return what git prints; nothing if it fails."""
    run = subprocess.run(["git", *asked], cwd=ROOT, capture_output=True, text=True, check=False)
    return run.stdout.strip()


def repository_here() -> str:
    """Return the owner and name on GitHub of this clone's origin; nothing if it lies elsewhere."""
    found = ON_GITHUB.search(git("remote", "get-url", "origin"))
    return found[1] if found else ""


def tag_or_branch_here() -> str:
    """Return the first tag of this commit, or else the branch; "" if git has neither."""
    first_tag, _, _ = git("tag", "--points-at", "HEAD").partition("\n")
    return first_tag or git("branch", "--show-current")


def main(repository: str, tag: str, links: str = "") -> int:
    """Write the copies and, if `links` is not empty, the README's links; return the status.

    An empty repository or tag stands for that of this clone.
    """
    repository = repository or repository_here()
    tag = tag or tag_or_branch_here()
    if not re.fullmatch(r"[\w.-]+/[\w.-]+ \w[\w./-]*", f"{repository} {tag}"):
        print(
            "This clone has no address on GitHub. "
            "Say where Colab finds it: make colab REPO=owner/name TAG=v1.0"
        )
        return 2
    FOLDER.mkdir(exist_ok=True)
    for path in NOTEBOOKS:
        translated = Edition(language.chosen(), path.stem).notebook(read(path))
        copy = made(nbformat.from_dict(translated), repository, tag)
        write_whole(FOLDER / path.name, f"{nbformat.writes(copy)}\n".encode())
    print(f"{len(NOTEBOOKS)} copies in {FOLDER.name}/ bring {repository} at {tag}.")
    if links:
        write_whole(README, with_links(README.read_text(encoding="utf-8"), repository).encode())
        print(f"{README.name} links to {repository}.")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
