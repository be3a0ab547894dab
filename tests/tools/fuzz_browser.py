"""A hostile reader at every lab, in a real JupyterLab and a real browser: mouse, keyboard and typing in any order.

`make fuzz ARGS=--browser`, or `python -m tests.tools.fuzz --browser --tries 100 --seed 7 --lab float_lab`. The same seed
draws the same moves; how they fall in with work that is running is the machine's affair.
"""

import random
import re
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import psutil
from playwright.sync_api import CDPSession, Dialog, Locator, Page, expect

from tests import browser
from tests.hostile import HOSTILE, STUFF
from tests.waiting import wait_until

MOVES = 10  # at one lab, before the next one's turn
FILE = "was_here"  # that no lab writes
HOSTILE_HERE = (
    *("<img src=x onerror='window.wasHere=1'>", "<script>window.wasHere=1</script>", "\"'><svg onload='wasHere=1'>"),
    *("javascript:window.wasHere=1", "${window.wasHere=1}", "{{constructor.constructor('wasHere=1')()}}"),
    *("$x^2$ \\href{javascript:wasHere=1}{x}", "</text></svg><iframe srcdoc='<script>parent.wasHere=1</script>'>"),
    *(f"__import__('pathlib').Path('{FILE}').touch()", f"'); open('{FILE}', 'w'); ('", f"../{FILE}", f"$(touch {FILE})"),
)  # fmt: skip
TYPED = (*HOSTILE_HERE, *(str(eval(said)) for said in HOSTILE if said[0] in "'\""))
CONTROLS = ", ".join(
    f"{kind}:visible"
    for kind in ("button.widget-button", "button.widget-toggle-button", "input[type=checkbox]")
)
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


@dataclass
class Overheard:
    """What a page says of its own failures."""

    errors: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, page: Page) -> "Overheard":
        """From now on."""
        heard = cls()
        page.on("pageerror", lambda error: heard.errors.append(f"uncaught: {error}"))
        page.on("dialog", heard._ask)
        page.on("console", lambda said: heard._log(said.type, said.text))
        return heard

    def _ask(self, dialog: Dialog) -> None:
        if dialog.type != "beforeunload":
            self.errors.append(f"a dialog: {dialog.message}")

    def _log(self, kind: str, words: str) -> None:
        if kind == "error" and not words.startswith(("Failed to load resource", "WebSocket connection")):
            self.errors.append(f"in the console: {words}")


class Hand:
    """Draws and does one move after the other at a lab, in view of what the page shows."""

    def __init__(self, page: Page, name: str, draw: random.Random) -> None:
        self.page, self.name, self.draw = page, name, draw
        self.done: list[str] = []

    @property
    def lab(self) -> Locator:
        """The lab as it stands now; a cell that runs again makes a new one."""
        return browser.lab_of(self.page, self.name)

    def move(self) -> None:
        """One of them."""
        kinds = {
            self._press: 30,
            self._type: 22,
            self._drag: 16,
            self._click_picture: 10,
            self._key: 16,
            self.run_again: 1,
            self._change_theme: 1,
        }
        self.draw.choices(list(kinds), list(kinds.values()))[0]()

    def _press(self) -> None:
        if control := self._one_of(CONTROLS):
            self.done.append(f"click {control.evaluate('(one) => one.textContent.trim() || one.type')!r}")
            self._click(control)

    def _type(self) -> None:
        if not (field := self._one_of(FIELDS)):
            return self._key()
        before = field.evaluate("(one) => one.value ?? one.textContent")
        words = self._words(before)
        self.done.append(f"type {words[:100]!r} over {before[:40]!r}")
        if self._click(field):
            self.page.keyboard.press("Control+a")
            self.page.keyboard.insert_text(words)
            if self.draw.random() < 0.5:
                self.page.keyboard.press("Enter")
        return None

    def _words(self, before: str) -> str:
        """Hostile, a size, or what stands there with a few characters more or less."""
        how = self.draw.random()
        if how < 0.5:
            return self.draw.choice(TYPED)
        if how < 0.65:
            return str(2 ** self.draw.randrange(21))
        at = self.draw.randrange(len(before[:200]) + 1)
        return (
            before[:at] + "".join(self.draw.choices(STUFF, k=2)) + before[at + self.draw.randrange(3) : 200]
        )

    def _drag(self) -> None:
        handle = self._one_of(".noUi-handle:visible")
        if not handle or not (place := handle.evaluate(PLACE)):
            return self._click_picture()
        x, y = place
        way = [self.draw.randrange(-200, 200) for _ in range(self.draw.randrange(1, 5))]
        self.done.append(f"drag {handle.get_attribute('aria-label')!r} by {way}")
        self.page.mouse.move(x, y)
        self.page.mouse.down()
        for step in way:
            self.page.mouse.move(x + step, y, steps=4)
        self.page.mouse.up()
        return None

    def _click_picture(self) -> None:
        part = self._one_of("[data-key]")
        if not part:
            return self._press()
        self.done.append(f"click {part.get_attribute('data-key')!r} in the picture")
        self._click(part)
        return None

    def _key(self) -> None:
        keys = self.draw.choices(KEYS, k=self.draw.randrange(1, 6))
        focus = self._one_of(f"{CONTROLS}, .noUi-handle:visible, [data-key][tabindex='0']")
        if focus:
            self.done.append(f"press {keys}")
            focus.focus()
            for key in keys:
                if self.page.evaluate(
                    "!!document.activeElement.closest('.course-lab')"
                ):  # Tab may have left it
                    self.page.keyboard.press(key)

    def run_again(self) -> None:
        """As a reader does: into the cell, and Ctrl+Enter."""
        self.done.append("run the cell again")
        cell = self.page.locator(".jp-CodeCell", has=self.lab)
        cell.locator(".cm-content").first.click()
        self.page.keyboard.press("Control+Enter")

    def _change_theme(self) -> None:
        theme = self.draw.choice(("JupyterLab Light", "JupyterLab Dark"))
        self.done.append(theme)
        self.page.get_by_role("menuitem", name="Settings", exact=True).click()
        self.page.locator(".lm-Menu-item", has_text=re.compile("^Theme")).first.hover()
        self.page.locator("[data-command='apputils:change-theme']", has_text=re.compile(f"^{theme}$")).click()

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
SPILT = ".jp-OutputArea-output[data-mime-type$=stderr], .jp-OutputArea-output[data-mime-type$=error]"


