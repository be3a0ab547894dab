"""Where elements lie, by torch's own pointer; when a view is possible, by asking torch for it."""

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


# Where an element lies.


@st.composite
def one_step(draw, t):
    """One more view of that tensor, of any kind there is."""
    dimensions = st.integers(0, t.ndim - 1)
    kinds = ["slice", "select", "permute", "unfold", "flatten last"] if t.ndim else []
    kinds += ["unsqueeze", "expand"]
    kind = draw(st.sampled_from(kinds))
    if kind == "slice":
        start, stop = st.sampled_from([1, 0, 2, -2, -1]), st.sampled_from([None, None, 3, -1, 0])
        slices = [slice(draw(start), draw(stop), draw(st.integers(1, 3))) for _ in range(t.ndim)]
        return t[tuple(slices)]
    if kind == "permute":
        return t.permute(draw(st.permutations(range(t.ndim))))
    if kind == "select":
        d = draw(dimensions)
        return t.select(d, draw(st.integers(0, t.shape[d] - 1))) if t.shape[d] else t
    if kind == "unfold":
        d = draw(dimensions)
        return t.unfold(d, draw(st.integers(0, t.shape[d])), draw(st.integers(1, 3)))
    if kind == "flatten last":
        return t.flatten(-2) if t.ndim > 1 and t.is_contiguous() else t
    if kind == "unsqueeze":
        return t.unsqueeze(draw(st.integers(0, t.ndim)))
    return t.expand(draw(st.integers(1, 3)), *t.shape)


@st.composite
def views(draw):
    """A tensor that looks somehow at a part of a storage; small enough to walk through."""
    sizes = st.sampled_from([3, 4, 5, 2, 1, 6, 0])
    base = torch.empty(draw(st.lists(sizes, max_size=4)), dtype=draw(st.sampled_from(DTYPES)))
    t = base
    if base.numel() > 1 and draw(st.booleans()):  # any strides and offset that stay inside
        shape = draw(st.lists(st.integers(0, 4), max_size=3))
        strides = [draw(st.integers(0, base.numel() // 4)) for _ in shape]
        last = sum((n - 1) * step for n, step in zip(shape, strides, strict=True))
        if 0 <= last < base.numel():
            t = base.as_strided(shape, strides, draw(st.integers(0, base.numel() - 1 - last)))
    for _ in range(draw(st.integers(0, 4))):
        after = draw(one_step(t))
        if math.prod(after.shape) <= 200:
            t = after
    return t


def read_places(t):
    """The same view of a storage in which every number is its own place, as torch reads it row by row."""
    owned = t.untyped_storage().nbytes() // t.element_size()
    places = torch.arange(owned).as_strided(t.shape, t.stride(), t.storage_offset())
    return places.flatten().tolist()


@settings(untimed, max_examples=200)
@given(views(), st.data())
def test_an_address_is_the_place_that_torch_reads(t, data):
    read, indices = read_places(t), list(product(*map(range, t.shape)))
    assert [layout.address(t, index) for index in indices] == read
    if indices:
        index = [data.draw(st.integers(-n, n - 1)) for n in t.shape]
        assert layout.address(t, index) == t[tuple(index)].storage_offset()


@untimed
@given(st.lists(st.integers(0, 5), max_size=4), st.sampled_from(DTYPES), st.data())
def test_a_view_owns_the_bytes_of_the_tensor_that_it_was_made_from_and_a_copy_its_own(
    shape, dtype, data
):
    t = base = torch.empty(shape, dtype=dtype)
    for _ in range(3):
        t = data.draw(one_step(t))
    assert layout.owned_bytes(t) == math.prod(shape) * base.element_size()
    assert layout.owned_bytes(t.clone(memory_format=torch.contiguous_format)) == t.nbytes


# Who shares.


def write_shows(a, b):
    """Whether b's storage is another one after a's was overwritten."""
    a.untyped_storage().fill_(0)
    b.untyped_storage().fill_(1)
    return set(a.untyped_storage().tolist()) == {1}


@untimed
@given(st.lists(st.integers(1, 5), max_size=3), st.data())
def test_two_tensors_share_where_a_write_through_one_storage_shows_in_the_other(shape, data):
    base = torch.ones(shape)
    t = data.draw(one_step(base))
    for other in (t, t.contiguous(), t.reshape(-1), t.clone(), t + 0, t.detach(), base.clone()):
        if layout.owned_bytes(other):
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
    """Every shape of so many elements, sizes 1 included."""
    if most_dimensions == 0:
        return [()] if elements == 1 else []
    found = [()] if elements == 1 else []
    for first in range(1, elements + 1):
        if elements % first == 0:
            found += [(first, *rest) for rest in shapes_of(elements // first, most_dimensions - 1)]
    return found


def some_layouts(count):
    """Shapes and strides: as torch would make them, but with steps that are longer, shorter or 0 here and there."""
    draw = random.Random(0)
    for _ in range(count):
        shape = draw.choices([0, 1, 2, 3, 4, 6], [1, 6, 8, 6, 6, 4], k=draw.randint(0, 4))
        stride, walk = [], draw.choice([1, 1, 2, 0])
        for n in reversed(shape):
            step = draw.choice([walk] * 6 + [2 * walk, walk + 1, 1, 0])
            stride.append(step)
            walk = n * step if n != 1 or draw.random() < 0.5 else walk
        elements = math.prod(shape)
        some = shapes_of(elements, 4) if elements else [(0,), (3,), (0, 2), (2, 0, 1), (), (1, 0)]
        yield tuple(shape), tuple(reversed(stride)), draw.sample(some, min(6, len(some)))


def test_a_view_is_possible_exactly_where_torch_allows_it():
    outcomes = Counter()
    for shape, stride, new_shapes in some_layouts(2000):
        for new_shape in new_shapes:
            possible = torch_can_view(shape, stride, new_shape)
            assert layout.can_view(shape, stride, new_shape) == possible, (shape, stride, new_shape)
            outcomes[possible, 0 in shape] += 1
            outcomes[possible, "size 1"] += 1 in shape
            outcomes[possible, "stride 0"] += 0 in stride and 0 not in shape
    assert len(outcomes) == 8
    assert min(outcomes.values()) > 200, outcomes
    assert not layout.can_view((2, 3), (3, 1), (7,))  # another number of elements
