"""Answers to the exercises of notebook 03."""

import torch
from beartype import beartype
from jaxtyping import Float, Shaped, jaxtyped

from course_utils.checks import einsum as check
from tests.tried import Check, Tried


def grouped(q, k):
    return q @ k.repeat_interleave(q.shape[1] // k.shape[1], 1).mT


def annotated(first, second, result=None, *, kind=Float, product=lambda q, k: q @ k.mT, decorated=True):
    """Such a product behind such annotations."""

    def scores(q, k):
        return product(q, k)

    scores.__annotations__ = {"q": kind[torch.Tensor, first], "k": kind[torch.Tensor, second]}
    if result:
        scores.__annotations__["return"] = kind[torch.Tensor, result]
    return jaxtyped(typechecker=beartype)(scores) if decorated else scores


def transposed(q, k):
    return k @ q.mT


TRIED: dict[Check, Tried] = {
    check.similarities: Tried(
        right=("x  y z ,x t z->x y t", "b i d, b j d -> b i j"),
        wrong=(
            ("b s w, b s w -> b s s", "two different names"),
            ("b s w, b s w -> b s", "two different names"),
            ("b i w, b j w -> b i", "Keep both tokens"),
            ("b i w, b j w -> b j i", "then the tokens of x"),
            ("b i w, b j w -> i j", "keep the batch"),
            ("b i w, c j w -> b c i j", "the batch has the same name in both"),
            ("b i w, c j w -> b i j", "the batch has the same name in both"),
            ("b i w, b j v -> b i j", "it has the same name in both"),
            ("b i w, b j w -> b i w j", "leave the width out"),
            ("bid,bjd->bij", "Put spaces between the names"),
            ("b i w, b w j -> b i j", "the same name in both"),
            ("b i w -> b i", "three dimensions each"),
            ("b i w, b j w", "the -> is missing"),
            ("__import__('os')", "the -> is missing"),
        ),
    ),
    check.patches: Tried(
        right=("n (a p) (b q) c -> n (a b) (p q c)", "b (r p) (s q) c->b (r s) (p q c)"),
        wrong=(
            ("b (p r) (q c) ch -> b (r c) (p q ch)", "You have it the other way round"),
            ("b (r p) (c q) ch -> b (c r) (p q ch)", "first the patches of the first row"),
            ("b (r p) (c q) ch -> b (r c) (ch p q)", "channels last"),
            ("b (r p) (c q) ch -> b r c (p q ch)", "an image 2 × 2 patches"),
            ("b (r p) (c p) ch -> b (r c) (p p ch)", "einops says"),
            ("b (r 2) (c 3) ch -> b (r c) (2 3 ch)", "einops says"),
            ("b (h q) (w p) c -> b (h w) (q p c)", "einops says"),
            ("b r c ch", "has no arrow"),
            ("", "has no arrow"),
        ),
    ),
    check.grouped_attention: Tried(
        right=(
            grouped,
            lambda q, k: (q.unflatten(1, (k.shape[1], -1)) @ k[:, :, None].mT).flatten(1, 2),
        ),
        wrong=(
            (lambda q, k: grouped(q, k) * torch.nan, "NaN among its numbers"),
            (lambda q, k: grouped(q, k) > 0, "torch.bool; expected torch.float32"),
        ),
    ),
    check.guarded: Tried(
        right=(annotated("b i d", "b j d", "b i j"), annotated("b q w", "b k w", "b q k")),
        wrong=(
            (annotated("b i d", "b j d", "b i j", decorated=False), "@jaxtyped"),
            (annotated("... i d", "... j d", "... i j"), "one by one"),
            (annotated("b i d", "c j d", "b i j"), "the same batch"),
            (annotated("b i d", "b j e", "b i j"), "The width has the same name"),
            (annotated("2 3 4", "2 5 4", "2 3 5"), "every size may change"),
            (annotated("b i d", "b j d", "b i j", kind=Shaped), "the numbers are floats"),
            (annotated("b i d", "b i d", "b i i"), "may differ in number"),
            (annotated("b i d", "b j d", "b j i"), "refused its own result"),
            (annotated("b i d", "b j d", "b j i", product=transposed), "should be q @ k.mT"),
            (annotated("b i d", "b j d"), "Annotate the result"),
            (annotated("b i d", "b j d", "x y z"), "Annotate the result"),
            (lambda q, k: q @ k, "RuntimeError"),
        ),
    ),
}
