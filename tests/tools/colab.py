"""Copies of the notebooks for Colab, in colab/: the same cells without results, behind one that brings the course.

`make colab` takes the course's address from git's remote, and the tag or the branch at hand; or it is told:
REPO=owner/name TAG=v1.0. With LINKS=1, links to Colab, Codespaces and Binder go into the README, which is the
maintainers' to change: whoever only wants copies keeps a clean checkout.
"""

import re
import subprocess
import sys

import nbformat

from course_utils.core.record import write_whole
from tests import NOTEBOOKS, ROOT
from tests.helpers.notebooks import read

FOLDER, README = ROOT / "colab", ROOT / "README.md"
FIRST_CELL = """# Run this cell first (Shift+Enter). It brings the course to this machine in half a minute, and replaces nothing there.
![ -d course ] || git -c advice.detachedHead=false clone -q --depth 1 -b {tag} https://github.com/{repository} course
import sys

sys.path.insert(0, "course")
from course_utils.stage import colab

colab.settle()

# What you answer and guess is kept on this machine. When Colab takes the machine back, it is gone. To keep it on your
# Google Drive, take the # off the next line, and run this cell. To download it when you stop, do so with the last line.
# colab.keep_on_drive()
# colab.download()"""
METADATA = {"accelerator": "GPU", "colab": {"gpuType": "T4"}}
ON_GITHUB = re.compile(r"github\.com[:/]([\w.-]+/[\w.-]+?)(?:\.git)?/?$")
ONE_CLICK = {
    "Colab": "https://colab.research.google.com/github/{}/blob/colab/{}",
    "Codespaces": "https://codespaces.new/{}",
    "Binder": "https://mybinder.org/v2/gh/{}/HEAD?urlpath=lab/tree/notebooks/{}",
}
LINKS = re.compile(r"(?<=<!-- one click -->\n).*?(?=<!-- end -->)", re.DOTALL)


def made(notebook: nbformat.NotebookNode, repository: str, tag: str) -> nbformat.NotebookNode:
    """The notebook's copy, whose first cell brings the course of that repository at that tag."""
    first = nbformat.v4.new_code_cell(
        FIRST_CELL.format(repository=repository, tag=tag), id="the-course"
    )
    empty = {"outputs": [], "execution_count": None}
    cells = [cell | empty if cell.cell_type == "code" else cell for cell in notebook.cells]
    return nbformat.from_dict(
        notebook | {"cells": [first, *cells], "metadata": notebook.metadata | METADATA}
    )


def with_links(readme: str, repository: str) -> str:
    """The README with links to where the course opens with one click; without a repository there are none."""
    links = [
        f"[{name}]({to.format(repository, NOTEBOOKS[0].name)})" for name, to in ONE_CLICK.items()
    ]
    return LINKS.sub(f"Open it with one click: {' · '.join(links)}\n" if repository else "", readme)


def git(*asked: str) -> str:
    return subprocess.run(
        ["git", *asked], cwd=ROOT, capture_output=True, text=True, check=False
    ).stdout.strip()


def main(repository: str, tag: str, links: str = "") -> int:
    """Write the copies, and the README's links where they are asked for."""
    repository = repository or "".join(ON_GITHUB.findall(git("remote", "get-url", "origin")))
    tag = (
        tag
        or git("tag", "--points-at", "HEAD").partition("\n")[0]
        or git("branch", "--show-current")
    )
    if not re.fullmatch(r"[\w.-]+/[\w.-]+ \w[\w./-]*", f"{repository} {tag}"):
        print(
            "This clone has no address on GitHub. Say where Colab finds it: make colab REPO=owner/name TAG=v1.0"
        )
        return 2
    FOLDER.mkdir(exist_ok=True)
    for path in NOTEBOOKS:
        write_whole(
            FOLDER / path.name, f"{nbformat.writes(made(read(path), repository, tag))}\n".encode()
        )
    print(f"{len(NOTEBOOKS)} copies in {FOLDER.name}/ bring {repository} at {tag}.")
    if links:
        write_whole(README, with_links(README.read_text(encoding="utf-8"), repository).encode())
        print(f"{README.name} links to {repository}.")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
