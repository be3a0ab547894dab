"""What a tape holds: storages and their parts, tensors, parameters, and the operations that it writes down."""

from typing import NamedTuple


class Held(NamedTuple):
    """Bytes of each part."""

    parameters: int = 0
    gradients: int = 0
    optimizer: int = 0
    master: int = 0
    activations: int = 0  # what autograd keeps
    logits: int = 0  # and what the loss makes of them
    passing: int = 0  # held for a few operations
    gathered: int = 0  # whole, of what machines hold in parts

    @property
    def total(self) -> int:
        return sum(self)


GRADIENTS, ACTIVATIONS, LOGITS, PASSING = map(
    Held._fields.index, ("gradients", "activations", "logits", "passing")
)


class Operation(NamedTuple):
    """One operation of a step, what is held while it runs, and what is held once all that can go is gone."""

    name: str  # as torch calls it
    where: str  # such as "query", "norm1", "cross-entropy"
    phase: str  # "forward", "loss", "backward", "recompute" or "optimizer"
    layer: int | None  # from 0
    flops: int
    moved: int  # bytes that it reads and writes
    during: Held
    after: Held


class Storage:
    """So many bytes, held until nothing points here any more."""

    __slots__ = ("held", "nbytes", "part")

    def __init__(self, held: list[int], nbytes: int, part: int) -> None:
        self.held, self.nbytes, self.part = held, nbytes, part
        held[part] += nbytes

    def __del__(self) -> None:
        self.held[self.part] -= self.nbytes

    def keep_as(self, part: int) -> None:
        """Count these bytes in that part from now on, if they were held only in passing."""
        if self.part == PASSING:
            self.move_to(part)

    def move_to(self, part: int) -> None:
        """Count these bytes in that part from now on."""
        self.held[self.part] -= self.nbytes
        self.held[part] += self.nbytes
        self.part = part


class Parameter:
    """A matrix or a vector: how often a pass uses it, and the gradient that waits for all of them."""

    __slots__ = ("gradients", "nbytes", "uses")
    storage = None  # it is there before the step

    def __init__(self, nbytes: int) -> None:
        self.nbytes, self.uses = nbytes, 0
        self.gradients: list[Storage | None] = [None]


class Tensor(NamedTuple):
    """So many bytes of a storage, and which result of which node they are."""

    storage: Storage | None
    nbytes: int
    node: object = None  # a Node of the tape
    place: int = 0


class Back(NamedTuple):
    """An operation of the backward pass: gradients for an edge of its node, or for all of them."""

    name: str
    makes: tuple[int, ...]  # bytes of each; if none, they are written over what was saved
    reads: int
    flops: int = 0
    part: int = PASSING


PASS = None  # the gradient itself
