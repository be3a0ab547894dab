"""A hostile reader at every lab, in a real JupyterLab and a real browser: mouse, keyboard and typing in any order.

`make fuzz ARGS=--browser`, or `python -m tests.tools.fuzz --browser --tries 100 --seed 7 --lab float_lab`. The same seed
draws the same moves; how they fall in with work that is running is the machine's affair.
"""

import random
import tempfile
from collections.abc import Sequence
from pathlib import Path

from playwright.sync_api import Locator, Page, expect

from course_utils.chapters import labs
from course_utils.engine.labs.lab import Lab
from tests.helpers import browser
from tests.helpers.hostile import FILE, Reader
from tests.helpers.waiting import wait_until

MOVES = 10  # at one lab, before the next one's turn
CONTROLS = ":is(button.widget-button, button.widget-toggle-button, input[type=checkbox]):visible"
FIELDS = "input[type=text]:visible, .widget-readout[contenteditable=true]:visible"
KEYS = ("ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown", "PageUp", "PageDown", "Home", "End", "Tab", "Space", "Enter", "d", "b", "Escape")  # fmt: skip

# Where a part of a lab can be hit, if it can.
PLACE = """(part) => {
  part.scrollIntoView({ block: "center" });
  const box = part.getBoundingClientRect();
  const x = box.left + box.width / 2, y = box.top + box.height / 2;
  return document.elementFromPoint(x, y)?.closest(".course-lab") ? [x, y] : null;
}"""
# What is wrong with what a lab shows, in words.
LOOK = """(lab) => {
  const wrong = [];
  const words = (name) => lab.querySelector(`.course-${name}`)?.textContent ?? "";
  const picture = lab.querySelector(".course-picture");
  if (!picture?.querySelector("svg text")) wrong.push("no picture");
  for (const part of picture?.querySelectorAll("*") ?? []) {
    if (!["svg", "g", "text", "rect", "polyline", "circle"].includes(part.nodeName)) wrong.push(`${part.nodeName} in the picture`);
    for (const { name } of part.attributes) if (/^on|^href$|^src$/.test(name)) wrong.push(`${name} in the picture`);
  }
  for (const name of ["meaning", "mistake", "report"])
    if (lab.querySelector(`.course-${name} *`)) wrong.push(`markup in the ${name}`);
  if (lab.querySelector(".course-table :not(table, tbody, tr, th, td)")) wrong.push("markup in the table");
  if (lab.querySelector("img, script, iframe, object, embed")) wrong.push("a foreign element in the lab");
  if (!words("meaning")) wrong.push("nothing is said");
  for (const said of [words("mistake"), lab.querySelector(".course-report.failed")?.textContent ?? ""])
    if (said && (said.includes("not your doing") || !/[.?!)”…]$/.test(said.trimEnd()))) wrong.push(`no sentence: “${said}”`);
  if ("wasHere" in window) wrong.push("what was typed has run");
  return wrong;
}"""


class Hand:
    """Draws and does one move after the other at a lab, in view of what the page shows."""

    def __init__(self, page: Page, lab: Lab, draw: random.Random) -> None:
        self.page, self.draw, self.reader = page, draw, Reader(lab, draw)
        self.done: list[str] = []

    @property
    def lab(self) -> Locator:
        """The lab as it stands now; a cell that runs again makes a new one."""
        return browser.lab_of(self.page, self.reader.lab.name.removesuffix(" lab"))

    def move(self) -> None:
        """One of them; if the lab has nothing for it, the next one."""
        kinds = [
            self._press,
            self._type,
            self._drag,
            self._click_picture,
            self._key,
            self.run_again,
        ]
        (first,) = self.draw.choices(kinds, (30, 22, 16, 10, 16, 1))
        any(move() for move in (first, self._press))

    def _press(self) -> bool:
        control = self._one_of(CONTROLS)
        self.done.append(
            f"click {control.evaluate('(one) => one.textContent.trim() || one.type')!r}"
        )
        return self._click(control)

    def _type(self) -> bool:
        if not (field := self._one_of(FIELDS)):
            return False
        before, name = field.evaluate(
            "(one) => [one.value ?? one.textContent, one.title || one.parentElement.textContent]"
        )
        asked = self.reader.lab.fields
        same_name = [one for one in asked if asked[one].label and name.startswith(asked[one].label)]
        so_far = {one: asked[one].default for one in asked}
        one = self.draw.choice(same_name or list(asked))
        said = self.reader.answer(one, so_far | {one: before})
        words = str(eval(said, {"nan": "nan", "inf": "inf"}))
        self.done.append(f"type {words[:100]!r} over {before[:40]!r}")
        if self._click(field):
            self.page.keyboard.press("Control+a")
            self.page.keyboard.insert_text(words)
            if self.draw.random() < 0.5:
                self.page.keyboard.press("Enter")
        return True

    def _drag(self) -> bool:
        handle = self._one_of(".noUi-handle:visible")
        if not handle or not (place := handle.evaluate(PLACE)):
            return False
        x, y = place
        way = [self.draw.randrange(-200, 200) for _ in range(self.draw.randrange(1, 5))]
        self.done.append(f"drag {handle.get_attribute('aria-label')!r} by {way}")
        self.page.mouse.move(x, y)
        self.page.mouse.down()
        for step in way:
            self.page.mouse.move(x + step, y, steps=4)
        self.page.mouse.up()
        return True

    def _click_picture(self) -> bool:
        if not (part := self._one_of("[data-key]")):
            return False
        self.done.append(f"click {part.get_attribute('data-key')!r} in the picture")
        return self._click(part)

    def _key(self) -> bool:
        keys = self.draw.choices(KEYS, k=self.draw.randrange(1, 6))
        self.done.append(f"press {keys}")
        self._one_of(f"{CONTROLS}, .noUi-handle:visible, [data-key][tabindex='0']").focus()
        for key in keys:
            if self.page.evaluate(
                "!!document.activeElement.closest('.course-lab')"
            ):  # Tab may have left it
                self.page.keyboard.press(key)
        return True

    def run_again(self) -> bool:
        """As a reader does: into the cell, and Ctrl+Enter."""
        self.done.append("run the cell again")
        self.page.locator(".jp-CodeCell", has=self.lab).locator(".cm-content").first.click()
        self.page.keyboard.press("Control+Enter")
        return True

    def _one_of(self, kind: str) -> Locator | None:
        parts = self.lab.locator(kind)
        count = parts.count()
        return parts.nth(self.draw.randrange(count)) if count else None

    def _click(self, part: Locator) -> bool:
        """By the mouse, where it lies; nothing, if something else lies there."""
        place = part.evaluate(PLACE)
        if place:
            self.page.mouse.click(*place)
        return bool(place)


