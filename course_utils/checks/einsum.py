"""The exercises of notebook 03."""

import re
from collections.abc import Callable

import jaxtyping
import torch
from beartype import beartype
from einops import rearrange

from course_utils import einsums, predict
from course_utils.checks.agreement import near
from course_utils.checks.sentences import advice_on_kind, name_of, shown, stopped
from course_utils.checks.verdict import NOT_ATTEMPTED, Verdict, call, judge_function, judge_value, no_function


def similarities(answer: object) -> Verdict:
    """A pattern for the dot product of every token with every token of the same sequence."""
    if answer is ...:
        return NOT_ATTEMPTED
    if not isinstance(answer, str):
        return Verdict("not yet", f"A pattern is a string, like 'b d, d k -> b k'; {shown(answer)} is none.")
    two_tokens = "Tokens of x and tokens of y need two different names, since there may be more of the one."
    try:
        einsum = einsums.parsed(answer)
    except ValueError as error:
        advice = two_tokens if "twice" in str(error) else ""
        words = re.sub(r"If every letter.*", "Put spaces between the names, as in 'b d, d k'.", str(error))
        return Verdict("not yet", f"{words} {advice}".strip())
    if [len(names) for names in einsum.operands] != [3, 3]:
        return Verdict("not yet", "x and y have three dimensions each: batch, token, width.")
    (b1, i, d1), (b2, j, d2) = einsum.operands
    mistakes = (
        (i == j, two_tokens),
        (b1 != b2, "Each sequence is on its own: the batch has the same name in both."),
        (d1 != d2, "The width is what is summed: it has the same name in both."),
        (d1 in einsum.output, "A name that is kept is not summed: leave the width out of the result."),
        (b1 not in einsum.output, "Each sequence is on its own: keep the batch."),
        (not {i, j} <= set(einsum.output), "Keep both tokens: a number for each pair."),
        (True, "In the result the batch comes first, then the tokens of x, then those of y."),
    )
    x, y = torch.arange(24.0).view(2, 3, 4), torch.arange(40.0).view(2, 5, 4).cos()
    expected = torch.stack([a @ b.T for a, b in zip(x, y, strict=True)])
    came, error = call(torch.einsum, einsum.equation, x, y)
    if error or not near(came, expected, 1e-5):
        advice = next(words for mistaken, words in mistakes if mistaken)
        return Verdict("not yet", f"{shown(answer)} is another product. {advice}")
    return Verdict(
        "right", "Against one product after the other, with sequences of 3 and 5 tokens of width 4."
    )


def low_rank_flops(answer: object) -> Verdict:
    """FLOPs of x A B for 4,096 tokens of width 1,024 through a rank of 8, in the cheapest order."""
    tokens, width, rank = 4096, 1024, 8
    through, full = predict.matmul_flops(tokens, width, rank), predict.matmul_flops(tokens, width, width)
    expected = predict.einsum_flops("n h, h r, r k -> n k", n=tokens, h=width, r=rank, k=width)
    return judge_value(
        answer,
        expected,
        wanted="the FLOPs of the whole einsum, in its cheapest order",
        tempting={
            full
            + predict.matmul_flops(
                width, rank, width
            ): "That multiplies A B first, and then has a full matrix. Go through the narrow place.",
            through: "That is the way in alone, or both ways with the multiplications alone: each comes with an addition, 2 FLOPs.",
            full: "That is one full matrix, which is what the two narrow ones are there to avoid.",
            2
            * tokens
            * width
            * rank
            * width: "That is the loops of all four dimensions, with nothing kept in between.",
        },
        because="(x A) B: 2 × 4096 × 1024 × 8, in and out. One full matrix would be 64 times as much.",
    )


