"""A run that restores all of its state goes on from a crash as if there had been none, and loses what was not saved.

After two minutes the reader has seen a process killed and its run resumed on the very curve of a run never killed,
counted the steps that were done twice, and watched the curve depart when a part of the state was left out.
"""

from course_utils.labs.crash.asked import PARTS, PRESETS, Plan
from course_utils.labs.crash.picture import view
from course_utils.labs.lab import Lab

LAB = Lab(
    "Crash lab",
    Plan,
    view,
    presets=PRESETS,
    jobs={"Train": "train", "Resume": "resume"},
    actions={"Kill it": "kill", "Kill it while it saves": "kill_while_it_saves"},
    rows=(("every", "steps", "pause_ms"), PARTS),
)
