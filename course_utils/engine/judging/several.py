"""A wrong result of several values: each of them by its name, with a ✓ if it is right."""

from collections.abc import Mapping, Sequence

import torch

from course_utils.core.say import Number, listed
from course_utils.core.say.language import translated
from course_utils.engine.judging.agreement import agree, is_dense
from course_utils.engine.judging.pairs import beside, in_digits

MOST_WRONG = 3  # values of a dict that are shown if they are wrong


def gave_tuple(
    names: Sequence[str], result: Sequence, expected: Sequence, tolerance: Number, unit: str
) -> str:
    """Return a sentence such as "gave scale ✓; good steps: 3 instead of 0."."""
    by_name = dict(zip(names, result, strict=True))
    return _gave(by_name, dict(zip(names, expected, strict=True)), tolerance, unit)


def gave_dict(result: dict, expected: dict, tolerance: Number, unit: str) -> str:
    """Return the sentence for two dicts, by their keys."""
    if result.keys() == expected.keys():
        return _gave(result, expected, tolerance, unit)
    given_keys = ", ".join(map(str, result)) or translated("nothing")
    expected_keys = ", ".join(map(str, expected))
    return translated("gave {result}; expected {wanted}.", result=given_keys, wanted=expected_keys)


def all_wanted(names: Sequence[str]) -> str:
    """Return the advice on a result with too few or too many values."""
    if len(names) == 2:
        return translated("Return both: {names}.", names=listed(names))
    return translated("Return all {count}: {names}.", count=len(names), names=listed(names))


def _gave(result: Mapping, expected: Mapping, tolerance: Number, unit: str) -> str:
    words = []
    further = 0  # wrong values that are only counted
    wrong = 0
    for name, wanted in expected.items():
        if agree(result[name], wanted, tolerance):
            words.append(f"{name} ✓")
        elif wrong == MOST_WRONG:
            further += 1
        else:
            wrong += 1
            words.append(_told(name, result[name], wanted, unit))
    if further:
        words.append(translated("and {count} more", count=further))
    return translated("gave {result}.", result="; ".join(words))


def _told(name: object, result: object, expected: object, unit: str) -> str:
    """Return how a wrong value differs, such as "p[2]: 2.39 instead of 0.294"."""
    both_are_tensors = isinstance(result, torch.Tensor) and isinstance(expected, torch.Tensor)
    if both_are_tensors and result.shape == expected.shape and is_dense(result):
        return _told_tensor(name, result, expected)
    given, wanted = beside(result, expected, unit)
    return _instead(name, given, wanted)


def _told_tensor(name: object, result: torch.Tensor, expected: torch.Tensor) -> str:
    """Return how two tensors of one shape differ: in NaN, in the dtype, or in which number most."""
    if result.isnan().any():
        return translated("{name}: NaN among its numbers", name=name)
    if has_wrong_dtype(result, expected):
        return _instead(name, result.dtype, expected.dtype)
    place, given, wanted = farthest(result, expected)
    return _instead(f"{name}[{place}]" if place else name, given, wanted)


def _instead(name: object, given: object, wanted: object) -> str:
    return translated(
        "{name}: {result} instead of {wanted}", name=name, result=given, wanted=wanted
    )


def has_wrong_dtype(result: torch.Tensor, expected: torch.Tensor) -> bool:
    """Whether of two tensors that differ it is the dtype that is wrong.

    That is so if all numbers are right, or if there are complex or boolean ones, which the exercise
    does not expect.
    """
    is_misplaced_bool = result.dtype == torch.bool and expected.dtype != torch.bool
    if result.is_complex() or is_misplaced_bool:
        return True
    return torch.equal(result.double(), expected.double())


def farthest(result: torch.Tensor, expected: torch.Tensor) -> tuple[str, str, str]:
    """Return where two tensors of one shape differ most, such as "2, 0", and both numbers there."""
    differences = (expected.double() - result.double()).abs()
    at = torch.unravel_index(differences.argmax(), expected.shape)
    place = ", ".join(f"{index}" for index in at)
    return place, *in_digits(result[at].item(), expected[at].item())
