"""A hostile reader at every lab, from the kernel's side: drawn values, texts, clicks, picks and jobs in any order.

`make fuzz`, or `python -m tests.tools.fuzz --tries 2000 --seed 7 --lab float_lab`. A move is a line of Python, so that
what fails can be pasted into a cell. Whatever a panel sends is packed as for a page.
"""

import argparse
import gc
import logging
import math
import random
import signal
import statistics
import sys
import threading
import time
import traceback
import warnings
import xml.etree.ElementTree as ElementTree
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import NamedTuple

import comm
import ipywidgets as widgets
import psutil
from ipywidgets.widgets.widget import _instances as registered
from jupyter_client.session import json_packer
from traitlets import TraitError
from traitlets import log as traitlets_log

from course_utils import labs
from course_utils.labs.panel import Panel
from tests.hostile import Reader, buttons

MOVES = 50  # on one panel
OF_A_PICTURE = {
    f"{{http://www.w3.org/2000/svg}}{tag}" for tag in ["svg", "g", "text", "rect", "polyline", "circle"]
}
PATIENCE_S = 10  # for a move


class Wire(comm.base_comm.BaseComm):
    """Packs whatever would go to the page, and drops it."""

    def publish_msg(self, msg_type, data=None, metadata=None, buffers=None, **keys):
        json_packer({"data": data, "metadata": metadata, **keys})


# What the moves are made of; the page reaches widgets by messages.


def page(widget: widgets.Widget, **state: object) -> None:
    """What the page sends when the reader moves something there."""
    _arrive(widget, method="update", state=state)


def message(panel: Panel, content: object) -> None:
    """What the picture sends when it is clicked."""
    _arrive(panel.screen, method="custom", content=content)


def _arrive(widget: widgets.Widget, **data: object) -> None:
    if widget.comm is not None:  # a closed one hears nothing
        widget.comm.handle_msg({"content": {"data": data}, "buffers": []})


def click(panel: Panel, label: str) -> None:
    """A button that is grey can still be hit: the page may not know yet."""
    message_to = next(button for button in buttons(panel) if button.description == label)
    _arrive(message_to, method="custom", content={"event": "click"})


def together(panel: Panel, *labels: str) -> None:
    """Press each in a thread of its own."""
    with overheard() as failures:
        threads = [threading.Thread(target=click, args=(panel, label), daemon=True) for label in labels]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(PATIENCE_S)
        assert not any(thread.is_alive() for thread in threads), "two buttons at once never come back"
    if failures:
        raise failures[0]


def rest(panel: Panel, seconds: float) -> None:
    """Let a job go on for a while."""
    with suppress(Exception):  # whose sentence stands in the panel
        panel.wait(seconds)


def still(panel: Panel) -> None:
    """The picture for where no kernel runs."""
    if panel.comm is not None:
        bundle, _ = panel._repr_mimebundle_()
        assert bundle["image/png"], "no still picture"


def end(panel: Panel, preset: str) -> None:
    """Stop what runs; the panel is not dead, shows what its controls say, and leaves nothing."""
    panel.stop()
    with suppress(ValueError):  # the job's sentence stands in the panel
        panel.wait(PATIENCE_S / 2)
    panel.preset(preset)
    assert not panel.screen.mistake, f"after a preset: “{panel.screen.mistake}”"
    assert panel._show(**panel.values).picture == panel.screen.svg, "the picture is not that of the controls"
    for button in buttons(panel):
        assert button.disabled == (button.description == "Stop"), f"{button.description} stays as it was"
    panel.close()
    _, left = psutil.wait_procs(psutil.Process().children(recursive=True), PATIENCE_S / 2)
    assert not left, f"processes are left: {left}"


NAMES = {f.__name__: f for f in (page, message, click, together, rest, still, end)}
NAMES |= {"labs": labs, "nan": float("nan"), "inf": float("inf")}


@contextmanager
def overheard() -> Iterator[list[BaseException]]:
    """Exceptions that nobody gets to hear of: of a thread, of a finalizer, of a callback, where ipywidgets logs them."""
    found: list[BaseException] = []
    before = threading.excepthook, sys.unraisablehook
    threading.excepthook = sys.unraisablehook = lambda seen: found.append(seen.exc_value)
    log, ear = traitlets_log.get_logger(), logging.NullHandler()

    def hear(record: logging.LogRecord) -> None:
        error = record.exc_info and record.exc_info[1]
        if error and not isinstance(error, TraitError):  # which refuses a page's value of the wrong type
            found.append(error)

    ear.handle = hear
    log.addHandler(ear)
    log.propagate = False
    try:
        yield found
    finally:
        threading.excepthook, sys.unraisablehook = before
        log.removeHandler(ear)
        log.propagate = True


