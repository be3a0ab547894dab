"""The einsum lab from the kernel's side; test_browser_tensors.py looks at it from outside."""

import itertools
import math
import re
import string
import xml.etree.ElementTree as ElementTree

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from course_utils import einsums, labs
from course_utils.labs.controls import SizesControl
from course_utils.labs.einsum import jobs
from course_utils.labs.einsum.asked import PRESETS, Asked
from course_utils.labs.einsum.picture import LONGEST, MOST_BARS
from course_utils.labs.fields import MOST_NAMES, NEW_NAMES_SIZE
from course_utils.measure import Step
from course_utils.workers import products
from tests.words import assert_all_can_be_read, words

untimed = settings(deadline=None)  # no test here depends on how fast the machine is
LAB = labs.einsum_lab()  # one for all: to make it takes longer than to move it
FIRST = LAB.values


@pytest.fixture
def einsum():
    """The lab as it opens, with nothing measured."""
    LAB.found = {}
    LAB.set(**FIRST)
    return LAB


def drawn(lab):
    return ElementTree.fromstring(lab.screen.svg)


@pytest.mark.parametrize("question", PRESETS)
def test_every_preset_shows_its_cost_its_steps_and_its_orders(einsum, question):
    einsum.preset(question)
    asked = Asked(**PRESETS[question])
    assert shown(einsum.controls["sizes"]) == asked.size
    assert f"{asked.flops:,} FLOPs" in words(einsum) + einsum.screen.meaning
    assert f"{asked.einsum.steps(asked.size):,} steps of the loops" in words(einsum)
    assert (f"of {len(asked.orders)} orders" in words(einsum)) == (len(asked.orders) > 1)


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
        "Kept: b, k. Summed: d. 1,024 FLOPs, 2 for each step: a product and an addition. "
        "torch agrees with the loops on 64 of 64 numbers."
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
        ("i, j -> i j", "16 FLOPs, 1 for each step: nothing is summed."),
        ("i j -> j", "0 FLOPs by convention, as nothing is multiplied."),
        ("a, a, a -> a", "8 FLOPs in every order."),
        ("a b, b c, c d -> a d", "256 FLOPs as ((A B) C); ((A C) B): 3 times."),
    ],
)
def test_the_meaning_says_what_a_step_costs(einsum, pattern, cost):
    einsum.set(pattern=pattern, sizes={})
    assert cost in einsum.screen.meaning


@pytest.mark.parametrize(
    ("pattern", "formula"),
    [
        ("i, j -> i j", "1 × 3 × 5 = 15 FLOPs"),
        ("i, i j -> j", "2 × 3 × 5 = 30 FLOPs"),
        ("i j -> j", "0 × 3 × 5 = 0 FLOPs"),
        ("i, j, i -> j", "11 FLOPs in the cheapest order"),  # A and C, 2 · 3, then B, which sums nothing: 5
    ],
)
def test_the_formula_begins_with_what_a_step_costs(einsum, pattern, formula):
    einsum.set(pattern=pattern, sizes={"i": 3, "j": 5})
    assert formula in [node.text for node in drawn(einsum).iter()]


def test_where_torch_differs_from_the_loops_the_check_finds_it(einsum, monkeypatch):
    real = torch.einsum
    monkeypatch.setattr(torch, "einsum", lambda *arguments: real(*arguments) + 1)
    einsum.set(pattern="i, j -> i j", sizes={"i": 3, "j": 5})
    einsum.start("Check against the loops")
    einsum.wait()
    said = "torch agrees with the loops on 0 of 15 numbers."
    assert einsum.screen.report == said


def test_checking_runs_every_step_of_the_loops_and_refuses_too_many(einsum):
    einsum.set(pattern="b d, d k -> b k", sizes={"b": 20, "d": 30, "k": 40})
    einsum.start("Check against the loops")
    einsum.wait()
    assert einsum.screen.report == ("torch agrees with the loops on 800 of 800 numbers.")
    einsum.set(sizes={"b": 1024, "d": 1024, "k": 2})
    einsum.start("Check against the loops")
    with pytest.raises(ValueError, match="2,097,152 steps are too many for loops in plain Python"):
        einsum.wait()
    assert einsum.screen.failed


