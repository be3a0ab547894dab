"""How soon a lab answers, from a movement to the painted picture, in JupyterLab and on a page.

`make latency`, or `python -m tests.tools.latency --lab float_lab --times 1`. A real browser's page
keeps the time, from the event's own time stamp until the frame with the new picture is painted. A
movement is an arrow key on a slider or on a mark in the picture; all sliders and marks of a lab, or
of a notebook's figure, are moved in turn. Then each slider is dragged to and fro for a second.
Where a guess is drawn, its marks move first; then Show is pressed, and what moves the picture from
there on is timed, too. A lab that has nothing to move is left out.

Other work on the machine can only make a lab slower, so the quietest of several rounds counts. On a
page, it also says how soon after opening the page the lab is alive, and how much Python is loaded
until then. Where npm is missing, pages are left out.
"""

import argparse
import gzip
import math
import os
import platform
import re
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from math import pi, sin
from pathlib import Path

from playwright.sync_api import Browser, Locator, expect

from course_utils.chapters import labs
from course_utils.core.say import decimal_bytes_text, seconds_text
from course_utils.stage.notebook.outline import outline
from course_utils.stage.pages.__main__ import write
from course_utils.subjects.machines.at_hand import device_name
from tests import NOTEBOOKS
from tests.helpers import browser
from tests.helpers import pages as site
from tests.helpers.notebooks import read

MOVEMENTS = 100
DRAG_STEPS = 60  # in a second, as often as a screen is drawn
REST_MS = 40  # between two movements, so that the kernel's other messages arrive
SETTLED_MS = 1000  # after Show
# What follows a guess is folded on a page, and a lab that is folded has no size.
UNFOLD = """() => {
  for (const fold of document.querySelectorAll("main details")) fold.open = true;
}"""
# Notes when the picture in that place changes. A frame is painted when a message that was sent
# while it was being drawn arrives.
WATCH = """(place) => {
  const seen = { moved: 0, released: 0, pictures: [], heard: () => {} };
  const noteMoved = (event) => { seen.moved = event.timeStamp; };
  const noteReleased = (event) => { seen.released = event.timeStamp; };
  window.addEventListener("keydown", noteMoved, true);
  window.addEventListener("pointerup", noteReleased, true);

  const painted = new MessageChannel();
  painted.port1.onmessage = () => {
    seen.pictures.push(performance.now());
    seen.heard();
  };
  const hasPicture = (node) =>
    ["svg", "IMG"].includes(node.nodeName) || node.querySelector?.("img, svg");
  let waiting = false;
  const watching = new MutationObserver((changes) => {
    const added = changes.flatMap((change) => [...change.addedNodes]);
    if (waiting || !added.some(hasPicture)) return;
    waiting = true;
    requestAnimationFrame(() => {
      waiting = false;
      painted.port2.postMessage("");
    });
  });
  watching.observe(place, { childList: true, subtree: true });
  window.courseSeen = seen;
}"""
# The seconds from the last key to the picture; null if none comes within two seconds.
ANSWER = """async () => {
  const seen = window.courseSeen;
  const picture = new Promise((heard) => { seen.heard = heard; });
  const tooLate = new Promise((done) => setTimeout(done, 2000));
  if (!seen.pictures.length) await Promise.race([picture, tooLate]);
  return seen.pictures.length ? (seen.pictures[0] - seen.moved) / 1000 : null;
}"""
FORGET = "() => { window.courseSeen.pictures.length = 0; }"
# Whether a slider is at one of its ends, where no key moves it further, and in which half it is.
VALUE = """(handle) => {
  const isNative = handle.type === "range";
  const aria = (name) => handle.getAttribute(`aria-value${name}`);
  const now = Number(isNative ? handle.value : aria("now"));
  const least = Number(isNative ? handle.min : aria("min"));
  const most = Number(isNative ? handle.max : aria("max"));
  return { atLeast: now <= least, atMost: now >= most, below: now < (least + most) / 2 };
}"""
# The middle of what the mouse takes: of JupyterLab's handle, which is an element of its own, or of
# the thumb that the browser draws in a page's slider.
MIDDLE = """(handle) => {
  const { left, top, width, height } = handle.getBoundingClientRect();
  const y = top + height / 2;
  if (handle.type !== "range") return [left + width / 2, y];
  const thumb = 16;
  const share = (handle.value - handle.min) / (handle.max - handle.min);
  return [left + thumb / 2 + share * (width - thumb), y];
}"""


@dataclass(frozen=True)
class Latency:
    """How soon a lab's picture follows keys and drags."""

    answers_s: Sequence[float]  # from each movement to its painted picture
    pictures: float  # painted in a drag, on average
    behind_s: float  # from the pointer's release to the last picture, in the worst drag

    @property
    def median_s(self) -> float:
        """The median of the answers."""
        return statistics.median(self.answers_s)


@dataclass(frozen=True)
class Rounds:
    """How often each lab is timed, and by how many movements."""

    times: int
    movements: int


