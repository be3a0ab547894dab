"""Training: tokens from a file, and a run that can stop and go on, bit for bit.

`precision`, which trains in each mix of formats, is not imported here.
"""

from course_utils.subjects.training.randomness import (
    generator_for,
    restore_shared_states,
    seed_all,
    shared_states,
)
from course_utils.subjects.training.run import (
    PARTS,
    Run,
    clip_gradients,
    next_token_loss,
    warmup_cosine,
)
from course_utils.subjects.training.tokens import (
    VOCABULARY,
    decoded,
    encoded,
    example_text,
    open_tokens,
    token_batch,
    write_tokens,
)
