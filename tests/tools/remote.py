"""Runs cells in a kernel behind a server, through the websocket that a page would use."""

import json
from contextlib import suppress
from uuid import uuid4

from websocket import WebSocket, WebSocketException


def reply(channel: WebSocket, code: str) -> dict[str, object]:
    """Run a cell in the kernel at the other end of the channel, and return its execute_reply."""
    msg_id = uuid4().hex
    header = {"msg_id": msg_id, "msg_type": "execute_request", "session": "", "username": ""}
    content = {"code": code, "silent": False, "store_history": True, "stop_on_error": False}
    request = {
        "header": header,
        "parent_header": {},
        "metadata": {},
        "content": content,
        "channel": "shell",
    }
    channel.send(json.dumps(request))
    with suppress(WebSocketException):  # the connection is lost
        while text := channel.recv():
            if isinstance(text, bytes):  # a widget's message with buffers
                continue
            message = json.loads(text)
            is_ours = message["parent_header"].get("msg_id") == msg_id
            if is_ours and message["msg_type"] == "execute_reply":
                return message["content"]
    return {"status": "the kernel is gone"}
