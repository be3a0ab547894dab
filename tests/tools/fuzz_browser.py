"""A hostile reader at every lab, in a real JupyterLab and browser: by mouse and keyboard.

`make fuzz ARGS=--browser`, or
`python -m tests.tools.fuzz --browser --tries 100 --seed 7 --lab float_lab`. The same seed draws the
same moves; what the labs are computing at that moment depends on the machine.
"""

import math
import random
import tempfile
from collections.abc import Sequence
from pathlib import Path

from playwright.sync_api import ConsoleMessage, Dialog, Locator, Page, expect

from course_utils.chapters import labs
from course_utils.engine.labs.lab import Lab
from tests.helpers import browser
from tests.helpers.hostile import FILE, Reader
from tests.helpers.waiting import wait_until

MOVES = 10  # at one lab, before the next one's turn
CONTROLS = ":is(button.widget-button, button.widget-toggle-button, input[type=checkbox]):visible"
FIELDS = "input[type=text]:visible, .widget-readout[contenteditable=true]:visible"
ARROWS = ("ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown")
KEYS = (*ARROWS, "PageUp", "PageDown", "Home", "End", "Tab", "Space", "Enter", "d", "b", "Escape")

# The point at which a part of a lab can be clicked; null if something lies over it.
PLACE = """(part) => {
  part.scrollIntoView({ block: "center" });
  const box = part.getBoundingClientRect();
  const x = box.left + box.width / 2;
  const y = box.top + box.height / 2;
  return document.elementFromPoint(x, y)?.closest(".course-lab") ? [x, y] : null;
}"""
# What is wrong with what a lab shows, as a list of texts.
LOOK = """(lab) => {
  const wrong = [];
  const check = (isRight, otherwise) => {
    if (!isRight) wrong.push(otherwise);
  };
  const found = (selector) => lab.querySelector(selector);
  const words = (selector) => found(selector)?.textContent ?? "";

  const picture = found(".course-picture");
  check(picture?.querySelector("svg text"), "no picture");
  const shapes = ["svg", "g", "text", "rect", "polyline", "polygon", "circle"];
  for (const part of picture?.querySelectorAll("*") ?? []) {
    check(shapes.includes(part.nodeName), `${part.nodeName} in the picture`);
    for (const { name } of part.attributes) {
      check(!/^on|^href$|^src$/.test(name), `${name} in the picture`);
    }
  }

  for (const name of ["meaning", "mistake", "report"]) {
    check(!found(`.course-${name} *`), `markup in the ${name}`);
  }
  check(!found(".course-table :not(table, tbody, tr, th, td)"), "markup in the table");
  check(!found("img, script, iframe, object, embed"), "a foreign element in the lab");

  check(words(".course-meaning"), "nothing is said");
  for (const said of [words(".course-mistake"), words(".course-report.failed")]) {
    const isSentence = /[.?!)”…]$/.test(said.trimEnd()) && !said.includes("not your doing");
    check(!said || isSentence, `no sentence: “${said}”`);
  }
  check(!("wasHere" in window), "what was typed has run");
  return wrong;
}"""
# What a reader sees at a field: its value, and its name.
FIELD = """(field) => {
  const value = field.value ?? field.textContent;
  const name = field.title || field.parentElement.textContent;
  return [value, name];
}"""


class Hand:
    """Draws and makes one move after the other at a lab, in view of what the page shows."""

    def __init__(self, page: Page, lab: Lab, draw: random.Random) -> None:
        self.page = page
        self.draw = draw
        self.reader = Reader(lab, draw)
        self.done: list[str] = []

    @property
    def lab(self) -> Locator:
        """The lab that is on the page now, because a cell that runs again makes a new one."""
        return browser.lab_of(self.page, self.reader.lab.name.removesuffix(" lab"))

    def move(self) -> None:
        """Make a move of a drawn kind; press something if the lab has nothing for that kind."""
        weights = {
            self._press: 30,
            self._type: 22,
            self._drag: 16,
            self._click_picture: 10,
            self._key: 16,
            self.run_again: 1,
        }
        (move,) = self.draw.choices(list(weights), weights=list(weights.values()))
        if not move():
            self._press()

    # Each kind of move returns whether it was made, and notes in `done` what it does.

    def _press(self) -> bool:
        """Click a button or a checkbox."""
        control = self._one_of(CONTROLS)
        label = control.evaluate("(control) => control.textContent.trim() || control.type")
        self.done.append(f"click {label!r}")
        return self._click(control)

    def _type(self) -> bool:
        """Type into a field an answer to its question, or to any if its label does not tell it."""
        field = self._one_of(FIELDS)
        if field is None:
            return False
        before, label = field.evaluate(FIELD)
        questions = self.reader.lab.fields
        labelled = []
        for name, question in questions.items():
            if question.label and label.startswith(question.label):
                labelled.append(name)
        name = self.draw.choice(labelled or list(questions))
        so_far = {other: question.default for other, question in questions.items()}
        so_far[name] = before
        said = self.reader.answer(name, so_far)
        words = str(eval(said, {"nan": "nan", "inf": "inf"}))
        self.done.append(f"type {words[:100]!r} over {before[:40]!r}")
        if self._click(field):
            self.page.keyboard.press("Control+a")
            self.page.keyboard.insert_text(words)
            if self.draw.random() < 0.5:
                self.page.keyboard.press("Enter")
        return True

    def _drag(self) -> bool:
        """Drag a slider's handle to one to four places up to 200 px away, and let go."""
        handle = self._one_of(".noUi-handle:visible")
        if handle is None:
            return False
        place = handle.evaluate(PLACE)
        if not place:
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
        """Click a part of the picture that can be clicked."""
        part = self._one_of("[data-key]")
        if part is None:
            return False
        self.done.append(f"click {part.get_attribute('data-key')!r} in the picture")
        return self._click(part)

    def _key(self) -> bool:
        """Press one to five keys, from a control or a part of the picture on."""
        keys = self.draw.choices(KEYS, k=self.draw.randrange(1, 6))
        self.done.append(f"press {keys}")
        self._one_of(f"{CONTROLS}, .noUi-handle:visible, [data-key][tabindex='0']").focus()
        for key in keys:
            is_in_lab = self.page.evaluate("!!document.activeElement.closest('.course-lab')")
            if is_in_lab:  # Tab may have left it
                self.page.keyboard.press(key)
        return True

    def run_again(self) -> bool:
        """Run the lab's cell again as a reader does, with a click into it and Ctrl+Enter."""
        self.done.append("run the cell again")
        cell = self.page.locator(".jp-CodeCell", has=self.lab)
        cell.locator(".cm-content").first.click()
        self.page.keyboard.press("Control+Enter")
        return True

    def _one_of(self, kind: str) -> Locator | None:
        """Draw one of the lab's parts that this selector finds; None if it finds none."""
        parts = self.lab.locator(kind)
        count = parts.count()
        if not count:
            return None
        return parts.nth(self.draw.randrange(count))

    def _click(self, part: Locator) -> bool:
        """Click the part with the mouse, and say whether nothing lies over it."""
        place = part.evaluate(PLACE)
        if place:
            self.page.mouse.click(*place)
        return bool(place)


