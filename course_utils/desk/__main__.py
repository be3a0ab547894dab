"""`make lab`: bring the reader's own notebooks up to date, then open JupyterLab at the contents page."""

import sys
from pathlib import Path

from jupyter_server.serverapp import list_running_servers
from jupyterlab.labapp import LabApp

from course_utils.desk import contents, copies, websocket


def main(options: list[str]) -> None:
    """Start JupyterLab over the course's folder; the options are its own."""
    folders = [Path(server["root_dir"]).resolve() for server in list_running_servers()]
    mine = copies.MINE.resolve()
    in_use = any(folder in (mine, *mine.parents) for folder in folders)
    try:
        contents.NEWS.extend(copies.bring_up_to_date(in_use=in_use))
    except ValueError as error:
        contents.NEWS.append(str(error))
    print(*contents.NEWS, sep="\n", end="\n" if contents.NEWS else "")
    page = [
        "--ServerApp.jpserver_extensions=course_utils.desk.contents=True",
        "--LabApp.default_url=/contents",
    ]
    LabApp.launch_instance([f"--ServerApp.root_dir={copies.ROOT}", *page, websocket.OPTION, *options])


if __name__ == "__main__":
    sys.stdout.reconfigure(errors="replace")  # a reader's own heading may hold what the system cannot say
    main(sys.argv[1:])
