"""The stride lab and the einsum lab from the kernel's side; test_browser_tensors.py looks at them from outside."""

import itertools
import math
import re
import string
import sys
import xml.etree.ElementTree as ElementTree

import opt_einsum
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from course_utils import einsums, labs, products
from course_utils.labs import einsum_lab, operations, stride_lab, svg
from course_utils.labs.einsum_picture import asked_for, torchs_order
from course_utils.labs.operations import EXAMPLES, MOST_DIMENSIONS, MOST_ELEMENTS, chain
from course_utils.labs.size_control import DEFAULT, SizesControl
from course_utils.measure import Step
from tests.hostile import button

untimed = settings(deadline=None)  # no test here depends on how fast the machine is
einsum_module, stride_module = (sys.modules[f"course_utils.labs.{name}_lab"] for name in ("einsum", "stride"))


def drawn(lab):
    """The picture, which must be well-formed and made of a few shapes, whatever was typed."""
    tree = ElementTree.fromstring(lab.screen.svg)
    tags = {node.tag.removeprefix("{http://www.w3.org/2000/svg}") for node in tree.iter()}
    assert tags <= {"svg", "g", "rect", "text"}
    assert not [
        name for node in tree.iter() for name in node.attrib if name.startswith("on") or "href" in name
    ]
    _, _, width, height = map(float, tree.get("viewBox").split())
    assert width == 940
    assert 40 < height < 8000  # a page can show it, and a still picture can hold it
    return tree


def words(lab):
    """All that the picture says."""
    return " ".join("".join(node.itertext()) for node in drawn(lab))


def said(lab):
    """The sentence that answers what was typed; the lab stays whole whatever it was."""
    assert lab.error is None or isinstance(lab.error, ValueError)
    drawn(lab)
    sentence = lab.screen.mistake or lab.screen.meaning
    assert sentence.strip().endswith(".")
    return sentence


STRIDE_LAB, EINSUM_LAB = (
    labs.stride_lab(),
    labs.einsum_lab(),
)  # one of each: to make them takes longer than to move them
FIRST = STRIDE_LAB.values, EINSUM_LAB.values


@pytest.fixture
def stride():
    """The stride lab as it opens."""
    STRIDE_LAB.set(**FIRST[0])
    return STRIDE_LAB


@pytest.fixture
def einsum():
    """The einsum lab as it opens, with nothing measured."""
    EINSUM_LAB.set(**FIRST[1])
    return EINSUM_LAB


# The stride lab.


def test_every_preset_of_the_stride_lab_is_a_state_worth_showing(stride):
    refused = []
    for label in stride_module.PRESETS:
        button(stride, label).click()
        assert stride.error is None
        said(stride)
        refused += [label] if "cannot be merged" in stride.screen.meaning else []
    assert refused == ["a view that is refused"]


@pytest.mark.parametrize("shape", ["2 3", "3 1 2", "1", "0 3"])
@pytest.mark.parametrize("label", list(stride_module.BUTTONS))
def test_a_button_appends_one_operation_and_undo_takes_it_back(stride, shape, label):
    stride.set(shape=shape, operations="", element="")
    first = stride.screen.svg, stride.screen.meaning
    button(stride, label).click()
    said(stride)
    assert stride.error is None
    assert len(chain(stride.controls["operations"].value)) == 1
    button(stride, "undo").click()
    assert (stride.controls["operations"].value, stride.screen.svg, stride.screen.meaning) == ("", *first)
    button(stride, "undo").click()  # with nothing to undo
    assert (stride.controls["operations"].value, stride.error) == ("", None)


def test_a_button_after_a_refused_view_takes_its_place(stride):
    stride.set(shape="4 6", operations="t().view(-1)")
    assert "cannot be merged" in stride.screen.meaning
    button(stride, "reshape(-1)").click()
    assert stride.controls["operations"].value == "t().reshape(-1)"
    assert "Copied by reshape(-1): 96 bytes" in stride.screen.meaning


def test_buttons_never_build_a_chain_that_undo_could_not_take_apart(stride):
    for label, most in (("transpose", 200), ("contiguous", operations.MOST_OPERATIONS)):
        stride.set(operations="")
        for _ in range(most):
            before = stride.controls["operations"].value
            button(stride, label).click()
            if stride.screen.mistake:
                break
        else:
            button(stride, label).click()
        assert "are enough" in stride.screen.mistake
        assert stride.controls["operations"].value in (before, before + f".{label}()")
        links = len(chain(stride.controls["operations"].value))
        button(stride, "undo").click()
        assert stride.screen.mistake == ""
        assert len(chain(stride.controls["operations"].value)) == links - 1


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


def run_for_real(base, drawn_links):
    """Call torch link by link until it refuses; the tensors on the way."""
    tensors = [base]
    for _, call in drawn_links:
        try:
            after = call(tensors[-1])
        except (RuntimeError, IndexError, ValueError, TypeError):
            return tensors
        if math.prod(after.shape) > MOST_ELEMENTS or after.ndim > MOST_DIMENSIONS:
            return tensors
        tensors.append(after)
    return tensors


def joined(texts):
    return "".join(text if text.startswith("[") or not n else f".{text}" for n, text in enumerate(texts))


shapes = st.lists(st.sampled_from([2, 3, 4, 1, 0]), min_size=1, max_size=3)


@settings(untimed, max_examples=400)
@given(shapes, st.lists(links(), max_size=4))
def test_a_typed_chain_does_what_torch_does_and_stops_where_torch_stops(shape, drawn_links):
    base = torch.arange(math.prod(shape)).float().view(shape)
    typed = joined([text for text, _ in drawn_links])
    if len(typed) > operations.LONGEST:
        return
    found = stride_module.applied(" ".join(map(str, shape)), "fp32", typed)
    expected = run_for_real(base, drawn_links)
    assert len(found.tensors) == len(expected)
    for ours, theirs in zip(found.tensors, expected, strict=True):
        facts = [(t.shape, t.stride(), t.storage_offset(), t.is_contiguous()) for t in (ours, theirs)]
        assert facts[0] == facts[1]
        assert torch.equal(ours, theirs)
        assert ours.untyped_storage().nbytes() == theirs.untyped_storage().nbytes()
    assert (found.refusal == "") == (len(expected) == len(drawn_links) + 1)


