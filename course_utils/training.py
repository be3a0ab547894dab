"""Training, from tokens in a file to a run that can stop after any step and go on, bit for bit."""

import copy
import hashlib
import math
import os
import random
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import KW_ONLY, dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional

from course_utils.quantities import Number

TOKEN_BYTES = 2  # uint16: enough for vocabularies up to 65,536
VOCABULARY = 128  # of the example text, whose tokens are its ASCII characters
PARTS = ("model", "optimizer", "step", "data", "generators")


# Tokens.


def example_text(sentences: int, seed: int = 0) -> str:
    """Sums of two digits, each in a sentence: something to learn that needs no download.

    >>> example_text(2)
    '6 and 6 make 12. 0 and 4 make 4. '
    """
    draw = random.Random(seed).randrange
    pairs = ((draw(10), draw(10)) for _ in range(sentences))
    return "".join(f"{a} and {b} make {a + b}. " for a, b in pairs)


def encoded(text: str) -> np.ndarray:
    """The number of each character, as tokens.

    >>> encoded("a b").tolist()
    [97, 32, 98]
    """
    if not text.isascii():
        strange = next(character for character in text if not character.isascii())
        raise ValueError(f"Only ASCII characters are tokens here; got {strange!r}.")
    return np.frombuffer(text.encode("ascii"), np.uint8).astype(np.uint16)


def decoded(tokens: np.ndarray | Tensor) -> str:
    """The text again."""
    return "".join(map(chr, tokens.tolist()))


def write_tokens(path: str | os.PathLike, tokens: np.ndarray) -> None:
    """2 bytes a token, one after the other, and nothing else: the file does not say what it holds."""
    if not np.issubdtype(tokens.dtype, np.integer):
        raise ValueError(f"Tokens are whole numbers; got an array of {tokens.dtype}.")
    if tokens.size and not 0 <= tokens.min() <= tokens.max() < 256**TOKEN_BYTES:
        raise ValueError(f"A token is 0 to 65,535 here; got {tokens.min()} to {tokens.max()}.")
    tokens.astype(np.uint16).tofile(path)


def open_tokens(path: str | os.PathLike) -> np.memmap:
    """The file as an array that is read where it is touched, and nowhere else; it cannot be written to."""
    size = os.path.getsize(path)
    if not size or size % TOKEN_BYTES:
        raise ValueError(f"A file of tokens has 2 bytes for each; {os.fspath(path)} has {size:,} bytes.")
    return np.memmap(path, dtype=np.uint16, mode="r")


def token_batch(
    tokens: np.ndarray, batch: int, sequence: int, generator: torch.Generator
) -> tuple[Int[Tensor, "b s"], Int[Tensor, "b s"]]:
    """Windows from random places, and as their targets the same windows one token later.

    A window may begin at 0 to N - S - 1: then the last of its targets is at most the last token.
    """
    if batch < 1 or sequence < 1:
        raise ValueError(f"A batch has one window or more, of one token or more; got {batch} of {sequence}.")
    starts = len(tokens) - sequence
    if starts < 1:
        raise ValueError(
            f"A window of {sequence} tokens and one more needs {sequence + 1}; there are {len(tokens)}."
        )
    drawn = torch.randint(starts, (batch,), generator=generator).tolist()
    windows = np.stack([tokens[start : start + sequence + 1] for start in drawn])
    both = torch.from_numpy(windows.astype(np.int64))  # which is what cross_entropy asks for
    return both[:, :-1], both[:, 1:]


# Randomness.


def seed_all(seed: int) -> None:
    """The generators that Python, NumPy and torch share with everybody."""
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)


def generator_for(use: str, seed: int) -> torch.Generator:
    """A generator of its own for each use, so that more draws for the one move nothing in the others."""
    digest = hashlib.sha256(f"{seed} {use}".encode()).digest()
    return torch.Generator().manual_seed(int.from_bytes(digest[:7], "big"))


def shared_states() -> dict[str, object]:
    """Where the three shared generators stand, in plain lists and a tensor."""
    version, words, gauss = random.getstate()
    name, keys, *rest = np.random.get_state()
    return {
        "python": [version, list(words), gauss],
        "numpy": [name, keys.tolist(), *rest],
        "torch": torch.get_rng_state(),
    }


def restore_shared_states(states: dict[str, object]) -> None:
    """Set them back there."""
    version, words, gauss = states["python"]
    random.setstate((version, tuple(words), gauss))
    name, keys, *rest = states["numpy"]
    np.random.set_state((name, np.array(keys, np.uint32), *rest))
    torch.set_rng_state(states["torch"])


