"""Sizes that the layouts share."""

from __future__ import annotations

BOX_HEIGHT, GAP, LEAST_WIDTH = 24.0, 10.0, 30.0
NARROW, WIDE = 540.0, 1500.0
"""At least as wide is a drawing in rows; beyond this the names in a row are cut to their numbers."""
LOOSE, MOST_LOOSE = 50.0, 24
"""Distance between boxes on a circle, and up to how many."""
