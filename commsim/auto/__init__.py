"""The cheapest engine that is known to be close enough: what each costs, and what is known of its error."""

from __future__ import annotations

from .choose import EngineChoice, Option, choose, engine_for

# Other extensions that this one imports.
NEEDS: tuple[str, ...] = ("packets",)

__all__ = ["EngineChoice", "Option", "choose", "engine_for"]
