"""The judge's side: lets a check call a function that lies in the answer's process.

That process sends only plain values. So a call in the judge returns such a value, or raises an
error of the same type and with the same message. Where an exercise is about a model, a training
loop or a file, the answer works on one in its own process, which sends what happened to it; the
judge does the same to the model or file that the check watches. So no check needs to know that the
answer lies in another process.
"""

import builtins
import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NoReturn

import torch
from torch import Tensor, nn

from course_utils.chapters.mixed_precision import repair
from course_utils.core import measure
from course_utils.engine.judging.errors import InPlaceError
from course_utils.engine.judging.limits import TooLongError
from course_utils.stage.grading import wire
from course_utils.stage.grading.channel import AnswerProcessError, Channel, ChannelError
from course_utils.stage.grading.replaying import flush, hold, rename, replace_unseen

LONGEST_WORDS = 400  # characters of a message
MOST_ROWS = 1000  # of one batch, and of lists that the answer's process sends
MOST_EVENTS = 10_000  # that an answer may cause while it writes one file
EMPTY = b""
# The most bytes that autograd kept in the answer's process, in the training that it ran last.
KEPT_BYTES: list[int] = []
KINDS = (  # of parameters, by the number that stands for each in a message
    inspect.Parameter.POSITIONAL_ONLY,
    inspect.Parameter.POSITIONAL_OR_KEYWORD,
    inspect.Parameter.VAR_POSITIONAL,
    inspect.Parameter.KEYWORD_ONLY,
    inspect.Parameter.VAR_KEYWORD,
)
# The verdicts of these checks rest on what the answer's own process has reported, and the table
# says so. A check belongs to them if its name begins with one of these.
REPORTED_BY_ITS_PROCESS = ("accumulated", "write_whole", "mended_")


class AnswerError(Exception):
    """An error of a type that Python does not have."""


class Message(str):
    """A message whose repr is the message, because a KeyError shows the repr of its argument."""

    def __repr__(self) -> str:
        return str(self)


def refuse_message() -> NoReturn:
    """Stop judging an answer whose process has sent something impossible."""
    raise AnswerProcessError("It says nonsense.")


def error_of(described: object) -> BaseException:
    """Return the error that `observing.described_error` has described in the other process."""
    name = entry(described, "type", str)
    message = entry(described, "message", str)[:LONGEST_WORDS]
    kind = _kind_of_error(name)
    try:
        error = kind(Message(message)) if message else kind()
    except TypeError:  # some types take more than a message: UnicodeDecodeError takes five
        error = AnswerError(message)
    # The other process knows the answer's line, and names it in this sentence: the engine shows it.
    error.told = entry(described, "sentence", str)[:LONGEST_WORDS]
    return error


def _kind_of_error(name: str) -> type[BaseException]:
    """Return Python's error type of that name, or TooLongError; AnswerError for any other name."""
    if name == TooLongError.__name__:
        return TooLongError
    kind = getattr(builtins, name, AnswerError)  # may be a function, such as print
    is_error = isinstance(kind, type) and issubclass(kind, BaseException)
    if not is_error or issubclass(kind, BaseExceptionGroup):  # a group cannot have a message alone
        return AnswerError
    return kind


