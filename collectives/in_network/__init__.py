"""Algorithms whose reducing participants sit on switches."""
