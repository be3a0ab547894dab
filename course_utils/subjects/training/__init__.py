"""Training: tokens from a file, a run that can stop and go on, bit for bit, and two runs of the course.

`precision` trains in each mix of formats, `long_run` needs each part of its state to go on; each is imported by itself.
"""

from course_utils.subjects.training.randomness import (
    generator_for,
    restore_shared_states,
    seed_all,
    shared_states,
)
from course_utils.subjects.training.run import PARTS, Run, clip_gradients, next_token_loss, warmup_cosine
from course_utils.subjects.training.tokens import (
    VOCABULARY,
    decoded,
    encoded,
    example_text,
    open_tokens,
    token_batch,
    write_tokens,
)
