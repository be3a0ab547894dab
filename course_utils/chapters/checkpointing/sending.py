"""GPUs that have nothing in common but their links, and the bytes that cross these links.

Each GPU is a number here, and uses only tensors of its own. What it needs of another GPU crosses a
link as bytes, which are counted, and a new tensor is made of them. So what a step sends can be
counted on a CPU, without any formula. The ring of `on_lists` is the reader's; here it has tensors,
and gradients go back over it.
"""

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.autograd.function import FunctionCtx


class Links:
    """Links from every GPU to every other one. `sent` has the bytes that each GPU has sent."""

    def __init__(self, gpus: int) -> None:
        self.gpus = gpus
        self.sent = [0] * gpus

    def carried(self, tensor: Tensor, source: int, destination: int) -> Tensor:
        """Return the tensor as it arrives: a new one, made of the bytes that the source sent.

        Within one GPU nothing is sent.
        """
        if source == destination or tensor.numel() == 0:
            return tensor.clone()
        content = bytearray(tensor.detach().contiguous().view(torch.uint8).numpy())
        self.sent[source] += len(content)
        return torch.frombuffer(content, dtype=tensor.dtype).view(tensor.shape)


# A ring: each GPU sends only to the next one, and in each round one part of the tensor.


def reduced_and_scattered(links: Links, tensors: Sequence[Tensor]) -> list[Tensor]:
    """Add up the GPUs' tensors, and return the part of the sum that each GPU gets.

    GPU number n gets the n-th part, as `tensor_split` cuts the numbers into one part for each GPU.
    """
    gpus = links.gpus
    parts = [list(tensor.flatten().tensor_split(gpus)) for tensor in tensors]
    for round_number in range(gpus - 1):
        arriving = []
        for gpu in range(gpus):
            next_gpu = (gpu + 1) % gpus
            number = (gpu - 1 - round_number) % gpus  # of the part that just came to this GPU
            arrived = links.carried(parts[gpu][number], gpu, next_gpu)
            arriving.append((next_gpu, number, arrived))
        for gpu, number, arrived in arriving:
            parts[gpu][number] = parts[gpu][number] + arrived
    return [parts[gpu][gpu] for gpu in range(gpus)]


def gathered(links: Links, parts: Sequence[Tensor]) -> list[Tensor]:
    """Return for each GPU all the parts behind each other, of which each GPU has one so far."""
    gpus = links.gpus
    held = [{gpu: parts[gpu]} for gpu in range(gpus)]  # parts by number, of each GPU
    for round_number in range(gpus - 1):
        for gpu in range(gpus):
            next_gpu = (gpu + 1) % gpus
            number = (gpu - round_number) % gpus
            held[next_gpu][number] = links.carried(held[gpu][number], gpu, next_gpu)
    return [torch.cat([held[gpu][number] for number in range(gpus)]) for gpu in range(gpus)]


def all_reduced(links: Links, tensors: Sequence[Tensor]) -> list[Tensor]:
    """Return for each GPU the sum of all GPUs' tensors, in the tensors' shape."""
    sums = gathered(links, reduced_and_scattered(links, tensors))
    return [total.view(tensor.shape) for total, tensor in zip(sums, tensors, strict=True)]


# What autograd needs to go back over a link: a gradient takes the same way in the other direction.


class _Moved(torch.autograd.Function):
    """A tensor that goes to another GPU; its gradient comes back."""

    @staticmethod
    def forward(
        ctx: FunctionCtx, tensor: Tensor, links: Links, source: int, destination: int
    ) -> Tensor:
        ctx.way = (links, source, destination)
        return links.carried(tensor, source, destination)

    @staticmethod
    def backward(ctx: FunctionCtx, gradient: Tensor) -> tuple[Tensor, None, None, None]:
        links, source, destination = ctx.way
        return links.carried(gradient, destination, source), None, None, None


class _Summed(torch.autograd.Function):
    """The sum of all GPUs' tensors, on each GPU.

    Behind it all GPUs compute the same. So each has the gradient of the sum already, and that is
    the gradient of its own term, too: backward, nothing is sent.
    """

    @staticmethod
    def forward(ctx: FunctionCtx, links: Links, *tensors: Tensor) -> tuple[Tensor, ...]:
        return tuple(all_reduced(links, tensors))

    @staticmethod
    def backward(ctx: FunctionCtx, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        return (None, *gradients)


class _Shared(torch.autograd.Function):
    """A tensor that all GPUs have, where each begins with its own part of a layer.

    Forward, nothing is sent. Backward, each GPU has the gradient by way of its own part alone, so
    that these have to be added up.
    """

    @staticmethod
    def forward(ctx: FunctionCtx, links: Links, *tensors: Tensor) -> tuple[Tensor, ...]:
        ctx.links = links
        return tuple(tensor.clone() for tensor in tensors)

    @staticmethod
    def backward(ctx: FunctionCtx, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        return (None, *all_reduced(ctx.links, gradients))


class _Gathered(torch.autograd.Function):
    """All GPUs' parts behind each other, on each GPU.

    Backward, each GPU has a gradient of all parts, and each part's gradient is the sum of these.
    """

    @staticmethod
    def forward(ctx: FunctionCtx, links: Links, *parts: Tensor) -> tuple[Tensor, ...]:
        ctx.links = links
        ctx.shape = parts[0].shape
        return tuple(gathered(links, parts))

    @staticmethod
    def backward(ctx: FunctionCtx, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        parts = reduced_and_scattered(ctx.links, gradients)
        return (None, *(part.view(ctx.shape) for part in parts))


def moved(tensor: Tensor, links: Links, source: int, destination: int) -> Tensor:
    """Return the tensor on another GPU. Its gradient comes back over the links, too."""
    return _Moved.apply(tensor, links, source, destination)


def summed(links: Links, tensors: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """Return for each GPU the sum of all GPUs' tensors; backward, nothing is sent."""
    return _Summed.apply(links, *tensors)


def shared(links: Links, tensors: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """Return the tensors, which are equal; backward, their gradients are added up."""
    return _Shared.apply(links, *tensors)


def gathered_with_gradients(links: Links, parts: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """Return what `gathered` does, for parts of one shape; gradients are reduced and scattered."""
    return _Gathered.apply(links, *parts)
