"""The extension of Jupyter's server, which updates the copies and serves the contents page."""

import fcntl
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TextIO

from jupyter_server.serverapp import ServerApp
from jupyter_server.utils import url_path_join

from course_utils.core.record import HIDDEN
from course_utils.core.say.language import speak
from course_utils.stage.translations import language
from course_utils.stage.translations.spoken import sentences_in
from course_utils.stage.workspace import copies
from course_utils.stage.workspace.contents import ADDRESS, Contents, get_ready
from course_utils.stage.workspace.own_terms import Judge
from course_utils.stage.workspace.place import place
from course_utils.stage.workspace.place_in_lab import open_at_the_named_cell
from course_utils.stage.workspace.recall_pages import NAPKIN, RECALL, Napkin, Recall
from course_utils.stage.workspace.reopened import show_pictures_of_gone_labs
from course_utils.stage.workspace.websocket import AtOnce

# A file in the copies' `.course`. Each server over these copies holds a lock on it, so that another
# server, when it starts, sees that a notebook may be open.
LOCK = "open"


def _load_jupyter_server_extension(server: ServerApp) -> None:
    """Set up the server. Jupyter calls this function when the server starts."""
    mine = Path(server.root_dir) / copies.MINE.name
    settings = server.web_app.settings
    spoken = language.chosen()
    address = url_path_join(settings["base_url"], ADDRESS)
    # What is said of the copies, and what the pages say besides their templates.
    speak(sentences_in(spoken))
    news = []
    try:
        news.extend(_bring_up_to_date(mine, settings, address, spoken))
    except OSError as error:
        news.append(
            f"Your own copies of the notebooks cannot be made in {mine.name}: {error.strerror}. "
            f"{place().remedy}"
        )
    change = language.how_to_change(spoken)
    if change:
        news.append(change)
    language.pass_on(spoken)  # not before: a language that was asked for needs no word on it
    for sentence in news:
        server.log.warning(sentence)
    judge = Judge(mine)
    get_ready(mine, judge, spoken)
    # What `Contents.initialize` gets.
    given = {"mine": mine, "news": news, "judge": judge, "spoken": spoken}
    pages = [(address, Contents, given)]
    for path, page in ((RECALL, Recall), (NAPKIN, Napkin)):
        of_recall = {"mine": mine, "spoken": spoken}
        pages.append((url_path_join(settings["base_url"], path), page, of_recall))
    server.web_app.add_handlers(".*$", pages)  # ".*$": for any host
    settings["kernel_websocket_connection_class"] = AtOnce
    # Behind the folder of the reader's own custom.css, so that theirs is found first.
    settings["static_custom_path"].append(str(Path(__file__).with_name("custom")))
    open_at_the_named_cell(server)
    show_pictures_of_gone_labs(server)


def _bring_up_to_date(mine: Path, settings: dict, address: str, spoken: str) -> Iterator[str]:
    """Bring the copies up to date, and hold their lock as long as the server runs.

    Yields the sentences on what was done.
    """
    (mine / HIDDEN).mkdir(parents=True, exist_ok=True)
    lock = (mine / HIDDEN / LOCK).open("w+")
    settings["course_lock"] = lock  # so that the file stays open, and the lock with it
    is_alone = _try_to_hold_alone(lock)
    yield from copies.bring_up_to_date(
        copies.COURSE, mine, in_use=not is_alone, contents=address, language=spoken
    )
    with suppress(OSError):  # of a file system without locks
        # From now on several servers may hold the lock. This waits only while another server, which
        # has just started, holds it alone to bring the copies up to date.
        fcntl.flock(lock, fcntl.LOCK_SH)


def _try_to_hold_alone(lock: TextIO) -> bool:
    """Take the lock for this server alone; return False if another server uses the copies.

    A file with a server's process id would not do in place of the lock: in a container that starts
    anew, the id of a killed server soon belongs to another process.
    """
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks: nobody else can be seen, so nobody is assumed
        return True
    return True
