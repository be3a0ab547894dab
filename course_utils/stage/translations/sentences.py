"""Sentences that Python makes for the contents pages, as whole templates with named gaps.

A language may order the parts of a sentence as it likes, so no sentence is made of pieces.
"""

from course_utils.stage.notebook.about import About
from course_utils.stage.translations import templates
from course_utils.stage.translations.edition import Edition


def said(spoken: str, sentence: str, /, **values: object) -> str:
    """Return the sentence in that language, with the values in its gaps."""
    return Edition(spoken, templates.CONTENTS).words(sentence).format(**values)


def start(spoken: str, number: int, title: str) -> str:
    """Return the words of the button with which the course begins."""
    return said(spoken, templates.START, number=number, title=title)


def go_on(spoken: str, number: int, title: str) -> str:
    """Return the words of the button that leads to where the reader was."""
    return said(spoken, templates.GO_ON, number=number, title=title)


def asked(spoken: str, unit: str) -> str:
    """Return the question of a slide for a guess, with its unit if there is one."""
    if unit:
        return said(spoken, "Your guess ({unit})?", unit=unit)
    return said(spoken, "Your guess?")


def minutes_and_needs(spoken: str, about: About, edition: Edition) -> str:
    """Return how long a notebook takes and what its reader needs; `edition` is the notebook's.

    In English they are the sentences of `About`, word by word.
    """
    sentences = []
    if about.minutes:
        sentence = templates.MINUTES_BEYOND if about.minutes_beyond else templates.MINUTES
        values = {"minutes": about.minutes, "beyond": about.minutes_beyond}
        sentences.append(said(spoken, sentence, **values))
    if about.needs:
        needs = [edition.words(need, "needs") for need in about.needs]
        sentence = templates.NEEDS
        if about.needs[0].isdecimal():
            sentence = templates.NEEDS_NOTEBOOK if len(needs) == 1 else templates.NEEDS_NOTEBOOKS
        sentences.append(said(spoken, sentence, needs=_listed(spoken, needs)))
    return _in_a_row(spoken, sentences)


def _in_a_row(spoken: str, sentences: list[str]) -> str:
    """Return whole sentences as one text."""
    text = ""
    for sentence in sentences:
        gaps = {"text": text, "sentence": sentence}
        text = said(spoken, templates.IN_A_ROW, **gaps) if text else sentence
    return text


def _listed(spoken: str, items: list[str]) -> str:
    """Return the items as a list in a sentence, such as "1, 2 and 3"."""
    *first, last = items
    if not first:
        return last
    listed = first[0]
    for item in first[1:]:
        listed = said(spoken, templates.COMMA, items=listed, next=item)
    return said(spoken, templates.AND, items=listed, last=last)
