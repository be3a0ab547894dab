"""Which worker runs which test. The process that deals tests out imports this file and no more.

Processes that run tests also load the plugins `reproducible` and `chromium` of tests/helpers, whose imports take two seconds.
"""

import os
import platform
import re
from collections.abc import Iterator

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadFileScheduling

# One JupyterLab and one kernel with all labs for all tests that move one, in one worker: to start them takes long.
# What needs a browser comes first, as it takes longest.
ANOTHER_PAGE = re.compile(
    r"tests/stage/test_(browser_(workspace|hub|keys|pages|slides)|present)\.py"
)
BROWSER = re.compile(r"tests/(\w+/)*test_(browser|present)\w*\.py")


collect_ignore_glob = ["tools/colab_modules/*"]  # for Colab's copies, in a Python of their own


def _needs_browser(nodeid: str) -> bool:
    return bool(BROWSER.match(nodeid))


class LabsInOneWorker(LoadFileScheduling):
    """A file's tests go to one worker, a notebook's too, which is one kernel; and so do all that move the labs' page."""

    def _split_scope(self, nodeid: str) -> str:
        on_labs_page = _needs_browser(nodeid) and not ANOTHER_PAGE.match(nodeid)
        return "labs' page" if on_labs_page else super()._split_scope(nodeid)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LabsInOneWorker | None:
    """Begun by xdist, in place of its own that keeps files together."""
    return LabsInOneWorker(config, log) if config.getoption("dist") == "loadfile" else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Browser first; else in the order of the files."""
    items.sort(key=lambda item: not _needs_browser(item.nodeid))


@pytest.hookimpl(tryfirst=True)  # before Hypothesis loads a profile that somebody asks for
def pytest_configure(config: pytest.Config) -> None:
    deals_out = config.getoption("dist") != "no" and not config.getoption("collectonly")
    if not deals_out or config.getoption("--hypothesis-profile"):
        for name in ("reproducible", "chromium"):
            config.pluginmanager.import_plugin(f"tests.helpers.{name}")


@pytest.hookimpl(wrapper=True, tryfirst=True)  # nothing but the count comes after these lines
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> Iterator[None]:
    """Where something failed: what those who can mend it have to know of this machine."""
    yield
    if terminalreporter.stats.keys() & {"failed", "error"}:
        import torch  # only now, see above

        units, seed = (
            torch.backends.cpu.get_cpu_capability(),
            os.environ.get("PYTHONHASHSEED", "random"),
        )
        terminalreporter.section("what to send us")
        terminalreporter.write_line(
            f"Python {platform.python_version()}, torch {torch.__version__} with {units}"
        )
        terminalreporter.write_line(f"{platform.platform()}, hash seed {seed}")
        terminalreporter.write_line(
            "If you changed nothing, this is ours to mend: please open an issue of this project with these lines "
            "and what stands above them."
        )
