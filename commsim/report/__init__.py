"""The answer of a verb, the one renderer of answers, and the tables that a terminal shows."""
