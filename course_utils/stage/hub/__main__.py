"""A JupyterHub on this machine, where any name is a student with a folder of its own.

`make hub` starts this hub, for trying. All servers run as the user who starts it, and all folders
are deleted when the hub stops. Nobody else reaches the hub, because it listens on loopback only and
asks for a password.
"""

import argparse
import os
import secrets
import socket
import sys
import tempfile
import warnings
from contextlib import chdir
from pathlib import Path

from jupyterhub.app import JupyterHub
from traitlets.config import Config

CONFIG = Path(__file__).with_name("jupyterhub_config.py")
BIN = Path(sys.executable).parent
HELP = (
    "A JupyterHub on this machine, where any name is a student with a folder of its own. "
    "Called by `make hub`."
)


def main(port: int, password: str, instructor: str) -> None:
    """Run the hub until it is stopped with Ctrl+C. `instructor` may be empty."""
    warnings.simplefilter("ignore")  # JupyterHub's warnings are for its own developers
    # jupyterhub_config.py reads these two.
    os.environ["COURSE_INSTRUCTORS"] = instructor
    os.environ["COURSE_ROOM_PORT"] = str(free_port())
    url = f"http://127.0.0.1:{port}"
    # The hub writes its database and its keys into the current folder.
    with tempfile.TemporaryDirectory(prefix="hub-") as folder, chdir(folder):
        # `launch_instance` starts this instance, and reads the course's settings from the file.
        JupyterHub.instance(config=local(port, password, Path(folder)))
        print(f"Open {url} and log in with any name. The password of all is {password}")
        if instructor:
            print(f"{instructor} lets all guess at {url}/services/room/")
            print(f"and presents notebook 4 at {url}/hub/spawn/{instructor}/04")
        print(
            "For several students at once, take a private window for each. Ctrl+C ends it.",
            flush=True,
        )
        JupyterHub.launch_instance(["--config", str(CONFIG)])


def local(port: int, password: str, folder: Path) -> Config:
    """Return the hub's settings: loopback only, one password, a home in `folder` for each name."""
    config = Config()
    config.JupyterHub.update(
        bind_url=f"http://127.0.0.1:{port}",
        hub_bind_url=f"http://127.0.0.1:{free_port()}",  # for the hub's proxy and servers alone
        authenticator_class="shared-password",
        spawner_class="simple",
        log_level="WARN",
    )
    config.SharedPasswordAuthenticator.user_password = password
    # A student's folder is called after the name, so a name may not have all characters.
    config.Authenticator.update(allow_all=True, username_pattern=r"\w[\w.-]*")
    config.ConfigurableHTTPProxy.update(
        # By default this proxy ends a request after 20 s, and so the one by which the page learns
        # that a server is ready: where a server took longer, the page waited for ever.
        command=[str(BIN / "configurable-http-proxy"), "--proxy-timeout=0"],
        log_level="error",
        api_url=f"http://127.0.0.1:{free_port()}",
    )
    config.SimpleLocalProcessSpawner.home_dir_template = str(folder / "homes" / "{username}")
    server = [str(BIN / "jupyterhub-singleuser"), "--log-level=WARN"]
    if os.getuid() == 0:  # otherwise Jupyter refuses to run as root
        server.append("--allow-root")
    # The hub looks every 3 s whether a server has ended; by default it looks every 30 s.
    config.Spawner.update(cmd=server, poll_interval=3)
    return config


def free_port(asked: str = "0") -> int:
    """Return the port that was asked for, or any free port for "0".

    ArgumentTypeError, whose message argparse shows, if that port is taken, or there is none.
    """
    with socket.socket() as free:
        # A port whose last connection has just ended counts as free, too.
        free.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            free.bind(("127.0.0.1", int(asked)))
        except (OSError, ValueError, OverflowError) as error:
            why = getattr(error, "strerror", None)  # only an OSError has one
            if not why:
                why = "there is no such port"
            raise argparse.ArgumentTypeError(
                f"{asked}: {why}. Take another: make hub ARGS=--port=8001"
            ) from error
        return free.getsockname()[1]


def long_enough(password: str) -> str:
    """Return the password itself; ArgumentTypeError if JupyterHub would refuse it."""
    if len(password) < 8:  # JupyterHub's own bound
        raise argparse.ArgumentTypeError(
            "JupyterHub wants 8 characters or more. Leave it out, and one is drawn."
        )
    return password


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="make hub", description=HELP)
    # A default that is a text goes through `free_port`, too.
    parser.add_argument("--port", type=free_port, default="8000")
    parser.add_argument("--password", type=long_enough, default=secrets.token_urlsafe(9))
    parser.add_argument("--instructor", default="", help="who may let the room guess")
    asked = parser.parse_args()
    main(asked.port, asked.password, asked.instructor)