@settings(untimed, max_examples=60)
@given(shapes, st.lists(links(), max_size=4))
def test_whatever_the_chain_leaves_is_drawn_with_a_row_for_each_link_that_was_done(shape, drawn_links):
    lab, typed = STRIDE_LAB, joined([text for text, _ in drawn_links])[: operations.LONGEST]
    lab.set(shape=" ".join(map(str, shape)), operations=typed, element="")
    said(lab)
    if lab.error is None:
        found = stride_module.applied(" ".join(map(str, shape)), "fp32", typed)
        assert len(lab.screen.table) == 1 + len(found.tensors) + bool(found.refusal)
        assert lab.screen.table[-1][1] == ("refused" if found.refusal else str(tuple(found.end.shape)))
        elements = [node for node in drawn(lab).iter() if node.get("data-key") is not None]
        assert len(elements) == found.end.numel()


@untimed
@given(st.lists(links(), max_size=5).map(lambda found: [text for text, _ in found]))
def test_a_chain_taken_apart_and_typed_again_is_the_same_chain(texts):
    typed = joined(texts)
    if len(typed) <= operations.LONGEST - 4:
        links_ = chain(typed)
        assert [link.text for link in links_] == texts
        assert stride_module.typed(links_) == typed
        if texts:  # as it may be copied from a page
            again = chain(f"x .\u00a0{typed.replace('-', '−')}\n")
            assert [(o.name, o.arguments) for o in again] == [(o.name, o.arguments) for o in links_]


@pytest.mark.parametrize("name", list(EXAMPLES))
def test_every_operation_can_be_done_as_its_example_writes_it(name):
    shape = {"permute": "2 3", "t": "2 3", "expand": "2 3", "unflatten": "4 3"}.get(name, "4 6")
    found = stride_module.applied(shape, "fp32", EXAMPLES[name])
    assert found.refusal == ""
    assert [link.name for link in found.done] == [name]


def by_pointer(t, index):
    return (t[index].data_ptr() - t.untyped_storage().data_ptr()) // t.element_size()


