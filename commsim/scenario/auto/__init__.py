"""The cheapest engine that is known to be close enough: what each costs, and what is known of its error."""

from __future__ import annotations

from .choose import Choice, Option, choose, engine_for

__all__ = ["Choice", "Option", "choose", "engine_for"]
