"""Entry point: ``python -m benchmarks.volumes``."""

import sys

from .command import main

if __name__ == "__main__":
    sys.exit(main())
