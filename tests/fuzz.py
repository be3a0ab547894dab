"""A hostile reader at every lab, from the kernel's side: drawn values, texts, clicks, picks and jobs in any order.

`make fuzz`, or `python -m tests.fuzz --tries 2000 --seed 7 --lab float_lab`. A move is a line of Python, so that
what fails can be pasted into a cell. Whatever a panel sends is packed as for a page.
"""

import argparse
import gc
import math
import random
import re
import signal
import statistics
import sys
import threading
import time
import traceback
import xml.etree.ElementTree as ElementTree
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import NamedTuple

import comm
import ipywidgets as widgets
import psutil
from ipywidgets.widgets.widget import _instances as registered
from jupyter_client.session import json_packer
from traitlets import TraitError

from course_utils import labs
from course_utils.labs.panel import Panel

MOVES = 50  # on one panel
OF_A_PICTURE = {
    f"{{http://www.w3.org/2000/svg}}{tag}" for tag in ["svg", "g", "text", "rect", "polyline", "circle"]
}
PATIENCE_S = 10  # for a move
HOSTILE = (
    *(
        "''",
        "' '",
        "'\\x00'",
        "'\\n\\t'",
        "'9' * 100_000",
        "'(' * 3_000",
        "'\\u202e٣½²'",
        "'🦜' * 50",
        "'−1'",
        "'NaN'",
    ),
    *("'<script>alert(1)</script>'", "'\"><img src=x onerror=alert(1)>'", "'&lt;b&gt;'", "']]><!--'"),
    *(
        "\"__import__('os')\"",
        "\"__import__('os').system('true')\"",
        "'{0.__class__}'",
        "'%s%n'",
        "'../../x'",
    ),
    *("0", "-1", "1", "2**20", "2**63", "10**400", "-(10**400)", "0.5", "1e308", "-1e-320", "nan", "inf"),
    *("None", "True", "False", "[]", "()", "{}", "{'b': 2}", "('Adam', 'Eve')", "b'x'", "object()"),
)
STUFF = "0123456789 .,-+^*:()[]{}<>=>&'\"\\/_abcdehijkxBDK→×"


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
    with told_of_threads() as failures:
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
    worker = panel._worker
    if worker is not None:
        worker.join(seconds)


def still(panel: Panel) -> None:
    """The picture for where no kernel runs."""
    if panel.comm is not None:
        bundle = panel._repr_mimebundle_()
        assert bundle["image/png"], "no still picture"


def end(panel: Panel, preset: str) -> None:
    """Stop what runs; the panel is not dead, shows what its controls say, and leaves nothing."""
    panel.stop()
    with suppress(ValueError):  # the job's sentence stands in the panel
        panel.wait(PATIENCE_S)
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


def buttons(panel: Panel) -> list[widgets.Button]:
    return [
        w for box in panel.children for w in getattr(box, "children", ()) if isinstance(w, widgets.Button)
    ]


@contextmanager
def told_of_threads() -> Iterator[list[BaseException]]:
    """Exceptions that leave a thread, or a finalizer, meanwhile."""
    found: list[BaseException] = []
    before = threading.excepthook, sys.unraisablehook
    threading.excepthook = sys.unraisablehook = lambda seen: found.append(seen.exc_value)
    try:
        yield found
    finally:
        threading.excepthook, sys.unraisablehook = before


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
            # In a cell that is the reader's own, with traitlets' sentence; from a page it is dropped.
            if not move.startswith(("panel.controls", "page(")):
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


# Drawing moves.


