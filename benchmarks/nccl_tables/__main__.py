"""``python -m benchmarks.nccl_tables``."""

from __future__ import annotations

import sys

from .command import main

sys.exit(main())
