"""A notebook that is opened again shows pictures of labs whose kernel is gone or was restarted.

Without this, JupyterLab shows “Error displaying widget: model not found” in their place.
"""

from jupyter_core.utils import ensure_async
from jupyter_server.serverapp import ServerApp

from course_utils.stage.notebook.files import Notebook
from course_utils.stage.workspace.outputs import without_views


def show_pictures_of_gone_labs(server: ServerApp) -> None:
    """Change what the server answers when a page asks for a notebook. The file stays as it is."""
    contents = server.contents_manager
    kernels = server.kernel_manager
    get = contents.get
    restart_kernel = kernels.restart_kernel
    list_sessions = server.session_manager.list_sessions
    restarted = set()  # the ids of kernels, which a restart keeps

    async def noting_restart(kernel_id: str, *arguments: object, **options: object) -> None:
        restarted.add(kernel_id)
        await ensure_async(restart_kernel(kernel_id, *arguments, **options))

    async def has_its_labs(path: str) -> bool:
        for session in await ensure_async(list_sessions()):
            if session["path"] == path.strip("/") and session["kernel"]["id"] not in restarted:
                return True
        return False

    async def get_with_pictures(path: str, *arguments: object, **options: object) -> Notebook:
        model = await ensure_async(get(path, *arguments, **options))
        if model["type"] == "notebook" and model["content"] and not await has_its_labs(path):
            model["content"] = without_views(model["content"])
        return model

    contents.get = get_with_pictures
    kernels.restart_kernel = noting_restart
