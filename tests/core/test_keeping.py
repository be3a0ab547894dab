"""The reader's accountant: what is kept in it, what is not, and what the next notebook gets."""

import ast
import errno
import inspect
import io
import json
import os
import re
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import redirect_stdout
from types import ModuleType
from unittest.mock import Mock

import pytest
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

import course_utils.core.accountant as course
from course_utils.chapters import accountant
from course_utils.chapters.accountant import readers_file
from course_utils.core import keeping
from course_utils.core.accountant_file import (
    ADDED,
    GENERAL,
    MARK,
    OURS,
    TERMS,
    ours,
    statements,
    theirs,
    with_term,
)
from course_utils.engine.judging import function
from course_utils.stage.notebook.about import about
from course_utils.stage.notebook.files import read
from course_utils.stage.notebook.outline import turns
from course_utils.stage.workspace import contents, copies, own_terms
from course_utils.stage.workspace.accountant import renewed
from tests import NOTEBOOKS, ROOT
from tests.helpers.workspace import started
from tests.project.test_house import imported

GPT2 = {"n_layer": 12, "n_embd": 768, "n_head": 12, "vocab_size": 50257, "n_positions": 1024}
SMALL = course.Model(2, 8, 2, 1, 4, 16, 100, 32)
CASES = {
    "days": (9e9, 2, 1e4, 0.5),
    "matrices": (SMALL,),
    "parameters": (SMALL,),
    "interval": (60, 1e4),
    "window_pairs": (11, 4),
}
DAYS = "def my_days(flops, gpus, peak, share):\n    return flops / gpus / peak / share / 86_400"
INTERVAL = """def my_interval(save, failure):  # ünlike ours
    if save > 1:
        return 2 * my_interval(save / 4, failure)
    return (2 * save * failure) ** 0.5"""
NAMES = "Model, account, days, forward_flops, matrices, parameters"
GET = f"from course_utils.chapters.accountant import {NAMES}"
PAIRS = """def my_window_pairs(tokens, window):
    return sum(min(query, window) for query in range(1, tokens + 1))"""
KEPT = "It is kept in my_notebooks/accountant.py."
MISSING = "The course stands in for terms that you have not written yet:"


class Workspace:
    """A workspace with the accountant alone, and a kernel in it."""

    def __init__(self, root, checks):
        self.course = root / "notebooks"
        self.mine = root / "my_notebooks"
        self.file = self.mine / "accountant.py"
        quiet = Config(HistoryManager={"enabled": False})
        self.shell = InteractiveShell(config=quiet, ipython_dir=str(root / "ipython"))
        self.run(f"import {checks} as check")

    def run(self, *cells):
        """What the cells show."""
        with redirect_stdout(io.StringIO()) as said:
            for cell in cells:
                self.shell.run_cell(cell).raise_error()
        return said.getvalue()

    def keep(self, text, name):
        return self.run(text, f"kept = check.{name}(my_{name}).kept")

    def __getitem__(self, name):
        return self.shell.user_ns[name]

    def start(self, **how):
        """What a start of the server says."""
        return list(copies.bring_up_to_date(self.course, self.mine, **how))


@pytest.fixture
def workspace(tmp_path, monkeypatch):
    """A workspace with a check for some terms, by one case each, which notes that it was asked."""
    checks = ModuleType("given_checks")
    checks.asked = []
    for name, case in CASES.items():

        def answers(*case, name=name):
            checks.asked.append(name)
            yield getattr(course, name)(*case), "That is it."

        answers.__name__ = name
        # These answers take any case, so their parameters are no words for it.
        judged = function([case], tolerance=1e-9, case_words=lambda *_: "")
        setattr(checks, name, judged(answers))
    monkeypatch.setitem(sys.modules, checks.__name__, checks)
    monkeypatch.setattr(readers_file, "term_check", lambda name: getattr(checks, name))
    (tmp_path / "notebooks").mkdir()
    monkeypatch.setattr(copies, "COURSE", tmp_path / "notebooks")
    (tmp_path / "course_utils").symlink_to(ROOT / "course_utils")
    workspace = Workspace(tmp_path, "given_checks")
    assert workspace.start() == []
    monkeypatch.chdir(workspace.mine)
    readers_file._show.cache_clear()
    return workspace


