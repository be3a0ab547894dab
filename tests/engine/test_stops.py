"""What a verdict says of errors and tuples has a use for a reader, and not for Python alone."""

import math

import pytest
import torch

from course_utils.core.accountant import BYTES, tensor_bytes
from course_utils.engine.judging import function
from course_utils.engine.judging.errors import advice_on_error, stopped
from course_utils.engine.judging.sentences import advice_on_kind, gave
from tests.engine.test_checks import CHECKS


def sentences_on(function, *case):
    with pytest.raises((KeyError, TypeError, ValueError, NameError, RuntimeError)) as caught:
        function(*case)
    sentence = stopped(function, caught.value)
    return sentence.partition(" in line ")[2][3:].strip(), advice_on_error(caught.value)


def test_of_a_missing_key_it_is_said_which_dict_lacks_it_and_what_it_has():
    sentence, advice = sentences_on(lambda dtypes: BYTES[dtypes], ("bf16",))
    assert "with KeyError: BYTES has no key ('bf16',). Its keys: ['fp64', 'fp32', " in sentence
    assert advice == "That key is a tuple. If its values are keys, take them one at a time."


def test_a_function_that_was_not_called_gets_advice():
    _, advice = sentences_on(lambda t: 1 + t.untyped_storage().nbytes, torch.ones(2))
    assert advice == "A function was not called: write brackets after its name."
    _, advice = sentences_on(lambda shape: math.prod[shape], (2, 3))
    assert advice == "Square brackets take an element. A function is called with round ones."
    said = CHECKS["element"](lambda storage, *_: storage(0)).words
    assert "TypeError: 'list' object is not callable." in said
    assert said.endswith("Round brackets call a function. A list is indexed with square ones.")


def test_of_a_name_that_is_not_defined_it_is_said_if_it_is_in_math():
    _, advice = sentences_on(lambda x: log2(x), 8)  # noqa: F821
    assert advice == "That is in the module math: import math, and write math.log2."
    source = compile("def f(x): return math.ceil(x)", "cell", "exec")
    exec(source, cell := {})
    assert sentences_on(cell["f"], 8)[1] == "That is a module: write import math above."
    assert sentences_on(lambda x: unknown + x, 8)[1] == ""  # noqa: F821


def test_torchs_words_on_a_tensor_without_numbers_are_plain():
    sentence, _ = sentences_on(lambda size: torch.ones(size).max(), 0)
    assert sentence.endswith("with RuntimeError: max() of a tensor without numbers.")


def test_an_error_of_the_courses_is_its_sentence_without_the_name_of_a_class():
    from course_utils.core.predict import training

    sentence, _ = sentences_on(lambda stage: training.split_in(stage), 7)
    assert sentence
    assert "Error" not in sentence
    own, _ = sentences_on(lambda stage: math.sqrt(stage), -1)
    assert "ValueError" in own


def test_a_complex_number_is_explained():
    assert "root of a negative number" in advice_on_kind((-8.0) ** (1 / 3), 2.0)
    assert gave((-8.0) ** (1 / 3), 2.0, 0) == "gave a complex number; expected 2."


@function(
    [(torch.tensor([1.0, 2.0]), 1024), (torch.tensor([3.0, 5.0]), 2048)],
    gives=("p", "count"),
    unit="",
)
def stepped(p, count):
    """The check of a step: (p, count)."""
    yield (p - 0.5, 2 * count), "Half off, and doubled."


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (lambda p, count: (p - 0.5, count), "gave p ✓; count: 1,024 instead of 2,048."),
        (
            lambda p, count: (p * 2 - 0.5, 2 * count),
            "gave p[1]: 3.5 instead of 1.5; count ✓.",
        ),
        (lambda p, count: p - 0.5, "gave p alone. Return both: p and count."),
        (
            lambda p, count: (p, count, 1),
            "gave (a tensor of shape (2,), 1024, 1). Return both: p and count.",
        ),
        (
            lambda p, count: (p.half() - 0.5, 2 * count + math.nan),
            "gave p ✓; count: nan instead of 2,048. NaN is not a number. "
            "It comes from 0 / 0, 0 × inf or inf - inf.",
        ),
        (
            lambda p, count: ((p - 0.5).reshape(2, 1), 2 * count),
            "gave p: a tensor of shape (2, 1) instead of a tensor of shape (2,); count ✓.",
        ),
        (lambda p, count: (p * math.nan, 2 * count), "gave p: NaN among its numbers; count ✓."),
    ],
)
def test_values_of_a_tuple_are_told_by_their_names(answer, words):
    assert stepped(answer).words.partition("your function ")[2] == words


def test_one_number_is_right_in_all_verdicts_on_a_sum():
    said = CHECKS["step_bytes"](lambda *case: None).words
    wrong = CHECKS["step_bytes"](lambda *case: 7).words
    assert "4,841,280" in said
    assert "4,841,280" in wrong
    assert tensor_bytes((2,), "bf16") == 4
