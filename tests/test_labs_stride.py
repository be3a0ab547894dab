"""The stride lab from the kernel's side; test_browser_tensors.py looks at it from outside."""

import math
import re
import warnings
import xml.etree.ElementTree as ElementTree

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from course_utils import chains, labs
from course_utils.chains import EXAMPLES, chain
from course_utils.labs.draw import still
from course_utils.labs.draw.svg import SHADES
from course_utils.labs.stride import jobs
from course_utils.labs.stride.asked import (
    BUTTONS,
    DTYPES,
    MOST_DIMENSIONS,
    MOST_ELEMENTS,
    PRESETS,
    Chain,
    base,
    shape_of,
)
from course_utils.labs.stride.picture import HEIGHT, view
from tests.hostile import button
from tests.test_chains import joined, links, some_words

untimed = settings(deadline=None)  # no test here depends on how fast the machine is
ASKED = [(values["shape"], values["operations"]) for values in PRESETS.values()]


def drawn(lab):
    """The picture, which must be well-formed and made of a few shapes, whatever was typed."""
    tree = ElementTree.fromstring(lab.screen.svg)
    tags = {node.tag.removeprefix("{http://www.w3.org/2000/svg}") for node in tree.iter()}
    assert tags <= {"svg", "g", "rect", "circle", "text"}
    assert not [
        name for node in tree.iter() for name in node.attrib if name.startswith("on") or "href" in name
    ]
    _, _, width, height = map(float, tree.get("viewBox").split())
    assert width == 1000
    assert 40 < height <= HEIGHT  # so that the lab fits on one screen
    return tree


def words_of(lab):
    """All that the picture says."""
    return " ".join("".join(node.itertext()) for node in drawn(lab))


def said(lab):
    """The sentence that answers what was typed; the lab stays whole whatever it was."""
    assert lab.error is None or isinstance(lab.error, ValueError)
    drawn(lab)
    sentence = lab.screen.mistake or lab.screen.meaning
    assert sentence.strip().endswith(".")
    return sentence


def applied(shape, dtype, operations):
    """The tensors on the way, and why it goes no further."""
    return jobs.applied(Chain(shape, dtype, operations, ""))


STRIDE_LAB = labs.stride_lab()  # one: to make it takes longer than to move it
FIRST = STRIDE_LAB.values


@pytest.fixture
def stride():
    """The stride lab as it opens."""
    STRIDE_LAB.set(**FIRST)
    return STRIDE_LAB


def test_one_preset_alone_is_refused(stride):
    refused = []
    for label in PRESETS:
        button(stride, label).click()
        assert stride.error is None
        refused += [label] if "cannot be merged" in said(stride) else []
    assert refused == ["when is a view refused?"]


@pytest.mark.parametrize("shape", ["2 3", "3 1 2", "1", "0 3"])
@pytest.mark.parametrize("label", list(BUTTONS))
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
    for label in ("transpose", "contiguous"):
        stride.set(operations="")
        while not stride.screen.mistake:
            before = stride.controls["operations"].value
            button(stride, label).click()
        assert "are enough" in stride.screen.mistake
        assert stride.controls["operations"].value == before
        links = len(chain(before))
        button(stride, "undo").click()
        assert stride.screen.mistake == ""
        assert len(chain(stride.controls["operations"].value)) == links - 1


def run_for_real(start, drawn_links):
    """Call torch link by link until it refuses; the tensors on the way."""
    tensors = [start]
    for _, call in drawn_links:
        try:
            after = call(tensors[-1])
        except (RuntimeError, IndexError, ValueError, TypeError):
            return tensors
        if math.prod(after.shape) > MOST_ELEMENTS or after.ndim > MOST_DIMENSIONS:
            return tensors
        tensors.append(after)
    return tensors


shapes = st.lists(st.sampled_from([2, 3, 4, 1, 0]), min_size=1, max_size=3)


@settings(untimed, max_examples=400)
@given(shapes, st.lists(links(), max_size=4))
def test_a_typed_chain_does_what_torch_does_and_stops_where_torch_stops(shape, drawn_links):
    start = torch.arange(math.prod(shape)).float().view(shape)
    typed = joined([text for text, _ in drawn_links])
    if len(typed) > chains.LONGEST:
        return
    tensors, refusal = applied(" ".join(map(str, shape)), "fp32", typed)
    expected = run_for_real(start, drawn_links)
    assert len(tensors) == len(expected)
    for ours, theirs in zip(tensors, expected, strict=True):
        facts = [(t.shape, t.stride(), t.storage_offset(), t.is_contiguous()) for t in (ours, theirs)]
        assert facts[0] == facts[1]
        assert torch.equal(ours, theirs)
        assert ours.untyped_storage().nbytes() == theirs.untyped_storage().nbytes()
    assert (refusal == "") == (len(expected) == len(drawn_links) + 1)


