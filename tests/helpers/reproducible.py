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

# Hypothesis also draws constants that it finds in the course's modules, in those that this worker happens to have
# imported, and in none if the course lies in a folder named tests. tests/project/test_reproducible.py notices if it finds
# them in another way.
providers._get_local_constants = Constants

ANYWHERE = {"deadline": None, "database": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("reproducible", derandomize=True, **ANYWHERE)
settings.register_profile(
    "explore", derandomize=False, print_blob=True, **ANYWHERE
)  # where CI is set, too
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "reproducible"))


class TorchsGenerator:
    """torch's shared generator, as Hypothesis wants it, which seeds it before each example.

    Not by torch.manual_seed: for a GPU that may come, it keeps each seed with the whole stack of who set it.
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
    random.setstate(pythons)
    np.random.set_state(numpys)
    torch.set_rng_state(torchs)


@pytest.fixture(autouse=True)
def seeded() -> Iterator[None]:
    """Each test begins with the same random numbers, and leaves none of its state to the next one of its worker.

    A doctest too, where tests run beside it; alone it has to do without.
    """
    before = random.getstate(), np.random.get_state(), torch.get_rng_state()
    set_generators(*BEGINNING)
    yield
    set_generators(*before)
