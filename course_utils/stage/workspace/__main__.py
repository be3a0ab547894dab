"""`make lab`: JupyterLab over the course's folder, open at the contents page; the options are JupyterLab's."""

import sys

from jupyterlab.labapp import LabApp

from course_utils.stage.workspace import copies


def main(options: list[str]) -> None:
    """Start JupyterLab with the workspace as its extension, which brings the reader's copies up to date."""
    extension = [
        "--ServerApp.jpserver_extensions=course_utils.stage.workspace=True",
        "--LabApp.default_url=/contents",
    ]
    style = "--LabApp.custom_css=True"
    LabApp.launch_instance(
        [f"--ServerApp.root_dir={copies.MINE.parent}", *extension, style, *options]
    )


if __name__ == "__main__":
    main(sys.argv[1:])
