"""Which worker runs which test.

The process that deals the tests out to workers imports this file and no other. Only processes that
run tests load the plugins `reproducible` and `chromium` of tests/helpers, because to import these
takes two seconds.
"""

import gc
import os
import platform
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadFileScheduling
from xdist.workermanage import WorkerController

# All tests that move a lab share one JupyterLab and one kernel, and therefore one worker, because
# starting these takes long. The files in ANOTHER_PAGE open pages of their own.
ANOTHER_PAGE = re.compile(
    r"tests/stage/test_(browser_(workspace|hub|keys|pages|recall|slides)|present)\.py"
)
BROWSER = re.compile(r"tests/(\w+/)*test_(browser|present)\w*\.py")
LABS_PAGE = "labs' page"  # the group of tests that share it
BROWSERS_AT_ONCE = 2  # so many workers run tests in a browser from the beginning

# These modules stand for Colab's own, and only Pythons that run the copies for Colab import them.
collect_ignore_glob = ["tools/colab_modules/*"]


# The course is shown in English, whatever the system's language is.
os.environ["COURSE_LANG"] = "en"


@pytest.fixture(scope="session", autouse=True)
def jupyters_data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for the signatures of trusted copies, in place of that of whoever runs the tests."""
    folder = tmp_path_factory.mktemp("jupyter")
    os.environ["JUPYTER_DATA_DIR"] = str(folder)
    return folder


def _needs_browser(nodeid: str) -> bool:
    return bool(BROWSER.match(nodeid))


def _is_in_a_browser(group: str) -> bool:
    """Whether the tests of that group, which one worker runs, need a browser."""
    return group == LABS_PAGE or _needs_browser(group)


class LabsInOneWorker(LoadFileScheduling):
    """Gives each file's tests to one worker, and all tests on the labs' page to one worker.

    A notebook's cells are the tests of one file, so one worker runs them in one kernel.

    Two workers have a browser. These wait half of their time: for pages, servers and kernels. So a
    third worker begins with what needs no browser, and two cores always have something to do.
    """

    def _assign_work_unit(self, node: WorkerController) -> None:
        has_browser = node in list(self.assigned_work)[:BROWSERS_AT_ONCE]
        without = next((group for group in self.workqueue if not _is_in_a_browser(group)), None)
        if not has_browser and without:
            self.workqueue.move_to_end(without, last=False)  # what is first is assigned
        super()._assign_work_unit(node)

    def _split_scope(self, nodeid: str) -> str:
        if _needs_browser(nodeid) and not ANOTHER_PAGE.match(nodeid):
            return LABS_PAGE
        return super()._split_scope(nodeid)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LabsInOneWorker | None:
    """Return our scheduler where xdist would take its own for `--dist=loadfile`."""
    if config.getoption("dist") == "loadfile":
        return LabsInOneWorker(config, log)
    return None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the tests that need a browser first, because they take longest."""
    items.sort(key=lambda item: not _needs_browser(item.nodeid))


@pytest.hookimpl(tryfirst=True)  # before Hypothesis loads the profile that a command names
def pytest_configure(config: pytest.Config) -> None:
    deals_out = config.getoption("dist") != "no" and not config.getoption("collectonly")
    if not deals_out or config.getoption("--hypothesis-profile"):
        gc.disable()  # until the tests are collected
        for name in ("reproducible", "chromium"):
            config.pluginmanager.import_plugin(f"tests.helpers.{name}")


def pytest_collection_finish() -> None:
    """Let the garbage collector leave alone what the collected tests have imported.

    That stays until the end, and to look through it again and again takes almost half the time
    of the collection.
    """
    gc.freeze()
    gc.enable()


@pytest.hookimpl(wrapper=True, tryfirst=True)  # so that only the counts come after these lines
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> Iterator[None]:
    """After a failure, say what those who can mend it have to know of this machine."""
    yield
    if not terminalreporter.stats.keys() & {"failed", "error"}:
        return
    import torch  # only now: the process that deals tests out would need a second for it

    cpu = torch.backends.cpu.get_cpu_capability()
    seed = os.environ.get("PYTHONHASHSEED", "random")
    terminalreporter.section("what to send us")
    terminalreporter.write_line(
        f"Python {platform.python_version()}, torch {torch.__version__} with {cpu}"
    )
    terminalreporter.write_line(f"{platform.platform()}, hash seed {seed}")
    terminalreporter.write_line(
        "If you changed nothing, this is ours to mend: please open an issue of this project "
        "with these lines and what stands above them."
    )
