"""Profiles of ranks as programs: computation, exchanges and waits, which other networks and more ranks change."""
