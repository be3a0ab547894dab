"""The course's settings for a JupyterHub on one machine.

`make hub` loads this file. So does The Littlest JupyterHub, from its folder jupyterhub_config.d. On
Kubernetes, values.yaml has the same settings, but not the room, on whose page a whole class
guesses, because the hub's own image does not have the course.

The room is set up if COURSE_INSTRUCTORS, in the hub's environment, names somebody. COURSE_PYTHON is
the Python that has the course.
"""

import os
import sys

from jupyterhub.spawner import Spawner
from tornado.web import HTTPError

c = get_config()  # noqa: F821  # JupyterHub defines this name before it runs the file

c.Spawner.default_url = "/contents"
c.Spawner.args = ["--ServerApp.jpserver_extensions=course_utils.stage.workspace=True"]
# Otherwise each of a hundred servers would use as many threads as there are cores, and they would
# get in each other's way. The notebooks' stored results were computed by one thread, too.
c.Spawner.environment = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
c.Spawner.http_timeout = 120  # forty servers that start at once take turns at the cores


def refused(status: int, words: str) -> HTTPError:
    """Return the error to raise, with words that the hub shows to the user."""
    error = HTTPError(status, words)
    error.jupyterhub_message = words  # the hub's page shows this attribute
    return error


instructors = os.environ.get("COURSE_INSTRUCTORS", "").split()
if instructors:
    python = os.environ.get("COURSE_PYTHON", sys.executable)
    port = os.environ.get("COURSE_ROOM_PORT", "8091")
    passed_on = ("COURSE_INSTRUCTORS", "COURSE_ROOMS", "JUPYTERHUB_PUBLIC_URL")
    room = {
        "name": "room",
        "url": f"http://127.0.0.1:{port}",
        "command": [python, "-m", "course_utils.stage.hub.service"],
        "environment": {name: os.environ[name] for name in passed_on if name in os.environ},
        "oauth_no_confirm": True,  # nobody is asked whether the room may know who they are
    }
    c.JupyterHub.services = [room]
    # Every user may open the room's page.
    c.JupyterHub.load_roles = [{"name": "user", "scopes": ["self", "access:services!service=room"]}]

    def wall(spawner: Spawner) -> str:
        """Return the address of the wall if the server presents a notebook, else an empty string.

        The wall is the room's page that is projected, with the class's guesses. JupyterHub calls
        this for each server that it starts, to set COURSE_ROOM in it: by that, a notebook that is
        presented finds the room.
        """
        # An ordinary server's name is "".
        presents = spawner.name != "" and spawner.user.name in instructors
        return "/services/room/wall/" if presents else ""

    def presenting(spawner: Spawner) -> None:
        """Make a named server present the notebook whose number is its name.

        JupyterHub calls this before it starts a server. Servers without a name are ordinary ones.
        Only instructors may start a named one.
        """
        if not spawner.name:
            return
        if spawner.user.name not in instructors:
            raise refused(403, "Named servers present a notebook, and are for instructors.")
        # The numbers of the course's notebooks. They are in a list, because "12" and "" are in the
        # text "12345678", too.
        if spawner.name.removeprefix("0") not in list("12345678"):
            raise refused(
                400, "Name it after a notebook's number, such as 04: it presents that notebook."
            )
        present = [python, "-m", "course_utils.stage.hub.presenting", spawner.name]
        # `present` takes the place of the command's program; the options behind it stay.
        spawner.cmd = [*present, *spawner.cmd[1:]]
        spawner.args = []  # without the contents page, since the notebook that runs is a copy

    c.Spawner.environment["COURSE_ROOM"] = wall
    c.JupyterHub.allow_named_servers = True
    c.Spawner.pre_spawn_hook = presenting
