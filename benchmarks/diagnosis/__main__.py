"""``python -m benchmarks.diagnosis``."""

from __future__ import annotations

from benchmarks.diagnosis.command import main

if __name__ == "__main__":
    raise SystemExit(main())
