"""The reader's own copies of the notebooks, and how a new version of the course reaches them.

A new copy shows no results, because nobody guesses an answer that they can see. An update keeps
what was run. `my_notebooks` lies under the server's root: in a clone beside `notebooks`, where git
ignores it, so that `git pull` never meets a changed notebook; and on a hub in each reader's own
folder. The glossary is copied, too, since notebooks link to it, and so is `AGENTS.md`, for the
reader's AI assistant. The hidden folder `.course` keeps the course's file from which each copy was
made, called `taken` here: a comparison of the two shows what the reader has changed. Before a copy
is overwritten, it is saved in the folder `earlier`.
"""

import os
from collections.abc import Collection, Iterator
from contextlib import suppress
from datetime import datetime
from importlib.metadata import metadata
from pathlib import Path

from course_utils.core import record
from course_utils.core.accountant_file import NAME, OURS, ours, program_text
from course_utils.core.record import HIDDEN, write_whole
from course_utils.core.say.language import template, translated
from course_utils.stage.notebook.about import about, with_course_entry
from course_utils.stage.notebook.files import Notebook, parsed, read, write
from course_utils.stage.notebook.outline import turns
from course_utils.stage.translations.edition import ENGLISH, Edition, in_english
from course_utils.stage.workspace.accountant import renewed
from course_utils.stage.workspace.folds import with_folds, without_folds
from course_utils.stage.workspace.former_guesses import carry_renamed, with_fields
from course_utils.stage.workspace.merge import CONFLICT, merged, restored
from course_utils.stage.workspace.outputs import (
    for_this_kernel,
    to_come,
    with_results,
    without_views,
)
from course_utils.stage.workspace.spacers import with_spacers, without_spacers
from course_utils.stage.workspace.trust import is_trusted, rewrite, sign, write_ours

ROOT = Path(__file__).parents[3]  # the folder of a clone
INSTALLED = Path(__file__).parents[2] / "course" / "notebooks"  # where a wheel has them
# A server has the copies in a folder under its own root, which has the same name as MINE.
if INSTALLED.is_dir():
    COURSE = INSTALLED
    MINE = Path.cwd() / "my_notebooks"
else:
    COURSE = ROOT / "notebooks"
    MINE = ROOT / "my_notebooks"
EARLIER = "earlier"
TO_README = b"(../README.md#the-notebooks)"  # in a copy, this link leads to the contents page
IF_OPEN = (
    "If it is open in JupyterLab, it is read again as soon as you look at it. "
    "If it asks there, choose Revert: what was not saved goes with that."
)
UP_TO_DATE = template("{file} is brought up to date.")
BROKEN = template("{file}, the course's own, is broken: {why}. Your copy stays as it is.")
NOT_MADE = template(
    "{file} could not be made or brought up to date: {why}. See that there is room, "
    "and that it is yours to write to; the next start tries again."
)
STAYS = template(
    "{file} stays as it is, without what is new in the course: {why}. "
    "If you rename it, the next start puts the course's own beside it."
)
BOTH_CHANGED = template(
    "Where both you and the course changed the same lines ({cells} of its cells), "
    'yours stay, and the course\'s text stands below: look for "{mark}".'
)
NEW_TEXT = template("{file} is the course's new one. As it was, with your changes: {former}")
RENEWED_TEXT = template(
    "{file} is brought up to date, and what is yours is in it. As it was, with your changes: "
    "{former}"
)
GLOSSARY = "GLOSSARY.md"  # the notebooks link to it, as a file beside them
AGENTS = Path(__file__).with_name("AGENTS.md")  # what an AI assistant of the reader should know


def readme() -> str:
    """Return the course's README. In a wheel, it is the package's description."""
    if INSTALLED.is_dir():
        return metadata("course_utils").get_payload()
    return (ROOT / "README.md").read_text(encoding="utf-8")


def notebooks(course: Path = COURSE) -> list[Path]:
    """Return the paths of the course's notebooks, such as 04_flops.ipynb, in their order."""
    return sorted(course.glob("[0-9][0-9]_*.ipynb"))