class Reader:
    """Draws one move after the other, in view of the panel."""

    def __init__(self, panel: Panel, draw: random.Random) -> None:
        self.draw = draw
        texts = [v for preset in panel._presets.values() for v in preset.values() if isinstance(v, str)]
        self.tokens = sorted({token for words in texts for token in re.findall(r"\w+|\W", words)}) or ["1"]

    def move(self, panel: Panel, lab: str) -> str:
        """A line of Python."""
        kinds = {
            self._page: 40,
            self._cell: 12,
            self._set: 12,
            self._pick: 10,
            self._click: 14,
            self._strange: 3,
            self._together: 2,
            self._job: 3,
            self._still: 0.3,
        }
        kind = self.draw.choices(list(kinds), list(kinds.values()))[0]
        if self.draw.random() < 0.004:
            closed = "panel.close(); " if self.draw.random() < 0.5 else ""  # or the cell was run again
            return f"{closed}panel = labs.{lab}()"
        return kind(panel)

    def _page(self, panel: Panel) -> str:
        name = self.draw.choice(list(panel.controls))
        place, widget = f"panel.controls[{name!r}]", panel.controls[name]
        while getattr(widget, "children", ()):
            part = self.draw.randrange(len(widget.children))
            place, widget = f"{place}.children[{part}]", widget.children[part]
        if hasattr(widget, "index"):
            index = self.draw.randrange(len(widget.options))
            return f"page({place}, index={index if self.draw.random() < 0.95 else self._hostile()})"
        return f"page({place}, value={self._value(widget)})"

    def _cell(self, panel: Panel) -> str:
        name = self.draw.choice(list(panel.controls))
        return f"panel.controls[{name!r}].value = {self._value(panel.controls[name])}"

    def _set(self, panel: Panel) -> str:
        names = self.draw.sample(
            list(panel.controls), min(len(panel.controls), self.draw.choice((1, 2, 3, 99)))
        )
        said = ", ".join(f"{name!r}: {self._value(panel.controls[name])}" for name in names)
        return f"panel.set(**{{{said}}})"

    def _pick(self, panel: Panel) -> str:
        keys = re.findall(r'data-key="([^"]*)"', panel.screen.svg)
        chance = self.draw.random()
        if keys and chance < 0.9:
            return f"message(panel, {{'pick': {keys[int(chance / 0.9 * len(keys))]!r}}})"
        return f"message(panel, {{'pick': {self._hostile()}}})"

    def _click(self, panel: Panel) -> str:
        safe = [b.description for b in buttons(panel) if b.description not in panel._jobs]
        return f"click(panel, {self.draw.choice(safe)!r})"

    def _job(self, panel: Panel) -> str:
        if not panel._jobs:
            return self._click(panel)
        rest = self.draw.choice((0, 0, 0.02, 0.1, 0.5, 1.5))
        return f"click(panel, {self.draw.choice(list(panel._jobs))!r}); rest(panel, {rest})"

    def _together(self, panel: Panel) -> str:
        labels = [button.description for button in buttons(panel)]
        return f"together(panel, {self.draw.choice(labels)!r}, {self.draw.choice(labels)!r})"

    def _strange(self, panel: Panel) -> str:
        value = self._hostile()
        return self.draw.choice(
            (
                f"message(panel, {value})",
                f"panel.preset(str({value}))",
                f"panel.set(**{{str({value})[:9]: 1}})",
                "panel.stop()",
            )
        )

    def _still(self, panel: Panel) -> str:
        return "still(panel)"

    def _hostile(self) -> str:
        return self.draw.choice(HOSTILE)

    def _value(self, widget: widgets.Widget) -> str:
        """Good, nearly good, or hostile; as Python says it."""
        chance = self.draw.random()
        if chance < 0.12 and not hasattr(widget, "options"):
            return self._hostile()
        if chance < 0.12:  # ipywidgets' own message for a tuple fails
            return self.draw.choice([value for value in HOSTILE if not value.startswith("(")])
        if hasattr(widget, "options"):
            return repr(
                self.draw.choice(
                    [option[-1] if isinstance(option, tuple) else option for option in widget.options]
                )
            )
        if isinstance(widget, widgets.Checkbox):
            return repr(self.draw.random() < 0.5)
        if hasattr(widget, "min"):
            low, high = widget.min, widget.max
            at = self.draw.choice((low, high, low - 1, high + 1, self.draw.uniform(low, high)))
            return repr(type(widget.value)(at))
        if isinstance(widget.value, dict):
            return repr(
                {name: self._size() for name in widget.value} | {self.draw.choice(self.tokens): self._size()}
            )
        if isinstance(widget.value, tuple):
            return repr(
                tuple(self.draw.sample([b.description for b in widget.children], self.draw.randrange(6)))
            )
        if hasattr(widget, "children"):
            return repr(self._size())
        return repr(self._text(str(widget.value)))

    def _size(self) -> object:
        power = self.draw.randrange(21)
        return self.draw.choice(
            (power, 2**power, f"2^{power}", f"{2**power:,}", self.draw.randrange(1, 2**20))
        )

    def _text(self, now: str) -> str:
        """Somewhere between what stands there and nonsense."""
        how = self.draw.random()
        if how < 0.3:
            return "".join(self.draw.choices(self.tokens, k=self.draw.randrange(1, 12)))
        if how < 0.45:
            return str(self._size())
        words = list(now[:200])
        for _ in range(self.draw.randrange(1, 4)):
            place = self.draw.randrange(len(words) + 1)
            words[place : place + self.draw.randrange(3)] = self.draw.choice(
                (self.draw.choice(STUFF), self.draw.choice(self.tokens), "")
            )
        return "".join(words)


def episode(lab: str, draw: random.Random, moves: int, show_s: list) -> tuple[list[str], Exception | None]:
    """One panel's life: what was done to it, and what went wrong."""
    played = Played(lab)
    reader, wrong = Reader(played.panel, draw), None
    with told_of_threads() as failures:
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
    with told_of_threads() as failures:
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
        at = 0
        while at < len(moves) and time.monotonic() < deadline:
            fewer = moves[:at] + moves[at + length :]
            if fails(lab, fewer) == kind:
                moves = fewer
            else:
                at += length
        length //= 2
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


def fuzz(names: Sequence[str], tries: int, seed: int) -> tuple[dict, dict]:
    """Failures by kind, each as short as it gets, and the seconds of each lab's `show`."""
    failures: dict[tuple[str, str], tuple[list[str], Exception, int]] = {}
    show_s: dict[str, list] = defaultdict(list)
    done = number = 0
    while done < tries:
        lab = names[number % len(names)]
        moves = min(MOVES, tries - done)
        said, wrong = episode(lab, random.Random(f"{seed} {number}"), moves, show_s[lab])
        done += moves
        number += 1
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
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--tries", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--lab", choices=labs.__all__)
    asked = parser.parse_args()
    names = [asked.lab] if asked.lab else labs.__all__
    with wired():
        warm(names)
        before, widgets_before, begun = memory_mb(), len(registered), time.monotonic()
        failures, show_s = fuzz(names, asked.tries, asked.seed)
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
        f"Memory {before:.0f} MB, at the end {after:.0f} MB; widgets {widgets_before}, at the end {widgets_after}."
    )
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
