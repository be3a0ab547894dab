"""The judge's side: an answer that lies in another process, as a function that a check can call.

What comes from there is plain values. A call gives one or raises an error of the same type and with the same words. Where an
exercise is about live things, the judge does with its own what the other process says that it did; so a check needs to know
nothing of all this.
"""

import builtins
import inspect
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import torch
from torch import Tensor, nn

from course_utils.chapters.mixed_precision import repair
from course_utils.core import measure
from course_utils.engine.judging.limits import TooLongError
from course_utils.engine.judging.sentences import InPlaceError
from course_utils.stage.grading import wire
from course_utils.stage.grading.replaying import flush, hold, rename
from course_utils.stage.grading.talking import SilentError, StoppedError, Talk

LONGEST_WORDS, MOST_ROWS, MOST_EVENTS = 400, 1000, 10_000
# What autograd kept at most in the other process, in the training that was asked for last.
KEPT_BYTES: list[int] = []
RENAME = os.replace  # as it is before a check watches it
KINDS = (
    inspect.Parameter.POSITIONAL_ONLY,
    inspect.Parameter.POSITIONAL_OR_KEYWORD,
    inspect.Parameter.VAR_POSITIONAL,
    inspect.Parameter.KEYWORD_ONLY,
    inspect.Parameter.VAR_KEYWORD,
)
# How their answers went about it, only the answer's own process knows.
AS_ITS_PROCESS_SAYS = ("accumulated", "write_whole", "mended_")


class AnswerError(Exception):
    """An error of a type that Python does not have."""


class Words(str):
    """A message that shows itself as it is: a KeyError shows its argument's repr."""

    def __repr__(self) -> str:
        return str(self)


def error_of(told: object) -> BaseException:
    """The error that the other process tells of."""
    name, said = entry(told, "error", str), entry(told, "said", str)[:LONGEST_WORDS]
    kind = getattr(builtins, name, AnswerError)
    if name == TooLongError.__name__:
        kind = TooLongError
    if not (isinstance(kind, type) and issubclass(kind, BaseException)) or issubclass(
        kind, BaseExceptionGroup
    ):
        kind = AnswerError
    try:
        error = kind(Words(said)) if said else kind()
    except TypeError:  # as a UnicodeDecodeError, which wants five
        error = AnswerError(said)
    error.told = entry(told, "told", str)[:LONGEST_WORDS]
    return error


class Answer:
    """A function in the other process."""

    def __init__(self, talk: Talk, name: str, takes: object) -> None:
        self.talk = talk
        self.__name__ = (
            name if name.isidentifier() and len(name) <= wire.LONGEST_NAME else "<answer>"
        )
        signature = _signature(takes)
        if signature is not None:
            self.__signature__ = signature
        self.names_told: set[str] = set()  # those that its code uses
        self.noted: list[str] = []  # what has no place in an answer, as its process noted it
        self.loop_told: dict[str, object] | None = None

    def __call__(self, *case: object) -> object:
        if len(case) == 4 and isinstance(case[0], nn.Module):
            return self._accumulate(*case)
        if len(case) == 2 and isinstance(case[0], Path):
            return self._write(*case)
        outcome = self._ask(case)
        self.noted = noted_in(outcome)
        if "error" in outcome:
            raise error_of(outcome["error"])
        if entry(outcome, "changed", bool):
            raise InPlaceError
        if "came" not in outcome:
            raise StoppedError("It says nonsense.")
        return outcome["came"]

    def _ask(self, question: object) -> dict[str, object]:
        try:
            self.talk.say(question)
            return entries(self.talk.hear())
        except SilentError as error:
            raise StoppedError(str(error)) from None

    def _accumulate(self, model: nn.Module, _: object, batch: Tensor, parts: int) -> None:
        """Send so many rows through the judge's own model, forward and backward, and leave the gradients that came."""
        layers = [
            [m.in_features, m.out_features] if isinstance(m, nn.Linear) else [] for m in model
        ]
        weights = [*model.parameters()]
        asked = {"do": "accumulate", "layers": layers, "weights": [p.detach() for p in weights]}
        came = self._ask(asked | {"batch": batch, "parts": parts})
        KEPT_BYTES.append(entry(came, "kept", int))
        _go_through(model, batch, entry(came, "rows", list))
        with torch.no_grad():
            for parameter, new in zip(weights, _tensors(came, "weights", weights), strict=True):
                parameter.copy_(new)
        for parameter, gradient in zip(weights, _tensors(came, "gradients", weights), strict=True):
            parameter.grad = gradient
        if came["error"] is not None:
            raise error_of(came["error"])

    def loop_seen(self) -> repair.Seen:
        """What was seen of a training loop."""
        came = self._loop()
        if came["error"] is not None:
            raise error_of(came["error"])
        fields = entries(came["seen"])
        numbers = {
            name: [float(x) for x in fields[name]] for name in ("losses", "zeros", "norms", "lost")
        }
        seen = repair.Seen(**numbers, products={wire.DTYPES[name] for name in fields["products"]})
        seen.scalers = [None] * min(entry(fields, "scalers", int), MOST_ROWS)
        if came["stopped"] is not None:
            seen.error = error_of(came["stopped"])
        return seen

    def is_untouched_loop(self) -> bool:
        return entry(self._loop(), "untouched", bool)

    def _loop(self) -> dict[str, object]:
        if self.loop_told is None:
            self.loop_told = self._ask({"do": "loop"})
        return self.loop_told

    def _write(self, path: Path, pieces: Iterator[bytes]) -> object:
        """Have in the judge's own file what is in the other one, whenever something happens to it."""
        old = path.read_bytes() if path.exists() else None
        place = path.stat().st_ino if path.exists() else None
        told = self._ask({"do": "write", "old": old})
        full = None
        for _ in range(MOST_EVENTS):
            if told["event"] == "end":
                return _ended(path, told, full, place)
            if told["event"] == "piece":
                hold(path, told["contents"])
                piece = None
                try:
                    piece = next(pieces, None)
                except OSError as error:
                    full, piece = error, "full"
                told = self._ask(piece)
                continue
            if told["event"] == "rename":
                hold(path, told["before"])
                rename(path, told["contents"], is_near=entry(told, "near", bool))
            else:
                hold(path, told["contents"])
                flush(entry(told, "nbytes", int))
            try:
                told = entries(self.talk.hear())
            except SilentError as error:
                raise StoppedError(str(error)) from None
        raise StoppedError("It does too much.")


