"""The reader's accountant follows the course: what is theirs in it stays, and all else is the course's."""

from course_utils.core.accountant_file import statements, theirs
from course_utils.stage.workspace.merge import woven


def renewed(course: str, taken: str, own: str) -> str:
    """The course's file with what is the reader's in their own: terms, statements and lines of comments.

    `taken` is what the course had before: what it has dropped since goes.
    """
    new, mine = statements(course), statements(own)
    try:
        former = statements(taken).keys()
    except (SyntaxError, ValueError, RecursionError):  # somebody has changed the hidden file
        former = set()
    stay = {*theirs(own), *mine.keys() - new.keys() - former}
    known = {*course.split("\n"), *taken.split("\n")}

    def text(name: str) -> str:
        if name in stay:
            return mine[name]
        lines, statement = mine.get(name, "").split("\n"), new[name].lstrip("\n")
        comments = [line for line in lines if line.startswith("#") and line not in known]
        return new[name].removesuffix(statement) + "\n".join([*comments, statement])

    return "\n".join(
        map(text, woven(list(new), [name for name in mine if name in new or name in stay]))
    )
