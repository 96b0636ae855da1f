"""Predictions beside measurements: errors, explanations, fits."""
