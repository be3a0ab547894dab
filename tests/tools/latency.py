"""How soon a lab answers, in a real browser, in a real JupyterLab and on a page: from the movement to the painted picture.

`make latency`, or `python -m tests.tools.latency --lab float_lab --times 1`. The page itself keeps the time, from the
event's own stamp until the frame with the new picture is painted. A movement is an arrow key on a slider or on a mark
of the picture, each in turn over all that the lab or a notebook's figure shows; what has none is left out. Then each
slider is dragged to and fro for a second. Where a guess is drawn, its marks move first; then Show is pressed, and what
moves the picture from there on is timed, too.
Other work only ever makes a lab slower, so that of some such rounds the quietest counts. On a page, also how soon after
its opening it is alive, and what it asked for until then; where npm is missing, pages are left out.
"""

import argparse
import gzip
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
DRAG_STEPS = 60  # in a second: as often as a screen is drawn
REST_MS = 40  # between two movements, for what the kernel still has to say
SETTLED_MS = 1000  # after Show
# What follows a guess is folded, on a page; and a lab in there has no size.
UNFOLD = "() => document.querySelectorAll('main details').forEach((one) => { one.open = true; })"
# A picture is whatever changes at the place; it counts once the frame after the change is painted.
WATCH = """(place) => {
  const seen = { moved: 0, released: 0, pictures: [], heard: () => {} };
  const note = (name) => (event) => { seen[name] = event.timeStamp; };
  window.addEventListener("keydown", note("moved"), true);
  window.addEventListener("pointerup", note("released"), true);
  const painted = new MessageChannel();
  painted.port1.onmessage = () => { seen.pictures.push(performance.now()); seen.heard(); };
  let waiting = false;
  const isPicture = (node) => ["svg", "IMG"].includes(node.nodeName) || node.querySelector?.("img, svg");
  const watching = new MutationObserver((changes) => {
    if (waiting || !changes.some((change) => [...change.addedNodes].some(isPicture))) return;
    waiting = true;
    requestAnimationFrame(() => { waiting = false; painted.port2.postMessage(""); });
  });
  watching.observe(place, { childList: true, subtree: true });
  window.courseSeen = seen;
}"""
ANSWER = """async () => {
  const seen = window.courseSeen;
  const soon = new Promise((heard) => { seen.heard = heard; });
  if (!seen.pictures.length) await Promise.race([soon, new Promise((done) => setTimeout(done, 2000))]);
  return seen.pictures.length ? (seen.pictures[0] - seen.moved) / 1000 : null;
}"""
FORGET = "() => { window.courseSeen.pictures.length = 0; }"
# What a slider's handle says of itself; an end is where no key leads further.
VALUE = """(handle) => {
  const says = (name, own) => Number(handle.type === "range" ? handle[own] : handle.getAttribute(`aria-value${name}`));
  const now = says("now", "value"), least = says("min", "min"), most = says("max", "max");
  return { atLeast: now <= least, atMost: now >= most, below: now < (least + most) / 2 };
}"""
# The middle of what is taken: of JupyterLab's handle, which moves, or of a page's, which a slider draws.
MIDDLE = """(handle) => {
  const { left, top, width, height } = handle.getBoundingClientRect(), thumb = 16;
  const share = handle.type === "range" ? (handle.value - handle.min) / (handle.max - handle.min) : 0.5;
  return [left + (handle.type === "range" ? thumb / 2 + share * (width - thumb) : width / 2), top + height / 2];
}"""


@dataclass(frozen=True)
class Latency:
    """Seconds from a movement to its painted picture; and the drags."""

    answers_s: Sequence[float]
    pictures: float  # in a drag, on average
    behind_s: float  # the last picture, after the pointer is up; of the worst drag

    @property
    def median_s(self) -> float:
        """Half of the movements are answered sooner."""
        return statistics.median(self.answers_s)


@dataclass(frozen=True)
class Rounds:
    """How often each lab is timed, and by how many movements."""

    times: int
    movements: int


