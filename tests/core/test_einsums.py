"""What a pattern says, against einops, torch and opt_einsum, and against its own loops."""

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


WITHOUT_WORDS = ("b", "i", "head", "x1", "seq_len", "K", "A", "größe")


@st.composite
def patterns(draw, names=NAMES, fewest=1, most=4):
    """An einsum, and the sizes of its dimensions."""
    names_of_one = st.lists(st.sampled_from(names), max_size=3, unique=True)
    operands = []
    for _ in range(draw(st.integers(fewest, most))):
        operands.append(tuple(draw(names_of_one)))
    used = list(dict.fromkeys(itertools.chain(*operands)))
    output = draw(st.lists(st.sampled_from(used), unique=True)) if used else []
    einsum = Einsum(tuple(operands), tuple(output))
    sizes = {name: draw(st.integers(1, 3)) for name in used}
    return einsum, sizes


def written(einsum, arrow=" -> ", comma=", "):
    """The pattern as one would type it."""
    operands = [" ".join(names) for names in einsum.operands]
    output = " ".join(einsum.output)
    return f"{comma.join(operands)}{arrow}{output}"


def integers(einsum, sizes):
    """Small whole numbers that differ, for each operand."""
    generator = torch.Generator().manual_seed(1)
    operands = []
    for names in einsum.operands:
        shape = [sizes[name] for name in names]
        operands.append(torch.randint(-4, 5, shape, generator=generator))
    return operands


# Reading.


@given(
    patterns(),
    st.sampled_from(["->", " -> ", "→", "\t→\n"]),
    st.sampled_from([",", " , ", "  ,"]),
)
def test_a_pattern_is_read_as_it_was_written(pattern, arrow, comma):
    einsum, _ = pattern
    assert parsed(written(einsum, arrow, comma)) == einsum


@given(patterns(names=WITHOUT_WORDS))
def test_names_mean_what_einops_and_torch_take_them_to_mean(pattern):
    einsum, sizes = pattern
    operands = integers(einsum, sizes)
    by_einops = einops.einsum(*operands, written(einsum))
    by_torch = torch.einsum(parsed(written(einsum)).equation, *operands)
    assert torch.equal(by_einops, by_torch)


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


# The loops call operands A and B, and have words of their own.
LIKE_OPERANDS = parsed("A b, b C -> A C")
LIKE_WORDS = parsed("for total, total range -> for range")


@given(patterns())
@example((LIKE_OPERANDS, {"A": 2, "b": 3, "C": 2}))
@example((LIKE_WORDS, {"for": 2, "total": 3, "range": 2}))
def test_the_loop_nest_runs_as_python_and_gives_what_torch_gives(pattern):
    einsum, sizes = pattern
    operands = integers(einsum, sizes)
    expected = torch.einsum(einsum.equation, *operands).numpy()
    scope = {"result": np.full(expected.shape, 99)}
    for n, operand in enumerate(operands):
        scope[einsums.operand_name(n)] = operand.numpy()
    exec(einsums.loop_nest(einsum, sizes), scope)
    assert np.array_equal(scope["result"], expected)
    assert einsum.steps(sizes) == math.prod(sizes.values())


# Orders.


def leaves(tree):
    if isinstance(tree, int):
        return [tree]
    first, second = tree
    return leaves(first) + leaves(second)


def unordered(tree):
    """Who is multiplied with whom, whichever is named first."""
    if isinstance(tree, int):
        return tree
    return frozenset(map(unordered, tree))


def path_of(tree, operands):
    """The tree in opt_einsum's notation: a pair leaves a list, and its product joins at the end."""
    present = list(range(operands))
    path = []

    def contract(tree):
        if isinstance(tree, int):
            return
        first, second = tree
        contract(first)
        contract(second)
        path.append((present.index(first), present.index(second)))
        present.remove(first)
        present.remove(second)
        present.append(tree)

    contract(tree)
    return path


@pytest.mark.parametrize(
    ("operands", "count"),
    [
        (1, 1),
        (2, 1),
        (3, 3),
        (4, 15),
        (5, 105),
    ],
)
def test_every_way_to_multiply_in_pairs_is_there_once(operands, count):
    names = "abcde"[:operands]
    einsum = parsed(f"{', '.join(names)} ->")
    trees = [order.tree for order in einsums.orders(einsum, dict.fromkeys(names, 2))]
    assert len(trees) == count
    assert len({unordered(tree) for tree in trees}) == count
    for tree in trees:
        assert sorted(leaves(tree)) == list(range(operands))
    rooted_binary_trees = math.prod(range(1, 2 * operands - 2, 2))  # 1·3·5·…
    assert count == rooted_binary_trees


def without_lone_sums(einsum):
    """The same einsum without the dimensions that one operand alone has, and the result has not."""
    held = [*itertools.chain(*einsum.operands), *einsum.output]
    operands = []
    for names in einsum.operands:
        operands.append(tuple(name for name in names if held.count(name) > 1))
    return Einsum(tuple(operands), einsum.output)


@settings(max_examples=50)
@given(patterns(names=tuple("abcdef"), fewest=2))
def test_every_order_costs_and_holds_what_opt_einsum_says_of_it_after_lone_sums(pattern):
    einsum, sizes = pattern
    summed = without_lone_sums(einsum)
    shapes = []
    for names in summed.operands:
        shapes.append(tuple(sizes[name] for name in names))
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
@example((parsed("a b c, c d -> a d"), {"a": 3, "b": 5, "c": 7, "d": 2}))  # 84
@example((parsed("a b, b ->"), {"a": 3, "b": 2}))
def test_torch_counts_a_product_of_two_as_the_formula_does(pattern):
    einsum, sizes = pattern
    operands = [operand.float() for operand in integers(einsum, sizes)]
    counted = measure.flops(lambda: torch.einsum(einsum.equation, *operands)).total
    first, second = einsum.operands
    shared = {name for name in {*first} & {*second} if sizes[name] > 1}
    summed = shared - {*einsum.output}
    if summed:
        assert counted == predict.einsum_flops(written(einsum), **sizes)
    else:  # torch multiplies number by number, which its counter leaves out
        assert counted == 0


# Mistakes are marked in the pattern.


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
    ("btw->b", "btw->▸b◂", "b comes from no operand. Put spaces between the names."),
    ("ij, j -> i", "ij, j -> ▸i◂", "i comes from no operand. Put spaces between the names."),
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


@pytest.mark.parametrize(
    "pattern", ["batch token -> b", "row, column -> r c", "b d, dk -> k", "btw -> q", "b, d -> k"]
)
def test_no_spaces_are_asked_for_where_they_would_not_help(pattern):
    with pytest.raises(ValueError, match=r"comes from no operand\.$"):
        parsed(pattern)


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
    said = r"^A pattern of 401 characters is too long; 400 are enough here\.$"
    with pytest.raises(ValueError, match=said):
        parsed("a" * 401)
    assert parsed("a" * 396 + " -> ").names == ("a" * 396,)
