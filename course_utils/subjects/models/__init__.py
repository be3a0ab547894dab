"""The models of the course, written out to be read: from a deep linear model to a GPT and a Llama.

Every matrix is drawn from a normal distribution with variance 1 / its input's width. The generator
of the draws may be given. Biases begin at 0. No other numbers are drawn.
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
from course_utils.subjects.models.mixture import LatentAttention, MixtureTransformer
from course_utils.subjects.models.transformer import Block, Transformer, recomputed
