"""The course's subjects, written out to be read: a deep linear model, a transformer's layer, a GPT, a Llama.

Every matrix is drawn from a normal distribution with variance 1 / its input's width, by a generator that may
be given; biases begin at 0. No numbers are drawn anywhere else.
"""

from course_utils.subjects.models.heads import (
    attention,
    fused_attention,
    recomputed_attention,
    rotated,
    rotation,
)
from course_utils.subjects.models.layers import MLP, Linear, MLPBlock, normalisation
from course_utils.subjects.models.master import WithMaster
from course_utils.subjects.models.transformer import Block, Transformer, recomputed
