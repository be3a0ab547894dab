"""Adds to `promised.toml` what the notebooks have and it does not list yet.

The command is `python -m tests.tools.promised`.

What the list says of a thing, such as a section's title, is brought up to date. Nothing is ever
taken out of the list.
"""

import json
import sys

from tests.helpers.promised import LIST, TAKEN_AWAY, Things, listed, taken_away, there

NAMES_ALONE = ("labs", "terms")  # the kinds whose things have a name and nothing else


def main() -> int:
    """Write the list anew, below the text at its head; return the exit status."""
    head = LIST.read_text(encoding="utf-8").partition("\n[")[0].rstrip()
    promised = listed()
    now = there()
    parts = [head]
    for notebook in {**now, **promised}:
        things = _together(promised.get(notebook, {}), now.get(notebook, {}))
        parts += _of_a_notebook(notebook, things)
    for gone in taken_away():
        parts.append(_table(f"[[{TAKEN_AWAY}]]", gone))
    LIST.write_text("\n\n".join(parts) + "\n", encoding="utf-8")
    return 0


def _together(promised: Things, now: Things) -> Things:
    """By kind, all that the notebook has, in its order, followed by what is promised and gone."""
    together = {}
    for kind in {**now, **promised}:
        together[kind] = dict(now.get(kind, {}))
        for name, words in promised.get(kind, {}).items():
            together[kind].setdefault(name, words)
    return together


def _of_a_notebook(notebook: str, things: Things) -> list[str]:
    """Return the notebook's tables in TOML."""
    head = [f"[{notebook}]"]
    for kind in NAMES_ALONE:
        if things.get(kind):
            head.append(f"{kind} = {json.dumps(list(things[kind]))}")
    tables = ["\n".join(head)]
    for kind, of_a_kind in things.items():
        if of_a_kind and kind not in NAMES_ALONE:
            by_quoted_name = {_quoted(name): words for name, words in of_a_kind.items()}
            tables.append(_table(f"[{notebook}.{kind}]", by_quoted_name))
    return tables


def _table(head: str, items: dict[str, str]) -> str:
    """Return a table in TOML, with a line for each item."""
    lines = [f"{key} = {_quoted(words)}" for key, words in items.items()]
    return "\n".join([head, *lines])


def _quoted(text: str) -> str:
    """Return the text as a string of TOML, which JSON's strings are, too."""
    return json.dumps(text, ensure_ascii=False)


if __name__ == "__main__":
    sys.exit(main())
