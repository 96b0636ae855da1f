"""The cheapest engine that is known to be close enough: what each costs, and what is known of its error."""

from __future__ import annotations

from .choose import Choice, Option, choose, engine_for

# Other extensions that this one imports.
NEEDS: tuple[str, ...] = ("packets",)

__all__ = ["Choice", "Option", "choose", "engine_for"]
