"""The einsum lab against torch; test_browser_einsum.py looks at it from outside."""

import re
import string

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from course_utils.chapters import labs
from course_utils.chapters.einsum.einsum_lab import jobs
from course_utils.chapters.einsum.einsum_lab.asked import PRESETS, Asked
from course_utils.chapters.einsum.einsum_lab.picture import LONGEST, MOST_BARS, ROLES
from course_utils.engine.labs.named_sizes import NEW_NAMES_SIZE
from course_utils.subjects.child_processes import products
from tests.helpers.labs import fresh, nodes, run, steps_here
from tests.helpers.words import assert_all_can_be_read, words

LAB = labs.einsum_lab()  # one for all that is drawn: to make it takes longer than to move it
einsum = fresh("einsum")
CHAIN = "a b, b c, c d -> a d"


def sized(pattern, **sizes):
    return {"pattern": pattern, "sizes": sizes}


# What is shown and said.


A_TIMES_B = PRESETS["what is A times B?"]
ATTENTION = PRESETS["what is batch in attention?"]
ONE_ORDER_OF_THREE = PRESETS["which order is cheapest?"]
SUMMED_FIRST = sized("a b c, c d -> a d", a=3, b=5, c=7, d=2)
SHOWN = [
    (
        A_TIMES_B,
        "Kept: b, k. Summed: d. "
        "1,024 FLOPs, 2 for each iteration: a multiplication and an addition.",
    ),
    (
        A_TIMES_B,
        "2 × 16 × 8 × 4 = 1,024 FLOPs 896 bytes in fp32, each once 1.143 FLOPs per byte",
    ),
    (
        A_TIMES_B,
        "range(16):for k in range(4):total = 0for d in range(8):total += A[b, d] * B[d, k]",
    ),
    (
        A_TIMES_B | {"dtype": "fp64"},
        "1,792 bytes in fp64, each once 0.571 FLOPs",
    ),
    (
        ATTENTION,
        "Batch: b, h. Kept: i, j. Summed: d. 16,384 FLOPs, 2 for each iteration",
    ),
    (
        ATTENTION,
        "8,192 iterations of the loops 2 × 2 × 4 × 8 × 16 × 8 = 16,384 FLOPs",
    ),
    (
        PRESETS["who needs no sum?"],
        "256 FLOPs, 1 for each iteration, because nothing is summed.",
    ),
    (
        PRESETS["is a sum free?"],
        "0 FLOPs by convention, because nothing is multiplied.",
    ),
    (
        ONE_ORDER_OF_THREE,
        "131,072 FLOPs in the order (A (B C)); ((A C) B) takes 384 times as many.",
    ),
    (
        ONE_ORDER_OF_THREE,
        "iterations of the loops 131,072 FLOPs in the cheapest order 65,536 bytes",
    ),
    (
        PRESETS["when is attention linear?"],
        "4,194,304 FLOPs in the order (A (B C)); ((A C) B) takes 768 times as many.",
    ),
    (
        sized("a, a, a -> a"),
        "8 FLOPs in every order.",
    ),
    (
        sized("i d, j d, j v -> i v", i=32, j=32, d=32, v=32),
        "131,072 FLOPs in the orders ((A B) C) and (A (B C)); ((A C) B) takes 24 times as many.",
    ),
    (
        sized("a b, b c, c d, d e -> a e", a=4, b=4, c=4, d=4, e=4),
        "384 FLOPs in the orders (((A B) C) D), ((A (B C)) D) and 3 others; ",
    ),
    (
        sized(CHAIN, a=64, b=4, c=64, d=4),
        "cheapest ((A B) C)  65,536 FLOPs · 16 times ((A C) B)  196,608 FLOPs · 48 times",
    ),
    (
        sized("i, j -> i j", i=3, j=5),
        "1 × 3 × 5 = 15 FLOPs",
    ),
    (
        sized("i, i j -> j", i=3, j=5),
        "2 × 3 × 5 = 30 FLOPs",
    ),
    (
        sized("i j -> j", i=3, j=5),
        "0 × 3 × 5 = 0 FLOPs",
    ),
    (
        # A and C take 2 · 3, and then B, which sums nothing, takes 5.
        sized("i, j, i -> j", i=3, j=5),
        "11 FLOPs in the cheapest order",
    ),
    (
        SUMMED_FIRST,
        "84 FLOPs, 2 for each combination of the other names: "
        "b is in one operand alone and summed first, which counts 0.",
    ),
    (
        SUMMED_FIRST,
        "210 iterations of the loops 2 × 3 × 7 × 2 = 84 FLOPs",
    ),
    (
        sized("a b, c -> a c", a=3, b=5, c=7),
        "1 × 3 × 7 = 21 FLOPs",
    ),
    (
        sized("a b, c d -> a", a=3, b=5, c=7, d=2),
        "3 FLOPs, 1 for each combination of the other names: "
        "b, c and d are each in one operand alone and summed first",
    ),
    (
        sized("i b, i j, j -> i", i=3, b=5, j=7),
        "45 FLOPs in the order (A (B C)); ((A B) C) takes 1.4 times as many. "
        "b is in one operand alone and summed first",
    ),
    (
        sized("a, a, a, a, a, a ->"),
        "6 operands have more orders than fit in here. Take up to 5.",
    ),
    (
        sized("a b c d e f g h i ->"),
        "9 names are more than this lab has sliders for. Take up to 8.",
    ),
    (
        sized("a b c d e f g h, a, b, c, d ->"),
        "5 of 105 orders",
    ),
]


