"""Where the course runs, and what its pages have to say differently there: in a clone, installed, or on a JupyterHub."""

import os
from dataclasses import dataclass

from course_utils.desk import copies

COMMANDS = (
    "Without this page: <code>make anew NB=04 EXERCISE=2</code>, <code>make anew NB=04</code> for a whole notebook, "
    "and <code>make results NB=04</code> for the results."
)


@dataclass(frozen=True)
class Place:
    """Parts of sentences. All are HTML, except the remedy."""

    next_start: str
    kept: str = "on this machine and nowhere else"
    untouched: str = ""
    commands: str = ""
    remedy: str = "Make room there, or start it in a folder of your own."  # where no copies can be made


CLONE = Place(
    next_start="the next <code>make lab</code>",
    untouched="<code>git pull</code> does not touch them. ",
    commands=COMMANDS,
    remedy="Make room there, or clone the course into a folder of your own; "
    "until then, the course's own notebooks open.",
)


def place() -> Place:
    """The hub's place if a hub has started this server, else the clone's."""
    if (base := os.environ.get("JUPYTERHUB_BASE_URL")) is None:
        return Place("the next start") if copies.INSTALLED.is_dir() else CLONE
    panel = f"{os.environ.get('JUPYTERHUB_HOST', '')}{base}hub/home"  # a host only where each user has a subdomain
    return Place(
        next_start=f'the next start of your server (<a href="{panel}">Hub Control Panel</a>)',
        kept="in your folder on this hub, where nobody reads it but you and whoever runs the hub",
        remedy="Make room in your folder, then stop and start your server in the Hub Control Panel.",
    )
