"""From a question to its answer: a scenario, the plan of its work, and the results of an engine."""
