"""A step of autograd on sizes alone: every operation's bytes, and when each storage is freed.

A `Storage` is here what a tensor's storage is for torch: it is held until the last name for it is
gone. So code that is written as the model's code is, with names for the same things, holds what the
model holds. `course_utils.core.predict.passes` is written in this way. For the same reason the code
below deletes a name wherever torch lets go of the tensor.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress

from course_utils.core.predict.storages import (
    ACTIVATIONS,
    GRADIENTS,
    PASS,
    PASSING,
    Back,
    Held,
    Operation,
    Parameter,
    Storage,
    Tensor,
    backs_of,
)

# The one operation of the backward pass whose gradient is a function written in Python: that of
# `models.layers.OneKernelRMSNorm`.
IN_PYTHON = "rms_norm_backward"
NO_RESULT = slice(0)  # for `keeps`, which slices an operation's results


class Node:
    """What autograd remembers of an operation.

    In the backward pass, the operations `back` make new gradients from those of the node's results.
    `edges` has a pair for each new gradient: the node or the parameter that gets the gradient, and
    which of that node's results the gradient is for (0 for a parameter).
    """

    __slots__ = ("back", "edges", "flat", "frame", "gradients", "layer", "number", "saved", "where")

    def __init__(
        self,
        tape: "Tape",
        edges: Sequence[tuple],
        back: Sequence[Back | None],
        results: int,
    ) -> None:
        """Make the node of an operation with `results` results, which have no gradients yet."""
        self.edges = edges
        self.back = back
        self.gradients: list[Storage | None] = [None] * results
        self.layer = tape.layer
        self.where = tape.where
        self.saved: tuple[Storage, ...] = ()
        self.flat = False  # whether the last edge gets its gradient first
        self.frame: Frame | None = None  # recomputes what this node does not save, if it is set
        self.number: int | None = None  # of this node, among the nodes of the frame

    @property
    def in_python(self) -> bool:
        """Whether torch computes the gradients by a function that is written in Python."""
        first = self.back[0]
        return first is not PASS and first.name == IN_PYTHON


class _StoppedEarly(Exception):  # noqa: N818  as in torch: no error
    """Everything that had to be saved has been computed a second time."""


class Frame:
    """A part of the model that is recomputed: in the forward pass, only its inputs are kept.

    The part runs a second time when the backward pass needs what one of its nodes would have saved.
    The function `run` runs the part. With `keeps_products`, some of its results are kept, too.
    """

    def __init__(
        self, tape: "Tape", run: Callable[[], Tensor], *, keeps_products: bool = False
    ) -> None:
        """Note the function that runs the part. Nothing runs yet: see `forward`."""
        self.tape = tape
        self.run = run
        self.keeps_products = keeps_products
        self.products_seen = 0  # how many products have run in this run
        # Results that the first run keeps for the second, one list for each operation.
        self.kept: list[list[Storage]] = []
        self.node_count = 0  # of the part's nodes that save something
        self.saved: list[tuple] | None = None  # what each of these saves; None until the second run

    def keeps(self, name: str) -> bool:
        """Count the operation that runs now, and return whether its results are kept.

        With `keeps_products`, the results of every other product and of fused attention are kept
        for the second run, as in torchtitan's selective checkpointing.
        """
        if name == "mm":
            self.products_seen += 1
        if not self.keeps_products:
            return False
        if name == "mm":
            return self.products_seen % 2 == 1  # the first one, the third, and so on
        return name.startswith("scaled_dot")  # fused attention

    def forward(self) -> Tensor:
        """Run the part for the first time, in which nodes save nothing; return its result."""
        self.tape.frame = self
        result = self.run()
        self.tape.frame = None
        self.products_seen = 0  # the second run counts them anew
        return result

    def saved_by(self, number: int) -> tuple:
        """Return the storages that the frame's node number `number` would have saved.

        The first call runs the part a second time. The frame gives the storages up, so that they
        are freed as soon as the caller lets go of them.
        """
        if self.saved is None:
            self._run_again()
        saved = self.saved[number]
        self.saved[number] = ()  # the frame holds it no longer
        return saved

    def _run_again(self) -> None:
        """Run the part a second time, in the midst of the backward pass, to fill `saved`."""
        tape = self.tape
        phase = tape.phase
        layer = tape.layer
        where = tape.where
        self.saved = []
        tape.rerun = self
        tape.phase = "recompute"
        with suppress(_StoppedEarly):  # `save` raises it once all is saved: no result is needed
            self.run()
        tape.rerun = None
        tape.phase = phase
        tape.layer = layer
        tape.where = where

    def save(self, saved: tuple[Storage, ...]) -> None:
        """Keep what a node saves in the second run, which stops when the last node has saved."""
        self.saved.append(saved)
        if len(self.saved) == self.node_count:
            raise _StoppedEarly


class Tape:
    """The operations of a step in their order, and the bytes that are held. Nothing is computed.

    `phase`, `layer` and `where` are written down with each operation, and are set before it.
    """

    def __init__(self, *, dtype_bytes: int, gradient_bytes: int, accumulate: bool) -> None:
        """Begin an empty tape. The bytes are those of one number, as in a StepConfig."""
        self.dtype_bytes = dtype_bytes
        self.gradient_bytes = gradient_bytes
        self.accumulate = accumulate
        self.held = [0] * len(Held._fields)  # bytes by part, at the moment
        self.rows: list[tuple] = []  # the operations' fields, without the last one, `after`
        self.afters: list[Held] = []  # `after` of each operation but the latest
        self.nodes: list[Node] = []
        self.gradients: list[Storage] = []  # of the parameters
        self.phase = "forward"
        self.layer: int | None = None
        self.where = ""
        self.frame: Frame | None = None  # the one that runs for the first time, if one does
        self.rerun: Frame | None = None  # the one that runs for the second time, if one does

    def run(
        self, name: str, *makes: int, reads: int = 0, flops: int = 0, part: int = PASSING
    ) -> list[Storage]:
        """Write an operation down, and return its results, of `makes` bytes each.

        The results are held from now on, and are counted in `part`.
        """
        if self.rows:  # what is held now is what the operation before has left
            self.afters.append(Held._make(self.held))
        made = [Storage(self.held, nbytes, part) for nbytes in makes]
        moved = reads + sum(makes)
        during = Held._make(self.held)
        self.rows.append((name, self.where, self.phase, self.layer, flops, moved, during))
        return made

    def one(self, name: str, nbytes: int, **options: int) -> Storage:
        """Write an operation with one result down, and return the result."""
        (made,) = self.run(name, nbytes, **options)
        return made

    def op(
        self,
        name: str,
        edges: Sequence[Tensor | Parameter],
        *makes: int,
        back: str | Sequence[str | Back | None],
        saves: Sequence[Tensor | Parameter] = (),
        keeps: slice = NO_RESULT,
        over: bool = False,
        flops_back: int | None = None,
        **options: int,
    ) -> Tensor:
        """Write an operation and its node down, and return the first of the results `makes`.

        `edges` are the inputs that get gradients. The node saves the inputs `saves` and the results
        `keeps`. If `back` is one name, that operation makes the gradients of all edges, each as
        large as its edge, or writes them `over` what was saved. Otherwise `back` has for each edge
        PASS, or the name of an operation that does not read that edge, or a whole Back. An
        operation of which only the name is given reads the result's gradient and all that was
        saved; it has as many FLOPs as the forward one, unless `flops_back` is given.
        """
        options.setdefault("reads", sum(edge.nbytes for edge in edges))  # unless it is given
        if flops_back is None:
            flops_back = options.get("flops", 0)
        kept_sizes = makes[keeps]
        saved_bytes = sum(kept_sizes) + sum(tensor.nbytes for tensor in saves)
        way_back = {
            "reads": makes[0] + saved_bytes,  # the first result's gradient is as large as that
            "flops": flops_back,
            "part": options.get("part", PASSING),
        }
        backs = backs_of(back, edges, saves, over, **way_back)
        saved = tuple(tensor.storage for tensor in saves if tensor.storage)  # a parameter has none
        if kept_sizes:
            made = self._made(name, makes, options)
            node = self.node(edges, backs, (*saved, *made[keeps]))
        else:
            node = self.node(edges, backs, saved)  # torch saves inputs before it computes
            made = self._made(name, makes, options)
        return Tensor(made[0], makes[0], node)

    def views(self, x: Tensor | Parameter, back: str, *sizes: int) -> list[Tensor]:
        """Return views of x, of `sizes` bytes: parts of its numbers, or all in another order.

        In the backward pass, the operation `back` makes one gradient for x of the views' gradients.
        """
        merged = Back(back, (x.nbytes,), reads=sum(sizes))
        node = self.node((x,), [merged], results=len(sizes))
        return [Tensor(x.storage, nbytes, node, place) for place, nbytes in enumerate(sizes)]

    def node(
        self,
        edges: Sequence[Tensor | Parameter],
        back: Sequence[Back | None],
        saved: tuple[Storage, ...] = (),
        results: int = 1,
    ) -> Node | None:
        """Return the new node of an operation: what the backward pass does for `edges`.

        A `Frame` is a part of the model that is recomputed. In its first run, its nodes save
        nothing, and note their numbers. While it runs for the second time, the frame takes `saved`,
        and there is no new node: the backward pass has those of the first run, and finds what they
        need by their numbers.
        """
        for storage in saved:
            storage.keep_as(ACTIVATIONS)
        if self.rerun:
            if saved:
                self.rerun.save(saved)
            return None

        targets = []
        for edge in edges:
            if isinstance(edge, Parameter):
                edge.uses += 1
                targets.append((edge, 0))
            else:
                targets.append((edge.node, edge.place))
        node = Node(self, targets, back, results)
        if not self.frame:
            node.saved = saved
        elif saved:  # in a frame's first run: the node notes its number, and saves nothing
            node.frame = self.frame
            node.number = self.frame.node_count
            self.frame.node_count += 1
        self.nodes.append(node)
        return node

    def _made(self, name: str, makes: tuple[int, ...], options: dict[str, int]) -> list[Storage]:
        """Return an operation's results: run it, or take what a frame kept in its first run."""
        frame = self.frame if self.rerun is None else self.rerun  # the one that runs, or None
        if frame is None or not frame.keeps(name):  # `keeps` also counts the products
            return self.run(name, *makes, **options)
        if self.rerun:
            return frame.kept.pop(0)  # operations run again in the same order
        made = self.run(name, *makes, **options)
        for storage in made:
            storage.keep_as(ACTIVATIONS)
        frame.kept.append(made)
        return made

    def backward(self, gradient: Storage) -> None:
        """Run the backward pass of all nodes, the last one first, as torch's engine does.

        `gradient` is that of the last operation's result, the loss.
        """
        self.nodes[-1].gradients[0] = gradient
        del gradient  # only the node holds it now, and lets go of it when it is used
        while self.nodes:
            node = self.nodes.pop()
            self.layer = node.layer
            self.where = node.where
            gradients = self._gradients(node)
            edges = node.edges
            if node.flat:
                edges = edges[::-1]
            else:
                gradients.reverse()  # `_hand_on` takes the last one
            del node
            for to, place in edges:
                self._hand_on(gradients, to, place)

    def _gradients(self, node: Node) -> list[Storage]:
        """Return a gradient for each edge of the node, and free what the node has saved.

        A parameter's gradient is cast to the gradients' dtype.
        """
        given = node.gradients  # of the node's results
        node.gradients = None  # from here on, only names hold them
        gradients = self._computed(node, given[0])
        if node.in_python:
            del given  # torch lets go of what such a function was given
        for place, back in enumerate(node.back):
            if back is not PASS and back.sums_to is not None:
                gradients[place] = self.one("sum", back.sums_to, reads=gradients[place].nbytes)
        for place, (to, _) in enumerate(node.edges):
            # The output's gradient is transposed first, so it is cast by `_hand_on`.
            if isinstance(to, Parameter) and node.where != "output":
                gradients[place] = self._cast(gradients[place], to)
        node.saved = ()
        node.frame = None
        return gradients

    def _computed(self, node: Node, given: Storage) -> list[Storage]:
        """Return a gradient for each edge of the node, as its operations make it.

        What was recomputed is freed when this returns, which is before a cast. What was saved is
        freed after it.
        """
        gradients = [given] * len(node.edges)  # what PASS hands on
        recomputed = node.frame.saved_by(node.number) if node.frame else ()  # noqa: F841  held
        for place, back in enumerate(node.back):
            if back is PASS:  # the edge has its gradient already
                continue
            results = self._run_back(back)
            if not back.makes:  # they were written over what was saved, in the edges' order
                results = node.saved[: len(node.edges)]
            # An operation for all edges is the only one of its node, at place 0.
            for number, storage in enumerate(results, place):
                gradients[number] = storage
            del results, storage  # so that no name here holds them while the next one runs
        return gradients

    def _run_back(self, back: Back) -> list[Storage]:
        """Run an operation of the backward pass, after the zeros that it may need."""
        if back.onto_zeros:  # these are freed when this method returns
            zeros = self.one("new_zeros", *back.makes)  # noqa: F841  a name is what holds them
        return self.run(back.name, *back.makes, reads=back.reads, flops=back.flops, part=back.part)

    def _hand_on(self, gradients: list[Storage], to: Node | Parameter, place: int) -> None:
        """Give the last of the gradients to the node or parameter `to`, for its result `place`.

        The gradient is removed from the list. If `to` has one already, the two are added.
        """
        earlier = to.gradients[place]
        gradient = gradients.pop()
        if isinstance(to, Parameter):  # only the output's gradient is not cast yet: see _gradients
            gradient = self._cast(gradient, to)
        if earlier is not None:
            gradient = self.one("add", gradient.nbytes, reads=2 * gradient.nbytes)
        to.gradients[place] = gradient
        del earlier, gradient  # no name here may hold them longer than torch does
        if isinstance(to, Parameter):
            to.uses -= 1
            if to.uses == 0:  # the gradient is complete
                self._accumulate(to)

    def _cast(self, gradient: Storage, parameter: Parameter) -> Storage:
        """Return a parameter's gradient in the gradients' dtype: itself, or a copy."""
        numbers = parameter.nbytes // self.dtype_bytes
        nbytes = numbers * self.gradient_bytes
        if gradient.nbytes == nbytes:
            return gradient
        return self.one("_to_copy", nbytes, reads=gradient.nbytes)

    def _accumulate(self, parameter: Parameter) -> None:
        """Keep the parameter's gradient, or add it to the gradient of an earlier batch."""
        gradient = parameter.gradients.pop()
        if self.accumulate:
            # In place, so nothing is made. The earlier gradient was held before the step.
            self.run("add_", reads=2 * gradient.nbytes)
            return
        gradient.move_to(GRADIENTS)
        self.gradients.append(gradient)

    def written(self) -> list[Operation]:
        """Return all operations, each with what is held while it runs, and after it."""
        # `run` adds what an operation leaves when the next one begins; the last one has no next.
        afters = [*self.afters, Held._make(self.held)]
        return [Operation(*row, after) for row, after in zip(self.rows, afters, strict=True)]
