"""What the answer's process sends of an error, of a function, and of what an answer works on.

There are three kinds of exercise whose answers work on something that changes: a model that is
trained, a training loop, a file. For these the process sends what happened, in the order in which
it happened. The judge does the same to its own model or file, and judges that.
"""

import builtins
import inspect
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from unittest import mock

import torch
from torch import Tensor, nn

from course_utils.core import measure
from course_utils.engine.judging.errors import said_by, stopped
from course_utils.engine.judging.limits import Clock, TooLongError
from course_utils.stage.grading import wire
from course_utils.stage.grading.channel import Channel, ChannelError

MOST_PARAMETERS = 20
MOST_CONTENTS = 1000  # bytes of a file that are sent
ERRORS = (Exception, SystemExit, KeyboardInterrupt, TooLongError)  # that an answer may raise
Message = dict[str, object]


def sendable(value: object) -> object:
    """Return the value, or a stand-in with the name of its class if it cannot be encoded."""
    try:
        wire.encoded(value)
    except ChannelError:
        # Encoding runs the methods of an answer's class, which may send an event to the judge. If
        # the judge has closed its end by then, that is no fault of the value.
        raise
    except Exception:  # these methods may raise anything
        return wire.stand_in(type(value).__name__)
    return value


def described_error(function: Callable[..., object], error: BaseException) -> Message:
    """Return an error's type, its message, and a sentence on both with the answer's line."""
    return {
        "type": type(error).__name__,
        "message": said_by(error),
        "sentence": stopped(function, error),
    }


def parameters_of(function: Callable[..., object]) -> list | None:
    """Return (name, kind, has a default) of each parameter; None if Python cannot tell them."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return None
    described = []
    for parameter in parameters:
        has_default = parameter.default is not parameter.empty
        described.append((parameter.name, int(parameter.kind), has_default))  # kinds are numbered
    return described[:MOST_PARAMETERS]


def _error_of_call(function: Callable[[], object], answer: Callable[..., object]) -> Message | None:
    """Call the function, which calls the answer; return the error, described, or None."""
    try:
        with Clock():
            function()
    except ERRORS as error:
        return described_error(answer, error)
    return None


def accumulate(channel: Channel, answer: Callable[..., object], question: Message) -> None:
    """Let the answer train a model; send its passes, its weights and its gradients.

    The question's layers are like [[64, 256], [], [256, 64]]: a GELU between two linear layers.
    """
    modules = [nn.Linear(*sizes) if sizes else nn.GELU() for sizes in question["layers"]]
    model = nn.Sequential(*modules)
    weights = list(model.parameters())
    with torch.no_grad():
        for parameter, numbers in zip(weights, question["weights"], strict=True):
            parameter.copy_(numbers)
    rows_seen: list[int] = []  # in order: n for n rows forward, -n for the gradient of n rows

    def went_forward(_: nn.Module, __: object, result: Tensor) -> None:
        """Note the rows of a forward pass, and later the rows of its gradient."""
        rows = result[..., 0].numel()  # 1 of a row without the batch's dimension
        rows_seen.append(rows)
        if result.requires_grad:
            result.register_hook(lambda _: rows_seen.append(-rows))

    batch = question["batch"]
    errors: list[Message | None] = []  # `attempt` puts its one result here

    def attempt() -> None:
        """Let the answer train the model, and note its error, or None."""
        error = _error_of_call(lambda: answer(model, _loss, batch, question["parts"]), answer)
        errors.append(error)

    with model.register_forward_hook(went_forward):
        kept_bytes = measure.saved_bytes_over_time(attempt, exclude=[*weights, batch])
    (error,) = errors  # `attempt` was called once
    channel.send(
        {
            "rows": rows_seen,
            "weights": weights,
            "gradients": [parameter.grad for parameter in weights],
            "error": error,
            "kept_bytes": max(kept_bytes, default=0),  # at the moment at which most was kept
        }
    )


def _loss(results: Tensor) -> Tensor:
    """Return the loss that the exercise's check uses, too: the check is not in this process."""
    return results.pow(2).sum(-1).mean()


def loop(channel: Channel, answer: Callable[..., object], _: Message) -> None:
    """Send what is seen of a training loop, or that the reader left the broken loop as it was.

    The question says nothing but its kind, {"do": "loop"}.
    """
    # Imported here, because few exercises need what `repair` imports in turn.
    from course_utils.chapters.mixed_precision import repair

    if repair.is_untouched(answer):
        channel.send({"untouched": True})
        return
    all_seen: list[repair.Seen] = []  # of the one call; empty if the call fails
    error = _error_of_call(lambda: all_seen.append(repair.seen(answer)), answer)
    seen = all_seen[0] if all_seen else repair.Seen()
    # `seen.error` was raised in the loop's step. `error` ended the whole call, before there was
    # anything to see.
    stopped_with = described_error(answer, seen.error) if seen.error else None
    fields = {
        "losses": seen.losses,
        "zeros": seen.zeros,
        "norms": seen.norms,
        "lost": seen.lost,
        "products": [str(dtype).removeprefix("torch.") for dtype in seen.products],
        "scalers": len(seen.scalers),
        "norms_at_larger_scale": seen.norms_at_larger_scale,
    }
    channel.send({"untouched": False, "seen": fields, "stopped": stopped_with, "error": error})