class Room:
    """The page with its labs, and what must not change however they are handled."""

    def __init__(self, page: Page, folder: Path) -> None:
        self.page, self.folder, self.heard = page, folder, Overheard.of(page)
        self.cells, self.files = self._cells(), self._files()

    def _cells(self) -> int:
        return self.page.locator(".jp-Cell").count()

    def _files(self) -> set[str]:
        """Beside the notebook, and one of ours a folder further up."""
        return {path.name for path in (*self.folder.iterdir(), *self.folder.parent.glob(FILE))}

    def look(self, lab: Locator) -> None:
        """A picture or a sentence, no markup, no error, nothing run and nothing written."""
        self.page.wait_for_selector(browser.IDLE)
        wrong = [*lab.evaluate(LOOK), *self.heard.errors]
        if self._cells() != self.cells:
            wrong.append("a cell came or went")
        if new := self._files() - self.files - {".ipynb_checkpoints"}:
            wrong.append(f"files: {sorted(new)}")
        if self.page.locator(SPILT).count():
            wrong.append("an error, or words for stderr, below a cell")
        assert not wrong, "; ".join(wrong)[:1000]

    def visit(self, name: str, draw: random.Random, moves: int) -> list[str]:
        """Some moves at a lab, which is alive in the end; what was done."""
        hand = Hand(self.page, name, draw)
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
            )  # the page's own: nothing, if work has ended by itself
            expect(stop).to_be_disabled()
        presets, shown = lab.locator(".course-controls + .widget-hbox .widget-button"), []
        for preset in presets.all()[:2]:
            preset.click()
            self.page.wait_for_selector(browser.IDLE)
            expect(lab.locator(".course-mistake"), "after a preset").to_be_empty()
            wait_until(lambda: lab.evaluate(STATE) not in shown, "a preset brings another state")
            shown.append(lab.evaluate(STATE))
        self.look(lab)

    def mend(self, name: str) -> None:
        """After a failure: a fresh panel, and forget."""
        self.page.evaluate("delete window.wasHere")
        self.page.keyboard.press("Escape")
        Hand(self.page, name, random.Random()).run_again()
        self.page.wait_for_selector(browser.IDLE)
        self.heard.errors.clear()
        self.cells, self.files = self._cells(), self._files()


@dataclass(frozen=True)
class Memory:
    """What the page and the kernel hold."""

    page_mb: float
    nodes: int
    kernel_mb: float

    @classmethod
    def now(cls, devtools: CDPSession) -> "Memory":
        """After the page has collected its garbage."""
        devtools.send("HeapProfiler.collectGarbage")
        devtools.send("Performance.enable")
        metrics = {one["name"]: one["value"] for one in devtools.send("Performance.getMetrics")["metrics"]}
        kernels = [
            p for p in psutil.Process().children(recursive=True) if "ipykernel_launcher" in p.cmdline()
        ]
        rss = sum(kernel.memory_info().rss for kernel in kernels)
        return cls(metrics["JSHeapUsedSize"] / 1e6, int(metrics["Nodes"]), rss / 1e6)


def fuzz(names: Sequence[str], tries: int, seed: int) -> int:
    """Round after round over the labs; how many visits failed, each told with what was done."""
    begun, failed, done, number = time.monotonic(), 0, 0, 0
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "room"
        folder.mkdir()
        with browser.opened_labs(folder, *names) as page:
            room, devtools = Room(page, folder), page.context.new_cdp_session(page)
            print(f"{'moves':>6}{'page':>10}{'nodes':>9}{'kernel':>10}")
            while done < tries:
                name = names[number % len(names)]
                moves = min(MOVES, tries - done)
                try:
                    room.visit(name, random.Random(f"{seed} {number}"), moves)
                except Exception as error:
                    failed += 1
                    print(f"\n{name} lab, visit {number}: {error}\n  " + "\n  ".join(error.__notes__))
                    room.mend(name)
                done, number = done + moves, number + 1
                if number % len(names) == 0 or done >= tries:
                    held = Memory.now(devtools)
                    print(
                        f"{done:>6}{held.page_mb:>7.1f} MB{held.nodes:>9,}{held.kernel_mb:>7.0f} MB",
                        flush=True,
                    )
        log = (folder / "jupyterlab.log").read_text()
        if "Traceback" in log:
            failed += 1
            print(log[log.index("Traceback") :][:3000])
    print(f"{tries:,} moves, seed {seed}, {time.monotonic() - begun:.0f} s: {failed} failures.")
    return failed
