"""Draws new examples for all property tests, for as many minutes as one says, each round with a seed of its own.

`make test` draws the same examples everywhere. What is found here becomes an `@example` of its test, and so one of them.
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
    command = [
        sys.executable,
        "-m",
        "pytest",
        "tests",
        "-m",
        "hypothesis",
        f"--hypothesis-seed={seed}",
    ]
    command += ["-p", "no:cacheprovider", "--quiet", "--tb=short", "--dist=worksteal", *chosen]
    environment = os.environ | {"HYPOTHESIS_PROFILE": "explore"}
    run = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    return run.returncode == 0, run.stdout + run.stderr


def main() -> int:
    """Round after round until the minutes are over; 1 if anything failed."""
    parser = argparse.ArgumentParser(description=__doc__, prog='make explore ARGS="..."')
    parser.add_argument(
        "--minutes", type=float, default=10, help="how long; a round that was begun is finished"
    )
    parser.add_argument(
        "--seed", type=int, help="of the first round, to draw what an earlier one drew"
    )
    options, more = parser.parse_known_args()  # the rest is pytest's, such as -k layout
    end, failures, rounds = time.monotonic() + 60 * options.minutes, 0, 0
    seed = random.SystemRandom().randrange(2**32) if options.seed is None else options.seed
    while not rounds or time.monotonic() < end:
        held, said = explored(seed, more)
        failures, rounds = failures + (not held), rounds + 1
        *_, summary = ["nothing was said", *said.splitlines()]
        print(f"seed {seed}: {summary}", flush=True)
        if not held:
            print(said, flush=True)
        seed = (seed + 1) % 2**32
    print(f"{rounds} rounds, {failures} of them with failures.")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