# One step.


def next_token_loss(logits: Float[Tensor, "b s v"], targets: Int[Tensor, "b s"]) -> Float[Tensor, ""]:
    """The mean of -log p(target), computed in fp32."""
    return functional.cross_entropy(logits.float().flatten(0, 1), targets.flatten())


def clip_gradients(parameters: Iterable[Tensor], max_norm: Number) -> Float[Tensor, ""]:
    """Scale all gradients together by max_norm / norm where their norm is larger; the norm that they had."""
    if not max_norm > 0:
        raise ValueError(f"The largest norm is above 0; got {max_norm!r}.")
    gradients = [p.grad for p in parameters if p.grad is not None]
    if not gradients:
        return torch.zeros(())
    norm = torch.linalg.vector_norm(torch.stack([torch.linalg.vector_norm(g) for g in gradients]))
    for gradient in gradients:
        gradient.mul_((max_norm / (norm + 1e-6)).clamp(max=1))
    return norm


def warmup_cosine(step: int, peak: Number, warmup: int, total: int, *, floor: Number = 0) -> Number:
    """Learning rate: in `warmup` steps from 0 up to the peak in a line, then down to the floor on half a cosine.

    >>> [round(warmup_cosine(step, 1.0, 4, 8), 2) for step in range(9)]
    [0.25, 0.5, 0.75, 1.0, 1.0, 0.85, 0.5, 0.15, 0.0]
    """
    if not 0 <= warmup < total:
        raise ValueError(f"The warm-up ends before the run does; got {warmup} of {total} steps.")
    if step < 0:
        raise ValueError(f"Steps are counted from 0; got {step}.")
    if step < warmup:
        return peak * (step + 1) / warmup
    done = min((step - warmup) / (total - warmup), 1)
    return floor + (peak - floor) * (1 + math.cos(math.pi * done)) / 2


# A run.


@dataclass
class Run:
    """A model, its optimizer and its data, and how many steps they have made together."""

    model: nn.Module
    optimizer: torch.optim.Optimizer
    tokens: np.ndarray
    generator: torch.Generator  # of the places where batches begin
    _: KW_ONLY
    batch: int
    sequence: int
    schedule: Callable[[int], Number] | None = None  # the learning rate of a step
    max_norm: Number | None = None
    step: int = 0

    def advance(self) -> Number:
        """One step; its loss."""
        device = next(self.model.parameters()).device
        inputs, targets = token_batch(self.tokens, self.batch, self.sequence, self.generator)
        loss = next_token_loss(self.model(inputs.to(device)), targets.to(device))
        self.optimizer.zero_grad()
        loss.backward()
        if self.max_norm is not None:
            clip_gradients(self.model.parameters(), self.max_norm)
        if self.schedule is not None:
            for group in self.optimizer.param_groups:
                group["lr"] = self.schedule(self.step)
        self.optimizer.step()
        self.step += 1
        return loss.item()

    def losses(self, until: int) -> Iterator[Number]:
        """The losses of the steps from here to `until`; between any two of them the run can be left."""
        while self.step < until:
            yield self.advance()

    def state(self) -> dict[str, object]:
        """All that the steps to come depend on, by part, in tensors and plain values: a copy, so the run may go on."""
        parts = {
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "step": self.step,
            "data": self.generator.get_state(),
            "generators": shared_states(),
        }
        return copy.deepcopy(parts)

    def restore(self, state: dict[str, object], *, without: Collection[str] = ()) -> None:
        """Go back, or forward, to a state. What is left out stays as it is, and shows why it is needed."""
        unknown = [part for part in without if part not in PARTS]
        if unknown:
            raise ValueError(f"A run has no part {unknown[0]!r}. Its parts are: {', '.join(PARTS)}.")
        wanted = [part for part in PARTS if part not in without]
        missing = [part for part in wanted if part not in state]
        if missing:
            raise ValueError(
                f"The state lacks {', '.join(missing)}; to go on without, say so: without={missing}."
            )
        restore = {
            "model": self.model.load_state_dict,
            # torch would go on to write into the very tensors that it is given.
            "optimizer": lambda saved: self.optimizer.load_state_dict(copy.deepcopy(saved)),
            "step": lambda step: setattr(self, "step", step),
            "data": self.generator.set_state,
            "generators": restore_shared_states,
        }
        for part in wanted:
            restore[part](state[part])
