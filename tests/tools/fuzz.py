"""A hostile reader at every lab, from the kernel's side: drawn answers, clicks, picks and jobs in any order.

`make fuzz`, or `python -m tests.tools.fuzz --tries 2000 --seed 7 --lab float_lab`. A move is a line of Python, so that
what fails can be pasted into a cell. Whatever a panel sends is packed as for a page.
"""

import argparse
import logging
import random
import re
import signal
import sys
import threading
import time
import warnings
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from unittest import mock

import comm
import ipywidgets as widgets
from jupyter_client.session import json_packer
from traitlets import TraitError
from traitlets import log as traitlets_log

from course_utils.chapters import labs
from course_utils.engine.labs.panel import Panel
from tests.helpers.hostile import HOSTILE, Reader, button, buttons
from tests.helpers.waiting import children

MOVES = 50  # on one panel
OF_A_PICTURE = ("svg", "g", "text", "rect", "polyline", "circle")
PATIENCE_S = 10  # for a move


class Wire(comm.base_comm.BaseComm):
    """Packs whatever would go to the page, and drops it."""

    def publish_msg(self, msg_type, data=None, metadata=None, buffers=None, **keys):
        json_packer({"data": data, "metadata": metadata, **keys})


@contextmanager
def wired() -> Iterator[None]:
    """Panels speak as in a kernel."""
    with mock.patch.object(comm, "create_comm", Wire), warnings.catch_warnings():
        warnings.filterwarnings(
            "ignore", "Message serialization"
        )  # of a NaN, which no page can send
        yield


# What the moves are made of; the page reaches widgets by messages.


def page(panel: Panel, name: str, part: int, said: object) -> None:
    """What the page sends when the reader moves that part of a control."""
    widget = panel._widgets[name][part]
    if isinstance(said, dict) and said:  # a size for each of some names
        said = [*said.values()][part % len(said)]
    if isinstance(said, tuple):  # which are ticked
        said = widget.description in said
    if hasattr(widget, "index"):
        values = [*panel.session.lab.fields[name].options.values()]
        state = {"index": values.index(said) if said in values else said}
    else:
        state = {"value": str(said) if isinstance(widget, widgets.Text) else said}
    _arrive(widget, method="update", state=state)


def message(panel: Panel, content: object) -> None:
    """What the picture sends when it is clicked."""
    _arrive(panel.screen, method="custom", content=content)


def _arrive(widget: widgets.Widget, **data: object) -> None:
    if widget.comm is not None:  # a closed one hears nothing
        widget.comm.handle_msg({"content": {"data": data}, "buffers": []})


def click(panel: Panel, label: str) -> None:
    """A button that is grey can still be hit: the page may not know yet."""
    _arrive(button(panel, label), method="custom", content={"event": "click"})


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
    assert panel.session.view().picture == panel.screen.svg, (
        "the picture is not that of the controls"
    )
    for one in buttons(panel):
        assert one.disabled == (one.description == "Stop"), f"{one.description} stays as it was"
    panel.close()
    left = children(ended_within_s=PATIENCE_S / 2)
    assert not left, f"processes are left: {left}"


NAMES = {f.__name__: f for f in (page, message, click, rest, still, end)}
NAMES |= {"labs": labs, "nan": float("nan"), "inf": float("inf"), "panel": None}


def drawn_moves(
    names: dict[str, object], lab: str, draw: random.Random, count: int
) -> Iterator[str]:
    """So many lines of Python, each drawn in view of the panel, and an end."""
    for _ in range(count):
        yield _drawn_move(names["panel"], lab, draw)
    yield f"end(panel, {draw.choice(list(names['panel'].session.lab.presets))!r})"


def _drawn_move(panel: Panel, lab: str, draw: random.Random) -> str:
    reader, nonsense = Reader(panel.session.lab, draw), draw.choice(HOSTILE)
    several = {
        name: reader.answer(name, panel.values) for name in draw.choices([*panel.controls], k=2)
    }
    name, said = next(iter(several.items()))
    parts = len(panel._widgets[name])  # of a guess in the picture there are none
    moved = f"page(panel, {name!r}, {draw.randrange(max(1, parts))}, {said})"
    keys = re.findall(r'data-key="([^"]*)"', panel.screen.svg)
    one, other = draw.choices([button.description for button in buttons(panel)], k=2)
    moves = {
        moved if parts else f"message(panel, {{'set': {{{name!r}: {said}}}}})": 50,
        f"panel.set(**{{{', '.join(f'{name!r}: {said}' for name, said in several.items())}}})": 14,
        f"message(panel, {{'pick': {draw.choice(keys)!r}}})" if keys else "panel.stop()": 9,
        f"message(panel, {{'pick': {nonsense}}})": 1,
        f"click(panel, {one!r}); rest(panel, {draw.choice((0, 0, 0.02, 0.1, 0.5))})": 16,
        f"click(panel, {one!r}); click(panel, {other!r})": 2,
        f"message(panel, {nonsense})": 1,
        f"panel.preset(str({nonsense}))": 1,
        f"panel.set(**{{str({nonsense})[:9]: 1}})": 1,
        "panel.stop()": 1,
        "still(panel)": 0.3,
        f"panel = labs.{lab}()": 0.2,  # the cell was run again
        f"panel.close(); panel = labs.{lab}()": 0.2,
    }
    return draw.choices(list(moves), list(moves.values()))[0]


