"""The page without a kernel on which questions come back, in a browser that keeps the answers."""

import json
import random
import re
from collections.abc import Iterator
from datetime import date, timedelta
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from course_utils.core import record
from course_utils.core.say import Guess
from course_utils.engine.guessing.field import Field
from course_utils.stage.pages import __main__ as site_main
from course_utils.stage.pages import guesses, recall_page, render
from course_utils.stage.recall import due, lines, sections
from course_utils.stage.recall.bank import QUESTIONS
from course_utils.stage.recall.question import Drawn, distinct
from course_utils.stage.recall.reply import NO_ANSWER, reply
from course_utils.stage.workspace import copies
from tests import NOTEBOOKS
from tests.helpers import pages
from tests.helpers.browser import skip_without_browser
from tests.stage.test_browser_recall import assert_everybody_can_use_it

skip_without_browser()

HISTORIES = 30
KEPT = "recall on /"
CLOSED = "Your guess stays as it was when Show was pressed."
TODAY = date(2026, 3, 2)
ON_DAY = """async ([kept, day]) => {
  const { three, more, nextDay } = await import("./due.js");
  return [
    three(kept, day).map((one) => one.name),
    more(kept, day).map((one) => [one.question.name, one.due]),
    nextDay(kept, day) ?? null,
  ];
}"""
REPLIES = """async (asked) => {
  const { replyTo } = await import("./recall.js");
  const { questions } = await import("./questions.js");
  return asked.map(([name, draw, said]) => {
    const { draws } = questions.find((one) => one.name === name);
    return replyTo(draws[draw], said);
  });
}"""


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Iterator[str]:
    """The page, and notebook 1 without what its labs need."""
    folder = tmp_path_factory.mktemp("site")
    texts = {
        "recall.html": render.recall_page(),
        "01_floats.html": render.notebook_page(NOTEBOOKS[0], dict.fromkeys(pages.ALIVE)),
        "01_floats.zh_CN.html": render.notebook_page(
            NOTEBOOKS[0], dict.fromkeys(pages.ALIVE), "zh_CN"
        ),
        "recall.zh_CN.html": render.recall_page("zh_CN"),
        "sentences.zh_CN.json": site_main.sentences("zh_CN"),
        "style.css": render.style(),
        "tables.js": guesses.tables(),
        "field.js": Field._esm,
        "questions.js": recall_page.script(),
    }
    for name in ("page.js", "guesses.js", "numbers.js", "words.js"):
        texts[name] = (site_main.HERE / name).read_text(encoding="utf-8")
    for name in recall_page.SCRIPTS:
        texts[name] = (recall_page.HERE / name).read_text(encoding="utf-8")
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    with pages.served(folder) as address:
        yield address


@pytest.fixture
def page(chromium: Browser) -> Iterator[Page]:
    """A page of a browser in which nothing is kept, on the day TODAY."""
    context = chromium.new_context(viewport={"width": 1366, "height": 768})
    page = context.new_page()
    page.clock.set_system_time(f"{TODAY}T12:00:00")
    wrong = []
    page.on("pageerror", lambda error: wrong.append(str(error)))
    yield page
    context.close()
    assert wrong == []


# The schedule and the replies, beside Python's.


def history(seed: int, folder: Path) -> dict[str, object]:
    """Write a record of some weeks into the folder, and return what a browser would have kept."""
    chance = random.Random(seed)
    kept = {"met": {}, "answers": []}
    chosen = chance.sample(list(QUESTIONS.values()), chance.randint(1, 12))
    text = []
    for question in chosen:
        stem = sections.notebook_of(question, copies.COURSE).removesuffix(".ipynb")
        for name in recall_page.met_by(question):
            key = f"{stem} {name}"
            day = TODAY - timedelta(chance.randint(0, 40))
            guess = Guess(name, chance.choice((1, 2, 5, 40)), 2)
            if key not in kept["met"]:
                kept["met"][key] = {"day": day.isoformat(), "word": guess.word}
                as_json = json.dumps({"asked": name, "said": guess.said, "measured": 2})
                text.append(f"{day} {question.chapter} guessed {as_json}")
    days = sorted(TODAY - timedelta(chance.randint(0, 12)) for _ in range(chance.randint(0, 25)))
    for day in days:
        question = chance.choice(chosen)
        drawn = question.draw(1)
        said = chance.choice((1.0, 1.4, 3.0, 90.0)) * drawn.asked.answer
        is_right = drawn.asked.is_right(said)
        is_extra = chance.random() < 0.3
        guess = drawn.guess(said)
        fields = {"asked": question.name, "said": said, "measured": drawn.asked.answer}
        fields |= {"unit": guess.unit} if guess.unit else {}
        fields |= {"seed": 1, "right": is_right} | ({"extra": True} if is_extra else {})
        text.append(f"{day} {question.chapter} recalled {json.dumps(fields)}")
        kept["answers"].append(
            {
                "day": day.isoformat(),
                "name": question.name,
                "draw": 0,
                "said": said,
                "isRight": is_right,
                "word": guess.word,
                "isExtra": is_extra,
            }
        )
    (folder / record.RECORD).write_text("\n".join(text) + "\n", encoding="utf-8")
    return kept


