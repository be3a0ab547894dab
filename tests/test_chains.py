"""Chains of operations as they are typed: what a chain says, and where a mistake is."""

import re

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from course_utils import chains
from course_utils.chains import EXAMPLES, chain

some_words = st.text(max_size=40) | st.text(alphabet="xtview()[]:.,-123 −", max_size=40)
sizes, places = st.integers(-1, 6), st.integers(-3, 3)


@st.composite
def links(draw):
    """An operation as typed, and the same on a real tensor."""
    ints = draw(st.lists(places, min_size=3, max_size=3))
    shape = tuple(draw(st.lists(sizes, min_size=1, max_size=4)))
    a, b, _ = ints
    listed = ", ".join(map(str, shape))
    bare = {"t": lambda t: t.t(), "contiguous": lambda t: t.contiguous(), "clone": lambda t: t.clone()}
    kind = draw(st.sampled_from([*EXAMPLES, "index", "index"]))
    if kind in bare:
        return f"{kind}()", bare[kind]
    if kind == "index":
        return draw(indices())
    if kind in ("view", "reshape", "expand", "permute"):
        packed = draw(st.booleans())
        text = f"{kind}(({listed},))" if packed else f"{kind}({listed})"
        return text, lambda t: getattr(t, kind)(shape)
    if kind == "unflatten":
        return f"unflatten({a}, ({listed},))", lambda t: t.unflatten(a, shape)
    if kind == "as_strided":
        sizes_, strides = [abs(n) for n in shape], [abs(a)] * len(shape)
        text = f"as_strided({tuple(sizes_)}, {tuple(strides)}, {abs(b)})"
        return text, lambda t: torch.as_strided(t, sizes_, strides, abs(b))
    if kind in ("flatten", "squeeze", "diagonal") and draw(st.booleans()):
        return f"{kind}()", lambda t: getattr(t, kind)()
    wanted = {"unsqueeze": 1, "squeeze": 1, "transpose": 2, "select": 2, "flatten": 2, "diagonal": 3}
    ints = ints[: wanted.get(kind, 3)]
    return f"{kind}({', '.join(map(str, ints))})", lambda t: getattr(torch.Tensor, kind)(t, *ints)


@st.composite
def indices(draw):
    typed, real = [], []
    for _ in range(draw(st.integers(1, 3))):
        kind = draw(st.sampled_from(["number", "slice", "slice", "...", "None"]))
        if kind == "number":
            n = draw(places)
            typed.append(str(n)), real.append(n)
        elif kind == "slice":
            parts = [draw(st.none() | places), draw(st.none() | places), draw(st.none() | st.integers(1, 3))]
            shown = ["" if n is None else str(n) for n in parts]
            typed.append(":".join(shown if draw(st.booleans()) or parts[2] else shown[:2]))
            real.append(slice(*parts))
        else:
            typed.append(kind), real.append(Ellipsis if kind == "..." else None)
    return f"[{', '.join(typed)}]", lambda t: t[tuple(real)]


def said_by(links_):
    return [(link.name, link.arguments) for link in links_]


def joined(texts):
    return "".join(text if text.startswith("[") or not n else f".{text}" for n, text in enumerate(texts))


@given(st.lists(links(), max_size=5).map(lambda found: [text for text, _ in found]))
def test_a_chain_taken_apart_and_typed_again_is_the_same_chain(texts):
    typed = joined(texts)
    if len(typed) <= chains.LONGEST - 4:
        links_ = chain(typed)
        assert [link.text for link in links_] == texts
        assert chains.typed(links_) == typed
        if texts:  # as it may be copied from a page
            dot = "" if typed.startswith("[") else "."
            assert said_by(chain(f"x {dot}\u00a0{typed.replace('-', '−')}\n")) == said_by(links_)


CHAIN_MISTAKES = [
    ("t(", "t▸(◂", "Python says"),
    ("[1:", "▸[◂1:", "Python says"),
    ("t", "t▸◂", "t is written like t()"),
    ("t().view[1:]", "t().view▸◂[1:]", "view is written like view(2, -1)"),
    ("t()..t()", "t().▸.◂t()", "Python says"),
    ("x x", "x ▸x◂", "Python says"),
    ("numpy().data", "▸numpy◂().data", "numpy is no operation here. There are [1:, ::2], transpo"),
    ("t(), t()", "▸t(), t()◂", "only operations belong here"),
    ("x()", "▸x()◂", "only operations belong here"),
    ("[]", "[▸]◂", "Python says"),
    ("[::::]", "[::▸:◂:]", "Python says"),
    ("[0, (1, 2)]", "[0, ▸(1, 2)◂]", "a whole number"),
    ("view(, 2)", "view(▸,◂ 2)", "Python says"),
    ("view(1234567)", "view(▸1234567◂)", "a whole number of up to six digits belongs here"),
    ("view(1_0)", "view(▸1◂_0)", "1 has no meaning here"),
    ("view(size=2)", "view(size▸=◂2)", "= has no meaning here"),
    ("view(2)]", "view(2)▸]◂", "Python says"),
    ("view(True)", "view(▸True◂)", "a whole number"),
    ("view(２)", "view(▸２◂)", "２ has no meaning here"),
    ("ｖiew(2)", "▸ｖ◂iew(2)", "ｖ has no meaning here"),
]


@pytest.mark.parametrize(("typed", "marked", "sentence"), CHAIN_MISTAKES)
def test_a_mistake_in_a_chain_points_at_its_place(typed, marked, sentence):
    with pytest.raises(ValueError, match=r"\.$") as caught:
        chain(typed)
    assert str(caught.value).startswith(f"In “{marked}”, at ▸◂: {sentence}")


def test_only_methods_of_the_table_can_be_reached():
    for name in dir(torch.Tensor):
        if name not in EXAMPLES:
            for typed in (name, f"{name}()", f"x.{name}(1)", f"t().{name}"):
                with pytest.raises(ValueError, match=r"(is no operation here|is written like|Python says)"):
                    chain(typed)
    assert not [name for name in EXAMPLES if name.startswith("_") or name.endswith("_")]


@given(some_words)
def test_any_text_is_a_chain_or_a_mistake_that_quotes_it(typed):
    try:
        links_ = chain(typed)
    except ValueError as error:
        quoted = re.match(r"In “(.*)”, at ▸◂: .+\.$", str(error), re.DOTALL)
        assert quoted
        if not set("▸◂") & set(typed):
            plain = re.sub(r"\s", " ", typed.replace("−", "-")).strip()
            assert re.sub("[▸◂]", "", quoted[1]) == plain
    else:
        assert said_by(chain(chains.typed(links_))) == said_by(links_)
