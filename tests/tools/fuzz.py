"""A hostile reader at every lab, without a page: answers, clicks, picks and jobs in any order.

`make fuzz`, or `python -m tests.tools.fuzz --tries 2000 --seed 7 --lab float_lab`. A move is a line
of Python, so that moves that lead to a failure can be pasted into a cell. Whatever a panel sends to
its page is packed as in a kernel.
"""

import argparse
import logging
import math
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
OF_A_PICTURE = ("svg", "g", "text", "rect", "polyline", "polygon", "circle")
PATIENCE_S = 10  # that a move may take


class Wire(comm.base_comm.BaseComm):
    """A connection that packs whatever would go to the page, and drops it."""

    def publish_msg(self, msg_type, data=None, metadata=None, buffers=None, **keys):
        json_packer({"data": data, "metadata": metadata, **keys})


@contextmanager
def wired() -> Iterator[None]:
    """Give panels a connection, as they have one in a kernel."""
    with mock.patch.object(comm, "create_comm", Wire), warnings.catch_warnings():
        # It warns of a NaN, which no real page can send.
        warnings.filterwarnings("ignore", "Message serialization")
        yield


# The functions that moves call. Those of the page reach the widgets by messages, as a page does.


def page(panel: Panel, name: str, part: int, said: object) -> None:
    """Send what a page sends when the reader moves that part of the control `name` to `said`."""
    widget = panel._widgets[name][part]
    if isinstance(said, dict) and said:  # one of several sizes belongs to this part
        said = list(said.values())[part % len(said)]
    if isinstance(said, tuple):  # the names that are ticked
        said = widget.description in said
    if hasattr(widget, "index"):
        field = panel.session.lab.fields[name]
        # Of a power of two, the exponent is the place of its words.
        values = list(field.options.values()) if hasattr(field, "options") else []
        state = {"index": values.index(said) if said in values else said}
    elif isinstance(widget, widgets.Text):
        state = {"value": str(said)}
    else:
        state = {"value": said}
    _arrive(widget, method="update", state=state)


def message(panel: Panel, content: object) -> None:
    """Send what the picture sends when it is clicked."""
    _arrive(panel.screen, method="custom", content=content)


def _arrive(widget: widgets.Widget, **data: object) -> None:
    """Give the widget a message, as if a page had sent it."""
    if widget.comm is not None:  # a widget that is closed receives nothing
        widget.comm.handle_msg({"content": {"data": data}, "buffers": []})


def click(panel: Panel, label: str) -> None:
    """Click a button, even one that is disabled, because the page may not know that yet."""
    _arrive(button(panel, label), method="custom", content={"event": "click"})


def rest(panel: Panel, seconds: float) -> None:
    """Let a job go on for a while."""
    with suppress(Exception):  # the panel itself shows what a job raises
        panel.wait(seconds)


def still(panel: Panel) -> None:
    """Ask for the picture that is shown where no kernel runs."""
    if panel.comm is not None:
        bundle, _ = panel._repr_mimebundle_()
        assert bundle["image/png"], "no still picture"


def end(panel: Panel, preset: str) -> None:
    """Stop what runs, and check that the panel is alive.

    After the preset it has to show what its controls are set to; once it is closed, no process may
    be left.
    """
    panel.stop()
    with suppress(ValueError):  # the panel itself shows what a job raises
        panel.wait(PATIENCE_S / 2)
    panel.preset(preset)
    assert not panel.screen.mistake, f"after a preset: “{panel.screen.mistake}”"
    picture = panel.session.view().picture
    assert picture == panel.screen.svg, "the picture is not that of the controls"
    for found in buttons(panel):
        is_stop = found.description == "Stop"
        assert found.disabled == is_stop, f"{found.description} stays as it was"
    panel.close()
    left = children(ended_within_s=PATIENCE_S / 2)
    assert not left, f"processes are left: {left}"


# What a move can name.
NAMES = {
    "page": page,
    "message": message,
    "click": click,
    "rest": rest,
    "still": still,
    "end": end,
    "labs": labs,
    "nan": float("nan"),
    "inf": float("inf"),
    "panel": None,
}