def bring_up_to_date(
    course: Path = COURSE,
    mine: Path = MINE,
    *,
    in_use: bool = False,
    contents: str = "/contents",
    language: str = ENGLISH,
) -> Iterator[str]:
    """Bring the reader's copies up to date; yields sentences on what was changed or has failed.

    `contents` is the address of the contents page, to which links to the README are led. If the
    copies are in use, missing ones are made and the others are left alone: a JupyterLab in which
    one is open would show another text than the file has.
    """
    (mine / HIDDEN).mkdir(parents=True, exist_ok=True)
    # `glob` finds no glossary in a folder that has none.
    for path in (*notebooks(course), *course.glob(GLOSSARY), AGENTS, OURS):
        try:
            new = _new_version(path, contents, language)
        except (OSError, ValueError) as error:
            yield translated(BROKEN, file=f"{course.name}/{path.name}", why=_why(error))
            continue
        bring = _bring_notebook if _is_notebook(path) else _bring_text
        try:
            yield from bring(path.name, new, mine, in_use)
        except OSError as error:
            yield translated(NOT_MADE, file=f"{mine.name}/{path.name}", why=_why(error))
        except ValueError as error:
            yield translated(STAYS, file=f"{mine.name}/{path.name}", why=_why(error))


def _is_notebook(path: Path) -> bool:
    return path.suffix == ".ipynb"


def _new_version(path: Path, contents: str, language: str) -> bytes:
    """Return what the copy of the course's file has in it; ValueError if a notebook is broken.

    The file is read only once, because a `git pull` may change it between two readings.
    """
    # A new copy of the course's accountant has a stub in place of each term.
    new = ours().encode() if path == OURS else path.read_bytes()
    # The translation comes first, because it is found by the very words of the course's file.
    new = Edition(language, path.stem).contents(new, is_notebook=_is_notebook(path))
    return new.replace(TO_README, f"({contents})".encode())


def as_handed_out(course: Notebook) -> Notebook:
    """Return a new copy of the course's notebook.

    It has no results, below each guess is a spacer, its import cells are folded, and it has the
    metadata that JupyterLab would write on opening it.
    """
    copy = to_come(course)
    copy = with_spacers(copy)
    copy = with_folds(copy, course)
    return for_this_kernel(copy)


def make_missing(mine: Path, course: Path = COURSE, **options: str) -> None:
    """Make the copies again that were renamed or deleted since the start.

    Without them, links would lead to the course's own files, and readers would edit those.
    `options` are further ones of `bring_up_to_date`.
    """
    names = [path.name for path in (*notebooks(course), OURS)]
    if all(os.path.lexists(mine / name) for name in names):
        return
    with suppress(OSError):  # the start of the server has reported it
        # It is a generator, so it runs only while somebody takes its sentences.
        list(bring_up_to_date(course, mine, in_use=True, **options))


def _why(error: Exception) -> str:
    """Return the error's reason, without a full stop.

    An OSError's message would have the path, too.
    """
    reason = getattr(error, "strerror", None)
    return translated(f"{reason if reason else error}".rstrip("."))


def _bring_notebook(name: str, new: bytes, mine: Path, in_use: bool) -> Iterator[str]:
    """Make the copy, or bring it up to date with `new`; yields sentences on what was done.

    Raise a ValueError, with the reason, if the file of that name is not a copy that can be updated.
    """
    own = mine / name
    taken = mine / HIDDEN / name  # the course's version that the copy was made from
    if not os.path.lexists(own):  # a broken link exists, too
        write_whole(taken, new)
        write_ours(own, as_handed_out(parsed(new)))
        return
    if own.is_symlink() or not own.is_file():
        raise ValueError(template("it is no file of its own"))
    mine_now = read(own)
    if taken.is_file() and taken.read_bytes() == new:  # nothing is new in the course
        if not in_use:
            _freshen(own, mine_now, parsed(new))
        return
    if in_use:
        yield translated(
            "{file} has a new version, which reaches your copy when no JupyterLab is open over it.",
            file=name,
        )
        return
    if not taken.is_file():
        raise ValueError(template("it was not copied from here"))
    sentences = _take_over(parsed(new), own, mine_now, read(taken))
    # Last, so that an update which is interrupted before this is made again at the next start.
    write_whole(taken, new)
    yield from sentences


