"""What a notebook's kernel does beside running cells.

After a restart, a name that is gone gets a sentence, and a verdict is taken back when its answer
has changed.
"""

import nbformat
import pytest
from IPython.core.interactiveshell import InteractiveShell

from course_utils.stage import kernel
from tests.helpers.kernels import kernel_in

CELLS = (
    "import math\n\nfrom course_utils.chapters.flops import (\n    check,\n)",
    "def roof(intensity):\n    inner = 1\n    return inner",
    "one, two = 1, 2\nfor three in (3,):\n    pass",
    "= no Python",
)


@pytest.fixture(scope="module")
def said(tmp_path_factory):
    """A function that runs another cell in the kernel of this notebook; returns what it says."""
    folder = tmp_path_factory.mktemp("my notebooks")
    cells = [nbformat.v4.new_markdown_cell("text"), *map(nbformat.v4.new_code_cell, CELLS)]
    nbformat.write(nbformat.v4.new_notebook(cells=cells), folder / "04 flops.ipynb")
    with kernel_in(folder, JPY_SESSION_NAME=str(folder / "04 flops.ipynb")) as (_, client):

        def run(code):
            messages = []
            client.execute_interactive(code, timeout=60, output_hook=messages.append)
            contents = [message["content"] for message in messages]
            traceback = next(content["traceback"] for content in contents if "traceback" in content)
            return "\n".join(traceback)

        yield run


@pytest.mark.parametrize(
    ("code", "name", "begins"),
    [
        ("check.name_of_f32('fp64')", "check", "import math"),
        ("math.pi", "math", "import math"),
        ("1 + roof(3)", "roof", "def roof(intensity):"),
        ("two", "two", "one, two = 1, 2"),
        ("three", "three", "one, two = 1, 2"),
    ],
)
def test_a_name_that_another_cell_makes_gets_a_sentence_in_the_errors_place(
    said, code, name, begins
):
    words = said(code)
    sentence = f"The kernel does not know {name}. The cell that begins “{begins}” makes it"
    assert words.startswith(sentence)
    assert "Run All Above Selected Cell" in words
    assert "Traceback" not in words


def test_a_name_that_only_a_cell_below_makes_is_not_sought_above(monkeypatch):
    cells = [("first", "days(m)"), ("second", "m = Model(width=3)"), ("third", "m.width")]
    monkeypatch.setattr(kernel, "_code_of_this_notebook", lambda: cells)

    def words(cell):
        shell = InteractiveShell()
        shell.get_parent = lambda: {"metadata": {"cellId": cell}}
        return kernel._not_known(shell, "m")

    assert words("first") == (
        "The kernel does not know m. It is made only in a cell below this one, which begins “m = "
        "Model(width=3)”. If the letters themselves are meant, write them in quotes."
    )
    assert words("second") == ""  # it would lead to itself
    for cell in ("third", "another"):
        assert "Run All Above Selected Cell" in words(cell)


@pytest.mark.parametrize("code", ["cheque", "inner", "no", "1 / 0"])
def test_any_other_error_is_as_ever(said, code):
    words = said(code)
    assert "Traceback" in words
    assert "The kernel does not know" not in words


def test_a_verdict_is_taken_back_when_its_answer_changes_or_stops_with_an_error(tmp_path):
    cells = [
        "from course_utils.chapters.flops import check",
        "really = 'tf32'",
        "check.name_of_f32(really)",
        "really = 'fp32'  # another answer",
        "check.name_of_f32(really)",
        "really = = 3",
        "check.name_of_f32(really)",  # of the former answer, which nobody sees any more
        "really = 'tf32'",  # no verdict is left that could be taken back
        "check.name_of_f32(really)",
        "def my_days(flops, gpus, peak, share):\n    return flops / (gpus * peak * share) / 86_400",
        "days = check.days(my_days).kept",
        "3 == really, my_days(1, 2, 3, 4)",  # used, and not changed
        "def my_days(flops, gpus, peak, share)\n    return 3",
    ]
    said = []

    def hear(message):
        if message["msg_type"] in ("display_data", "update_display_data", "execute_result"):
            said.append((message["msg_type"], message["content"]["data"]["text/plain"]))

    with kernel_in(tmp_path) as (_, client):
        for cell in cells:
            client.execute_interactive(cell, timeout=60, output_hook=hear)
    kinds, words = zip(*said, strict=True)
    right, again, wrong, broken, _, still_broken, mended, days, _, last = words
    assert kinds == (
        "display_data",
        "update_display_data",
        "display_data",
        "update_display_data",
        "display_data",
        "update_display_data",
        "display_data",
        "display_data",
        "execute_result",
        "update_display_data",
    )
    assert right.startswith("Right.")
    assert wrong.startswith("Not yet.")
    assert days.startswith("Right.")
    assert again == "Not judged. The answer has changed: run this cell again."
    stopped = "Not judged. The cell of the answer stopped with an error."
    assert broken == f"{stopped} Mend it, and run both cells again."
    assert still_broken == broken
    assert mended.startswith("Right.")
    assert last == broken


@pytest.mark.parametrize(
    "before",
    [
        (),
        ("def my_days(flops, gpus, peak, share):\n    ...",),
        ("def my_days(flops, gpus, peak, share):\n    ...", "days = check.days(my_days).kept"),
    ],
    ids=["before anything ran", "after the stub ran", "after the stub was checked"],
)
def test_an_answer_whose_cell_stops_is_not_judged_whatever_ran_before(tmp_path, before):
    answer = "def my_days(flops, gpus, peak, share)\n    return 3"
    judged = "days = check.days(my_days).kept"
    source = "def my_days(flops, gpus, peak, share):\n    ..."
    cells = [nbformat.v4.new_code_cell(source), nbformat.v4.new_code_cell(judged)]
    nbformat.write(nbformat.v4.new_notebook(cells=cells), tmp_path / "04_flops.ipynb")
    said = []

    def hear(message):
        content = message["content"]
        if message["msg_type"] in ("display_data", "update_display_data"):
            said.append(content["data"]["text/plain"])
        elif message["msg_type"] == "error":
            said.append("\n".join(content["traceback"]))

    with kernel_in(tmp_path, JPY_SESSION_NAME=str(tmp_path / "04_flops.ipynb")) as (_, client):
        for cell in ("from course_utils.chapters.flops import check", *before, answer, judged):
            client.execute_interactive(cell, timeout=60, output_hook=hear)
        assert said[-1].startswith("Not judged. The cell of the answer stopped with an error.")
        # Once it runs without an error, it is judged again.
        client.execute_interactive("my_days = 3", timeout=60, output_hook=hear)
        client.execute_interactive(judged, timeout=60, output_hook=hear)
    assert said[-1].startswith("Not yet.")