def edit(file, *changes):
    """What a reader or an author does in an editor."""
    text = file.read_text(encoding="utf-8")
    for old, new in changes:
        assert text.count(old) == 1
        text = text.replace(old, new)
    file.write_text(text, encoding="utf-8")


def by_hand(name, *changes):
    """The edit by which a reader writes the course's term in place of the stub, with changes."""
    text = statements(OURS.read_text(encoding="utf-8"))[name].lstrip("\n")
    for old, new in changes:
        assert text.count(old) == 1
        text = text.replace(old, new)
    return statements(ours())[name].lstrip("\n"), text


def with_general(*names):
    """The edits by which a reader writes these terms, and what in the file is general of them."""
    general = [name for name, term in GENERAL.items() if term in names]
    return [by_hand(name) for name in (*names, *general)]


def printed(program):
    """What a Python without packages prints of the file: the account, and what is missing.

    The course lies beside the file's folder.
    """
    account, _, missing = run(program).stdout.partition("\n\n")
    return account, missing


def run(program):
    config = program.parent / "config.json"
    config.write_text(json.dumps(GPT2 | {"model_type": "gpt2"}))
    command = [sys.executable, "-I", "-S", program, config, "--exact"]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_courses_own_is_one_file_of_plain_python_and_each_term_can_become_the_readers():
    text = OURS.read_text(encoding="utf-8")
    assert imported(OURS) == set()
    assert theirs(text) == [*TERMS, *ADDED]
    assert theirs(ours()) == []


def test_on_day_one_the_file_has_the_terms_names_and_none_of_their_solutions(workspace):
    stubs = statements(workspace.file.read_text(encoding="utf-8"))
    for name in TERMS:
        course_term = ast.parse(statements(OURS.read_text(encoding="utf-8"))[name]).body[0]
        stub = ast.parse(stubs[name]).body[0]
        assert ast.dump(stub.args) == ast.dump(course_term.args)
        assert ast.get_docstring(stub) == ast.get_docstring(course_term)
        arguments = ", ".join(inspect.signature(getattr(course, name)).parameters)
        _, call = stub.body
        assert ast.unparse(call) == f"return course('{name}')({arguments})"
    columns = {len(line) for line in workspace.file.read_text(encoding="utf-8").split("\n")}
    assert max(columns) <= 100


def test_what_is_general_of_a_term_is_in_the_file_as_soon_as_the_term_is_theirs(workspace):
    """On day one, `any_step_flops` would show how `step_flops` counts."""
    whole = statements(OURS.read_text(encoding="utf-8"))
    text = workspace.file.read_text(encoding="utf-8")
    before, _ = printed(workspace.file)
    for name, term in GENERAL.items():
        calls = {node.id for node in ast.walk(ast.parse(statements(text)[name])) if is_name(node)}
        assert calls == {"course", *inspect.signature(getattr(course, name)).parameters}
        text = with_term(text, term, f"\n\n{whole[term].lstrip()}")
        assert statements(text)[name] == whole[name]
        workspace.file.write_text(text, encoding="utf-8")
        assert printed(workspace.file)[0] == before, "it is a program at any time"


def test_in_a_file_from_before_what_is_general_stays_where_the_term_is_theirs():
    whole = statements(OURS.read_text(encoding="utf-8"))
    original = statements(ours()) | {name: whole[name] for name in GENERAL}
    own = original | {"parameters": whole["parameters"]}
    text = renewed(ours(), "\n".join(original.values()), "\n".join(own.values()))
    now = statements(text)
    assert now["stored_parameters"] == whole["stored_parameters"]
    stubs = statements(ours())
    for name in ("active_forward_flops", "any_step_flops"):
        assert now[name] == stubs[name] != whole[name]
    of_all = original | {name: whole[name] for name in TERMS}
    text = renewed(ours(), "\n".join(original.values()), "\n".join(of_all.values()))
    assert "course(" not in text, "all terms are theirs, and the file needs the course no more"


