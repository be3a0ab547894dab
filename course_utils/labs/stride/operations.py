"""What torch's operations make of a walk, and where they need a copy.

A ValueError goes on from the operation's name; other numbers than it takes are a TypeError, as in torch.
"""

import math
from collections.abc import Callable
from dataclasses import replace
from types import EllipsisType

from course_utils import layout
from course_utils.chains import EXAMPLES, INDEX_EXAMPLE, Operation
from course_utils.labs.stride.walks import Sizes, Walk, in_order


def walked(operation: Operation, walk: Walk, owned: int) -> Walk:
    """The walk after an operation; the storage owns that many numbers."""
    more = {"owned": owned} if operation.name == "as_strided" else {}
    try:
        return OPERATIONS[operation.name](replace(walk, copied=False), *operation.arguments, **more)
    except TypeError:
        example = EXAMPLES.get(operation.name, INDEX_EXAMPLE)
        raise ValueError(f"has the wrong numbers in it. Write it like {example}.") from None


def _refused(why: str) -> ValueError:
    return ValueError(f"is refused. {why}")


def _numbers(given: tuple) -> Sizes:
    """The arguments, which are given one by one or in one tuple."""
    some = given[0] if len(given) == 1 and isinstance(given[0], tuple) else given
    if not given or not all(isinstance(n, int) for n in some):
        raise TypeError
    return some


def _dimension(walk: Walk, dimension: int, *, more: int = 0) -> int:
    """The dimension counted from 0. A tensor without dimensions accepts 0 and -1, as in torch."""
    count = max(len(walk.steps) + more, 1)
    if not -count <= dimension < count:
        raise _refused(f"The shape {walk.shape} has no dimension {dimension}.")
    return dimension % count


def _stepped(walk: Walk, dimension: int) -> tuple[int, int, int]:
    """A dimension, its size and its stride."""
    dimension = _dimension(walk, dimension)
    if not walk.steps:
        raise _refused("A tensor of one number has no dimension.")
    return dimension, *walk.steps[dimension]


def _instead(walk: Walk, dimension: int, *steps: tuple[int, int], begin: int = 0) -> Walk:
    """The walk with these steps in place of that dimension's; it begins `begin` places later."""
    before, after = walk.steps[:dimension], walk.steps[dimension + 1 :]
    return Walk((*before, *steps, *after), walk.offset + begin)


# The walk changes, and no number moves.


def _permute(walk: Walk, *order: object) -> Walk:
    order = [_dimension(walk, one) for one in _numbers(order)]
    if sorted(order) != [*range(len(walk.steps))]:
        raise _refused(f"It has to name each of the {len(walk.steps)} dimensions of {walk.shape} once.")
    return Walk(tuple(walk.steps[i] for i in order), walk.offset)


def _transpose(walk: Walk, one: int, other: int) -> Walk:
    one, other = _dimension(walk, one), _dimension(walk, other)
    swapped = {one: other, other: one}
    return _permute(walk, tuple(swapped.get(i, i) for i in range(len(walk.steps))))


def _t(walk: Walk) -> Walk:
    if len(walk.steps) > 2:
        raise _refused(f"It takes up to two dimensions, and {walk.shape} has {len(walk.steps)}.")
    return _transpose(walk, 0, -1)


def _select(walk: Walk, dimension: int, index: int) -> Walk:
    dimension, size, stride = _stepped(walk, dimension)
    if not -size <= index < size:
        raise _refused(f"Index {index} is out of bounds: dimension {dimension} has size {size}.")
    return _instead(walk, dimension, begin=index % size * stride)


def _narrow(walk: Walk, dimension: int, start: int, length: int) -> Walk:
    dimension, size, stride = _stepped(walk, dimension)
    first = start + size if start < 0 else start
    if not 0 <= length <= size - first or first < 0:
        raise _refused(f"{length} from {start} on reach beyond dimension {dimension}, of size {size}.")
    return _instead(walk, dimension, (length, stride), begin=first * stride)


