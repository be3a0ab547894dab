"""The course as HTML: a page for each notebook with its results, the contents, and the glossary."""

import os
import re
from collections.abc import Sequence
from html import escape
from pathlib import Path
from string import Template

import nbformat
from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath
from pygments.formatters import HtmlFormatter

from course_utils.core.say.language import template, translated
from course_utils.engine.guessing.field import Field
from course_utils.engine.labs.screen import Screen
from course_utils.stage.front import bricks, cards, drawing
from course_utils.stage.front.motion import motion
from course_utils.stage.notebook.about import about
from course_utils.stage.notebook.code import Figure, asks_ahead, is_imports
from course_utils.stage.notebook.files import WIDGET
from course_utils.stage.notebook.outline import Outline, Part, outline
from course_utils.stage.pages import guesses, languages
from course_utils.stage.pages import recall_page as recall
from course_utils.stage.pages.host import Precomputed
from course_utils.stage.pages.labs import lab
from course_utils.stage.pages.precomputed import FIRST, precomputed
from course_utils.stage.slides import choice, deck
from course_utils.stage.translations import sentences, templates
from course_utils.stage.translations.edition import ENGLISH, IN_ENGLISH, Edition
from course_utils.stage.translations.loading import in_edition, in_language
from course_utils.stage.translations.spoken import speaking
from course_utils.stage.translations.templates import CONTENTS, DESCRIPTION
from course_utils.stage.workspace import copies, progress

HERE = Path(__file__).parent
Found = dict[str, Precomputed | None]  # what each lab computed with torch, by the lab's name
# "owner/name", alone or as https://github.com/owner/name
REPOSITORY = re.compile(r"(?:https://github\.com/)?([\w-]+/[\w.-]+)/?")
FOLD = '<details class="fold"><summary>Go on</summary>'  # it is closed at the end of the page
FRONT_SCRIPT = '<script type="module" src="front.js"></script>'
RECALL_SCRIPT = '<script type="module" src="recall.js"></script>'
LAB_SCRIPT = '<script type="module" src="lab.js"></script>'
PAGE = Template((HERE / "page.html").read_text(encoding="utf-8"))
TITLE = "Where the memory and the compute go"
RECALL_TITLE = template("Three to recall")
RECALL = template(
    "Three questions of the course come back each day, with new sizes. Two minutes, in the browser."
)
ACCOUNT_TITLE = template("What does a model take?")
ACCOUNT = template(
    "Choose a model or paste its config.json: its parameters, whether it fits, the memory of a "
    "step, the days of its training, what serving it costs. Each number shows its formula."
)


class Renderer(deck.Renderer):
    """Renders Markdown as for slides, but headings have anchors, and the glossary is a page."""

    def heading(self, text: str, level: int, **attrs: object) -> str:
        """Return the heading with its anchor."""
        return f'<h{level} id="{_anchor(text)}">{text}</h{level}>\n'

    def link(self, text: str, url: str, title: str | None = None) -> str:
        """Return the link; one to a notebook or to the glossary leads to its page."""
        url = re.sub(r"^([\w-]+)\.ipynb", r"\1.html", url)
        url = url.replace(copies.GLOSSARY, "glossary.html", 1)
        url = url.replace("../README.md#the-notebooks", "index.html")
        # Not super().link, which is that of the slides and drops links to the glossary.
        return IPythonRenderer.link(self, text, url, title)


def _anchor(heading: str) -> str:
    """Return the heading's words with hyphens for blanks, as links in the notebooks have them."""
    words = re.sub(r"<[^>]*>", "", heading)  # without tags, such as those of `code`
    return words.replace(" ", "-")


def prose(text: str) -> str:
    """Return a text in Markdown as HTML. It may have formulas and the course's own HTML in it."""
    return MarkdownWithMath(renderer=Renderer(escape=False)).render(text)


def repository_url() -> str:
    """Return the repository's address from the setting REPO, or "".

    ValueError if REPO is set, but is neither owner/name nor an address that begins with https.
    """
    asked = os.environ.get("REPO", "").strip()
    if not asked:
        return ""
    owner_and_name = REPOSITORY.fullmatch(asked)
    if owner_and_name:
        return f"https://github.com/{owner_and_name[1]}"
    # Any other address is taken as it is, if it can stand in an attribute of HTML.
    if asked.startswith("https://") and not re.search(r"[\s<>\"']", asked):
        return asked
    raise ValueError(
        f"REPO={asked} is no repository. Say owner/name, or its whole address: https://…"
    )


