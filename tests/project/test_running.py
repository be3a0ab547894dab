"""How notebooks are run: compared with what is stored, stored anew, and in forked kernels."""

import errno
import os
import socket
import sys
import tempfile
from functools import partial
from pathlib import Path
from unittest import mock

import nbformat
import psutil
import pytest
from jupyter_client.provisioning import KernelProvisionerFactory
from nbclient.exceptions import CellExecutionError
from nbval.plugin import NbCellError

from course_utils.subjects.child_processes import process
from tests import NOTEBOOKS
from tests.helpers import warm
from tests.helpers.browser import notebook_of
from tests.helpers.kernels import kernel_in, printed
from tests.helpers.waiting import children, has_ended, wait_until
from tests.tools import outputs


def compared(path: Path, session: pytest.Session) -> str:
    """What strict nbval says of the cells, with this session's options.

    A cell whose output is as stored is a dot, any other one an F.
    """
    (file,) = session.gethookproxy(path).pytest_collect_file(file_path=path, parent=session)
    cells = list(file.collect())
    said = ""
    file.setup()
    for cell in cells:
        try:
            cell.runtest()
            said += "."
        except NbCellError:
            said += "F"
    file.teardown()
    return said


def test_stored_outputs_fail_when_one_number_is_altered_and_not_for_an_address(tmp_path, request):
    """They are compared as `make test` does it, and stored as `make outputs` does it."""
    sources = ["my_guess = 128  # the reader's own answer\nmy_guess", "object()", "3 * 5"]
    path = notebook_of(tmp_path / "counting.ipynb", sources)
    assert outputs.store(path)
    stored = nbformat.read(path, as_version=4)
    assert [cell.source for cell in stored.cells] == sources
    guess, _, product = (cell.outputs[0].data["text/plain"] for cell in stored.cells)
    assert (guess, product) == ("128", "15")
    assert compared(path, request.session) == "..."
    path.write_text(path.read_text().replace('"15"', '"16"'))
    assert compared(path, request.session) == "..F"


def test_storing_twice_changes_nothing_and_a_notebook_that_fails_is_left_as_it_was(tmp_path):
    path = notebook_of(tmp_path / "counting.ipynb", ["1 + 1"])
    assert outputs.store(path)
    assert not outputs.store(path)
    path.write_text(path.read_text().replace("1 + 1", "1 / 0"))
    before = path.read_bytes()
    with pytest.raises(CellExecutionError):
        outputs.store(path)
    assert path.read_bytes() == before


def test_where_nothing_can_be_written_storing_says_so_in_a_sentence(monkeypatch, capsys):
    no_room = OSError(errno.ENOSPC, "No space left on device")
    monkeypatch.setattr(os, "fsync", mock.Mock(side_effect=no_room))
    monkeypatch.setattr(outputs, "run", lambda notebook: notebook.cells.clear())
    name = NOTEBOOKS[0].name
    assert outputs.main([name]) == 1
    assert f"{name} is left as it was: No space left on device" in capsys.readouterr().out


# Kernels that are forked: each is as fresh as one that is started.

FRESH = """
import os, sys
course = sorted(name for name in sys.modules if name.startswith("course_utils"))
print("torch" in sys.modules, course, os.getcwd())
mine = 1
"""
ENDS_WITH_ITS_SOURCE = """
from ipykernel.kernelapp import IPKernelApp
print(IPKernelApp.instance().parent_handle == os.getppid())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="kernels are forked on Linux only")
def test_a_forked_kernel_knows_torch_little_of_the_course_and_nothing_of_its_neighbour(tmp_path):
    with socket.socket(socket.AF_UNIX) as silent:  # a caller that says nothing disturbs nobody
        silent.connect(os.environ[warm.WHERE])
    with kernel_in(tmp_path) as (manager, client), kernel_in(tmp_path) as (neighbour, its_client):
        course = ["course_utils", "course_utils.stage", "course_utils.stage.kernel"]
        assert printed(client, FRESH) == f"True {course} {tmp_path}"
        assert printed(its_client, "print(mine)") == "name 'mine' is not defined"

        ask_for_pid = "import os; print(os.getpid())"
        assert int(printed(client, ask_for_pid)) == manager.provisioner.pid
        assert int(printed(its_client, ask_for_pid)) == neighbour.provisioner.pid
        assert manager.provisioner.pid != neighbour.provisioner.pid
        assert printed(client, ENDS_WITH_ITS_SOURCE) == "True"

        # What the kernel starts can be waited for, and ends with the kernel.
        run_false = "import subprocess; print(subprocess.run(['false']).returncode)"
        assert printed(client, run_false) == "1"
        start_sleep = "child = subprocess.Popen(['sleep', '600']); print(child.pid)"
        child = int(printed(client, start_sleep))
        assert psutil.pid_exists(child)
        manager.shutdown_kernel(now=True)
        wait_until(lambda: has_ended(child), "what it started has ended")


def test_a_kernel_shows_a_figure_as_a_picture(monkeypatch, tmp_path):
    monkeypatch.delenv("MPLBACKEND", raising=False)
    shown = []
    with kernel_in(tmp_path) as (_, client):
        client.execute_interactive(
            "import matplotlib.pyplot as plt; plt.plot([1]);",
            output_hook=lambda message: shown.extend(message["content"].get("data", ())),
        )
    assert "image/png" in shown


def test_a_kernel_that_has_ended_by_itself_can_be_shut_down_once_more(tmp_path):
    with kernel_in(tmp_path) as (manager, client):
        client.execute("import os; os._exit(1)")
        wait_until(lambda: not manager.is_alive(), "it has ended")


def test_where_no_socket_can_be_opened_kernels_start_as_usual(monkeypatch, tmp_path):
    too_long = tmp_path / ("x" * 100)
    too_long.mkdir()
    factory = KernelProvisionerFactory.instance()
    monkeypatch.setattr(factory, "default_provisioner_name", "local-provisioner")
    monkeypatch.setattr(tempfile, "tempdir", str(too_long))
    monkeypatch.setenv(warm.WHERE, "")
    warm.pytest_configure()
    assert factory.default_provisioner_name == "local-provisioner"
    assert os.environ[warm.WHERE] == ""


def test_a_child_is_heard_though_nothing_follows_and_ends_after_its_time_though_its_parent_hangs():
    heard = []
    before = children()
    steps = process.steps_of("tests.helpers.child_jobs.much_at_once", {"lines": 500}, at_most_s=3)
    next(steps)
    (child,) = (process for process in children() if process not in before)
    while len(heard) < 500:
        step = next(steps)
        if step.numbers:
            heard.append(step.numbers["number"])
    assert heard == list(range(500))
    wait_until(partial(has_ended, child.pid), "it has ended")  # though nobody reads any more
    steps.close()


def test_work_that_is_killed_has_ended_though_what_it_started_holds_its_pipe():
    heard = []
    with pytest.raises(RuntimeError, match=r"^The process ended early\. Its status is -9\.$"):
        heard.extend(process.steps_of("tests.helpers.child_jobs.orphaned", {}, at_most_s=60))
    (child,) = (step.numbers["child"] for step in heard if step.numbers)
    wait_until(partial(has_ended, child), "what it started has ended")
