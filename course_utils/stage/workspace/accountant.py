"""Brings a new version of the course's accountant into the reader's file, whose terms stay."""

import ast
import re

from course_utils.core.accountant_file import (
    ADDED,
    MARK,
    TERMS,
    is_theirs,
    statements,
    together,
)
from course_utils.stage.workspace.merge import woven


def renewed(course: str, original: str, own: str) -> str:
    """Return the course's new file with the reader's terms, statements and lines of comments.

    `own` is the reader's file, and `original` the version of the course's that it was made from. A
    statement that the course has dropped since then is dropped here, too.
    """
    new = statements(course)  # by its name, each statement's text with the comments above it
    readers = _with_changed_terms_as_theirs(statements(own), original)
    # A term of the reader's has no mark, and stays; so does what they have added.
    own_terms = [name for name in (*TERMS, *ADDED) if is_theirs(readers.get(name, MARK))]
    stay = {*own_terms} | _only_the_readers(readers, new, original)
    known_lines = {*course.split("\n"), *original.split("\n")}
    readers_order = [name for name in readers if name in new or name in stay]
    texts = {}
    # In the course's order; what only the reader has stands behind what it follows in their file.
    for name in woven(list(new), readers_order):
        if name in stay and name in new:  # the reader's term, below what the course says of it now
            texts[name] = _below_the_courses_head(readers[name], new[name], known_lines)
        elif name in stay:  # the course has no such statement
            texts[name] = readers[name]
        else:  # the course's statement, below the comments that the reader has written at it
            comments = _comments(readers.get(name, ""), known_lines)
            texts[name] = _with_comments(new[name], comments)
    return together(texts)


def _with_changed_terms_as_theirs(own: dict[str, str], original: str) -> dict[str, str]:
    """Return the reader's statements; a term of the course that the reader changed loses its mark.

    The mark is a comment which says that a term is the course's. Files made by older versions of
    the course hold its terms with the mark, and a reader could edit a term and leave the mark.
    Comments do not count as a change, so syntax trees are compared.
    """
    originals = _statements_of(original)
    result = dict(own)
    for name in (*TERMS, *ADDED):
        if MARK not in own.get(name, "") or name not in originals:  # theirs already, or unknown
            continue
        if ast.dump(ast.parse(own[name])) != ast.dump(ast.parse(originals[name])):
            # The mark stands at the end of a line of code, after spaces.
            result[name] = re.sub(f" *{MARK}", "", own[name])
    return result


def _only_the_readers(own: dict[str, str], new: dict[str, str], original: str) -> set[str]:
    """Return the names of the reader's statements that the course never had, then or now."""
    return own.keys() - new.keys() - _statements_of(original).keys()


def _statements_of(original: str) -> dict[str, str]:
    """Return the file's statements; none if it cannot be parsed."""
    try:
        return statements(original)
    except (SyntaxError, ValueError, RecursionError):  # somebody has changed the hidden file
        return {}


def _below_the_courses_head(own: str, course: str, known_lines: set[str]) -> str:
    """Return the reader's statement, below the course's new comments and those of the reader.

    `own` is the statement in the reader's file, `course` the same one in the course's new file. A
    head is what stands above a statement: blank lines and comments. `known_lines` are all lines of
    the course's new file and of the version that the reader's file was made from: a comment such
    as "# checked on paper" that is in neither is the reader's.
    """
    head, _ = _parted(course)
    own_head, term = _parted(own)
    comments = _comments("\n".join(own_head), known_lines)
    of_the_course = [line for line in own_head if line in known_lines]
    # Blank lines do not count. If the course has no new comments, the reader's text stays whole.
    if [line for line in of_the_course if line] == [line for line in head if line]:
        return own
    return "\n".join([*head, *comments, term])


def _parted(statement: str) -> tuple[list[str], str]:
    """Return the blank lines and comments above a statement, and the statement itself."""
    lines = statement.split("\n")
    length = 0
    while not lines[length] or lines[length].startswith("#"):
        length += 1
    return lines[:length], "\n".join(lines[length:])


def _comments(statement: str, known_lines: set[str]) -> list[str]:
    """Return the comment lines of the reader's statement that the course did not write."""
    lines = statement.split("\n")
    return [line for line in lines if line.startswith("#") and line not in known_lines]


def _with_comments(text: str, comments: list[str]) -> str:
    """Return the statement with the comments above it.

    The blank lines at its beginning stay first.
    """
    statement = text.lstrip("\n")
    blank_lines = text.removesuffix(statement)
    return blank_lines + "\n".join([*comments, statement])
