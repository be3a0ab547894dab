"""The chain lab against torch's autograd."""

from dataclasses import replace

import pytest
import torch

from course_utils.chapters.gradients.chain_lab.asked import (
    FORWARD,
    MOST_LAYERS,
    WEIGHT_GRADIENT,
    Chain,
    Product,
)
from course_utils.chapters.gradients.chain_lab.picture import BAR_LEFT, WIDTH, view
from course_utils.core import measure
from tests.helpers.labs import fresh, nodes

CHAINS = [
    Chain(layers=layers, wanted=wanted, equal=equal)
    for layers in range(1, MOST_LAYERS + 1)
    for wanted in (True, False)
    for equal in (True, False)
]
lab = fresh("chain")


def run_by_torch(chain: Chain) -> tuple[dict[str, torch.Tensor], int]:
    """Each matrix and each gradient of torch's own step by name, and the step's FLOPs."""
    draw = torch.Generator().manual_seed(0)
    held = {}
    for name in ("x", *chain.weights):
        rows, columns = chain.shape(name)
        held[name] = torch.randn(rows, columns, generator=draw) / rows**0.5
        held[name].requires_grad_(name != "x" or chain.wanted)

    def step() -> None:
        h = held["x"]
        for name, weight in zip(chain.activations[1:], chain.weights, strict=True):
            h = h @ held[weight]
            h.retain_grad()
            held[name] = h
        h.pow(2).mean().backward()

    flops = measure.flops(step).total
    for name in list(held):
        if held[name].grad is not None:
            held[f"{name}.grad"] = held[name].grad
    return {name: tensor.detach() for name, tensor in held.items()}, flops


def computed(product: Product, held: dict[str, torch.Tensor]) -> torch.Tensor:
    """What the product makes of the two matrices that it reads."""
    first, second = (held[name] for name in product.reads)
    if product.kind == FORWARD:
        return first @ second
    return first.T @ second if product.kind == WEIGHT_GRADIENT else first @ second.T


@pytest.mark.parametrize("chain", CHAINS)
def test_its_products_make_what_torch_makes_in_an_order_that_can_be_done(chain):
    held, flops = run_by_torch(chain)
    assert sum(product.flops for product in chain.products) == flops
    given = {"x", *chain.weights}
    there = set(given)
    for product in chain.products:
        if product.kind != FORWARD:
            there.add(f"{chain.result}.grad")  # the loss's own derivative, which is no product
        assert set(product.reads) <= there
        there.add(product.makes)
        torch.testing.assert_close(computed(product, held), held[product.makes])
    assert there == set(held)
    assert {name: chain.shape(name) for name in held} == {
        name: tuple(tensor.shape) for name, tensor in held.items()
    }


@pytest.mark.parametrize("chain", CHAINS)
def test_what_is_done_has_its_full_colour_and_the_bar_is_as_long_as_the_flops(chain):
    for done in range(len(chain.products) + 1):
        asked = replace(chain, product=done)
        picture = view(asked, None).picture
        made = widths_of_boxes(picture, later=False)
        to_come = widths_of_boxes(picture, later=True)
        # Each product has a box in the chain and one in the bar.
        assert (len(made), len(to_come)) == (2 * done, 2 * (len(chain.products) - done))
        lengths = widths_of_bar(picture)
        flops = [product.flops for product in chain.products]
        for length, of_product in zip(lengths, flops, strict=True):
            assert length / sum(lengths) == pytest.approx(of_product / sum(flops), rel=1e-3)
        # Without x.grad, its box and the rest of the bar are only outlines.
        outlined = [node[0] for node in nodes(picture, "g", "matrix missing")]
        assert len(outlined) == (0 if chain.wanted else 2)
        for rest in outlined[1:]:
            end_of_bar = BAR_LEFT + sum(lengths)
            assert float(rest.get("x")) == pytest.approx(end_of_bar, abs=0.1 * len(lengths))
            assert float(rest.get("x")) + float(rest.get("width")) == pytest.approx(WIDTH, abs=0.1)


@pytest.mark.parametrize("layers", range(1, MOST_LAYERS + 1))
def test_of_equal_layers_one_of_3l_products_is_missing_and_each_part_of_the_bar_has_its_name(
    layers,
):
    asked = Chain(layers=layers, wanted=False, product=3 * layers - 1, equal=True)
    picture = view(asked, None).picture
    _, missing = nodes(picture, "g", "matrix missing")
    width = float(missing[0].get("width"))
    assert width / (WIDTH - BAR_LEFT) == pytest.approx(1 / (3 * layers), rel=1e-3)
    for product in asked.products:
        assert picture.count(f">{product.makes}</text>") == 2, "in the chain and in the bar"


def widths_of_boxes(picture: str, *, later: bool) -> list[float]:
    """The widths of what products make, of those that are done or of those to come."""
    found = []
    for kind in ("forward", "weight_gradient", "input_gradient"):
        class_ = f"matrix {kind} later" if later else f"matrix {kind}"
        found += [float(node[0].get("width")) for node in nodes(picture, "g", class_)]
    return found


def widths_of_bar(picture: str) -> list[float]:
    """The widths of the bar's parts, from left to right."""
    parts = []
    for kind in ("forward", "weight_gradient", "input_gradient"):
        for class_ in (f"matrix {kind}", f"matrix {kind} later"):
            for node in nodes(picture, "g", class_):
                box = node[0]
                if box.get("height") == "24":
                    parts.append((float(box.get("x")), float(box.get("width"))))
    return [width for _, width in sorted(parts)]


def test_it_says_of_what_a_gradient_is_made_and_frames_it(lab):
    lab.preset("which is made of which?")
    assert lab.screen.meaning == (
        "Product 4 of 6: h1.grad is made of h2.grad and w2. So far 235 MFLOPs of 503 MFLOPs."
    )
    assert len(nodes(lab.screen.svg, "rect", "start")) == 1
    assert len(nodes(lab.screen.svg, "polyline", "moment")) == 1  # w2 is read again
    lab.set(product=0)
    assert "Press play" in lab.screen.meaning
    assert not nodes(lab.screen.svg, "rect", "start")


def test_without_the_gradient_of_x_the_last_product_is_gone(lab):
    lab.set(layers=6, product=18)
    lab.set(wanted=False)
    assert lab.values["product"] == 17
    assert lab.screen.meaning.startswith("Product 17 of 17: w1.grad is made of x and h1.grad.")
