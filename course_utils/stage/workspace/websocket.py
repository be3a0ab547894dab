"""A kernel's messages reach the page without delay.

A kernel answers a slider with three or four messages in a row, most of them small. Nagle's
algorithm, which Jupyter's server leaves on, holds a small message back until the browser has
acknowledged the one before. The browser's system delays that acknowledgement in turn, on Linux by
up to 40 ms. `make latency` shows what this costs.
"""

import asyncio

from jupyter_server.services.kernels.connection.channels import ZMQChannelsWebsocketConnection


class AtOnce(ZMQChannelsWebsocketConnection):
    """The connection between a page and its kernel, without Nagle's algorithm."""

    def connect(self) -> asyncio.Future[None] | None:
        """Connect, with TCP_NODELAY set: this option switches Nagle's algorithm off."""
        self.websocket_handler.set_nodelay(True)
        return super().connect()


# The option by which another program starts a server with this class.
OPTION = f"--ServerApp.kernel_websocket_connection_class={__name__}.{AtOnce.__name__}"