def _unsqueeze(walk: Walk, dimension: int) -> Walk:
    at = _dimension(walk, dimension, more=1)
    stride = math.prod(walk.steps[at]) if at < len(walk.steps) else 1
    return Walk((*walk.steps[:at], (1, stride), *walk.steps[at:]), walk.offset)


def _squeeze(walk: Walk, *dimensions: object) -> Walk:
    among = [_dimension(walk, one) for one in _numbers(dimensions)] if dimensions else range(len(walk.steps))
    if len({*among}) < len(among):
        raise _refused("It names a dimension twice.")
    return Walk(tuple(one for i, one in enumerate(walk.steps) if one[0] != 1 or i not in among), walk.offset)


def _expand(walk: Walk, *sizes: object) -> Walk:
    sizes, steps = _numbers(sizes), []
    added = len(sizes) - len(walk.steps)
    if added < 0:
        raise _refused(f"It has to name at least the {len(walk.steps)} dimensions of {walk.shape}.")
    for at in reversed(range(len(sizes))):
        new = (1, math.prod(steps[0]) if steps and walk.steps else 0)
        size, stride = new if at < added else walk.steps[at - added]
        wanted = size if sizes[at] == -1 and at >= added else sizes[at]
        if wanted < 0 or size not in (1, wanted):
            raise _refused(f"Only a size of 1 can become {wanted}: dimension {at} has size {size}.")
        steps.insert(0, (wanted, stride if size == wanted else 0))
    return Walk(tuple(steps), walk.offset)