# Looking, and what it takes to be alive.

STATE = """(lab) => JSON.stringify([
  lab.querySelector(".course-picture").innerHTML,
  lab.querySelector(".course-meaning").textContent,
  [...lab.querySelectorAll("input[type=checkbox]")].map((box) => box.checked),
])"""
SPILT = (
    ".jp-OutputArea-output[data-mime-type$=stderr], .jp-OutputArea-output[data-mime-type$=error]"
)


class WatchedPage:
    """The page with its labs, and what must not change however they are handled."""

    def __init__(self, page: Page, folder: Path) -> None:
        self.page, self.folder = page, folder
        self.errors: list[str] = []  # that the page tells of itself
        page.on("pageerror", lambda error: self.errors.append(f"uncaught: {error}"))
        page.on(
            "dialog",
            lambda asked: asked.type == "beforeunload" or self._hear("error", asked.message),
        )
        page.on("console", lambda said: self._hear(said.type, said.text))
        self.cells, self.files = self._cells(), self._files()

    def _hear(self, kind: str, words: str) -> None:
        if kind == "error" and not words.startswith(
            ("Failed to load resource", "WebSocket connection")
        ):
            self.errors.append(f"in the console, or in a dialog: {words}")

    def _cells(self) -> int:
        return self.page.locator(".jp-Cell").count()

    def _files(self) -> set[str]:
        """Beside the notebook, and one of ours a folder further up."""
        return {path.name for path in (*self.folder.iterdir(), *self.folder.parent.glob(FILE))}

    def look(self, lab: Locator) -> None:
        """A picture or a sentence, no markup, no error, nothing run and nothing written."""
        self.page.wait_for_selector(browser.IDLE)
        wrong = [*lab.evaluate(LOOK), *self.errors]
        if self._cells() != self.cells:
            wrong.append("a cell came or went")
        if new := self._files() - self.files - {".ipynb_checkpoints"}:
            wrong.append(f"files: {sorted(new)}")
        if self.page.locator(SPILT).count():
            wrong.append("an error, or words for stderr, below a cell")
        assert not wrong, "; ".join(wrong)[:1000]

    def visit(self, name: str, draw: random.Random, moves: int) -> list[str]:
        """Some moves at a lab, which is alive in the end; what was done."""
        hand = Hand(self.page, labs.lab_named(name), draw)
        try:
            for _ in range(moves):
                hand.move()
                self.look(hand.lab)
            self.bring_to_rest(hand.lab)
        except Exception as error:
            error.add_note("\n".join(hand.done))
            raise
        return hand.done

    def bring_to_rest(self, lab: Locator) -> None:
        """Stop what runs; then two presets show two states, neither of them a mistake."""
        stop = lab.get_by_role("button", name="Stop", exact=True)
        if stop.count():
            stop.evaluate(
                "(button) => button.click()"
            )  # the page's: nothing, if work has ended by itself
            expect(stop).to_be_disabled()
        presets, shown = lab.locator(".course-controls + .widget-hbox .widget-button"), []
        for preset in presets.all()[:2]:
            preset.click()
            self.page.wait_for_selector(browser.IDLE)
            expect(lab.locator(".course-mistake"), "after a preset").to_be_empty()
            wait_until(lambda: lab.evaluate(STATE) not in shown, "a preset brings another state")
            shown.append(lab.evaluate(STATE))
        self.look(lab)


def fuzz(names: Sequence[str], tries: int, seed: int) -> str:
    """Round after round over the labs, until something fails: what, and what was done."""
    names = [name.removesuffix("_lab") for name in names]
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "labs"
        folder.mkdir()
        with browser.opened_labs(folder, *names) as page:
            watched = WatchedPage(page, folder)
            for number in range(-(-tries // MOVES)):
                name = names[number % len(names)]
                try:
                    watched.visit(name, random.Random(f"{seed} {number}"), MOVES)
                except Exception as error:
                    return "\n  ".join([f"{name} lab, visit {number}: {error}", *error.__notes__])
        _, *traceback = (folder / "jupyterlab.log").read_text().partition("Traceback")
    return "".join(traceback)[:3000]