def is_name(node):
    return isinstance(node, ast.Name)


def test_it_says_which_terms_are_missing_and_which_notebook_asks_for_them(workspace):
    account, missing = printed(workspace.file)
    shutil.copy(OURS, workspace.mine / "course.py")
    assert printed(workspace.mine / "course.py") == (f"{account}\n", ""), "the course's terms count"
    term_of_check = {f"{accountant.CHAPTER_OF[name]}.{name}": name for name in TERMS}
    expected = [MISSING]
    for number, path in enumerate(NOTEBOOKS, 1):
        kept = [turn.check for turn in turns(read(path)) if turn.check in term_of_check]
        names = ", ".join(term_of_check[check] for check in kept)
        title = about(read(path), path.name).title
        expected.append(f"  {names} (notebook {number}, {title})")
    assert missing.splitlines() == expected
    edit(workspace.file, *with_general(*TERMS))
    assert printed(workspace.file) == (f"{account}\n", "")


def test_without_the_course_a_sentence_names_what_is_missing_until_nothing_is(workspace):
    (workspace.mine.parent / "course_utils").unlink()
    done = run(workspace.file)
    assert done.returncode == 2
    assert done.stdout == ""
    last = done.stderr.splitlines()[-1]
    assert "The course is not here, and has to stand in for terms that you have not written" in last
    assert "days, parameters, forward_flops (notebook 4, FLOPs)" in last
    edit(workspace.file, *with_general(*[name for name in TERMS if name != "storage_bytes"]))
    account, missing = printed(workspace.file)
    assert "124,439,808" in account, "no line of the account needs storage_bytes"
    assert missing.splitlines() == [MISSING, "  storage_bytes (notebook 2, Tensors)"]


def test_with_the_last_term_the_file_is_the_courses_but_for_the_readers_terms(workspace):
    edit(workspace.file, *[by_hand(name) for name in TERMS if name != "days"])
    said = workspace.keep(DAYS, "days")
    assert f"{KEPT} All terms are yours: it needs the course no more." in said
    text = workspace.file.read_text(encoding="utf-8")
    own = statements(OURS.read_text(encoding="utf-8"))
    own["days"] = f"\n\n{DAYS.replace('my_', '')}"
    own |= {name: f"{own[name]}  {MARK}" for name in ADDED}
    assert text == "\n".join(own.values())
    newer = ours().replace("RESTART_S = 300", "RESTART_S = 900")
    assert renewed(newer, ours(), text) == text.replace("RESTART_S = 300", "RESTART_S = 900")


def test_a_right_answer_is_kept_under_the_terms_name_in_a_file_that_is_a_program_at_any_time(
    workspace,
):
    before, _ = printed(workspace.file)
    assert "124,439,808" in before
    expected = ours()
    for name, text in (("days", DAYS), ("interval", INTERVAL)):
        assert f"Right. That is it. {KEPT}" in workspace.keep(text, name)
        assert workspace["kept"] is workspace[f"my_{name}"]
        begin = expected.index(f"def {name}(")
        end = expected.index("\n\n\n", begin)
        expected = expected[:begin] + text.replace("my_", "") + expected[end:]
        assert workspace.file.read_text(encoding="utf-8") == expected
        account, missing = printed(workspace.file)
        assert account == before
        assert MISSING in missing
        assert name not in re.findall(r"\w+", missing)


