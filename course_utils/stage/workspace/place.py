"""Where the course runs: in a clone, installed, or on a JupyterHub.

The contents page and the messages about copies depend on this.
"""

import os
from dataclasses import dataclass

from course_utils.stage.workspace import copies


@dataclass(frozen=True)
class Place:
    """Where the course runs, with what the page and the messages say there."""

    kind: str  # "clone", "installed" or "hub"
    remedy: str  # what to do where no copies can be made, behind a sentence that names the folder
    panel: str = ""  # the address at which a hub starts and stops servers


def place() -> Place:
    """Return the place of this server."""
    base = os.environ.get("JUPYTERHUB_BASE_URL")  # set by a hub that has started the server
    if base is not None:
        host = os.environ.get("JUPYTERHUB_HOST", "")  # only where each user has a subdomain
        return Place(
            "hub",
            "Make room in your folder, then stop and start your server in the Hub Control Panel.",
            panel=f"{host}{base}hub/home",
        )
    if copies.INSTALLED.is_dir():
        return Place("installed", "Make room there, or start it in a folder of your own.")
    return Place(
        "clone",
        "Make room there, or clone the course into a folder of your own; "
        "until then, the course's own notebooks open.",
    )
