"""A notebook's page without a browser: it runs cells in a kernel of any environment, and moves what they show.

As Colab's page, it names the cell in a place of its own, and shows no message that a thread sends by itself: one that
comes when nothing is asked.
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

LONGEST_S = 300.0  # of a cell or a click


@dataclass
class FrontEnd:
    """The widgets' states are those that the kernel has told."""

    client: BlockingKernelClient
    widgets: dict[str, dict[str, object]] = field(default_factory=dict)

    def run(self, code: str) -> list[NotebookNode]:
        """What a cell shows."""
        content = {"code": code, "silent": False, "store_history": True, "allow_stdin": False}
        return self._asked("execute_request", content, metadata={"colab": {"cell_id": "a-cell"}})

    def tell(self, widget: str, **data: object) -> list[NotebookNode]:
        """What the kernel shows when it hears that of a widget; the error, if its callback fails."""
        return self._asked("comm_msg", {"comm_id": widget, "data": data})

    def _asked(self, kind: str, content: dict[str, object], **more: object) -> list[NotebookNode]:
        message, outputs = self.client.session.msg(kind, content, **more), []
        self.client.shell_channel.send(message)
        asked = message["header"]["msg_id"]
        while True:
            message = self.client.get_iopub_msg(timeout=LONGEST_S)
            kind, content = message["msg_type"], message["content"]
            if message["parent_header"].get("msg_id") != asked:
                continue
            if kind == "status" and content["execution_state"] == "idle":
                return outputs
            if kind.startswith("comm_") and "state" in content["data"]:
                self.widgets.setdefault(content["comm_id"], {}).update(content["data"]["state"])
            elif kind in ("stream", "display_data", "execute_result", "error"):
                outputs.append(output_from_msg(message))

    def inside(self, widget: str) -> Iterator[str]:
        """A widget and all that lie in it."""
        yield widget
        for child in self.widgets[widget].get("children", ()):
            yield from self.inside(child.removeprefix("IPY_MODEL_"))


def outcomes(page: FrontEnd, cells: Sequence[NotebookNode], path: Path) -> Iterator[Outcome]:
    """Each code cell in turn, beside what that notebook has stored of it."""
    stored_of = {cell.id: stored_text(cell) for cell in code(path)}
    for cell in cells:
        if cell.cell_type == "code":
            begun, outputs = time.perf_counter(), page.run(cell.source)
            failure = "".join(f"{one.ename}: {one.evalue}" for one in outputs if "ename" in one)
            took, here = time.perf_counter() - begun, stored_text({"outputs": outputs})
            stored, may_differ = (
                stored_of.get(cell.id, here),
                "nbval-ignore-output" in str(cell.metadata),
            )
            yield Outcome(cell.id, took, here, stored, may_differ, failure)
