"""Draws new examples for all property tests, with a new seed in each round, for some minutes.

`make test` draws the same examples everywhere. An example that fails here is then written above its
test as an `@example`, so that `make test` tries it, too.
"""

import argparse
import os
import random
import subprocess
import sys
import time

from tests import ROOT


def explored(seed: int, chosen: list[str]) -> tuple[bool, str]:
    """Whether all property tests held with that seed, and what pytest said."""
    which = ["tests", "-m", "hypothesis", f"--hypothesis-seed={seed}"]
    how = ["-p", "no:cacheprovider", "--quiet", "--tb=short", "--dist=worksteal"]
    command = [sys.executable, "-m", "pytest", *which, *how, *chosen]
    environment = os.environ | {"HYPOTHESIS_PROFILE": "explore"}
    run = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    return run.returncode == 0, run.stdout + run.stderr


def main() -> int:
    """Run rounds until the minutes are over; the status is 1 if a test failed."""
    parser = argparse.ArgumentParser(description=__doc__, prog='make explore ARGS="..."')
    parser.add_argument(
        "--minutes", type=float, default=10, help="how long; a round that was begun is finished"
    )
    parser.add_argument(
        "--seed", type=int, help="of the first round, to draw what an earlier one drew"
    )
    options, more = parser.parse_known_args()  # the rest is pytest's, such as -k layout
    end = time.monotonic() + 60 * options.minutes
    seed = options.seed
    if seed is None:
        seed = random.SystemRandom().randrange(2**32)
    rounds = 0
    failures = 0
    while rounds == 0 or time.monotonic() < end:
        rounds += 1
        held, said = explored(seed, more)
        *_, summary = ["nothing was said", *said.splitlines()]
        print(f"seed {seed}: {summary}", flush=True)
        if not held:
            failures += 1
            print(said, flush=True)
        seed = (seed + 1) % 2**32
    print(f"{rounds} rounds, {failures} of them with failures.")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