def patches(answer: object) -> Verdict:
    """A rearrange pattern from images to patches, as a vision transformer wants them."""
    if answer is ...:
        return NOT_ATTEMPTED
    if not isinstance(answer, str):
        return Verdict(
            "not yet", f"A pattern is a string, like 'b s (h d) -> b h s d'; {shown(answer)} is none."
        )
    images = torch.arange(2 * 4 * 6 * 3).view(2, 4, 6, 3)
    expected = torch.stack(
        [
            torch.stack([image[r : r + 2, c : c + 3].flatten() for r in (0, 2) for c in (0, 3)])
            for image in images
        ]
    )
    if "->" not in answer:
        return Verdict(
            "not yet", f"{shown(answer)} has no arrow: a pattern says what there is -> what there shall be."
        )
    try:
        came = rearrange(images, answer, p=2, q=3)
    except (
        Exception
    ) as error:  # einops has its own for what it can read, and lets pass what it meets otherwise
        said = [line.strip() for line in str(error).splitlines() if line.strip()]
        return Verdict(
            "not yet", f"einops says: {said[-1].rstrip('.')}." if said else "einops cannot read it."
        )
    if came.shape != expected.shape:
        said = f"The result has shape {tuple(came.shape)}, expected {tuple(expected.shape)}."
        return Verdict("not yet", f"{said} A patch has 2 × 3 pixels of 3 channels, an image 2 × 2 patches.")
    if not torch.equal(came, expected):
        swapped = torch.equal(came, rearrange(images, "b (p r) (q c) ch -> b (r c) (p q ch)", p=2, q=3))
        advice = (
            "In (rows p) the patch is the fast part: neighbouring pixels belong to one patch. You have it the other way round."
            if swapped
            else "Row by row: first the patches of the first row, and in a patch its pixels row by row, channels last."
        )
        return Verdict("not yet", f"The shape is right, the numbers are not. {advice}")
    return Verdict("right", "Two images of 4 × 6 pixels, against patches cut out one by one.")


