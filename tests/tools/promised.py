"""Write into `promised.toml` what the notebooks have and it does not list yet: `python -m tests.tools.promised`.

What it says of a thing, such as a section's title, follows the notebook. Nothing is ever taken out.
"""

import json
import sys

from tests.helpers.promised import LIST, TAKEN_AWAY, Things, listed, taken_away, there

NAMES_ALONE = ("labs", "terms")  # which say all that there is to say


def main() -> int:
    head = LIST.read_text(encoding="utf-8").partition("\n[")[0].rstrip()
    promised, now = listed(), there()
    parts = [head]
    for notebook in {**now, **promised}:
        parts += _of_a_notebook(
            notebook, _together(promised.get(notebook, {}), now.get(notebook, {}))
        )
    for gone in taken_away():
        lines = [f"{key} = {_quoted(words)}" for key, words in gone.items()]
        parts.append("\n".join([f"[[{TAKEN_AWAY}]]", *lines]))
    LIST.write_text("\n\n".join(parts) + "\n", encoding="utf-8")
    return 0


def _together(promised: Things, now: Things) -> Things:
    """All that is there, in the notebook's order, and behind it what is promised and gone."""
    kinds = {**now, **promised}
    return {kind: {**now.get(kind, {}), **_gone(kind, promised, now)} for kind in kinds}


def _gone(kind: str, promised: Things, now: Things) -> dict[str, str]:
    is_there = now.get(kind, {})
    return {name: words for name, words in promised.get(kind, {}).items() if name not in is_there}


def _of_a_notebook(notebook: str, things: Things) -> list[str]:
    names = [f"{kind} = {json.dumps([*things[kind]])}" for kind in NAMES_ALONE if things.get(kind)]
    parts = ["\n".join([f"[{notebook}]", *names])]
    for kind, of_a_kind in things.items():
        if of_a_kind and kind not in NAMES_ALONE:
            lines = [f"{_quoted(name)} = {_quoted(words)}" for name, words in of_a_kind.items()]
            parts.append("\n".join([f"[{notebook}.{kind}]", *lines]))
    return parts


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


if __name__ == "__main__":
    sys.exit(main())
