"""`tests.tools.where` finds the cells that use a function."""

from tests import NOTEBOOKS
from tests.helpers.notebooks import code
from tests.tools import where


def test_the_cells_that_use_a_name_are_found_under_any_alias(capsys):
    flops = [path for path in NOTEBOOKS if "flops" in path.stem]
    for asked, paths, written in (
        ("figures.layer_boxes", NOTEBOOKS, "figures.layer_boxes("),
        ("flops.check.square_alone", flops, "check.square_alone("),
    ):
        cells = {cell.id for path in paths for cell in code(path) if written in cell.source}
        assert cells
        assert where.main(asked) == 0
        assert cells == {line.split("  ")[1] for line in capsys.readouterr().out.splitlines()}
    where.main("square_alone")
    assert "04_flops  " in capsys.readouterr().out
    assert where.main("figures.layer_boxe") == 1
    said = capsys.readouterr().out
    assert "No cell uses 'figures.layer_boxe'. Cells use: figures.layer_boxes" in said