@pytest.mark.parametrize(("asked", "sentence"), SHOWN)
def test_what_an_einsum_costs_and_why_is_said(einsum, asked, sentence):
    einsum.set(**asked)
    assert sentence in einsum.screen.mistake + einsum.screen.meaning + words(einsum)


def test_the_pattern_is_drawn_by_the_roles_of_its_names(einsum):
    einsum.set(pattern="b d, d k -> b k", sizes={"b": 16, "d": 8, "k": 4})
    words_by_role = {}
    for role in ROLES:
        chips = nodes(einsum.screen.svg, "g", role)
        words_by_role[role] = {"".join(chip.itertext()) for chip in chips}
    assert words_by_role == {
        "batch": {"batch"},  # which stands in the key alone
        "kept": {"kept", "b 16", "k 4"},
        "summed": {"summed", "d 8"},
    }
    assert "Ab 16d 8Bd 8k 4→ resultb 16k 4" in words(einsum)


@pytest.mark.parametrize("pattern", [CHAIN, "a b, b c, c d, d e, e f -> a f"])
def test_bars_are_as_long_as_their_orders_are_expensive_from_the_cheapest_to_the_dearest(
    einsum, pattern
):
    einsum.set(pattern=pattern, sizes={"a": 9, "b": 2, "c": 8, "d": 3, "e": 7, "f": 4})
    orders = einsum.session.lab.read(einsum.values).orders
    shown = orders
    if len(orders) > MOST_BARS:
        shown = [*orders[: MOST_BARS - 1], orders[-1]]
    svg = einsum.screen.svg
    names = nodes(svg, "text", "code strong") + nodes(svg, "text", "code ")
    assert [name.text for name in names] == [order.text for order in shown]
    bars = nodes(svg, "rect", "predicted") + nodes(svg, "rect", "limit")
    widths = [float(bar.get("width")) for bar in bars]
    by_flops = [LONGEST * order.flops / orders[-1].flops for order in shown]
    assert widths == pytest.approx(by_flops, abs=2)
    assert f"{len(shown)} of {len(orders)} orders of multiplying in pairs" in words(einsum)


