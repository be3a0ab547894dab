"""JupyterLab loads `place.js` as an extension, which opens a notebook at the cell that its address names."""

import posixpath
from pathlib import Path

from jupyter_server.base.handlers import FileFindHandler, JupyterHandler
from jupyter_server.serverapp import ServerApp
from jupyter_server.utils import url_path_join

from course_utils.stage.workspace.contents import ADDRESS

NAME, FILE = "course-workspace", "place.js"


def open_at_the_named_cell(server: ServerApp) -> None:
    """Serve the file, and list it in each page's configuration beside the extensions that are installed."""
    settings = server.web_app.settings
    address = url_path_join(settings["base_url"], ADDRESS, FILE)
    others = settings.get("page_config_hook")

    def with_place(handler: JupyterHandler, page_config: dict) -> dict:
        if others:
            page_config = others(handler, page_config)
        # JupyterLab looks for all extensions below one address, and this file lies elsewhere.
        load = posixpath.relpath(address, f"{page_config['fullLabextensionsUrl']}/{NAME}")
        ours = {"name": NAME, "load": load, "extension": "./extension"}
        page_config.setdefault("federated_extensions", []).append(ours)
        return page_config

    settings["page_config_hook"] = with_place
    folder, _, name = address.rpartition("/")
    served = (f"{folder}/({name})", FileFindHandler, {"path": [str(Path(__file__).parent)]})
    server.web_app.add_handlers(".*$", [served])