def _freshen(own: Path, mine_now: Notebook, course: Notebook) -> None:
    """Bring the views, spacers and metadata of a copy up to date: the reader has written none.

    `own` is the path of the copy, and `mine_now` what is in it now.
    """
    shown = with_spacers(without_views(mine_now))
    fresh = with_course_entry(for_this_kernel(shown), course)
    was_trusted = is_trusted(own)
    if fresh != mine_now:  # else the file keeps its date
        write(own, fresh)
    if was_trusted:
        sign(own)


def _take_over(new: Notebook, own: Path, mine_now: Notebook, base: Notebook) -> list[str]:
    """Write the copy with what is new in the course; returns sentences on what was done.

    `own` is the path of the copy, `mine_now` what is in it now, and `base` the course's version
    that it was made from. A copy that the reader has not touched, with or without the course's
    results, is replaced.
    """
    carry_renamed(base, new, own.parent)
    # A new copy, but import cells that the reader has unfolded stay unfolded.
    course = with_folds(as_handed_out(new), new, mine_now)
    cells = without_folds(without_spacers(mine_now))["cells"]
    has_results = cells == with_results(to_come(base), base)["cells"]  # the course's, and no more
    if has_results or cells == to_come(base)["cells"]:  # untouched
        write_ours(own, with_results(without_spacers(course), new) if has_results else course)
        return [translated(UP_TO_DATE, file=own.name)]
    # Guesses that were typed in place of dots, in an old copy, go into the record first.
    readers_copy = with_fields(mine_now, course, own.parent)
    together, conflicts = merged(base, course, readers_copy)
    kept = keep_earlier(own)
    folded = with_folds(without_views(together), course, mine_now)
    rewrite(own, with_course_entry(folded, course))
    sentences = [
        translated(
            "{file} is brought up to date; what you wrote is in it. As it was: {former}",
            file=own.name,
            former=f"{own.parent.name}/{EARLIER}/{kept.name}",
        )
    ]
    if conflicts:
        on_them = translated(BOTH_CHANGED, cells=f"{len(conflicts)}", mark=CONFLICT)
        sentences.append(f"  {on_them}")
    return sentences


def _bring_text(name: str, new: bytes, mine: Path, in_use: bool) -> Iterator[str]:
    """Make the copy of a text file, or bring it up to date with `new`.

    In the accountant, the terms that the reader wrote stay. Yields a sentence if the reader had
    changed the copy; the changed one is saved in `earlier` first.
    """
    own = mine / name
    taken = mine / HIDDEN / name  # the course's version that the copy was made from
    as_taken = taken.read_bytes() if taken.is_file() else b""
    exists = os.path.lexists(own)
    if exists and in_use:  # an open JupyterLab would show another text than the file has
        return
    if exists and as_taken == new:  # nothing is new in the course
        return
    text = new
    sentence = NEW_TEXT
    if name == NAME and exists:
        with_own_terms = renewed(new.decode(), as_taken.decode(), program_text(own))
        text = with_own_terms.encode()
        sentence = RENEWED_TEXT
    # The reader has changed the copy if it is neither as it was made nor as it is to be.
    if own.is_file() and own.read_bytes() not in (as_taken, text):
        kept = keep_earlier(own)
        yield translated(sentence, file=name, former=f"{mine.name}/{EARLIER}/{kept.name}")
    write_whole(own, text)
    write_whole(taken, new)


