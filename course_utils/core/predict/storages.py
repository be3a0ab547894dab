"""What a tape holds, which is storages, tensors and parameters, and the operations on it."""

from collections.abc import Sequence
from typing import NamedTuple


class Held(NamedTuple):
    """The bytes that are held, by what they are for."""

    parameters: int = 0
    gradients: int = 0
    optimizer: int = 0
    master: int = 0
    activations: int = 0  # what autograd keeps
    logits: int = 0  # with all that the loss computes from them
    passing: int = 0  # what is held for a few operations
    gathered: int = 0  # what each machine has whole for a while, where each holds only a part

    @property
    def total(self) -> int:
        """The bytes of all parts together."""
        return sum(self)


# The positions of these parts in a `Held`.
GRADIENTS = Held._fields.index("gradients")
ACTIVATIONS = Held._fields.index("activations")
LOGITS = Held._fields.index("logits")
PASSING = Held._fields.index("passing")


class Operation(NamedTuple):
    """One operation of a step, with the bytes that are held."""

    name: str  # as torch calls it
    where: str  # such as "query", "norm1", "cross-entropy"
    phase: str  # "forward", "loss", "backward", "recompute" or "optimizer"
    layer: int | None  # from 0
    flops: int
    moved: int  # bytes that it reads and writes
    during: Held  # while the operation runs
    after: Held  # once all that is no longer needed has been freed


class Storage:
    """`nbytes` bytes, which are held as long as a name or a node refers to this object."""

    __slots__ = ("held", "nbytes", "part")

    def __init__(self, held: list[int], nbytes: int, part: int) -> None:
        """Count `nbytes` more bytes in the part at position `part` of `held`."""
        self.held = held  # the tape's own list: the bytes of all its storages, by part
        self.nbytes = nbytes
        self.part = part
        held[part] += nbytes

    def __del__(self) -> None:
        """Stop counting the bytes: nothing refers to this storage any more."""
        self.held[self.part] -= self.nbytes

    def keep_as(self, part: int) -> None:
        """Count these bytes in that part from now on, if they are counted in PASSING so far.

        Bytes that have another part already, such as the logits, stay in it.
        """
        if self.part == PASSING:
            self.move_to(part)

    def move_to(self, part: int) -> None:
        """Count these bytes in that part from now on."""
        self.held[self.part] -= self.nbytes
        self.held[part] += self.nbytes
        self.part = part


class Parameter:
    """A matrix or a vector that is trained.

    Its gradient is complete when each operation that uses the parameter has added a gradient.
    """

    __slots__ = ("gradients", "nbytes", "uses")
    storage = None  # a parameter is held before the step, and not counted on the tape

    def __init__(self, nbytes: int) -> None:
        self.nbytes = nbytes
        self.uses = 0  # how many operations have still to add a gradient
        # A list of one gradient, because a node has a list, too, with a gradient for each result:
        # so the tape sets `gradients[place]` for a node and for a parameter alike.
        self.gradients: list[Storage | None] = [None]


class Tensor(NamedTuple):
    """`nbytes` bytes of a storage: the result number `place` of a node."""

    storage: Storage | None  # None for a view of a parameter, which the tape does not count
    nbytes: int
    node: object = None  # a Node of the tape; None without a gradient, or in a frame's second run
    place: int = 0  # among the results of the node


class Back(NamedTuple):
    """An operation of the backward pass, which makes the gradient of one edge or of all edges.

    An edge is an input of the forward operation that gets a gradient.
    """

    name: str
    makes: tuple[int, ...]  # bytes of each gradient; empty if they are written over what was saved
    reads: int  # bytes
    flops: int = 0
    part: int = PASSING  # in which its gradients are counted
    onto_zeros: bool = False  # whether it adds to zeros, as many as it makes, which come first
    sums_to: int | None = None  # bytes of the edge, if its gradient is a sum over what is made


PASS = None  # in place of a `Back`: the edge gets the result's gradient itself


def backs_of(
    names: str | Sequence[str | Back | None],
    edges: Sequence[Tensor | Parameter],
    saves: Sequence[Tensor | Parameter],
    over: bool,
    *,
    reads: int,
    flops: int,
    part: int,
) -> list[Back | None]:
    """Return the operations of the backward pass: one for all edges, or for each edge one or PASS.

    One that is a Back already stays as it is.
    `reads`, `flops` and `part` are those of each operation. An operation for one edge does not read
    that edge: the gradient of a factor, for example, is made of the other factor.
    """
    if isinstance(names, str):
        sizes = tuple(edge.nbytes for edge in edges)
        if over:
            # The gradients are written over what was saved, so no storage is made. What is moved
            # is counted as what is read and what is made, so here it is all among the reads.
            read_and_written = reads + sum(sizes)
            return [Back(names, (), read_and_written, flops, part)]
        return [Back(names, sizes, reads, flops, part)]
    backs = []
    for name, edge in zip(names, edges, strict=True):
        if name is PASS or isinstance(name, Back):
            backs.append(name)
            continue
        without_edge = reads - edge.nbytes if edge in saves else reads
        backs.append(Back(name, (edge.nbytes,), without_edge, flops, part))
    return backs
