"""``python -m benchmarks.experts``."""

from __future__ import annotations

import sys

from .command import main

sys.exit(main())
