"""Rings that share links: events of the messages that may meet others, arithmetic for all the rest."""
