"""The reader's own copies of the notebooks, and how a new version of the course reaches them.

A copy has its results still to come: an answer that can be seen is not guessed. An update leaves what was run.
`my_notebooks` lies under the server's root: in a clone beside `notebooks`, where git ignores it, so that a `git pull`
meets no change in a notebook, and on a hub in each reader's own folder. The glossary comes along, since notebooks
link to it, and what an AI assistant should know. Its `.course` keeps each file as the copy took it, which tells later what the reader has changed. Before a
copy is written anew, what was there goes to `earlier`.
"""

import os
from collections.abc import Collection, Iterator
from contextlib import suppress
from datetime import datetime
from importlib.metadata import metadata
from itertools import count
from pathlib import Path

from course_utils.core import record
from course_utils.core.accountant_file import NAME, OURS, ours, program_text
from course_utils.core.record import HIDDEN, write_whole
from course_utils.stage.notebook.about import with_the_courses_words
from course_utils.stage.notebook.files import Notebook, parsed, read, write
from course_utils.stage.notebook.outline import turns
from course_utils.stage.workspace.accountant import renewed
from course_utils.stage.workspace.merge import CONFLICT, merged, restored
from course_utils.stage.workspace.outputs import (
    for_this_kernel,
    to_come,
    with_results,
    without_views,
)
from course_utils.stage.workspace.spacers import with_spacers, without_spacers

ROOT = Path(__file__).parents[3]  # of a clone
INSTALLED = Path(__file__).parents[2] / "course" / "notebooks"  # where a wheel has them
COURSE = INSTALLED if INSTALLED.is_dir() else ROOT / "notebooks"
MINE = (
    Path.cwd() if INSTALLED.is_dir() else ROOT
) / "my_notebooks"  # a server has its own, under its root
EARLIER = "earlier"
TO_README = b"(../README.md#the-notebooks)"
IF_OPEN = (
    "If it is open in JupyterLab, it is read again as soon as you look at it. "
    "If it asks there, choose Revert: what was not saved goes with that."
)
GLOSSARY = "GLOSSARY.md"  # which the notebooks link to, as a file beside them
AGENTS = Path(__file__).with_name("AGENTS.md")  # for the AI assistant of whoever has one


def readme() -> str:
    """The course's README, which says where the course opens with one click."""
    if INSTALLED.is_dir():
        return metadata("course_utils").get_payload()
    return (ROOT / "README.md").read_text(encoding="utf-8")


def notebooks(course: Path = COURSE) -> list[Path]:
    return sorted(course.glob("[0-9][0-9]_*.ipynb"))


def bring_up_to_date(
    course: Path = COURSE, mine: Path = MINE, *, in_use: bool = False, contents: str = "/contents"
) -> Iterator[str]:
    """Bring the reader's copies up to date; yields a sentence on each notebook where there is something to say.

    `contents` is the address of the contents page, to which a copy leads back where the course's own leads to the README.

    While a JupyterLab is open over them, copies are only made where there are none: what it shows would be
    another text than what lies in the file.
    """
    (mine / HIDDEN).mkdir(parents=True, exist_ok=True)
    for path in (*notebooks(course), *course.glob(GLOSSARY), AGENTS, OURS):
        bring = _bring_notebook if path.suffix == ".ipynb" else _bring_text
        try:
            # Read once: a `git pull` may come between two readings.
            new = ours().encode() if path == OURS else path.read_bytes()
            new = new.replace(TO_README, f"({contents})".encode())
            if bring is _bring_notebook:
                parsed(new)
        except (OSError, ValueError) as error:
            yield f"{course.name}/{path.name}, the course's own, is broken: {_why(error)}. Your copy stays as it is."
            continue
        try:
            yield from bring(path.name, new, mine, in_use)
        except OSError as error:
            yield (
                f"{mine.name}/{path.name} could not be made or brought up to date: {_why(error)}. "
                "See that there is room, and that it is yours to write to; the next start tries again."
            )
        except ValueError as error:
            yield (
                f"{mine.name}/{path.name} stays as it is, without what is new in the course: {_why(error)}. "
                "If you rename it, the next start puts the course's own beside it."
            )


def as_handed_out(course: Notebook) -> Notebook:
    """A new copy of that notebook: its results still to come, and a spacer below each guess."""
    return for_this_kernel(with_spacers(to_come(course)))


def make_missing(mine: Path, course: Path = COURSE, **options: str) -> None:
    """Make a copy again that was renamed or deleted since the start, so that nobody edits the course's own."""
    if not all(os.path.lexists(mine / path.name) for path in (*notebooks(course), OURS)):
        with suppress(OSError):  # as was said at the start
            list(bring_up_to_date(course, mine, in_use=True, **options))


def _why(error: Exception) -> str:
    return f"{getattr(error, 'strerror', None) or error}".rstrip(".")


