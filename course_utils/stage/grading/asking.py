"""The judge's side: a function that lies in the answer's process, as one that a check can call.

Only plain values come from there. A call returns one, or raises an error of the same type and with
the same words. Where an exercise is about a model, a training loop or a file, the answer's process
tells what the answer did to its own, and the judge does the same to the one that the check watches.
So no check needs to know that the answer is elsewhere.
"""

import builtins
import inspect
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NoReturn

import torch
from torch import Tensor, nn

from course_utils.chapters.mixed_precision import repair
from course_utils.core import measure
from course_utils.engine.judging.limits import TooLongError
from course_utils.engine.judging.sentences import InPlaceError
from course_utils.stage.grading import wire
from course_utils.stage.grading.replaying import flush, hold, rename
from course_utils.stage.grading.talking import SilentError, StoppedError, Talk

LONGEST_WORDS = 400  # characters of a message
MOST_ROWS = 1000
MOST_EVENTS = 10_000  # that an answer may cause while it writes one file
NOTHING_IN_IT = b""
# The most bytes that autograd kept in the other process, in the training that was asked for last.
KEPT_BYTES: list[int] = []
RENAME = os.replace  # taken before a check puts a function that watches in its place
KINDS = (
    inspect.Parameter.POSITIONAL_ONLY,
    inspect.Parameter.POSITIONAL_OR_KEYWORD,
    inspect.Parameter.VAR_POSITIONAL,
    inspect.Parameter.KEYWORD_ONLY,
    inspect.Parameter.VAR_KEYWORD,
)
# Only the answer's own process can tell how answers to these checks work; the table says so.
AS_ITS_PROCESS_SAYS = ("accumulated", "write_whole", "mended_")


class AnswerError(Exception):
    """An error of a type that Python does not have."""


class Words(str):
    """A message whose repr is the message, because a KeyError shows the repr of its argument."""

    def __repr__(self) -> str:
        return str(self)


def nonsense() -> NoReturn:
    """Stop judging an answer whose process says something impossible."""
    raise StoppedError("It says nonsense.")


def error_of(told: object) -> BaseException:
    """The error that the other process tells of."""
    name = entry(told, "error", str)
    said = entry(told, "said", str)[:LONGEST_WORDS]
    kind = _kind_of_error(name)
    try:
        error = kind(Words(said)) if said else kind()
    except TypeError:  # some types want more than a message: UnicodeDecodeError wants five things
        error = AnswerError(said)
    error.told = entry(told, "told", str)[:LONGEST_WORDS]
    return error


def _kind_of_error(name: str) -> type[BaseException]:
    """Python's type of error of that name, or TooLongError; AnswerError for any other name."""
    if name == TooLongError.__name__:
        return TooLongError
    kind = getattr(builtins, name, AnswerError)
    is_error = isinstance(kind, type) and issubclass(kind, BaseException)
    if not is_error or issubclass(kind, BaseExceptionGroup):
        return AnswerError
    return kind


class Answer:
    """A function in the other process."""

    def __init__(self, talk: Talk, name: str, takes: object) -> None:
        self.talk = talk
        is_name = name.isidentifier() and len(name) <= wire.LONGEST_NAME
        self.__name__ = name if is_name else "<answer>"
        signature = _signature(takes)
        if signature is not None:
            self.__signature__ = signature
        self.names_told: set[str] = set()  # the names that its code uses
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
            nonsense()
        return outcome["came"]

    def _ask(self, question: object) -> dict[str, object]:
        try:
            self.talk.say(question)
        except SilentError as error:
            raise StoppedError(str(error)) from None
        return self._hear()

    def _hear(self) -> dict[str, object]:
        try:
            return entries(self.talk.hear())
        except SilentError as error:
            raise StoppedError(str(error)) from None

    def _accumulate(self, model: nn.Module, _: object, batch: Tensor, parts: int) -> None:
        """Have the answer train a copy of the model, and bring the judge's own to the same state.

        The check counts the rows that go through the judge's model, so as many go through it,
        forward and backward. Then the model gets the weights and gradients that the answer has
        computed.
        """
        layers = []
        for module in model:
            is_linear = isinstance(module, nn.Linear)
            layers.append([module.in_features, module.out_features] if is_linear else [])
        weights = list(model.parameters())
        question = {
            "do": "accumulate",
            "layers": layers,
            "weights": [parameter.detach() for parameter in weights],
            "batch": batch,
            "parts": parts,
        }
        came = self._ask(question)
        KEPT_BYTES.append(entry(came, "kept", int))
        _go_through(model, batch, entry(came, "rows", list))
        with torch.no_grad():
            new_weights = _tensors(came, "weights", weights)
            for parameter, new in zip(weights, new_weights, strict=True):
                parameter.copy_(new)
        gradients = _tensors(came, "gradients", weights)
        for parameter, gradient in zip(weights, gradients, strict=True):
            parameter.grad = gradient
        if came["error"] is not None:
            raise error_of(came["error"])

    def loop_seen(self) -> repair.Seen:
        """What was seen of a training loop."""
        came = self._loop()
        if came["error"] is not None:
            raise error_of(came["error"])
        fields = entries(came["seen"])
        seen = repair.Seen(
            losses=_floats(fields["losses"]),
            zeros=_floats(fields["zeros"]),
            norms=_floats(fields["norms"]),
            lost=_floats(fields["lost"]),
            products={wire.DTYPES[name] for name in fields["products"]},
        )
        scalers = entry(fields, "scalers", int)
        seen.scalers = [None] * min(scalers, MOST_ROWS)  # only their number matters
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
        """Have the answer write a file of its own, and do the same to the judge's file.

        The answer tells what happens to its file, and gets a piece whenever it asks for one.
        """
        old = path.read_bytes() if path.exists() else None
        inode = path.stat().st_ino if path.exists() else None
        full: OSError | None = None  # the error of a full disk, if a piece raised it
        told = self._ask({"do": "write", "old": old})
        for _ in range(MOST_EVENTS):
            event = told["event"]
            if event == "end":
                return _ended(path, told, full, inode)
            if event == "piece":
                hold(path, told["contents"])
                try:
                    piece = next(pieces, None)
                except OSError as error:
                    full = error
                    piece = "full"
                told = self._ask(piece)
                continue
            if event == "rename":
                hold(path, told["before"])
                rename(path, told["contents"], is_near=entry(told, "near", bool))
            else:
                hold(path, told["contents"])
                flush(entry(told, "nbytes", int))
            told = self._hear()
        raise StoppedError("It does too much.")