@st.composite
def small_patterns(draw):
    """Draw operands and a result as one would type them, with sizes."""
    operand = st.lists(st.sampled_from("abcd"), max_size=3, unique=True)
    operands = draw(st.lists(operand, min_size=2, max_size=4))
    names = sorted(set().union(*operands))
    result = []
    if names:
        result = draw(st.lists(st.sampled_from(names), unique=True))
    sizes = {name: draw(st.integers(1, 3)) for name in names}
    before_the_arrow = ", ".join(" ".join(operand) for operand in operands)
    return f"{before_the_arrow} -> {' '.join(result)}", sizes


@settings(max_examples=40)
@given(small_patterns(), st.sampled_from(["fp32", "bf16"]))
def test_torch_and_every_order_of_multiplying_agree(drawn, dtype):
    pattern, sizes = drawn
    LAB.set(pattern=pattern, sizes=sizes, dtype=dtype)
    assert LAB.session.error is None
    assert_all_can_be_read(LAB.screen.svg)
    asked = Asked(pattern=pattern, sizes=sizes)
    draw = torch.Generator().manual_seed(2)
    operands = [torch.randint(-4, 5, shape, generator=draw).double() for shape in asked.shapes[:-1]]
    expected = torch.einsum(asked.einsum.equation, *operands)
    for order in asked.orders:
        assert torch.equal(products.product_in_order(asked.einsum, order.tree, operands), expected)


@settings(max_examples=100)
@given(
    st.text(max_size=30) | st.text(alphabet="abAB ,->→.()_1é", max_size=30),
    st.text(max_size=8) | st.integers(-3, 2**21),
)
def test_any_text_gets_a_picture_or_a_sentence(pattern, size):
    LAB.set(pattern=pattern, sizes={"a": size})
    if LAB.session.error is None:
        return
    assert isinstance(LAB.session.error, ValueError)
    sentence = re.compile(r"In “.*▸.*◂.*”, at ▸◂: |a is a size: |\d+ (operands|names) ", re.DOTALL)
    assert sentence.match(LAB.screen.mistake)


def test_long_names_and_large_sizes_still_fit_the_picture(einsum):
    letters = string.ascii_letters * 2
    first = letters[:40]
    second = letters[:60]
    third = letters[:80]
    large = 2**20
    einsum.set(
        pattern=f"{first} {second} {third}, {first} -> {second}",
        sizes={first: large, second: large, third: large},
    )
    assert einsum.session.error is None
    assert_all_can_be_read(einsum.screen.svg)


# Timing.


def test_timing_measures_the_cheapest_and_the_dearest_order_and_remembers_both(einsum, monkeypatch):
    monkeypatch.setattr(jobs, "AT_MOST_S", 0.1)
    asked = sized(CHAIN, a=64, b=2, c=64, d=2) | {"dtype": "fp32"}
    einsum.set(**asked)
    report = re.compile(
        r"Measured: \(A \(B C\)\) [\d.]+ [mµ]?s, \(\(A C\) B\) [\d.]+ [mµ]?s, "
        r"[\d,.]+ times as long; by FLOPs it would be 48 times\."
        r"( Take it as an upper bound: .*)?"
    )
    assert report.fullmatch(run(einsum, "Time it"))
    assert words(einsum).count("· measured ") == 2
    assert "measured: " in words(einsum)
    for other in ({"dtype": "fp64"}, sized(CHAIN, a=64, b=2, c=64, d=4)):
        einsum.set(**asked | other)
        assert "measured" not in words(einsum)
    einsum.set(**asked)
    assert words(einsum).count("· measured ") == 2


