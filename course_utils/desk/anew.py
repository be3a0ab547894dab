"""`make anew NB=04 EXERCISE=2`: one exercise as the course has it, or without EXERCISE a whole notebook."""

import sys

from course_utils.desk import copies


def main(name: str = "", number: str = "") -> int:
    """Begin it anew, and say where the old one is; of nonsense, what there is."""
    try:
        if number and not number.isdecimal():
            raise ValueError(f"An exercise is named by its number, not {number!r}.")
        print(copies.begin_anew(copies.named(name), int(number) if number else None, copies.MINE))
    except OSError as error:
        print(f"It stays as it is: {error.strerror}, {error.filename or copies.MINE.name}.", file=sys.stderr)
        return 1
    except ValueError as error:
        print(f"{error} For the second exercise of the fourth: make anew NB=04 EXERCISE=2", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.stdout.reconfigure(errors="replace")  # a system that speaks Latin-1 has no arrow
    sys.exit(main(*sys.argv[1:3]))
