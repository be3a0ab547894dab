"""Where elements are, by torch's own pointer; when a view is possible, by asking torch for it."""

import math
import random
from collections import Counter
from itertools import product

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from course_utils.core import layout

untimed = settings(deadline=None)  # no test here depends on how fast the machine is
DTYPES = (torch.float32, torch.float64, torch.bfloat16, torch.int8)


# Where an element is.


@st.composite
def one_step(draw, t):
    """One more view of that tensor, of any kind there is."""
    kinds = [unsqueezed, expanded]
    if t.ndim > 0:
        kinds += [sliced, selected, permuted, unfolded, flattened]
    kind = draw(st.sampled_from(kinds))
    return kind(draw, t)


def unsqueezed(draw, t):
    return t.unsqueeze(draw(st.integers(0, t.ndim)))


def expanded(draw, t):
    times = draw(st.integers(1, 3))
    return t.expand(times, *t.shape)


def sliced(draw, t):
    slices = []
    for _ in range(t.ndim):
        start = draw(st.sampled_from([1, 0, 2, -2, -1]))
        stop = draw(st.sampled_from([None, None, 3, -1, 0]))
        step = draw(st.integers(1, 3))
        slices.append(slice(start, stop, step))
    return t[tuple(slices)]


def selected(draw, t):
    dimension = draw(st.integers(0, t.ndim - 1))
    size = t.shape[dimension]
    if size == 0:
        return t
    index = draw(st.integers(0, size - 1))
    return t.select(dimension, index)


def permuted(draw, t):
    return t.permute(draw(st.permutations(range(t.ndim))))


def unfolded(draw, t):
    dimension = draw(st.integers(0, t.ndim - 1))
    window = draw(st.integers(0, t.shape[dimension]))
    step = draw(st.integers(1, 3))
    return t.unfold(dimension, window, step)


def flattened(_, t):
    if t.ndim < 2 or not t.is_contiguous():
        return t
    return t.flatten(-2)


@st.composite
def views(draw):
    """A view of a part of a storage, small enough to read every element."""
    sizes = st.sampled_from([3, 4, 5, 2, 1, 6, 0])
    shape = draw(st.lists(sizes, max_size=4))
    t = torch.empty(shape, dtype=draw(st.sampled_from(DTYPES)))
    if t.numel() > 1 and draw(st.booleans()):
        t = draw(strided(t))
    for _ in range(draw(st.integers(0, 4))):
        after = draw(one_step(t))
        if after.numel() <= 200:
            t = after
    return t


