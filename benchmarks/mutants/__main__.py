"""``python -m benchmarks.mutants``."""

from __future__ import annotations

import sys

from .command import main

sys.exit(main())
