"""What torch makes of a chain of operations."""

import math
from contextlib import suppress
from itertools import pairwise

import torch

from course_utils import layout, measure
from course_utils.chains import EXAMPLES, INDEX_EXAMPLE, Operation
from course_utils.labs.stride.asked import MOST_DIMENSIONS, MOST_ELEMENTS, Chain, Tensor, Way


def refresh(chain: Chain, found: object) -> Way:
    """Every tensor on the way, and where torch's own pointer to the element stands."""
    tensors, refusal = applied(chain)
    end = tensors[-1]
    storage, size = end.untyped_storage(), end.element_size()
    numbers = torch.empty(0, dtype=end.dtype).set_(storage, 0, (storage.nbytes() // size,)).tolist()
    index = chain.index_in(end.shape)
    pointer = None if index is None else (end[index].data_ptr() - storage.data_ptr()) // size
    return Way(_described(chain, tensors), [*map(int, numbers)], refusal, pointer)


def applied(chain: Chain) -> tuple[list[torch.Tensor], str]:
    """The tensors as far as torch goes along, and why it goes no further."""
    tensors = [torch.arange(math.prod(chain.sizes)).to(measure.DTYPES[chain.dtype]).view(chain.sizes)]
    for link in chain.links:
        try:
            tensors.append(_after(link, tensors[-1]))
        except ValueError as error:
            return tensors, f"The operation {link.text} {error}"
    return tensors, ""


def _after(link: Operation, t: torch.Tensor) -> torch.Tensor:
    """What the operation makes of a tensor, or a sentence on why it can't, which goes on from the operation."""
    try:
        after = getattr(t, link.name)(*link.arguments) if link.name else t[link.arguments]
    except TypeError:
        example = EXAMPLES.get(link.name, INDEX_EXAMPLE)
        raise ValueError(f"has the wrong numbers in it. Write it like {example}.") from None
    except (RuntimeError, IndexError, ValueError) as error:
        raise ValueError(f"is refused. {_why(link, t, error)}") from None
    elements = math.prod(after.shape)  # numel() overflows
    if max(elements, *after.shape, 0) > MOST_ELEMENTS or after.ndim > MOST_DIMENSIONS:
        raise ValueError(
            f"gives {after.ndim} dimensions, {elements:,} elements. This lab draws up to {MOST_DIMENSIONS} "
            f"and {MOST_ELEMENTS} elements, in each dimension too: take smaller ones."
        )
    return after


def _why(link: Operation, t: torch.Tensor, error: Exception) -> str:
    """Which strides stand in a view's way; in torch's words, if it is none, or not even possible without strides."""
    if link.name == "view":
        with suppress(RuntimeError):
            new_shape = torch.empty(t.shape).view(*link.arguments).shape
            return layout.why_not_view(tuple(t.shape), t.stride(), tuple(new_shape))
    said = " ".join(str(error).splitlines()[:2])  # the second is what the first may announce
    return f"torch says “{said.rstrip('.')}”."


def _described(chain: Chain, tensors: list[torch.Tensor]) -> list[Tensor]:
    names = ["base", *(link.text for link in chain.links)]
    shared = [layout.shares_storage(before, after) for before, after in pairwise(tensors)]
    storages = ["its own", *("shared" if same else "copied" for same in shared)]
    return [
        Tensor(name, tuple(t.shape), t.stride(), t.storage_offset(), t.is_contiguous(), storage)
        for name, t, storage in zip(names, tensors, storages, strict=False)  # names go on after a refusal
    ]