def test_what_2026_adds_is_whole_until_it_is_the_readers_and_is_counted_apart(workspace):
    before = statements(workspace.file.read_text(encoding="utf-8"))
    whole = statements(OURS.read_text(encoding="utf-8"))
    for name in ADDED:
        assert before[name] == f"{whole[name]}  {MARK}", "the file need not call the course for it"
    said = workspace.keep(PAIRS, "window_pairs")
    assert f"{KEPT} Yours now: 0 of 13 terms, and 1 of 5 that 2026 adds." in said
    workspace.keep(DAYS, "days")
    after = statements(workspace.file.read_text(encoding="utf-8"))
    heading, _, _ = before["window_pairs"].partition("def ")
    assert after["window_pairs"] == heading + PAIRS.replace("my_", "")
    assert after["data_parallel_bytes"] == before["data_parallel_bytes"]

    newer = ours().replace("RESTART_S = 300", "RESTART_S = 900")
    text = workspace.file.read_text(encoding="utf-8")
    assert renewed(newer, ours(), text) == text.replace("RESTART_S = 300", "RESTART_S = 900")
    workspace.run("from course_utils.chapters.accountant import pairs, window_pairs")
    assert file_of(workspace["window_pairs"]) == str(workspace.file)
    assert workspace["pairs"](11, 4, causal=True) == 38
    assert workspace["pairs"].__globals__["window_pairs"] is workspace["window_pairs"]


def test_with_all_terms_of_2026_alone_the_file_still_needs_the_course(workspace):
    edit(workspace.file, *[by_hand(name) for name in ADDED])
    assert theirs(workspace.file.read_text(encoding="utf-8")) == list(ADDED)
    assert MISSING in printed(workspace.file)[1]


def before_2026():
    """The file as it was before it had terms of 2026, of which one was a function already."""
    texts = statements(ours())
    for name in ADDED[:-1]:
        del texts[name]
    former = "def data_parallel_bytes(numbers, dtype, gradient_dtype, gpus, stage):\n    return 0"
    texts["data_parallel_bytes"] = f"\n\n{former}"
    return "\n".join(texts.values())


def test_a_file_from_before_gets_what_2026_adds_and_nothing_in_it_passes_for_the_readers(
    workspace,
):
    old = before_2026()
    for path in (workspace.file, workspace.mine / ".course" / "accountant.py"):
        path.write_text(old, encoding="utf-8")
    assert KEPT in workspace.keep(DAYS, "days")
    text = workspace.file.read_text(encoding="utf-8")
    assert theirs(text) == ["days"]
    assert "`make lab` brings an old file up to date" in workspace.keep(PAIRS, "window_pairs")
    assert workspace.file.read_text(encoding="utf-8") == text
    assert workspace.run(GET) == ""

    workspace.start()
    days = statements(text)["days"]
    assert workspace.file.read_text(encoding="utf-8") == "\n".join(
        (statements(ours()) | {"days": days}).values()
    )
    assert KEPT in workspace.keep(PAIRS, "window_pairs")


def test_a_term_is_replaced_by_another_right_answer_and_not_by_a_wrong_one(workspace):
    workspace.keep(DAYS, "days")
    workspace.keep(INTERVAL, "interval")
    kept = workspace.file.read_text(encoding="utf-8")
    asked = sys.modules["given_checks"].asked
    asked.clear()
    said = workspace.keep(DAYS.replace("86_400", "24"), "days")
    assert "Not yet." in said
    assert "What follows uses ours." in said
    assert workspace.file.read_text(encoding="utf-8") == kept

    indented = f"if True:\n{DAYS}".replace("\n", "\n    ")
    marked = indented.replace("share):", f"share):  {MARK}")
    assert KEPT in workspace.keep(marked.replace("86_400", "(24 * 3600)"), "days")
    assert "interval" not in asked, "the others were right, and are still"
    expected = kept.replace("share / 86_400", "share / (24 * 3600)")
    assert workspace.file.read_text(encoding="utf-8") == expected


