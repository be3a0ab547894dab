"""What every notebook promises its reader.

nbval runs the notebooks, test_checks tries their exercises, and the tests here read them.
"""

import ast
import base64
import io
import itertools
import re
import statistics
from collections.abc import Iterator
from pathlib import Path

import nbformat
import pytest
from nbconvert import HTMLExporter
from PIL import Image

from course_utils.chapters import labs
from course_utils.chapters.labs import CHAPTER_OF
from course_utils.core.say import listed
from course_utils.stage.notebook.about import about
from course_utils.stage.notebook.code import asks_in, is_guess
from course_utils.stage.notebook.outline import outline
from tests import NOTEBOOKS, ROOT
from tests.helpers.browser import assert_no_errors
from tests.helpers.notebooks import WIDGET, Exercise, code, exercises, prose, read
from tests.helpers.words import words_on
from tests.tools import glossary, minutes
from tests.tools.claims import numbers
from tests.tools.glossary import hosted_anchor
from tests.tools.minutes import count, main_path
from tests.tools.outputs import normalise

README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGE = (ROOT / "notebooks" / "INSTRUCTORS.md").read_text(encoding="utf-8")
OPENING = re.compile(
    r"# (?P<number>\d) · .*?(?:After this notebook|After it) you can\n\n(?P<aims>(?:- .+\n)+)"
    r"\nYou need .*? This notebook takes about \d+ minutes, your turns included, and "
    r"\*Beyond\* another \d+\. "
    r"No GPU.*?\n\n\*\*The question of this notebook\.\*\* .*\n\n\*The series: .*\*",
    re.DOTALL,
)
MACHINE_PATHS = re.compile(
    r"(?<![\w.])/(home|root|Users|tmp|work|usr|opt|private|var/folders)/|[A-Z]:\\"
)
ITALICS = re.compile(r"(?<!\*)\*([^*\n]+)\*(?!\*)")
BOLD = re.compile(r"(?<!\*)\*\*([^*\n]+)\*\*(?!\*)")
LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")
NETWORK = {"socket", "urllib", "http", "requests", "ftplib", "smtplib", "webbrowser"}
PAUSE = "a good place for a pause"
EXERCISES = exercises()

every_notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


def outputs(path: Path) -> list[nbformat.NotebookNode]:
    return [output for cell in code(path) for output in cell.outputs]


def called(tree: ast.AST) -> set[str]:
    """The functions that are called in it by a plain name."""
    calls = [node.func for node in ast.walk(tree) if isinstance(node, ast.Call)]
    return {function.id for function in calls if isinstance(function, ast.Name)}


# The way through a notebook.


@every_notebook
def test_it_opens_with_what_you_will_be_able_to_do_what_you_need_and_how_long_it_takes(path):
    opening = OPENING.fullmatch(prose(path)[0])
    assert opening, "one of its parts is missing, or stands elsewhere"
    assert opening["number"] == path.stem[1]
    assert opening["aims"].count("- ") >= 3
    known = about(read(path), path.name)
    assert known.minutes == minutes.count(path.stem, main_path(path)).minutes
    assert known.minutes_beyond == sum(part.minutes for part in minutes.beyond(path))


@every_notebook
def test_the_readme_and_the_first_cell_say_what_the_metadata_says(path):
    known = about(read(path), path.name)
    assert known.chapter in CHAPTER_OF.values()
    row = rf"^\| (\d) \| \[(.+)\]\(notebooks/{path.name}\) \| (.+) \| (.+) \| (.+) \|$"
    (in_readme,) = re.findall(row, README, re.MULTILINE)
    spent = f"{known.minutes}, and {known.minutes_beyond} beyond"
    assert in_readme == (path.stem[1], known.title, known.question, spent, ", ".join(known.needs))
    first = prose(path)[0]
    assert first.startswith(f"# {path.stem[1]} · {known.title}: ")
    _, _, from_needs_on = first.partition("\nYou need ")
    needed, _, takes = from_needs_on.partition(". This notebook takes about ")
    assert takes.startswith(
        f"{known.minutes} minutes, your turns included, "
        f"and *Beyond* another {known.minutes_beyond}. "
    )
    assert needed == listed(known.needs) or re.findall(r"\b\d\b", needed) == [*known.needs]