class Slider:
    """A handle that is moved to and fro between its ends."""

    def __init__(self, handle: Locator) -> None:
        self.handle, self.page = handle, handle.page
        self.forwards = handle.evaluate(VALUE)["below"]
        self.is_mark = handle.get_attribute("data-mark") is not None

    def answer_s(self) -> float | None:
        """By an arrow key: from when the page felt it to when it had painted the picture; None if that stayed as it was."""
        self.page.evaluate(FORGET)
        says = self.handle.evaluate(VALUE)
        self.forwards = says["atLeast"] or (self.forwards and not says["atMost"])
        self.handle.focus()
        forwards, back = ("ArrowUp", "ArrowDown") if self.is_mark else ("ArrowRight", "ArrowLeft")
        self.page.keyboard.press(forwards if self.forwards else back)
        seconds = self.page.evaluate(ANSWER)
        self.page.wait_for_timeout(REST_MS)
        return seconds

    def drag(self) -> tuple[int, float]:
        """By the mouse: how many pictures came while it moved, and how long after its end the last one."""
        page, (x, y) = self.page, self.handle.evaluate(MIDDLE)
        reach = 40 if self.forwards else -40
        page.mouse.move(x, y)
        page.mouse.down()
        page.wait_for_timeout(200)
        page.evaluate(FORGET)
        begun = time.monotonic()
        for share in (step / DRAG_STEPS for step in range(1, DRAG_STEPS + 1)):
            page.mouse.move(x + reach * sin(2 * pi * share), y)
            page.wait_for_timeout(max(0, 1000 * (begun + share - time.monotonic())))
        page.mouse.move(x + reach * sin(2 * pi * 0.04), y)
        page.mouse.up()
        page.wait_for_timeout(800)
        seen = page.evaluate("window.courseSeen")
        during = [one for one in seen["pictures"] if one <= seen["released"]]
        return len(during), max(0, max(seen["pictures"], default=0) - seen["released"]) / 1000


HEAD = f"{'':<12}{'median':>10}{'worst':>10}{'pictures in a drag':>20}{'last after it':>15}"


def row(name: str, one: Latency) -> str:
    return (
        f"{name:<12}{seconds_text(one.median_s):>10}{seconds_text(max(one.answers_s)):>10}"
        f"{one.pictures:>20.0f}{seconds_text(one.behind_s):>15}"
    )


def latency(lab: Locator, movements: int) -> Latency | None:
    """Keys on one slider or mark after the other, and drags, before Show and after it; None if nothing moves the picture."""
    lab.locator(".course-picture").evaluate(WATCH)
    show = lab.get_by_role("button", name="Show", exact=True)
    answers_s, drags = moved(sliders_of(lab), movements)
    if show.count():
        press(show)
        more_s, more_drags = moved(sliders_of(lab), movements)
        press(show)  # for the next round, which begins with the question
        answers_s, drags = answers_s + more_s, drags + more_drags
    if not answers_s:
        return None
    pictures, behind_s = zip(*(drags or [(0, 0)]), strict=True)
    return Latency(answers_s, statistics.mean(pictures), max(behind_s))


def press(show: Locator) -> None:
    show.click()
    show.page.wait_for_timeout(SETTLED_MS)