def grouped_attention(answer: object) -> Verdict:
    """Scores of grouped queries: several heads share one head of keys."""

    def oracle(q: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
        batch, heads, queries, _ = q.shape
        group = heads // k.shape[1]
        scores = torch.zeros(batch, heads, queries, k.shape[2])
        for b in range(batch):
            for h in range(heads):
                scores[b, h] = q[b, h] @ k[b, h // group].T
        return scores

    def interleaved(q: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
        return q @ k.repeat(1, q.shape[1] // k.shape[1], 1, 1).mT

    def first_head(q: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
        return q @ k[:, :1].mT

    def scaled(q: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
        return oracle(q, k) / q.shape[-1] ** 0.5

    def merged_the_other_way(q: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
        return rearrange(oracle(q, k), "b (kv g) i j -> b (g kv) i j", kv=k.shape[1])

    def same_name_for_both(q: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
        return torch.einsum("bhid,bhjd->bhij", q, k)

    def softmaxed(q: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
        return oracle(q, k).softmax(-1)

    def keys_first(q: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
        return oracle(q, k).mT

    def in_groups(q: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
        return rearrange(oracle(q, k), "b (kv g) i j -> b kv g i j", kv=k.shape[1])

    draw = torch.Generator().manual_seed(3)
    cases = [
        (torch.randn(b, heads, i, d, generator=draw), torch.randn(b, kv, j, d, generator=draw))
        for b, heads, kv, i, j, d in (
            (2, 4, 4, 3, 5, 6),
            (2, 4, 2, 3, 5, 6),
            (1, 6, 2, 4, 4, 8),
            (2, 8, 1, 3, 2, 4),
        )
    ]
    return judge_function(
        answer,
        oracle,
        cases,
        tolerance=1e-5,
        tempting={
            interleaved: "Heads that share stand next to each other: heads 0 and 1 use the first keys, not 0 and 2. "
            "In (kv group) the group is the fast part.",
            first_head: "Every group has keys of its own.",
            scaled: "The scores before scaling, please.",
            merged_the_other_way: "Merge in the order in which you split: (kv group) both times.",
            same_name_for_both: "That needs as many heads of keys as of queries. Split the heads into groups first.",
            softmaxed: "The scores themselves, before any softmax.",
            keys_first: "Queries come first, then keys: a row for each query.",
            in_groups: "Merge the groups back into heads.",
            lambda q, k: (
                q @ k.mT
            ): "That needs as many heads of keys as of queries. Split the heads into groups first.",
        },
        because="Four cases, from a head of keys for each head to one for all, against a loop over heads.",
    )


def guarded(answer: object) -> Verdict:
    """A function whose annotations refuse what a bare product lets pass."""
    if not callable(answer):
        return no_function(answer)
    q, k = torch.randn(2, 3, 4), torch.randn(2, 5, 4)
    for good_q, good_k in ((q, k), (torch.randn(3, 2, 6), torch.randn(3, 7, 6))):
        came, error = call(answer, good_q, good_k)
        if came is ...:
            return NOT_ATTEMPTED
        shapes = f"Shapes {tuple(good_q.shape)} and {tuple(good_k.shape)}"
        if isinstance(error, jaxtyping.TypeCheckError):
            words = "they were refused. Queries and keys may differ in number, and every size may change: name each."
            if "return value" in str(error):
                words = "it refused its own result, which has a row for each query and a column for each key."
            return Verdict("not yet", f"{shapes} are fine, but {words}")
        if error:
            return Verdict("not yet", f"{shapes}: {name_of(answer)} {stopped(answer, error)}")
        if not near(came, good_q @ good_k.mT, 1e-5):
            advice = advice_on_kind(came, good_q)
            return Verdict("not yet", f"{shapes}: the result should be q @ k.mT. {advice}".strip())
    if not hasattr(answer, "__wrapped__"):
        return Verdict(
            "not yet",
            "Nothing reads the annotations: keep the line @jaxtyped(typechecker=beartype) above it.",
        )
    if not answer.__annotations__:
        return Verdict(
            "not yet", "Nothing is annotated yet. Name the dimensions, as in x: Float[Tensor, 'rows width']."
        )
    wrong = {
        "a batch of batches": (
            (q[None], k[None]),
            "Name the dimensions one by one; ... lets any number pass.",
        ),
        "keys for one sequence, which a product would give to both": (
            (q, k[:1]),
            "Both begin with the same batch.",
        ),
        "keys of another width": ((q, k[..., :3]), "The width has the same name in both."),
        "no batch at all": ((q[0], k[0]), "Name all three dimensions."),
        "integers": ((q.long(), k.long()), "Float[...] says that the numbers are floats."),
    }
    for what, (arguments, advice) in wrong.items():
        if not _refused(answer, *arguments):
            return Verdict("not yet", f"It should refuse {what}, by its annotations. {advice}")
    if not _refused(_with_transposed_result(answer), q, k):
        return Verdict("not yet", "Annotate the result too, with three names that stand in q and k.")
    return Verdict("right", "It takes what is right and refuses six things that are not.")


def _refused(function: Callable[..., object], *arguments: object) -> bool:
    try:
        function(*arguments)
    except jaxtyping.TypeCheckError:
        return True
    except Exception:  # torch's own complaint comes too late: the call has begun
        return False
    return False


def _with_transposed_result(function: Callable[..., object]) -> Callable[..., object]:
    """The same annotations around a body that returns the transpose."""
    given = dict(getattr(function, "__annotations__", {}))
    names = [name for name in given if name != "return"][:2]
    if len(names) < 2 or "return" not in given:
        return lambda q, k: k @ q.mT
    return _annotated(
        lambda q, k: k @ q.mT, {"q": given[names[0]], "k": given[names[1]], "return": given["return"]}
    )


def _annotated(function: Callable[..., object], annotations: dict[str, object]) -> Callable[..., object]:
    function.__annotations__ = annotations
    function.__name__ = "scores"  # jaxtyping cannot wrap what is called <lambda>
    return jaxtyping.jaxtyped(typechecker=beartype)(function)
