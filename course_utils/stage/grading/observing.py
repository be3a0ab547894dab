"""What the process of an answer says of an error, of a function, and of what an answer works on.

There are three kinds of exercise whose answers work on something that changes: a model that is
trained, a training loop, a file. For these it says what happened, in the order in which it
happened. The judge does the same to its own model or file, and judges that.
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
MOST_CONTENTS = 1000  # bytes of a file that are shown
DISK_FULL = 28  # the system's number of that error: ENOSPC
ENDS = (Exception, SystemExit, KeyboardInterrupt, TooLongError)
Told = dict[str, object]


def sayable(value: object) -> object:
    """The value, or what stands for it where it cannot be encoded."""
    try:
        wire.encoded(value)
    except SilentError:
        raise
    except Exception:
        return wire.stand_in(type(value).__name__)
    return value


def told(function: Callable[..., object], error: BaseException) -> Told:
    """An error: its type, its message, and a sentence on both with the line of the answer."""
    return {"error": type(error).__name__, "said": said_by(error), "told": stopped(function, error)}


def taken_by(function: Callable[..., object]) -> list | None:
    """What a function takes: name, kind, and whether it has a default; None if it does not say."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return None
    taken = []
    for parameter in parameters:
        has_default = parameter.default is not parameter.empty
        taken.append((parameter.name, int(parameter.kind), has_default))
    return taken[:MOST_PARAMETERS]


def _call(function: Callable[[], object], answer: Callable[..., object]) -> Told | None:
    """Call it, within its time; return the error that it stopped with."""
    try:
        with Clock():
            function()
    except ENDS as error:
        return told(answer, error)
    return None


def accumulate(talk: Talk, answer: Callable[..., object], asked: Told) -> None:
    """Say which rows go through the model, forward and backward, and what is in it at the end."""
    modules = [nn.Linear(*sizes) if sizes else nn.GELU() for sizes in asked["layers"]]
    model = nn.Sequential(*modules)
    weights = list(model.parameters())
    with torch.no_grad():
        for parameter, numbers in zip(weights, asked["weights"], strict=True):
            parameter.copy_(numbers)
    rows_seen: list[int] = []  # n for n rows forward, -n when their gradient arrives

    def went_forward(_: nn.Module, __: object, result: Tensor) -> None:
        rows = len(result)
        rows_seen.append(rows)
        if result.requires_grad:
            result.register_hook(lambda _: rows_seen.append(-rows))

    batch = asked["batch"]
    errors: list[Told | None] = []

    def attempt() -> None:
        error = _call(lambda: answer(model, _loss, batch, asked["parts"]), answer)
        errors.append(error)

    with model.register_forward_hook(went_forward):
        kept = measure.saved_bytes_over_time(attempt, exclude=[*weights, batch])
    (error,) = errors
    talk.say(
        {
            "rows": rows_seen,
            "weights": weights,
            "gradients": [parameter.grad for parameter in weights],
            "error": error,
            "kept": max(kept, default=0),
        }
    )


def _loss(results: Tensor) -> Tensor:
    """The loss of the exercise's check, which is not in this process."""
    return results.pow(2).sum(-1).mean()


def loop(talk: Talk, answer: Callable[..., object], _: Told) -> None:
    """Say what is seen of a training loop, and whether it is a broken one as it was handed out."""
    # It is imported here, because few exercises need what it imports in turn.
    from course_utils.chapters.mixed_precision import repair

    if repair.is_untouched(answer):
        talk.say({"untouched": True})
        return
    found: list[repair.Seen] = []
    error = _call(lambda: found.append(repair.seen(answer)), answer)
    seen = found[0] if found else repair.Seen()
    stopped_with = told(answer, seen.error) if seen.error else None
    seen.error = None
    fields = {
        "losses": seen.losses,
        "zeros": seen.zeros,
        "norms": seen.norms,
        "lost": seen.lost,
        "products": [str(dtype).removeprefix("torch.") for dtype in seen.products],
        "scalers": len(seen.scalers),
    }
    talk.say({"untouched": False, "seen": fields, "stopped": stopped_with, "error": error})


def write(talk: Talk, answer: Callable[..., object], asked: Told) -> None:
    """Say what is in the file whenever a piece is fetched, and at each rename and each flush.

    The pieces come from the judge.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder).resolve() / "run.bin"
        if asked["old"] is not None:
            path.write_bytes(asked["old"])
        inode = _inode(path)
        full = OSError(DISK_FULL, "No space left on device")

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
            outcome = _call_write(answer, path, pieces(), full)
        others = [other.name for other in path.parent.iterdir() if other != path]
        end = {
            "event": "end",
            "contents": _contents(path),
            "others": others,
            "same": _inode(path) == inode,
        }
        talk.say(end | outcome)


def _call_write(
    answer: Callable[..., object], path: Path, pieces: Iterator[bytes], full: OSError
) -> Told:
    """How the call ended.

    It may return the stub's dots, raise the error of a full disk, raise another, or do none of it.
    """
    try:
        with Clock():
            came = answer(path, pieces)
    except ENDS as error:
        return {"open": False, "full": error is full, "error": told(answer, error)}
    return {"open": came is ..., "full": False, "error": None}


def _watched(talk: Talk, path: Path) -> ExitStack:
    """Tell of each rename, with the contents before and after it, and of each flush."""
    replace = os.replace
    fsync = os.fsync

    def renamed(source: Path, *arguments: object, **options: object) -> None:
        is_near = Path(source).resolve().parent == path.parent
        before = _contents(path)
        replace(source, *arguments, **options)
        event = {"event": "rename", "near": is_near, "before": before}
        talk.say({**event, "contents": _contents(path)})

    def flushed(handle: object) -> None:
        number = handle if isinstance(handle, int) else handle.fileno()
        contents = _contents(path)
        nbytes = os.stat(number).st_size
        talk.say({"event": "flush", "contents": contents, "nbytes": nbytes})
        fsync(handle)

    watched = {"fsync": flushed, "fdatasync": flushed, "replace": renamed, "rename": renamed}
    stack = ExitStack()
    stack.enter_context(mock.patch.multiple(os, create=True, **watched))  # macOS has no fdatasync
    return stack


def _contents(path: Path) -> bytes | None:
    return path.read_bytes()[:MOST_CONTENTS] if path.exists() else None


def _inode(path: Path) -> int | None:
    return path.stat().st_ino if path.exists() else None


OBSERVE: Mapping[str, Callable[[Talk, Callable[..., object], Told], None]] = {
    "accumulate": accumulate,
    "loop": loop,
    "write": write,
}
