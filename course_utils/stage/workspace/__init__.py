"""The reader's workspace: their copies of the notebooks, the record, and the contents page.

This package is an extension of Jupyter's server. `make lab` and hubs load it under its name,
`course_utils.stage.workspace`. Nothing here needs torch, and nothing leaves the machine that the
server runs on.
"""


def _jupyter_server_extension_points() -> list[dict[str, str]]:
    """Jupyter's server calls this function to find the module of the extension."""
    return [{"module": "course_utils.stage.workspace.extension"}]
