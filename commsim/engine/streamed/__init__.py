"""Rings that share links: events for messages that may meet others, closed forms for the rest."""
