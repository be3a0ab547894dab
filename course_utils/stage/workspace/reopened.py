"""A notebook that is opened again shows its labs as pictures, where the kernel that they lived in is gone or restarted."""

from jupyter_core.utils import ensure_async
from jupyter_server.serverapp import ServerApp

from course_utils.stage.notebook.files import Notebook
from course_utils.stage.workspace.outputs import without_views


def show_pictures_of_gone_labs(server: ServerApp) -> None:
    """Change what the server hands to pages: else JupyterLab says “Error displaying widget: model not found”."""
    read, restart, restarted = (
        server.contents_manager.get,
        server.kernel_manager.restart_kernel,
        set(),
    )
    all_sessions = server.session_manager.list_sessions

    async def noted(kernel_id: str, *arguments: object, **options: object) -> None:
        restarted.add(kernel_id)
        await ensure_async(restart(kernel_id, *arguments, **options))

    async def opened(path: str, *arguments: object, **options: object) -> Notebook:
        model = await ensure_async(read(path, *arguments, **options))
        if model["type"] == "notebook" and model["content"]:
            sessions = await ensure_async(all_sessions())
            alive = {one["path"] for one in sessions if one["kernel"]["id"] not in restarted}
            if path.strip("/") not in alive:
                model["content"] = without_views(model["content"])
        return model

    server.contents_manager.get, server.kernel_manager.restart_kernel = opened, noted