def page(
    title: str,
    main: str,
    *,
    script: str = "",
    description: str = DESCRIPTION,
    kind: str = "",
    stem: str = "index",
    edition: Edition = IN_ENGLISH,
) -> str:
    """Return a page of the site around that HTML, whose main element may have a class, `kind`.

    `stem` is the beginning of its file's name, and `edition` says its language.
    """
    url = repository_url()
    around = in_edition(Edition(edition.language, CONTENTS), templates.PAGE, PAGE.template)
    return Template(around).substitute(
        title=escape(title),
        main=languages.within(main, edition.language),
        kind=f' class="{kind}"' if kind else "",
        script=script,
        description=escape(description),
        language=edition.shown_language,
        ending=languages.ending(edition.language),
        languages=languages.switch(stem, edition.language),
        repository=f' Its source is <a href="{url}">here</a>.' if url else "",
        repository_short=f' · <a href="{url}">Source</a>' if url else "",
    )


def notebook_page(path: Path, found: Found, spoken: str = ENGLISH) -> str:
    """Return the page of a notebook with its stored results and its labs.

    What the labs compute with torch is added to `found`. `spoken` is the language of its text.
    """
    with speaking(spoken):
        return _notebook_page(path, found, Edition(spoken, path.stem))


def _notebook_page(path: Path, found: Found, edition: Edition) -> str:
    notebook = nbformat.read(path, as_version=4)
    known = outline(notebook)
    shown = []
    folds = 0
    for cell, part in zip(notebook.cells, known.parts, strict=True):
        if cell.cell_type == "markdown":
            shown.append(prose(edition.text(cell.id, cell.source)))
        elif asks_ahead(cell.source):
            continue  # without a reader's copy there is no record in which a guess could wait
        elif part.is_guess:
            # All that follows is folded, and not the answer alone, because the text says it, too.
            fields = [guesses.field(asked) for asked in part.asked]
            shown.append("".join(fields) + FOLD)
            folds += 1
        else:
            shown.append(_imports(cell.source) if is_imports(cell.source) else _code(cell.source))
            shown.append(_outputs(cell, part, known, found))
            if part.is_drawn_guess:
                shown.append(FOLD)
                folds += 1
    shown.append("</details>" * folds)  # each FOLD has opened one, inside the one before
    # Behind the first cell, which has the heading.
    titles = [edition.words(section.title, section.cell) for section in known.sections]
    shown.insert(1, _outline(titles))
    has_labs = any("data-lab=" in html for html in shown)
    question = about(notebook, path.name).question
    return page(
        edition.words(known.heading),
        "\n".join(shown),
        script=LAB_SCRIPT if has_labs else "",
        description=edition.words(question) if question else DESCRIPTION,
        stem=path.stem,
        edition=edition,
    )


def _code(text: str) -> str:
    _, html = deck.rendered("code", text)
    return html


def _imports(text: str) -> str:
    """Return as HTML, folded, the code of a cell that only imports: a page never runs it."""
    return f'<details class="imports"><summary>Imports</summary>{_code(text)}</details>'


def _outputs(cell: nbformat.NotebookNode, part: Part, known: Outline, found: Found) -> str:
    """Return a cell's outputs as HTML; if it reveals guesses, in an element with their names."""
    outputs = [output.data for output in cell.outputs if "data" in output]
    shown = [data for data in outputs if not choice.waits_for_the_reader(data)]
    results = [_output(part.figure, data, found) for data in shown]
    if not part.reveals:
        return "\n".join(results)
    answers = [guesses.answer(result, part, known) for result in results]
    names = " ".join(reveal.name for reveal in part.reveals)
    return f'<div data-answers="{names}">{"".join(answers)}</div>'


def _outline(titles: Sequence[str]) -> str:
    """Return links to a page's sections, and a button that unfolds all but answers to guesses."""
    items = [f'<li><a href="#{_anchor(title)}">{escape(title)}</a></li>' for title in titles]
    links = "".join(items)
    sections = f'<details class="outline"><summary>Sections</summary><ol>{links}</ol></details>'
    words = "Show everything, guesses aside"
    # page.js shows the button if anything on the page is folded.
    button = f'<button type="button" data-everything hidden>{words}</button>'
    return f'<div class="ways">{sections}{button}</div>'


def _output(figure: Figure | None, data: nbformat.NotebookNode, found: Found) -> str:
    """Return one output of a cell: a lab if it is a widget, otherwise the output as on a slide."""
    if WIDGET not in data or figure is None:
        kind, html = deck.rendered("output", data)
        if kind != "picture":
            return html
        # On a phone it is moved sideways, and the Tab key reaches it for that.
        return f'<div class="picture" tabindex="0" role="group">{html}</div>'
    name = figure.lab
    if name not in found:
        found[name] = precomputed(name)
    # The lab's first moves: methods of its session with their arguments, as `answer_of` takes them.
    begun = {"set": [{**FIRST.get(name, {}), **figure.answers}]}
    if figure.presets:  # a message has each move once, so it has one preset
        begun["preset"] = [figure.presets[0]]
    return lab(name, found[name], begun, figure.controls)