def write(channel: Channel, answer: Callable[..., object], question: Message) -> None:
    """Call the answer, which writes pieces to a file, and send the judge what is seen of it.

    The file's contents are sent whenever the answer fetches a piece, renames or flushes, and at the
    end. Each time the judge replies, and its reply may be an error, which is raised in the answer.
    To a fetched piece it replies with bytes, or with None at the end.
    """
    raised: list[BaseException] = []  # the judge's errors
    tell = partial(_tell, channel, raised)  # takes an event, and returns the judge's reply
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder).resolve() / "run.bin"
        if question["old"] is not None:
            path.write_bytes(question["old"])
        inode = _inode(path)

        def pieces() -> Iterator[bytes]:
            """Yield the pieces that the answer is to write, one by one, as the judge sends them.

            With each request the judge gets what the file holds so far, so it sees whether an
            answer writes piece by piece.
            """
            while True:
                piece = tell({"event": "piece", "contents": _contents(path)})
                if piece is None:
                    return
                yield piece

        with _sending_events(tell, path, getattr(answer, "__globals__", {})):
            outcome = _call_write(answer, path, pieces(), raised)
        others = [other.name for other in path.parent.iterdir() if other != path]
        end = {
            "event": "end",
            "contents": _contents(path),
            "other_files": others,
            "same_inode": _inode(path) == inode,
        }
        channel.send(end | outcome)


def _tell(channel: Channel, raised: list[BaseException], event: Message) -> object:
    """Send the event, and return the judge's reply. If that is an error, raise and note it."""
    channel.send(event)
    reply = channel.receive()
    if isinstance(reply, dict):
        # One of Python's errors: {"raise": "OSError", "arguments": [28, "No space left"]}.
        error = getattr(builtins, reply["raise"])(*reply["arguments"])
        raised.append(error)
        raise error
    return reply


def _call_write(
    answer: Callable[..., object],
    path: Path,
    pieces: Iterator[bytes],
    raised: Sequence[BaseException],
) -> Message:
    """Call the answer, and return how the call ended.

    The answer may have returned the stub's dots, raised the judge's error, which is in `raised`, or
    raised another error.
    """
    try:
        with Clock():
            result = answer(path, pieces)
    except ERRORS as error:
        is_judges = any(error is known for known in raised)  # the same object, not an equal one
        described = described_error(answer, error)
        return {"returned_dots": False, "raised_judges": is_judges, "error": described}
    return {"returned_dots": result is ..., "raised_judges": False, "error": None}


def _sending_events(
    tell: Callable[[Message], object], path: Path, names: dict[str, object]
) -> ExitStack:
    """Return a context in which the functions of `os` that rename or flush first `tell` an event.

    The event of a rename has the contents of `path` before it, and those that it leads to. `names`
    are the globals of the answer, which may have imported these functions from `os`.
    """
    # The real functions, before the context replaces them.
    replace = os.replace
    fsync = os.fsync

    def renamed(source: Path, destination: Path, **options: object) -> None:
        """Tell what the file holds before and after the rename, and rename as os.replace does."""
        source = Path(source)
        if source.is_file():  # else the rename fails by itself
            before = _contents(path)
            after = _contents(source) if Path(destination).resolve() == path else before
            is_same_folder = source.resolve().parent == path.parent
            event = {"event": "rename", "same_folder": is_same_folder, "before": before}
            tell({**event, "contents": after})
        replace(source, destination, **options)

    def flushed(file: object) -> None:
        """Tell what the file at `path` holds until then, and flush as os.fsync does.

        The answer may flush a temporary file, which it renames to `path` later. Its size shows the
        judge whether all pieces had been written to it before.
        """
        number = file if isinstance(file, int) else file.fileno()  # os.fsync takes either
        nbytes = os.stat(number).st_size
        tell({"event": "flush", "contents": _contents(path), "nbytes": nbytes})
        fsync(file)

    replacements = {"fsync": flushed, "fdatasync": flushed, "replace": renamed, "rename": renamed}
    return _patched(replacements, names)


def _patched(replacements: dict[str, Callable], names: dict[str, object]) -> ExitStack:
    """Return a context in which `os` has these functions in place of its own.

    A name in `names` that stands for one of the functions of `os` gets the replacement, too.
    """
    imported = {}
    for name, value in names.items():
        for name_in_os, replacement in replacements.items():
            # macOS has no fdatasync. There `getattr` returns the default, which no name stands for.
            if value is getattr(os, name_in_os, replacements):
                imported[name] = replacement
    patched = ExitStack()
    patched.enter_context(mock.patch.dict(names, imported))
    # `create` lets fdatasync be added on macOS.
    patched.enter_context(mock.patch.multiple(os, create=True, **replacements))
    return patched


def _contents(path: Path) -> bytes | None:
    """Return the file's first MOST_CONTENTS bytes; None if there is no file."""
    return path.read_bytes()[:MOST_CONTENTS] if path.exists() else None


def _inode(path: Path) -> int | None:
    """Return the system's number of the file, or None if there is no file.

    A file that replaces another one has another number.
    """
    return path.stat().st_ino if path.exists() else None


# What the judge asks for by the entry "do" of its question.
OBSERVE: Mapping[str, Callable[[Channel, Callable[..., object], Message], None]] = {
    "accumulate": accumulate,
    "loop": loop,
    "write": write,
}