# One panel and its reader.


@contextmanager
def overheard() -> Iterator[list[BaseException]]:
    """Exceptions that nobody gets to hear of: of a thread, of a finalizer, of a callback, where ipywidgets logs them."""
    found: list[BaseException] = []

    def note(seen: threading.ExceptHookArgs) -> None:  # a finalizer's are called the same
        found.append(seen.exc_value)

    def hear(record: logging.LogRecord) -> bool:
        error = record.exc_info and record.exc_info[1]
        if error and not isinstance(
            error, TraitError
        ):  # which refuses a page's value of the wrong type
            found.append(error)
        return False

    with (
        mock.patch.object(threading, "excepthook", note),
        mock.patch.object(sys, "unraisablehook", note),
        mock.patch.object(traitlets_log.get_logger(), "filters", [hear]),
    ):
        yield found


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


def play(
    lab: str, moves_of: Callable[[dict], Iterable[str]]
) -> tuple[list[str], BaseException | None]:
    """A panel's life under these moves: what was done to it, and what went wrong."""
    names, done, wrong = dict(NAMES), [], None
    with overheard() as failures:
        try:
            exec(f"panel = labs.{lab}()", names)
            for move in moves_of(names):
                done.append(move)
                with in_time(move):
                    exec(move, names)
                look(names["panel"])
        except Exception as error:
            wrong = error
            names["panel"].close()
            rest(names["panel"], PATIENCE_S)
            for process in children():
                process.kill()
    widgets.Widget.close_all()  # where a cell was run again, its former panel is still on the page
    return done, wrong or next(iter(failures), None)


def look(panel: Panel) -> None:
    """A picture and its meaning, or a sentence; what was typed is text in it, at most."""
    with panel._lock:
        screen, error = panel.screen, panel.session.error
        mistake, report, failed = screen.mistake, screen.report, screen.failed
        svg, meaning = screen.svg, screen.meaning
    assert error is None or isinstance(error, ValueError), f"the lab failed: {error!r}"
    assert bool(mistake) == (error is not None), f"{error!r} is told as “{mistake}”"
    for words in (mistake, report if failed else ""):
        assert "not your doing" not in words, words
        is_sentence = not words or (len(words) < 1000 and words.rstrip()[-1] in ".?!)”…")
        assert is_sentence, f"no sentence: “{words[:200]}”"
    assert meaning, "nothing is said"
    for part in ElementTree.fromstring(svg).iter():
        assert part.tag.rpartition("}")[2] in OF_A_PICTURE, f"{part.tag} in the picture"
        strange = [name for name in part.attrib if name.startswith("on") or name in ("href", "src")]
        assert not strange, f"{strange} in the picture"


# The whole, and of a failure the fewest moves that still fail.


def fuzz(
    names: Sequence[str], tries: int, seed: int, *, moves_each: int = MOVES
) -> tuple[str, Sequence[str], BaseException] | None:
    """Panel after panel, until one fails: which lab, the moves, as few as will do, and what they lead to."""
    for number in range(-(-tries // moves_each)):
        lab, draw = names[number % len(names)], random.Random(f"{seed} {number}")
        moves, wrong = play(lab, partial(drawn_moves, lab=lab, draw=draw, count=moves_each))
        if wrong is not None:
            return lab, fewest(moves, lab, type(wrong)), wrong
    return None


def fewest(moves: Sequence[str], lab: str, kind: type[BaseException]) -> Sequence[str]:
    """Without each move that it fails without."""
    for at in reversed(range(len(moves))):
        fewer = [*moves[:at], *moves[at + 1 :]]
        _, error = play(lab, lambda _, fewer=fewer: fewer)
        if isinstance(error, kind):
            moves = fewer
    return moves


def told(lab: str, moves: Sequence[str], error: BaseException) -> str:
    """What failed, and the lines that lead to it."""
    cell = [f"panel = labs.{lab}()", *(move[:300] for move in moves)]
    return "\n    ".join([f"{lab}: {type(error).__name__}: {str(error)[:500]}", *cell])


def main() -> int:
    """Print what fails first, with the moves that lead to it."""
    parser = argparse.ArgumentParser(prog="python -m tests.tools.fuzz", description=__doc__)
    parser.add_argument(
        "--browser", action="store_true", help="in a real one, by mouse and keyboard"
    )
    parser.add_argument("--tries", type=int, help="10,000, or 500 in a browser")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--lab", choices=labs.__all__)
    asked = parser.parse_args()
    names = [asked.lab] if asked.lab else labs.__all__
    begun, tries = time.monotonic(), asked.tries or (500 if asked.browser else 10_000)
    if asked.browser:
        from tests.tools import fuzz_browser  # which needs a browser

        failure = fuzz_browser.fuzz(names, tries, asked.seed)
    else:
        with wired():
            failed = fuzz(names, tries, asked.seed)
        failure = failed and told(*failed)
    print(
        failure
        or f"{tries:,} moves, seed {asked.seed}, {time.monotonic() - begun:.0f} s: no failure."
    )
    return 1 if failure else 0


if __name__ == "__main__":
    sys.exit(main())