PER = DAYS.replace("/ share", "* 1 * (1 / per(1)) / share")
DAY = DAYS.replace("share)", "share, day=day)", 1)
INSIDE = f"def made(day):\n  {DAYS.replace('86_400', 'day')}\n  return my_days"
IN_CLASS = f"class BYTES:\n    day = 86400\n{DAYS.replace('86_400', 'BYTES.day')}"
NUMPY = "import numpy\ndef my_days(f, *x):\n    return f / numpy.prod(x) / 86400"
LAMBDA = "my_days = lambda f, *x: f / __import__('math').prod(x) / 86400"
NOT_KEPT = {
    LAMBDA: "as one function, def days(",
    NUMPY: "name 'numpy' is not defined",
    f"per = (1).__truediv__\n{PER}": "'per' is not defined",
    f"day = 86400\n{DAY}": "'day' is not defined",
    f"{INSIDE}\nmy_days = made(86400)": "'day'",
    f"import functools\n@functools.cache\n{DAYS}": "without a decorator",
    f"exec({DAYS!r})": "write it in a cell",
    f"import functools\n{DAYS}\nmy_days = functools.partial(my_days)": "as one function",
    IN_CLASS: "Put what it takes from the notebook",
}


@pytest.mark.parametrize("text", NOT_KEPT)
def test_what_works_in_the_notebook_alone_is_right_and_not_kept_and_is_told_why(workspace, text):
    workspace.keep(INTERVAL, "interval")
    before = workspace.file.read_text(encoding="utf-8")
    sys.modules["given_checks"].asked.clear()
    said = workspace.keep(text, "days")
    assert "Right. That is it. But not kept in my_notebooks/accountant.py: " in said
    assert NOT_KEPT[text] in said
    assert workspace["kept"] is workspace["my_days"]
    assert workspace.file.read_text(encoding="utf-8") == before
    assert KEPT in workspace.keep(DAYS, "days")
    assert "interval" not in sys.modules["given_checks"].asked


@pytest.mark.parametrize("spoilt", [b"def days(:", b"\xff", b"-" * 100_000 + b"1", None])
def test_a_file_that_cannot_be_used_stays_and_all_is_ours_with_a_sentence(workspace, spoilt):
    workspace.file.unlink()
    if spoilt is None:
        workspace.file.mkdir()
    else:
        workspace.file.write_bytes(spoilt)
    assert "But not kept in my_notebooks/accountant.py: " in workspace.keep(DAYS, "days")
    assert workspace.run(GET).count("Not used. my_notebooks/accountant.py: ") == 1
    assert workspace["days"] is course.days
    judge = own_terms.Judge(workspace.mine)
    assert "accountant.py is not used: " in own_terms.sentences(
        "", own_terms.own(workspace.mine, judge)
    )
    (workspace.mine / ".course" / "accountant.py").write_text("pass")  # what the course had before
    (said,) = workspace.start()
    stays = "my_notebooks/accountant.py stays as it is, without what is new in the course: "
    assert said.startswith(stays)
    if spoilt is None:
        assert workspace.file.is_dir()
    else:
        assert workspace.file.read_bytes() == spoilt


def test_the_next_notebook_gets_what_is_right_in_the_file_and_the_account_counts_by_it(workspace):
    asked = sys.modules["given_checks"].asked
    workspace.keep(DAYS, "days")
    edit(
        workspace.file,
        by_hand("matrices", ("def matrices(m):", "def matrices(m):\n    SEEN.append(m)")),
        by_hand("parameters"),
        ("def tensor_bytes", "SEEN = []\n\n\ndef tensor_bytes"),
    )
    asked.clear()
    for _ in range(2):
        assert workspace.run(GET) == ""
        assert sorted(asked) == ["days", "matrices", "parameters"], "judged once for a text"
        readers_file._space.cache_clear()  # as in another notebook's kernel
    assert workspace["Model"] is course.Model
    assert file_of(workspace["days"]) == str(workspace.file)
    assert file_of(workspace["parameters"]) == str(workspace.file)

    seen = workspace["matrices"].__globals__["SEEN"]
    seen.clear()
    assert workspace["parameters"](SMALL) == course.parameters(SMALL)  # the reader's
    assert seen == [SMALL], "it calls the reader's matrices"
    seen.clear()
    assert workspace["forward_flops"](SMALL, 1, 2) == course.forward_flops(SMALL, 1, 2)  # ours
    assert seen == [SMALL], "it calls the reader's matrices"

    asked = vars(course.parser().parse_args(["config.json"]))
    asked["recipe_name"] = asked.pop("recipe")
    wanted = inspect.signature(course.account).parameters.keys() - {"m"}
    options = {name: asked[name] for name in wanted}
    assert workspace["account"](SMALL, **options) == pytest.approx(course.account(SMALL, **options))
    assert workspace["account"].__globals__["days"] is workspace["days"]