class Slider:
    """A handle that is moved to and fro between its ends."""

    def __init__(self, handle: Locator) -> None:
        self.handle = handle
        self.page = handle.page
        self.forwards = handle.evaluate(VALUE)["below"]
        self.is_mark = handle.get_attribute("data-mark") is not None

    def answer_s(self) -> float | None:
        """Press an arrow key; the seconds until a picture is painted, or None if none is."""
        self.page.evaluate(FORGET)
        value = self.handle.evaluate(VALUE)
        if value["atLeast"]:
            self.forwards = True
        elif value["atMost"]:
            self.forwards = False
        self.handle.focus()
        self.page.keyboard.press(self._key())
        seconds = self.page.evaluate(ANSWER)
        self.page.wait_for_timeout(REST_MS)
        return seconds

    def _key(self) -> str:
        """Return the arrow key that moves the handle on."""
        if self.is_mark:
            return "ArrowUp" if self.forwards else "ArrowDown"
        return "ArrowRight" if self.forwards else "ArrowLeft"

    def drag(self) -> tuple[int, float]:
        """Drag it by the mouse to and fro, and let go.

        Returns how many pictures came meanwhile, and how many seconds after the end the last one.
        """
        page = self.page
        x, y = self.handle.evaluate(MIDDLE)
        reach = 40 if self.forwards else -40  # px; it first goes to where there is more space
        page.mouse.move(x, y)
        page.mouse.down()
        page.wait_for_timeout(200)
        page.evaluate(FORGET)
        begun = time.monotonic()
        for step in range(1, DRAG_STEPS + 1):
            share = step / DRAG_STEPS  # of the second
            page.mouse.move(x + reach * sin(2 * pi * share), y)
            page.wait_for_timeout(max(0, 1000 * (begun + share - time.monotonic())))
        # A last step, after which the last picture comes.
        page.mouse.move(x + reach * sin(2 * pi * 0.04), y)
        page.mouse.up()
        page.wait_for_timeout(800)
        seen = page.evaluate("window.courseSeen")
        released_ms = seen["released"]
        during = [picture_ms for picture_ms in seen["pictures"] if picture_ms <= released_ms]
        behind_ms = max(seen["pictures"], default=0) - released_ms
        return len(during), max(0, behind_ms) / 1000


HEAD = f"{'':<12}{'median':>10}{'worst':>10}{'pictures in a drag':>20}{'last after it':>15}"


def row(name: str, timed: Latency) -> str:
    """Return a lab's line of the table below HEAD."""
    median = seconds_text(timed.median_s)
    worst = seconds_text(max(timed.answers_s))
    behind = seconds_text(timed.behind_s)
    return f"{name:<12}{median:>10}{worst:>10}{timed.pictures:>20.0f}{behind:>15}"


def latency(lab: Locator, movements: int) -> Latency | None:
    """Time keys and drags before Show and after it; None if nothing moves the picture."""
    lab.locator(".course-picture").evaluate(WATCH)
    show = lab.get_by_role("button", name=re.compile("^(Show|Hide)$"))
    answers_s, drags = moved(sliders_of(lab), movements)
    if show.count():
        press(show)
        more_s, more_drags = moved(sliders_of(lab), movements)
        press(show)  # for the next round, which begins with the question
        answers_s += more_s
        drags += more_drags
    if not answers_s:
        return None
    if not drags:
        return Latency(answers_s, pictures=0, behind_s=0)
    return Latency(
        answers_s,
        pictures=statistics.mean(pictures for pictures, _ in drags),
        behind_s=max(behind_s for _, behind_s in drags),
    )


def press(show: Locator) -> None:
    """Press the button Show, and wait until the picture is at rest."""
    show.click()
    show.page.wait_for_timeout(SETTLED_MS)


def moved(sliders: Sequence[Slider], movements: int) -> tuple[list[float], list[tuple[int, float]]]:
    """Return how soon each movement was answered, and how each drag went."""
    sliders = [slider for slider in sliders if moves_the_picture(slider)]
    drags = [slider.drag() for slider in sliders if not slider.is_mark]
    answers_s = []
    for slider in sliders:
        for _ in range(math.ceil(movements / len(sliders))):
            seconds = slider.answer_s()
            if seconds is not None:
                answers_s.append(seconds)
    return answers_s, drags


def moves_the_picture(slider: Slider) -> bool:
    """Whether the slider moves the picture within four steps.

    The first steps of a size can all round to 1. Some sliders only choose what the next job does.
    """
    return any(slider.answer_s() for _ in range(4))


def sliders_of(lab: Locator) -> list[Slider]:
    """Return the lab's visible sliders, and the marks in its picture that can be moved."""
    free = lab.locator(
        ":is(.noUi-handle, [type=range], [data-mark]:not([aria-disabled=true])):visible"
    )
    return [Slider(handle) for handle in free.all()]