# What a lab has to show, and how it shows that it is alive.

STATE = """(lab) => JSON.stringify([
  lab.querySelector(".course-picture").innerHTML,
  lab.querySelector(".course-meaning").textContent,
  [...lab.querySelectorAll("input[type=checkbox]")].map((box) => box.checked),
])"""
SPILT = (
    ".jp-OutputArea-output[data-mime-type$=stderr], .jp-OutputArea-output[data-mime-type$=error]"
)


class WatchedPage:
    """The page with its labs, and all that must not change whatever is done to them."""

    def __init__(self, page: Page, folder: Path) -> None:
        self.page = page
        self.folder = folder
        self.errors: list[str] = []  # that the page reports
        page.on("pageerror", lambda error: self.errors.append(f"uncaught: {error}"))
        page.on("dialog", self._note_dialog)
        page.on("console", self._note_console)
        self.cells = self._cells()
        self.files = self._files()

    def _note_dialog(self, dialog: Dialog) -> None:
        """Note a dialog as an error, but for the browser's own about leaving the page."""
        if dialog.type != "beforeunload":
            self._note_error(dialog.message)

    def _note_console(self, message: ConsoleMessage) -> None:
        if message.type == "error":
            self._note_error(message.text)

    def _note_error(self, words: str) -> None:
        """Note the words, unless they are only about the network."""
        if not words.startswith(("Failed to load resource", "WebSocket connection")):
            self.errors.append(f"in the console, or in a dialog: {words}")

    def _cells(self) -> int:
        return self.page.locator(".jp-Cell").count()

    def _files(self) -> set[str]:
        """Return the files beside the notebook, and FILE in the folder above if it is there."""
        return {path.name for path in (*self.folder.iterdir(), *self.folder.parent.glob(FILE))}

    def look(self, lab: Locator) -> None:
        """Check that the lab shows a picture and a sentence, and no markup.

        No error may have come, no cell may have come or gone, and no file been written.
        """
        self.page.wait_for_selector(browser.IDLE)
        wrong = [*lab.evaluate(LOOK), *self.errors]
        if self._cells() != self.cells:
            wrong.append("a cell came or went")
        new_files = self._files() - self.files - {".ipynb_checkpoints"}
        if new_files:
            wrong.append(f"files: {sorted(new_files)}")
        if self.page.locator(SPILT).count():
            wrong.append("an error, or words for stderr, below a cell")
        assert not wrong, "; ".join(wrong)[:1000]

    def visit(self, name: str, draw: random.Random, moves: int) -> list[str]:
        """Make some moves at a lab, check that it is alive in the end, and return what was done."""
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
        """Stop what runs; then two presets have to show two states, neither of them a mistake."""
        stop = lab.get_by_role("button", name="Stop", exact=True)
        if stop.count():
            # Unlike the mouse's click, this one does not wait for a button that is enabled: the job
            # may have ended by itself.
            stop.evaluate("(button) => button.click()")
            expect(stop).to_be_disabled()
        presets = lab.locator(".course-presets .widget-button")
        first, second = presets.all()[:2]

        def state_after(preset: Locator) -> object:
            preset.click()
            self.page.wait_for_selector(browser.IDLE)
            expect(lab.locator(".course-mistake"), "after a preset").to_be_empty()
            return lab.evaluate(STATE)

        # On a busy machine the page may still show the state from before the click, which may be
        # the second preset's. So both are pressed until each shows its own.
        wait_until(lambda: state_after(first) != state_after(second), "two presets show two states")
        self.look(lab)


def fuzz(names: Sequence[str], tries: int, seed: int) -> str:
    """Visit lab after lab until something fails; return what failed and what was done, or "".

    An error that only the server's log has counts, too.
    """
    names = [name.removesuffix("_lab") for name in names]
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "labs"
        folder.mkdir()
        with browser.opened_labs(folder, *names) as page:
            watched = WatchedPage(page, folder)
            for number in range(math.ceil(tries / MOVES)):
                name = names[number % len(names)]
                try:
                    watched.visit(name, random.Random(f"{seed} {number}"), MOVES)
                except Exception as error:
                    return "\n  ".join([f"{name} lab, visit {number}: {error}", *error.__notes__])
        _, *traceback = (folder / "jupyterlab.log").read_text().partition("Traceback")
    return "".join(traceback)[:3000]