@pytest.fixture
def met_as_on_pages(monkeypatch) -> None:
    """Let Python, too, bring a question after the guesses that a page has for it."""

    met = {}
    for name, question in QUESTIONS.items():
        names = {(question.chapter, guess) for guess in recall_page.met_by(question)}
        met[name] = sections.Section("", frozenset(names))
    monkeypatch.setattr(due, "section_of", lambda question, _: met[question.name])


def test_the_page_brings_what_python_brings_on_every_day(page, site, tmp_path, met_as_on_pages):
    page.goto(f"{site}/recall.html")
    for seed in range(HISTORIES):
        kept = history(seed, tmp_path)
        assert len(lines.recalled(tmp_path)) == len(kept["answers"])
        for ahead in (0, 1, 5, 40):
            day = TODAY + timedelta(ahead)
            left = due.more(tmp_path, copies.COURSE, day)
            following = due.next_day(tmp_path, copies.COURSE, day)
            expected = [
                [question.name for question in due.three(tmp_path, copies.COURSE, day)],
                [[standing.question.name, standing.due.isoformat()] for standing in left],
                following.isoformat() if following else None,
            ]
            assert page.evaluate(ON_DAY, [kept, day.isoformat()]) == expected, (seed, ahead)


def answers_to(drawn: Drawn) -> Iterator[float | None]:
    """Right and wrong answers, mistakes, and none."""
    right = drawn.asked.answer
    yield from (right, 1.03 * right, 0.97 * right, 1.3 * right, 2 * right, 1000 * right, 0, None)
    yield from (right + 1, right - 1)
    yield from (mistake.said for mistake in drawn.asked.mistakes)


def test_an_answer_is_judged_as_python_judges_it(page, site):
    page.goto(f"{site}/recall.html")
    asked = []
    expected = []
    for name, question in QUESTIONS.items():
        for number, drawn in enumerate(distinct(question, recall_page.SIZES_EACH)):
            for said in answers_to(drawn):
                asked.append([name, number, said])
                told = reply(drawn, NO_ANSWER if said is None else said)
                word = drawn.guess(NO_ANSWER if said is None else said).word
                expected.append([told.is_right, told.advice, word])
    replies = page.evaluate(REPLIES, asked)
    found = [[one["isRight"], one["advice"], one["word"]] for one in replies]
    different = [one for one in zip(asked, found, expected, strict=True) if one[1] != one[2]]
    assert different == []
    assert len(asked) > 3000


# A reader.


def keep(page: Page, site: str, kept: object) -> None:
    """Let the browser keep that, as from earlier days."""
    page.goto(f"{site}/recall.html")
    page.evaluate("([name, text]) => localStorage.setItem(name, text)", [KEPT, json.dumps(kept)])
    page.reload()


def met(question: str, day: date, word: str = "far") -> dict[str, object]:
    """What is kept once the reader has met the question."""
    stem = sections.notebook_of(QUESTIONS[question], copies.COURSE).removesuffix(".ipynb")
    names = recall_page.met_by(QUESTIONS[question])
    return {f"{stem} {name}": {"day": day.isoformat(), "word": word} for name in names}


def kept_in(page: Page) -> dict[str, object]:
    return json.loads(page.evaluate("(name) => localStorage.getItem(name)", KEPT))


def test_whoever_has_guessed_on_a_page_is_asked_on_the_next_day(page, site):
    page.goto(f"{site}/recall.html")
    expect(page.locator("[data-intro]")).to_be_visible()
    assert_everybody_can_use_it(page)
    page.goto(f"{site}/01_floats.html")
    field = page.get_by_role("textbox").first
    field.fill("3")
    field.press("Enter")
    page.get_by_role("button", name="Show", exact=True).first.click()
    (entry,) = kept_in(page)["met"].values()
    assert entry == {"day": TODAY.isoformat(), "word": "close"}
    expect(field).to_be_disabled()  # the answer is known by now
    page.goto(f"{site}/recall.html")
    expect(page.get_by_role("status").first).to_contain_text(
        "Nothing is due today. The next question comes on Tuesday 3 March."
    )
    page.clock.set_system_time(f"{TODAY + timedelta(1)}T00:01:00")
    page.reload()
    expect(page.locator(".recall h2").first).to_contain_text("1 of ")
    expect(page.get_by_role("textbox")).to_be_focused()


