"""Data that shipped code reads, made by what is not shipped."""
