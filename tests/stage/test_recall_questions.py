import re
from collections import Counter

import pytest

from course_utils.core.say import number_text
from course_utils.core.say.closeness import WORDS
from course_utils.core.say.typed import read
from course_utils.stage.notebook import files
from course_utils.stage.notebook.about import about
from course_utils.stage.recall.bank import QUESTIONS
from course_utils.stage.recall.question import Asked, Mistake, Question
from tests import NOTEBOOKS
from tests.helpers.recall import DRAWS

NUMBER = re.compile(r"(?<![\w^.-])-?\d[\d,]*(?:\.\d+)?(?:e-?\d+)?")
CHAPTERS = {
    about(files.read(path), path.name).chapter: {cell["id"] for cell in files.read(path)["cells"]}
    for path in NOTEBOOKS
}
DRAWN = [question.draw(seed) for question in QUESTIONS.values() for seed in range(DRAWS)]


def numbers_in(text: str) -> set[float]:
    return {float(found.replace(",", "").rstrip(".")) for found in NUMBER.findall(text)}


def test_each_notebook_has_at_least_five_questions_whose_cells_are_in_it():
    of_chapter = Counter(question.chapter for question in QUESTIONS.values())
    assert list(of_chapter) == list(CHAPTERS)
    assert min(of_chapter.values()) >= 5
    for question in QUESTIONS.values():
        assert question.cell in CHAPTERS[question.chapter], question.name


def test_more_than_ten_thousand_are_drawn_and_the_sizes_really_change():
    assert len(DRAWN) > 10_000
    answers = {name: set() for name in QUESTIONS}
    for drawn in DRAWN:
        answers[drawn.question.name].add(drawn.asked.answer)
    assert [name for name, different in answers.items() if len(different) < 3] == []


def test_no_answer_stands_in_its_question():
    given_away = [
        drawn.asked.text for drawn in DRAWN if drawn.asked.answer in numbers_in(drawn.asked.text)
    ]
    assert given_away == []


def test_no_answer_is_absurd():
    """Each can be said: it is finite, not 0, and not longer than somebody would type."""
    for drawn in DRAWN:
        size = abs(drawn.asked.answer)
        assert 1e-6 < size < 1e15, drawn
        if drawn.asked.unit.startswith("percent"):
            assert 1 <= size <= 400, drawn
        if drawn.asked.unit == "GB":
            assert 0.01 <= size <= 20_000, drawn


def test_each_derivation_ends_in_the_answer_and_takes_two_lines_at_most():
    for drawn in DRAWN:
        asked = drawn.asked
        number = asked.answer_text.split(" ")[0]
        assert number in asked.derivation, asked
        assert len(asked.derivation) <= 260, asked
        assert len(asked.text) <= 330, asked
        assert asked.derivation.endswith("."), asked


def test_each_tempting_mistake_is_wrong_and_gets_its_advice():
    with_mistakes = Counter()
    for drawn in DRAWN:
        asked = drawn.asked
        for mistake in asked.mistakes:
            assert not asked.is_right(mistake.said), drawn
            assert mistake.advice.endswith("."), drawn
        if asked.mistakes:
            with_mistakes[drawn.question.name] += 1
            assert asked.advice(asked.mistakes[0].said) == asked.mistakes[0].advice
        assert asked.advice(asked.answer) == ""
    assert set(with_mistakes) == set(QUESTIONS)


def test_the_answer_counts_as_right_when_it_is_typed_as_it_is_shown():
    for drawn in DRAWN:
        typed = f"{drawn.asked.answer:.3g}"
        if drawn.asked.is_exact:
            typed = number_text(drawn.asked.answer)
        said = drawn.read(typed)
        assert drawn.asked.is_right(said), drawn
        assert drawn.asked.how_far(said).partition(":")[0].lower() in WORDS, drawn


def test_a_seed_draws_the_same_question_everywhere():
    stops = QUESTIONS["floats.stops"]
    assert stops.draw(7) == stops.draw(7)
    assert [stops.draw(seed).sizes["fraction_bits"] for seed in range(6)] == [12, 4, 4, 8, 4, 6]


def test_two_days_after_each_other_the_sizes_are_nearly_always_others():
    same = [
        (name, seed)
        for name, question in QUESTIONS.items()
        for seed in range(740_000, 740_040)
        if question.draw(seed).sizes == question.draw(seed + 1).sizes
    ]
    assert len(same) < len(QUESTIONS) * 40 / 20


@pytest.mark.parametrize(
    ("typed", "sentence"),
    [
        ("", "Type a number."),
        ("about twelve", "'about twelve' is not a number here. Write it as 4096, 2^12, 3 kB"),
        ("-3", "It cannot be below 0: -3 bytes."),
        ("1e999", "'1e999' is too large."),
    ],
)
def test_nonsense_gets_a_sentence(typed, sentence):
    with pytest.raises(ValueError, match=re.escape(sentence)):
        QUESTIONS["tensors.kept"].draw(1).read(typed)


def test_another_unit_than_the_one_asked_for_may_be_typed():
    drawn = QUESTIONS["tensors.kept"].draw(1)
    assert drawn.read(f"{drawn.asked.answer / 2**20} MiB") == drawn.asked.answer


def test_where_an_answer_is_exact_a_neighbour_is_told_so():
    asked = Asked("", 5203, "", is_exact=True)
    assert not asked.is_right(5204)
    assert asked.how_far(5204) == "Near, but it has to be exact: 5,204 for 5,203"
    assert asked.how_far(5203) == "Spot on: 5,203"


def test_a_mistake_that_leads_to_the_right_answer_is_no_mistake():
    def asked() -> Asked:
        return Asked("", 8, "", mistakes=(Mistake(8, "Right."), Mistake(4, "A."), Mistake(4, "B.")))

    drawn = Question("floats.same", "", asked, {}).draw(0)
    assert drawn.asked.mistakes == (Mistake(4, "A."),)


def test_sizes_that_never_make_a_good_question_are_an_error():
    with pytest.raises(ValueError, match=r"No sizes of floats\.none make a good question"):
        Question("floats.none", "", lambda: None, {}).draw(0)


def test_what_was_read_is_a_number_of_the_typed_module():
    assert QUESTIONS["mixed_precision.scale"].draw(1).read("2^14") == read("16,384")
