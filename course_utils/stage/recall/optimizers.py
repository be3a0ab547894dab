"""Questions of notebook 6: what training keeps for every parameter, and how far a step goes."""

import math

from course_utils.core import accountant, predict
from course_utils.core.say import in_words, number_text
from course_utils.stage.recall.question import Asked, Mistake, Question

OPTIMIZERS = {"sgd": "SGD", "momentum": "SGD with momentum", "adamw": "AdamW"}
NUMBERS = {"sgd": "none", "momentum": "one", "adamw": "two"}  # that it keeps for each parameter
SHARDS = {
    1: "the optimizer's states and the master copy",
    2: "the optimizer's states, the master copy and the gradients",
    3: "everything",
}


def _largest(gpus: int, memory: int, optimizer: str) -> Asked:
    recipe = accountant.recipe(f"fp32 {optimizer}")
    each = sum(accountant.state_bytes(1, recipe, 1, 0).values())
    billions = gpus * memory / each
    name = OPTIMIZERS[optimizer]
    return Asked(
        f"{gpus} GPUs have {memory} GB each, and share all of the state evenly. How many billion "
        f"parameters can they train with {name} in fp32, if nothing else takes memory?",
        answer=billions,
        unit="billions of parameters",
        derivation=f"{name} takes {each} bytes for each parameter: 4 for the weight, 4 for its "
        f"gradient, and {each - 8} that the optimizer keeps. {gpus} × {memory} GB / {each} = "
        f"{in_words(billions, 'billions of parameters')}.",
        mistakes=(
            Mistake(gpus * memory / 4, "Besides the weights there are their gradients, at least."),
            Mistake(
                gpus * memory / (each + 4),
                f"The optimizer's own numbers are fewer: {NUMBERS[optimizer]} for each parameter.",
            ),
            Mistake(
                gpus * memory / (each - 4),
                "A number of 4 bytes is missing: there are a weight, its gradient, and "
                f"{NUMBERS[optimizer]} of the optimizer's.",
            ),
        ),
    )


def _zero(billions: int, gpus: int, stage: int) -> Asked:
    recipe = accountant.recipe("bf16+master adamw")
    parts = accountant.state_bytes(billions * 10**9, recipe, gpus, stage)
    gigabytes = sum(parts.values()) / 1e9
    whole = 16 - sum(
        sum(accountant.BYTES[dtype] for dtype in dtypes)
        for part, dtypes in recipe.items()
        if stage >= accountant.SHARDED_FROM[part]
    )
    return Asked(
        f"{billions} billion parameters are trained with AdamW on {gpus} GPUs. Weights and "
        "gradients are in bf16, a master copy and the optimizer's states in fp32. How many GB of "
        f"state does a GPU hold under ZeRO stage {stage}?",
        answer=gigabytes,
        unit="GB",
        derivation=f"Stage {stage} shards {SHARDS[stage]}. For each parameter, {whole} "
        f"bytes stay whole, and {16 - whole} are split over {gpus} GPUs: {billions} × ({whole} + "
        f"{16 - whole}/{gpus}) = {in_words(gigabytes, 'GB')}.",
        mistakes=(
            Mistake(16 * billions / gpus, "That is stage 3, which shards everything."),
            Mistake(16 * billions, "That is without any sharding."),
            Mistake(
                4 * billions + 12 * billions / gpus,
                "That is stage 1. From stage 2 on, the gradients are sharded, too.",
            ),
        ),
    )


def _momentum(hundredths: int, lr: float, gradient: float) -> Asked:
    mu = hundredths / 100
    step = lr * gradient / (1 - mu)
    return Asked(
        f"Momentum with μ = {mu:g} walks down a slope whose gradient is always {gradient:g}, with "
        f"lr = {lr:g}. How long do its steps become?",
        answer=step,
        derivation=f"The buffer grows to g / (1 - μ). So a step becomes {lr:g} × {gradient:g} / "
        f"{1 - mu:.2g} = {number_text(step)}.",
        mistakes=(
            Mistake(lr * gradient, "That is SGD's step, and momentum's first."),
            Mistake(
                lr * gradient / mu,
                "What is added up is 1 + μ + μ² and so on, which is 1 / (1 - μ).",
            ),
            Mistake(
                lr * gradient * (1 + mu), "Those are two steps. The buffer keeps older ones, too."
            ),
        ),
    )


def _diverges(curvature: int, flat: float) -> Asked:
    lr = predict.largest_lr(curvature)
    return Asked(
        f"A loss is a ravine with the curvatures {curvature} across and {flat:g} along it. Beyond "
        "which learning rate does SGD diverge?",
        answer=lr,
        derivation=f"It diverges first where the loss is steepest, beyond 2 / λ = "
        f"2 / {curvature} = {number_text(lr)}.",
        mistakes=(
            Mistake(
                lr / 2,
                "At 1 / λ a step lands in the middle of the ravine. Up to 2 / λ the loss "
                "still falls.",
            ),
            Mistake(2 / flat, "The steepest direction diverges first, and not the flattest."),
        ),
    )