def drawn_moves(
    names: dict[str, object], lab: str, draw: random.Random, count: int
) -> Iterator[str]:
    """Yield `count` lines of Python, each drawn in view of the panel, and a last one that ends it.

    `names` are the variables of these lines. One is the panel, which a line may replace.
    """
    for _ in range(count):
        yield _drawn_move(names["panel"], lab, draw)
    preset = draw.choice(list(names["panel"].session.lab.presets))
    yield f"end(panel, {preset!r})"


def _drawn_move(panel: Panel, lab: str, draw: random.Random) -> str:
    """Draw a value for each kind of move, and then the kind; the weights say how often it comes."""
    reader = Reader(panel.session.lab, draw)
    nonsense = draw.choice(HOSTILE)
    answers = {}
    for name in draw.choices(list(panel.controls), k=2):
        answers[name] = reader.answer(name, panel.values)
    name, said = next(iter(answers.items()))
    parts = len(panel._widgets[name])  # a guess in the picture has no widgets
    part = draw.randrange(max(1, parts))
    keys = re.findall(r'data-key="([^"]*)"', panel.screen.svg)
    labels = [found.description for found in buttons(panel)]
    label, other_label = draw.choices(labels, k=2)

    answer = f"message(panel, {{'set': {{{name!r}: {said}}}}})"
    if parts:
        answer = f"page(panel, {name!r}, {part}, {said})"
    set_both = ", ".join(f"{name!r}: {said}" for name, said in answers.items())
    pick = "panel.stop()"
    if keys:
        pick = f"message(panel, {{'pick': {draw.choice(keys)!r}}})"
    rest_s = draw.choice((0, 0, 0.02, 0.1, 0.5))
    moves = {
        answer: 50,
        f"panel.set(**{{{set_both}}})": 14,
        pick: 9,
        f"message(panel, {{'pick': {nonsense}}})": 1,
        f"click(panel, {label!r}); rest(panel, {rest_s})": 16,
        f"click(panel, {label!r}); click(panel, {other_label!r})": 2,
        f"message(panel, {nonsense})": 1,
        f"panel.preset(str({nonsense}))": 1,
        f"panel.set(**{{str({nonsense})[:9]: 1}})": 1,
        "panel.stop()": 1,
        "still(panel)": 0.3,
        f"panel = labs.{lab}()": 0.2,  # the cell was run again
        f"panel.close(); panel = labs.{lab}()": 0.2,
    }
    (move,) = draw.choices(list(moves), weights=list(moves.values()))
    return move


# One panel and its reader.


@contextmanager
def overheard() -> Iterator[list[BaseException]]:
    """The exceptions that nobody sees: in threads and finalizers, and in callbacks of ipywidgets.

    ipywidgets only logs the last kind.
    """
    found: list[BaseException] = []

    def note_raised(seen: threading.ExceptHookArgs) -> None:  # the hook of finalizers is alike
        found.append(seen.exc_value)

    def note_logged(record: logging.LogRecord) -> bool:
        _, error, _ = record.exc_info or (None, None, None)
        # A TraitError only refuses a page's value of the wrong type.
        if error and not isinstance(error, TraitError):
            found.append(error)
        return False

    with (
        mock.patch.object(threading, "excepthook", note_raised),
        mock.patch.object(sys, "unraisablehook", note_raised),
        mock.patch.object(traitlets_log.get_logger(), "filters", [note_logged]),
    ):
        yield found


@contextmanager
def in_time(what: str) -> Iterator[None]:
    """Raise TimeoutError if the block takes too long.

    The alarm also interrupts a regular expression, or the wait for a lock.
    """

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
    """Make a panel, and move it until the moves end or one fails.

    Returns the moves that were made, and the failure, if there was one.
    """
    names = dict(NAMES)
    done = []
    wrong = None
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
    widgets.Widget.close_all()  # a cell that was run again has left its former panel on the page
    if wrong is None and failures:
        wrong = failures[0]
    return done, wrong


