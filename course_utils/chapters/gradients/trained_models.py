"""The models whose training step the timeline lab shows, and the GPUs that train them."""

from course_utils.core import predict
from course_utils.core.accountant import active_parameters
from course_utils.core.predict import Shape
from course_utils.core.say.language import translated
from course_utils.core.say.wording import factor_text
from course_utils.engine.labs.fields import Said

# Its experts work one after the other, on tokens that are spread evenly: see `predict.timeline`.
MIXTRAL = "Mixtral 8x7B"
_MIXTRAL = predict.shape_of(predict.known("mixtral-8x7b"))
MODELS = (*predict.MODELS, MIXTRAL)
NAMES = ("T4", "L4", "A100 SXM 40GB", "A100 SXM", "H100 SXM", "H200 SXM", "B200", "MI300X")
MACHINES = {name.replace(" SXM", ""): name for name in NAMES}  # by the shorter name in the menu
LONGEST_SEGMENT = 8  # the most layers that are recomputed together


def shape_named(model: str) -> Shape:
    """Return the sizes of the model of that name, which MODELS has."""
    if model == MIXTRAL:
        return _MIXTRAL
    return predict.MODELS[model]


def with_parameters(model: str) -> str:
    """Return the model's name, and of a mixture how many parameters it has and a token uses."""
    shape = shape_named(model)
    if not shape.mixture:
        return model
    stored = factor_text(shape.parameters)
    used = factor_text(active_parameters(shape))
    return translated(
        "{model}, {stored} parameters, of which a token uses {used}",
        model=model,
        stored=stored,
        used=used,
    )


def about_experts(model: str) -> str:
    """Return a sentence on what is assumed of a mixture's experts; of another model nothing."""
    if not shape_named(model).mixture:
        return ""
    return translated("Experts work one after the other, each on as many tokens as another.")


def longest_segment(said: Said) -> int:
    """Return how many layers can be recomputed together in the model that the controls hold."""
    return min(LONGEST_SEGMENT, shape_named(said["model"]).layers)
