"""Cells that run in a kernel behind a server, asked as a page asks."""

import json
from contextlib import suppress
from uuid import uuid4

from websocket import WebSocket, WebSocketException


def reply(channel: WebSocket, code: str) -> dict[str, object]:
    """What the kernel at the other end of that channel says of a cell, when it has run it."""
    header = {"msg_id": uuid4().hex, "msg_type": "execute_request", "session": "", "username": ""}
    content = {"code": code, "silent": False, "store_history": True, "stop_on_error": False}
    message = {
        "header": header,
        "parent_header": {},
        "metadata": {},
        "content": content,
        "channel": "shell",
    }
    channel.send(json.dumps(message))
    with suppress(WebSocketException):  # it broke off
        while text := channel.recv():
            message = json.loads(text) if isinstance(text, str) else {"parent_header": {}}
            is_ours = message["parent_header"].get("msg_id") == header["msg_id"]
            if is_ours and message["msg_type"] == "execute_reply":
                return message["content"]
    return {"status": "the kernel is gone"}