@every_notebook
def test_the_main_path_is_one_sitting_or_says_where_to_pause_and_half_is_in_the_readers_hands(path):
    walked = minutes.count(path.stem, main_path(path))
    if walked.minutes > 75:  # it says where to pause, about halfway
        before = list(itertools.takewhile(lambda cell: PAUSE not in cell.source, main_path(path)))
        at_pause = minutes.count(path.stem, before)
        assert 0.4 <= at_pause.exact / walked.exact <= 0.65
    assert walked.minutes <= 80
    assert walked.words >= 1000
    assert walked.guesses >= 6
    assert len(walked.turns) >= 3
    # Notebook 4's parameters have eight parts; a walk through it took twelve minutes.
    assert all(2 <= turn_min <= 12 for turn_min in walked.turns), walked.turns
    assert sum(turn_min > 9 for turn_min in walked.turns) <= 1, walked.turns


@every_notebook
def test_each_part_beyond_says_its_minutes(path):
    parts = list(minutes.beyond(path))
    for part in parts:
        assert part.stated == part.minutes, part.title
    on_the_path = [cell for cell in main_path(path) if cell.cell_type == "markdown"]
    beyond = "\n".join(prose(path)[len(on_the_path) :])
    titles = re.findall(r"^## (.+)$", beyond, re.MULTILINE)
    assert titles
    assert titles == [part.title for part in parts]


@every_notebook
def test_the_main_path_ends_with_three_takeaways_and_the_opening_question(path):
    last = main_path(path)[-1].source
    assert last.startswith("## Takeaways\n\n- ")
    assert len(re.findall(r"^- \*\*", last, re.MULTILINE)) == 3
    assert "opening question" in last


@every_notebook
def test_the_way_to_its_neighbours_stands_at_both_ends(path):
    here = NOTEBOOKS.index(path)
    neighbours = [NOTEBOOKS[n].name for n in (here - 1, here + 1) if 0 <= n < len(NOTEBOOKS)]
    for end in (prose(path)[0], prose(path)[-1]):
        series = end[end.index("*The series: ") :]
        assert re.findall(r"\]\((.+?)\)", series) == ["../README.md#the-notebooks", *neighbours]


@pytest.mark.parametrize(
    "path",
    [*NOTEBOOKS, *sorted(ROOT.glob("*.md")), *sorted(ROOT.glob("notebooks/*.md"))],
    ids=lambda path: path.relative_to(ROOT).as_posix(),
)
def test_every_link_within_the_project_leads_somewhere(path):
    if path.suffix == ".ipynb":
        text = "\n".join(prose(path))
    else:
        text = path.read_text(encoding="utf-8")
    links = [link for link in LINK.findall(text) if not link.startswith(("http:", "https:"))]
    pictures = re.findall(r"!\[[^\]]*\]\(([^)\s]+)\)", text)  # they may not be another server's
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    anchors = [hosted_anchor(heading) for heading in headings]
    for target in links + pictures:
        file, _, anchor = target.partition("#")
        assert (path.parent / file).exists(), target
        if anchor and not file:
            assert anchor in anchors, target


@every_notebook
def test_the_first_use_of_each_word_of_the_glossary_is_its_link_and_no_other(path):
    assert prose(path) == glossary.linked(prose(path)), "make glossary sets the links anew"


# What the reader does.


@every_notebook
def test_every_guess_stands_alone_and_is_soon_set_against_what_was_measured(path):
    parts = [part for part in outline(read(path)).parts if part.is_code]
    asked = []
    for index, part in enumerate(parts):
        if not part.is_guess:
            assert not asks_in(part.text), "a cell with ask does nothing else"
            continue
        (ask,) = asks_in(part.text)
        later = [reveal for after in parts[index + 1 : index + 4] for reveal in after.reveals]
        names = [reveal.name for reveal in later]
        assert names.count(ask.name) == 1, f"{ask.name} is revealed nowhere near, or twice"
        asked += ask.questions
    assert len(asked) == len(set(asked)), "the record knows a question by its name"
    all_revealed = sum(len(part.reveals) for part in parts)
    assert all_revealed == sum(part.is_guess for part in parts), "a guess that nobody is asked for"


AHEAD = re.compile(r'ask_ahead\("(.+?)", "(.+?)", notebook="(\w+)"\)')


def test_what_is_asked_ahead_is_asked_again_in_the_notebook_that_it_names():
    ahead = []
    asked = set()
    for path in NOTEBOOKS:
        chapter = about(read(path), path.name).chapter
        for cell in code(path):
            ahead += AHEAD.findall(cell.source)
            for ask in asks_in(cell.source):
                asked |= {(name, ask.unit, chapter) for name in ask.questions}
    assert len(ahead) == 2, "the two questions that open the course"
    assert set(ahead) <= asked


