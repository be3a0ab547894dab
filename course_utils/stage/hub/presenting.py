"""On a hub, an instructor's server that presents: `make present`, with the hub's log-in and wall.

The hub runs `python -m course_utils.stage.hub.presenting 04` for a named server called 04. What
runs is a copy with settings of its own, so the instructor's own JupyterLab stays as it is.
"""

import os
import sys

from course_utils.stage.present.server import present
from course_utils.stage.workspace.copies import named

OPENS = "--LabApp.default_url="
LISTENS = "--ip="


def serve(options: list[str]) -> None:
    """Start JupyterLab behind the hub's log-in, open at the notebook.

    It gets two of the options in other ways: the hub tells it where to listen, and the environment
    what opens first.
    """
    from jupyterhub.singleuser import main  # reads what `present` has put into the environment

    opens = next(option for option in options if option.startswith(OPENS))
    os.environ["JUPYTERHUB_DEFAULT_URL"] = opens.removeprefix(OPENS)
    rest = [option for option in options if option != opens]
    sys.argv[1:] = [option for option in rest if not option.startswith(LISTENS)]
    main()


if __name__ == "__main__":
    present(named(sys.argv[1]), sys.argv[2:], serve=serve)
