"""A step of autograd on sizes alone: every operation's bytes, and when each storage goes.

What a tensor's storage is for torch, a `Storage` is here: it is held until the last name for it is gone. So code that
is written as a model's is, with names for the same things (`course_utils.core.predict.passes`), holds what the model holds.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress

from course_utils.core.predict.storages import (
    ACTIVATIONS,
    GRADIENTS,
    PASSING,
    Back,
    Held,
    Operation,
    Parameter,
    Storage,
    Tensor,
)


class Node:
    """What the backward pass makes of the gradients of an operation's results, and to whom it hands that."""

    __slots__ = ("back", "edges", "frame", "gradients", "layer", "place", "saved", "where")

    def __init__(
        self, tape: "Tape", edges: tuple, back: Sequence[Back | None], saved: tuple, results: int
    ) -> None:
        self.edges, self.back, self.saved, self.frame = edges, back, saved, None
        self.gradients: list[Storage | None] = [None] * results
        self.layer, self.where = tape.layer, tape.where


class _StoppedEarly(Exception):  # noqa: N818  as in torch: no error
    """Everything that had to be saved has been computed a second time."""


class Frame:
    """A part of the model that keeps its inputs alone, and runs once more when one of its nodes is asked."""

    def __init__(self, tape: "Tape", run: Callable[[], Tensor], *, products: bool = False) -> None:
        self.tape, self.run, self.count, self.seen = tape, run, 0, 0
        self.saved: list[tuple] | None = None
        self.products = products  # of every other one, the result is kept
        self.kept: list[list[Storage]] = []

    def keeps(self, name: str) -> bool:
        """Whether what that operation makes is kept: every other product, and fused attention."""
        self.seen += name == "mm"
        return self.products and (
            self.seen % 2 == 1 if name == "mm" else name.startswith("scaled_dot")
        )

    def forward(self) -> Tensor:
        """The first run: its nodes keep nothing."""
        self.tape.frame = self
        result = self.run()
        self.tape.frame, self.seen = None, 0
        return result

    def saved_by(self, place: int) -> tuple:
        """What the node of that number would have saved."""
        if self.saved is None:
            self._run_again()
        saved, self.saved[place] = self.saved[place], ()
        return saved

    def _run_again(self) -> None:
        tape = self.tape
        here = tape.phase, tape.layer, tape.where
        self.saved, tape.again, tape.phase = [], self, "recompute"
        with suppress(_StoppedEarly):
            self.run()
        tape.again = None
        tape.phase, tape.layer, tape.where = here

    def save(self, saved: tuple[Storage, ...]) -> None:
        """Keep what a node saves in the second run; stop when the last node has saved."""
        self.saved.append(saved)
        if len(self.saved) == self.count:
            raise _StoppedEarly


