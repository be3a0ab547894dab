"""A notebook that is opened again shows pictures of the labs whose kernel no longer has them.

A kernel that has ended or was restarted has no labs. In their place, JupyterLab would show
“Error displaying widget: model not found”.
"""

from jupyter_core.utils import ensure_async
from jupyter_server.serverapp import ServerApp

from course_utils.stage.notebook.files import Notebook
from course_utils.stage.workspace.outputs import without_views


def show_pictures_of_gone_labs(server: ServerApp) -> None:
    """Change the notebooks that the server sends to pages. Their files stay as they are."""
    contents = server.contents_manager
    kernels = server.kernel_manager
    get = contents.get
    restart_kernel = kernels.restart_kernel
    list_sessions = server.session_manager.list_sessions
    restarted = set()  # the ids of restarted kernels, since a restart does not change an id

    # `noting_restart` and `get_with_pictures` replace the server's own methods, and call them.

    async def noting_restart(kernel_id: str, *arguments: object, **options: object) -> None:
        """Restart the kernel, and note that it has lost its labs."""
        restarted.add(kernel_id)
        await ensure_async(restart_kernel(kernel_id, *arguments, **options))

    async def has_its_labs(path: str) -> bool:
        """Whether the notebook's kernel runs and was never restarted.

        Labs that were made after a restart are shown as pictures, too, if the page is opened again.
        """
        # A session has the path of an open notebook, and the kernel that runs for it.
        for session in await ensure_async(list_sessions()):
            # The path in a page's request may have a slash in front.
            if session["path"] == path.strip("/") and session["kernel"]["id"] not in restarted:
                return True
        return False

    async def get_with_pictures(path: str, *arguments: object, **options: object) -> Notebook:
        """Return what `get` returns; in a notebook without its labs, pictures in their place."""
        model = await ensure_async(get(path, *arguments, **options))
        # A page that asks only for a file's name and date gets no content.
        if model["type"] == "notebook" and model["content"] and not await has_its_labs(path):
            model["content"] = without_views(model["content"])
        return model

    contents.get = get_with_pictures
    kernels.restart_kernel = noting_restart
