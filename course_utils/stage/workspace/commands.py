"""The contents page's buttons, as commands for a terminal.

`make anew NB=04 EXERCISE=2` resets one exercise, and without EXERCISE a whole notebook.
`make results NB=04` shows the course's results, for those who only want to read.
`make assignment NB=04` and `make key NB=04` are for instructors: what a class gets, and its key.
"""

import sys

from course_utils.stage.workspace import copies
from course_utils.stage.workspace.assignment import assignment, key

# By the command, the example that is printed behind the sentence on what was wrong.
HOW = {
    "anew": "For your second turn in the fourth: make anew NB=04 EXERCISE=2",
    "results": "For the fourth: make results NB=04",
    "assignment": "For the fourth: make assignment NB=04",
    "key": "For the fourth: make key NB=04",
}


def main(command: str, name: str = "", number: str = "") -> int:
    """Run the command, and print what was done; returns the exit code.

    The code is 1 if a file cannot be read or written, and 2 for a wrong name. For a wrong name,
    the known names are printed.
    """
    try:
        print(_run(command, name, number))
    except OSError as error:
        # Not every OSError names a file; that of a full disk may not.
        where = error.filename if error.filename else copies.MINE.name
        print(f"It stays as it is: {error.strerror}, {where}.", file=sys.stderr)
        return 1
    except ValueError as error:
        print(f"{error} {HOW[command]}", file=sys.stderr)
        return 2
    return 0


def _run(command: str, name: str, number: str) -> str:
    """Run the command on the notebook called `name`; returns the sentence to print."""
    if number and not number.isdecimal():
        raise ValueError(f"An exercise is named by its number, not {number!r}.")
    notebook = copies.named(name)
    if command == "anew":
        turn = int(number) if number else None
        return copies.begin_anew(notebook, turn, copies.MINE)
    if command == "assignment":
        return assignment(notebook, copies.MINE.with_name("assignment"))
    if command == "key":
        return key(notebook, copies.MINE.with_name("key"))
    return copies.show_results(notebook, copies.MINE)


if __name__ == "__main__":
    sys.stdout.reconfigure(errors="replace")  # not every terminal's encoding has an arrow
    sys.exit(main(*sys.argv[1:4]))
