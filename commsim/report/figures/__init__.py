"""Figures of results: what each shows, defined once for pages, plots and CSV files."""
