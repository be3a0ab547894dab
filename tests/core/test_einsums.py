"""What a pattern says: against einops and torch, against its own loops when they run, against opt_einsum's costs."""

import itertools
import math
import re

import einops
import numpy as np
import opt_einsum
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st

from course_utils.core import einsums, measure, predict
from course_utils.core.einsums import Einsum, parsed

NAMES = (
    "b",
    "i",
    "head",
    "x1",
    "seq_len",
    "K",
    "A",
    "B",
    "größe",
    "total",
    "result",
    "range",
    "for",
    "A1",
)


@st.composite
def patterns(draw, names=NAMES, fewest=1, most=4):
    """Operands and a result as tuples of names, and the sizes of the names."""
    side = st.lists(st.sampled_from(names), max_size=3, unique=True)
    sides = [tuple(draw(side)) for _ in range(draw(st.integers(fewest, most)))]
    named = list(dict.fromkeys(itertools.chain(*sides)))
    result = tuple(draw(st.lists(st.sampled_from(named), unique=True))) if named else ()
    return (tuple(sides), result), {name: draw(st.integers(1, 3)) for name in named}


def written(einsum):
    """The pattern as one would type it."""
    sides = [" ".join(side) for side in (*einsum.operands, einsum.output)]
    return f"{', '.join(sides[:-1])} -> {sides[-1]}"


def integers(einsum, sizes):
    """An operand for each list of names, of small whole numbers that differ."""
    draw = torch.Generator().manual_seed(1)
    shapes = [[sizes[name] for name in side] for side in einsum.operands]
    return [torch.randint(-4, 5, shape, generator=draw) for shape in shapes]


# Reading.


@given(
    patterns(), st.sampled_from(["->", " -> ", "→", "\t→\n"]), st.sampled_from([",", " , ", "  ,"])
)
def test_a_pattern_is_read_as_it_was_written(pattern, arrow, comma):
    einsum = Einsum(*pattern[0])
    *operands, output = [" ".join(side) for side in (*einsum.operands, einsum.output)]
    assert parsed(f"{comma.join(operands)}{arrow}{output}") == einsum


@given(patterns(names=("b", "i", "head", "x1", "seq_len", "K", "A", "größe")))
def test_names_mean_what_einops_and_torch_take_them_to_mean(pattern):
    einsum, sizes = Einsum(*pattern[0]), pattern[1]
    operands = integers(einsum, sizes)
    expected = torch.einsum(parsed(written(einsum)).equation, *operands)
    assert torch.equal(einops.einsum(*operands, written(einsum)), expected)


@pytest.mark.parametrize(
    ("pattern", "roles"),
    [
        ("b i h, b j h -> b i j", {"b": "batch", "i": "kept", "h": "summed", "j": "kept"}),
        ("b i h, b j h -> h", {"b": "summed", "i": "summed", "h": "batch", "j": "summed"}),
        ("b i -> b", {"b": "kept", "i": "summed"}),  # one operand shares nothing with another
        ("b i, b j, b k -> b", {"b": "batch", "i": "summed", "j": "summed", "k": "summed"}),
    ],
)
def test_a_dimension_is_summed_kept_or_batch(pattern, roles):
    einsum = parsed(pattern)
    assert {name: einsum.role(name) for name in einsum.names} == roles
    assert list(einsum.names) == list(roles)
    assert einsum.summed == tuple(name for name, role in roles.items() if role == "summed")


# The loops.


@given(patterns())
# Where operands are called A and B, and the loops have words of their own.
@example((((("A", "b"), ("b", "C")), ("A", "C")), {"A": 2, "b": 3, "C": 2}))
@example(
    (((("for", "total"), ("total", "range")), ("for", "range")), {"for": 2, "total": 3, "range": 2})
)
def test_the_loop_nest_runs_as_python_and_gives_what_torch_gives(pattern):
    einsum, sizes = Einsum(*pattern[0]), pattern[1]
    operands = integers(einsum, sizes)
    expected = torch.einsum(einsum.equation, *operands).numpy()
    scope = {einsums.operand_name(n): operand.numpy() for n, operand in enumerate(operands)}
    scope["result"] = np.full(expected.shape, 99)
    exec(einsums.loop_nest(einsum, sizes), scope)
    assert np.array_equal(scope["result"], expected)
    assert einsum.steps(sizes) == math.prod(sizes.values())


# Orders.


def leaves(tree):
    return [tree] if isinstance(tree, int) else [leaf for part in tree for leaf in leaves(part)]


def unordered(tree):
    """Who with whom, whichever is named first."""
    return tree if isinstance(tree, int) else frozenset(map(unordered, tree))


def path_of(tree, operands):
    """The tree in opt_einsum's notation: a pair leaves, its product joins at the end."""
    there, path = list(range(operands)), []

    def contract(tree):
        if not isinstance(tree, int):
            for part in tree:
                contract(part)
            places = tuple(sorted(there.index(part) for part in tree))
            path.append(places)
            for place in reversed(places):
                there.pop(place)
            there.append(tree)

    contract(tree)
    return path