def report(name: str, lab: Locator, rounds: Rounds, more: str = "") -> Latency | None:
    """Print the quietest of the rounds, or that the lab has nothing to move."""
    all_rounds = [latency(lab, rounds.movements) for _ in range(rounds.times)]
    timed = [found for found in all_rounds if found]
    if not timed:
        print(f"{name:<12} has nothing that moves its picture by key", flush=True)
        return None
    quietest = min(timed, key=lambda found: found.median_s)
    print(row(name, quietest), more, sep="", flush=True)
    return quietest


def summary(found: Sequence[Latency | None]) -> str:
    """Return the range of all medians, and of the slowest answers."""
    timed = [lab for lab in found if lab]
    if not timed:
        return "Nothing was timed."
    medians = [lab.median_s for lab in timed]
    worst = [max(lab.answers_s) for lab in timed]
    return f"{len(timed)} timed: medians {range_text(medians)}, worst answers {range_text(worst)}"


def range_text(seconds: Sequence[float]) -> str:
    return f"{seconds_text(min(seconds))} to {seconds_text(max(seconds))}"


def notebooks(names: Sequence[str], rounds: Rounds) -> None:
    """Time the labs, and the figures of all notebooks, in a JupyterLab on this machine."""
    figure_names = []
    figure_cells = []
    for path in NOTEBOOKS:
        for part in outline(read(path)).parts:
            if part.figure and not part.figure.is_whole and part.figure.lab in names:
                figure_names.append(f"{path.stem[:2]} {part.figure.lab}")
                figure_cells.append(part.text)
    with (
        tempfile.TemporaryDirectory() as folder,
        browser.opened_labs(Path(folder), *names, figures=figure_cells) as page,
    ):
        machine = f"{device_name('cpu')}, {os.cpu_count()} of them; {platform.system()}"
        print(f"{machine}, Chromium {page.context.browser.version}")
        print(HEAD)
        found = []
        for number, name in enumerate([*names, *figure_names]):
            lab = page.locator(".course-lab[aria-label]").nth(number)
            lab.scroll_into_view_if_needed()
            found.append(report(name, lab, rounds))
        print(summary(found))


def pages(names: Sequence[str], rounds: Rounds) -> None:
    """Time each lab on its page, which a server on this machine sends."""
    with (
        tempfile.TemporaryDirectory() as folder,
        site.served(Path(folder)) as address,
        browser.chromium() as chromium,
    ):
        try:
            write(Path(folder))
        except ValueError as error:
            print(error)
            return
        python = [*Path(folder, "pyodide").iterdir(), Path(folder, "course.zip")]
        sent = sum(len(gzip.compress(path.read_bytes())) for path in python)
        size = decimal_bytes_text(sent)
        print(f"On a page, and how soon it is alive; Python is {size} compressed, once for all")
        found = []
        for path in sorted(Path(folder).glob("[0-9]*.html")):
            on_page = re.findall(r'data-lab="(\w+)"', path.read_text(encoding="utf-8"))
            for number, name in enumerate(on_page):
                if name in names:
                    found.append(_page(chromium, f"{address}/{path.name}", number, rounds))
        print(summary(found))


def _page(chromium: Browser, address: str, number: int, rounds: Rounds) -> Latency | None:
    """Open a page, wait until the lab of that number on it is alive, and time it."""
    page = chromium.new_page(viewport=browser.VIEWPORT)
    begun = time.monotonic()
    page.goto(address)
    page.evaluate(UNFOLD)
    lab = page.locator("[data-lab]").nth(number)
    expect(lab).to_have_attribute("data-alive", "true")
    alive_s = time.monotonic() - begun
    lab.scroll_into_view_if_needed()
    name = f"{Path(address).stem[:2]} {lab.get_attribute('data-lab')}"
    found = report(name, lab, rounds, f"{seconds_text(alive_s):>10}")
    page.close()
    return found


def main() -> None:
    """Time labs and figures as the command's options name them, and print the tables."""
    parser = argparse.ArgumentParser(prog="python -m tests.tools.latency", description=__doc__)
    parser.add_argument("--lab", choices=labs.__all__)
    parser.add_argument("--on", choices=("notebooks", "pages"), help="one of the two alone")
    parser.add_argument("--movements", type=int, default=MOVEMENTS, help="of a lab, in a round")
    parser.add_argument("--times", type=int, default=3, help="rounds, of which the quietest counts")
    asked = parser.parse_args()
    if browser.browser_path() is None:
        sys.exit(f"No browser found to measure in; looked for {', '.join(browser.BROWSERS)}.")
    chosen = [asked.lab] if asked.lab else labs.__all__
    names = [name.removesuffix("_lab") for name in chosen]
    rounds = Rounds(asked.times, asked.movements)
    if asked.on != "pages":
        notebooks(names, rounds)
    if asked.on != "notebooks":
        pages(names, rounds)


if __name__ == "__main__":
    main()
