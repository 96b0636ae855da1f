"""``python -m benchmarks.synthesis``."""

from __future__ import annotations

from .command import main

main()
