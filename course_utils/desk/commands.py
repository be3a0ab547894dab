"""The contents page's buttons, as commands for a terminal.

`make anew NB=04 EXERCISE=2`: one exercise as the course has it, or without EXERCISE a whole notebook.
`make results NB=04`: the course's results, for those who only want to read.
`make assignment NB=04`: for an instructor, the copy that a class gets and hands in.
"""

import re
import sys
from pathlib import Path

from course_utils.desk import copies
from course_utils.desk.notebooks import parsed, source, write
from course_utils.record import write_whole

HOW = {
    "anew": "For your second turn in the fourth: make anew NB=04 EXERCISE=2",
    "results": "For the fourth: make results NB=04",
    "assignment": "For the fourth: make assignment NB=04",
}
LEADS_AWAY = re.compile(r"\[([^][]*)\]\((?:\.\./README\.md|\d\d_\w+\.ipynb)[^)]*\)")
FOLDED = "<details><summary>Solution</summary>"


def assignment(path: Path, folder: Path) -> str:
    """Write that notebook to hand out: its solutions gone, its results to come, and no link that leads out of the folder."""
    course = copies.as_handed_out(parsed(LEADS_AWAY.sub(r"\1", path.read_text(encoding="utf-8")).encode()))
    cells = [cell for cell in course["cells"] if not source(cell).startswith(FOLDED)]
    folder.mkdir(exist_ok=True)
    write(folder / path.name, {**course, "cells": cells})
    for text in (path.with_name(copies.GLOSSARY), copies.AGENTS):
        write_whole(folder / text.name, LEADS_AWAY.sub(r"\1", text.read_text(encoding="utf-8")).encode())
    return f"Hand out all of {folder.name}/: {path.name} without its solutions, its glossary, and {copies.AGENTS.name}."


def main(command: str, name: str = "", number: str = "") -> int:
    """Run the command, and print what was done. For a wrong name, print which names there are."""
    try:
        if number and not number.isdecimal():
            raise ValueError(f"An exercise is named by its number, not {number!r}.")
        if command == "anew":
            print(copies.begin_anew(copies.named(name), int(number) if number else None, copies.MINE))
        elif command == "assignment":
            print(assignment(copies.named(name), copies.MINE.with_name("assignment")))
        else:
            print(copies.show_results(copies.named(name), copies.MINE))
    except OSError as error:
        print(f"It stays as it is: {error.strerror}, {error.filename or copies.MINE.name}.", file=sys.stderr)
        return 1
    except ValueError as error:
        print(f"{error} {HOW[command]}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.stdout.reconfigure(errors="replace")  # a system that speaks Latin-1 has no arrow
    sys.exit(main(*sys.argv[1:4]))
