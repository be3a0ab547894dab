"""Two processes talk over a socket, in whole messages, each with its length in front of it.

Neither side waits longer than it is allowed to.
"""

import select
import socket
import time
from collections.abc import Callable, Mapping
from types import MappingProxyType

from course_utils.core.say import Number
from course_utils.stage.grading import wire

# What the judge says to the process of the answers, in a byte each.
BEGIN = b"a"  # run an answer; the socket over which it is asked comes with this
HOW_LONG = b"t"  # how much processor time has the answer taken?
HEARD_ENOUGH = b"k"  # the answer's process can be killed
FELL_SILENT = b"w"  # the answer's process is probably ending: wait a moment to see how it ends

ENDED = "It has ended."
BYTES_OF_A_LENGTH = 8
MOST_BYTES_AT_ONCE = 1 << 20
NO_KINDS: Mapping[str, Callable[..., object]] = MappingProxyType({})


class SilentError(Exception):
    """The other side has gone, takes too long, or says what is no value."""


class StoppedError(BaseException):
    """The answer's process has ended, or says nonsense.

    It is no Exception, because a check would take that for an error that the answer raised.
    """


class Talk:
    """One end of a socket.

    `left_s` is how long it may still wait, over all its messages together. Only waiting counts,
    not what this side computes.
    """

    def __init__(
        self,
        end: socket.socket,
        longest_s: Number,
        kinds: Mapping[str, Callable[..., object]] = NO_KINDS,
    ) -> None:
        self.end = end
        self.left_s = longest_s
        self.kinds = kinds
        self.longest_s = longest_s
        # It is asked when the time is up; if it says yes, we wait as long again.
        self.is_working: Callable[[], bool] = lambda: False
        end.setblocking(False)

    def say(self, value: object) -> None:
        data = wire.encoded(value)
        length = len(data).to_bytes(BYTES_OF_A_LENGTH, "big")
        self._send(length + data)

    def hear(self) -> object:
        """The next value that the other side says."""
        length = int.from_bytes(self._receive(BYTES_OF_A_LENGTH), "big")
        if length > wire.MOST_BYTES:
            raise SilentError("It said more than anybody may.")
        data = self._receive(length)
        try:
            return wire.decoded(data, kinds=self.kinds)
        except wire.WireError as error:
            raise SilentError(str(error)) from None

    def _send(self, data: bytes) -> None:
        rest = memoryview(data)
        while rest:
            self._wait(reading=False)
            try:
                sent = self.end.send(rest)
            except BlockingIOError:
                continue
            except OSError:
                raise SilentError(ENDED) from None
            rest = rest[sent:]

    def _receive(self, length: int) -> bytes:
        received = bytearray()
        while len(received) < length:
            self._wait(reading=True)
            missing = length - len(received)
            try:
                part = self.end.recv(min(MOST_BYTES_AT_ONCE, missing))
            except BlockingIOError:
                continue
            except OSError:
                part = b""
            if not part:
                raise SilentError(ENDED)
            received += part
        return bytes(received)

    def _wait(self, *, reading: bool) -> None:
        """Wait until there is something to read, or room to write."""
        to_read = [self.end] if reading else []
        to_write = [] if reading else [self.end]
        begun_s = time.monotonic()
        ready = select.select(to_read, to_write, [], max(self.left_s, 0))
        self.left_s -= time.monotonic() - begun_s
        if any(ready):
            return
        if not self.is_working():
            raise TooSlowError("It took too long.")
        self.left_s = self.longest_s
        self._wait(reading=reading)


class TooSlowError(SilentError):
    """The time is up."""
