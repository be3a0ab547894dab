"""Has JupyterLab load `place.js`, which opens a notebook at the cell that the address names."""

import posixpath
from pathlib import Path

from jupyter_server.base.handlers import FileFindHandler, JupyterHandler
from jupyter_server.serverapp import ServerApp
from jupyter_server.utils import url_path_join

from course_utils.stage.workspace.contents import ADDRESS

NAME = "course-workspace"  # of the extension that `place.js` is to JupyterLab
FILE = "place.js"


def open_at_the_named_cell(server: ServerApp) -> None:
    """Serve `place.js`, and list it among JupyterLab's extensions in each page's configuration."""
    settings = server.web_app.settings
    folder = url_path_join(settings["base_url"], ADDRESS)
    address = url_path_join(folder, FILE)
    hook_before = settings.get("page_config_hook")

    def with_place(handler: JupyterHandler, page_config: dict) -> dict:
        """Add `place.js` to a page's configuration. The server calls this hook for each page."""
        if hook_before:
            page_config = hook_before(handler, page_config)
        # JupyterLab looks for `load` in the folder NAME below the address of all extensions. As
        # `place.js` lies elsewhere, the path leads out of it: "../../../contents/place.js".
        load = posixpath.relpath(address, f"{page_config['fullLabextensionsUrl']}/{NAME}")
        # "./extension" is the module that JupyterLab takes from the file: `place.js` has only one.
        ours = {"name": NAME, "load": load, "extension": "./extension"}
        # JupyterLab loads each entry of this list when the page opens.
        extensions = page_config.setdefault("federated_extensions", [])
        extensions.append(ours)
        return page_config

    settings["page_config_hook"] = with_place
    # The handler gets the group of the pattern, the file's name, and looks for it in this folder.
    found_in = {"path": [str(Path(__file__).parent)]}
    server.web_app.add_handlers(".*$", [(f"{folder}/({FILE})", FileFindHandler, found_in)])
