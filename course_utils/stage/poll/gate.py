"""Limits each address: how many connections it has open, and how many new phones it brings.

Each connection is short, and for one request.
"""

import time
from collections import Counter
from collections.abc import Callable

from tornado.httpserver import HTTPServer
from tornado.iostream import IOStream

from course_utils.stage.poll.rounds import MANY_ADDRESSES

PATIENCE_S = 10  # within which a request has to be here
# Tornado's options: a request's header has at most 8 KiB, and its body 16 KiB. Without keep-alive,
# a connection ends after one request.
BOUNDS = {"max_header_size": 8 << 10, "max_body_size": 16 << 10, "no_keep_alive": True}
MOST_OPEN = 2_000  # connections of all addresses
# For one address: in some networks 300 phones share one, and send 150 requests a second.
MOST_OPEN_OF_ONE = 800
REQUESTS_AT_ONCE = 1_000  # after a pause; then REQUESTS_PER_SEC
REQUESTS_PER_SEC = 200
# New phones of one address. Where all phones share it, as behind a campus router, a whole class is
# let in within a minute.
NEW_AT_ONCE = 60  # after a pause; then NEW_PER_SEC
NEW_PER_SEC = 5
# Once there are phones of many addresses, one that brings many more is hardly a class, or is only a
# part of one.
FEW_AT_ONCE = 6
FEW_PER_SEC = 1


class Gate(HTTPServer):
    """Closes a connection unread where there are too many.

    As each connection is for one request, this bounds requests, too.
    """

    def initialize(self, app: Callable, patience_s: float = PATIENCE_S) -> None:
        """Tornado calls this in place of __init__."""
        super().initialize(
            app, idle_connection_timeout=patience_s, body_timeout=patience_s, **BOUNDS
        )
        self._open = Counter()  # how many connections of each address are open
        # By address, a leaky bucket: how many requests it holds, and when that was counted.
        self._used = {}

    def handle_stream(self, stream: IOStream, address: tuple) -> None:
        """Tornado calls this when a phone has connected."""
        ip = address[0]
        now_s = time.monotonic()
        used, then_s = self._used.get(ip, (0, now_s))
        # Since then the bucket has leaked at that rate; this request goes into it.
        used = max(used - (now_s - then_s) * REQUESTS_PER_SEC, 0) + 1
        is_full = self._open.total() >= MOST_OPEN or self._open[ip] >= MOST_OPEN_OF_ONE
        if is_full or used > REQUESTS_AT_ONCE:
            stream.close()
            return  # what is refused does not go into the bucket
        self._used[ip] = (used, now_s)
        self._open[ip] += 1
        super().handle_stream(stream, address)

    def on_close(self, server_conn: object) -> None:
        """Tornado calls this when the connection has ended."""
        ip = server_conn.context.address[0]
        self._open[ip] -= 1
        super().on_close(server_conn)


class Newcomers:
    """Limits how many new phones one address may bring: some at once, and then some each second.

    No phone is refused for good, because a phone that has to wait asks again every few seconds.
    Once the room has phones of many addresses, an address may bring at once a third as many phones
    as all others together, and one more in each second after that. So the part of a class that is
    behind one router gets in with the others, and a script that makes up phones is slow.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._admitted = Counter()  # by address
        # By address, a leaky bucket: how many new phones it holds, and when that was counted.
        self._recent = {}

    def admits(self, address: str) -> bool:
        """Whether one more phone of this address may come in now; if so, count it."""
        at_once, per_sec = self._allowed(address)
        now_s = self._clock()
        recent, then_s = self._recent.get(address, (0, now_s))
        # Since then the bucket has leaked at that rate; this phone goes into it.
        recent = max(recent - (now_s - then_s) * per_sec, 0) + 1
        if recent > at_once:
            return False
        self._recent[address] = (recent, now_s)
        self._admitted[address] += 1
        return True

    def _allowed(self, address: str) -> tuple[float, float]:
        """Return how many new phones of this address may come at once, and then per second."""
        if len(self._admitted) < MANY_ADDRESSES:
            return NEW_AT_ONCE, NEW_PER_SEC
        others = self._admitted.total() - self._admitted[address]
        return max(FEW_AT_ONCE, others // 3), FEW_PER_SEC  # a third, as the class says