def test_of_the_cheapest_orders_two_are_timed_beside_the_dearest(einsum, monkeypatch):
    monkeypatch.setattr(jobs, "AT_MOST_S", 0.05)
    einsum.set(**sized("i d, j d, j v -> i v", i=8, j=8, d=8, v=8))
    report = run(einsum, "Time it")
    assert re.findall(r"(\(\S+ .*?\)) [\d.]+ [mµ]?s", report) == [
        "((A B) C)",
        "(A (B C))",
        "((A C) B)",
    ]
    assert "by FLOPs it would be 6 times." in report
    einsum.set(**sized("a, a, a -> a", a=8))
    times = re.findall(r"\) [\d.]+ [mµ]?s", run(einsum, "Time it"))
    assert len(times) == 2  # all three orders take the same FLOPs


@pytest.mark.parametrize(
    ("pattern", "order", "rate"),
    [
        ("b d, d k -> b k", r"\(A B\)", r", [\d.]+ [kMGT]?FLOP/s"),
        ("b d -> b", "A", ""),
    ],
)
def test_a_product_of_two_and_a_sum_are_timed_with_their_rates(
    einsum, monkeypatch, pattern, order, rate
):
    monkeypatch.setattr(jobs, "AT_MOST_S", 0.05)
    monkeypatch.setattr("course_utils.subjects.child_processes.process.steps_of", steps_here)
    for quick_flops in (jobs.QUICK_FLOPS, -1):  # here, and as in a process of its own
        monkeypatch.setattr(jobs, "QUICK_FLOPS", quick_flops)
        einsum.set(pattern=pattern, sizes={}, dtype="bf16")
        time = r"[\d.]+ [mµ]?s"
        said = rf"Measured: {order} {time}\.( Take it as an upper bound: .*)?"
        assert re.fullmatch(said, run(einsum, "Time it"))
        assert re.search(rf"measured: {time}{rate}$", words(einsum))


@pytest.mark.parametrize(
    ("asked", "apart"),
    [
        (sized("b d, d k -> b k", b=256, d=128, k=256), False),  # 2^24 FLOPs
        (sized("b d, d k -> b k", b=256, d=129, k=256), True),
        (sized("a, b -> a b", a=511, b=511), False),  # all in all fewer than 2^18 numbers
        (sized("a, b -> a b", a=512, b=511), True),
    ],
)
def test_what_takes_longer_is_timed_in_a_process_and_ends_with_stop(
    einsum, monkeypatch, asked, apart
):
    def endless(**order):
        used.append(order["pattern"])
        yield products.MeasurementProgress(0, "The first call runs; nobody can tell how far it is.")
        einsum.stop()
        yield products.MeasurementProgress(0, "still the first call")
        raise AssertionError("nobody stopped it")

    used = []
    steps_of = "course_utils.subjects.child_processes.process.steps_of"
    if apart:
        monkeypatch.setattr(steps_of, lambda work, order: endless(**order))
    else:
        monkeypatch.setattr(products, "einsum_timing_steps", endless)
        monkeypatch.setattr(steps_of, None)  # whoever calls it fails
    einsum.set(**asked)
    assert run(einsum, "Time it") == "Stopped. still the first call"
    assert used == [asked["pattern"]]


@pytest.mark.parametrize(
    ("pattern", "size", "reason"),
    [
        ("a b, b c -> a c", 2**12, "it takes 137 GFLOPs, and this lab at most 34.4 GFLOPs here"),
        ("a, b -> a b", 2**15, "it may need .* and this lab takes at most"),
        ("a b c d e f g h -> a", 2**20, "it may need .* and this lab takes at most"),
        ("b d, d k -> b k", 8, "it may need 1,536 bytes .* at most 1,535 bytes"),
    ],
)
def test_what_is_too_large_is_not_timed_and_no_tensor_is_made(
    einsum, monkeypatch, pattern, size, reason
):
    # Whoever makes a tensor calls this, and fails.
    monkeypatch.setattr("course_utils.subjects.child_processes.products.einsum_call", None)
    if size == 8:  # operands may be held twice, of 64 numbers each
        monkeypatch.setattr("course_utils.core.measure.free_bytes", lambda device: 2 * 1536 - 2)
    einsum.set(pattern=pattern, sizes=dict.fromkeys("abcdefghk", size))
    assert einsum.screen.mistake == ""
    refusal = rf"^This is not timed: {reason}.*\. Take smaller sizes\.$"
    with pytest.raises(ValueError, match=refusal):
        run(einsum, "Time it")
    assert einsum.screen.report.startswith("This is not timed")


