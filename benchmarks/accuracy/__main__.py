"""``python -m benchmarks.accuracy``."""

from __future__ import annotations

import sys

from .gate.command import main

sys.exit(main())