def look(panel: Panel) -> None:
    """Check that the panel shows a picture and its meaning, and tells a mistake in a sentence.

    What was typed may be text in the picture, but never markup.
    """
    with panel._lock:  # so that all is of one moment
        error = panel.session.error
        mistake = panel.screen.mistake
        report = panel.screen.report
        failed = panel.screen.failed
        svg = panel.screen.svg
        meaning = panel.screen.meaning
    assert error is None or isinstance(error, ValueError), f"the lab failed: {error!r}"
    assert bool(mistake) == (error is not None), f"{error!r} is told as “{mistake}”"
    if mistake:
        assert_sentence(mistake)
    if failed and report:
        assert_sentence(report)
    assert meaning, "nothing is said"
    assert_only_a_picture(svg)


def assert_sentence(words: str) -> None:
    """Check that the words are a sentence, and not the one on a fault of the lab itself."""
    assert "not your doing" not in words, words
    is_sentence = len(words) < 1000 and words.rstrip()[-1] in ".?!)”…"
    assert is_sentence, f"no sentence: “{words[:200]}”"


def assert_only_a_picture(svg: str) -> None:
    """Check that the picture has only shapes and texts, and no attribute that runs or loads."""
    for part in ElementTree.fromstring(svg).iter():
        _, _, tag = part.tag.rpartition("}")
        assert tag in OF_A_PICTURE, f"{part.tag} in the picture"
        for name in part.attrib:
            is_strange = name.startswith("on") or name in ("href", "src")
            assert not is_strange, f"{name} in the picture"


# All panels; and of a failure, the fewest moves that still fail.


def fuzz(
    names: Sequence[str], tries: int, seed: int, *, moves_each: int = MOVES
) -> tuple[str, Sequence[str], BaseException] | None:
    """Move panel after panel until one fails.

    Return the lab, as few of the moves as make it fail, and the failure; None if no panel fails.
    """
    for number in range(math.ceil(tries / moves_each)):
        lab = names[number % len(names)]
        draw = random.Random(f"{seed} {number}")
        moves, wrong = play(lab, partial(drawn_moves, lab=lab, draw=draw, count=moves_each))
        if wrong is not None:
            return lab, fewest(moves, lab, type(wrong)), wrong
    return None


def fewest(moves: Sequence[str], lab: str, kind: type[BaseException]) -> Sequence[str]:
    """Leave out each move without which the lab still fails in the same way."""
    for at in reversed(range(len(moves))):
        fewer = [*moves[:at], *moves[at + 1 :]]
        _, error = play(lab, lambda _, fewer=fewer: fewer)
        if isinstance(error, kind):
            moves = fewer
    return moves


def told(lab: str, moves: Sequence[str], error: BaseException) -> str:
    """Return a text on what failed, with the lines that lead to it, to be pasted into a cell."""
    cell = [f"panel = labs.{lab}()", *(move[:300] for move in moves)]
    return "\n    ".join([f"{lab}: {type(error).__name__}: {str(error)[:500]}", *cell])


def main() -> int:
    """Print the first failure, with the moves that lead to it."""
    parser = argparse.ArgumentParser(prog="python -m tests.tools.fuzz", description=__doc__)
    parser.add_argument(
        "--browser", action="store_true", help="in a real one, by mouse and keyboard"
    )
    parser.add_argument("--tries", type=int, help="10,000, or 500 in a browser")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--lab", choices=labs.__all__)
    asked = parser.parse_args()
    names = [asked.lab] if asked.lab else labs.__all__
    tries = asked.tries or (500 if asked.browser else 10_000)
    begun = time.monotonic()
    if asked.browser:
        from tests.tools import fuzz_browser  # only now, because it needs a browser

        failure = fuzz_browser.fuzz(names, tries, asked.seed)
    else:
        failure = ""
        with wired():
            failed = fuzz(names, tries, asked.seed)
        if failed:
            failure = told(*failed)
    if failure:
        print(failure)
        return 1
    took_s = time.monotonic() - begun
    print(f"{tries:,} moves, seed {asked.seed}, {took_s:.0f} s: no failure.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
