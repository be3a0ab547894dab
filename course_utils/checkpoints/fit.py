"""Whether a state has the structure that is wanted."""

from collections.abc import Mapping

from torch import Tensor

from course_utils.checkpoints.contents import dtype_name, place_text


def difference(found: object, wanted: object, place: tuple[object, ...] = ()) -> str | None:
    """A sentence on the first entry that differs in name, shape, dtype or kind; None if none does."""
    if isinstance(found, Tensor) and isinstance(wanted, Tensor):
        same = found.shape == wanted.shape and found.dtype == wanted.dtype
    else:
        same = _kind(found) is _kind(wanted)
    if not same:
        return f"{place_text(place)} is {_text(found)} in the file; {_text(wanted)} is wanted."
    if isinstance(found, Tensor) or _kind(found) is object or not wanted:
        return None
    mine, theirs = (side if isinstance(side, Mapping) else dict(enumerate(side)) for side in (found, wanted))
    for key in theirs:
        if key not in mine:
            return f"{place_text((*place, key))} is wanted, and not in the file."
        if deeper := difference(mine[key], theirs[key], (*place, key)):
            return deeper
    extra = next((key for key in mine if key not in theirs), None)
    return None if extra is None else f"{place_text((*place, extra))} is in the file, and not wanted."


def _kind(value: object) -> type:
    return next((kind for kind in (Tensor, Mapping, list, tuple) if isinstance(value, kind)), object)


def _text(value: object) -> str:
    if isinstance(value, Tensor):
        return f"{dtype_name(value.dtype)} of shape {tuple(value.shape)}"
    return f"a {type(value).__name__}" if _kind(value) is not object else repr(value)[:40]