def contents_page(spoken: str = ENGLISH) -> str:
    """Return the front page: what this is, each notebook's card, and how to get a kernel."""
    with speaking(spoken):
        return _contents_page(Edition(spoken, CONTENTS))


def _contents_page(edition: Edition) -> str:
    spoken = edition.language
    title = edition.words(TITLE)
    description = edition.words(DESCRIPTION)
    environment = in_language(drawing.environment(HERE), spoken)
    cards_shown = [_card(path, spoken) for path in copies.notebooks()]
    shown = environment.get_template("contents.html").render(
        title=title,
        description=description,
        start=sentences.start(spoken, 1, cards_shown[0]["title"]),
        notebooks=cards_shown,
        motion=motion(spoken),
        bricks=bricks.wall(_places_of_turns(spoken), laid=()),
        model=bricks.MODEL,
        url=repository_url(),
    )
    return page(
        title, shown, script=FRONT_SCRIPT, description=description, kind="front", edition=edition
    )


def _card(path: Path, spoken: str) -> dict[str, object]:
    """Return what the template needs to show a notebook's card."""
    known = progress.known(path)
    edition = Edition(spoken, path.stem)
    return {
        "title": edition.words(known.about.title, "title"),
        "link": f"{path.stem}.html",
        "question": edition.words(known.about.question, "question"),
        "needs": sentences.minutes_and_needs(spoken, known.about, edition),
        "picture": cards.picture(known.about.chapter),
    }


def _places_of_turns(spoken: str) -> dict[str, bricks.Place]:
    """Return where each turn stands on the pages, by its check's name within its chapter."""
    places = {}
    for number, path in enumerate(copies.notebooks(), 1):
        edition = Edition(spoken, path.stem)
        for turn in progress.known(path).turns:
            words = edition.words(f"Your turn {turn.number} · {turn.title}", turn.cells[0])
            link = f"{path.stem}.html#{_anchor(words)}"
            places[turn.exercise] = bricks.Place(number, link, "")
    return places


def account_page(found: Found, spoken: str = ENGLISH) -> str:
    """Return the page for everyone: the accountant as a lab, for any model, GPUs and recipe."""
    known = found.setdefault("account", precomputed("account"))
    template = (HERE / "account.html").read_text(encoding="utf-8")
    edition = Edition(spoken, CONTENTS)
    with speaking(spoken):
        html = lab("account", known, {"set": [{}]}, linked=True)
        main = Template(in_edition(edition, templates.ACCOUNT_PAGE, template)).substitute(lab=html)
        return page(
            translated(ACCOUNT_TITLE),
            main,
            script=LAB_SCRIPT,
            description=translated(ACCOUNT),
            stem="account",
            edition=edition,
        )


def recall_page(spoken: str = ENGLISH) -> str:
    """Return the page on which questions come back, and the browser keeps what was answered."""
    edition = Edition(spoken, CONTENTS)
    with speaking(spoken):
        return page(
            translated(RECALL_TITLE),
            in_edition(edition, templates.RECALL_PAGE, recall.MAIN) + recall.sections_in(spoken),
            script=RECALL_SCRIPT,
            description=translated(RECALL),
            stem="recall",
            edition=edition,
        )


def glossary_page(spoken: str = ENGLISH) -> str:
    """Return the page with every word of the glossary."""
    text = (copies.COURSE / copies.GLOSSARY).read_text(encoding="utf-8")
    edition = Edition(spoken, Path(copies.GLOSSARY).stem)
    with speaking(spoken):
        return page(
            edition.words("Glossary"),
            prose(edition.page(text)),
            description=translated("Every word of the course, explained."),
            stem="glossary",
            edition=edition,
        )


def style() -> str:
    """Return the CSS of all pages, which are dark where the reader's system is."""
    # Rules for JupyterLab's dark theme become rules for a dark system. Of the three sheets that
    # JupyterLab uses, too, only that of a lab's screen has such rules.
    dark = r"@media (prefers-color-scheme: dark) { \1 }"
    of_theme = r'^\[data-jp-theme-light="false"\] (.*)$'
    screen = re.sub(of_theme, dark, Screen._css, flags=re.MULTILINE)
    light_code = _code_style("xcode")
    dark_code = f"@media (prefers-color-scheme: dark) {{\n{_code_style('github-dark')}\n}}"
    own = (HERE / "site.css").read_text(encoding="utf-8")
    return "\n".join([drawing.style(), screen, Field._css, light_code, dark_code, own])


def _code_style(name: str) -> str:
    rules = HtmlFormatter(style=name).get_token_style_defs((".code", ".highlight"))
    return "\n".join(rules)
