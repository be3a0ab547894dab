"""`make lab`: bring the reader's own notebooks up to date, then open JupyterLab at the contents page."""

import sys
from pathlib import Path

from course_utils.desk import copies


def main(options: list[str]) -> None:
    """Start JupyterLab over the course's folder; the options are its own."""
    # Both are needed to start it anyway, and only here.
    from jupyter_server.serverapp import list_running_servers
    from jupyterlab.labapp import LabApp

    folders = [Path(server["root_dir"]).resolve() for server in list_running_servers()]
    mine = copies.MINE.resolve()
    in_use = any(folder in (mine, *mine.parents) for folder in folders)
    try:
        for sentence in copies.bring_up_to_date(in_use=in_use):
            print(sentence)
    except ValueError as error:
        print(error, file=sys.stderr)
    LabApp.launch_instance(
        [
            f"--ServerApp.root_dir={copies.ROOT}",
            "--ServerApp.jpserver_extensions=course_utils.desk.contents=True",
            "--LabApp.default_url=/contents",
            *options,
        ]
    )


if __name__ == "__main__":
    main(sys.argv[1:])
