"""From a function to the cells that it serves."""

from tests import NOTEBOOKS
from tests.helpers.notebooks import code
from tests.tools import where


def test_the_cells_that_use_a_name_are_found_under_any_alias(capsys):
    for asked, written in (
        ("figures.gradient_chain", "figures.gradient_chain("),
        ("flops.check.square_alone", "check.square_alone("),
    ):
        assert where.main(asked) == 0
        found = {line.split("  ")[1] for line in capsys.readouterr().out.splitlines()}
        paths = [path for path in NOTEBOOKS if "check" not in asked or "flops" in path.stem]
        assert (
            found
            == {cell.id for path in paths for cell in code(path) if written in cell.source}
            != set()
        )
    where.main("square_alone")
    assert "04_flops  " in capsys.readouterr().out
    assert where.main("figures.gradient_chai") == 1
    assert (
        "No cell uses 'figures.gradient_chai'. Cells use: figures.gradient_chain"
        in capsys.readouterr().out
    )