def test_three_are_answered_by_keyboard_and_then_three_more(page, site):
    a_year_ago = TODAY - timedelta(365)
    names = ("floats.matrices", "tensors.steps")  # and two others that follow the same guesses
    everything = {}
    for name in names:
        everything |= met(name, a_year_ago)
    everything |= met("einsum.scores", TODAY)  # due tomorrow
    keep(page, site, {"met": everything, "answers": []})
    field = page.get_by_role("textbox")
    expect(field).to_be_focused()
    expect(page.locator(".recall h2")).to_have_text("1 of 3")
    page.keyboard.type("some")
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("'some' is not a number here.")
    expect(field).to_be_focused()
    assert_everybody_can_use_it(page)
    field.fill("1e30")
    page.keyboard.press("Enter")
    expect(page.locator(".reply")).to_have_count(1)
    expect(page.locator(".reply")).to_contain_text("Far: a factor of")
    for answered in (2, 3):
        expect(field).to_be_focused()
        page.keyboard.press("Tab")
        page.keyboard.press("Tab")
        page.keyboard.press("Enter")  # on "I don't know"
        expect(page.locator(".reply")).to_have_count(answered)
    expect(page.get_by_role("status").first).to_contain_text("That is all for today.")
    assert_everybody_can_use_it(page)
    page.reload()  # the browser has kept all of it
    expect(page.locator(".reply")).to_have_count(3)
    page.get_by_role("button", name="Three more").press("Enter")
    expect(field).to_be_focused()
    while field.count():
        page.get_by_role("button", name="I don't know").press("Enter")
    expect(page.locator(".recall h2").last).to_contain_text("· extra")
    answers = kept_in(page)["answers"]
    assert [one["isExtra"] for one in answers].count(True) >= 1
    assert not any(one["isRight"] for one in answers)


def test_the_same_question_comes_back_with_other_sizes(page, site):
    keep(page, site, {"met": met("tensors.steps", TODAY - timedelta(9)), "answers": []})
    texts = set()
    for days in range(3):
        page.clock.set_system_time(f"{TODAY + timedelta(days)}T08:00:00")
        page.reload()
        for _ in range(3):
            if page.get_by_role("textbox").count():
                texts.add(page.locator("#question").inner_text())
                page.get_by_role("button", name="I don't know").click()
    of_steps = {one.asked.text for one in distinct(QUESTIONS["tensors.steps"], 6)}
    assert len(texts & of_steps) == 3


@pytest.mark.parametrize(
    "kept",
    [
        "nonsense",
        {"met": 3, "answers": {}},
        {"met": {"a": {"day": "2026-13-45", "word": "far"}}, "answers": [None, {"day": 3}]},
        {"met": {"01_floats x": None}, "answers": [{"day": "2026-03-01", "name": "gone"}]},
    ],
)
def test_what_is_damaged_is_as_if_nothing_was_kept(page, site, kept):
    keep(page, site, kept)
    expect(page.locator("[data-intro]")).to_be_visible()
    assert_everybody_can_use_it(page)


def test_what_is_kept_can_be_forgotten(page, site):
    keep(page, site, {"met": met("tensors.steps", TODAY), "answers": []})
    page.get_by_role("button", name="Forget it").press("Enter")
    expect(page.locator("[data-forgotten]")).to_have_text("It is forgotten.")
    expect(page.locator("[data-intro]")).to_be_visible()
    assert page.evaluate("(name) => localStorage.getItem(name)", KEPT) is None


def test_without_scripts_the_page_says_what_it_needs(chromium, site):
    context = chromium.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(f"{site}/recall.html")
    expect(page.locator("main")).to_contain_text("needs a browser that runs scripts")
    context.close()


def test_a_guess_on_a_chinese_page_comes_back_on_the_chinese_page(page, site):
    said = json.loads(site_main.sentences("zh_CN"))
    page.goto(f"{site}/01_floats.zh_CN.html")
    field = page.get_by_role("textbox").first
    field.fill("much")
    field.press("Enter")
    refused = said["{typed} is not a number here."].format(typed="“much”")
    expect(page.locator(".course-ask-fault").first).to_contain_text(refused)
    field.fill("3")
    field.press("Enter")
    page.locator(".course-ask-show").first.click()
    expect(page.locator(".course-ask-words").first).to_have_text(said[CLOSED])
    page.clock.set_system_time(f"{TODAY + timedelta(1)}T12:00:00")
    page.goto(f"{site}/recall.zh_CN.html")
    place, *_ = said["{number} of {count}"].format(number=1, count=0).split("0")
    expect(page.locator(".recall h2").first).to_contain_text(place)
    expect(page.locator("#question")).to_have_attribute("lang", "en")
    page.get_by_role("button", name=said["I don't know"]).click()
    expect(page.locator(".recall li")).to_contain_text(said["You gave no answer."])
    link = page.locator(".reply a")
    link.click()
    expect(page).to_have_url(re.compile(r"/01_floats\.zh_CN\.html#"))
    assert page.evaluate("document.getElementById(decodeURIComponent(location.hash.slice(1)))")
