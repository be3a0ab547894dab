"""Reach: every public name of the core, the subjects and the engine is used, and what one chapter uses lives there.

A name is used where a module or a notebook says it; tests do not count, but a function that they hold may be public.
"""

import ast
import re
from pathlib import Path

import pytest

from tests import NOTEBOOKS, ROOT
from tests.helpers.names import defined_in, names_used
from tests.helpers.notebooks import code

COURSE = ROOT / "course_utils"
TESTS = [path for path in (ROOT / "tests").rglob("*.py") if path != Path(__file__)]
CHAPTERS = [path.stem[3:] for path in NOTEBOOKS]
# Names that other material relies on stay where they can be found, whoever uses them here.
CONTRACT = {
    *["encode", "decode", "address", "can_view"],
    *[
        "tensor_bytes",
        "matmul_flops",
        "matmul_bytes",
        "einsum_flops",
        "mlp_flops",
        "training_flops",
        "training_days",
    ],
    *["training_bytes", "largest_model", "mfu", "Transformer", "product_seconds", "timeline"],
    *[
        "this_machine",
        "time_call",
        "flops",
        "saved_bytes",
        "optimizer_bytes",
        "account",
        "save",
        "load",
    ],
}
# The file that a reader writes is one whole program; its helpers have plain names.
NOT_ASKED = {"core.accountant"}
# The torch version that private names were read in stands beside them.
FOR_TESTS = {"core.measure.internals.READ_IN"}
# What only its own module uses, and who makes it private.
ALONE = {
    "its callers stand below it in one module": {"core.predict.training.check_count"},
}
# What one chapter alone uses, and who takes it there. It belongs into that chapter; here is no place for new ones.
WAITS = {
    "a formula beside the others of its kind": {
        *("core.predict.parabola.largest_lr", "core.predict.parabola.largest_settled_lr"),
        *("core.predict.rounding.lossless_powers", "core.predict.training.days_by_part"),
        "core.predict.operations.ridge",
        *("core.predict.saving.daly_seconds", "core.predict.saving.wasted_share"),
    },
    "beside what reads the same files": {
        *("subjects.checkpoints.contents.file_bytes", "subjects.machines.recording.text_of"),
    },
    "a cell of a notebook imports it from where it is, and its copies would": {
        *(
            "core.layout.owned_bytes",
            "core.measure.formats.every_value",
            "core.measure.memory.peak_saved_bytes",
        ),
        *("subjects.models.heads.recomputed_attention", "subjects.models.layers.MLPBlock"),
        *(
            "subjects.training.precision.logit_gradients",
            "subjects.training.precision.scales_by_torch",
        ),
        *("subjects.training.tokens.open_tokens", "subjects.training.tokens.write_tokens"),
    },
    "it draws or asks nothing of that chapter alone, and the next lab will want it": {
        *("engine.labs.draw.lines.pieces_inside", "engine.labs.draw.lines.simplified"),
        "engine.labs.fields.said_is",
    },
    "it says what an einsum is, as the rest of its module does": {"core.einsums.loop_nest"},
    "a process of its own runs it, with what else runs there": {
        "subjects.child_processes.products.einsum_timing_steps",
        "subjects.child_processes.transformers.step_moments",
    },
}


def public_names(path: Path) -> dict[str, ast.stmt]:
    """The functions, classes and constants of a module that have no underscore."""
    return {name: node for name, node in defined_in(path).items() if not name.startswith("_")}


def words(path: Path) -> set[str]:
    return set(re.findall(r"\w+", path.read_text(encoding="utf-8")))


def home(path: Path) -> str:
    """The room that a file belongs to; of the chapters, the one chapter, to which its notebook belongs as well."""
    if path.suffix == ".ipynb":
        return f"chapters.{path.stem[3:]}"
    room, *rest = path.relative_to(COURSE).parts
    return f"chapters.{rest[0].removesuffix('.py')}" if room == "chapters" else room


@pytest.fixture(scope="module")
def users_of() -> dict[str, set[Path]]:
    """By name, the course's modules and notebooks that use it."""
    texts = {path: path.read_text(encoding="utf-8") for path in COURSE.rglob("*.py")}
    texts |= {path: "\n".join(cell.source for cell in code(path)) for path in NOTEBOOKS}
    found: dict[str, set[Path]] = {}
    for path, text in texts.items():
        for name in names_used(text):
            found.setdefault(name, set()).add(path)
    return found


def shared() -> list[tuple[str, Path, str, ast.stmt]]:
    """Each public name of the core, the subjects and the engine: in full, its file, itself, what defines it."""
    found = []
    for room in ("core", "subjects", "engine"):
        for path in sorted((COURSE / room).rglob("*.py")):
            module = path.relative_to(COURSE).with_suffix("").as_posix().replace("/", ".")
            if module not in NOT_ASKED:
                names = public_names(path)
                found += [(f"{module}.{name}", path, name, node) for name, node in names.items()]
    return found


def test_every_public_name_is_used_and_not_by_tests_alone(users_of):
    dead = {full for full, _, name, _ in shared() if name not in users_of and name not in CONTRACT}
    assert dead == FOR_TESTS


def test_a_function_that_only_its_own_module_uses_is_private_unless_a_test_holds_what_it_says(
    users_of,
):
    """A class may be public all the same, since others get its objects; and so may a constant."""
    tested = {name for path in TESTS for name in words(path)}
    alone = {
        full
        for full, path, name, node in shared()
        if isinstance(node, ast.FunctionDef) and name not in tested | CONTRACT
        if users_of.get(name) == {path}
    }
    assert alone == set().union(*ALONE.values())


def test_what_one_chapter_alone_uses_lives_in_it(users_of):
    elsewhere = set()
    for full, _, name, node in shared():
        homes = {home(path) for path in users_of.get(name, ())}
        is_thing = isinstance(node, ast.FunctionDef | ast.ClassDef) and name not in CONTRACT
        if is_thing and len(homes) == 1 and homes & {f"chapters.{one}" for one in CHAPTERS}:
            elsewhere.add(full)
    assert elsewhere == set().union(*WAITS.values())
