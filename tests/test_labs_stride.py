"""The stride lab against torch; test_browser_tensors.py looks at it from outside."""

import math
import re
import warnings
from xml.etree import ElementTree

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from course_utils import chains, labs
from course_utils.chains import EXAMPLES, chain
from course_utils.labs.draw.svg import SHADES
from course_utils.labs.stride.asked import BUTTONS, DTYPES, MOST_DIMENSIONS, MOST_ELEMENTS, PRESETS, Chain
from course_utils.labs.stride.picture import HEIGHT
from course_utils.measure import DTYPES as TORCH_DTYPES
from tests.labs import answers, fresh, nodes
from tests.test_chains import joined, links
from tests.words import words

LAB = labs.stride_lab()  # one for all that is drawn: to make it takes longer than to move it
stride = fresh("stride")


# What is drawn, against torch.


def run_for_real(start, drawn_links):
    """Call torch link by link until it refuses, or it is too much to draw; the tensors on the way."""
    tensors = [start]
    for text, call in drawn_links:
        try:
            after = call(tensors[-1])
        except (RuntimeError, IndexError, ValueError, TypeError):
            return tensors
        if min(after.shape, default=0) < 0 or text.count("...") > 1:  # torch lets these pass
            return tensors
        if math.prod(after.shape) > MOST_ELEMENTS or after.ndim > MOST_DIMENSIONS:
            return tensors
        tensors.append(after)
    return tensors


def rows_of(tensors):
    """What the table says of tensors, each of which came from the one before it."""
    for number, t in enumerate(tensors):
        same = number and t.untyped_storage()._cdata == tensors[number - 1].untyped_storage()._cdata
        contiguous, storage = "yes" if t.is_contiguous() else "no", "shared" if same else "copied"
        facts = str(tuple(t.shape)), str(t.stride()), str(t.storage_offset()), contiguous
        yield [*facts, storage if number else "its own"]


def place_of(t, index):
    return (t[index].data_ptr() - t.untyped_storage().data_ptr()) // t.element_size()


def assert_drawn(lab, t):
    """The storage number by number, what is seen of it, each element in the colour of its place; and all on one screen."""
    tree = ElementTree.fromstring(lab.screen.svg)
    assert float(tree.get("viewBox").split()[-1]) <= HEIGHT
    owned = t.untyped_storage().nbytes() // t.element_size()
    assert f"{owned} numbers of {t.element_size()} bytes" in words(lab)
    cells = [node for node in tree if node.tag.endswith("}g") and not node.get("transform")]
    stored = torch.empty(0, dtype=t.dtype).set_(t.untyped_storage(), 0, (owned,))
    assert [float("".join(cell.itertext())) for cell in cells] == stored.tolist()
    elements = {node.get("data-key"): node for node in tree.iter() if node.get("data-key") is not None}
    indices = [tuple(index) for index in torch.ones(t.shape).nonzero().tolist()]
    assert [*elements] == [", ".join(map(str, index)) for index in indices]
    seen = set()
    for index, (key, node) in zip(indices, elements.items(), strict=True):
        place = place_of(t, index)
        seen.add(place)
        assert node.get("aria-label") == f"[{key}] is {int(t[index])}, at {place}"
        assert node[0].get("class") == cells[place].get("class")
    colours = {place: cell.get("class") for place, cell in enumerate(cells) if cell.get("class") != "unseen"}
    assert colours.keys() == seen
    assert owned > SHADES or len({*colours.values()}) == len(seen)


def assert_pointed_at(lab, t, index):
    """The formula leads to where torch's own pointer stands, and the element is ringed in storage and tensor."""
    key, place = ", ".join(map(str, index)), place_of(t, index)
    lab.pick(key)
    formula = re.search(r"\[(.*?)\] lies at ((\d+)[\d+× ]*) = (\d+)", words(lab))
    assert (formula[1], int(formula[3])) == (key, t.storage_offset())
    assert eval(formula[2].replace("×", "*")) == int(formula[4]) == place
    assert f"torch's own pointer: {place}" in words(lab)
    assert len(nodes(lab.screen.svg, "rect", "pointed")) == 2


@settings(max_examples=200)
@given(
    st.lists(st.sampled_from([2, 3, 4, 1, 0]), min_size=1, max_size=3),
    st.lists(links(), max_size=4),
    st.sampled_from(DTYPES),
    st.data(),
)
def test_a_chain_does_what_torch_does_and_stops_where_torch_stops(shape, drawn_links, dtype, data):
    start = torch.arange(math.prod(shape)).to(TORCH_DTYPES[dtype]).view(shape)
    typed = joined([text for text, _ in drawn_links])
    if len(typed) > chains.LONGEST:
        return
    LAB.set(shape=" ".join(map(str, shape)), dtype=dtype, operations=typed, element="")
    assert LAB.session.error is None
    expected = run_for_real(start, drawn_links)
    _, *rows = LAB.screen.table
    refused = len(expected) <= len(drawn_links)
    assert (rows[-1][1] == "refused") == refused
    assert [row[1:] for row in rows[: len(expected)]] == list(rows_of(expected))
    assert [row[0] for row in rows] == ["base", *(link.text for link in chain(typed)[: len(rows) - 1])]
    assert_drawn(LAB, expected[-1])
    if expected[-1].numel():
        index = data.draw(st.tuples(*(st.integers(0, n - 1) for n in expected[-1].shape)))
        assert_pointed_at(LAB, expected[-1], index)


