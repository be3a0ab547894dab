"""A kernel's messages reach the page at once.

A kernel answers a slider with three or four messages in a row, most of them small. Nagle's algorithm holds a small one
back until the browser has acknowledged the one before it, which the system delays in turn, on Linux by up to 40 ms.
Jupyter's server leaves that algorithm on. `make latency` shows what it costs.
"""

import asyncio

from jupyter_server.services.kernels.connection.channels import ZMQChannelsWebsocketConnection


class AtOnce(ZMQChannelsWebsocketConnection):
    """The connection between a page and its kernel, without Nagle's algorithm."""

    def connect(self) -> asyncio.Future[None] | None:
        """Connect, with TCP_NODELAY set."""
        self.websocket_handler.set_nodelay(True)
        return super().connect()


OPTION = f"--ServerApp.kernel_websocket_connection_class={__name__}.{AtOnce.__name__}"