class Tape:
    """The operations of a step, one after the other, and what is held."""

    def __init__(self, *, dtype_bytes: int, gradient_bytes: int, accumulate: bool) -> None:
        self.held = [0] * len(Held._fields)
        self.rows: list[tuple] = []
        self.afters: list[Held] = []
        self.nodes: list[Node] = []
        self.gradients: list[Storage] = []  # that parameters have
        self.phase, self.layer, self.where = "forward", None, ""
        self.frame: Frame | None = None  # that is recorded
        self.again: Frame | None = None  # that runs once more
        self.accumulate, self.sizes = accumulate, (dtype_bytes, gradient_bytes)

    def run(
        self, name: str, *makes: int, reads: int = 0, flops: int = 0, part: int = PASSING
    ) -> list[Storage]:
        """Write one operation down. What it makes is held from now on."""
        if self.rows:
            self.afters.append(Held._make(self.held))
        made = [Storage(self.held, nbytes, part) for nbytes in makes]
        moved = reads + sum(makes)
        self.rows.append(
            (name, self.where, self.phase, self.layer, flops, moved, Held._make(self.held))
        )
        return made

    def one(self, name: str, nbytes: int, **options: int) -> Storage:
        """Write an operation with one result down."""
        return self.run(name, nbytes, **options)[0]

    def op(
        self,
        name: str,
        edges: Sequence[Tensor | Parameter],
        *makes: int,
        back: str | Sequence[str | None],
        saves: Sequence[Tensor | Parameter] = (),
        keeps: slice = slice(0),
        over: bool = False,
        flops_back: int | None = None,
        **options: int,
    ) -> Tensor:
        """An operation and its node, which keeps the inputs `saves` and the results `keeps`. The first result.

        `back` names the operation that makes the gradients of all edges, as large as they are, or writes them `over` what
        was saved. It reads the result's gradient and all that was saved. Or it names one for each edge, which does not
        read that edge, or PASS. Each has as many FLOPs as the operation itself if `flops_back` says nothing else.
        """
        sizes = tuple([one.nbytes for one in edges])
        options = {"reads": sum(sizes)} | options
        reads = sum([makes[0], *makes[keeps], *[one.nbytes for one in saves]])
        also = (
            options.get("flops", 0) if flops_back is None else flops_back,
            options.get("part", PASSING),
        )
        if isinstance(back, str):
            ways = [Back(back, () if over else sizes, reads + over * sum(sizes), *also)]
        else:
            ways = [
                way and Back(way, (one.nbytes,), reads - one.nbytes * (one in saves), *also)
                for way, one in zip(back, edges, strict=True)
            ]
        saved = tuple(one.storage for one in saves if one.storage)
        if not keeps.stop:  # torch keeps inputs before it computes
            node = self.node(edges, ways, saved)
            return Tensor(self._made(name, makes, options)[0], makes[0], node)
        made = self._made(name, makes, options)
        return Tensor(made[0], makes[0], self.node(edges, ways, (*saved, *made[keeps])))

    def views(self, x: Tensor | Parameter, back: str, *sizes: int) -> list[Tensor]:
        """Parts of a tensor's numbers, or all in another order. On the way back one gradient is made of theirs."""
        node = self.node((x,), [Back(back, (x.nbytes,), sum(sizes))], results=len(sizes))
        return [Tensor(x.storage, nbytes, node, place) for place, nbytes in enumerate(sizes)]

    def node(
        self,
        edges: Sequence[Tensor | Parameter],
        back: Sequence[Back | None],
        saved: tuple[Storage, ...] = (),
        results: int = 1,
    ) -> Node | None:
        """Remember what the backward pass does. `edges` are the tensors and parameters that get its gradients."""
        for storage in saved:
            storage.keep_as(ACTIVATIONS)
        if self.again:
            return self.again.save(saved) if saved else None
        for edge in edges:
            if isinstance(edge, Parameter):
                edge.uses += 1
        targets = tuple((e, 0) if isinstance(e, Parameter) else (e.node, e.place) for e in edges)
        node = Node(self, targets, back, () if self.frame else saved, results)
        if self.frame and saved:
            node.frame, node.place = self.frame, self.frame.count
            self.frame.count += 1
        self.nodes.append(node)
        return node

    def _made(self, name: str, makes: tuple[int, ...], options: dict[str, int]) -> list[Storage]:
        """As `run`. If this operation's result is kept although the rest is recomputed, the second run takes the kept result."""
        frame = self.again or self.frame
        kept = frame and frame.keeps(name)
        if kept and self.again:
            return frame.kept.pop(0)
        made = self.run(name, *makes, **options)
        for storage in made if kept else ():
            storage.keep_as(ACTIVATIONS)
        if kept:
            frame.kept.append(made)
        return made

    def backward(self, gradient: Storage) -> None:
        """Run all nodes, the last one first, as torch's engine does."""
        self.nodes[-1].gradients[0] = gradient
        del gradient
        while self.nodes:
            node = self.nodes.pop()
            self.layer, self.where = node.layer, node.where
            made, edges = self._gradients(node), node.edges
            del node
            made.reverse()
            for to, place in edges:
                self._hand_on(made, to, place)

    def _gradients(self, node: Node) -> list[Storage]:
        """What the node makes for each of its edges, a parameter's in the gradients' dtype. After that, what it saved is gone."""
        given, node.gradients = node.gradients, None
        edges, again = [given[0]] * len(node.edges), node.frame and node.frame.saved_by(node.place)
        for place, made in enumerate(node.back):
            if made:
                name, makes, reads, flops, part = made
                results = self.run(name, *makes, reads=reads, flops=flops, part=part)
                for edge, storage in enumerate(results or node.saved[: len(edges)], place):
                    edges[edge] = storage
                results = storage = None
        del again  # what was computed once more goes before a cast, what was kept goes after it
        for place, (to, _) in enumerate(node.edges):
            # The output's gradient is transposed, so it is cast later.
            if isinstance(to, Parameter) and node.where != "output":
                edges[place] = self._cast(edges[place], to)
        node.saved = node.frame = None
        return edges

    def _hand_on(self, made: list[Storage], to: Node | Parameter, place: int) -> None:
        """Give a gradient to the node or parameter that waits for it. If it has one already, the two are added."""
        there, gradient = to.gradients[place], made.pop()
        if isinstance(to, Parameter):
            gradient = self._cast(gradient, to)
        if there is not None:
            gradient = self.one("add", gradient.nbytes, reads=2 * gradient.nbytes)
        to.gradients[place] = gradient
        del there, gradient
        if isinstance(to, Parameter):
            to.uses -= 1
            if not to.uses:
                self._accumulate(to)

    def _cast(self, gradient: Storage, parameter: Parameter) -> Storage:
        """A parameter's gradient in the gradients' dtype."""
        made, kept = self.sizes
        nbytes = parameter.nbytes // made * kept
        return (
            gradient
            if gradient.nbytes == nbytes
            else self.one("_to_copy", nbytes, reads=gradient.nbytes)
        )

    def _accumulate(self, parameter: Parameter) -> None:
        """Make a gradient the parameter's, or add it to that of an earlier batch."""
        gradient = parameter.gradients.pop()
        if self.accumulate:
            self.run("add_", reads=2 * gradient.nbytes)
            return
        gradient.move_to(GRADIENTS)
        self.gradients.append(gradient)

    def written(self) -> list[Operation]:
        """All operations, with what is held while they run and after what goes."""
        self.afters.append(Held._make(self.held))
        return [Operation(*row, after) for row, after in zip(self.rows, self.afters, strict=True)]
