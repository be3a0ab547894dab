"""A notebook's page without a browser: it runs cells in any kernel, and moves their widgets.

As Colab's page does, it names the cell in metadata of Colab's own, and it shows a message only if
that answers the request at hand; what a thread of the kernel sends by itself is dropped.
"""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from jupyter_client.blocking import BlockingKernelClient
from nbformat import NotebookNode
from nbformat.v4 import output_from_msg

from tests.helpers.notebooks import code
from tests.tools.shown_here import Outcome, stored_text

LONGEST_S = 300.0  # the longest wait for the next message of a cell or a click


@dataclass
class FrontEnd:
    """A page with a kernel. `widgets` has the state of each widget, as the kernel has sent it."""

    client: BlockingKernelClient
    widgets: dict[str, dict[str, object]] = field(default_factory=dict)

    def run(self, code: str) -> list[NotebookNode]:
        """Run a cell, and return its outputs."""
        content = {"code": code, "silent": False, "store_history": True, "allow_stdin": False}
        return self._asked("execute_request", content, metadata={"colab": {"cell_id": "a-cell"}})

    def tell(self, widget: str, **data: object) -> list[NotebookNode]:
        """Send a message of a widget, and return what the kernel shows then.

        If the widget's callback fails, that is an error.
        """
        return self._asked("comm_msg", {"comm_id": widget, "data": data})

    def _asked(self, kind: str, content: dict[str, object], **more: object) -> list[NotebookNode]:
        """Send a request, note the widgets' new states, and return the outputs that come."""
        outputs = []
        request = self.client.session.msg(kind, content, **more)
        self.client.shell_channel.send(request)
        for message in self._replies_to(request["header"]["msg_id"]):
            kind = message["msg_type"]
            if kind.startswith("comm_"):
                self._note(message["content"])
            elif kind in ("stream", "display_data", "execute_result", "error"):
                outputs.append(output_from_msg(message))
        return outputs

    def _replies_to(self, request_id: str) -> Iterator[dict]:
        """Yield the kernel's messages that belong to the request, until it is idle again."""
        while True:
            message = self.client.get_iopub_msg(timeout=LONGEST_S)
            if message["parent_header"].get("msg_id") != request_id:  # a thread's, for example
                continue
            if message["content"].get("execution_state") == "idle":
                return
            yield message

    def _note(self, content: dict) -> None:
        """Note the state that a message has of a widget, or the part of it that has changed."""
        if "state" in content["data"]:
            state = self.widgets.setdefault(content["comm_id"], {})
            state.update(content["data"]["state"])

    def inside(self, widget: str) -> Iterator[str]:
        """Yield the widget, and all widgets in it, however deep."""
        yield widget
        for child in self.widgets[widget].get("children", ()):
            yield from self.inside(child.removeprefix("IPY_MODEL_"))


def outcomes(page: FrontEnd, cells: Sequence[NotebookNode], path: Path) -> Iterator[Outcome]:
    """Run each code cell, and set what it shows beside what that notebook has stored of it."""
    stored = {cell.id: stored_text(cell) for cell in code(path)}
    for cell in cells:
        if cell.cell_type != "code":
            continue
        begun = time.perf_counter()
        outputs = page.run(cell.source)
        took_s = time.perf_counter() - begun
        here = stored_text({"outputs": outputs})
        errors = [f"{output.ename}: {output.evalue}" for output in outputs if "ename" in output]
        yield Outcome(
            id=cell.id,
            seconds=took_s,
            here=here,
            stored=stored.get(cell.id, here),
            may_differ="nbval-ignore-output" in str(cell.metadata),
            failure="".join(errors),
        )
