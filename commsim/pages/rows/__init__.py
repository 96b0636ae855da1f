"""Rows of results: read from files, chosen, named, compared."""
