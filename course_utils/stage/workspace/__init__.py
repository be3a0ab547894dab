"""The reader's workspace: their copies of the notebooks, the record, and the contents page.

A Jupyter server loads it as its extension `course_utils.stage.workspace`: `make lab` does, and so
does a hub. Nothing here needs torch, and nothing leaves the machine that the server runs on.
"""


def _jupyter_server_extension_points() -> list[dict[str, str]]:
    return [{"module": "course_utils.stage.workspace.extension"}]
