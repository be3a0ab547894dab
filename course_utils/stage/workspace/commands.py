"""The contents page's buttons, as commands for a terminal.

`make anew NB=04 EXERCISE=2`: one exercise as the course has it, or without EXERCISE a whole notebook.
`make results NB=04`: the course's results, for those who only want to read.
`make assignment NB=04` and `make key NB=04`: for an instructor, what a class gets, and the key to it.
"""

import sys

from course_utils.stage.workspace import copies
from course_utils.stage.workspace.assignment import assignment, key

HOW = {
    "anew": "For your second turn in the fourth: make anew NB=04 EXERCISE=2",
    "results": "For the fourth: make results NB=04",
    "assignment": "For the fourth: make assignment NB=04",
    "key": "For the fourth: make key NB=04",
}


def main(command: str, name: str = "", number: str = "") -> int:
    """Run the command, and print what was done. For a wrong name, print which names there are."""
    try:
        if number and not number.isdecimal():
            raise ValueError(f"An exercise is named by its number, not {number!r}.")
        if command == "anew":
            print(
                copies.begin_anew(copies.named(name), int(number) if number else None, copies.MINE)
            )
        elif command == "assignment":
            print(assignment(copies.named(name), copies.MINE.with_name("assignment")))
        elif command == "key":
            print(key(copies.named(name), copies.MINE.with_name("key")))
        else:
            print(copies.show_results(copies.named(name), copies.MINE))
    except OSError as error:
        print(
            f"It stays as it is: {error.strerror}, {error.filename or copies.MINE.name}.",
            file=sys.stderr,
        )
        return 1
    except ValueError as error:
        print(f"{error} {HOW[command]}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.stdout.reconfigure(errors="replace")  # a system that speaks Latin-1 has no arrow
    sys.exit(main(*sys.argv[1:4]))
