"""``python -m benchmarks.steps``."""

from __future__ import annotations

import sys

from .command import main

sys.exit(main())