def value_of(told: object, talk: Talk) -> object:
    """The answer that the other process describes: a value, or a function in it."""
    described = entries(told)
    if described.get("is") == "function":
        answer = Answer(talk, entry(described, "name", str), described.get("takes"))
        answer.names_told = {str(name) for name in entry(described, "uses", list)}
        return answer
    if "value" not in described:
        raise StoppedError("It says nonsense.")
    return described["value"]


def noted_in(told: dict[str, object]) -> list[str]:
    return [str(one)[:LONGEST_WORDS] for one in told.get("noted") or () if type(one) is str]


def entries(came: object) -> dict[str, object]:
    if type(came) is not dict:
        raise StoppedError("It says nonsense.")
    return came


def entry(told: object, name: str, kind: type) -> object:
    """One part of what was said; StoppedError if it is not exactly of that type."""
    found = entries(told).get(name)
    if type(found) is not kind:
        raise StoppedError("It says nonsense.")
    return found


def _tensors(came: dict, name: str, like: list[Tensor]) -> list[Tensor | None]:
    """As many tensors as there should be, and of the same shapes; a gradient may be missing."""
    tensors = entry(came, name, list)
    if len(tensors) != len(like):
        raise StoppedError("It says nonsense.")
    for tensor, one in zip(tensors, like, strict=True):
        if tensor is None and name == "gradients":
            continue
        if type(tensor) is not Tensor or (tensor.shape, tensor.dtype) != (one.shape, one.dtype):
            raise StoppedError("It says nonsense.")
    return tensors


def _signature(takes: object) -> inspect.Signature | None:
    """What the function takes, as far as it says so in a way that Python allows."""
    try:
        found = [
            inspect.Parameter(
                name, KINDS[kind], default=None if has_default else inspect.Parameter.empty
            )
            for name, kind, has_default in takes
        ]
        return inspect.Signature(found)
    except (TypeError, ValueError, IndexError):
        return None


def _go_through(model: nn.Module, batch: Tensor, rows: list) -> None:
    waiting: list[Tensor] = []
    if len(rows) > MOST_ROWS or any(
        type(n) is not int or not 0 < abs(n) <= MOST_ROWS for n in rows
    ):
        raise StoppedError("It says nonsense.")
    for n in rows:
        if n > 0:
            waiting.append(model(batch.new_zeros(n, batch.shape[1])))
            continue
        result = next((one for one in waiting if len(one) == -n), None)
        if result is None:
            raise StoppedError("It says nonsense.")
        result.sum().backward(retain_graph=True)


def _ended(path: Path, told: dict[str, object], full: OSError | None, place: int | None) -> object:
    """Leave what the other process has left. A file that was replaced unseen is replaced here, too."""
    is_still_there = path.exists() and path.stat().st_ino == place
    if is_still_there and not entry(told, "same", bool) and told["contents"] is not None:
        anew = path.with_name("anew")
        anew.write_bytes(told["contents"] if type(told["contents"]) is bytes else b"")
        RENAME(anew, path)
    hold(path, told["contents"])
    for name in entry(told, "others", list)[:1]:
        left = "".join(c for c in str(name)[: wire.LONGEST_NAME] if c.isalnum() or c in "._- ")
        path.with_name(left.strip(". ") or "a file").write_bytes(b"")
    if entry(told, "full", bool) and full is not None:
        raise full
    if told["error"] is not None:
        raise error_of(told["error"])
    return ... if entry(told, "open", bool) else None


def judge_from_afar() -> None:
    """Let the checks see what the answer's own process saw: of mended loops, and of what autograd kept."""
    seen, is_untouched, kept = repair.seen, repair.is_untouched, measure.saved_bytes_over_time

    def seen_from_afar(loop: Callable[..., object]) -> repair.Seen:
        return loop.loop_seen() if isinstance(loop, Answer) else seen(loop)

    def is_untouched_from_afar(loop: Callable[..., object]) -> bool:
        return loop.is_untouched_loop() if isinstance(loop, Answer) else is_untouched(loop)

    def kept_from_afar(function: Callable[[], object], **options: object) -> list[int]:
        KEPT_BYTES.clear()
        here = kept(function, **options)
        return [*KEPT_BYTES] or here

    repair.seen, repair.is_untouched = seen_from_afar, is_untouched_from_afar
    measure.saved_bytes_over_time = kept_from_afar