class RemoteFunction:
    """A student's function in the answer's process, which this object calls over the channel."""

    def __init__(self, channel: Channel, name: str, parameters: object) -> None:
        """Take the function's name, and its parameters as `observing.parameters_of` returns them.

        The other process may send anything, so a wrong name or parameter is not used.
        """
        self.channel = channel
        is_name = name.isidentifier() and len(name) <= wire.LONGEST_NAME
        self.__name__ = name if is_name else "<answer>"
        signature = _signature(parameters)
        if signature is not None:
            self.__signature__ = signature
        self.names_told: set[str] = set()  # the names that its code uses, for `names_used`
        self.noted: list[str] = []  # sentences of `noting` on what has no place in an answer
        self._loop_report: dict[str, object] | None = None  # on its loops; None until asked for

    def __call__(self, *case: object) -> object:
        """Call the student's function with this case.

        A model and three more arguments are a case of `accumulated`, a path and an iterator of
        pieces one of `write_whole`. All other cases are sent as they are.
        """
        if len(case) == 4 and isinstance(case[0], nn.Module):
            return self._accumulate(*case)
        if len(case) == 2 and isinstance(case[0], Path):
            return self._write(*case)
        outcome = self._ask(case)
        self.noted = noted_in(outcome)
        if "error" in outcome:
            raise error_of(outcome["error"])
        if entry(outcome, "changed", bool):  # whether the call has changed its arguments
            raise InPlaceError
        if "result" not in outcome:
            refuse_message()
        return outcome["result"]

    def _ask(self, question: object) -> dict[str, object]:
        """Send the question, and return the reply."""
        try:
            self.channel.send(question)
        except ChannelError as error:
            raise AnswerProcessError(str(error)) from None
        return self._receive()

    def _receive(self) -> dict[str, object]:
        """Return the next message of the answer's process; AnswerProcessError if none comes."""
        try:
            return entries(self.channel.receive())
        except ChannelError as error:
            raise AnswerProcessError(str(error)) from None

    def _accumulate(self, model: nn.Module, _loss: object, batch: Tensor, parts: int) -> None:
        """Have the answer train a copy of the model, and bring the judge's own to the same state.

        The check counts the rows that go through the judge's model, so as many go through it,
        forward and backward. Then the model gets the weights and gradients that the answer has
        computed. The loss is not sent: the answer's process has a copy of it.
        """
        layers = []  # two sizes for a linear layer, none for a GELU
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
        reply = self._ask(question)
        KEPT_BYTES.append(entry(reply, "kept_bytes", int))  # which `kept_remotely` reads
        _go_through(model, batch, entry(reply, "rows", list))
        with torch.no_grad():
            new_weights = _tensors(reply, "weights", weights)
            for parameter, new in zip(weights, new_weights, strict=True):
                parameter.copy_(new)
        gradients = _tensors(reply, "gradients", weights)
        for parameter, gradient in zip(weights, gradients, strict=True):
            parameter.grad = gradient
        if reply["error"] is not None:
            raise error_of(reply["error"])

    def loop_seen(self) -> repair.Seen:
        """Return what the answer's process saw of a training loop that it ran."""
        report = self._report_on_loop()
        if report["error"] is not None:
            raise error_of(report["error"])  # it never came to a loop
        fields = entries(report["seen"])
        seen = repair.Seen(
            losses=_floats(fields["losses"]),
            zeros=_floats(fields["zeros"]),
            norms=_floats(fields["norms"]),
            lost=_floats(fields["lost"]),
            products={wire.DTYPES[name] for name in fields["products"]},
            norms_at_larger_scale=_floats(fields["norms_at_larger_scale"]),
        )
        seen.scalers = [None] * min(entry(fields, "scalers", int), MOST_ROWS)  # only counted
        if report["stopped"] is not None:
            seen.error = error_of(report["stopped"])  # it ended the loop midway
        return seen

    def is_untouched_loop(self) -> bool:
        """Whether the function is a broken loop as it was handed out."""
        return entry(self._report_on_loop(), "untouched", bool)

    def _report_on_loop(self) -> dict[str, object]:
        """Return the report on the training loop; the answer's process runs the loop only once."""
        if self._loop_report is None:
            self._loop_report = self._ask({"do": "loop"})
        return self._loop_report

    def _write(self, path: Path, pieces: Iterator[bytes]) -> object:
        """Have the answer write a file of its own, and do the same to the judge's file.

        The answer's process sends what happens to its file, event by event. The event "piece" asks
        for the next piece of the contents.
        """
        old = path.read_bytes() if path.exists() else None  # the answer's own file begins with it
        inode = path.stat().st_ino if path.exists() else None
        raised: Exception | None = None  # an error that the check raises in the answer, to test it
        event = self._ask({"do": "write", "old": old})
        for _ in range(MOST_EVENTS):
            if event["event"] == "end":
                return _ended(path, event, raised, inode)
            try:
                reply = _replayed(path, event, pieces)
            except AnswerProcessError:
                raise
            except Exception as error:  # the check's: the answer's process raises one like it
                raised = error
                reply = {"raise": type(error).__name__, "arguments": list(error.args)}
            event = self._ask(reply)
        raise AnswerProcessError("It does too much.")


def _replayed(path: Path, event: dict[str, object], pieces: Iterator[bytes]) -> bytes | None:
    """Do to the judge's file what the answer has done to its own; return the next piece, or None.

    Only the event "piece" asks for a piece; None then says that there are no more. First, the file
    gets what the answer's file holds, so that the check sees it. Errors of the check are raised.
    """
    if event["event"] == "piece":
        hold(path, event["contents"])
        return next(pieces, None)
    if event["event"] == "rename":
        hold(path, event["before"])
        rename(path, event["contents"], from_same_folder=entry(event, "same_folder", bool))
        return None
    hold(path, event["contents"])
    flush(entry(event, "nbytes", int))  # the third kind of event is a flush
    return None


def value_of(message: object, channel: Channel) -> object:
    """Return the answer that a message describes: a value, or a function in the other process."""
    described = entries(message)
    if described.get("is") == "function":
        name = entry(described, "name", str)
        answer = RemoteFunction(channel, name, described.get("parameters"))
        answer.names_told = {str(used) for used in entry(described, "names_used", list)}
        return answer
    if "value" not in described:
        refuse_message()
    return described["value"]


def noted_in(message: dict[str, object]) -> list[str]:
    """Return the sentences of a message on what has no place in an answer."""
    noted = message.get("noted") or ()
    return [words[:LONGEST_WORDS] for words in noted if type(words) is str]  # anything may come


def entries(message: object) -> dict[str, object]:
    """Return the message, which has to be a dict; AnswerProcessError if it is not."""
    if type(message) is not dict:
        refuse_message()
    return message


def entry(message: object, name: str, kind: type) -> object:
    """Return a message's entry; AnswerProcessError if it is not exactly of the type `kind`."""
    value = entries(message).get(name)
    if type(value) is not kind:
        refuse_message()
    return value


