"""Training on GPUs that are lists of numbers, so that every number that is sent can be counted.

The ring is the reader's: `pass_round(lists, first, adds)` passes pieces round, and returns how many
numbers each GPU has sent. With `first` 0 and `adds`, it is a reduce-scatter. After that, GPU i has
the complete piece i + 1, and with `first` 1 an all-gather passes these pieces to all.
"""

from collections.abc import Callable

Numbers = list[int | None]  # of one GPU; None is a number that it does not have
Ring = Callable[[list, int, bool], list[int]]


def sharded_step(weights: list[Numbers], stage: int, pass_round: Ring) -> tuple[int, int]:
    """Train a step under ZeRO's stage; return how many weights and gradients each GPU has sent.

    A GPU forgets what its stage does not let it keep, so a step that gathers too little fails. On
    GPU i, the gradient of each weight is the weight times i + 1. The learning rate is 1.
    """
    sent_weights = 0
    for _pass in ("forward", "backward"):
        if stage == 3:
            _forget(weights)
            sent_weights += pass_round(weights, 1, adds=False)[0]
    gradients = [[(gpu + 1) * weight for weight in own] for gpu, own in enumerate(weights)]
    sent_gradients = pass_round(gradients, 0, adds=True)[0]
    if stage == 0:
        sent_gradients += pass_round(gradients, 1, adds=False)[0]
    else:
        _forget(gradients)
    for gpu, own in enumerate(weights):
        weights[gpu] = _updated(own, gradients[gpu])
    if stage in (1, 2):
        sent_weights += pass_round(weights, 1, adds=False)[0]
    return sent_weights, sent_gradients


def _forget(lists: list[Numbers]) -> None:
    """Leave each GPU only its own piece."""
    size = len(lists[0]) // len(lists)
    for gpu, numbers in enumerate(lists):
        its_piece = (gpu + 1) % len(lists)
        for place in range(len(numbers)):
            if place // size != its_piece:
                numbers[place] = None


def _updated(weights: Numbers, gradients: Numbers) -> Numbers:
    """Return the new weights where the gradient's sum is known, and elsewhere None."""
    pairs = zip(weights, gradients, strict=True)
    return [None if gradient is None else weight - gradient for weight, gradient in pairs]


def joined(weights: list[Numbers]) -> list[int]:
    """Return all weights, each from a GPU that has it. ValueError if two GPUs disagree."""
    together = []
    for place, numbers in enumerate(zip(*weights, strict=True)):
        known = {number for number in numbers if number is not None}
        if len(known) != 1:
            raise ValueError(f"For weight {place}, the GPUs have {sorted(known)}.")
        together.append(known.pop())
    return together
