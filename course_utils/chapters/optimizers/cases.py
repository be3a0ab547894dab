"""The cases of notebook 6's exercises, and how a verdict names them."""

from collections.abc import Collection, Mapping

import torch

from course_utils.chapters.optimizers.state_in_words import Recipe
from course_utils.core import measure
from course_utils.core.accountant import recipe as recipe_of
from course_utils.core.say import Number, number_text
from course_utils.core.say.language import translated


def momentum_states() -> list[tuple]:
    """Return the cases of `momentum`: a middle step, a first one, and one without a gradient."""

    def tensors(*scales: Number, seed: int) -> list[torch.Tensor]:
        draw = torch.Generator().manual_seed(seed)
        return [scale * torch.randn(4, generator=draw, dtype=torch.float64) for scale in scales]

    # A case is (p, g, buffer, lr, mu). The scales are those of p, g and buffer: before a first step
    # the buffer is 0, and without a gradient g is 0.
    return [
        (*tensors(1, 1, 1, seed=1), 0.1, 0.9),
        (*tensors(1, 1, 0, seed=2), 0.5, 0.8),
        (*tensors(1, 0, 1, seed=3), 0.1, 0.5),
    ]


def momentum_in_words(
    p: torch.Tensor, _g: torch.Tensor, _buffer: torch.Tensor, lr: Number, mu: Number
) -> str:
    """Return the case in words, such as "For 4 parameters, with lr 0.1 and μ 0.9"."""
    return translated(
        "For {count} parameters, with lr {lr} and μ {mu}",
        count=p.numel(),
        lr=number_text(lr),
        mu=number_text(mu),
    )


def adamw_states() -> list[tuple]:
    """Return the cases of `adamw_step`.

    They are a step with decay, a first and a later one without, one with a tiny gradient, and one
    with decay alone.
    """
    draw = torch.Generator().manual_seed(6)

    def numbers(scale: Number = 1.0) -> torch.Tensor:
        return scale * torch.randn(4, generator=draw, dtype=torch.float64)

    zero = torch.zeros(4, dtype=torch.float64)
    # A case is (p, g, m, v, t, lr, decay); v averages squares, so it is never below 0.
    return [
        (numbers(), numbers(), numbers(), numbers() ** 2, 3, 0.1, 0.5),
        (numbers(), numbers(), zero, zero, 1, 0.1, 0.0),
        (numbers(), numbers(), numbers(), numbers() ** 2, 7, 0.1, 0.0),
        (numbers(), numbers(1e-7), zero, zero, 1, 0.1, 0.0),
        (numbers(), zero, zero, zero, 1, 0.1, 0.5),
    ]


def adamw_in_words(
    p: torch.Tensor,
    _g: torch.Tensor,
    _m: torch.Tensor,
    _v: torch.Tensor,
    t: int,
    lr: Number,
    decay: Number,
) -> str:
    """Return the case in words, such as "For 4 parameters at t = 3, with lr 0.1 and decay 0.5"."""
    return translated(
        "For {count} parameters at t = {t}, with lr {lr} and decay {decay}",
        count=p.numel(),
        t=t,
        lr=number_text(lr),
        decay=number_text(decay),
    )


# AdaGrad, in *Beyond*.

P = torch.tensor([1.0, -2.0, 0.5, 3.0], dtype=torch.float64)  # a parameter of four numbers
G = torch.tensor([0.4, 1.5, -0.7, -2.5], dtype=torch.float64)  # its gradient
SQUARES = torch.tensor([1.3, 0.6, 2.1, 0.9], dtype=torch.float64)  # v after earlier steps
NOTHING = torch.zeros(4, dtype=torch.float64)  # v before a first step, or a gradient of 0
ADAGRAD_STATES = [  # p, g, v, lr: a later step, a first one, a tiny gradient, and none at all
    (P, G, SQUARES, 0.1),
    (P, 100 * G, NOTHING, 0.5),
    (P, 1e-8 * G, NOTHING, 0.1),
    (P, NOTHING, NOTHING, 0.1),
]

# The accountant's term.

STATES = [  # numbers, recipe, GPUs, stage
    # Six GPUs, because an eighth is a bit's share of a byte. In stage 2 some parts are whole.
    (1003, recipe_of("bf16+master adamw"), 6, 2),
    (1003, recipe_of("bf16+master adamw"), 6, 3),
    (1003, recipe_of("bf16+master adamw"), 6, 1),
    (1003, recipe_of("bf16+master adamw"), 6, 0),
    (1000, recipe_of("fp32 adamw"), 1, 0),
    (70_553_706_496, recipe_of("bf16 sgd"), 1024, 3),
    # A recipe may lack a part. torch's own optimizers keep no master, and inference needs
    # neither gradients nor an optimizer.
    (
        64**2,
        {"gradients": ("fp32",), "parameters": ("fp32",), "optimizer": ("fp32", "fp32")},
        1,
        0,
    ),
    (1003, {"parameters": ("bf16",)}, 8, 3),
]


def held_bytes(
    numbers: int, recipe: Recipe, share: Number, sharded: Collection[str]
) -> dict[str, Number]:
    """Return the bytes of each part of the recipe on a GPU.

    Of each part in `sharded`, the GPU holds `share` numbers; of every other part, all `numbers`.
    """
    held = {}
    for part, dtypes in recipe.items():
        bytes_each = sum(measure.DTYPES[dtype].itemsize for dtype in dtypes)
        held[part] = bytes_each * (share if part in sharded else numbers)
    return held


def with_one_dtype_each(held: Mapping[str, int], recipe: Recipe) -> dict[str, int]:
    """Return a wrong answer: the bytes in `held` if one dtype of each part is counted.

    Of Adam's m and v, for example, it has one. All dtypes of a part have the same size, so dividing
    by their count leaves one of them.
    """
    counted = {}
    for part, nbytes in held.items():
        dtype_count = max(len(recipe[part]), 1)  # SGD keeps no number, so its part has no dtype
        counted[part] = nbytes // dtype_count
    return counted