def _tensors(message: dict, name: str, like: list[Tensor]) -> list[Tensor | None]:
    """Return the message's tensors of that name.

    AnswerProcessError unless they have the number, shapes and dtypes of the tensors in `like`;
    only a gradient may be None.
    """
    tensors = entry(message, name, list)
    if len(tensors) != len(like):
        refuse_message()
    for tensor, wanted in zip(tensors, like, strict=True):
        if tensor is None and name == "gradients":
            continue
        if type(tensor) is not Tensor:
            refuse_message()
        if tensor.shape != wanted.shape or tensor.dtype != wanted.dtype:
            refuse_message()
    return tensors


def _floats(numbers: object) -> list[float]:
    return [float(number) for number in numbers]


def _signature(described: object) -> inspect.Signature | None:
    """Return the signature that `observing.parameters_of` describes; None if Python allows none."""
    parameters = []
    try:
        for name, kind, has_default in described:
            # Which default it is makes no difference to a check.
            default = None if has_default else inspect.Parameter.empty
            parameters.append(inspect.Parameter(name, KINDS[kind], default=default))
        return inspect.Signature(parameters)
    except (TypeError, ValueError, IndexError):  # TypeError also if `described` is None
        return None


def _go_through(model: nn.Module, batch: Tensor, rows: list) -> None:
    """Send batches of zeros through the model: n rows forward for n, and n rows backward for -n.

    The answer's process reports `rows`, such as [8, -8]. A check only counts rows, so zeros do.
    """
    if len(rows) > MOST_ROWS or not all(_is_number_of_rows(n) for n in rows):
        refuse_message()
    results: list[Tensor] = []  # of the forward passes
    for n in rows:
        if n > 0:
            results.append(model(batch.new_zeros(n, batch.shape[1])))
            continue
        result = next((forward for forward in results if len(forward) == -n), None)  # n is below 0
        if result is None:
            refuse_message()
        # The graph is retained, because a later -n finds the same first result of n rows.
        result.sum().backward(retain_graph=True)


def _is_number_of_rows(n: object) -> bool:
    return type(n) is int and 0 < abs(n) <= MOST_ROWS  # True is an int, too


def _ended(
    path: Path, end: dict[str, object], raised: Exception | None, inode: int | None
) -> object:
    """Make the judge's folder like the answer's at the end; then return or raise as the answer did.

    `end` is the event that ends the answer's call, and `raised` the error that the check raised
    meanwhile, or None. `inode` is of the judge's file before the call, None if it had none.
    """
    _replace_unseen(path, end, inode)
    hold(path, end["contents"])  # also removes the file, or refuses contents that are no bytes
    for name in entry(end, "other_files", list)[:1]:  # one file too many is enough for the check
        path.with_name(_harmless(str(name))).write_bytes(EMPTY)
    if entry(end, "raised_judges", bool) and raised is not None:
        raise raised
    if end["error"] is not None:
        raise error_of(end["error"])
    # A check takes dots for an answer that is still the stub.
    return ... if entry(end, "returned_dots", bool) else None


def _replace_unseen(path: Path, end: dict[str, object], inode: int | None) -> None:
    """Replace the judge's file if the answer replaced its own in a way that no event showed.

    The answer's file then has a new inode, while the judge's file still has its former `inode`.
    """
    is_the_former_file = path.exists() and path.stat().st_ino == inode
    if is_the_former_file and not entry(end, "same_inode", bool) and end["contents"] is not None:
        replace_unseen(path, end["contents"])


def _harmless(name: str) -> str:
    """Return the name without characters that could lead to another folder."""
    allowed = [c for c in name[: wire.LONGEST_NAME] if c.isalnum() or c in "._- "]
    return "".join(allowed).strip(". ") or "a file"  # neither ".." nor an empty name


def observe_remotely() -> None:
    """Replace the functions by which checks observe a loop, or measure what autograd keeps.

    For a function in the answer's process, the new ones return what that process observed.
    """
    seen = repair.seen
    is_untouched = repair.is_untouched
    saved_bytes_over_time = measure.saved_bytes_over_time

    def seen_remotely(loop: Callable[..., object]) -> repair.Seen:
        """Return what is seen of the loop, in whichever process it runs."""
        if isinstance(loop, RemoteFunction):
            return loop.loop_seen()
        return seen(loop)

    def is_untouched_remotely(loop: Callable[..., object]) -> bool:
        """Return whether the loop, here or in the answer's process, is one of the broken ones."""
        if isinstance(loop, RemoteFunction):
            return loop.is_untouched_loop()
        return is_untouched(loop)

    def kept_remotely(function: Callable[[], object], **options: object) -> list[int]:
        """Return what the answer's process kept, or, if it has not trained, what is kept here."""
        KEPT_BYTES.clear()
        kept_here = saved_bytes_over_time(function, **options)
        return list(KEPT_BYTES) or kept_here  # empty unless `function` called the answer

    repair.seen = seen_remotely
    repair.is_untouched = is_untouched_remotely
    measure.saved_bytes_over_time = kept_remotely
