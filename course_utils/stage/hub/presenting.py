"""On a hub, an instructor's server that presents: `make present`, with the hub's log-in and wall.

For a named server called 04, the hub runs `python -m course_utils.stage.hub.presenting 04`. It
presents a copy of notebook 4 with settings of its own, so the instructor's JupyterLab stays as it
is.
"""

import os
import sys

from course_utils.stage.present.server import present
from course_utils.stage.workspace.copies import named

# The beginnings of two options of JupyterLab that `present` passes.
OPENS = "--LabApp.default_url="
LISTENS = "--ip="


def serve(options: list[str]) -> None:
    """Start JupyterLab behind the hub's log-in, open at the notebook.

    `options` are those of `make present`. Two of them are left out: the hub sets where the server
    listens, and an environment variable sets what opens first.
    """
    # Only now, because this import reads what `present` has put into the environment.
    from jupyterhub.singleuser import main

    # `present` always passes this option. Its value goes into the variable that the hub's server
    # reads in its place.
    opens = next(option for option in options if option.startswith(OPENS))
    os.environ["JUPYTERHUB_DEFAULT_URL"] = opens.removeprefix(OPENS)
    rest = [option for option in options if option != opens]
    sys.argv[1:] = [option for option in rest if not option.startswith(LISTENS)]
    main()


if __name__ == "__main__":
    # Behind the notebook's number stand the options of the hub's command, such as --log-level=WARN.
    present(named(sys.argv[1]), sys.argv[2:], serve=serve)
