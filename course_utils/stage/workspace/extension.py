"""What a Jupyter server loads: the reader's copies under its root, up to date, and the contents page over them."""

import fcntl
from contextlib import suppress
from pathlib import Path
from typing import TextIO

from jupyter_server.serverapp import ServerApp
from jupyter_server.utils import url_path_join

from course_utils.core.record import HIDDEN
from course_utils.stage.workspace import copies
from course_utils.stage.workspace.contents import ADDRESS, Contents
from course_utils.stage.workspace.place import place
from course_utils.stage.workspace.place_in_lab import open_at_the_named_cell
from course_utils.stage.workspace.reopened import show_pictures_of_gone_labs
from course_utils.stage.workspace.websocket import AtOnce

LOCK = "open"  # a file in the copies' `.course`


def _load_jupyter_server_extension(server: ServerApp) -> None:
    mine = Path(server.root_dir) / copies.MINE.name
    settings, news = server.web_app.settings, []
    address = url_path_join(settings["base_url"], ADDRESS)
    try:
        (mine / HIDDEN).mkdir(parents=True, exist_ok=True)
        # Open as long as the server lives.
        lock = settings["course_lock"] = (mine / HIDDEN / LOCK).open("w+")
        news += copies.bring_up_to_date(
            copies.COURSE, mine, in_use=not _is_alone(lock), contents=address
        )
        with suppress(OSError):
            fcntl.flock(
                lock, fcntl.LOCK_SH
            )  # at once, unless another is just bringing them up to date
    except OSError as error:
        news.append(
            f"Your own copies of the notebooks cannot be made in {mine.name}: {error.strerror}. {place().remedy}"
        )
    for each in news:
        server.log.warning(each)
    server.web_app.add_handlers(".*$", [(address, Contents, {"mine": mine, "news": news})])
    settings["kernel_websocket_connection_class"] = AtOnce
    settings["static_custom_path"].append(
        str(Path(__file__).with_name("custom"))
    )  # after the reader's own
    open_at_the_named_cell(server)
    show_pictures_of_gone_labs(server)


def _is_alone(lock: TextIO) -> bool:
    """Whether no other server uses the copies.

    Each holds the lock as long as it lives. Its process id would not do: in a container that starts anew, the id
    of a killed server soon belongs to another process.
    """
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks
        return True
    return True
