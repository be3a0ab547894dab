"""The same verdict everywhere: every test draws the same examples on every machine, and none fails for being slow.

`make explore` is where new examples are drawn, with a seed of its own.
"""

import os
import random
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from types import FunctionType

import jaxtyping
import numpy as np
import pytest
import torch
from beartype import beartype
from hypothesis import HealthCheck, register_random, settings
from hypothesis.internal.conjecture import providers
from hypothesis.internal.constants_ast import Constants
from playwright.sync_api import Browser, Page, expect
from xdist.remote import Producer
from xdist.scheduler import LoadFileScheduling

by_jaxtyping = jaxtyping.jaxtyped


def enforced(*given: object, **options: object) -> object:
    """In place of jaxtyping's decorator, which binds the arguments of each call and so is twenty times as slow as
    beartype: that one for functions where no shape can be named, as their module has no name for one.
    """

    def enforce(made: object) -> object:
        names = getattr(made, "__globals__", {}).values()
        if isinstance(made, FunctionType) and not any(
            isinstance(one, type(jaxtyping.Float)) for one in names
        ):
            return beartype(made)
        return by_jaxtyping(**options)(made)

    by_hand = given or options.get("typechecker") is beartype  # and not by --jaxtyping-packages
    return by_jaxtyping(*given, **options) if by_hand else enforce


jaxtyping.jaxtyped = enforced

from course_utils import labs, training  # noqa: E402
from tests import ROOT, browser  # noqa: E402

# Hypothesis also draws constants that it finds in the course's modules, in those that this worker happens to have
# imported, and in none if the course lies in a folder named tests. tests/test_same_everywhere.py notices if it finds
# them in another way.
providers._get_local_constants = Constants

ANYWHERE = {"deadline": None, "database": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("same everywhere", derandomize=True, **ANYWHERE)
settings.register_profile("explore", derandomize=False, print_blob=True, **ANYWHERE)  # where CI is set, too
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "same everywhere"))


class TorchsGenerator:
    """torch's shared generator, as Hypothesis wants it, which seeds it before each example."""

    seed = staticmethod(torch.manual_seed)
    getstate = staticmethod(torch.get_rng_state)
    setstate = staticmethod(torch.set_rng_state)


TORCHS_GENERATOR = TorchsGenerator()  # Hypothesis holds only a weak reference
register_random(TORCHS_GENERATOR)


@pytest.fixture(autouse=True)
def seeded() -> Iterator[None]:
    """Each test begins with the same random numbers, and leaves none of its state to the next one of its worker."""
    state = random.getstate(), np.random.get_state(), torch.get_rng_state()
    training.seed_all(0)
    yield
    random.setstate(state[0])
    np.random.set_state(state[1])
    torch.set_rng_state(state[2])


# One JupyterLab and one kernel with all labs for all tests that move one, in one worker: to start them takes long.
# What needs a browser comes first, as it takes longest.
ANOTHER_PAGE = re.compile(r"tests/test_(browser_(desk|hub|site|slides)|present)\.py")


def _needs_browser(nodeid: str) -> bool:
    return nodeid.startswith(("tests/test_browser", "tests/test_present"))


class LabsInOneWorker(LoadFileScheduling):
    """A file's tests go to one worker, a notebook's too, which is one kernel; and so do all that move the labs' page."""

    def _split_scope(self, nodeid: str) -> str:
        on_labs_page = _needs_browser(nodeid) and not ANOTHER_PAGE.match(nodeid)
        return "labs' page" if on_labs_page else super()._split_scope(nodeid)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LabsInOneWorker:
    """Begun by xdist, in place of what `--dist` names."""
    return LabsInOneWorker(config, log)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Browser first; else in the order of the files."""
    items.sort(key=lambda item: not _needs_browser(item.nodeid))


IMPORTS = """from course_utils import figures, floats, labs
from course_utils.checks.judging.verdict import NOT_ATTEMPTED, Verdict
from course_utils.quantities import Comparison, Ledger, Table"""
OUTPUTS = """figures.reach_and_step(floats.FORMATS)
Verdict("right", "Well.")
Verdict("not yet", "3 is not it.")
NOT_ATTEMPTED
Ledger({"weights": 96, "biases": 8}, unit="bytes")
Comparison({"weights": 96}, {"weights": 97}, guess=95)
Table([["", "bytes"], ["weights", "96"]])"""
LINKS = "A [stride](GLOSSARY.md#stride), and [AdamW](GLOSSARY.md#adamw)."


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    """A browser; whoever needs a page opens one."""
    with browser.chromium(browser.UNSEEN) as chromium:
        yield chromium


@pytest.fixture(scope="session")
def jupyter(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, str]]:
    """A folder, and the address of a JupyterLab over it."""
    folder = tmp_path_factory.mktemp("jupyter")
    with browser.jupyterlab(folder) as address:
        yield folder, address


@pytest.fixture(scope="session")
def labs_page(chromium: Browser, jupyter: tuple[Path, str]) -> Page:
    """All labs, each kind of output and two links to the glossary, after Run All; `saved` is what was saved of it."""
    folder, address = jupyter
    shutil.copy(ROOT / "notebooks" / "GLOSSARY.md", folder)
    sources = [IMPORTS, *OUTPUTS.splitlines(), *(f"labs.{name}()" for name in labs.__all__)]
    path = browser.notebook_of(folder / "labs.ipynb", sources, LINKS)
    page = browser.open_page(chromium.new_context(), address, path)
    page.folder, page.saved = folder, browser.run_all(page, path)
    expect(page.locator(".course-lab[aria-label]")).to_have_count(len(labs.__all__))
    return page
