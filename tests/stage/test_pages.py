"""The pages are whole and linked, and need no other host.

Their labs answer under Pyodide as they do here, to the byte.
"""

import json
import os
import re
import shutil
import subprocess
from html import unescape

import pytest
from bs4 import BeautifulSoup

from course_utils.core.say import typed
from course_utils.core.say.closeness import how_many_in
from course_utils.engine.labs.lab import Change, Progress
from course_utils.engine.labs.session import NEEDS_A_KERNEL, Session
from course_utils.stage.notebook.outline import outline
from course_utils.stage.pages import __main__, languages, render, runtime
from course_utils.stage.pages.host import answer_of, session_of
from tests import NOTEBOOKS, ROOT
from tests.engine.test_labs_contract import states
from tests.helpers.notebooks import read
from tests.helpers.pages import ALIVE, bring_or_skip, precomputed_for
from tests.helpers.small_lab import small

# States that are drawn for each lab, beside its presets; `make samepages` draws 300.
STATES = int(os.environ.get("PAGE_STATES", "12"))
RECORDED = {"where": "H100 SXM, by OpenXLA", "dtype": "bf16"}
STEP = {"step": []}
# Messages of a page, beyond those that set a state.
DONE = [
    ("matmul", {"set": [RECORDED]}),
    ("matmul", {"start": ["Sweep"]}),
    ("matmul", STEP),
    ("matmul", STEP),
    ("matmul", {"start": ["Time it"]}),
    ("matmul", STEP),
    ("matmul", STEP),
    ("matmul", {"act": ["Clear history"]}),
    ("matmul", {"start": ["Fit"]}),
    ("matmul", STEP),
    ("matmul", {"move": ["where", 0, "A100 SXM"]}),
    ("matmul", STEP),
    ("timeline", {"move": ["batch", 1, "☃"]}),
    ("timeline", {"preset": ["what do scores take?"]}),
    ("float", {"pick": ["fp16:3"]}),
    ("float", {"move": ["number", 0, "<b>"]}),
]


@pytest.fixture(scope="module")
def found() -> dict[str, object]:
    return {name: precomputed_for(name, states(name, STATES)) for name in ALIVE}


# Under Pyodide.


