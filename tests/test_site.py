"""The pages: whole, linked, without another host; and their labs the same under Pyodide as here, to the byte."""

import json
import os
import re
import shutil
import subprocess
from contextlib import suppress

import pytest

from course_utils import labs
from course_utils.desk.stubs import is_guess
from course_utils.labs.lab import Change, Lab, Progress
from course_utils.labs.panel import Panel
from course_utils.site import __main__, pages, runtime
from course_utils.site.host import NEEDS_A_KERNEL, Host
from tests import NOTEBOOKS, ROOT
from tests.notebooks import read
from tests.site import ALIVE, bring_or_skip, recorded_for, said
from tests.small_lab import Small, draw
from tests.test_labs_contract import states

# Of each lab, beside its presets; `make samepages` draws 300.
STATES = int(os.environ.get("PAGE_STATES", "12"))
RECORDED = {"where": "H100 SXM, by OpenXLA", "dtype": "bf16"}
# What a page can do beyond its views.
DONE = [
    ("matmul", [{"set": RECORDED}, {"start": "Sweep"}, {"step": False}, {"step": False}, {"start": "Time it"}, {"step": False}]),
    ("matmul", [{"act": "Clear history"}, {"set": {"where": "A100 SXM"}}, {"start": "Time it"}, {"step": False}]),
    ("optimizer", [{"start": "Race"}, {"step": False}, {"step": True}]),
    ("memory", [{"act": "Make it fit"}, {"set": {"width": "☃"}}, {"preset": "GPT-2 small?"}]),
    ("float", [{"pick": "fp16 3"}, {"set": {"number": "<b>"}}]),
]  # fmt: skip


@pytest.fixture(scope="module")
def found() -> dict[str, object]:
    return {name: recorded_for(name, states(name, STATES)) for name in ALIVE}


# Under Pyodide.


