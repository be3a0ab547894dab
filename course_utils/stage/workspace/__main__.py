"""`make lab`: JupyterLab over the course's folder, open at the contents page.

Options on the command line are passed on to JupyterLab.
"""

import sys

from jupyterlab.labapp import LabApp

from course_utils.stage.translations import language
from course_utils.stage.workspace import copies


def main(options: list[str]) -> None:
    """Start JupyterLab with the workspace as its extension, which updates the reader's copies."""
    try:
        language.chosen()
    except ValueError as error:  # LANG names a language that the course does not have
        sys.exit(f"{error} For English: make lab LANG=en")
    ours = [
        f"--ServerApp.root_dir={copies.MINE.parent}",
        "--ServerApp.jpserver_extensions=course_utils.stage.workspace=True",
        "--LabApp.default_url=/contents",
        "--LabApp.custom_css=True",  # loads custom/custom.css, which the extension serves
    ]
    LabApp.launch_instance([*ours, *options])


if __name__ == "__main__":
    main(sys.argv[1:])