@contextmanager
def in_time(what: str) -> Iterator[None]:
    """A panel that does not come back is one that failed; a regular expression and a lock can be interrupted, too."""

    def ring(*_: object) -> None:
        raise TimeoutError(f"More than {PATIENCE_S} s for {what[:200]}")

    before = signal.signal(signal.SIGALRM, ring)
    signal.alarm(PATIENCE_S)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


# One panel and its reader.


class Shown(NamedTuple):
    """One call of a lab's `show`: its seconds, by the wall and of this thread alone, and what asked for it."""

    wall_s: float
    own_s: float
    drawn: bool
    move: str


class Played:
    """A lab under a sequence of moves. Each raises AssertionError, or what the lab raised, if it went wrong."""

    def __init__(self, lab: str) -> None:
        self.lab, self.names, self.done = lab, dict(NAMES), []
        self.show_s: list[Shown] = []
        self.made = f"panel = labs.{lab}()"
        self.play(self.made)

    @property
    def panel(self) -> Panel:
        return self.names["panel"]

    def play(self, move: str) -> None:
        """Do it, and look."""
        self.done.append(move)
        before = self.names.get("panel")
        try:
            with in_time(move):
                exec(move, self.names)
        except TraitError:
            if not move.startswith("panel.controls"):  # a reader's own cell, to which traitlets says why
                raise
        if self.panel is not before:
            self._time_show()
        self.look()

    def _time_show(self) -> None:
        show = self.panel._show

        def timed(**values: object) -> object:
            wall, own, drawn = time.perf_counter(), time.thread_time(), False
            try:
                view = show(**values)
                drawn = True
                return view
            finally:
                took = time.perf_counter() - wall, time.thread_time() - own
                self.show_s.append(Shown(*took, drawn, self.done[-1]))

        self.panel._show = timed

    def look(self) -> None:
        """A picture, or a sentence."""
        with self.panel._lock:
            screen, error = self.panel.screen, self.panel.error
            mistake, report, failed = screen.mistake, screen.report, screen.failed
            svg, meaning = screen.svg, screen.meaning
        assert error is None or isinstance(error, ValueError), f"the lab failed: {error!r}"
        assert bool(mistake) == (error is not None), f"{error!r} is told as “{mistake}”"
        for words in (mistake, report if failed else ""):
            assert "not your doing" not in words, words
            assert not words or is_sentence(words), f"no sentence: “{words[:200]}”"
        assert meaning, "nothing is said"
        check_picture(svg)


def is_sentence(words: str) -> bool:
    return len(words) < 1000 and words.rstrip()[-1] in ".?!)”…"


def check_picture(svg: str) -> None:
    """Well-formed, and with none but a picture's elements: what was typed is text in it, at most."""
    for part in ElementTree.fromstring(svg).iter():
        assert part.tag in OF_A_PICTURE, f"{part.tag} in the picture"
        strange = [name for name in part.attrib if name.startswith("on") or name in ("href", "src")]
        assert not strange, f"{strange} in the picture"


def episode(lab: str, draw: random.Random, moves: int, show_s: list) -> tuple[list[str], Exception | None]:
    """One panel's life: what was done to it, and what went wrong."""
    played = Played(lab)
    reader, wrong = Reader(played.panel, draw), None
    with overheard() as failures:
        try:
            for _ in range(moves):
                played.play(reader.move(played.panel, lab))
            played.play(f"end(panel, {draw.choice(list(played.panel._presets))!r})")
        except Exception as error:
            wrong = error
    show_s += played.show_s
    widgets.Widget.close_all()  # where a cell was run again, its former panel is still on the page
    if wrong is None and failures:
        wrong = failures[0]
    if wrong is not None:
        clean_up(played.panel)
    return played.done[1:], wrong


def clean_up(panel: Panel) -> None:
    panel.close()
    rest(panel, PATIENCE_S)
    for process in psutil.Process().children(recursive=True):
        process.kill()


# The shortest sequence that still fails.


def fails(lab: str, moves: Sequence[str]) -> str:
    """How a fresh panel fails under these moves; nothing if it does not."""
    played = Played(lab)
    with overheard() as failures:
        try:
            for move in moves:
                played.play(move)
        except Exception as error:
            return kind_of(error)
        finally:
            clean_up(played.panel)
    return kind_of(failures[0]) if failures else ""


def kind_of(error: BaseException) -> str:
    """Two failures are alike if they come from the same line."""
    origin = error
    while origin.__context__ is not None:
        origin = origin.__context__
    frames = traceback.extract_tb(origin.__traceback__)
    ours = [f for f in frames if "course_utils" in f.filename] or frames
    where = f"{ours[-1].filename.rpartition('/')[2]}:{ours[-1].lineno}" if ours else ""
    return f"{type(error).__name__} at {where}"


