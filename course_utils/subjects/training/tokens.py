"""Tokens: in a text, in a file, in a batch."""

import os
import random

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

TOKEN_BYTES = 2  # uint16: enough for vocabularies up to 65,536
VOCABULARY = 128  # of the example text, whose tokens are its ASCII characters


def example_text(sentences: int, seed: int = 0) -> str:
    """Return sentences, each with a sum of two digits: something to learn that needs no download.

    >>> example_text(2)
    '6 and 6 make 12. 0 and 4 make 4. '
    """
    draw = random.Random(seed)
    text = []
    for _ in range(sentences):
        a = draw.randrange(10)
        b = draw.randrange(10)
        text.append(f"{a} and {b} make {a + b}. ")
    return "".join(text)


def encoded(text: str) -> np.ndarray:
    """Return the tokens of a text: the number of each character. ValueError if one is not ASCII.

    >>> encoded("a b").tolist()
    [97, 32, 98]
    """
    if not text.isascii():
        strange = next(character for character in text if not character.isascii())
        raise ValueError(f"Only ASCII characters are tokens here; got {strange!r}.")
    return np.frombuffer(text.encode("ascii"), np.uint8).astype(np.uint16)


def decoded(tokens: np.ndarray | Tensor) -> str:
    """Return the text that these tokens encode."""
    return "".join(chr(token) for token in tokens.tolist())


def write_tokens(path: str | os.PathLike, tokens: np.ndarray) -> None:
    """Write 2 bytes for each token, and nothing else: not even the dtype stands in the file."""
    if not np.issubdtype(tokens.dtype, np.integer):
        raise ValueError(f"Tokens are whole numbers; got an array of {tokens.dtype}.")
    if tokens.size and not 0 <= tokens.min() <= tokens.max() < 256**TOKEN_BYTES:
        raise ValueError(f"A token is 0 to 65,535 here; got {tokens.min()} to {tokens.max()}.")
    tokens.astype(np.uint16).tofile(path)


def open_tokens(path: str | os.PathLike) -> np.memmap:
    """Return the file as a read-only array; only the parts that are used are read from the disk."""
    size = os.path.getsize(path)
    if not size or size % TOKEN_BYTES:
        raise ValueError(
            f"A file of tokens has 2 bytes for each; {os.fspath(path)} has {size:,} bytes."
        )
    return np.memmap(path, dtype=np.uint16, mode="r")


def token_batch(
    tokens: np.ndarray, batch: int, sequence: int, generator: torch.Generator
) -> tuple[Int[Tensor, "b s"], Int[Tensor, "b s"]]:
    """Return windows of tokens from random positions, and their targets, one position later.

    Of N tokens, a window of S tokens may begin at 0 to N - S - 1, so that the window's last target
    is one of the N tokens.
    """
    if batch < 1 or sequence < 1:
        raise ValueError(
            f"A batch has one window or more, of one token or more; got {batch} of {sequence}."
        )
    starts = len(tokens) - sequence  # at how many positions a window may begin
    if starts < 1:
        raise ValueError(
            f"A window of {sequence} tokens and one more needs {sequence + 1}; "
            f"there are {len(tokens)}."
        )
    drawn = torch.randint(starts, (batch,), generator=generator).tolist()
    # Each window has one token more: the target of its last one.
    windows = np.stack([tokens[start : start + sequence + 1] for start in drawn])
    windows = torch.from_numpy(windows.astype(np.int64))  # cross_entropy asks for int64
    inputs = windows[:, :-1]
    targets = windows[:, 1:]
    return inputs, targets
