"""Killed processes, forged datagrams and long runs: what is left, and what is wrong afterwards."""