def test_every_live_lab_answers_under_pyodide_as_here_to_the_byte(tmp_path, found):
    bring_or_skip(tmp_path / "pyodide")
    if shutil.which("node") is None:
        pytest.skip("Pyodide is tried in Node.js, and node is not here.")
    asked = [(name, {"set": [state]}) for name in ALIVE for state in states(name, STATES)]
    asked += DONE
    (tmp_path / "course.zip").write_bytes(runtime.modules(found))
    lines = [json.dumps(message) for message in asked]
    (tmp_path / "asked").write_text("\n".join(lines), encoding="utf-8")
    script = ROOT / "tests/tools/pages.mjs"
    given = [tmp_path / name for name in ("pyodide", "course.zip", "asked")]
    run = subprocess.run(["node", script, *given], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr[-2000:]
    sessions = {name: session_of(name, found[name]) for name in ALIVE}
    answers = run.stdout.splitlines()
    for (name, message), answer in zip(asked, answers, strict=True):
        ours = json.dumps(answer_of(sessions[name], message))
        assert json.loads(answer) == json.loads(ours), (name, message)
    assert len(set(answers)) > len(asked) / 4


# The session, as a page has it.


def page_of(**jobs: object) -> Session:
    """A session of the small lab without a kernel, where `far` needs one."""
    lab = small(jobs=jobs, actions={"far": lambda n: None}, needs_kernel={"far"})
    return Session(lab, lambda asked, found: found)


def test_a_mistake_or_a_fault_is_a_sentence_and_the_next_answer_recovers():
    session = page_of()
    mistake, fault, right = [answer_of(session, {"set": [{"n": n}]}) for n in (13, 14, 12)]
    assert mistake["mistake"] == "13 is not allowed here; take 12."
    assert fault["mistake"].endswith("RuntimeError: a fault of the lab")
    assert right["mistake"] == ""
    assert right["meaning"] == "n is 12"


def test_a_job_goes_on_step_by_step_can_be_stopped_and_what_needs_a_kernel_says_so():
    def count(n):
        for n in range(4):
            yield Progress(n / 3, f"{n} of 3", Change({"n": n}))

    session = page_of(count=count, far=count)
    assert answer_of(session, {"start": ["count"]})["running"]
    for report in ("0 of 3", "1 of 3"):
        assert answer_of(session, STEP)["report"] == report
    stopped = answer_of(session, {"stop": [], "step": []})
    assert stopped["report"] == "Stopped. 2 of 3"
    assert stopped["meaning"] == "n is 2"
    assert not answer_of(session, STEP)["running"]
    for message in ({"start": ["far"]}, {"act": ["far"]}):
        assert answer_of(session, message)["mistake"] == NEEDS_A_KERNEL


# The pages.


STEMS = [path.stem for path in NOTEBOOKS]
BESIDE = ["index", "glossary", "account", "recall"]


@pytest.fixture(scope="module")
def written(found) -> dict[str, str]:
    texts = {f"{path.stem}.html": render.notebook_page(path, dict(found)) for path in NOTEBOOKS}
    texts["index.html"] = render.contents_page()
    texts["account.html"] = render.account_page(dict(found))
    texts["glossary.html"] = render.glossary_page()
    texts["recall.html"] = render.recall_page()
    return texts


def test_all_labs_are_alive_and_each_is_on_a_page(written):
    text = "".join(written.values())
    assert sorted(set(re.findall(r'data-lab="(\w+)"', text))) == ALIVE
    assert 'class="course-mistake"' not in text


def test_every_link_between_pages_leads_to_a_place_that_is_there(written):
    anchors = {name: set(re.findall(r'id="([^"]+)"', text)) for name, text in written.items()}
    # Each page has one in each other language.
    endings = [languages.ending(spoken) for spoken in languages.there_are()]
    translated = {f"{stem}{ending}" for stem in [*STEMS, *BESIDE] for ending in endings}
    for name, text in written.items():
        for link in re.findall(r'href="(?!https?:|data:|style)([^"]+)"', text):
            page, _, anchor = unescape(link).partition("#")
            assert not anchor or anchor in anchors[page or name], (name, link)
            assert (page or name) in {*written, *translated}, (name, link)
    for path in NOTEBOOKS:
        linked = path.read_text(encoding="utf-8").count("(GLOSSARY.md#")
        assert written[f"{path.stem}.html"].count('href="glossary.html#') == linked, path.stem


def test_nothing_is_asked_of_another_host_and_formulas_are_drawn(written):
    own = {"lab.js", "page.js", "front.js", "recall.js"}
    for name, text in written.items():
        assert set(re.findall(r'\bsrc="(?!data:)([^"]*)"', text)) <= own, name
        assert "$$" not in text
        assert str(ROOT) not in text
    assert 'class="formula"' in written["01_floats.html"]
    assert "url(" not in render.style()


def test_the_front_page_tells_a_stranger_what_it_is_whose_and_under_which_licence(
    written, monkeypatch
):
    front = BeautifulSoup(written["index.html"], "html.parser")
    assert len(front.select_one(".motion svg")["aria-label"]) > 60
    drawn = [card.select_one(".art svg") for card in front.select(".card")]
    assert len(drawn) == len(NOTEBOOKS)
    assert all(drawn)
    about = front.select_one(".about").get_text()
    for words in ("authors of this course", "CS336", "Percy Liang", "MIT License", "repository"):
        assert words in about
    monkeypatch.setenv("REPO", "owner/name")
    named = BeautifulSoup(render.contents_page(), "html.parser")
    assert named.select_one('.about a[href="https://github.com/owner/name"]')
    begin = front.select_one(".begin a")
    assert begin["href"] == f"{NOTEBOOKS[0].stem}.html"
    for name, text in written.items():
        page = BeautifulSoup(text, "html.parser")
        said = page.find("meta", attrs={"name": "description"})["content"]
        assert 20 < len(said) < 200, name
        footer = page.find("footer").get_text()
        for words in ("CS336", "Percy Liang", "Tatsunori Hashimoto", "CC BY 4.0", "MIT License"):
            assert words in footer, name
    description = re.compile(r'name="description" content="(.+?)"')
    descriptions = {description.search(text)[1] for text in written.values()}
    assert len(descriptions) == len(written)


@pytest.mark.parametrize(
    "said", ["owner/name", "https://github.com/owner/name", "https://git.example.org/name"]
)
def test_pages_lead_to_the_repository_that_is_named_and_to_none_if_none_is(
    monkeypatch, written, said
):
    assert "owner/name" not in written["index.html"]
    assert ">Source</a>" not in written["index.html"]
    monkeypatch.setenv("REPO", said)
    for text in (render.contents_page(), render.glossary_page()):
        links = {tag.get("href") for tag in BeautifulSoup(text, "html.parser")("a")}
        assert (said if ":" in said else f"https://github.com/{said}") in links


@pytest.mark.parametrize("said", ["javascript:alert(1)", 'https://a.b/"onload=', "name", "a/b/c"])
def test_what_is_no_repository_gets_a_sentence_before_anything_is_made(
    monkeypatch, tmp_path, capsys, said
):
    monkeypatch.setattr(__main__, "FOLDER", tmp_path / "site")
    monkeypatch.setenv("REPO", said)
    assert __main__.main() == 1
    assert "Say owner/name" in capsys.readouterr().err
    assert not (tmp_path / "site").exists()


def test_what_follows_a_guess_is_folded_and_nothing_says_that_it_was_not_tried(written):
    for path in NOTEBOOKS:
        text = written[f"{path.stem}.html"]
        guesses = sum(part.waits_for_a_guess for part in outline(read(path)).parts)
        assert text.count('<details class="fold">') == guesses >= 3, path.stem
        depth = 0
        for tag in re.findall(r"</?details", text):
            depth += 1 if tag == "<details" else -1
            assert depth >= 0
        assert depth == 0
        assert "Not attempted yet" not in text


def imports_alone(text: str) -> bool:
    """Whether each line of the code begins an import or goes on with one."""
    return all(re.match(r"(import|from)\b|\s|\)|$", line) for line in text.splitlines())


def test_the_imports_are_folded_and_nothing_else_of_the_code(written):
    for path in NOTEBOOKS:
        page = BeautifulSoup(written[f"{path.stem}.html"], "html.parser")
        imports = [fold.pre.get_text() for fold in page.select("details.imports")]
        assert imports, path.stem
        for text in imports:
            assert imports_alone(text), text
        codes = [pre.get_text() for pre in page.select("pre.code")]
        assert len(codes) > len(imports)
        assert [text for text in codes if imports_alone(text)] == imports


def test_every_guess_has_its_field_and_its_answer_beside_what_was_measured(written):
    """What a page judges by is JSON: no number is infinite, and each word has its bounds."""
    for path in NOTEBOOKS:
        page = BeautifulSoup(written[f"{path.stem}.html"], "html.parser")
        known = outline(read(path))
        asked = {asked.name: asked for part in known.guesses for asked in part.asked}
        fields = {
            json.loads(tag["data-ask"])["name"]: tag for tag in page(attrs={"data-ask": True})
        }
        assert fields.keys() == asked.keys(), path.stem
        assert not any("ask(" in tag.get_text() for tag in page("pre")), path.stem
        answered = set()
        for answer in page(class_="answer"):
            questions = json.loads(answer["data-questions"], parse_constant=pytest.fail)
            answered |= {(question["guess"], question["name"]) for question in questions}
            head, *body = [[cell.get_text() for cell in row(["th", "td"])] for row in answer("tr")]
            for question in questions:
                if "measured" in question:
                    row = next((row for row in body if row[0] == question["name"]), body[0])
                    measured = row[head.index(question["kind"])]
                    assert question["measured"] == float(measured.replace(",", ""))
                    low, high, word = question["bounds"][0]
                    assert word == "spot on"
                    assert low <= question["measured"] <= high
                else:
                    options = [tag["data-option"] for tag in answer("template")]
                    assert options == list(asked[question["guess"]].questions[0].choices)
        expected = {
            (one.name, question.item) for one in asked.values() for question in one.questions
        }
        assert answered == expected, path.stem


def test_the_sentence_on_how_to_write_a_guess_has_no_answer_among_its_examples(written):
    """Whoever types nonsense sees it before the answer is shown."""
    judged = 0
    for path in NOTEBOOKS:
        page = BeautifulSoup(written[f"{path.stem}.html"], "html.parser")
        for answer in page(class_="answer"):
            for question in json.loads(answer["data-questions"]):
                if question.get("measured") is None or how_many_in(question["unit"]):
                    continue
                if question["other"] is not None:
                    continue  # of two estimates far apart, any number between them is right
                low, high, _ = question["bounds"][0]
                for example in examples(question["unit"]):
                    guess = typed.read(example, question["unit"])
                    assert not low <= guess <= high, (path.stem, question["name"], example)
                    judged += 1
    assert judged > 100


def examples(unit):
    """What the sentence on a text that is no number offers to type in that unit."""
    with pytest.raises(ValueError, match="Write it as") as refused:
        typed.read("nonsense", unit)
    *_, offered = str(refused.value).split("Write it as ")
    return re.split(r", | or ", offered.rstrip("."))


def test_without_npm_it_says_so_in_a_sentence(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(__main__, "FOLDER", tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert __main__.main() == 1
    assert capsys.readouterr().err.strip() == runtime.NEEDS_NPM


def test_the_browser_gets_what_labs_stand_on_and_nothing_that_needs_torch(found, tmp_path):
    archive = tmp_path / "course.zip"
    archive.write_bytes(runtime.modules(found))
    assert archive.read_bytes() == runtime.modules(found), "the same bytes each time"
    there = tmp_path / "there"
    shutil.unpack_archive(archive, there)
    text = "".join(path.read_text(encoding="utf-8") for path in there.rglob("*.py"))
    assert not re.search(r"^(import|from) (torch|numpy|ipywidgets)", text, re.MULTILINE)


def test_a_guess_that_a_later_notebook_asks_again_has_no_field_where_there_is_no_record(written):
    html = written[f"{NOTEBOOKS[0].stem}.html"]
    assert "Guess now" in html
    assert "ask_ahead(" not in html
    assert "To type it, run this cell" not in html
