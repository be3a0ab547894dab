"""Random generators: the three that all code of a process shares, and one for each use."""

import hashlib
import random

import numpy as np
import torch


def seed_all(seed: int) -> None:
    """Seed the shared generators of Python, NumPy and torch."""
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)


def generator_for(use: str, seed: int) -> torch.Generator:
    """Return a generator for this use alone, so that its draws change nothing for other uses.

    `use` is any text, such as "weights"; each use and seed has numbers of its own.
    """
    digest = hashlib.sha256(f"{seed} {use}".encode()).digest()
    own_seed = int.from_bytes(digest[:7], "big")  # 56 bits, since torch takes at most 64
    return torch.Generator().manual_seed(own_seed)


def shared_states() -> dict[str, object]:
    """Return the states of the three shared generators, in plain lists and a tensor.

    So a checkpoint, which refuses NumPy's arrays, can hold them. `gauss` and `cached_gauss` are a
    normally distributed number that was drawn in advance.
    """
    version, words, gauss = random.getstate()
    name, keys, position, has_gauss, cached_gauss = np.random.get_state()
    return {
        "python": [version, list(words), gauss],
        "numpy": [name, keys.tolist(), position, has_gauss, cached_gauss],
        "torch": torch.get_rng_state(),
    }


def restore_shared_states(states: dict[str, object]) -> None:
    """Set the three shared generators to these states."""
    version, words, gauss = states["python"]
    random.setstate((version, tuple(words), gauss))
    name, keys, position, has_gauss, cached_gauss = states["numpy"]
    np.random.set_state((name, np.array(keys, np.uint32), position, has_gauss, cached_gauss))
    torch.set_rng_state(states["torch"])
