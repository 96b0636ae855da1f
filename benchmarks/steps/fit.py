"""``python -m benchmarks.steps.fit --data DIR``: calibrate, and print ``calibrations.toml``."""

from __future__ import annotations

import argparse
import json

from benchmarks.steps.predictions import calibrated
from benchmarks.steps.setups import read_setups

HEAD = """# How much longer compute takes than the roofline, from one published step each: `row`. `precision` has the
# kind of scaling where kernels differ by it (mxfp8). `software` is a release whose steps differ from those of others.
# Written by `python -m benchmarks.steps.fit`.
"""


def main() -> None:
    """Print the calibrations."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", required=True)
    print(HEAD)
    for one in calibrated(read_setups(parser.parse_args().data)):
        print("[[calibrations]]")
        for key in ("model", "gpu", "precision", "software", "factor", "row"):
            value = getattr(one, key)
            if value != "":
                print(f"{key} = {json.dumps(value)}")
        print()


if __name__ == "__main__":
    main()
