"""What a model takes, all of it on one page, and where each number comes from.

After two minutes the reader knows whether their own model fits, how long its training takes and
what serving it costs, and has opened the formula of the number that surprised them.
"""

from collections.abc import Mapping

from course_utils.chapters.checkpointing.account_lab.asked import PRESETS, Asked
from course_utils.chapters.checkpointing.account_lab.picture import view
from course_utils.engine.labs.lab import Lab


class AccountLab(Lab):
    """The accountant as a lab: a model, GPUs and a recipe, and all that follows from them."""

    name = "Account lab"
    asks = Asked
    presets = PRESETS
    rows = (
        ("model", "config", "machine", "gpus", "tokens"),
        ("recipe", "stage", "batch", "sequence", "recomputed"),
        ("percent", "watts", "price"),
        ("users", "cached", "serving", "opened"),
    )
    view = staticmethod(view)

    def pick(self, key: str, asked: Asked) -> Mapping[str, object]:
        """Open the formula of the number on which the reader has clicked."""
        return {"opened": key}
