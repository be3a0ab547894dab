"""The same examples on every machine: a plugin of pytest, for the processes that run tests.

`make explore` is where new examples are drawn, with a seed of its own.
"""

import os
import random
from collections.abc import Iterator
from types import FunctionType

import jaxtyping
import numpy as np
import pytest
import torch
from beartype import beartype
from hypothesis import HealthCheck, register_random, settings
from hypothesis.internal.conjecture import providers
from hypothesis.internal.constants_ast import Constants

by_jaxtyping = jaxtyping.jaxtyped


def enforced(*given: object, **options: object) -> object:
    """Return a decorator in place of `jaxtyping.jaxtyped`, which checks arguments by beartype.

    Functions that can name no shape are checked by beartype alone, because jaxtyping binds the
    arguments of each call, which takes twenty times as long. A function can name a shape only if
    its module has imported one of jaxtyping's types.
    """

    def enforce(made: object) -> object:
        if isinstance(made, FunctionType) and not _can_name_shapes(made):
            return beartype(made)
        return by_jaxtyping(**options)(made)

    written_by_hand = given or options.get("typechecker") is beartype
    if written_by_hand:
        return by_jaxtyping(*given, **options)
    return enforce  # --jaxtyping-packages asks for it


def _can_name_shapes(function: FunctionType) -> bool:
    """Whether the function's module has imported one of jaxtyping's types, such as Float."""
    shape_type = type(jaxtyping.Float)  # all these types are of one type
    return any(isinstance(value, shape_type) for value in function.__globals__.values())


jaxtyping.jaxtyped = enforced

# Hypothesis also draws constants that it finds in the course's modules: in those that this worker
# happens to have imported, and in none if the course lies in a folder named tests. So this line
# gives it none. tests/project/test_reproducible.py notices if it finds them in another way.
providers._get_local_constants = Constants

ANYWHERE = {"deadline": None, "database": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("reproducible", derandomize=True, **ANYWHERE)
settings.register_profile("explore", derandomize=False, print_blob=True, **ANYWHERE)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "reproducible"))


class TorchsGenerator:
    """torch's shared generator with the methods by which Hypothesis seeds it before each example.

    It is not seeded by torch.manual_seed, which also keeps each seed, with the whole stack of its
    caller, for a GPU that may be initialised later.
    """

    seed = staticmethod(torch.default_generator.manual_seed)
    getstate = staticmethod(torch.get_rng_state)
    setstate = staticmethod(torch.set_rng_state)


TORCHS_GENERATOR = TorchsGenerator()  # Hypothesis holds only a weak reference
register_random(TORCHS_GENERATOR)
BEGINNING = (
    random.Random(0).getstate(),
    np.random.RandomState(0).get_state(),
    torch.Generator().manual_seed(0).get_state(),
)


def set_generators(pythons: tuple, numpys: tuple, torchs: torch.Tensor) -> None:
    """Set the shared random generators of Python, numpy and torch to these states."""
    random.setstate(pythons)
    np.random.set_state(numpys)
    torch.set_rng_state(torchs)


@pytest.fixture(autouse=True)
def seeded() -> Iterator[None]:
    """Begin each test with the same random numbers, and put the generators back after it.

    So no test leaves its state to the next one of its worker. This also holds for doctests, if
    tests are collected with them; pytest finds no such fixture when it runs doctests alone.
    """
    pythons = random.getstate()
    numpys = np.random.get_state()
    torchs = torch.get_rng_state()
    set_generators(*BEGINNING)
    yield
    set_generators(pythons, numpys, torchs)
