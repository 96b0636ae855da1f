"""``python -m benchmarks.house``."""

from __future__ import annotations

import sys

from .command import main
from .sources import SHIPPED

main(sys.argv[1:] or SHIPPED)