def begin_anew(path: Path, turn: int | str | None = None, mine: Path = MINE) -> str:
    """Reset one turn of the reader's copy, or the whole copy; returns a sentence on what was done.

    `path` is that of the course's notebook, and `turn` the turn's number or the name of its check.
    The sentence names the file in which the former copy was saved. ValueError if the copy has no
    such turn.
    """
    own, taken = _copy(path, mine)
    course = as_handed_out(taken)
    all_turns = turns(in_english(course))
    chosen_turns = []  # all, or the one of that number or check
    for known in all_turns:
        if turn is None or turn in (known.number, known.check):
            chosen_turns.append(known)
    if not chosen_turns:
        raise ValueError(
            f"Your copy of {path.stem} has no turn {turn}. It has: 1 to {len(all_turns)}."
        )
    if turn is None:
        again = course
        what = path.stem
    else:
        known = chosen_turns[0]
        again = restored(course, _read_copy(own), known.cells)
        what = f'Your turn {known.number} of {path.stem}, "{known.title}",'
    kept = keep_earlier(own)
    (write_ours if turn is None else rewrite)(own, without_views(again))
    for known in chosen_turns:
        record.note(mine, known.check, "anew")
    if turn is None:  # guesses and drawn marks belong to no turn, and begin anew with the notebook
        chapter = about(course, path.name).chapter
        record.note_asked_anew(mine, chapter)
        (mine / record.MARKS / f"{chapter}.json").unlink(missing_ok=True)
    former = f"{mine.name}/{EARLIER}/{kept.name}"
    return f"{what} begins anew. As it was when last saved: {former}. {IF_OPEN}"


def show_results(path: Path, mine: Path = MINE) -> str:
    """Put the course's results into the reader's copy where it has none.

    Returns a sentence on what was done.
    """
    own, taken = _copy(path, mine)
    # Whoever asks for results need not have them kept out of view, as spacers below guesses do.
    readers_copy = without_spacers(_read_copy(own))
    rewrite(own, with_results(readers_copy, taken))
    return f"{path.stem} shows the course's results wherever you have none of your own. {IF_OPEN}"


def _copy(path: Path, mine: Path) -> tuple[Path, Notebook]:
    """Return the path of the reader's copy, and the course's version from which the copy was made.

    Raise a ValueError if there is no copy.
    """
    own = mine / path.name
    taken = mine / HIDDEN / path.name
    if not (own.is_file() and taken.is_file()):
        raise ValueError(
            f"There is no copy of {path.name} in {mine.name} yet. "
            "They are made when JupyterLab starts."
        )
    return own, read(taken)


def _read_copy(own: Path) -> Notebook:
    """Return the reader's copy; ValueError, with what to do, if it cannot be read."""
    try:
        return read(own)
    except ValueError as error:
        raise ValueError(
            f"{own.parent.name}/{own.name} stays as it is: {error}. "
            "It can only begin anew as a whole."
        ) from error


def named(name: str) -> Path:
    """Return the path of the notebook called "4", "04", "04_flops" or "04_flops.ipynb".

    Raise a ValueError, with the names of all notebooks, if none is called so.

    >>> named("4").name
    '04_flops.ipynb'
    """
    all_notebooks = notebooks()
    for path in all_notebooks:
        number = path.stem[:2]
        if name in (number.lstrip("0"), number, path.stem, path.name):
            return path
    asked = f"There is no notebook {name!r}." if name else "Which notebook?"
    known = ", ".join(path.stem for path in all_notebooks)
    raise ValueError(f"{asked} There are: {known}.")


def chosen(names: Collection[str]) -> list[Path]:
    """Return the notebooks of these names or, by default, all: each once, in the course's order."""
    if not names:
        return notebooks()
    return sorted({named(name) for name in names})


def keep_earlier(own: Path) -> Path:
    """Copy the file into `earlier`, under a name with the time; returns the copy's path.

    No earlier copy is overwritten.
    """
    # The file is read before the name is chosen. If another process changes the file in between, it
    # has saved the former one here already, so the name that it took is seen below.
    contents = own.read_bytes()
    folder = own.parent / EARLIER
    folder.mkdir(exist_ok=True)
    moment = f"{datetime.now():%Y-%m-%d %H.%M.%S}"
    kept = folder / f"{own.stem} {moment}{own.suffix}"
    number = 1
    while kept.exists():
        number += 1
        kept = folder / f"{own.stem} {moment} ({number}){own.suffix}"
    write_whole(kept, contents)
    return kept
