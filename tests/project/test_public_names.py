"""Every public name of core, subjects and engine is used, and what one chapter uses lives there.

A name is used where a module or a notebook says it. A use in tests does not count, but a function
may be public because a test checks it.
"""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests import NOTEBOOKS, ROOT
from tests.helpers.names import defined_in, names_used
from tests.helpers.notebooks import code

COURSE = ROOT / "course_utils"
TESTS = [path for path in (ROOT / "tests").rglob("*.py") if path != Path(__file__)]
CHAPTERS = {f"chapters.{path.stem[3:]}" for path in NOTEBOOKS}
# Other material relies on these names, so they stay where they are, whoever uses them here.
CONTRACT = {
    "encode",
    "decode",
    "address",
    "can_view",
    "tensor_bytes",
    "matmul_flops",
    "matmul_bytes",
    "einsum_flops",
    "mlp_flops",
    "training_flops",
    "training_days",
    "training_bytes",
    "largest_model",
    "mfu",
    "Transformer",
    "product_seconds",
    "timeline",
    "this_machine",
    "time_call",
    "flops",
    "saved_bytes",
    "optimizer_bytes",
    "account",
    "save",
    "load",
}
# The file that a reader writes is a whole program, whose helper functions have no underscore.
NOT_ASKED = {"core.accountant"}
FOR_TESTS = {
    # A test reads from this constant in which version of torch the private names were found.
    "core.measure.internals.READ_IN",
    # The accountant's mixtures are counted with it, by a test and by no notebook yet.
    "subjects.models.mixture.MixtureTransformer",
}
# Public functions that only their own module uses, by the reason why they stay public.
ALONE = {
    "its callers stand below it in one module": {"core.predict.training.check_count"},
}
# What only one chapter uses, though it lives elsewhere, by the reason. No new names are added here:
# they belong into the chapter.
WAITS = {
    "a formula beside the others of its kind": {
        "core.predict.parabola.largest_settled_lr",
        "core.predict.training.days_by_part",
        "core.predict.operations.ridge",
        "core.predict.saving.daly_seconds",
        "core.predict.saving.wasted_share",
    },
    "beside what reads the same files": {
        "subjects.checkpoints.contents.file_bytes",
        "subjects.machines.recording.text_of",
        "subjects.machines.by_us.h100_moments",
        "subjects.machines.by_us.small_mixture",
    },
    "a cell of a notebook imports it from where it is, and its copies would": {
        "core.layout.owned_bytes",
        "core.measure.formats.every_value",
        "core.measure.memory.peak_saved_bytes",
        "subjects.models.heads.recomputed_attention",
        "subjects.models.layers.MLPBlock",
        "subjects.training.precision.logit_gradients",
        "subjects.training.precision.scales_by_torch",
        "subjects.training.tokens.open_tokens",
        "subjects.training.tokens.write_tokens",
    },
    "it draws or asks nothing of that chapter alone, and the next lab will want it": {
        "engine.labs.draw.lines.pieces_inside",
        "engine.labs.draw.lines.simplified",
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
    """The room that a file belongs to, or its chapter, to which the notebook belongs as well."""
    if path.suffix == ".ipynb":
        return f"chapters.{path.stem[3:]}"
    room, *rest = path.relative_to(COURSE).parts
    if room != "chapters":
        return room
    return f"chapters.{rest[0].removesuffix('.py')}"


@pytest.fixture(scope="module")
def users_of() -> dict[str, set[Path]]:
    """By each name, the course's modules and notebooks that use it."""
    texts = {path: path.read_text(encoding="utf-8") for path in COURSE.rglob("*.py")}
    for path in NOTEBOOKS:
        texts[path] = "\n".join(cell.source for cell in code(path))
    found: dict[str, set[Path]] = {}
    for path, text in texts.items():
        for name in names_used(text):
            found.setdefault(name, set()).add(path)
    return found


@dataclass(frozen=True)
class Shared:
    """A public name of the core, the subjects or the engine."""

    full: str  # with its module
    path: Path
    name: str
    definition: ast.stmt


def shared() -> Iterator[Shared]:
    for room in ("core", "subjects", "engine"):
        for path in sorted((COURSE / room).rglob("*.py")):
            module = path.relative_to(COURSE).with_suffix("").as_posix().replace("/", ".")
            if module not in NOT_ASKED:
                for name, definition in public_names(path).items():
                    yield Shared(f"{module}.{name}", path, name, definition)


def test_every_public_name_is_used_and_not_by_tests_alone(users_of):
    used = users_of.keys() | CONTRACT
    unused = {public.full for public in shared() if public.name not in used}
    assert unused == FOR_TESTS


def test_a_function_that_only_its_own_module_uses_is_private_unless_a_test_holds_what_it_says(
    users_of,
):
    """A class may still be public, because other modules get its objects; so may a constant."""
    tested = set().union(*(words(path) for path in TESTS))
    alone = set()
    for public in shared():
        is_function = isinstance(public.definition, ast.FunctionDef)
        is_alone = users_of.get(public.name) == {public.path}
        if is_function and is_alone and public.name not in tested | CONTRACT:
            alone.add(public.full)
    assert alone == set().union(*ALONE.values())


def test_what_one_chapter_alone_uses_lives_in_it(users_of):
    elsewhere = set()
    for public in shared():
        is_constant = not isinstance(public.definition, ast.FunctionDef | ast.ClassDef)
        if is_constant or public.name in CONTRACT:
            continue
        homes = {home(path) for path in users_of.get(public.name, ())}
        if len(homes) == 1 and homes <= CHAPTERS:
            elsewhere.add(public.full)
    assert elsewhere == set().union(*WAITS.values())