@settings(untimed, max_examples=60)
@given(shapes, st.lists(links(), max_size=4))
def test_whatever_the_chain_leaves_is_drawn_with_a_row_for_each_link_that_was_done(shape, drawn_links):
    lab, typed = STRIDE_LAB, joined([text for text, _ in drawn_links])[: chains.LONGEST]
    lab.set(shape=" ".join(map(str, shape)), operations=typed, element="")
    said(lab)
    if lab.error is None:
        tensors, refusal = applied(" ".join(map(str, shape)), "fp32", typed)
        assert len(lab.screen.table) == 1 + len(tensors) + bool(refusal)
        assert lab.screen.table[-1][1] == ("refused" if refusal else str(tuple(tensors[-1].shape)))
        elements = [node for node in drawn(lab).iter() if node.get("data-key") is not None]
        assert len(elements) == tensors[-1].numel()


@pytest.mark.parametrize("name", list(EXAMPLES))
def test_every_operation_can_be_done_as_its_example_writes_it(name):
    shape = {"permute": "2 3", "t": "2 3", "expand": "2 3", "unflatten": "4 3"}.get(name, "4 6")
    assert applied(shape, "fp32", EXAMPLES[name])[1] == ""
    assert [link.name for link in chain(EXAMPLES[name])] == [name]


def by_pointer(t, index):
    return (t[index].data_ptr() - t.untyped_storage().data_ptr()) // t.element_size()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("shape", "typed"), [*ASKED, ("3 4", "[1, 2]"), ("2 1 3", ""), ("128 1", "t()")])
def test_pointing_at_an_element_says_where_torchs_pointer_stands(stride, shape, typed, dtype):
    stride.set(shape=shape, operations=typed, dtype=dtype)
    t = applied(shape, dtype, typed)[0][-1]
    elements = [node for node in drawn(stride).iter() if node.get("data-key") is not None]
    assert len(elements) == t.numel()
    for node in elements[:: max(1, len(elements) // 2)]:
        stride.pick(node.get("data-key"))
        assert stride.error is None
        index = tuple(map(int, node.get("data-key").split(", "))) if t.ndim else ()
        place = by_pointer(t, index)
        assert node.get("aria-label") == f"[{node.get('data-key')}] is {int(t[index])}, at {place}"
        formula = re.search(r"\[(.*?)\] lies at ((\d+)[\d+× ]*) = (\d+)", words_of(stride))
        assert formula[1] == node.get("data-key")
        assert int(formula[3]) == t.storage_offset()
        assert eval(formula[2].replace("×", "*")) == int(formula[4]) == place
        ringed = [node for node in drawn(stride).iter() if node.get("class") == "pointed"]
        assert len(ringed) == 2  # in the strip and in the grid
        assert f"torch's own pointer: {place}" in words_of(stride)


@pytest.mark.parametrize("preset", ASKED, ids=PRESETS)
def test_the_picture_shows_every_number_of_the_storage_and_fills_those_that_are_seen(preset):
    lab = STRIDE_LAB
    lab.set(shape=preset[0], operations=preset[1], element="", dtype="fp32")
    t = applied(preset[0], "fp32", preset[1])[0][-1]
    owned = t.untyped_storage().nbytes() // t.element_size()
    groups = [node for node in drawn(lab) if node.tag.endswith("}g") and not node.get("transform")]
    assert len(groups) == owned
    values = torch.empty(0).set_(t.untyped_storage(), 0, (owned,))
    assert [float("".join(node.itertext())) for node in groups] == values.tolist()
    seen = set(torch.arange(owned).as_strided(t.shape, t.stride(), t.storage_offset()).flatten().tolist())
    assert [place for place, node in enumerate(groups) if node.get("class") != "unseen"] == sorted(seen)
    assert f"{owned} numbers of 4 bytes" in words_of(lab)
    colour = {place: node.get("class") for place, node in enumerate(groups)}
    for node in drawn(lab).iter():
        if node.get("data-key") is not None:  # an element has the colour of its place
            index = tuple(map(int, node.get("data-key").split(", ")))
            assert node[0].get("class") == colour[by_pointer(t, index)]
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
    ],
)
def test_a_refused_view_says_why_and_leaves_the_tensor_before_it(stride, shape, typed, sentence):
    stride.set(shape=shape, operations=typed)
    assert stride.error is None
    assert f"is refused. {sentence}" in stride.screen.meaning
    tensors, _ = applied(shape, "fp32", typed)
    assert stride.screen.table[-1][0] == chain(typed)[len(tensors) - 1].text
    assert f"shape {tuple(tensors[-1].shape)}" in words_of(stride)