def test_every_live_lab_answers_under_pyodide_as_here_to_the_byte(tmp_path, found):
    bring_or_skip(tmp_path / "pyodide")
    if shutil.which("node") is None:
        pytest.skip("Pyodide is tried in Node.js, and node is not here.")
    asked = [
        (name, {"set": said(labs.lab_named(name), state)}) for name in ALIVE for state in states(name, STATES)
    ]
    asked += [(name, message) for name, messages in DONE for message in messages]
    (tmp_path / "course.zip").write_bytes(runtime.modules(found))
    (tmp_path / "asked").write_text("\n".join(json.dumps(one) for one in asked), encoding="utf-8")
    given = [
        ROOT / "tests/tools/pages.mjs",
        *(tmp_path / name for name in ("pyodide", "course.zip", "asked")),
    ]
    run = subprocess.run(["node", *given], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr[-2000:]
    hosts = {name: Host(labs.lab_named(name), found[name]) for name in ALIVE}
    theirs = run.stdout.splitlines()
    assert len(theirs) == len(asked)
    for (name, message), line in zip(asked, theirs, strict=True):
        assert json.loads(line) == json.loads(json.dumps(hosts[name].answer(message))), (name, message)
    assert len(set(theirs)) > len(asked) / 4


# The host, beside the panel.


@pytest.mark.parametrize("name", ["float", "einsum", "optimizer", "memory", "precision", "recompute"])
def test_a_page_shows_what_the_panel_shows(name, found):
    panel, host = getattr(labs, f"{name}_lab")(), Host(labs.lab_named(name), found[name])
    for label in panel.lab.presets:
        panel.preset(label)
        assert_alike(panel, host, host.answer({"preset": label}))
    for state in states(name, 4)[-4:]:
        panel.set(**state)
        assert_alike(panel, host, host.answer({"set": said(panel.lab, state)}))
    panel.close()


def assert_alike(panel: Panel, host: Host, shown: dict[str, object]) -> None:
    assert shown["mistake"] == panel.screen.mistake
    if not panel.screen.mistake:
        assert (shown["svg"], shown["meaning"]) == (panel.screen.svg, panel.screen.meaning)
    with suppress(ValueError):
        assert panel.lab.read(host.values) == panel.lab.read(panel.values)


def small_host(**jobs: object) -> Host:
    return Host(
        Lab("Small lab", Small, lambda asked, found: draw(asked.n), jobs=jobs, actions={"far": "far"})
    )


def test_a_mistake_or_a_fault_is_a_sentence_and_the_next_answer_recovers():
    host = small_host()
    assert host.answer({"set": {"n": 13}})["mistake"] == "13 is not allowed here; take 12."
    assert host.answer({"set": {"n": 14}})["mistake"].endswith("RuntimeError: a fault of the lab")
    assert host.answer({"set": {"n": 12}})["meaning"] == "n is 12"


def test_a_job_goes_on_step_by_step_can_be_stopped_and_tells_what_it_lacks():
    def count(asked, found):
        for n in range(3):
            yield Progress(n / 2, f"{n} of 2", Change({"n": n}))

    def torchs(asked, found):
        raise ModuleNotFoundError("No module named 'torch'")
        yield

    host = small_host(count=count, torchs=torchs, far="far")
    assert host.answer({"start": "count"})["running"]
    assert [host.answer({"step": False})["report"] for _ in range(2)] == ["0 of 2", "1 of 2"]
    stopped = host.answer({"step": True})
    assert (stopped["report"], stopped["meaning"], stopped["running"]) == ("Stopped. 2 of 2", "n is 2", False)
    host.answer({"start": "torchs"})
    failed = host.answer({"step": False})
    assert (failed["report"], failed["failed"], failed["running"]) == (NEEDS_A_KERNEL, True, False)
    for message in ({"start": "far"}, {"act": "far"}):
        assert host.answer(message)["mistake"] == NEEDS_A_KERNEL


# The pages.


@pytest.fixture(scope="module")
def written(found) -> dict[str, str]:
    texts = {f"{path.stem}.html": pages.notebook_page(path, dict(found)) for path in NOTEBOOKS}
    return texts | {"index.html": pages.contents_page(), "glossary.html": pages.glossary_page()}


def test_at_least_eight_labs_are_alive_and_each_is_on_a_page(written):
    text = "".join(written.values())
    assert sorted(set(re.findall(r'data-lab="(\w+)"', text))) == ALIVE
    assert len(ALIVE) >= 8
    assert text.count("A still picture of a lab.") == len(labs.__all__) - len(ALIVE)
    assert 'class="course-mistake"' not in text


def test_every_link_between_pages_leads_to_a_place_that_is_there(written):
    anchors = {name: set(re.findall(r'id="([^"]+)"', text)) for name, text in written.items()}
    for name, text in written.items():
        for link in re.findall(r'href="(?!https?:|data:|style)([^"]+)"', text):
            page, _, anchor = link.partition("#")
            assert not anchor or anchor in anchors[page or name], (name, link)
            assert (page or name) in written, (name, link)
    for path in NOTEBOOKS:
        linked = path.read_text(encoding="utf-8").count("(GLOSSARY.md#")
        assert written[f"{path.stem}.html"].count('href="glossary.html#') == linked, path.stem


def test_nothing_is_asked_of_another_host_and_formulas_are_drawn(written):
    for name, text in written.items():
        assert set(re.findall(r'\bsrc="(?!data:)([^"]*)"', text)) <= {"lab.js", "page.js"}, name
        assert "$$" not in text
        assert str(ROOT) not in text
    assert 'class="formula"' in written["01_floats.html"]
    assert "url(" not in pages.style()


def test_what_follows_a_guess_is_folded_and_nothing_says_that_it_was_not_tried(written):
    for path in NOTEBOOKS:
        text = written[f"{path.stem}.html"]
        code = [cell for cell in read(path).cells if cell.cell_type == "code"]
        guesses = sum(is_guess(cell, code[at + 1 :]) for at, cell in enumerate(code))
        assert text.count('<details class="fold">') == guesses >= 3, path.stem
        depth = 0
        for tag in re.findall(r"</?details", text):
            depth += 1 if tag == "<details" else -1
            assert depth >= 0
        assert depth == 0
        assert "Not attempted yet" not in text


def test_without_npm_it_says_so_in_a_sentence(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(__main__, "FOLDER", tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert __main__.main() == 1
    assert capsys.readouterr().err.strip() == runtime.NEEDS_NPM


def test_the_browser_gets_what_labs_stand_on_and_nothing_that_needs_torch(found, tmp_path):
    archive = tmp_path / "course.zip"
    archive.write_bytes(runtime.modules(found))
    assert archive.read_bytes() == runtime.modules(found)
    shutil.unpack_archive(archive, tmp_path / "there")
    text = "".join(path.read_text(encoding="utf-8") for path in (tmp_path / "there").rglob("*.py"))
    assert not re.search(r"^(import|from) (torch|numpy|ipywidgets)", text, re.MULTILINE)
