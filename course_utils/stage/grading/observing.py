"""What the process of an answer says of it: of an error, of a function, and of the three kinds of exercise whose answers work
on live things: a model that learns, a training loop, a file.

These three say what happened in the order in which it happened. The judge does it again with its own things, and judges that.
"""

import inspect
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from unittest import mock

import torch
from torch import Tensor, nn

from course_utils.core import measure
from course_utils.engine.judging.limits import Clock, TooLongError
from course_utils.engine.judging.sentences import said_by, stopped
from course_utils.stage.grading import wire
from course_utils.stage.grading.talking import SilentError, Talk

MOST_PARAMETERS = 20
ENDS = (Exception, SystemExit, KeyboardInterrupt, TooLongError)
Told = dict[str, object]


def sayable(value: object) -> object:
    """The value, or what stands for it where it cannot be written."""
    try:
        wire.encoded(value)
    except SilentError:
        raise
    except Exception:
        return wire.stand_in(type(value).__name__)
    return value


def told(function: Callable[..., object], error: BaseException) -> Told:
    """An error: its type, its message, and the sentence on both with the line of the student's code."""
    return {"error": type(error).__name__, "said": said_by(error), "told": stopped(function, error)}


def taken_by(function: Callable[..., object]) -> list | None:
    """What a function takes; None if it does not say."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return None
    found = [(one.name, int(one.kind), one.default is not one.empty) for one in parameters]
    return found[:MOST_PARAMETERS]


def _call(function: Callable[[], object], answer: Callable[..., object]) -> Told | None:
    """Call it, within its time; the error that it stopped with."""
    try:
        with Clock():
            function()
    except ENDS as error:
        return told(answer, error)
    return None


def accumulate(talk: Talk, answer: Callable[..., object], asked: Told) -> None:
    """The rows that go through the model, forward and backward, and what is in it at the end."""
    model = nn.Sequential(*(nn.Linear(*sizes) if sizes else nn.GELU() for sizes in asked["layers"]))
    with torch.no_grad():
        for parameter, numbers in zip(model.parameters(), asked["weights"], strict=True):
            parameter.copy_(numbers)
    seen: list[int] = []

    def went_forward(_: nn.Module, __: object, result: Tensor) -> None:
        rows = len(result)
        seen.append(rows)
        if result.requires_grad:
            result.register_hook(lambda _: seen.append(-rows))

    weights, batch = [*model.parameters()], asked["batch"]
    stopped_with: list[Told | None] = []

    def attempt() -> None:
        stopped_with.append(_call(lambda: answer(model, _loss, batch, asked["parts"]), answer))

    with model.register_forward_hook(went_forward):
        kept = measure.saved_bytes_over_time(attempt, exclude=[*weights, batch])
    gradients, (error,) = [p.grad for p in weights], stopped_with
    told_of_all = {"rows": seen, "weights": weights, "gradients": gradients, "error": error}
    talk.say(told_of_all | {"kept": max(kept, default=0)})


def _loss(results: Tensor) -> Tensor:
    """As in the exercise's check, which is not in this process."""
    return results.pow(2).sum(-1).mean()


def loop(talk: Talk, answer: Callable[..., object], _: Told) -> None:
    """What is seen of a training loop, and whether it is one of the broken ones as they were."""
    from course_utils.chapters.mixed_precision import (
        repair,
    )  # here, since few exercises need what it imports

    if repair.is_untouched(answer):
        talk.say({"untouched": True})
        return
    found: list[repair.Seen] = []
    error = _call(lambda: found.append(repair.seen(answer)), answer)
    seen = found[0] if found else repair.Seen()
    stopped_with = told(answer, seen.error) if seen.error else None
    seen.error = None
    fields = {name: getattr(seen, name) for name in ("losses", "zeros", "norms", "lost")}
    fields |= {"products": [str(dtype).removeprefix("torch.") for dtype in seen.products]}
    fields |= {"scalers": len(seen.scalers)}
    talk.say({"untouched": False, "seen": fields, "stopped": stopped_with, "error": error})


def write(talk: Talk, answer: Callable[..., object], asked: Told) -> None:
    """Say what the folder shows whenever a piece is fetched, a file renamed, or flushed; the judge has the pieces."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder).resolve() / "run.bin"
        if asked["old"] is not None:
            path.write_bytes(asked["old"])
        place = _place(path)
        full = OSError(28, "No space left on device")

        def pieces() -> Iterator[bytes]:
            while True:
                talk.say({"event": "piece", "contents": _contents(path)})
                piece = talk.hear()
                if piece == "full":
                    raise full
                if piece is None:
                    return
                yield piece

        with _watched(talk, path):
            error = _call_write(answer, path, pieces(), full)
        others = [other.name for other in path.parent.iterdir() if other != path]
        end = {
            "event": "end",
            "contents": _contents(path),
            "others": others,
            "same": _place(path) == place,
        }
        talk.say({**end, **error})


def _call_write(
    answer: Callable[..., object], path: Path, pieces: Iterator[bytes], full: OSError
) -> Told:
    try:
        with Clock():
            came = answer(path, pieces)
    except ENDS as error:
        return {"open": False, "full": error is full, "error": told(answer, error)}
    return {"open": came is ..., "full": False, "error": None}


def _watched(talk: Talk, path: Path) -> ExitStack:
    """Tell of each rename before it is done, and of each flush."""
    replace, fsync = os.replace, os.fsync

    def renamed(source: Path, *arguments: object, **options: object) -> None:
        is_near = Path(source).resolve().parent == path.parent
        before = _contents(path)
        replace(source, *arguments, **options)
        talk.say(
            {"event": "rename", "near": is_near, "before": before, "contents": _contents(path)}
        )

    def flushed(handle: object) -> None:
        number = handle if isinstance(handle, int) else handle.fileno()
        talk.say({"event": "flush", "contents": _contents(path), "nbytes": os.stat(number).st_size})
        fsync(handle)

    watched = {"fsync": flushed, "fdatasync": flushed, "replace": renamed, "rename": renamed}
    stack = ExitStack()
    stack.enter_context(mock.patch.multiple(os, create=True, **watched))  # macOS has no fdatasync
    return stack


def _contents(path: Path) -> bytes | None:
    return path.read_bytes()[:1000] if path.exists() else None


def _place(path: Path) -> int | None:
    return path.stat().st_ino if path.exists() else None


OBSERVE: Mapping[str, Callable[[Talk, Callable[..., object], Told], None]] = {
    "accumulate": accumulate,
    "loop": loop,
    "write": write,
}
