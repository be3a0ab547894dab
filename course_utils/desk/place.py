"""Where the course runs, and what its pages have to say differently there: in a clone, or on a JupyterHub."""

import os
from dataclasses import dataclass

COMMANDS = (
    "Without this page: <code>make anew NB=04 EXERCISE=2</code>, <code>make anew NB=04</code> for a whole notebook, "
    "and <code>make results NB=04</code> for the results."
)


@dataclass(frozen=True)
class Place:
    """Parts of sentences, as HTML but for the remedy."""

    next_start: str
    untouched: str
    commands: str
    kept: str
    remedy: str  # where no copies can be made


CLONE = Place(
    next_start="the next <code>make lab</code>",
    untouched="<code>git pull</code> does not touch them. ",
    commands=COMMANDS,
    kept="on this machine and nowhere else",
    remedy="Make room there, or clone the course into a folder of your own; "
    "until then, the course's own notebooks open.",
)


def place() -> Place:
    """The hub's, if a hub has started this server."""
    hub = os.environ.get("JUPYTERHUB_BASE_URL")
    if hub is None:
        return CLONE
    return Place(
        next_start=f'the next start of your server (<a href="{hub}hub/home">Hub Control Panel</a>)',
        untouched="",
        commands="",
        kept="in your folder on this hub, where nobody reads it but you and whoever runs the hub",
        remedy="Make room in your folder, then stop and start your server in the Hub Control Panel.",
    )