def value_of(told: object, talk: Talk) -> object:
    """The answer that the other process describes: a value, or a function that stays there."""
    described = entries(told)
    if described.get("is") == "function":
        answer = Answer(talk, entry(described, "name", str), described.get("takes"))
        answer.names_told = {str(name) for name in entry(described, "uses", list)}
        return answer
    if "value" not in described:
        nonsense()
    return described["value"]


def noted_in(told: dict[str, object]) -> list[str]:
    noted = told.get("noted") or ()
    return [str(words)[:LONGEST_WORDS] for words in noted if type(words) is str]


def entries(came: object) -> dict[str, object]:
    """What was said, which has to be a dict."""
    if type(came) is not dict:
        nonsense()
    return came


def entry(told: object, name: str, kind: type) -> object:
    """One part of what was said; StoppedError if it is not exactly of that type."""
    part = entries(told).get(name)
    if type(part) is not kind:
        nonsense()
    return part


def _tensors(came: dict, name: str, like: list[Tensor]) -> list[Tensor | None]:
    """As many tensors as in `like`, and of the same shapes; only a gradient may be missing."""
    tensors = entry(came, name, list)
    if len(tensors) != len(like):
        nonsense()
    for tensor, wanted in zip(tensors, like, strict=True):
        if tensor is None and name == "gradients":
            continue
        if type(tensor) is not Tensor:
            nonsense()
        if tensor.shape != wanted.shape or tensor.dtype != wanted.dtype:
            nonsense()
    return tensors


def _floats(numbers: object) -> list[float]:
    return [float(number) for number in numbers]


def _signature(takes: object) -> inspect.Signature | None:
    """What the function takes; None if what the process says is no signature that Python allows."""
    parameters = []
    try:
        for name, kind, has_default in takes:
            default = None if has_default else inspect.Parameter.empty
            parameters.append(inspect.Parameter(name, KINDS[kind], default=default))
        return inspect.Signature(parameters)
    except (TypeError, ValueError, IndexError):
        return None


def _go_through(model: nn.Module, batch: Tensor, rows: list) -> None:
    """Send batches through the model: n rows forward for n, and n of them backward for -n."""
    if len(rows) > MOST_ROWS or not all(_is_number_of_rows(n) for n in rows):
        nonsense()
    waiting: list[Tensor] = []  # results of the forward passes
    for n in rows:
        if n > 0:
            waiting.append(model(batch.new_zeros(n, batch.shape[1])))
            continue
        result = next((result for result in waiting if len(result) == -n), None)
        if result is None:
            nonsense()
        result.sum().backward(retain_graph=True)


def _is_number_of_rows(n: object) -> bool:
    return type(n) is int and 0 < abs(n) <= MOST_ROWS


def _ended(path: Path, told: dict[str, object], full: OSError | None, inode: int | None) -> object:
    """Leave what the answer has left in its folder, and return or raise what its call did.

    A file that the answer replaced in a way that was not seen is replaced here, too.
    """
    is_still_there = path.exists() and path.stat().st_ino == inode
    if is_still_there and not entry(told, "same", bool) and told["contents"] is not None:
        is_bytes = type(told["contents"]) is bytes
        anew = path.with_name("anew")
        anew.write_bytes(told["contents"] if is_bytes else NOTHING_IN_IT)
        RENAME(anew, path)
    hold(path, told["contents"])
    for name in entry(told, "others", list)[:1]:  # one file too many is enough for the check
        path.with_name(_harmless(str(name))).write_bytes(NOTHING_IN_IT)
    if entry(told, "full", bool) and full is not None:
        raise full
    if told["error"] is not None:
        raise error_of(told["error"])
    return ... if entry(told, "open", bool) else None


def _harmless(name: str) -> str:
    """The name without characters that could lead to another folder."""
    allowed = [c for c in name[: wire.LONGEST_NAME] if c.isalnum() or c in "._- "]
    return "".join(allowed).strip(". ") or "a file"


def judge_from_afar() -> None:
    """Let the checks see what the answer's own process saw of loops and of what autograd kept.

    It replaces functions of the course that the checks call.
    """
    seen = repair.seen
    is_untouched = repair.is_untouched
    saved_bytes_over_time = measure.saved_bytes_over_time

    def seen_from_afar(loop: Callable[..., object]) -> repair.Seen:
        if isinstance(loop, Answer):
            return loop.loop_seen()
        return seen(loop)

    def is_untouched_from_afar(loop: Callable[..., object]) -> bool:
        if isinstance(loop, Answer):
            return loop.is_untouched_loop()
        return is_untouched(loop)

    def kept_from_afar(function: Callable[[], object], **options: object) -> list[int]:
        KEPT_BYTES.clear()
        kept_here = saved_bytes_over_time(function, **options)
        return list(KEPT_BYTES) or kept_here

    repair.seen = seen_from_afar
    repair.is_untouched = is_untouched_from_afar
    measure.saved_bytes_over_time = kept_from_afar
