"""What is done of the exercises: a line for each verdict, in a text file that is the reader's to read and to delete.

Lines are only ever added, each in one piece, so several kernels can write at once, and what is not such
a line is passed over.
"""

import re
from contextlib import suppress
from dataclasses import dataclass
from datetime import date
from pathlib import Path

RECORD = "record.txt"
SAID = ("tried", "right", "anew")
LINE = re.compile(rf"(\d{{4}}-\d\d-\d\d) (\w+\.\w+) ({'|'.join(SAID)})\b", re.ASCII)


@dataclass(frozen=True)
class Done:
    """How far the reader is with one exercise: how often it was tried, and the day when it first was right."""

    tries: int = 0
    first_right: str = ""

    @property
    def status(self) -> str:
        """In two words at most."""
        return "right" if self.first_right else "tried" if self.tries else "not attempted"


def note(folder: Path, check: str, said: str) -> None:
    """Add a line on that exercise; where none can be written, leave it."""
    line = f"{date.today().isoformat()} {check} {said}\n".encode()
    # On a full disk, or in a folder that is read-only, no answer is judged otherwise.
    with suppress(OSError), (folder / RECORD).open("ab", buffering=0) as file:
        file.write(line)


def done(folder: Path) -> dict[str, Done]:
    """Each exercise that was attempted, by the name of its check; empty where there is no record, or none to be read."""
    try:
        text = (folder / RECORD).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return {}
    found: dict[str, Done] = {}
    for day, check, said in LINE.findall(text):
        former = found.get(check, Done())
        right = former.first_right or (day if said == "right" else "")
        found[check] = Done() if said == "anew" else Done(former.tries + 1, right)
    return found