@pytest.mark.parametrize(
    ("shape", "operations"),
    [
        *((values["shape"], values["operations"]) for values in PRESETS.values()),
        *(("3 4", "[1, 2]"), ("128 1", "t()"), ("64 1 2", ""), ("2 2 2 2 2 4", "permute(5, 4, 3, 2, 1, 0)")),
        *(("128", ""), ("128 1", ""), ("1 128", ""), ("128 1 1", ""), ("1", "")),
    ],
)
def test_all_of_storage_and_tensor_is_drawn_on_one_screen(stride, shape, operations):
    stride.set(shape=shape, operations=operations)
    assert stride.session.error is None
    t = torch.arange(math.prod(Chain(shape).sizes), dtype=torch.float32).view(Chain(shape).sizes)
    for link in chain(operations)[
        : len(stride.screen.table) - (2 if "refused" in stride.screen.meaning else 1) - 1
    ]:
        t = getattr(t, link.name)(*link.arguments) if link.name else t[link.arguments]
    assert_drawn(stride, t)
    assert_pointed_at(stride, t, (0,) * t.ndim)


@pytest.mark.parametrize("name", list(EXAMPLES))
def test_every_operation_can_be_done_as_its_example_writes_it(name):
    shape = {"permute": "2 3", "t": "2 3", "expand": "2 3", "unflatten": "4 3"}.get(name, "4 6")
    assert Chain(shape, "fp32", EXAMPLES[name], "").way.refusal == ""
    assert [link.name for link in chain(EXAMPLES[name])] == [name]


# What is said.


CANNOT_BE_MERGED = "Dimensions 0 and 1 of (3, 2, 4) cannot be merged, and 6 in (6, 4)"
SAID = [
    ("4 6", "", "24 numbers in one row of storage; the strides (6, 1) say how far a step along"),
    ("4 6", "contiguous()", "A view: it changes nothing; no number has moved."),
    ("4 6", "t()[1:]", "A view: it changes shape, strides and offset; no number has moved; it keeps 16 bytes"),
    ("4 6", "expand(2, 4, 6)", "it changes shape and strides; no number has moved; 48 elements share 24 places."),
    ("4 6", "clone().contiguous()[...].flatten()", "Copied by clone(): 96 bytes of its own."),
    ("4 6", "t().contiguous().clone()", "Copied by contiguous() and clone(): 96 bytes of its own."),
    ("2 3 4", "transpose(0, 1).view(6, 4)", f"is refused. {CANNOT_BE_MERGED}"),
    ("4 6", "view(2, -2)", "is refused. (2, -2) is no shape: one size may be -1, the others are 0 or more."),
    ("4 6", "view(5, -1)", "is refused. No size in place of -1 makes (5, -1) hold 24 elements."),
    ("4 6", "[:, ::2].view(12).view(-1).t().view(5)", "is refused. (5,) has 5 elements, and (12,) has 12 elements."),
    ("4 6", "unflatten(0, (3, 2))", "is refused. (3, 2) does not have the 4 elements of dimension 0."),
    ("4 6", "[4]", "is refused. Index 4 is out of bounds: dimension 0 has size 4."),
    ("4 6", "[..., 0, ...]", "is refused. An index has one ... at most."),
    ("4 6", "squeeze(0, -2)", "is refused. It names a dimension twice."),
    ("4 6", "transpose(0, 2)", "is refused. The shape (4, 6) has no dimension 2."),
    ("4 6", "expand(2, 4, 7)", "is refused. Only a size of 1 can become 7: dimension 2 has size 6."),
    ("4 6", "as_strided((9, 9), (9, 1), 0)", "is refused. It would leave the storage, which has 24 numbers."),
    ("4 6", "t(1)", "t(1) has the wrong numbers in it. Write it like t()."),
    ("4 6", "expand(999999, 999999, 4, 6)", "gives the shape (999999, 999999, 4, 6), larger"),
    ("4 6", ".".join(["unsqueeze(0)"] * 5), "gives the shape (1, 1, 1, 1, 1, 4, 6), larger"),
    ("0", "expand(999999, 0)", "gives the shape (999999, 0), larger"),
]  # fmt: skip


@pytest.mark.parametrize(("shape", "operations", "sentence"), SAID)
def test_what_was_copied_shared_kept_or_refused_is_said(stride, shape, operations, sentence):
    stride.set(shape=shape, operations=operations, element="")
    assert sentence in stride.screen.meaning
    assert stride.screen.meaning.endswith(".")