def test_timing_measures_the_cheapest_and_the_dearest_order_and_shows_both(einsum, monkeypatch):
    monkeypatch.setattr(jobs, "AT_MOST_S", 0.2)
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


@pytest.mark.parametrize(
    ("pattern", "order", "rate"),
    [("b d, d k -> b k", r"\(A B\)", r", [\d.]+ [kMGT]?FLOP/s"), ("b d -> b", "A", "")],
)
def test_a_product_of_two_and_a_sum_are_timed_with_their_rates(einsum, monkeypatch, pattern, order, rate):
    monkeypatch.setattr(jobs, "AT_MOST_S", 0.1)
    einsum.set(pattern=pattern, sizes={}, dtype="bf16")
    einsum.start("Time it")
    einsum.wait()
    time = r"[\d.]+ [mµ]?s"
    doubt = "( Take it as an upper bound: .*)?"
    assert re.fullmatch(rf"Measured: {order} {time}\.{doubt}", einsum.screen.report)
    assert re.search(rf"measured: {time}{rate}$", words(einsum))


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
    monkeypatch.setattr("course_utils.workers.products.einsum_call", None)  # whoever calls it fails otherwise
    einsum.set(pattern=pattern, sizes=dict.fromkeys("abcdefgh", size))
    assert einsum.screen.mistake == ""
    einsum.start("Time it")
    with pytest.raises(ValueError, match=rf"^This is not timed: {reason}.*\. Take smaller sizes\.$"):
        einsum.wait()
    assert einsum.screen.report.startswith("This is not timed")


def test_an_order_that_is_too_dear_is_left_out_and_the_next_dearest_timed(einsum, monkeypatch):
    monkeypatch.setattr(jobs, "AT_MOST_S", 0.1)
    monkeypatch.setattr(jobs, "MOST_FLOPS", {"fp32": 70_000})
    einsum.set(
        pattern="a b, b c, c d -> a d", sizes={"a": 64, "b": 4, "c": 64, "d": 4}
    )  # 4096, 65536, 196608
    einsum.start("Time it")
    einsum.wait()
    assert "((A B) C)" in einsum.screen.report
    assert "((A C) B)" not in einsum.screen.report
    assert "by FLOPs it would be 16 times." in einsum.screen.report


def test_timing_stops_when_it_is_told_to(einsum, monkeypatch):
    monkeypatch.setattr(jobs, "AT_MOST_S", 30)
    monkeypatch.setattr("course_utils.measure.on_cpu.AGREEMENT", -1.0)  # samples never agree
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
        einsum._job._stopping.wait(120)
        yield Step(0, "still the first call")
        raise AssertionError("nobody stopped it")

    monkeypatch.setattr("course_utils.workers.process.steps_of", steps_apart)
    einsum.set(pattern="b d, d k -> b k", sizes={"b": 512, "d": 512, "k": 512})
    einsum.start("Time it")
    einsum.stop()
    einsum.wait(10)
    assert started == [("einsum_timed", "b d, d k -> b k")]
    assert einsum.screen.report.startswith("Stopped. ")


def test_a_product_timed_apart_is_really_timed(einsum, monkeypatch):
    monkeypatch.setattr(jobs, "AT_MOST_S", 0.1)
    monkeypatch.setattr(jobs, "QUICK_FLOPS", 0)
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


