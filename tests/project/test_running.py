"""How notebooks are run: compared, stored, timed, and in kernels that are forked."""

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
    """What strict nbval says of its cells, with the options of this session: a dot for each that is as stored."""
    (file,) = session.gethookproxy(path).pytest_collect_file(file_path=path, parent=session)
    cells, said = list(file.collect()), ""
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
    """As `make test` compares them, and as `make outputs` has stored them."""
    sources = ["my_guess = 128  # the reader's own answer\nmy_guess", "object()", "3 * 5"]
    path = notebook_of(tmp_path / "counting.ipynb", sources)
    assert outputs.store(path)
    stored = nbformat.read(path, as_version=4)
    assert [cell.source for cell in stored.cells] == sources
    assert [cell.outputs[0].data["text/plain"] for cell in stored.cells[::2]] == ["128", "15"]
    assert compared(path, request.session) == "..."
    path.write_text(path.read_text().replace('"15"', '"16"'))
    assert compared(path, request.session) == "..F"


def test_storing_twice_changes_nothing_and_a_notebook_that_fails_is_left_as_it_was(tmp_path):
    path = notebook_of(tmp_path / "counting.ipynb", ["1 + 1"])
    assert [outputs.store(path), outputs.store(path)] == [True, False]
    path.write_text(path.read_text().replace("1 + 1", "1 / 0"))
    before = path.read_bytes()
    with pytest.raises(CellExecutionError):
        outputs.store(path)
    assert path.read_bytes() == before


def test_where_nothing_can_be_written_storing_says_so_in_a_sentence(monkeypatch, capsys):
    no_room = OSError(errno.ENOSPC, "No space left on device")
    monkeypatch.setattr(os, "fsync", mock.Mock(side_effect=no_room))
    monkeypatch.setattr(outputs, "run", lambda notebook: notebook.cells.clear())
    assert outputs.main([NOTEBOOKS[0].name]) == 1
    assert (
        f"{NOTEBOOKS[0].name} is left as it was: No space left on device" in capsys.readouterr().out
    )


# Kernels that are forked: each as fresh as one that is started.


@pytest.mark.skipif(sys.platform != "linux", reason="kernels are forked on Linux only")
def test_a_forked_kernel_knows_torch_little_of_the_course_and_nothing_of_its_neighbour(tmp_path):
    with socket.socket(socket.AF_UNIX) as silent:  # who comes and says nothing disturbs nobody
        silent.connect(os.environ[warm.WHERE])
    with kernel_in(tmp_path) as (manager, one), kernel_in(tmp_path) as (neighbour, other):
        modules = "'torch' in sys.modules, sorted(name for name in sys.modules if name.startswith('course_utils'))"
        begun = printed(one, f"import os, sys; print({modules}, os.getcwd()); mine = 1")
        assert (
            begun
            == f"True ['course_utils', 'course_utils.stage', 'course_utils.stage.kernel'] {tmp_path}"
        )
        assert printed(other, "print(mine)") == "name 'mine' is not defined"
        pids = [int(printed(client, "import os; print(os.getpid())")) for client in (one, other)]
        assert pids == [each.provisioner.pid for each in (manager, neighbour)]
        assert pids[0] != pids[1]
        watched = "from ipykernel.kernelapp import IPKernelApp; print(IPKernelApp.instance().parent_handle == os.getppid())"
        assert printed(one, watched) == "True"  # with which it ends
        # What it starts is waited for, and ends with it.
        assert printed(one, "import subprocess; print(subprocess.run(['false']).returncode)") == "1"
        child = int(printed(one, "child = subprocess.Popen(['sleep', '600']); print(child.pid)"))
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
    (too_long := tmp_path / ("x" * 100)).mkdir()
    factory = KernelProvisionerFactory.instance()
    monkeypatch.setattr(factory, "default_provisioner_name", "local-provisioner")
    monkeypatch.setattr(tempfile, "tempdir", str(too_long))
    monkeypatch.setenv(warm.WHERE, "")
    warm.pytest_configure()
    assert (factory.default_provisioner_name, os.environ[warm.WHERE]) == ("local-provisioner", "")


def test_a_child_is_heard_though_nothing_follows_and_ends_after_its_time_though_its_parent_hangs():
    heard, before = [], children()
    steps = process.steps_of("tests.helpers.child_jobs.much_at_once", {"lines": 500}, at_most_s=1)
    next(steps)
    (child,) = (one for one in children() if one not in before)
    while len(heard) < 500:
        step = next(steps)
        heard += [step.numbers["number"]] if step.numbers else []
    assert heard == list(range(500))
    wait_until(partial(has_ended, child.pid), "it has ended")  # and nobody reads any more
    steps.close()


def test_work_that_is_killed_has_ended_though_what_it_started_holds_its_pipe():
    heard = []
    with pytest.raises(RuntimeError, match=r"^The process ended early\. Its status is -9\.$"):
        heard.extend(process.steps_of("tests.helpers.child_jobs.orphaned", {}, at_most_s=60))
    (child,) = (step.numbers["child"] for step in heard if step.numbers)
    wait_until(partial(has_ended, child), "what it started has ended")
