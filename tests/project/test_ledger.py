"""`make ledger` counts lines of code, separately for each language."""

from tests.tools import ledger

PYTHON = '''"""What a module is for."""

LIMIT = 3  # a comment behind code


def rule() -> int:
    """A docstring
    of two lines."""
    # a comment
    return LIMIT
'''
SCRIPT = """// a comment
/* another,
   of two lines */

const url = 'https://example.org'; // behind code
"""


def test_code_is_counted_without_blank_lines_comments_and_docstrings(tmp_path):
    files = {
        "course_utils/core/say/rules.py": PYTHON,
        "course_utils/chapters/flops/check.py": PYTHON,
        "course_utils/engine/labs/screen.js": SCRIPT,
        "course_utils/stage/slides/deck.css": "/* dark */\n\nbody { margin: 0 }\n",
        "course_utils/stage/slides/deck.html": "<!-- a deck -->\n<p>One\n{# why\n   so #}</p>\n",
        "tests/core/test_rules.py": PYTHON,
        "tests/tools/where.py": PYTHON,
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    assert ledger.lines_by_part(tmp_path) == {
        ("core", "say"): {"Python": 3},
        ("chapters", "flops"): {"Python": 3},
        ("engine", "labs"): {"JavaScript": 1},
        ("stage", "slides"): {"CSS": 1, "HTML": 2},
        ("tests", "core"): {"Python": 3},
        ("tools", ""): {"Python": 3},
    }
