"""What a JupyterHub on one machine has to be told of the course.

`make hub` loads it. The Littlest JupyterHub does, too, from its jupyterhub_config.d; values.yaml says the same for
Kubernetes. The room's page, for guesses by all, is here alone: on Kubernetes the hub's own image has no course. It is
there if COURSE_INSTRUCTORS names somebody in the hub's environment; COURSE_PYTHON is the Python that has the course.
"""

import os
import sys

from jupyterhub.spawner import Spawner
from tornado.web import HTTPError

c = get_config()  # noqa: F821

c.Spawner.default_url = "/contents"
c.Spawner.args = ["--ServerApp.jpserver_extensions=course_utils.stage.workspace=True"]
# Each server believes that all cores are its own, and a hundred of them would get in each other's way. What the
# notebooks have stored was computed by one thread, too.
c.Spawner.environment = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
c.Spawner.http_timeout = 120  # forty servers that start at once take turns at the cores

if instructors := os.environ.get("COURSE_INSTRUCTORS", "").split():
    python, port = (
        os.environ.get("COURSE_PYTHON", sys.executable),
        os.environ.get("COURSE_ROOM_PORT", "8091"),
    )
    told = ("COURSE_INSTRUCTORS", "COURSE_ROOMS", "JUPYTERHUB_PUBLIC_URL")
    room = {
        "name": "room",
        "url": f"http://127.0.0.1:{port}",
        "command": [python, "-m", "course_utils.stage.hub.service"],
        "environment": {name: os.environ[name] for name in told if name in os.environ},
        "oauth_no_confirm": True,
    }
    c.JupyterHub.services = [room]
    c.JupyterHub.load_roles = [{"name": "user", "scopes": ["self", "access:services!service=room"]}]
    # Only where an instructor presents: what the instructor tries alone asks nobody.
    wall = {True: "/services/room/wall/", False: ""}
    c.Spawner.environment["COURSE_ROOM"] = lambda spawner: wall[
        bool(spawner.name) and spawner.user.name in instructors
    ]

    def refused(status: int, words: str) -> HTTPError:
        error = HTTPError(status, words)
        error.jupyterhub_message = words  # which the hub's page shows
        return error

    def presenting(spawner: Spawner) -> None:
        """A named server presents the notebook that it is called after; nobody but an instructor starts one."""
        if not spawner.name:
            return
        if spawner.user.name not in instructors:
            raise refused(403, "Named servers present a notebook, and are for instructors.")
        if spawner.name.removeprefix("0") not in list("12345678"):
            raise refused(
                400, "Name it after a notebook's number, such as 04: it presents that notebook."
            )
        spawner.cmd = [
            python,
            "-m",
            "course_utils.stage.hub.presenting",
            spawner.name,
            *spawner.cmd[1:],
        ]
        spawner.args = []  # no contents page: what runs is a copy

    c.JupyterHub.allow_named_servers = True
    c.Spawner.pre_spawn_hook = presenting
