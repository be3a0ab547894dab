"""A chain of layers, and the matrix products of its forward and its backward pass in order."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from course_utils.engine.labs.fields import Said, tick, whole

ROWS = 1024  # of data
WIDTH = 256  # of the data, and of each layer's result; of the last one's only if layers are equal
LAST_WIDTH = 64
MOST_LAYERS = 6
PRESETS: Mapping[str, Mapping[str, object]] = {
    "which is made of which?": {"layers": 2, "wanted": True, "product": 4},
    "and with plain data?": {"layers": 2, "wanted": False, "product": 5},
    "how many in six layers?": {"layers": 6, "wanted": False, "product": 17},
}
# The kinds of products. They are also classes of picture.css, for the colours of their results.
FORWARD = "forward"
WEIGHT_GRADIENT = "weight_gradient"
INPUT_GRADIENT = "input_gradient"


@dataclass(frozen=True)
class Product:
    """A product of two matrices: what it makes, what it reads, and the FLOPs that it takes.

    `kind` is FORWARD, WEIGHT_GRADIENT or INPUT_GRADIENT.
    """

    makes: str  # such as "h1", the result of layer 1, or "w1.grad"
    reads: tuple[str, str]  # such as ("x", "w1")
    kind: str
    flops: int


def _products_in_all(said: Said) -> int:
    """Return how many products there are: three for each layer, without x.grad one fewer."""
    in_all = 3 * said["layers"]
    return in_all if said["wanted"] else in_all - 1


@dataclass(frozen=True)
class Chain:
    """A number of layers, whether x needs a gradient, and how many products have been done."""

    # Of each `whole`: its label, its default, the least and the most.
    layers: int = whole("layers", 2, 1, MOST_LAYERS, width_px=230)
    wanted: bool = tick("x needs a gradient", True)
    equal: bool = tick("equal layers", False)
    product: int = whole("products done", 6, 0, _products_in_all, play=True)

    @property
    def done(self) -> int:
        """How many products have been done: `product`, but at most all that there are."""
        return min(self.product, len(self.products))

    @property
    def result(self) -> str:
        """The name of the last layer's result."""
        return f"h{self.layers}"

    @property
    def activations(self) -> Sequence[str]:
        """The names of the data and of each layer's result."""
        return ["x", *(f"h{layer}" for layer in range(1, self.layers + 1))]

    @property
    def weights(self) -> Sequence[str]:
        """The names of the layers' weights."""
        return [f"w{layer}" for layer in range(1, self.layers + 1)]

    def shape(self, name: str) -> tuple[int, int]:
        """Return the rows and columns of a matrix, such as "h1" or "w1.grad".

        A gradient has the shape of its matrix.
        """
        name = name.removesuffix(".grad")
        rows = WIDTH if name in self.weights else ROWS
        is_last = name in (self.result, self.weights[-1])
        columns = LAST_WIDTH if is_last and not self.equal else WIDTH
        return rows, columns

    @cached_property
    def products(self) -> Sequence[Product]:
        """All products, in the order in which they are done."""
        layers = [self._layer(number) for number in range(1, self.layers + 1)]
        products = [forward for forward, *_ in layers]
        for _, *backward in reversed(layers):  # from the last layer to the first
            products += backward  # the weight gradient, then the input gradient
        if not self.wanted:
            products.pop()  # x.grad would be the last
        return products

    def _layer(self, number: int) -> tuple[Product, Product, Product]:
        """Return the three products of a layer; each has 2 FLOPs for each weight and row."""
        before = self.activations[number - 1]  # the input of layer 1 is "x"
        made = self.activations[number]
        weight = self.weights[number - 1]  # layers are counted from 1
        gradient = f"{made}.grad"  # that of the layer's result, which both backward products read
        rows, columns = self.shape(weight)
        flops = 2 * ROWS * rows * columns
        return (
            Product(made, (before, weight), FORWARD, flops),
            Product(f"{weight}.grad", (before, gradient), WEIGHT_GRADIENT, flops),
            Product(f"{before}.grad", (gradient, weight), INPUT_GRADIENT, flops),
        )
