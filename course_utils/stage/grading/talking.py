"""Two processes talk over a socket: whole messages, each with its length in front, and never longer to wait than allowed."""

import select
import socket
import time
from collections.abc import Callable, Mapping
from types import MappingProxyType

from course_utils.core.say import Number
from course_utils.stage.grading import wire

ENDED = "It has ended."
NO_KINDS: Mapping[str, Callable[..., object]] = MappingProxyType({})


class SilentError(Exception):
    """The other side has gone, takes too long, or says what is no value."""


class StoppedError(BaseException):
    """The answer's process has ended, or says nonsense. It is no Exception, so that no check takes it for the answer's."""


class Talk:
    """One end of a socket. `left_s` is how long it may still wait, in all: what this side computes does not count."""

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
        # Asked when the time is up: whether to wait as long again.
        self.is_working: Callable[[], bool] = lambda: False
        end.setblocking(False)

    def say(self, value: object) -> None:
        data = wire.encoded(value)
        self._send(len(data).to_bytes(8, "big") + data)

    def hear(self) -> object:
        """What the other side said."""
        length = int.from_bytes(self._receive(8), "big")
        if length > wire.MOST_BYTES:
            raise SilentError("It said more than anybody may.")
        try:
            return wire.decoded(self._receive(length), kinds=self.kinds)
        except wire.WireError as error:
            raise SilentError(str(error)) from None

    def _send(self, data: bytes) -> None:
        rest = memoryview(data)
        while rest:
            self._wait(reading=False)
            try:
                rest = rest[self.end.send(rest) :]
            except BlockingIOError:
                continue
            except OSError:
                raise SilentError(ENDED) from None

    def _receive(self, length: int) -> bytes:
        parts = bytearray()
        while len(parts) < length:
            self._wait(reading=True)
            try:
                part = self.end.recv(min(1 << 20, length - len(parts)))
            except BlockingIOError:
                continue
            except OSError:
                part = b""
            if not part:
                raise SilentError(ENDED)
            parts += part
        return bytes(parts)

    def _wait(self, *, reading: bool) -> None:
        begun = time.monotonic()
        ends = [self.end]
        ready = select.select(
            ends if reading else [], [] if reading else ends, [], max(self.left_s, 0)
        )
        self.left_s -= time.monotonic() - begun
        if not any(ready) and not self.is_working():
            raise TooSlowError("It took too long.")
        if not any(ready):
            self.left_s = self.longest_s
            self._wait(reading=reading)


class TooSlowError(SilentError):
    """The time is up."""
