"""All questions that return, of all eight notebooks."""

from course_utils.stage.recall import (
    checkpointing,
    einsum,
    floats,
    flops,
    gradients,
    mixed_precision,
    optimizers,
    tensors,
)
from course_utils.stage.recall.question import Question

# In the order of the notebooks.
MODULES = (
    floats,
    tensors,
    einsum,
    flops,
    gradients,
    optimizers,
    mixed_precision,
    checkpointing,
)
QUESTIONS: dict[str, Question] = {
    question.name: question for module in MODULES for question in module.QUESTIONS
}
