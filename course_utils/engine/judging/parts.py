"""An answer in parts: which part of a sum explains a wrong one.

An exercise whose answer is a sum may name its parts and their sizes. If an answer is wrong, the
slips that a reader makes with a part are tried: the part is left out, counted twice, taken as large
as another part, or counted to a fraction. A slip explains the answer if the sum with this slip is
exactly what the answer gave, in this case, in the cases before it, and in those after it. (In the
cases before it the answer was right, so there the slip must not change the sum.) If no slip does,
two slips are tried together.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from course_utils.core.say import Number, listed
from course_utils.core.say.language import in_a_row, template, translated
from course_utils.engine.judging.agreement import is_number, near, plain
from course_utils.engine.judging.exercises import Exercise, Outcome, PartsOf
from course_utils.engine.judging.pairs import told_apart
from course_utils.engine.judging.sentences import number_in_full
from course_utils.engine.judging.slips import LEFT_OUT, SAME, TWICE, Parts, Slip, changes_by_slip
from course_utils.engine.judging.two_slips import explaining_pair, slips_in

NO_PART = template("The difference does not show which part is wrong, and it may be more than one.")
# A larger answer is not subtracted from the right one: no count of the course comes near this.
LARGEST_RESULT = 1e30
MOST_THAT_FIT = 3  # parts of one size that are named in one sentence


@dataclass(frozen=True)
class Told:
    """The parts of a sum, as an exercise passes them, with a way to find out what an answer counts.

    `told` takes the reader's function and a case on which no slip explains its result. It returns a
    sentence, which is empty if it cannot say anything.
    """

    parts_of: PartsOf
    told: Callable[[Callable[..., object], tuple], str]

    def __call__(self, *case: object) -> Parts:
        return self.parts_of(*case)


def in_parts(
    past: Sequence[Outcome],
    further: Sequence[Outcome],
    exercise: Exercise,
    *,
    is_advised: bool,
) -> tuple[str, bool]:
    """Return the sentence on a wrong sum, and whether it names what is wrong.

    `past` has each case so far, with the result of the reader's function; the last result is wrong.
    `further` has the cases after it, which a slip has to explain as well. The sentence is empty if
    the wrong result is no number from which the right one can be subtracted. If the reader
    `is_advised` on a listed mistake, only a part that is left out or counted twice is named,
    because another explanation may contradict the advice.
    """
    case, result, _error = past[-1]
    number = plain(result)
    # The comparison is False for NaN and infinity, so these are rejected here, too.
    if not is_number(number) or not -LARGEST_RESULT < number < LARGEST_RESULT:
        return "", False
    parts = exercise.parts(*case)  # such as {"forward pass": 120, "backward pass": 240}
    right = sum(parts.values())
    amount = _difference_in_words(number - right)
    told = _wrong_parts(past, further, exercise, amount, is_advised=is_advised)
    # The verdict puts the name of the reader's function in front of this.
    gave, wanted = told_apart(number, right, exercise.unit)
    sentence = translated("gave {result} instead of {wanted}.", result=gave, wanted=wanted)
    if told:
        return in_a_row(sentence, told), True
    sentence = translated(
        "gave {result} instead of {wanted}, {amount}.", result=gave, wanted=wanted, amount=amount
    )
    return sentence, False  # such as "gave 120 instead of 360 FLOPs, 240 short."


def _wrong_parts(
    past: Sequence[Outcome],
    further: Sequence[Outcome],
    exercise: Exercise,
    amount: str,
    *,
    is_advised: bool,
) -> str:
    """Return a sentence on the parts that are wrong; empty if that can't be told."""
    case, _result, _error = past[-1]
    parts = exercise.parts(*case)
    if is_advised:
        slips = _slips_beside_advice(past, further, exercise)
        return _checklist(parts, slips, amount) if slips else ""
    slips = _explaining_slips(past, further, exercise.parts)
    if slips:
        return _checklist(parts, slips, amount)
    of_two = _of_two_slips(past, further, exercise, amount)
    return of_two or _suspected(parts, past[:-1], exercise.parts, amount)


def _slips_beside_advice(
    past: Sequence[Outcome], further: Sequence[Outcome], exercise: Exercise
) -> list[Slip]:
    """Return the slips that may be named beside the advice on a listed mistake."""
    # The mistake may be right in other cases: the embedding twice, in tied models alone.
    wrong = [outcome for outcome in further if not _is_right(outcome, exercise)]
    slips = _explaining_slips(past, wrong, exercise.parts)
    return slips if all(slip.how in (LEFT_OUT, TWICE) for slip in slips) else []


def _is_right(outcome: Outcome, exercise: Exercise) -> bool:
    case, result, _error = outcome
    right = sum(exercise.parts(*case).values())
    return near(plain(result), right, exercise.tolerance or SAME)


def _proved(parts: Parts, right_before: Sequence[Outcome], parts_of: PartsOf) -> list[str]:
    """Return the names of the parts that were as large in an earlier case, whose sum was right."""
    proved = set()
    for case, _result, _error in right_before:
        earlier = parts_of(*case)
        proved |= {name for name, size in parts.items() if size and earlier.get(name) == size}
    return [name for name in parts if name in proved]  # in their order


