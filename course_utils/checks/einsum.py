"""The exercises of notebook 03."""

from collections.abc import Callable

import torch
from einops import rearrange

from course_utils import einsums, predict
from course_utils.checks.verdict import NOT_ATTEMPTED, Verdict, call, judge_function, judge_value, near


def similarities(answer: object) -> Verdict:
    """A pattern for the product of every token with every token of the same sequence."""
    advice = {
        "b s s": "Two different tokens need two different names: one for x, another for y.",
        "b i": "The result has a number for each pair of tokens: keep both names.",
        "b j i": "The first of the two token dimensions of the result belongs to x.",
        "i j": "Each sequence is on its own: keep the batch.",
        "b c i j": "The two operands have the same batch: give it the same name in both.",
    }
    if answer is ...:
        return NOT_ATTEMPTED
    if not isinstance(answer, str):
        return Verdict("not yet", f"A pattern is a string, like 'b d, d k -> b k'; {answer!r} is none.")
    try:
        einsum = einsums.parsed(answer)
        sides = [len(names) for names in einsum.operands]
        if sides != [3, 3]:
            raise ValueError("x and y have three dimensions each: batch, token, width.")
    except ValueError as error:
        twice = advice["b s s"] if "twice" in str(error) else ""
        return Verdict("not yet", f"{error} {twice}".strip())
    x, y = torch.arange(24.0).view(2, 3, 4), torch.arange(40.0).view(2, 5, 4).cos()
    expected = torch.stack([a @ b.T for a, b in zip(x, y, strict=True)])
    came, stumble = call(torch.einsum, einsum.equation, x, y)
    if stumble:
        return Verdict("not yet", f"On shapes (2, 3, 4) and (2, 5, 4) it {stumble} {advice['b s s']}")
    if came.shape != expected.shape:
        found = {(2, 3): "b i", (2, 5, 3): "b j i", (3, 5): "i j", (2, 2, 3, 5): "b c i j"}.get(
            tuple(came.shape)
        )
        said = f"The result has shape {tuple(came.shape)}, expected (2, 3, 5)."
        return Verdict("not yet", f"{said} {advice.get(found, '')}".strip())
    if not torch.allclose(came, expected):
        return Verdict(
            "not yet", "The shape is right, the numbers are not: the width has to have the same name twice."
        )
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
        return Verdict("not yet", f"A pattern is a string, like 'b s (h d) -> b h s d'; {answer!r} is none.")
    images = torch.arange(2 * 4 * 6 * 3).view(2, 4, 6, 3)
    expected = torch.stack(
        [
            torch.stack([image[r : r + 2, c : c + 2].flatten() for r in (0, 2) for c in (0, 2, 4)])
            for image in images
        ]
    )
    try:
        came = rearrange(images, answer, p=2, q=2)
    except (
        Exception
    ) as error:  # einops has its own for what it can read, and lets pass what it meets otherwise
        return Verdict("not yet", f"einops says: {' '.join(str(error).split())}")
    if came.shape != expected.shape:
        said = f"The result has shape {tuple(came.shape)}, expected {tuple(expected.shape)}."
        return Verdict("not yet", f"{said} A patch has 2 × 2 pixels of 3 channels, an image 2 × 3 patches.")
    if not torch.equal(came, expected):
        swapped = torch.equal(came, rearrange(images, "b (p r) (q c) ch -> b (r c) (p q ch)", p=2, q=2))
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
            in_groups: "Merge the groups back into heads.",
            lambda q, k: (
                q @ k.mT
            ): "That needs as many heads of keys as of queries. Split the heads into groups first.",
        },
        because="Four cases, from a head of keys for each head to one for all, against a loop over heads.",
    )


def guarded(answer: object) -> Verdict:
    """A function whose annotations refuse what a bare product lets pass."""
    if answer is ...:
        return NOT_ATTEMPTED
    if not callable(answer):
        return Verdict("not yet", f"A function is wanted here, not {answer!r}.")
    q, k = torch.randn(2, 3, 4), torch.randn(2, 5, 4)
    came, stumble = call(answer, q, k)
    if came is ...:
        return NOT_ATTEMPTED
    if stumble:
        return Verdict(
            "not yet", f"Shapes (2, 3, 4) and (2, 5, 4) are fine, but it {stumble.splitlines()[0]}"
        )
    if not near(came, q @ k.mT, 1e-5):
        return Verdict(
            "not yet",
            "On shapes (2, 3, 4) and (2, 5, 4) the result should be q @ k.mT. Leave the body as it is.",
        )
    wrong: list[tuple[str, Callable[[], object], str]] = [
        (
            "keys for one sequence, which a product would give to both",
            lambda: answer(q, k[:1]),
            "Both begin with the same batch.",
        ),
        ("no batch at all", lambda: answer(q[0], k[0]), "Name all three dimensions."),
        (
            "a batch of batches",
            lambda: answer(q[None], k[None]),
            "Name the dimensions one by one; ... lets any number pass.",
        ),
        ("integers", lambda: answer(q.long(), k.long()), "Float[...] says that the numbers are floats."),
    ]
    for what, attempt, advice in wrong:
        try:
            attempt()
        except Exception as error:
            if type(error).__name__ == "TypeCheckError":
                continue
        return Verdict("not yet", f"It should refuse {what}, by its annotations. {advice}")
    return Verdict("right", "It takes what is right and refuses four things that are not.")