def _adamw(lr: float, decay: float, weight: float, gradient: float) -> Asked:
    fall = lr * (1 + decay * weight)
    return Asked(
        f"A weight is {weight:g}, and its first gradient is {gradient:g}. By how much does AdamW's "
        f"first step lower it, with lr = {lr:g} and a weight decay of {decay:g}?",
        answer=fall,
        derivation="After the repair of both averages, the first step is lr, however large the "
        f"gradient is. Weight decay adds lr × decay × weight: {lr:g} × (1 + {decay:g} × "
        f"{weight:g}) = {number_text(fall)}.",
        mistakes=(
            Mistake(
                lr,
                "Weight decay lowers the weight, too, by lr × decay × weight, which AdamW "
                "does not divide.",
            ),
            Mistake(
                lr * (gradient + decay * weight),
                "AdamW divides the gradient by its size, so the first step is lr.",
            ),
            Mistake(lr * gradient, "That is SGD's step, without any weight decay."),
        ),
    )


def _adagrad(step: int, lr: float) -> Asked:
    length = lr / math.sqrt(step)
    return Asked(
        f"AdaGrad gets the same gradient in every step, with lr = {lr:g}. How long is step number "
        f"{step}?",
        answer=length,
        derivation=f"v is the sum of {step} equal squares, so √v is √{step} times the gradient: "
        f"{lr:g} / √{step} = {number_text(length)}.",
        mistakes=(
            Mistake(lr / step, "The sum of the squares stands under a root."),
            Mistake(
                lr,
                "RMSProp's steps come to that in the long run, because old squares fade. AdaGrad "
                "adds them up.",
            ),
        ),
    )


def _experts(layers: int, width: int, inner: int, experts: int, used: int) -> Asked:
    model = accountant.Model(
        layers,
        width,
        32,
        8,
        128,
        inner,
        32_000,
        4096,
        mixture=accountant.Mixture(experts, used, inner),
    )
    matrices = accountant.mixture_matrices(model)
    billions = sum(
        group.used * group.size for name, group in matrices.items() if "router" not in name
    )
    billions /= 1e9
    return Asked(
        f"A mixture of experts has {layers} layers, {width:,} wide. Each has {experts} gated "
        f"experts, {inner:,} wide inside, of which {used} work on a token. How many billion "
        "weights of experts does a token use?",
        answer=billions,
        unit="billions of weights",
        derivation=f"An expert has three matrices. {layers} × {used} × 3 × {width:,} × {inner:,} = "
        f"{in_words(billions, 'billions of weights')}.",
        mistakes=(
            Mistake(billions * experts / used, "That is stored. A token uses fewer."),
            Mistake(billions * 2 / 3, "A gated expert has three matrices: gate, up and down."),
            Mistake(billions / used, f"{used} experts work on each token."),
        ),
    )


QUESTIONS = (
    Question(
        "optimizers.largest",
        "08338db3",
        _largest,
        {
            "gpus": (4, 8, 16, 64),
            "memory": (24, 40, 80, 141, 192),
            "optimizer": ("sgd", "momentum", "adamw"),
        },
    ),
    Question(
        "optimizers.zero",
        "c6d7f2798c",
        _zero,
        {"billions": (3, 7, 8, 13, 30, 70), "gpus": (4, 8, 16, 64), "stage": (1, 2, 3)},
    ),
    Question(
        "optimizers.momentum",
        "c46a66122",
        _momentum,
        {
            "hundredths": (60, 70, 75, 80, 90, 95, 98),
            "lr": (0.01, 0.02, 0.05, 0.1),
            "gradient": (0.3, 2, 3, 4),
        },
    ),
    Question(
        "optimizers.diverges",
        "c46a66122",
        _diverges,
        {"curvature": (5, 8, 16, 20, 25, 40, 50, 80, 125, 200), "flat": (0.5, 1, 2)},
    ),
    Question(
        "optimizers.adamw",
        "ca7967bfa",
        _adamw,
        {
            "lr": (0.001, 0.002, 0.01),
            "decay": (0.1, 0.2),
            "weight": (2, 3, 4, 5),
            "gradient": (0.003, 0.04, 0.5, 6),
        },
    ),
    Question(
        "optimizers.adagrad",
        "cba241370",
        _adagrad,
        {"step": (4, 9, 16, 25, 64, 100, 400, 10_000), "lr": (0.02, 0.05, 0.1, 0.3)},
    ),
    Question(
        "optimizers.experts",
        "moe-01",
        _experts,
        {
            "layers": (24, 32, 48, 61),
            "width": (2048, 4096, 7168),
            "inner": (1024, 2048, 14_336),
            "experts": (8, 16, 64),
            "used": (2, 4),
        },
    ),
)
