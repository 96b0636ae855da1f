"""``python -m benchmarks.steps.fit --data DIR [--intervals]``: print ``calibrations.toml``, or ``intervals.toml``."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict

from benchmarks.steps.intervals import intervals_of
from benchmarks.steps.predictions import calibrated, predictions, with_blind
from benchmarks.steps.setup import Setup
from benchmarks.steps.setups import read_setups

HEAD = """# How much longer compute takes than the roofline, from one published step each: `row`. `precision` has the
# kind of scaling where kernels differ by it (mxfp8). `software` is a release whose steps differ from those of others.
# Written by `python -m benchmarks.steps.fit`.
"""
HEAD_OF_INTERVALS = """# Factors of a predicted step between which 80 % of published steps lie. `calibrated`:
# some step of the model on the GPU is calibrated, and rows that calibrations are from do not count; else the model is
# left out. `setups` counts them.
# Written by `python -m benchmarks.steps.fit --intervals`.
"""


def main() -> None:
    """Print the calibrations, or the intervals."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", required=True)
    parser.add_argument("--intervals", action="store_true", help="intervals, with the calibrations of the package")
    asked = parser.parse_args()
    setups = read_setups(asked.data)
    print(HEAD_OF_INTERVALS if asked.intervals else HEAD)
    (_print_intervals if asked.intervals else _print_calibrations)(setups)


def _print_intervals(setups: list[Setup]) -> None:
    for one in intervals_of(with_blind(predictions(setups))):
        print("[[intervals]]")
        print("".join(f"{key} = {json.dumps(value)}\n" for key, value in asdict(one).items()))


def _print_calibrations(setups: list[Setup]) -> None:
    for one in calibrated(setups):
        print("[[calibrations]]")
        for key in ("model", "gpu", "precision", "software", "factor", "row"):
            value = getattr(one, key)
            if value != "":
                print(f"{key} = {json.dumps(value)}")
        print()


if __name__ == "__main__":
    main()
