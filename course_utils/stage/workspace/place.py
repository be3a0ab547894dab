"""Where the course runs: in a clone, installed, or on a JupyterHub. The contents page says some things differently there."""

import os
from dataclasses import dataclass

from course_utils.stage.workspace import copies


@dataclass(frozen=True)
class Place:
    kind: str  # "clone", "installed" or "hub"
    remedy: str  # where no copies can be made
    panel: str = ""  # the address at which a hub starts and stops servers


def place() -> Place:
    """The hub's place if a hub has started this server, else the clone's."""
    if (base := os.environ.get("JUPYTERHUB_BASE_URL")) is not None:
        host = os.environ.get("JUPYTERHUB_HOST", "")  # only where each user has a subdomain
        remedy = (
            "Make room in your folder, then stop and start your server in the Hub Control Panel."
        )
        return Place("hub", remedy, f"{host}{base}hub/home")
    if copies.INSTALLED.is_dir():
        return Place("installed", "Make room there, or start it in a folder of your own.")
    clone = "Make room there, or clone the course into a folder of your own"
    return Place("clone", f"{clone}; until then, the course's own notebooks open.")