@st.composite
def strided(draw, t):
    """A view with any strides and any offset that stay inside of the storage."""
    elements = t.numel()
    shape = draw(st.lists(st.integers(0, 4), max_size=3))
    strides = [draw(st.integers(0, elements // 4)) for _ in shape]
    last = 0
    for size, stride in zip(shape, strides, strict=True):
        last += (size - 1) * stride
    if not 0 <= last < elements:
        return t
    offset = draw(st.integers(0, elements - 1 - last))
    return t.as_strided(shape, strides, offset)


def read_places(t):
    """Where torch reads the elements of the view, row by row.

    In the storage that it reads here, every number is its own position.
    """
    owned = t.untyped_storage().nbytes() // t.element_size()
    places = torch.arange(owned).as_strided(t.shape, t.stride(), t.storage_offset())
    return places.flatten().tolist()


@settings(untimed, max_examples=200)
@given(views(), st.data())
def test_an_address_is_the_place_that_torch_reads(t, data):
    indices = list(product(*map(range, t.shape)))
    addresses = [layout.address(t, index) for index in indices]
    assert addresses == read_places(t)
    if t.numel() > 0:
        index = [data.draw(st.integers(-size, size - 1)) for size in t.shape]
        element = t[tuple(index)]
        assert layout.address(t, index) == element.storage_offset()


@untimed
@given(st.lists(st.integers(0, 5), max_size=4), st.sampled_from(DTYPES), st.data())
def test_a_view_owns_the_bytes_of_the_tensor_that_it_was_made_from_and_a_copy_its_own(
    shape, dtype, data
):
    base = torch.empty(shape, dtype=dtype)
    t = base
    for _ in range(3):
        t = data.draw(one_step(t))
    copy = t.clone(memory_format=torch.contiguous_format)
    assert layout.owned_bytes(t) == math.prod(shape) * base.element_size()
    assert layout.owned_bytes(copy) == t.nbytes


# Who shares.


def write_shows(a, b):
    """Whether a's storage has changed after b's was overwritten."""
    a.untyped_storage().fill_(0)
    b.untyped_storage().fill_(1)
    return set(a.untyped_storage().tolist()) == {1}


@untimed
@given(st.lists(st.integers(1, 5), max_size=3), st.data())
def test_two_tensors_share_where_a_write_through_one_storage_shows_in_the_other(shape, data):
    base = torch.ones(shape)
    t = data.draw(one_step(base))
    others = [
        t,
        t.contiguous(),
        t.reshape(-1),
        t.clone(),
        t + 0,
        t.detach(),
        base.clone(),
    ]
    for other in others:
        if layout.owned_bytes(other) > 0:
            assert layout.shares_storage(base, other) == write_shows(base, other)
            assert layout.shares_storage(other, base) == layout.shares_storage(base, other)


# When a new shape is a view.


def torch_can_view(shape, stride, new_shape):
    try:
        torch.empty_strided(shape, stride).view(new_shape)
    except RuntimeError:
        return False
    return True


def shapes_of(elements, most_dimensions):
    """Every shape of so many elements, also with dimensions of size 1."""
    found = []
    if elements == 1:
        found.append(())
    if most_dimensions == 0:
        return found
    for first in range(1, elements + 1):
        if elements % first == 0:
            for rest in shapes_of(elements // first, most_dimensions - 1):
                found.append((first, *rest))
    return found


def drawn_strides(draw, shape):
    """Strides as torch would make them, but some of them are longer, shorter or 0."""
    strides = []
    usual = draw.choice([1, 1, 2, 0])
    for size in reversed(shape):
        unusual = [2 * usual, usual + 1, 1, 0]
        stride = draw.choice([usual] * 6 + unusual)
        strides.append(stride)
        if size != 1 or draw.random() < 0.5:
            usual = size * stride
    return tuple(reversed(strides))


def drawn_layouts(count):
    """Shapes, each with strides and with some new shapes of as many elements."""
    draw = random.Random(0)
    for _ in range(count):
        dimensions = draw.randint(0, 4)
        shape = draw.choices([0, 1, 2, 3, 4, 6], [1, 6, 8, 6, 6, 4], k=dimensions)
        strides = drawn_strides(draw, shape)
        elements = math.prod(shape)
        if elements == 0:
            possible = [(0,), (3,), (0, 2), (2, 0, 1), (), (1, 0)]
        else:
            possible = shapes_of(elements, most_dimensions=4)
        new_shapes = draw.sample(possible, min(6, len(possible)))
        yield tuple(shape), strides, new_shapes


def test_a_view_is_possible_exactly_where_torch_allows_it():
    outcomes = Counter()
    for shape, strides, new_shapes in drawn_layouts(2000):
        for new_shape in new_shapes:
            asked = (shape, strides, new_shape)
            possible = torch_can_view(*asked)
            assert layout.can_view(*asked) == possible, asked
            is_empty = 0 in shape
            outcomes[possible, is_empty] += 1
            if 1 in shape:
                outcomes[possible, "size 1"] += 1
            if 0 in strides and not is_empty:
                outcomes[possible, "stride 0"] += 1
    assert len(outcomes) == 8
    assert min(outcomes.values()) > 200, outcomes
    assert not layout.can_view((2, 3), (3, 1), (7,))  # another number of elements