@pytest.mark.parametrize(("operands", "count"), [(1, 1), (2, 1), (3, 3), (4, 15), (5, 105)])
def test_every_way_to_multiply_in_pairs_is_there_once(operands, count):
    names = "abcde"[:operands]
    found = einsums.orders(parsed(", ".join(names) + " ->"), dict.fromkeys(names, 2))
    assert len(found) == len({unordered(order.tree) for order in found}) == count
    assert all(sorted(leaves(order.tree)) == list(range(operands)) for order in found)
    assert count == math.prod(
        range(1, 2 * operands - 2, 2)
    )  # 1·3·5·…: so many rooted binary trees there are


def without_lone_sums(einsum):
    """The same product of operands from which every name is taken that they alone have and nobody keeps."""
    held = [*itertools.chain(*einsum.operands), *einsum.output]
    return Einsum(
        tuple(tuple(n for n in side if held.count(n) > 1) for side in einsum.operands),
        einsum.output,
    )


@settings(max_examples=50)
@given(patterns(names=tuple("abcdef"), fewest=2))
def test_every_order_costs_and_holds_what_opt_einsum_says_of_it_after_lone_sums(pattern):
    einsum, sizes = Einsum(*pattern[0]), pattern[1]
    summed = without_lone_sums(einsum)
    shapes = [tuple(sizes[name] for name in side) for side in summed.operands]
    found = einsums.orders(einsum, sizes)
    for order in found:
        path = path_of(order.tree, len(shapes))
        _, info = opt_einsum.contract_path(summed.equation, *shapes, shapes=True, optimize=path)
        assert order.flops == info.opt_cost
        assert order.largest == info.largest_intermediate
    costs = [order.flops for order in found]
    assert costs == sorted(costs)
    assert predict.einsum_flops(written(einsum), **sizes) == costs[0]
    (cheapest,) = einsums.orders(einsum, sizes, only_cheapest=True)
    assert cheapest.flops == costs[0]


@given(patterns(names=tuple("abcde"), fewest=2, most=2))
@example((((("a", "b", "c"), ("c", "d")), ("a", "d")), {"a": 3, "b": 5, "c": 7, "d": 2}))  # 84
@example((((("a", "b"), ("b",)), ()), {"a": 3, "b": 2}))
def test_torch_counts_a_product_of_two_as_the_formula_does(pattern):
    einsum, sizes = Einsum(*pattern[0]), pattern[1]
    operands = [operand.float() for operand in integers(einsum, sizes)]
    counted = measure.flops(lambda: torch.einsum(einsum.equation, *operands)).total
    first, second = map(set, einsum.operands)
    shared = {name for name in first & second if sizes[name] > 1}
    predicted = predict.einsum_flops(written(einsum), **sizes)
    if shared - set(einsum.output):
        assert counted == predicted
    else:  # torch multiplies number by number, which its counter leaves out
        assert counted == 0


# Mistakes point at their place.


MISTAKES = [
    ("b d, d k", "b d, d k▸◂", "the -> is missing"),
    ("", "▸◂", "the -> is missing"),
    ("b -> b -> d", "b -> b ▸->◂ d", "a second ->"),
    ("b d -> b, d", "b d -> b▸,◂ d", "there is one result"),
    ("b d, d k -> b q", "b d, d k -> b ▸q◂", "q comes from no operand"),
    (
        "bd, dk -> bk",
        "bd, dk -> ▸bk◂",
        "bk comes from no operand. Put spaces between the names.",
    ),
    ("b b -> b", "b ▸b◂ -> b", "b stands twice"),
    ("b d -> d b d", "b d -> d b ▸d◂", "d stands twice"),
    ("... d -> d", "▸...◂ d -> d", "so no dots"),
    ("b (h d) -> b", "b ▸(◂h d) -> b", "rearrange's work"),
    ("b - d -> b", "b ▸-◂ d -> b", "an arrow is written ->"),
    ("b 1 -> b", "b ▸1◂ -> b", "1 is no name"),
    ("b a² -> b", "b ▸a²◂ -> b", "a² is no name"),
    ("b * d -> b", "b ▸*◂ d -> b", "* is no name"),
    ("b 🙂 -> b", "b ▸🙂◂ -> b", "🙂 is no name"),
]


@pytest.mark.parametrize(("pattern", "marked", "said"), MISTAKES)
def test_a_mistake_points_at_its_place(pattern, marked, said):
    with pytest.raises(ValueError, match=r"^In “") as caught:
        parsed(pattern)
    sentence = str(caught.value)
    assert sentence.startswith(f"In “{marked}”, at ▸◂: ")
    assert said in sentence
    assert sentence.endswith(".")


@given(st.text(max_size=30) | st.text(alphabet="abAB ,->→.()_1é", max_size=30))
def test_any_text_is_a_pattern_or_a_mistake_that_quotes_it(words):
    try:
        einsum = parsed(words)
    except ValueError as error:
        quoted = re.match(r"In “(.*)”, at ▸◂: .+\.$", str(error), re.DOTALL)
        assert quoted
        if not set("▸◂") & set(words):
            assert re.sub("[▸◂]", "", quoted[1]) == words.replace("→", "->")
    else:
        assert set(einsum.output) <= set(einsum.names)
        assert parsed(written(einsum)) == einsum


def test_a_pattern_that_is_too_long_is_not_read():
    with pytest.raises(
        ValueError, match=r"^A pattern of 401 characters is too long; 400 are enough here\.$"
    ):
        parsed("a" * 401)
    assert parsed("a" * 396 + " -> ").names == ("a" * 396,)