@pytest.mark.parametrize(
    ("typed", "sentence"),
    [
        ("view(2, -2)", "torch says “invalid shape dimension -2"),
        (
            "[:, ::2].view(12).view(-1).t().view(5)",
            "torch says “shape '[5]' is invalid for input of size 12”",
        ),
        ("view(5, -1)", "torch says “shape '[5, -1]' is invalid for input of size 24”"),
        ("view(-1, 0)", "The operation view(-1, 0) is refused. torch says “"),
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
            "A view: it changes shape, strides and offset; no number has moved; it keeps 16 bytes allocated",
        ),
        (
            "expand(2, 4, 6)",
            "it changes shape and strides; no number has moved; 48 elements share 24 places.",
        ),
        ("t().contiguous().clone()", "Copied by contiguous() and clone(): 96 bytes of its own."),
        ("contiguous()", "A view: it changes nothing; no number has moved."),
        ("", "24 numbers in one row of storage; the strides (6, 1) say how far a step along"),
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
    assert "no elements" in words_of(stride)
    assert still.still_png(stride.screen.svg).startswith(b"\x89PNG")


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
    assert shape_of(typed) == shape


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
        ("", (3, 5)),
    ],
)
def test_an_element_that_is_not_there_is_answered_by_the_last_one(stride, typed, element):
    stride.set(shape="4 6", operations="", element=typed)
    assert f"[{element[0]}, {element[1]}] lies at" in words_of(stride)


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
    "\0",
    "t()\0",
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
    "Z͑ͫ̓ͪ̂ͫ̽͏̴̙̤̞͉͚̯̞̠͍A̴̵̜̰͔ͫ͗͢L̠ͨͧͩ͘G̴̻͈͍͔̹̑͗̎̅͛́Ǫ̵̹̻̝̳͂̌̌͘!͖̬̰̙̗̿̋ͥͥ̂ͣ̐́́͜͞",
    "−1",
    "x" * 61,
    "﷽",
    "\r\n\r\n",
    "nan inf -inf 1e999",
    "None",
    "lambda: t()",
    "t() if x else t()",
    "t(*x)",
    "(yield)",
    "[x:=2]",
    "...",
]


@pytest.mark.parametrize("number", range(len(ATTACKS)))
def test_nothing_typed_is_run_and_all_of_it_gets_a_sentence(number, tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    warnings.simplefilter("error")  # Python's parser warns of some things that it reads
    words_ = ATTACKS[number].replace("{file}", str(tmp_path / "made")).replace("{{", "{").replace("}}", "}")
    good = {"shape": "2", "dtype": "fp32", "operations": "", "element": ""}
    for field in ("shape", "operations", "element"):
        STRIDE_LAB.set(**good | {field: words_})
        assert len(said(STRIDE_LAB)) < 3000
    STRIDE_LAB.set(**good | {"operations": words_})
    for label in ("undo", "transpose"):  # what a button makes of it
        button(STRIDE_LAB, label).click()
        said(STRIDE_LAB)
    assert list(tmp_path.iterdir()) == []
    assert capfd.readouterr() == ("", "")


@settings(untimed, max_examples=150)
@given(some_words, some_words, some_words)
def test_the_stride_lab_survives_any_text(shape, operations_, element):
    lab = STRIDE_LAB
    lab.set(shape=shape, operations="", element="")
    assert lab.error is None or "is no shape" in str(lab.error) or "more than the 128" in str(lab.error)
    said(lab)
    lab.set(shape="2 3", operations=operations_, element=element)
    if lab.error is not None:
        assert re.match(r"In “.*▸.*◂.*”, at ▸◂: |“.*” is no element. ", str(lab.error), re.DOTALL)
    said(lab)


def test_digits_can_be_read_on_every_colour(stride):
    stride.set(shape="64", operations="")

    def luminance(colour):
        parts = [int(colour[n : n + 2], 16) / 255 for n in (1, 3, 5)]
        linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
        return sum(w * p for w, p in zip((0.2126, 0.7152, 0.0722), linear, strict=True))

    inks = {"on-dark": luminance("#ffffff"), "on-light": luminance("#111111")}
    colours = dict(re.findall(r"\.(shade-\d+) rect \{ fill: (#\w+);", still.PICTURE_CSS))
    cells = {node.get("class") for node in drawn(stride).iter() if "shade" in (node.get("class") or "")}
    assert len(cells) == SHADES == len(colours)
    for shade, ink in map(str.split, cells):
        colour = colours[shade]
        low, high = sorted((inks[ink], luminance(colour)))
        assert (high + 0.05) / (low + 0.05) >= 3  # WCAG's least for large letters; these are bold to the eye


@pytest.mark.parametrize(
    ("shape", "operations"),
    [("128 1", ""), ("64 1 2", ""), ("2 2 2 2 2 4", "permute(5, 4, 3, 2, 1, 0)"), ("128 1 1", ""), ("1", "")],
)
def test_however_many_rows_and_blocks_there_are_the_lab_stays_on_one_screen(stride, shape, operations):
    stride.set(shape=shape, operations=operations)
    lowest = max(float(node.get("y", 0)) for node in drawn(stride).iter())
    assert stride.error is None
    assert lowest > 0


def test_without_a_kernel_the_base_is_drawn_as_torch_would_lay_it_out():
    for shape in ("4 6", "2 3 4", "7", "0 3", "3 0", "1 1 5"):
        alone = base(Chain(shape, "fp32", "", ""))
        assert alone.end == jobs.at_once(Chain(shape, "fp32", "", ""), None).end
    shown = view(Chain("4 6", "fp32", "t()", "1 2"), None)
    assert shown.meaning == "What comes of these operations needs a kernel."
    assert "[1, 2] lies at 0 + 1 × 6 + 2 × 1 = 8" in shown.picture
    assert "torch" not in shown.picture
