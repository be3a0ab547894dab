"""What torch makes of a chain of operations."""

import math

import torch

from course_utils import layout, measure
from course_utils.labs.stride.asked import MOST_DIMENSIONS, MOST_ELEMENTS, Chain, Tensor, Way
from course_utils.labs.stride.words import EXAMPLES, INDEX_EXAMPLE, Operation

LONGEST = 250  # characters, which stand in two lines


def at_once(chain: Chain, found: object) -> Way:
    """Every tensor on the way, and where torch's own pointer to the element stands."""
    tensors, refusal = applied(chain)
    end = tensors[-1]
    storage, size = end.untyped_storage(), end.element_size()
    numbers = torch.empty(0, dtype=end.dtype).set_(storage, 0, (storage.nbytes() // size,)).tolist()
    index = chain.index_in(end.shape)
    pointer = None if index is None else (end[index].data_ptr() - storage.data_ptr()) // size
    described = tuple(_described(chain, tensors, place) for place in range(len(tensors)))
    return Way(described, tuple(map(int, numbers)), refusal, pointer)


def applied(chain: Chain) -> tuple[list[torch.Tensor], str]:
    """The tensors as far as torch goes along, and why it goes no further."""
    tensors = [torch.arange(math.prod(chain.sizes)).to(measure.DTYPES[chain.dtype]).view(chain.sizes)]
    for link in chain.links:
        try:
            tensors.append(_after(link, tensors[-1]))
        except ValueError as error:
            refusal = f"The operation {link.text} {error}"
            full = f"{refusal} Shown: the tensor before it."
            return tensors, full if len(full) <= LONGEST else refusal
    return tensors, ""


def _after(link: Operation, t: torch.Tensor) -> torch.Tensor:
    """What the operation makes of a tensor, or a sentence on why it can't, which goes on from the operation."""
    try:
        after = getattr(t, link.name)(*link.arguments) if link.name else t[link.arguments]
    except TypeError:
        example = EXAMPLES.get(link.name, INDEX_EXAMPLE)
        raise ValueError(f"has the wrong numbers in it. Write it like {example}.") from None
    except (RuntimeError, IndexError, ValueError) as error:
        raise ValueError(f"is refused. {_why_no_view(link, t) or _torchs_words(error)}") from None
    elements = math.prod(after.shape)  # numel() overflows
    if max(elements, *after.shape, 0) > MOST_ELEMENTS or after.ndim > MOST_DIMENSIONS:
        raise ValueError(
            f"gives {after.ndim} dimensions, {elements:,} elements. This lab draws up to {MOST_DIMENSIONS} "
            f"and {MOST_ELEMENTS} elements, in each dimension too: take smaller ones."
        )
    return after


def _why_no_view(link: Operation, t: torch.Tensor) -> str:
    """Which strides stand in its way; nothing if it is no view, or one that is not even possible without strides."""
    if link.name != "view":
        return ""
    try:
        new_shape = torch.empty(t.shape).view(*link.arguments).shape
    except RuntimeError:
        return ""
    return layout.why_not_view(tuple(t.shape), t.stride(), tuple(new_shape))


def _torchs_words(error: Exception) -> str:
    first, *more = str(error).splitlines()
    said = f"{first} {more[0]}" if first.endswith(":") and more else first  # what it announces
    return f"torch says “{said.rstrip('.')}”."


def _described(chain: Chain, tensors: list[torch.Tensor], place: int) -> Tensor:
    t = tensors[place]
    name, storage = "base", "its own"
    if place:
        name = chain.links[place - 1].text
        storage = "shared" if layout.shares_storage(tensors[place - 1], t) else "copied"
    return Tensor(name, tuple(t.shape), t.stride(), t.storage_offset(), t.is_contiguous(), storage)