def _suspected(
    parts: Parts, right_before: Sequence[Outcome], parts_of: PartsOf, amount: str
) -> str:
    """Return a sentence such as "Forward pass ✓, recomputed layers not yet right: 240 short.".

    It is empty if no part is proved, or if too many are left.
    """
    proved = _proved(parts, right_before, parts_of)
    suspects = [name for name, size in parts.items() if size and name not in proved]
    if not proved or not 0 < len(suspects) <= MOST_THAT_FIT:
        return ""
    words = [f"{name} ✓" for name in proved]
    names = suspects[0]
    for name in suspects[1:]:
        names = translated("{names} or {last}", names=names, last=name)
    words.append(translated("{names} not yet right: {amount}.", names=names, amount=amount))
    return _as_a_sentence(words)


def _as_a_sentence(words: Sequence[str]) -> str:
    row = ", ".join(words)
    return row[0].upper() + row[1:]  # capitalize() would lower all other letters


def _difference_in_words(difference: Number) -> str:
    """Return the result minus the right sum, such as "5 short", "5 too many" or "0.5 too much"."""
    size = abs(difference)
    is_count = size == int(size)
    words = number_in_full(int(size)) if is_count else number_in_full(size, 3)
    if difference < 0:
        return translated("{number} short", number=words)
    if is_count:
        return translated("{number} too many", number=words)
    return translated("{number} too much", number=words)


def _checklist(parts: Parts, slips: Sequence[Slip], amount: str) -> str:
    """Return the names of the right parts, each with a ✓, and then those of the slips.

    It is like "Forward pass ✓, backward pass left out: 240 short." A part of size 0 is not named.
    """
    wrong = {name for slip in slips for name in slip.names}
    words = [f"{name} ✓" for name, size in parts.items() if size and name not in wrong]
    names = _names_of(slips[0], parts)
    for slip in slips[1:]:
        names = translated("{names} or {last}", names=names, last=_names_of(slip, parts))
    how = slips[0].in_words  # several slips are alike but for their parts
    words.append(translated("{names} {how}: {amount}.", names=names, how=how, amount=amount))
    return _as_a_sentence(words)


def _of_two_slips(
    past: Sequence[Outcome],
    further: Sequence[Outcome],
    exercise: Exercise,
    amount: str,
) -> str:
    """Return a sentence on two slips that explain the result; empty if no two do so.

    It is like "Roof ✓, walls left out, door counted twice: 4 short."
    """
    if isinstance(exercise.parts, Told):  # what the answer counts says more
        return ""
    pair = explaining_pair(past, further, exercise.parts)
    if not pair:
        return ""
    case, _result, _error = past[-1]
    parts = exercise.parts(*case)
    wrong = {name for slip in pair for name in slip.names}
    words = [f"{name} ✓" for name, size in parts.items() if size and name not in wrong]
    *before, last = slips_in(pair, parts, case)
    names = _names_of(last, parts)
    how = last.in_words
    for slip in before:  # one, or none
        if slip.names == last.names:
            how = translated("{how}, and {also}", how=slip.in_words, also=how)
        else:
            first = _names_of(slip, parts)
            words.append(translated("{names} {how}", names=first, how=slip.in_words))
    words.append(translated("{names} {how}: {amount}.", names=names, how=how, amount=amount))
    return _as_a_sentence(words)


def _names_of(slip: Slip, parts: Parts) -> str:
    """Return the names of the slip's parts. Of several, only those that have a size in this case.

    The others were needed to explain another case.
    """
    with_a_size = [name for name in slip.names if parts[name]]
    return listed(with_a_size or slip.names)


def _explaining_slips(
    past: Sequence[Outcome], further: Sequence[Outcome], parts_of: PartsOf
) -> list[Slip]:
    """Return the likeliest slips that explain the result in every case.

    Several slips are returned only if they are alike but for the part: then these parts have the
    same size, and the results do not show which part it was. The list is empty if no slip explains
    the results, if the likeliest ones are not alike, or if they are more than MOST_THAT_FIT.
    """
    case, result, _error = past[-1]  # the wrong one
    changes = changes_by_slip(parts_of(*case), case)
    right = sum(parts_of(*case).values())
    fitting = {}  # the rank of each slip that explains this result
    for slip, (rank, change) in changes.items():
        # A reader who makes this slip gets the right sum, changed by `change`.
        if near(plain(result), right + change, SAME):
            fitting[slip] = rank
    for outcome in (*past[:-1], *further):
        if fitting:
            refuted = _refuted(outcome, parts_of)
            fitting = {slip: rank for slip, rank in fitting.items() if slip not in refuted}
    rank_of_likeliest = min(fitting.values(), default=0)
    slips = [slip for slip, rank in fitting.items() if rank == rank_of_likeliest]
    are_alike = len({(slip.how, slip.beside) for slip in slips}) == 1
    # "a or b left out" is clear, and "a and b or c and d left out" is not.
    is_clear = len(slips) == 1 or all(len(slip.names) == 1 for slip in slips)
    if are_alike and is_clear and len(slips) <= MOST_THAT_FIT:
        return slips
    return []


def _refuted(outcome: Outcome, parts_of: PartsOf) -> set[Slip]:
    """Return the slips that a reader with this outcome has not made.

    Where no number came, something else is wrong as well, so that the case says nothing.
    """
    case, result, error = outcome
    number = plain(result)
    if error or not is_number(number):
        return set()
    parts = parts_of(*case)
    right = sum(parts.values())
    changes = changes_by_slip(parts, case)
    return {slip for slip, (_, change) in changes.items() if not near(number, right + change, SAME)}