@pytest.mark.parametrize("dtype", stride_module.DTYPES)
@pytest.mark.parametrize(
    ("shape", "typed"), [*stride_module.PRESETS.values(), ("3 4", "[1, 2]"), ("2 1 3", "")]
)
def test_pointing_at_an_element_says_where_torchs_pointer_stands(stride, shape, typed, dtype):
    stride.set(shape=shape, operations=typed, dtype=dtype)
    t = stride_module.applied(shape, dtype, typed).end
    elements = [node for node in drawn(stride).iter() if node.get("data-key") is not None]
    assert len(elements) == t.numel()
    for node in elements[:: max(1, len(elements) // 2)]:
        stride.pick(node.get("data-key"))
        assert stride.error is None
        index = tuple(map(int, node.get("data-key").split(", "))) if t.ndim else ()
        place = by_pointer(t, index)
        assert node.get("aria-label") == f"[{node.get('data-key')}] is {int(t[index])}, at {place}"
        formula = re.search(r"\[(.*?)\] lies at ((\d+)[\d+× ]*) = (\d+)", words(stride))
        assert formula[1] == node.get("data-key")
        assert int(formula[3]) == t.storage_offset()
        assert eval(formula[2].replace("×", "*")) == int(formula[4]) == place
        ringed = [node for node in drawn(stride).iter() if node.get("class") == "pointed"]
        assert len(ringed) == 2  # in the strip and in the grid
        if "refused" not in stride.screen.table[-1]:
            assert f"by torch's own pointer: {place}" in stride.screen.meaning


@pytest.mark.parametrize("preset", stride_module.PRESETS.values(), ids=stride_module.PRESETS)
def test_the_picture_shows_every_number_of_the_storage_and_fills_those_that_are_seen(preset):
    lab = STRIDE_LAB
    lab.set(shape=preset[0], operations=preset[1], element="", dtype="fp32")
    t = stride_module.applied(preset[0], "fp32", preset[1]).end
    owned = t.untyped_storage().nbytes() // t.element_size()
    groups = [node for node in drawn(lab) if node.tag.endswith("}g") and node.get("data-key") is None]
    assert len(groups) == owned
    values = torch.empty(0).set_(t.untyped_storage(), 0, (owned,))
    assert [float("".join(node.itertext())) for node in groups] == values.tolist()
    seen = set(torch.arange(owned).as_strided(t.shape, t.stride(), t.storage_offset()).flatten().tolist())
    assert [place for place, node in enumerate(groups) if node.get("class") != "unseen"] == sorted(seen)
    assert f"sees {len(seen) * 4} of {owned * 4} bytes" in words(lab)
    colour = {place: node[0].get("style") for place, node in enumerate(groups)}
    for node in drawn(lab).iter():
        if node.get("data-key") is not None:  # an element has the colour of its place
            index = tuple(map(int, node.get("data-key").split(", ")))
            assert node[0][0].get("style") == colour[by_pointer(t, index)]
    assert len({colour[place] for place in seen}) == len(seen)


@pytest.mark.parametrize(
    ("shape", "typed", "sentence"),
    [
        (
            "2 3 4",
            "transpose(0, 1).view(6, 4)",
            "Dimensions 0 and 1 of (3, 2, 4) cannot be merged, and 6 in (6, 4)",
        ),
        ("3 2", "t().view(-1)", "Dimensions 0 and 1 of (2, 3) cannot be merged, and 6 in (6,)"),
        ("4 6", "[:, ::2].view(12).view(-1).t().view(5)", "(5,) has 5 elements, and (12,) has 12 elements."),
        ("4 6", "view(5, -1)", "24 elements do not fall into groups of 5."),
        ("4 6", "view(-1, 0)", "Beside a size of 0, -1 could be anything."),
    ],
)
def test_a_refused_view_says_why_and_leaves_the_tensor_before_it(stride, shape, typed, sentence):
    stride.set(shape=shape, operations=typed)
    assert stride.error is None
    assert f"is refused. {sentence}" in stride.screen.meaning
    found = stride_module.applied(shape, "fp32", typed)
    assert stride.screen.table[-1][0] == found.links[len(found.done)].text
    assert f"shape {tuple(found.end.shape)}" in words(stride)


@pytest.mark.parametrize(
    ("typed", "sentence"),
    [
        ("view(2, -2)", "torch says “invalid shape dimension -2"),
        ("view(-1, -1)", "only one dimension can be inferred"),
        (
            "unflatten(0, (-1, -1))",
            "torch says “unflatten got an unexpected error: only one dimension can be inferred”",
        ),
        ("[4]", "torch says “index 4 is out of bounds for dimension 0 with size 4”"),
        ("[::-1]", "torch says “step must be greater than zero”"),
        ("t(1)", "t(1) has the wrong numbers in it. Write it like t()."),
        ("view((2,), 12)", "has the wrong numbers in it. Write it like view(2, -1)."),
        (
            "expand(999999, 999999, 4, 6)",
            "gives 4 dimensions, 23,999,952,000,024 elements. This lab draws up to 6",
        ),
        (
            "unsqueeze(0).unsqueeze(0).unsqueeze(0).unsqueeze(0).unsqueeze(0)",
            "gives 7 dimensions, 24 elements",
        ),
        ("as_strided((9, 9), (9, 1), 0)", "torch says “setStorage: sizes [9, 9]"),
    ],
)
def test_what_torch_refuses_is_said_in_its_words_and_what_the_lab_refuses_in_its_own(stride, typed, sentence):
    stride.set(shape="4 6", operations=typed)
    assert sentence in said(stride)


@pytest.mark.parametrize(
    ("operations_", "sentence"),
    [
        (
            "t()[1:]",
            "A view of the same storage: nothing was copied; 16 bytes that it does not see stay allocated",
        ),
        (
            "expand(2, 4, 6)",
            "nothing was copied; several elements share a place; [1, 3, 5] by torch's own pointer: 23.",
        ),
        ("t().contiguous().clone()", "Copied by contiguous() and clone(): 96 bytes of its own;"),
        ("contiguous()", "A view of the same storage: nothing was copied;"),
        ("", "24 numbers, each where its index says; [3, 5] by torch's own pointer: 23."),
    ],
)
def test_the_meaning_says_what_was_copied_shared_and_kept(stride, operations_, sentence):
    stride.set(shape="4 6", operations=operations_, element="")
    assert sentence in stride.screen.meaning


def test_the_table_says_for_each_link_whether_the_storage_is_shared(stride):
    stride.set(shape="2 3", operations="t().reshape(6)[1:]", element="")
    assert stride.screen.table == [
        ["operation", "shape", "strides", "offset", "contiguous", "storage"],
        ["base", "(2, 3)", "(3, 1)", "0", "yes", "its own"],
        ["t()", "(3, 2)", "(1, 3)", "0", "no", "shared"],
        ["reshape(6)", "(6,)", "(1,)", "0", "yes", "copied"],
        ["[1:]", "(5,)", "(1,)", "1", "yes", "shared"],
    ]


@pytest.mark.parametrize(
    "typed", ["expand(999999, 0)", "reshape(9999, 0, 999999)", "as_strided((99999, 0), (1, 1), 0)"]
)
def test_a_tensor_without_elements_takes_no_room_however_long_it_is(stride, typed):
    stride.set(shape="0", operations=typed)
    assert stride.error is None
    assert "no elements" in words(stride)
    assert svg.still_png(stride.screen.svg).startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("typed", "shape"),
    [
        ("4 6", (4, 6)),
        ("(4, 6)", (4, 6)),
        ("2×3x4", (2, 3, 4)),
        (" 7 ", (7,)),
        ("(5,)", (5,)),
        ("0 3", (0, 3)),
    ],
)
def test_a_shape_can_be_typed_as_people_write_it(typed, shape):
    assert stride_module.shape_of(typed) == shape


@pytest.mark.parametrize(
    "typed",
    ["", " ", "()", "4 -6", "4.5", "a", "1 2 3 4 5 6 7", "٣", "1e2", "9" * 7, "4;6", "4 6" * 30, "[4, 6]"],
)
def test_what_is_no_shape_gets_a_sentence(stride, typed):
    stride.set(shape=typed)
    assert f"“{typed[:60]}” is no shape. Type one to 6 sizes, like 4 6 or 2, 3, 4." == stride.screen.mistake
    stride.set(shape="4 6")
    assert stride.screen.mistake == ""


@pytest.mark.parametrize("typed", ["129", "12 11", "999999 0", "128 128 128 128 128 128"])
def test_a_shape_too_large_to_draw_gets_a_sentence(stride, typed):
    stride.set(shape=typed)
    assert "has more than the 128 elements that this lab draws" in stride.screen.mistake


@pytest.mark.parametrize(
    ("typed", "element"),
    [
        ("2 1", (2, 1)),
        ("[2, 1]", (2, 1)),
        ("-1 −2", (3, 4)),
        ("4 0", (3, 5)),
        ("1", (3, 5)),
        ("nonsense", (3, 5)),
    ],
)
def test_an_element_that_is_not_there_is_answered_by_the_last_one(stride, typed, element):
    stride.set(shape="4 6", operations="", element=typed)
    assert f"[{element[0]}, {element[1]}] lies at" in words(stride)


CHAIN_MISTAKES = [
    ("t(", "t▸(◂", "this is never closed"),
    ("[1:", "▸[◂1:", "this is never closed"),
    ("view(2", "view▸(◂2", "this is never closed"),
    ("view(2, (3", "view(2, ▸(◂3", "this is never closed"),
    ("t", "t▸◂", "t is written like t()"),
    ("t()..t()", "t().▸.◂t()", ". is no operation of this lab. It has [1:, ::2], transpose, permute"),
    ("t().", "t().▸◂", "an operation is missing"),
    ("x x", "x ▸x◂", "x is no operation of this lab"),
    ("t()\u00a0.\u2003numpy()", "t()\u00a0.\u2003▸numpy◂()", "numpy is no operation"),
    ("[]", "[▸]◂", "an index is written like [1:, ::2]"),
    ("[1 2]", "[1 ▸2◂]", "a comma is missing"),
    ("[::::]", "[::▸:◂:]", "a slice is start:stop:step"),
    ("[1.5]", "[1▸.◂5]", "a comma is missing"),
    ("view(2 3)", "view(2 ▸3◂)", ", belongs here"),
    ("view(, 2)", "view(▸,◂ 2)", "a whole number belongs here"),
    ("view(1234567)", "view(▸1234567◂)", "no number here needs more than six digits"),
    ("view(--1)", "view(-▸-◂1)", "a whole number belongs here"),
    ("view(size=2)", "view(size▸=◂2)", "= has no meaning here"),
    ("view(2)]", "view(2)▸]◂", "] is no operation"),
    ("view(True)", "view(▸True◂)", "a whole number belongs here"),
    ("[None:]", "[None▸:◂]", ", belongs here"),
    ("t() * 2", "t() ▸*◂ 2", "* has no meaning here"),
    ("view(２)", "view(▸２◂)", "２ has no meaning here"),
    ("ｖiew(2)", "▸ｖ◂iew(2)", "ｖ has no meaning here"),
]


@pytest.mark.parametrize(("typed", "marked", "sentence"), CHAIN_MISTAKES)
def test_a_mistake_in_a_chain_points_at_its_place(typed, marked, sentence):
    with pytest.raises(ValueError, match=r"\.$") as caught:
        chain(typed)
    assert str(caught.value).startswith(f"In “{marked}”, at ▸◂: {sentence}")


# Nothing that is typed is run.


ATTACKS = [
    "__import__('os').system('touch {file}')",
    "t().__class__.__init__.__globals__['os'].system('touch {file}')",
    "(lambda: open('{file}', 'w'))()",
    "[open('{file}', 'w')]",
    "[__import__('os')]",
    "view(open('{file}','w').write('x'))",
    "exec(\"open('{file}', 'w')\")",
    "eval('1')",
    'f\'{{open("{file}", "w")}}\'',
    "{{open('{file}', 'w')}}",
    "%s %(x)s {{0.__class__}}",
    "numpy().tofile('{file}')",
    "storage().share_memory_()",
    "apply_(lambda x: x)",
    "data",
    "data_ptr()",
    "x.__class__",
    "x.grad_fn",
    "T",
    "mT",
    "fill_(1)",
    "resize_(9)",
    "set_()",
    "as_strided_((2,), (1,))",
    "t_()",
    "register_hook(print)",
    "__reduce__()",
    "__getattribute__('data')",
    "view.__func__.__globals__",
    "view(__builtins__)",
    "clone().numpy()",
    "t().t().__dict__",
    "[1:, ::2].save('{file}')",
    "; import os; os.system('touch {file}')",
    "t()\nimport os\nos.system('touch {file}')",
    "$(touch {file})",
    "`touch {file}`",
    "| touch {file}",
    "!touch {file}",
    "%%bash\ntouch {file}",
    "b d, d k -> b k; __import__('os')",
    "__import__ d -> d",
    "__class__ __dict__ -> __class__",
    "b.__class__ -> b",
    "{file}, {file} -> {file}",
    "../../../etc/passwd",
    "<script>fetch('{file}')</script>",
    "<img src=x onerror=alert(1)>",
    "</text></svg><script>alert(1)</script>",
    "<!--",
    "]]>",
    "<![CDATA[",
    "&lt;&amp;&#0;&unknown;",
    '" onload="alert(1)',
    "' style='",
    "javascript:alert(1)",
    "view(" + "9" * 100 + ")",
    "view(-" + "9" * 6 + ")",
    "expand(-999999, -1, -1)",
    "9" * 1000,
    "-" * 1000,
    "(" * 199,
    "view(" + "(" * 95 + ")" * 96,
    "view" + "(" * 98 + "2" + ")" * 98,
    "[" * 199,
    "[[[[1]]]]",
    "t()." * 50,
    "t()." * 1000,
    "[0]" * 66,
    "a" * 10_000,
    "a " * 199 + "->",
    "," * 300 + "->",
    "a," * 100 + "->",
    "->" * 100,
    "\0",
    "t()\0",
    "a\0b -> a",
    "".join(map(chr, range(32))),
    "\x7f\x80\x9f",
    "\u200b\u200c\u2060\ufeff",
    "\u202et()\u202c",
    "\u2066\u2067\u2068\u2069",
    "שלום עולם -> שלום",
    "مرحبا(٠, ١)",
    "view(٢, ٣)",
    "[１:]",
    "²³",
    "𝓪 𝓫 -> 𝓪",
    "ａ ｂ -> ａ",
    "🙂🙃 -> 👩‍👩‍👧‍👦",
    "Z͑ͫ̓ͪ̂ͫ̽͏̴̙̤̞͉͚̯̞̠͍A̴̵̜̰͔ͫ͗͢L̠ͨͧͩ͘G̴̻͈͍͔̹̑͗̎̅͛́Ǫ̵̹̻̝̳͂̌̌͘!͖̬̰̙̗̿̋ͥͥ̂ͣ̐́́͜͞",
    "−1",
    "x" * 61,
    "﷽",
    "\r\n\r\n",
    "nan inf -inf 1e999",
    "None",
    "...",
    "None, None -> None",
    "if else -> if",
    "lambda x: x -> x",
]


@pytest.mark.parametrize("number", range(len(ATTACKS)))
def test_nothing_typed_is_run_and_all_of_it_gets_a_sentence(number, tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    words_ = ATTACKS[number].replace("{file}", str(tmp_path / "made")).replace("{{", "{").replace("}}", "}")
    good = {"shape": "2", "dtype": "fp32", "operations": "", "element": ""}
    for field in ("shape", "operations", "element"):
        STRIDE_LAB.set(**good | {field: words_})
        assert len(said(STRIDE_LAB)) < 3000
    STRIDE_LAB.set(**good | {"operations": words_})
    for label in ("undo", "transpose"):  # what a button makes of it
        button(STRIDE_LAB, label).click()
        said(STRIDE_LAB)
    good = {"pattern": "i -> i", "notation": "names", "sizes": {"i": 2}}
    for wrong in ({"pattern": words_}, {"pattern": words_, "notation": "letters"}, {"sizes": {"i": words_}}):
        EINSUM_LAB.set(**good | wrong)
        assert len(said(EINSUM_LAB)) < 3000
    assert EINSUM_LAB.screen.mistake.startswith("i is a size: a whole number from 1 to 1,048,576")
    assert list(tmp_path.iterdir()) == []
    assert capfd.readouterr() == ("", "")


def test_only_methods_of_the_table_can_be_reached():
    for name in dir(torch.Tensor):
        if name not in EXAMPLES:
            for typed in (name, f"{name}()", f"x.{name}(1)", f"t().{name}"):
                with pytest.raises(ValueError, match=r"(is no operation of this lab|is written like)"):
                    chain(typed)
    assert not [name for name in EXAMPLES if name.startswith("_") or name.endswith("_")]


some_words = st.text(max_size=40) | st.text(alphabet="xtview()[]:.,-123 −", max_size=40)


@settings(untimed, max_examples=150)
@given(some_words, some_words, some_words)
def test_the_stride_lab_survives_any_text(shape, operations_, element):
    lab = STRIDE_LAB
    lab.set(shape=shape, operations="", element="")
    assert lab.error is None or "is no shape" in str(lab.error) or "more than the 128" in str(lab.error)
    said(lab)
    lab.set(shape="2 3", operations=operations_, element=element)
    if lab.error is not None:
        assert re.match(r"In “.*▸.*◂.*”, at ▸◂: |That is a chain of", str(lab.error), re.DOTALL)
    said(lab)


@untimed
@given(some_words)
def test_any_text_is_a_chain_or_a_mistake_that_quotes_it(typed):
    try:
        links_ = chain(typed)
    except ValueError as error:
        quoted = re.match(r"In “(.*)”, at ▸◂: .+\.$", str(error), re.DOTALL)
        assert quoted
        if not set("▸◂") & set(typed):
            assert re.sub("[▸◂]", "", quoted[1]) == typed.replace("−", "-")
    else:
        assert [(o.name, o.arguments) for o in chain(stride_module.typed(links_))] == [
            (o.name, o.arguments) for o in links_
        ]


# The einsum lab.


def test_every_preset_of_the_einsum_lab_is_a_state_worth_showing(einsum):
    for label, (pattern, sizes_) in einsum_module.PRESETS.items():
        button(einsum, label).click()
        assert einsum.error is None
        said(einsum)
        assert einsum.controls["pattern"].value == pattern
        assert shown(einsum.controls["sizes"]) == sizes_
        named = asked_for(pattern, "names", sizes_, "fp32")
        assert f"{named.flops:,} FLOPs" in words(einsum) + einsum.screen.meaning
        assert f"{named.steps:,} steps of the loops" in words(einsum)
        assert (f"{len(named.orders)} orders" in words(einsum)) == (len(named.orders) > 1)


def test_the_einsum_lab_shows_roles_loops_shape_flops_bytes_and_intensity(einsum):
    einsum.set(pattern="b d, d k -> b k", sizes={"b": 16, "d": 8, "k": 4}, dtype="fp64")
    picture = words(einsum)
    for fact in (
        "result (16, 4)",
        "512 steps of the loops",
        "2 × 16 × 8 × 4 = 1,024 FLOPs",
        "1,792 bytes in fp64, each once",  # 8 · (16·8 + 8·4 + 16·4)
        "0.571 FLOPs per byte",
        "for b in range(16):",
        "total += A[b, d] * B[d, k]",
    ):
        assert fact in picture
    assert einsum.screen.meaning == (
        "b and k are kept; d is summed; 1,024 FLOPs, 2 for each step, a product and an addition. "
        "torch agrees with the loops on all 64 numbers."
    )
    chips = [
        (node.get("class"), "".join(node.itertext())) for node in drawn(einsum).iter() if node.get("class")
    ]
    roles = [(role, chip) for role, chip in chips if role in ("batch", "kept", "summed") and chip != role]
    assert roles == [
        *(("kept", "b 16"), ("summed", "d 8"), ("summed", "d 8"), ("kept", "k 4")),
        *(("kept", "b 16"), ("kept", "k 4")),
    ]


@pytest.mark.parametrize(
    ("pattern", "cost"),
    [
        ("i, j -> i j", "16 FLOPs, 1 for each step."),
        ("i j -> j", "nothing is multiplied, so 0 FLOPs by convention."),
        ("a, a, a -> a", "8 FLOPs in every order."),
        ("a b, b c, c d -> a d", "256 FLOPs as ((A B) C), up to 3 times that in another order."),
    ],
)
def test_the_meaning_says_what_a_step_costs(einsum, pattern, cost):
    einsum.set(pattern=pattern, sizes={})
    assert cost in einsum.screen.meaning


@pytest.mark.parametrize(
    ("pattern", "formula"),
    [
        ("i, j -> i j", "3 × 5 = 15 FLOPs"),
        ("i, i j -> j", "2 × 3 × 5 = 30 FLOPs"),
        ("i j -> j", "0 FLOPs"),
        ("i, j, i -> j", "11 FLOPs in the cheapest order"),  # A and C, 2 · 3, then B, which sums nothing: 5
    ],
)
def test_the_formula_has_a_2_where_something_is_summed(einsum, pattern, formula):
    einsum.set(pattern=pattern, sizes={"i": 3, "j": 5})
    assert formula in [node.text for node in drawn(einsum).iter()]


def test_the_agreement_line_is_there_for_small_sizes_and_found_wrong_where_torch_differs(einsum, monkeypatch):
    einsum.set(pattern="i, i ->", sizes={"i": einsum_module.LOOPED_AT_ONCE})
    assert einsum.screen.meaning.endswith("torch agrees with the loops.")
    einsum.set(sizes={"i": einsum_module.LOOPED_AT_ONCE + 1})
    assert "loops" not in einsum.screen.meaning
    real = torch.einsum
    monkeypatch.setattr(torch, "einsum", lambda *arguments: real(*arguments) + 1)
    einsum.set(pattern="i, j -> i j", sizes={"i": 3, "j": 5})
    assert einsum.screen.meaning.endswith("torch and the loops differ in 15 of 15 numbers.")
    einsum.start("Check against the loops")
    einsum.wait()
    assert (
        einsum.screen.report == "15 steps of the loops done: torch and the loops differ in 15 of 15 numbers."
    )


def test_checking_runs_every_step_of_the_loops_and_refuses_too_many(einsum):
    einsum.set(pattern="b d, d k -> b k", sizes={"b": 20, "d": 30, "k": 40})
    einsum.start("Check against the loops")
    einsum.wait()
    assert einsum.screen.report == (
        "24,000 steps of the loops done: torch agrees with the loops on all 800 numbers."
    )
    einsum.set(sizes={"b": 1024, "d": 1024, "k": 2})
    einsum.start("Check against the loops")
    with pytest.raises(ValueError, match="2,097,152 steps are too many for loops in plain Python"):
        einsum.wait()
    assert einsum.screen.failed


def test_timing_measures_the_cheapest_and_the_dearest_order_and_shows_both(einsum, monkeypatch):
    monkeypatch.setattr(einsum_module, "AT_MOST_S", 0.2)
    einsum.set(pattern="a b, b c, c d -> a d", sizes={"a": 64, "b": 2, "c": 64, "d": 2})
    einsum.start("Time it")
    einsum.wait()
    assert re.fullmatch(
        r"Measured: \(A \(B C\)\) [\d.]+ [mµ]?s, \(\(A C\) B\) [\d.]+ [mµ]?s, [\d,.]+ times as long; "
        r"by FLOPs it would be 48 times\.( Take it as an upper bound: .*)?",
        einsum.screen.report,
    )
    assert words(einsum).count("· measured ") == 2
    assert "measured: " in words(einsum)
    assert not einsum.screen.failed
    einsum.set(dtype="fp64")
    assert "measured" not in words(einsum)
    einsum.set(dtype="fp32", sizes={"a": 64, "b": 2, "c": 64, "d": 4})
    assert "measured" not in words(einsum)
    einsum.set(sizes={"a": 64, "b": 2, "c": 64, "d": 2})
    assert words(einsum).count("· measured ") == 2  # what was measured is remembered


def test_a_product_of_two_is_timed_with_its_rate_and_a_sum_without(einsum, monkeypatch):
    monkeypatch.setattr(einsum_module, "AT_MOST_S", 0.1)
    for pattern, rate in (("b d, d k -> b k", r", [\d.]+ [kMGT]FLOP/s"), ("b d -> b", "")):
        einsum.set(pattern=pattern, sizes={}, dtype="bf16")
        einsum.start("Time it")
        einsum.wait()
        assert re.fullmatch(
            rf"Measured: [\d.]+ [mµ]?s{rate}\.( Take it as an upper bound: .*)?", einsum.screen.report
        )


@pytest.mark.parametrize(
    ("pattern", "size", "reason"),
    [
        ("a b, b c -> a c", 2**12, "it takes 137 GFLOPs, and this lab at most 34.4 GFLOPs in fp32 here"),
        ("a, b -> a b", 2**15, "it may need .* and this lab takes at most"),
        ("a b c d e f g h -> a", 2**20, "it may need .* and this lab takes at most"),
        ("a b c d, a b c d -> a", 2**20, "it may need .* and this lab takes at most"),
    ],
)
def test_what_is_too_large_is_not_timed_and_no_tensor_is_made(einsum, monkeypatch, pattern, size, reason):
    monkeypatch.setattr("course_utils.products.einsum_call", None)  # whoever calls it fails otherwise
    einsum.set(pattern=pattern, sizes=dict.fromkeys("abcdefgh", size))
    assert einsum.screen.mistake == ""
    einsum.start("Time it")
    with pytest.raises(ValueError, match=rf"^This is not timed: {reason}.*\. Take smaller sizes\.$"):
        einsum.wait()
    assert einsum.screen.report.startswith("This is not timed")


def test_an_order_that_is_too_dear_is_left_out_and_the_next_dearest_timed(einsum, monkeypatch):
    monkeypatch.setattr(einsum_module, "AT_MOST_S", 0.1)
    monkeypatch.setattr(einsum_module, "MOST_FLOPS", {"fp32": 70_000})
    einsum.set(
        pattern="a b, b c, c d -> a d", sizes={"a": 64, "b": 4, "c": 64, "d": 4}
    )  # 4096, 65536, 196608
    einsum.start("Time it")
    einsum.wait()
    assert "((A B) C)" in einsum.screen.report
    assert "((A C) B)" not in einsum.screen.report
    assert "by FLOPs it would be 16 times." in einsum.screen.report


def test_timing_stops_when_it_is_told_to(einsum, monkeypatch):
    monkeypatch.setattr(einsum_module, "AT_MOST_S", 30)
    monkeypatch.setattr("course_utils.measure.timing.AGREEMENT", -1.0)  # samples never agree
    einsum.set(pattern="b d, d k -> b k", sizes={})
    einsum.start("Time it")
    einsum.stop()
    einsum.wait()
    assert einsum.screen.report.startswith("Stopped. ")
    assert "measured" not in words(einsum)


def test_a_long_call_is_timed_apart_and_stop_ends_it_at_once(einsum, monkeypatch):
    started = []

    def steps_apart(work, order):
        started.append((work.__name__, order["pattern"]))
        yield Step(0, "The first call runs; nobody can tell how far it is.")
        einsum._stopping.wait(120)
        yield Step(0, "still the first call")
        raise AssertionError("nobody stopped it")

    monkeypatch.setattr("course_utils.apart.steps_apart", steps_apart)
    einsum.set(pattern="b d, d k -> b k", sizes={"b": 512, "d": 512, "k": 512})
    einsum.start("Time it")
    einsum.stop()
    einsum.wait(10)
    assert started == [("einsum_timed", "b d, d k -> b k")]
    assert einsum.screen.report.startswith("Stopped. ")


def test_a_product_timed_apart_is_really_timed(einsum, monkeypatch):
    monkeypatch.setattr(einsum_module, "AT_MOST_S", 0.1)
    monkeypatch.setattr(einsum_module, "QUICK_FLOPS", 0)
    einsum.set(pattern="b d, d k -> b k", sizes={})
    einsum.start("Time it")
    einsum.wait()
    assert "Measured: " in einsum.screen.report


def test_a_long_sum_can_be_stopped_between_two_numbers(einsum):
    einsum.set(pattern="i j, i j ->", sizes={"i": 1024, "j": 1024})
    einsum.start("Check against the loops")
    einsum.stop()
    einsum.wait(5)
    assert einsum.screen.report.startswith("Stopped. 0 of 1 numbers")


def test_memory_that_is_not_free_is_not_taken(einsum, monkeypatch):
    monkeypatch.setattr("course_utils.measure.free_bytes", lambda device: 2 * (2 * 128 + 64) * 4 - 2)
    einsum.set(pattern="b d, d k -> b k", sizes={"b": 8, "d": 8, "k": 8})  # 64 numbers each
    einsum.start("Time it")
    with pytest.raises(ValueError, match=r"it may need 1,280 bytes .* at most 1,279 bytes"):
        einsum.wait()


def test_bars_are_as_long_as_their_orders_are_expensive_and_torchs_choice_is_the_one_it_takes(
    einsum, monkeypatch
):
    einsum.set(pattern="a b, b c, c d -> a d", sizes={"a": 64, "b": 4, "c": 64, "d": 4})
    lengths = [
        float(node.get("width"))
        for node in drawn(einsum).iter()
        if node.get("class") in ("predicted", "limit")
    ]
    costs = [4096, 65536, 196608]
    assert lengths == pytest.approx([400 * cost / costs[-1] for cost in costs], abs=2)
    assert words(einsum).count("torch's choice") == 1
    assert [f"{cost:,} FLOPs" for cost in costs if f"{cost:,} FLOPs" not in words(einsum)] == []
    taken = []
    path = opt_einsum.contract_path
    monkeypatch.setattr(
        opt_einsum, "contract_path", lambda *a, **k: taken.append(k["optimize"]) or path(*a, **k)
    )
    torch.einsum("ab,bc,cd->ad", torch.ones(64, 4), torch.ones(4, 64), torch.ones(64, 4))
    torchs_order(asked_for("a b, b c, c d -> a d", "names", {"a": 64, "b": 4, "c": 64, "d": 4}, "fp32"))
    assert taken == [taken[0]] * 2  # torch and the lab ask for the same kind of search


def test_digits_can_be_read_on_every_colour(stride):
    stride.set(shape="64", operations="")

    def luminance(colour):
        parts = [int(colour[n : n + 2], 16) / 255 for n in (1, 3, 5)]
        linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
        return sum(w * p for w, p in zip((0.2126, 0.7152, 0.0722), linear, strict=True))

    inks = {"on-dark": luminance("#ffffff"), "on-light": luminance("#111111")}
    cells = [
        (node.get("class"), node[0].get("style").removeprefix("fill: "))
        for node in drawn(stride).iter()
        if node.get("class") in inks
    ]
    assert len(cells) == 128
    for ink, colour in cells:
        low, high = sorted((inks[ink], luminance(colour)))
        assert (high + 0.05) / (low + 0.05) >= 3  # WCAG's least for large letters; these are bold to the eye


@st.composite
def small_patterns(draw):
    """Operands and a result as one would type them, with sizes."""
    side = st.lists(st.sampled_from("abcd"), max_size=3, unique=True)
    sides = draw(st.lists(side, min_size=2, max_size=4))
    named = sorted(set().union(*sides))
    result = draw(st.lists(st.sampled_from(named), unique=True)) if named else []
    sizes_ = {name: draw(st.integers(1, 3)) for name in named}
    return f"{', '.join(map(' '.join, sides))} -> {' '.join(result)}", sizes_


@settings(untimed, max_examples=30)
@given(small_patterns())
def test_multiplying_in_any_order_gives_the_same_and_opt_einsums_choice_is_one_of_them(drawn_):
    asked = asked_for(drawn_[0], "names", drawn_[1], "fp64")
    draw = torch.Generator().manual_seed(2)
    operands = [torch.randint(-4, 5, shape, generator=draw).double() for shape in asked.shapes[:-1]]
    expected = torch.einsum(asked.einsum.equation, *operands)
    for order in asked.orders:
        assert torch.equal(products.product_in_order(asked.einsum, order.tree, operands), expected)
    if len(operands) > 2:
        assert torchs_order(asked) in [order.tree for order in asked.orders]


@settings(untimed, max_examples=40)
@given(small_patterns(), st.sampled_from(["fp32", "bf16"]))
def test_whatever_is_asked_is_drawn_and_agrees_with_the_loops(drawn_, dtype):
    lab = EINSUM_LAB
    lab.set(pattern=drawn_[0], notation="names", sizes=drawn_[1], dtype=dtype)
    assert lab.error is None
    said(lab)
    assert "torch agrees with the loops" in lab.screen.meaning
    assert einsums.loop_nest(einsums.parsed(drawn_[0]), drawn_[1]).count("for ") == len(drawn_[1])


@settings(untimed, max_examples=150)
@given(
    st.text(max_size=30) | st.text(alphabet="abAB ,->→.()_1é", max_size=30),
    st.sampled_from(["names", "letters"]),
    st.text(max_size=8) | st.integers(-3, 2**21),
)
def test_the_einsum_lab_survives_any_text(pattern, notation, size):
    lab = EINSUM_LAB
    lab.set(pattern=pattern, notation=notation, sizes={"a": size})
    said(lab)
    if lab.error is not None:
        assert re.match(
            r"In “.*▸.*◂.*”, at ▸◂: |a is a size: |\d+ (operands|names) ", str(lab.error), re.DOTALL
        )


def test_too_many_operands_or_names_get_a_sentence(einsum):
    einsum.set(pattern="a, a, a, a, a, a ->")
    assert einsum.screen.mistake == "6 operands have more orders than fit in here. Take up to 5."
    einsum.set(pattern="a b c d e f g h i ->")
    assert einsum.screen.mistake == "9 names are more than this lab has sliders for. Take up to 8."
    einsum.set(pattern="a b c d e f g h, a, b, c, d ->", sizes={})
    assert einsum.screen.mistake == ""


def test_long_names_and_large_sizes_still_fit_the_picture(einsum):
    names = ["".join(itertools.islice(itertools.cycle(string.ascii_letters), n)) for n in (40, 60, 80)]
    einsum.set(pattern=f"{' '.join(names)}, {names[0]} -> {names[1]}", sizes=dict.fromkeys(names, 2**20))
    assert einsum.error is None
    assert rightmost(drawn(einsum)) <= 941


def rightmost(node, scale=1.0):
    """How far to the right a part of the picture reaches, as far as numbers say; a text's width they do not."""
    scaled = re.search(r"scale\(([\d.]+)\)", node.get("transform", ""))
    scale *= float(scaled[1]) if scaled else 1
    own = scale * (float(node.get("x", 0)) + float(node.get("width", 0)))
    return max([own, *(rightmost(child, scale) for child in node)])


# A size for each name.


def shown(control):
    """The sliders that can be seen, by name."""
    return {c.name: c.value for c in control.children if c.layout.display != "none"}


def test_sliders_come_and_go_with_the_names_and_values_are_remembered(einsum):
    sizes_ = einsum.controls["sizes"]
    einsum.set(pattern="b d, d k -> b k", sizes={"b": 16, "d": 8})
    assert shown(sizes_) == {"b": 16, "d": 8, "k": DEFAULT}
    assert [c.children[0].description for c in sizes_.children[:3]] == ["b", "d", "k"]
    assert [c.children[1].tooltip for c in sizes_.children[:3]] == ["b, typed", "d, typed", "k, typed"]
    einsum.set(pattern="k q -> k")
    assert shown(sizes_) == {"k": DEFAULT, "q": DEFAULT}
    sizes_.children[1].value = 32  # as dragged
    assert "for q in range(32):" in words(einsum)
    einsum.set(pattern="q b -> q")
    assert shown(sizes_) == {"q": 32, "b": 16}
    assert "for q in range(32):" in words(einsum)
    einsum.set(pattern="qd->q", notation="letters")
    assert shown(sizes_) == {"q": 32, "d": 8}


def test_a_pattern_that_cannot_be_read_leaves_the_sliders_as_they_are(einsum):
    before = shown(einsum.controls["sizes"])
    einsum.set(pattern="b d, d k -> q")
    assert einsum.screen.mistake
    assert shown(einsum.controls["sizes"]) == before


@pytest.mark.parametrize(
    ("typed", "size"), [("1,024", 1024), ("2^11", 2048), ("2**5", 32), (" 7 ", 7), (33, 33)]
)
def test_a_size_can_be_typed_as_people_write_it_and_its_slider_follows(einsum, typed, size):
    einsum.set(pattern="i, i ->")
    control = einsum.controls["sizes"].children[0]
    control.value = typed
    assert f"for i in range({size}):" in words(einsum)
    assert control.children[0].value == pytest.approx(
        2 ** (round(4 * math.log2(size)) / 4)
    )  # its nearest step
    control.children[0].value = 512
    assert control.children[1].value == "512"
    assert einsum.controls["sizes"].value["i"] == 512
    assert "for i in range(512):" in words(einsum)


@pytest.mark.parametrize(
    "typed", ["", "0", "-3", "1.5", "2^21", "many", "٣", "9" * 50, "<b>4</b>", "__import__('os')"]
)
def test_a_size_that_is_none_gets_a_sentence_and_recovers(einsum, typed):
    einsum.set(pattern="i j -> j")
    first, second = einsum.controls["sizes"].children[:2]
    first.children[1].value = typed
    assert einsum.screen.mistake.endswith(f"like 1024 or 2^10. “{typed[:40]}” is none.")
    assert einsum.screen.mistake.startswith("i is a size: ")
    second.children[1].value = "9"  # another name meanwhile
    assert einsum.screen.mistake.startswith("i is a size: ")
    einsum.set(pattern="j ->")  # without the name, nothing is wrong
    assert (einsum.screen.mistake, shown(einsum.controls["sizes"])) == ("", {"j": "9"})
    einsum.set(pattern="i j -> j")
    first.children[1].value = "5"
    assert einsum.screen.mistake == ""
    assert shown(einsum.controls["sizes"]) == {"i": "5", "j": "9"}


@settings(untimed, max_examples=40)
@given(
    st.lists(
        st.tuples(st.lists(st.sampled_from("abcdefghij"), max_size=9, unique=True), st.integers(1, 99)),
        max_size=8,
    )
)
def test_a_name_always_shows_the_size_that_it_was_given_last(moves):
    control, given_ = SizesControl({}), {}
    for names, size in moves:
        control.show_names(names)
        assert shown(control) == {name: given_.get(name, DEFAULT) for name in names[:8]}
        if names:
            control.children[0].value = size
            given_[names[0]] = size


def test_a_name_in_use_keeps_its_size_however_many_others_were_typed():
    control = SizesControl({})
    control.show_names(["kept", "n"])
    control.children[0].value = 7
    for n in range(60):
        control.show_names(["kept", f"n{n}"])
        control.children[1].value = n + 1
    assert shown(control) == {"kept": 7, "n59": 60}
    assert len(control.value) <= 52


def test_a_value_that_a_size_cannot_take_moves_nothing(einsum):
    before = shown(einsum.controls["sizes"]), einsum.controls["pattern"].value
    einsum.set(pattern="i ->", sizes={"i": 1.5})
    assert "cannot be" in einsum.screen.mistake
    assert (shown(einsum.controls["sizes"]), einsum.controls["pattern"].value) == before
    einsum.set(dtype="fp64")
    assert einsum.screen.mistake == ""


# Still pictures.


@pytest.mark.parametrize("make", [stride_lab, einsum_lab])
def test_both_labs_leave_a_picture_where_no_kernel_runs(make):
    bundle, _ = make()._repr_mimebundle_()
    assert set(bundle) >= {"image/png", "text/plain"}
    assert "run this cell" in bundle["text/plain"]