def test_bars_are_as_long_as_their_orders_are_expensive(einsum):
    einsum.set(pattern="a b, b c, c d -> a d", sizes={"a": 64, "b": 4, "c": 64, "d": 4})
    lengths = [
        float(node.get("width"))
        for node in drawn(einsum).iter()
        if node.get("class") in ("predicted", "limit")
    ]
    costs = [4096, 65536, 196608]
    assert lengths == pytest.approx([LONGEST * cost / costs[-1] for cost in costs], abs=2)
    assert [f"{cost:,} FLOPs" for cost in costs if f"{cost:,} FLOPs" not in words(einsum)] == []


def test_of_many_orders_the_cheapest_and_the_dearest_are_drawn(einsum):
    einsum.set(
        pattern="a b, b c, c d, d e, e f -> a f", sizes=dict(zip("abcdef", (9, 2, 8, 3, 7, 4), strict=True))
    )
    orders = einsum._asked().orders
    assert len(orders) == 105
    assert "5 of 105 orders of multiplying in pairs" in words(einsum)
    codes = [node.text for node in drawn(einsum).iter() if "code" in (node.get("class") or "")]
    assert codes[-MOST_BARS] == orders[0].text
    assert codes[-1] == orders[-1].text


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
def test_multiplying_in_any_order_gives_the_same(drawn_):
    asked = Asked(pattern=drawn_[0], sizes=drawn_[1])
    draw = torch.Generator().manual_seed(2)
    operands = [torch.randint(-4, 5, shape, generator=draw).double() for shape in asked.shapes[:-1]]
    expected = torch.einsum(asked.einsum.equation, *operands)
    for order in asked.orders:
        assert torch.equal(products.product_in_order(asked.einsum, order.tree, operands), expected)


@settings(untimed, max_examples=40)
@given(small_patterns(), st.sampled_from(["fp32", "bf16"]))
def test_whatever_is_asked_agrees_with_the_loops(drawn_, dtype):
    LAB.set(pattern=drawn_[0], notation="names", sizes=drawn_[1], dtype=dtype)
    assert LAB.error is None
    *_, last = jobs.check(LAB._asked(), {})
    assert re.search(r"agrees with the loops on ([\d,]+) of \1 number", last.report)
    assert_all_can_be_read(LAB.screen.svg)
    assert einsums.loop_nest(einsums.parsed(drawn_[0]), drawn_[1]).count("for ") == len(drawn_[1])


@settings(untimed, max_examples=150)
@given(
    st.text(max_size=30) | st.text(alphabet="abAB ,->→.()_1é", max_size=30),
    st.sampled_from(["names", "letters"]),
    st.text(max_size=8) | st.integers(-3, 2**21),
)
def test_any_text_gets_a_picture_or_a_sentence(pattern, notation, size):
    LAB.set(pattern=pattern, notation=notation, sizes={"a": size})
    drawn(LAB)
    if LAB.error is not None:
        assert isinstance(LAB.error, ValueError)
        assert re.match(
            r"In “.*▸.*◂.*”, at ▸◂: |a is a size: |\d+ (operands|names) ", LAB.screen.mistake, re.DOTALL
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
    assert_all_can_be_read(einsum.screen.svg)


# A size for each name.


def shown(control):
    """The sliders that can be seen, by name."""
    return {c.name: c.value for c in control.children if c.layout.display != "none"}


def test_sliders_come_and_go_with_the_names_and_values_are_remembered(einsum):
    sizes_ = einsum.controls["sizes"]
    einsum.set(pattern="b d, d k -> b k", sizes={"b": 16, "d": 8})
    assert shown(sizes_) == {"b": 16, "d": 8, "k": NEW_NAMES_SIZE}
    assert [c.children[0].description for c in sizes_.children[:3]] == ["b", "d", "k"]
    assert [c.children[1].tooltip for c in sizes_.children[:3]] == ["b, typed", "d, typed", "k, typed"]
    einsum.set(pattern="k q -> k")
    assert shown(sizes_) == {"k": NEW_NAMES_SIZE, "q": NEW_NAMES_SIZE}
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
        assert shown(control) == {name: given_.get(name, NEW_NAMES_SIZE) for name in names[:MOST_NAMES]}
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