def shortest(lab: str, moves: Sequence[str], kind: str) -> list[str]:
    """Without each move that it fails without; whole stretches first."""
    deadline = time.monotonic() + 60
    if fails(lab, moves[-1:]) == kind:
        return list(moves[-1:])
    moves, length = list(moves), max(1, len(moves) // 2)
    while length:
        at, before = 0, len(moves)
        while at < len(moves) and time.monotonic() < deadline:
            fewer = moves[:at] + moves[at + length :]
            if fails(lab, fewer) == kind:
                moves = fewer
            else:
                at += length
        length = length // 2 or int(len(moves) < before)  # the last stretch, until nothing more goes
    return moves


# The whole.


def warm(names: Sequence[str]) -> None:
    """What is computed once, and kept, is there before anything is measured."""
    for lab in names:
        panel = getattr(labs, lab)()
        for preset in panel._presets:
            panel.preset(preset)
        still(panel)
        panel.close()


def memory_mb() -> float:
    gc.collect()
    return psutil.Process().memory_info().rss / 1e6


def fuzz(
    names: Sequence[str],
    tries: int,
    seed: int,
    *,
    moves_each: int = MOVES,
    after_each: Callable[[int], None] = lambda done: None,
) -> tuple[dict, dict]:
    """Failures by kind, each as short as it gets, and the seconds of each lab's `show`."""
    failures: dict[tuple[str, str], tuple[list[str], Exception, int]] = {}
    show_s: dict[str, list] = defaultdict(list)
    done = number = 0
    while done < tries:
        lab = names[number % len(names)]
        moves = min(moves_each, tries - done)
        said, wrong = episode(lab, random.Random(f"{seed} {number}"), moves, show_s[lab])
        done += moves
        number += 1
        after_each(done)
        if wrong is not None:
            key = lab, kind_of(wrong)
            before = failures.get(key)
            few = before[0] if before else shortest(lab, said, key[1])
            failures[key] = few, wrong, (before[2] if before else 0) + 1
    return failures, show_s


@contextmanager
def wired() -> Iterator[None]:
    """Panels speak as in a kernel."""
    before, comm.create_comm = comm.create_comm, Wire
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings(
                "ignore", "Message serialization failed"
            )  # of a NaN, which no page can send
            yield
    finally:
        comm.create_comm = before


def print_latency(show_s: Mapping[str, Sequence[Shown]]) -> None:
    """The seconds of `show`; of the slowest also those of its thread alone, since others share the machine."""
    print(f"\n{'show':<16}{'pictures':>9}{'median':>9}{'99 %':>9}{'worst':>9}{'its CPU':>9}  after")
    for lab, shown in show_s.items():
        walls = sorted(each.wall_s for each in shown if each.drawn) or [math.nan]
        worst = max(shown)  # a refusal can be slow as well
        seconds = statistics.median(walls), walls[int(0.99 * (len(walls) - 1))], worst.wall_s, worst.own_s
        print(
            f"{lab:<16}{len(walls):>9}{''.join(f'{1000 * s:>6.1f} ms' for s in seconds)}  {worst.move[:70]}"
        )


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.tools.fuzz", description=__doc__)
    parser.add_argument("--browser", action="store_true", help="in a real one, by mouse and keyboard")
    parser.add_argument("--tries", type=int, help="10,000, or 500 in a browser")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--lab", choices=labs.__all__)
    asked = parser.parse_args()
    names = [asked.lab] if asked.lab else labs.__all__
    asked.tries = asked.tries or (500 if asked.browser else 10_000)
    if asked.browser:
        from tests.tools import fuzz_browser  # which needs a browser

        shown = [name.removesuffix("_lab") for name in names]
        return min(1, fuzz_browser.fuzz(shown, asked.tries, asked.seed))
    with wired():
        warm(names)
        before, widgets_before, begun = memory_mb(), len(registered), time.monotonic()
        halfway: list[float] = []

        def after_each(done: int) -> None:
            if 2 * done >= asked.tries and not halfway:
                halfway.append(memory_mb())

        failures, show_s = fuzz(names, asked.tries, asked.seed, after_each=after_each)
        took, after, widgets_after = time.monotonic() - begun, memory_mb(), len(registered)
    for (lab, kind), (moves, error, times) in failures.items():
        print(
            f"\n{lab}, {times} times: {kind}\n{type(error).__name__}: {str(error)[:500]}\n    panel = labs.{lab}()"
        )
        for move in moves:
            print(f"    {move[:300]}")
    print_latency(show_s)
    print(
        f"\n{asked.tries:,} tries, seed {asked.seed}, {took:.0f} s: {sum(f[2] for f in failures.values())} failures of {len(failures)} kinds."
    )
    print(
        f"Memory {before:.0f} MB, halfway {halfway[0]:.0f} MB, at the end {after:.0f} MB; widgets {widgets_before}, at the end {widgets_after}."
    )
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
