"""The same verdict everywhere: every test draws the same examples on every machine, and none fails for being slow.

`make explore` is where new examples are drawn, with a seed of its own.
"""

import os
import random
from collections.abc import Iterator

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, register_random, settings
from hypothesis.internal.conjecture import providers
from hypothesis.internal.constants_ast import Constants

from course_utils import training

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