def test_an_order_that_is_too_dear_is_left_out_and_the_next_dearest_timed(einsum, monkeypatch):
    monkeypatch.setattr(jobs, "AT_MOST_S", 0.05)
    monkeypatch.setattr(jobs, "MOST_FLOPS", 70_000)
    einsum.set(**sized(CHAIN, a=64, b=4, c=64, d=4))  # 4,096, 65,536 and 196,608 FLOPs
    assert "by FLOPs it would be 16 times." in run(einsum, "Time it")
    assert "((A B) C)" in einsum.screen.report


# A size for each name.


def shown(lab):
    """The sizes that can be seen, by name."""
    parts = lab.session.parts["sizes"]
    return {part.label: part.value for part in parts if part.kind == "typed" and not part.hidden}


def moved(lab, place, to):
    """Move a part of the sizes as the reader does.

    Parts at even places are sliders, in powers of two; behind each stands its text field.
    """
    lab.session.move("sizes", place, to)


def test_sliders_come_and_go_with_the_names_and_values_are_remembered(einsum):
    einsum.set(pattern="b d, d k -> b k", sizes={"b": 16, "d": 8})
    assert shown(einsum) == {"b": "16", "d": "8", "k": f"{NEW_NAMES_SIZE}"}
    boxes = einsum.controls["sizes"].children[:3]
    for box, name in zip(boxes, "bdk", strict=True):
        slider, field = box.children
        assert slider.description == name
        assert field.tooltip == f"{name}, typed"
    einsum.set(pattern="k q -> k")
    slider, field = boxes[1].children
    slider.value = 32  # as dragged
    assert field.value == "32"
    einsum.set(pattern="q d -> q")
    assert shown(einsum) == {"q": "32", "d": "8"}
    assert "for q in range(32):" in words(einsum)
    einsum.set(pattern="b d, d k -> q")
    assert einsum.screen.mistake
    # The names of a pattern that cannot be read are not known, so the former ones stay.
    assert shown(einsum) == {"q": "32", "d": "8"}


def test_an_illegal_size_matters_only_while_its_name_is_in_the_pattern(einsum):
    einsum.set(pattern="i j -> j")
    moved(einsum, 1, "<b>4</b>")
    for _ in range(2):
        assert re.fullmatch("i is a size: .*“<b>4</b>” is none.", einsum.session.shown["mistake"])
        moved(einsum, 3, "9")  # another name meanwhile
    einsum.set(pattern="j ->")
    moved(einsum, 1, "9")
    assert einsum.session.shown["mistake"] == ""
    assert shown(einsum) == {"j": "9"}
    einsum.set(pattern="i j -> j")
    moved(einsum, 1, "5")
    assert einsum.session.shown["mistake"] == ""
    assert shown(einsum) == {"i": "5", "j": "9"}


NAMES = st.lists(st.sampled_from("abcde"), min_size=1, max_size=5, unique=True)
# The names of a pattern, and the size that its first name gets.
MOVE = st.tuples(NAMES, st.integers(1, 99))


@settings(max_examples=40)
@given(st.lists(MOVE, max_size=8))
def test_a_name_always_shows_the_size_that_it_was_given_last(moves):
    last_size = {}
    LAB.set(sizes={})
    for names, size in moves:
        LAB.set(pattern=f"{' '.join(names)} ->")
        assert shown(LAB) == {name: last_size.get(name, str(NEW_NAMES_SIZE)) for name in names}
        moved(LAB, 1, str(size))
        last_size[names[0]] = str(size)
