"""What labs say comes whole from the catalogue, so that another language can order it."""

import re
from collections.abc import Iterator
from pathlib import Path
from string import Formatter

import pytest

from course_utils.chapters.checkpointing.plan_lab.asked import LEVELS
from course_utils.chapters.gradients.trained_models import with_parameters
from course_utils.chapters.labs import lab_named
from course_utils.core.measure import MeasurementProgress
from course_utils.core.predict.storages import Held
from course_utils.core.say.language import speak
from course_utils.engine.labs.jobs import as_progress
from course_utils.engine.labs.lab import View
from course_utils.stage.translations import package
from course_utils.subjects.child_processes.transformers import FORWARD
from tests.helpers.labs import text_of

PACKAGE = Path(__file__).parents[2] / "course_utils"
INNERMOST = re.compile(r"⟦[^⟦⟧]*⟧")
# States beyond the presets, in which a lab says something else.
MORE = {
    "roof": ({"shown": True},),
    "chain": ({"product": 0},),
    "timeline": (
        {"ask": "held"},
        {"ask": "fullest"},
        {"ask": "fullest", "shown": True, "fullest": [33]},
        {"recipe": "fp32 sgd", "machine": "T4", "machines": 8},
    ),
    "optimizer": (
        {"racing": ["SGD"]},
        {"racing": ["SGD"], "step": 9},
        {"step": 0},
        {"lr": 10.0, "racing": ["SGD", "momentum"]},
        {"lr": 10.0, "steepness": 1000},
        {"run": "10,000 steps, lr falling to 0"},
        {"guessed": "SGD", "shown": True},
        {"guessed": "RMSProp", "shown": True, "run": "10,000 steps"},
        {"guessed": "AdamW", "shown": True},
        {"guessed": "SGD"},
    ),
    "precision": (
        {"shown": True, "power": 0},
        {"shown": True, "power": 40},
        {"shown": True, "power": 0, "fmt": "e4m3"},
        {"shown": True, "power": 9, "fmt": "e4m3"},
        {"shown": True, "power": 30, "fmt": "e5m2"},
        {"shown": True, "power": 20, "fmt": "fp32"},
    ),
    "updates": ({"shown": True},),
    "plan": tuple({"level": level, "batch": 64} for level in LEVELS),
    "account": (
        {"model": "GPT-2 small", "sequence": 8192},
        {"model": "DeepSeek-V3", "recomputed": True},
        {"model": "Gemma 3 1B", "machine": "T4"},
    ),
}


@pytest.fixture(autouse=True)
def marked() -> Iterator[None]:
    """Speak a language whose sentences are their values alone, between brackets."""
    speak({sentence: _marked(sentence) for _, sentence in package.sentences_of(PACKAGE)})
    yield
    speak({})


def _marked(sentence: str) -> str:
    gaps = [f"{{{name}}}" for _, name, _, _ in Formatter().parse(sentence) if name]
    return f"⟦{' '.join(gaps)}⟧"


def views(name: str) -> Iterator[View]:
    """Return what the lab shows at first, by its presets, and in the states of MORE."""
    lab = lab_named(name)
    at_first = {key: field.default for key, field in lab.fields.items()}
    for moved in ({}, *lab.presets.values(), *MORE[name]):
        asked = lab.read({**at_first, **moved})
        yield lab.view(asked, lab.known(asked, lab.found))


def outside_of_brackets(text: str) -> str:
    """Return what is left of a text without what stands between brackets.

    >>> outside_of_brackets("⟦⟦1⟧ of ⟦2⟧⟧ so far")
    ' so far'
    """
    rest = INNERMOST.sub("", text)
    return rest if rest == text else outside_of_brackets(rest)


@pytest.mark.parametrize("name", sorted(MORE))
def test_the_line_below_a_lab_is_made_of_whole_sentences(name):
    for view in views(name):
        assert "⟦" in view.meaning
        assert not outside_of_brackets(view.meaning).strip()


def test_a_sentence_is_ordered_as_the_language_has_it():
    english = (
        "Product {number} of {count}: {made} is made of {first} and {second}. "
        "So far {done} of {all}."
    )
    speak({english: "Aus {first} und {second} wird {made}: {done} von {all}, {number}/{count}."})
    lab = lab_named("chain")
    at_first = {key: field.default for key, field in lab.fields.items()}
    view = lab.view(lab.read({**at_first, "product": 1}), lab.found)
    assert view.meaning == "Aus x und w1 wird h1: 134 MFLOPs von 503 MFLOPs, 1/6."


@pytest.mark.parametrize(
    ("name", "title"),
    [
        ("chain", "Each coloured box is a matrix product"),
        ("optimizer", "Largest loss of the last"),
        ("plan", "A step, pass by pass"),
        ("precision", "How many gradients of each size"),
        ("roof", "All products"),
        ("timeline", "a step of"),
        ("updates", "Share of the updates that are lost"),
        ("account", "One GPU's memory over a step"),
    ],
)
def test_a_title_is_in_the_language_too(name, title):
    in_language = text_of(next(views(name)))
    speak({})
    assert title in text_of(next(views(name)))
    assert title not in in_language


@pytest.mark.parametrize(
    ("name", "marks"),
    [
        ("roof", {"shares": [9] * 5}),
        ("timeline", {"ask": "held", "held": [9] * 9}),
        ("timeline", {"ask": "fullest", "fullest": [9]}),
        ("precision", {"guess": [9, 9]}),
        ("updates", {"guess": [9] * 4}),
    ],
)
def test_what_a_guess_is_about_is_listed_for_translators(name, marks):
    """The record keeps it in English, so it is looked up when it is shown."""
    lab = lab_named(name)
    at_first = {key: field.default for key, field in lab.fields.items()}
    asked = lab.read({**at_first, **marks, "shown": True})
    guesses = lab.guesses(asked, lab.known(asked, lab.found))
    listed = {sentence for _, sentence in package.sentences_of(PACKAGE)}
    assert guesses
    assert {guess.asked for guess in guesses} <= listed


def test_the_timelines_parts_and_its_rows_are_in_the_language_too():
    speak({"in passing": "nebenbei", "passing": "Nebenbei", "gradients": "Gradienten"})
    lab = lab_named("timeline")
    at_first = {key: field.default for key, field in lab.fields.items()}
    view = lab.view(lab.read(at_first), lab.found)
    listed = text_of(view)
    assert "nebenbei" in listed
    assert "Gradienten" in listed
    assert "in passing" not in listed
    listed_for_translators = {sentence for _, sentence in package.sentences_of(PACKAGE)}
    assert {*Held._fields} <= listed_for_translators
    first_column = [row[0] for row in view.table]
    assert "Nebenbei" in first_column
    assert "Gradienten" in first_column


def test_a_mixtures_title_has_its_counts_as_the_language_says_them():
    speak({"{number} billion": "{number} Milliarden"})
    assert with_parameters("Mixtral 8x7B") == (
        "Mixtral 8x7B, 46.7 Milliarden parameters, of which a token uses 12.9 Milliarden"
    )


def test_a_measurement_in_another_process_reports_in_the_language():
    speak({"Forward, {done} of {layers} layers.": "Vorwärts: von {layers} Schichten {done}."})

    def measured():
        yield MeasurementProgress(0.5, FORWARD, gaps={"done": "2", "layers": "12"})
        return "the result"

    (step,) = as_progress(measured(), at_most_s=60)
    assert step.report == "Vorwärts: von 12 Schichten 2."
