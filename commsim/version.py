"""The version of commsim, which answers, files and caches name."""

__version__ = "0.3.0"