def test_one_preset_alone_is_refused(stride):
    said = {label: answers(stride, label) for label in PRESETS}
    refused = [label for label in PRESETS if "refused" in said[label]]
    assert refused == ["when is a view refused?"]
    assert CANNOT_BE_MERGED in said[refused[0]]


# What is pressed and typed.


@pytest.mark.parametrize("shape", ["2 3", "3 1 2", "1", "0 3"])
def test_a_button_appends_one_operation_and_undo_takes_it_back(stride, shape):
    stride.set(shape=shape, operations="", element="")
    first = stride.screen.svg, stride.screen.meaning
    for label in BUTTONS:
        stride.act(label)
        assert stride.session.error is None
        assert len(chain(stride.values["operations"])) == 1
        for _ in range(2):  # the second time with nothing to undo
            stride.act("undo")
            assert stride.values["operations"] == ""
            assert (stride.screen.svg, stride.screen.meaning, stride.session.error) == (*first, None)


def test_a_button_after_a_refused_view_takes_its_place(stride):
    stride.set(shape="4 6", operations="t().view(-1)")
    assert "cannot be merged" in stride.screen.meaning
    stride.act("reshape(-1)")
    assert stride.values["operations"] == "t().reshape(-1)"
    assert "Copied by reshape(-1): 96 bytes" in stride.screen.meaning


@pytest.mark.parametrize("label", ["transpose", "contiguous"])
def test_buttons_never_build_a_chain_that_undo_could_not_take_apart(stride, label):
    while not stride.screen.mistake:
        before = stride.values["operations"]
        stride.act(label)
    assert "are enough" in stride.screen.mistake
    assert stride.values["operations"] == before
    stride.act("undo")
    assert stride.screen.mistake == ""
    assert len(chain(stride.values["operations"])) == len(chain(before)) - 1


NO_SHAPES = ("", " ", "()", "4 -6", "4.5", "a", "1 2 3 4 5 6 7", "٣", "1e2", "4;6", "4 6" * 30, "[4, 6]")


def test_a_shape_can_be_typed_as_people_write_it_and_what_is_none_gets_a_sentence(stride):
    typed = {"4 6": (4, 6), "(4, 6)": (4, 6), "2×3x4": (2, 3, 4), " 7 ": (7,), "(5,)": (5,), "0 3": (0, 3)}
    assert {shape: Chain(shape=shape).sizes for shape in typed} == typed
    for shape in NO_SHAPES:
        stride.set(shape=shape)
        said = f"“{shape[:60]}” is no shape. Type 1 to 6 sizes, like 4 6 or 2, 3."
        assert stride.screen.mistake == said
    for shape in ((129,), (12, 11), (999999, 0), (128,) * 6):
        stride.set(shape=f"{shape}")
        said = f"The shape {shape} is larger than this lab draws. Take up to 6 dimensions, and 128 elements in all and along each."
        assert stride.screen.mistake == said


@pytest.mark.parametrize(
    ("typed", "element"),
    [("2 1", "2, 1"), ("[2, 1]", "2, 1"), ("-1 −2", "3, 4"), ("4 0", "3, 5"), ("1", "3, 5"), ("", "3, 5")],
)
def test_an_element_that_is_not_there_is_answered_by_the_last_one(stride, typed, element):
    stride.set(shape="4 6", operations="", element=typed)
    assert f"[{element}] lies at" in words(stride)


ATTACKS = (
    *("__import__('os').system('touch {file}')", "[open('{file}', 'w')]", "numpy().tofile('{file}')", "!touch {file}"),
    *("t().__class__.__init__.__globals__['os'].system('touch {file}')", "t()\nimport os\nos.system('touch {file}')"),
    *("set_()", "x.grad_fn", "%s {0.__class__}", "</text></svg><script>alert(1)</script>", "]]><!--", "&lt;&#0;"),
    *("view(" + "(" * 95 + ")" * 96, "[0]" * 66, "a" * 10_000, "t()\0", "".join(map(chr, range(32))), "﷽"),
    *("view(٢, ３)", "lambda: t()", "(yield)", "[x:=2]", "...", "nan inf 1e999"),
)  # fmt: skip


MISTAKE = re.compile(
    r"In “.*▸.*◂.*”, at ▸◂: |That is|“.*” is no (element|shape)\. |The shape \(.*is larger than this lab draws",
    re.DOTALL,
)


def test_nothing_typed_is_run_and_all_of_it_gets_a_picture_or_a_sentence(
    stride, tmp_path, monkeypatch, capfd
):
    monkeypatch.chdir(tmp_path)
    first = stride.values
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # Python's parser warns of some things that it reads
        for attack in ATTACKS:
            for field in ("shape", "element", "operations"):
                stride.set(**first | {field: attack.replace("{file}", str(tmp_path / "made"))})
                assert stride.session.error is None or MISTAKE.match(str(stride.session.error))
            for label in ("undo", "transpose"):  # what a button makes of it
                stride.act(label)
                assert stride.session.error is None or isinstance(stride.session.error, ValueError)
    assert list(tmp_path.iterdir()) == []
    assert capfd.readouterr() == ("", "")