def file_of(function):
    return function.__code__.co_filename


def test_what_was_changed_to_something_wrong_is_ours_with_a_sentence_until_it_is_mended(workspace):
    workspace.keep(DAYS, "days")
    wrong = ("(queries, m.width)", "(queries, 2 * m.width)")
    edit(workspace.file, by_hand("matrices", wrong))
    for _ in range(2):  # and when it is remembered
        said = workspace.run(GET)
        assert said.count("Not used. ") == 1
        assert "matrices in my_notebooks/accountant.py is not right as it stands there." in said
        assert "matrices gave" in said
        assert workspace["parameters"](SMALL) == course.parameters(SMALL)
        assert file_of(workspace["days"]) == str(workspace.file)
        readers_file._space.cache_clear()
        readers_file._show.cache_clear()
    edit(workspace.file, wrong[::-1])
    assert workspace.run(GET) == ""
    assert file_of(workspace["matrices"]) == str(workspace.file)
    edit(workspace.file, ("import math", "import math, no_such_module"))
    assert "the file stops with ModuleNotFoundError" in workspace.run(GET)
    assert workspace["days"] is course.days
    with pytest.raises(ImportError):
        workspace.run("from course_utils.chapters.accountant import no_term")


def test_an_import_of_what_is_kept_loads_no_torch(workspace):
    workspace.keep(DAYS, "days")
    code = """import sys
from course_utils.chapters.accountant import days
print(days.__code__.co_filename, *sys.modules)"""
    run = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": str(OURS.parents[2])},
    )
    origin, *loaded = run.stdout.split()
    assert origin == str(workspace.file)
    for name in ("torch", "numpy", "IPython", "course_utils.engine.judging"):
        assert name not in loaded


def test_without_a_workspace_nothing_is_written_and_all_is_ours(workspace, monkeypatch):
    monkeypatch.chdir(workspace.course)
    said = workspace.keep(DAYS, "days")
    assert "Right. That is it." in said
    assert "kept" not in said
    assert workspace.run(GET) == ""
    assert workspace["days"] is course.days
    assert list(workspace.course.iterdir()) == []


def test_a_comment_that_looks_like_the_term_does_not_swallow_it(workspace):
    edit(workspace.file, ("def days(", "# def days(flops): return 0\ndef days("))
    assert KEPT in workspace.keep(DAYS, "days")
    text = workspace.file.read_text(encoding="utf-8")
    assert theirs(text) == ["days"]
    assert "# def days(flops): return 0\ndef days(flops, gpus, peak, share):\n" in text
    assert "124,439,808" in printed(workspace.file)[0]


