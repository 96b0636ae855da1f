"""Predictions beside published figures and tables, and the engines beside each other."""
