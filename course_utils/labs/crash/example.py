"""A crash that needs no process: computed here, as the processes do."""

from functools import lru_cache

from course_utils import measure, training
from course_utils.labs.crash.asked import DONE, KILLED, Life, Plan, Story
from course_utils.quantities import Number
from course_utils.training import long_run

EXAMPLE_CRASH, EXAMPLE_SAVED = 87, (10, 20, 30, 40, 50, 60, 70, 80)  # steps


@lru_cache
def uninterrupted(left_out: tuple[str, ...] = ()) -> Story:
    """An example of a crash, and the losses of a run that had none.

    What is left out is not restored after the crash.
    """
    plan, shared = Plan(), training.shared_states()
    with measure.cpu_threads(1):
        reference, state = _never_killed()
        again = long_run.new_run()  # which seeds the shared generators, as a new process does
        again.restore(state, without=left_out)
        resumed = tuple(again.advance() for _ in range(EXAMPLE_SAVED[-1], plan.steps))
    training.restore_shared_states(shared)
    killed = Life(0, reference[:EXAMPLE_CRASH], EXAMPLE_SAVED, end=KILLED)
    after = tuple(range(EXAMPLE_SAVED[-1], plan.steps + 1, plan.every))[1:]
    lives = (killed, Life(EXAMPLE_SAVED[-1], resumed, after, left_out, DONE))
    return Story(plan.steps, lives, after[-3:], reference=reference, example=True)


@lru_cache(maxsize=1)
def _never_killed() -> tuple[tuple[Number, ...], dict[str, object]]:
    """The losses of such a run, and its state when the example was last saved."""
    run = long_run.new_run()
    losses = tuple(run.losses(EXAMPLE_SAVED[-1]))
    state = run.state()
    return losses + tuple(run.losses(Plan().steps)), state