def test_a_full_disk_leaves_the_file_as_it_was_and_a_deleted_one_begins_anew(
    workspace, monkeypatch
):
    full = OSError(errno.ENOSPC, "No space left on device")
    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", Mock(side_effect=full))
        said = workspace.keep(DAYS, "days")
    assert "But not kept in my_notebooks/accountant.py: No space left on device." in said
    assert workspace.file.read_text(encoding="utf-8") == ours()
    workspace.keep(INTERVAL, "interval")
    edit(workspace.file, ("def days(", "def hours("))
    assert (
        "it has no term days. `make lab` brings an old file up to date; or delete it"
        in workspace.keep(DAYS, "days")
    )
    workspace.file.unlink()
    assert workspace.run(GET) == ""
    assert workspace["days"] is course.days
    workspace.keep(DAYS, "days")
    assert theirs(workspace.file.read_text(encoding="utf-8")) == ["days"]
    workspace.file.unlink()
    copies.make_missing(workspace.mine, workspace.course)
    assert workspace.file.read_text(encoding="utf-8") == ours()


def test_two_notebooks_that_keep_at_once_keep_both(workspace, monkeypatch):
    workspace.run(DAYS, INTERVAL)
    checks = sys.modules["given_checks"]

    def keep(name):
        def slow_check(answer):
            time.sleep(0.1)
            return getattr(checks, name)(answer)

        return keeping.keep(name, workspace[f"my_{name}"], slow_check)

    names = ["days", "interval"]
    with ThreadPoolExecutor(2) as pool:
        said = list(pool.map(keep, names))
    assert sorted(said) == [f"{KEPT} Yours now: {terms} of 13 terms." for terms in (1, 2)]
    assert theirs(workspace.file.read_text(encoding="utf-8")) == names


def test_a_new_course_renews_what_is_its_own_and_the_readers_terms_lines_and_comments_stay(
    workspace, monkeypatch
):
    workspace.keep(DAYS, "days")
    helper = """HOURS = 24


# How many.
def helper():
    return HOURS


# By name.
def recipe"""
    edit(
        workspace.file,
        ("import math\n", "import math\nimport statistics\n"),
        ("def recipe", helper),
        ("    say_what_is_missing()\n", "    say_what_is_missing()\n# The end.\n"),
    )
    assert workspace.start() == []
    changes = [
        ("RESTART_S = 300", "RESTART_S = 900"),
        ("import argparse\n", "import argparse\nimport bisect\n"),
        ("    return math.sqrt(2", "    return 1.0 * math.sqrt(2"),
    ]
    in_the_readers_term = ("    seconds = flops / (gpus", "    seconds = 1 * flops / (gpus")
    newer = workspace.course / OURS.name
    shutil.copy(OURS, newer)
    edit(newer, *changes, in_the_readers_term)
    monkeypatch.setattr("course_utils.core.accountant_file.OURS", newer)
    expected = workspace.file.read_text(encoding="utf-8")
    assert workspace.start(in_use=True) == []
    assert workspace.file.read_text(encoding="utf-8") == expected
    (said,) = workspace.start()
    for old, new in changes:
        expected = expected.replace(old, new)
    assert "accountant.py is brought up to date, and what is yours is in it. As it was" in said
    assert workspace.file.read_text(encoding="utf-8") == expected
    edit(
        workspace.file,
        ("RESTART_S = 900", "RESTART_S = 60, 31"),
        ("def main():", "def principal():"),
    )
    edit(newer, ("import bisect\n", ""))
    workspace.start()
    edited = set()
    for path in (workspace.mine / "earlier").iterdir():
        edited.add("RESTART_S = 60, 31" in path.read_text(encoding="utf-8"))
    assert edited == {False, True}
    text = workspace.file.read_text(encoding="utf-8")
    assert "import bisect" not in text
    assert "RESTART_S = 900" in text
    assert theirs(text) == ["days"]
    assert "124,439,808" in printed(workspace.file)[0]


def test_a_start_of_the_server_reads_the_file_and_does_not_run_it(workspace):
    workspace.keep(DAYS, "days")
    edit(workspace.file, ("import math\n", "import math\n\nopen('ran', 'w')\n"))
    assert started(workspace.mine.parent).said == []
    assert contents.where_it_opens("accountant.py", workspace.mine) == "my_notebooks/accountant.py"
    assert not (workspace.mine / "ran").exists()
