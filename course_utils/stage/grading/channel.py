"""A socket between two processes, for whole messages, each with its length in front of it.

Neither process waits longer for the other one than it is allowed to.
"""

import select
import socket
import time
from collections.abc import Callable, Mapping
from types import MappingProxyType

from course_utils.core.say import Number
from course_utils.stage.grading import wire

# The judge's commands to the process of the answers, a byte each. That process forks a child for
# each answer.
RUN = b"a"  # run an answer; the child's end of a new socket comes with this command
PROCESSOR_TIME = b"t"  # send back how much processor time the child has taken
KILL = b"k"  # kill the child
AWAIT_EXIT = b"w"  # the child probably exits by itself: wait a moment for its exit status

CLOSED = "It has ended."  # the message of the error where the other process has closed its end
BYTES_OF_A_LENGTH = 8
MOST_BYTES_AT_ONCE = 1 << 20
# The default of `kinds`, read-only because all channels share it.
NO_KINDS: Mapping[str, Callable[..., object]] = MappingProxyType({})


class ChannelError(Exception):
    """The other process has exited, takes too long, or sends bytes that encode no value."""


class TooSlowError(ChannelError):
    """The other process took longer than this one may wait."""


class AnswerProcessError(BaseException):
    """The answer's process has exited, or sends something impossible.

    This class is no Exception, because a check would take an Exception for one of the answer's.
    """


class Channel:
    """One end of a socket.

    `left_s` is how long this process may still wait for the other one, over all messages together.
    The time in which this process computes does not count. `kinds` has the classes of which objects
    may be received, by name, such as {"Model": Model}.
    """

    def __init__(
        self,
        end: socket.socket,
        longest_s: Number,
        kinds: Mapping[str, Callable[..., object]] = NO_KINDS,
    ) -> None:
        """Wait for the other process for `longest_s` in all, and longer if it still computes."""
        self.end = end
        self.left_s = longest_s
        self.kinds = kinds
        self.longest_s = longest_s
        # Called when the time is up: if the other process still computes, we wait as long again.
        # The judge replaces it by what `AnswerProcess._busy_test` returns.
        self.other_still_computes: Callable[[], bool] = lambda: False
        end.setblocking(False)

    def send(self, value: object) -> None:
        """Send a plain value; ChannelError if the other process does not take it in time."""
        data = wire.encoded(value)
        length = len(data).to_bytes(BYTES_OF_A_LENGTH, "big")
        self._send_bytes(length + data)

    def receive(self) -> object:
        """Return the next value that the other process sends; ChannelError if none comes."""
        length = int.from_bytes(self._receive_bytes(BYTES_OF_A_LENGTH), "big")
        if length > wire.MOST_BYTES:
            raise ChannelError("It said more than anybody may.")
        data = self._receive_bytes(length)
        try:
            return wire.decoded(data, kinds=self.kinds)
        except wire.WireError as error:
            raise ChannelError(str(error)) from None

    def _send_bytes(self, data: bytes) -> None:
        """Send all of the bytes; ChannelError if the other process has closed its end."""
        rest = memoryview(data)
        while rest:
            self._wait(reading=False)
            try:
                sent = self.end.send(rest)
            except BlockingIOError:  # select may promise what the socket then refuses
                continue
            except OSError:
                raise ChannelError(CLOSED) from None
            rest = rest[sent:]

    def _receive_bytes(self, length: int) -> bytes:
        """Return the next `length` bytes; ChannelError if the other process has closed its end."""
        received = bytearray()
        while len(received) < length:
            self._wait(reading=True)
            missing = length - len(received)
            try:
                part = self.end.recv(min(MOST_BYTES_AT_ONCE, missing))
            except BlockingIOError:  # as in `_send_bytes`
                continue
            except OSError:
                part = b""  # a broken socket is treated as a closed one
            if not part:  # a closed socket gives no bytes
                raise ChannelError(CLOSED)
            received += part
        return bytes(received)

    def _wait(self, *, reading: bool) -> None:
        """Wait until there is something to read, or space to write; TooSlowError if none comes."""
        to_read = [self.end] if reading else []
        to_write = [] if reading else [self.end]
        begun_s = time.monotonic()
        ready = select.select(to_read, to_write, [], max(self.left_s, 0))
        self.left_s -= time.monotonic() - begun_s
        if any(ready):  # three lists, all of them empty if the time is up
            return
        if not self.other_still_computes():
            raise TooSlowError("It took too long.")
        self.left_s = self.longest_s  # as long again
        self._wait(reading=reading)
