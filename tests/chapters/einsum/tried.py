"""Answers to the exercises of notebook 03."""

from einops import rearrange

from course_utils.chapters.einsum import check
from course_utils.core.accountant import matrices
from tests.engine.tried import Check, Tried

PATTERNS = {
    "sum": "a b c->a",
    "transpose": "a b c->a c b",
    "dot": "z,z->",
    "outer": "p,q->p q",
    "scores": "b h i d,b h j d->b h i j",
    "mix": "x y i j, x y j k -> x y i k",
}


def matrices_as_lists(m):
    return {name: list(shape) for name, shape in matrices(m).items()}


TRIED: dict[Check, Tried] = {
    check.matrices: Tried(right=(matrices_as_lists,)),
    check.columns_of_head: Tried(
        right=(
            lambda x, head, heads: x.chunk(heads, dim=-1)[head],
            lambda x, head, heads: x.unflatten(-1, (heads, -1))[..., head, :],
        ),
        wrong=(
            (lambda x, head, heads: x[head], "expected a tensor of shape (2, 4, 3)"),
            (lambda x, head, heads: x[..., head * x.shape[-1] / heads], "stopped"),
            (lambda x, head, heads: x.split(heads, dim=-1)[head], "as many as there are heads"),
            (
                lambda x, head, heads: x.view(*x.shape[:-1], heads, -1)[..., head, :],
                "but a view is what your slices will judge",
            ),
            (
                lambda x, head, heads: x.reshape(*x.shape[:-1], heads, -1)[..., head, :],
                "Slice the width: x[..., begin:end]",
            ),
            (
                lambda x, head, heads: rearrange(x, "... (h d) -> h ... d", h=heads)[head],
                "but a pattern is what your slices will judge",
            ),
            (lambda x, head, heads: x.chunk(heads, dim=-1)[head].tolist(), "A tensor is wanted."),
        ),
    ),
    check.patterns: Tried(
        right=(PATTERNS, PATTERNS | {"dot": "n,n->", "sum": "b x y->b"}),
        wrong=(
            (
                PATTERNS | {"sum": "b i d -> b i"},
                "sum: 'b i d -> b i' is another product. A name that is kept",
            ),
            (PATTERNS | {"sum": "b i d ->"}, "A dimension that the result lacks is summed: keep b"),
            (PATTERNS | {"sum": "b i i -> b"}, "Two dimensions need two names"),
            (PATTERNS | {"sum": "b i -> b"}, "'b i -> b' should name this many dimensions: 3."),
            (PATTERNS | {"transpose": "b i d -> b i d"}, "The result's order is b d i"),
            (PATTERNS | {"transpose": "b i d -> d i b"}, "The result's order is b d i"),
            (PATTERNS | {"dot": "i, j ->"}, "the same dimension on both sides of the comma"),
            (PATTERNS | {"dot": "i, i -> i"}, "leave i out of the result"),
            (
                PATTERNS | {"outer": "i, i -> i"},
                "Row and column are two dimensions, and you call both i",
            ),
            (
                PATTERNS | {"outer": "i, j -> j i"},
                "'i, j -> j i' is that product in another order. The result's order is i j.",
            ),
            (PATTERNS | {"outer": "i, j ->"}, "keep i"),
            (
                PATTERNS | {"scores": "b h i d, b h i d -> b h i"},
                "Query and key are two dimensions",
            ),
            (
                PATTERNS | {"scores": "b h i d, b g j d -> b h i j"},
                "The head is the same dimension",
            ),
            (
                PATTERNS | {"scores": "b h i d, c h j d -> b h i j"},
                "The batch is the same dimension",
            ),
            (PATTERNS | {"scores": "b h i d, b h d j -> b h i j"}, "D and key are two dimensions"),
            (PATTERNS | {"scores": "b h i d, b h j e -> b h i j"}, "The d is the same dimension"),
            (
                PATTERNS | {"scores": "b h q d, b h k d -> b h k q"},
                "is that product in another order. The result's order is b h q k.",
            ),
            (
                PATTERNS | {"scores": "b h q d, b h k d -> b h q"},
                "is another product. A dimension that the result lacks is summed: keep k.",
            ),
            (PATTERNS | {"scores": "b h i d, b h j d -> b i j"}, "keep h"),
            (PATTERNS | {"scores": "b h i d, b h j d -> b h i j d"}, "leave d out"),
            (PATTERNS | {"scores": "bhid,bhjd->bhij"}, "Put spaces between the names"),
            (PATTERNS | {"scores": "b h i d, b h j d"}, "the -> is missing"),
            (PATTERNS | {"scores": "b h i d, b h j d → b h i j"}, "an arrow is written ->"),
            (PATTERNS | {"scores": "... i d, ... j d -> ... i j"}, "..."),
            (PATTERNS | {"scores": "__import__('os')"}, "the -> is missing"),
            (PATTERNS | {"mix": "b h i j, b h j d -> b h d i"}, "The result's order is b h i d"),
            (PATTERNS | {"mix": "b h i j, b h i d -> b h j d"}, "Query and key are two dimensions"),
            (PATTERNS | {"mix": 3}, "mix: a pattern is a string"),
            (PATTERNS | {"mix": ...}, "What you wrote is right. Still open: mix."),
            (
                dict.fromkeys(PATTERNS, ...) | {"dot": "i, i ->"},
                "Still open: sum, transpose, outer, scores and mix.",
            ),
            (dict.fromkeys(PATTERNS, ...) | {"mix": "i, i ->"}, "mix: left of the arrow"),
            ({"sum": "b i d -> b"}, "with the names sum, transpose, dot"),
            (PATTERNS | {"trace": "i i ->"}, "and no others"),
        ),
    ),
}
