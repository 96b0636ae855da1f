"""Synthesized schedules beside the exact optimum and what other synthesizers publish."""