def _unfold(walk: Walk, dimension: int, size: int, step: int) -> Walk:
    dimension = _dimension(walk, dimension)
    whole, stride = walk.steps[dimension] if walk.steps else (1, 1)
    if not 0 <= size <= whole or step <= 0:
        raise _refused(f"Windows of {size}, {step} apart, do not fit dimension {dimension}, of size {whole}.")
    windows = ((whole - size) // step + 1, step * stride)
    moved = _instead(walk, dimension, windows) if walk.steps else walk
    return Walk((*moved.steps, (size, stride)), walk.offset)


def _diagonal(walk: Walk, offset: int = 0, one: int = 0, other: int = 1) -> Walk:
    one, other = _dimension(walk, one), _dimension(walk, other)
    if one == other:
        raise _refused("A diagonal needs two different dimensions.")
    (rows, down), (columns, across) = walk.steps[one], walk.steps[other]
    below, right = max(-offset, 0), max(offset, 0)
    length = max(min(rows - below, columns - right), 0)
    begin = below * down + right * across if length else 0
    rest = (step for i, step in enumerate(walk.steps) if i not in (one, other))
    return Walk((*rest, (length, down + across)), walk.offset + begin)


def _as_strided(walk: Walk, shape: Sizes, strides: Sizes, offset: int | None = None, *, owned: int) -> Walk:
    if not isinstance(shape, tuple) or not isinstance(strides, tuple):
        raise TypeError
    if len(shape) != len(strides):
        raise _refused(f"{shape} and {strides} are not equally long.")
    steps = tuple(zip(_numbers((shape,)), _numbers((strides,)), strict=True))
    offset = walk.offset if offset is None else offset
    reach = offset + sum((size - 1) * stride for size, stride in steps)
    if min((offset, *shape, *strides)) < 0 or (0 not in shape and reach >= owned):
        raise _refused(f"It would leave the storage, which has {owned} numbers.")
    return Walk(steps, offset)


def _indexed(walk: Walk, *index: object) -> Walk:
    at, given = 0, sum(isinstance(one, int | slice) for one in index)
    named = len(walk.steps) - given  # which an ellipsis stands for
    if named < 0:
        raise _refused(f"{given} indices are too many for the shape {walk.shape}.")
    if index.count(...) > 1:
        raise _refused("An index has one ... at most.")
    for one in index:
        match one:
            case EllipsisType():
                at += named
            case None:
                walk, at = _unsqueeze(walk, at), at + 1
            case slice():
                if one.step is not None and one.step <= 0:
                    raise _refused("A slice's step has to be greater than 0.")
                size, stride = walk.steps[at]
                seen = range(*one.indices(size))
                walk = _instead(walk, at, (len(seen), seen.step * stride), begin=seen.start * stride)
                at += 1
            case _:
                walk = _select(walk, at, one)
    return walk


# The shape changes, and perhaps the storage.


def _contiguous(walk: Walk) -> Walk:
    return walk if walk.contiguous else in_order(walk.shape, copied=True)


def _clone(walk: Walk) -> Walk:
    """The strides keep their order and lose their gaps. A dimension of stride 0 keeps its position."""
    if walk.dense:
        return Walk(walk.steps, copied=True)
    order = [*reversed(range(len(walk.steps)))]  # the smallest stride first
    for end in range(1, len(order)):
        place = end
        for before in reversed(range(end)):
            near, far = (walk.steps[order[i]][::-1] for i in (before, place))
            if near[0] and far[0] and near > far:
                order[before], order[place], place = order[place], order[before], before
            elif near[0] and far[0] and near[0] < far[0]:
                break
    steps = dict(zip(order, in_order([walk.shape[i] for i in reversed(order)]).steps[::-1], strict=True))
    return Walk(tuple(steps[i] for i in range(len(order))), copied=True)


def _whole_shape(there: int, sizes: Sizes) -> Sizes:
    """The shape of `there` elements, with a size in place of -1."""
    known = math.prod(size for size in sizes if size != -1)
    if min((0, *sizes)) < -1 or sizes.count(-1) > 1:
        raise _refused(f"{sizes} is no shape: one size may be -1, the others are 0 or more.")
    if -1 in sizes and (not known or there % known):
        raise _refused(f"No size in place of -1 makes {sizes} hold {there} elements.")
    return tuple(there // known if size == -1 else size for size in sizes)


def _view(walk: Walk, *sizes: object) -> Walk:
    """Merge the neighbours that can be merged, then cut them into the new sizes."""
    shape = _whole_shape(math.prod(walk.shape), _numbers(sizes))
    if why := layout.why_not_view(walk.shape, walk.strides, shape):
        raise _refused(why)
    if 0 in walk.shape:
        return walk if shape == walk.shape else replace(in_order(shape), offset=walk.offset)
    steps, wanted, there = [], [*shape], [*walk.steps]
    while there:
        size, stride = there.pop()
        while there and (there[-1][0] == 1 or there[-1][1] == size * stride):
            size *= there.pop()[0]
        cut = 1
        while wanted and (cut < size or wanted[-1] == 1):
            steps.insert(0, (wanted[-1], cut * stride))
            cut *= wanted.pop()
    return Walk((*((1, 1) for _ in wanted), *steps), walk.offset)


def _reshape(walk: Walk, *sizes: object) -> Walk:
    shape = _whole_shape(math.prod(walk.shape), _numbers(sizes))
    if math.prod(shape) == math.prod(walk.shape) and not layout.can_view(walk.shape, walk.strides, shape):
        return in_order(shape, copied=True)
    return _view(walk, shape)


def _flatten(walk: Walk, first: int = 0, last: int = -1) -> Walk:
    first, last = _dimension(walk, first), _dimension(walk, last)
    if first > last:
        raise _refused(f"Dimension {first} comes after dimension {last}.")
    if walk.steps and first == last:
        return walk
    shape = walk.shape
    return _reshape(walk, (*shape[:first], math.prod(shape[first : last + 1]), *shape[last + 1 :]))


def _unflatten(walk: Walk, dimension: int, sizes: Sizes) -> Walk:
    dimension, size, _ = _stepped(walk, dimension)
    sizes = _whole_shape(size, _numbers((sizes,)))
    if not sizes or math.prod(sizes) != size:
        raise _refused(f"{sizes} does not have the {size} elements of dimension {dimension}.")
    return _view(walk, (*walk.shape[:dimension], *sizes, *walk.shape[dimension + 1 :]))


OPERATIONS: dict[str, Callable[..., Walk]] = {"": _indexed} | {
    function.__name__.removeprefix("_"): function
    for function in (
        *(_permute, _transpose, _t, _select, _narrow, _unsqueeze, _squeeze, _expand, _unfold, _diagonal),
        *(_as_strided, _contiguous, _clone, _view, _reshape, _flatten, _unflatten),
    )
}