def moved(sliders: Sequence[Slider], movements: int) -> tuple[list[float], list[tuple[int, float]]]:
    """How soon each movement was answered, and how each drag went."""
    # A slider can be about the next run, and change nothing yet; and three steps of a size all stand for 1.
    sliders = [slider for slider in sliders if any(slider.answer_s() for _ in range(4))]
    drags = [slider.drag() for slider in sliders if not slider.is_mark]
    seen = [slider.answer_s() for slider in sliders for _ in range(-(-movements // len(sliders)))]
    return [seconds for seconds in seen if seconds is not None], drags


def sliders_of(lab: Locator) -> list[Slider]:
    free = lab.locator(
        ":is(.noUi-handle, [type=range], [data-mark]:not([aria-disabled=true])):visible"
    )
    return [Slider(handle) for handle in free.all()]


def report(name: str, lab: Locator, rounds: Rounds, more: str = "") -> Latency | None:
    """Print the quietest of so many rounds; of a lab that has no slider, that it has none."""
    timed = [one for _ in range(rounds.times) if (one := latency(lab, rounds.movements))]
    if not timed:
        print(f"{name:<12} has nothing that moves its picture by key", flush=True)
        return None
    quietest = min(timed, key=lambda one: one.median_s)
    print(row(name, quietest), more, sep="", flush=True)
    return quietest


def summary(found: Sequence[Latency | None]) -> str:
    """The slowest of all: medians, and single answers."""
    timed = [one for one in found if one]
    if not timed:
        return "Nothing was timed."
    medians, worst = [one.median_s for one in timed], [max(one.answers_s) for one in timed]
    return (
        f"{len(timed)} timed: medians {seconds_text(min(medians))} to {seconds_text(max(medians))}, "
        f"worst answers {seconds_text(min(worst))} to {seconds_text(max(worst))}"
    )


def notebooks(names: Sequence[str], rounds: Rounds) -> None:
    """The labs, and the figures of all notebooks, in a JupyterLab of this machine."""
    figures = [
        (f"{path.stem[:2]} {part.figure.lab}", part.text)
        for path in NOTEBOOKS
        for part in outline(read(path)).parts
        if part.figure and not part.figure.is_whole and part.figure.lab in names
    ]
    cells = [source for _, source in figures]
    with (
        tempfile.TemporaryDirectory() as folder,
        browser.opened_labs(Path(folder), *names, figures=cells) as page,
    ):
        print(
            f"{device_name('cpu')}, {os.cpu_count()} of them; {platform.system()}, Chromium {page.context.browser.version}"
        )
        print(HEAD)
        found = []
        for place, name in enumerate([*names, *(name for name, _ in figures)]):
            lab = page.locator(".course-lab[aria-label]").nth(place)
            lab.scroll_into_view_if_needed()
            found.append(report(name, lab, rounds))
        print(summary(found))


def pages(names: Sequence[str], rounds: Rounds) -> None:
    """The same of each lab on its page, which a server on this machine sends."""
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
        print(
            f"On a page, and how soon it is alive; Python is {decimal_bytes_text(sent)} compressed, once for all"
        )
        found = []
        for path in sorted(Path(folder).glob("[0-9]*.html")):
            for place, name in enumerate(
                re.findall(r'data-lab="(\w+)"', path.read_text(encoding="utf-8"))
            ):
                if name in names:
                    found.append(_page(chromium, f"{address}/{path.name}", place, rounds))
        print(summary(found))


def _page(chromium: Browser, address: str, place: int, rounds: Rounds) -> Latency | None:
    page = chromium.new_page(viewport=browser.VIEWPORT)
    begun = time.monotonic()
    page.goto(address)
    page.evaluate(UNFOLD)
    lab = page.locator("[data-lab]").nth(place)
    expect(lab).to_have_attribute("data-alive", "true")
    alive_s = time.monotonic() - begun
    lab.scroll_into_view_if_needed()
    name = f"{Path(address).stem[:2]} {lab.get_attribute('data-lab')}"
    found = report(name, lab, rounds, f"{seconds_text(alive_s):>10}")
    page.close()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.tools.latency", description=__doc__)
    parser.add_argument("--lab", choices=labs.__all__)
    parser.add_argument("--on", choices=("notebooks", "pages"), help="one of the two alone")
    parser.add_argument("--movements", type=int, default=MOVEMENTS, help="of a lab, in a round")
    parser.add_argument("--times", type=int, default=3, help="rounds, of which the quietest counts")
    asked = parser.parse_args()
    if browser.browser_path() is None:
        sys.exit(f"No browser found to measure in; looked for {', '.join(browser.BROWSERS)}.")
    names = [name.removesuffix("_lab") for name in ([asked.lab] if asked.lab else labs.__all__)]
    rounds = Rounds(asked.times, asked.movements)
    if asked.on != "pages":
        notebooks(names, rounds)
    if asked.on != "notebooks":
        pages(names, rounds)


if __name__ == "__main__":
    main()