@every_notebook
def test_what_follows_a_turn_on_the_main_path_uses_what_the_reader_wrote(path):
    on_the_path = [cell.source for cell in main_path(path) if cell.cell_type == "code"]
    for exercise in exercises_in(path):
        if exercise.check not in on_the_path:
            continue
        used = re.fullmatch(r"(\w+) = check\.\w+\((\w+)\)\.(?:or_ours|kept)", exercise.check)
        assert used, exercise.check
        assert used[1] != used[2], "run a second time, the check would judge our answer"
        below = on_the_path[on_the_path.index(exercise.check) + 1 :]
        assert any(re.search(rf"\b{used[1]}\b", source) for source in below), exercise.check


def exercises_in(path: Path) -> list[Exercise]:
    return [exercise for exercise in EXERCISES if exercise.notebook == path]


@every_notebook
def test_every_exercise_is_a_stub_a_check_and_a_solution_that_leave_the_notebook_runnable(path):
    here = exercises_in(path)
    assert [int(exercise.number) for exercise in here] == list(range(1, len(here) + 1))
    assert len(here) >= 3
    assert len(here) == sum("### Your turn" in text for text in prose(path))
    for exercise in here:
        assert "..." in exercise.stub or "def my_loop" in exercise.stub  # a loop to be corrected
        assert re.match(r"check\.\w+\(", exercise.call)
        assert not re.search(
            r"[=:] \.\.\.|return \.\.\.", exercise.solution
        )  # x[..., 0] is an answer


def lab_cells(path: Path) -> list[tuple[str, str, str]]:
    """Each cell with a lab, whole or as a figure.

    For each: the lab's name, the text above the cell, and the code in four cells from it on.
    """
    parts = outline(read(path)).parts
    found = []
    for index, part in enumerate(parts):
        if part.figure:
            sources = [later.text for later in parts[index : index + 4] if later.is_code]
            found.append((part.figure.lab, parts[index - 1].text, "\n".join(sources)))
    return found


def words_on_lab(name: str) -> set[str]:
    return words_on(labs.lab_named(name))


@every_notebook
def test_the_buttons_that_the_text_and_the_code_name_are_on_the_lab(path):
    assert lab_cells(path)
    for name, invitation, code_ in lab_cells(path):
        _, _, explore = invitation.rpartition("## Explore")
        named = ITALICS.findall(explore)
        pressed = re.findall(r"\.(?:preset|start|act)\(\"([^\"]+)\"\)", code_)
        assert {*named, *pressed} <= words_on_lab(name), name


