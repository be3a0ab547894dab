"""What keeps a hostile network from stopping the presentation: few connections, each short and for one request."""

import time
from collections import Counter
from collections.abc import Callable

from tornado.httpserver import HTTPServer
from tornado.iostream import IOStream

PATIENCE_S = 10  # within which a request has to be here
BOUNDS = {"max_header_size": 8 << 10, "max_body_size": 16 << 10, "no_keep_alive": True}
MOST_OPEN = 2_000
# Of one address. 300 phones behind one, as some networks have it, ask 150 times a second.
MOST_OPEN_OF_ONE = 800
REQUESTS_AT_ONCE = 1_000
REQUESTS_PER_SEC = 200


class Gate(HTTPServer):
    """Closes a connection unread where there are too many. As each is for one request, requests are bounded, too."""

    def initialize(self, app: Callable, patience_s: float = PATIENCE_S) -> None:
        """Tornado calls this in place of __init__."""
        super().initialize(app, idle_connection_timeout=patience_s, body_timeout=patience_s, **BOUNDS)
        self._open = Counter()  # of each address
        self._used = {}  # of each address: how many of its requests at once, and when that was

    def handle_stream(self, stream: IOStream, address: tuple) -> None:
        """A phone has connected."""
        ip, now = address[0], time.monotonic()
        used, then = self._used.get(ip, (0, now))
        used = max(used - (now - then) * REQUESTS_PER_SEC, 0) + 1
        full = self._open.total() >= MOST_OPEN or self._open[ip] >= MOST_OPEN_OF_ONE
        if full or used > REQUESTS_AT_ONCE:
            stream.close()
            return
        self._used[ip] = used, now
        self._open[ip] += 1
        super().handle_stream(stream, address)

    def on_close(self, server_conn: object) -> None:
        """It has gone."""
        self._open[server_conn.context.address[0]] -= 1
        super().on_close(server_conn)
