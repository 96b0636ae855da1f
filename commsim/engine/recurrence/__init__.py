"""The flow engine where every message is alone on its links: recurrences, no event queue."""