def _bring_notebook(name: str, new: bytes, mine: Path, in_use: bool) -> Iterator[str]:
    own, taken = mine / name, mine / HIDDEN / name
    if not os.path.lexists(own):
        write_whole(taken, new)
        write(own, as_handed_out(parsed(new)))
        return
    if own.is_symlink() or not own.is_file():
        raise ValueError("it is no file of its own")
    mine_now = read(own)
    if taken.is_file() and taken.read_bytes() == new:
        shown = with_spacers(without_views(mine_now))
        fresh = with_the_courses_words(for_this_kernel(shown), parsed(new))
        if fresh != mine_now and not in_use:
            write(own, fresh)
        return
    if in_use:
        yield f"{name} has a new version, which reaches your copy when no JupyterLab is open over it."
        return
    if not taken.is_file():
        raise ValueError("it was not copied from here")
    base, course, seen = read(taken), as_handed_out(parsed(new)), without_spacers(mine_now)["cells"]
    shows_results = seen == with_results(to_come(base), base)["cells"]
    if shows_results or seen == to_come(base)["cells"]:
        write(own, with_results(without_spacers(course), parsed(new)) if shows_results else course)
        write_whole(taken, new)
        yield f"{name} is brought up to date."
        return
    together, conflicts = merged(base, course, mine_now)
    kept = keep_earlier(own)
    write(own, with_the_courses_words(without_views(together), course))
    write_whole(taken, new)
    yield f"{name} is brought up to date; what you wrote is in it. As it was: {mine.name}/{EARLIER}/{kept.name}"
    if conflicts:
        yield (
            f"  Where both you and the course changed the same lines ({len(conflicts)} of its cells), yours stay, and "
            f'the course\'s text stands below: look for "{CONFLICT}".'
        )


def _bring_text(name: str, new: bytes, mine: Path, in_use: bool) -> Iterator[str]:
    """The glossary as the course has it, or the accountant with what is the reader's in it."""
    own, taken = mine / name, mine / HIDDEN / name
    as_taken = taken.read_bytes() if taken.is_file() else b""
    if os.path.lexists(own) and (in_use or as_taken == new):
        return
    course, words = new, "is the course's new one"
    if name == NAME and os.path.lexists(own):
        new = renewed(new.decode(), as_taken.decode(), program_text(own)).encode()
        words = "is brought up to date, and what is yours is in it"
    if own.is_file() and own.read_bytes() not in (as_taken, new):
        yield f"{name} {words}. As it was, with your changes: {mine.name}/{EARLIER}/{keep_earlier(own).name}"
    write_whole(own, new)
    write_whole(taken, course)


def begin_anew(path: Path, turn: int | str | None = None, mine: Path = MINE) -> str:
    """Reset one exercise of the reader's copy, or the whole copy; returns a sentence that says where the old one is.

    `turn` is the exercise's number or the name of its check.
    """
    own, taken = _copy(path, mine)
    course = as_handed_out(taken)
    there_are = turns(course)
    asked = [each for each in there_are if turn in (None, each.number, each.check)]
    if not asked:
        raise ValueError(
            f"Your copy of {path.stem} has no turn {turn}. It has: 1 to {len(there_are)}."
        )
    again = course if turn is None else restored(course, _read_copy(own), asked[0].cells)
    kept = keep_earlier(own)
    write(own, without_views(again))
    for each in asked:
        record.note(mine, each.check, "anew")
    what = (
        path.stem
        if turn is None
        else f'Your turn {asked[0].number} of {path.stem}, "{asked[0].title}",'
    )
    return f"{what} begins anew. As it was when last saved: {mine.name}/{EARLIER}/{kept.name}. {IF_OPEN}"


def show_results(path: Path, mine: Path = MINE) -> str:
    """Put the course's results into the reader's copy where it has none; returns a sentence."""
    own, taken = _copy(path, mine)
    write(own, with_results(without_spacers(_read_copy(own)), taken))
    return f"{path.stem} shows the course's results wherever you have none of your own. {IF_OPEN}"


def _copy(path: Path, mine: Path) -> tuple[Path, Notebook]:
    """The reader's copy of that notebook, and the course's notebook that it was last brought up to date with."""
    own, taken = mine / path.name, mine / HIDDEN / path.name
    if not (own.is_file() and taken.is_file()):
        raise ValueError(
            f"There is no copy of {path.name} in {mine.name} yet. They are made when JupyterLab starts."
        )
    return own, read(taken)


def _read_copy(own: Path) -> Notebook:
    try:
        return read(own)
    except ValueError as error:
        raise ValueError(
            f"{own.parent.name}/{own.name} stays as it is: {error}. It can only begin anew as a whole."
        ) from error


def named(name: str) -> Path:
    """The notebook that is meant by "4", "04", "04_flops" or "04_flops.ipynb".

    >>> named("4").name
    '04_flops.ipynb'
    """
    there_are = notebooks()
    for path in there_are:
        if name in (path.stem[:2].lstrip("0"), path.stem[:2], path.stem, path.name):
            return path
    asked = f"There is no notebook {name!r}." if name else "Which notebook?"
    raise ValueError(f"{asked} There are: {', '.join(path.stem for path in there_are)}.")


def chosen(names: Collection[str]) -> list[Path]:
    """The notebooks of these names, in the course's order; all of them, if none is named."""
    return sorted({named(name) for name in names}) or notebooks()


def keep_earlier(own: Path) -> Path:
    """Copy the file into `earlier`, under a name with the time. No earlier copy is overwritten."""
    contents = (
        own.read_bytes()
    )  # first: whoever changes it has kept it by then, and its name is taken
    folder = own.parent / EARLIER
    folder.mkdir(exist_ok=True)
    moment = f"{datetime.now():%Y-%m-%d %H.%M.%S}"
    names = (
        f"{own.stem} {moment}{f' ({number})' * (number > 1)}{own.suffix}" for number in count(1)
    )
    kept = next(folder / name for name in names if not (folder / name).exists())
    write_whole(kept, contents)
    return kept