@every_notebook
def test_the_instructors_page_says_what_to_show_of_it_and_names_what_is_there(path):
    (part,) = re.findall(rf"^## {path.stem[1]} · .*?(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL)
    assert f"]({path.name})" in part
    for lecture in ("10 minutes", "25 minutes", "50 minutes", "In the room"):
        assert f"- **{lecture}:**" in part
    assert "- **Moves" in part

    sections = [words for words in BOLD.findall(part) if not words.endswith(":")]
    headings = re.findall(r"^##+ (.+)$", "\n".join(prose(path)), re.MULTILINE)
    assert len(sections) >= 5
    assert [words for words in sections if words not in headings] == []

    buttons = ITALICS.findall(part)
    on_labs: set[str] = set()
    for name, _, _ in lab_cells(path):
        on_labs.update(words_on_lab(name))
    assert len(buttons) >= 5
    assert [words for words in buttons if words not in on_labs] == []


# How a notebook is made.


@every_notebook
def test_cells_are_short_and_the_file_is_small(path):
    lengths = [len(cell.source.splitlines()) for cell in code(path)]
    assert max(lengths) <= 15
    assert statistics.median(lengths) <= 6
    assert path.stat().st_size < 500_000


@every_notebook
def test_no_cell_shows_its_reader_a_word_to_our_own_tools(path):
    """A comment such as `# fmt: skip` is for a formatter: a reader wonders what it does."""
    sources = [cell.source for cell in code(path)]
    assert not [source for source in sources if re.search(r"# *(fmt|noqa|ruff|type):?\b", source)]


@every_notebook
def test_it_uses_no_network_no_shell_and_no_path_of_a_machine(path):
    for cell in code(path):
        tree = ast.parse(cell.source)  # which fails on ! and %
        packages = {module.split(".")[0] for module in imported(tree)}
        assert not packages & NETWORK
        assert "hub.load" not in cell.source
    for cell in read(path).cells:
        shown = [text for output in cell.get("outputs", []) for text in texts_of(output)]
        assert not MACHINE_PATHS.search("\n".join([cell.source, *shown])), cell.source


def imported(tree: ast.AST) -> Iterator[str]:
    """The modules that a cell imports, or imports from."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module


def bound(tree: ast.AST) -> Iterator[str]:
    """Yield the names that a cell binds for the cells after it, imports and functions aside."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif not isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Lambda | ast.comprehension):
            yield from bound(node)


@every_notebook
def test_no_cell_takes_a_name_that_others_import(path):
    trees = [ast.parse(cell.source) for cell in code(path)]
    imports = [node for tree in trees for node in ast.walk(tree) if hasattr(node, "names")]
    names = {alias.asname or alias.name for node in imports for alias in node.names}
    assert names.isdisjoint(name for tree in trees for name in bound(tree))


def texts_of(output: nbformat.NotebookNode) -> Iterator[str]:
    """All that an output holds, but for its pictures."""
    yield str(output.get("text", ""))
    for kind, data in output.get("data", {}).items():
        if not kind.startswith("image/"):
            yield str(data)


@every_notebook
def test_no_figure_is_rounded_before_it_is_compared(path):
    """Two figures that differ could otherwise compare as "1 exactly"."""
    nodes = [node for cell in code(path) for node in ast.walk(ast.parse(cell.source))]
    functions = [node for node in nodes if isinstance(node, ast.FunctionDef)]
    rounding = {function.name for function in functions if "round" in called(function)}
    rounding.add("round")
    for node in nodes:
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Comparison":
            assert not called(node) & rounding, ast.unparse(node)


# What is stored of a notebook's run.


@every_notebook
def test_stored_outputs_are_those_of_one_run_from_top_to_bottom_and_of_no_machine(path):
    counts = [cell.execution_count for cell in code(path)]
    assert counts == list(range(1, len(counts) + 1))
    assert_no_errors(read(path))
    for cell in code(path):
        assert set(cell.metadata.get("tags", [])) <= {"nbval-ignore-output"}
    assert "widgets" not in read(path).metadata
    unchanged = nbformat.from_dict(read(path))
    normalise(unchanged)
    assert unchanged == read(path)


@every_notebook
def test_every_picture_carries_its_description_inside_and_beside(path):
    pictures = [output for output in outputs(path) if "image/png" in output.get("data", {})]
    assert pictures
    for output in pictures:
        words = output.metadata["image/png"]["alt"]
        assert len(words.split()) > 8
        assert output.data["text/plain"].startswith(words)
        png = io.BytesIO(base64.b64decode(output.data["image/png"]))
        assert Image.open(png).text["Description"] == words


@every_notebook
def test_every_lab_leaves_a_picture_where_no_kernel_runs(path):
    with_labs = []
    shown = []
    for cell in code(path):
        widgets = [output.data for output in cell.outputs if WIDGET in output.get("data", {})]
        is_field = is_guess(cell.source) or AHEAD.search(cell.source)
        if widgets and not is_field:
            with_labs.append(cell)
            shown += widgets
    assert shown
    page, _ = HTMLExporter().from_notebook_node(nbformat.v4.new_notebook(cells=with_labs))
    for data in shown:
        assert {"image/png", "text/plain"} <= set(data)
        assert "text/html" not in data
        assert data["image/png"].replace("\n", "") in page.replace("\n", "")


@every_notebook
def test_no_two_stored_rates_of_one_machine_and_dtype_contradict_each_other(path):
    """Notebook 4 shows this machine's rates and a recorded core's, which once differed 491-fold.

    Both had the same name, so a reader could only take them for the same CPU.
    """
    found: dict[tuple[str, str], list[float]] = {}
    for output in outputs(path):
        said = output.get("data", {}).get("text/plain", "")
        rates = re.findall(r"'(fp32|bf16|fp16|fp64)': '([\d.]+ [kMGTP]FLOP/s)'", said)
        for machine in re.findall(r"'(one core of [^']*?)(?:, recorded [^']*)?'", said):
            for dtype, rate in rates:
                _, number = next(numbers(rate))
                found.setdefault((machine, dtype), []).append(max(number.values))
    for machine_and_dtype, rates in found.items():
        assert max(rates) <= 1.5 * min(rates), machine_and_dtype
    assert found or path.stem != "04_flops"


@every_notebook
def test_the_first_picture_that_moves_comes_within_the_first_half_of_the_main_path(path):
    cells = main_path(path)
    parts = outline({"cells": cells}).parts
    first = next(at for at, part in enumerate(parts) if part.figure)
    before = count("before it", cells[:first])
    assert before.exact < count("the main path", cells).exact / 2
