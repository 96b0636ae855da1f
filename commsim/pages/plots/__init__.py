"""Figures for papers and charts of commands, drawn by matplotlib."""
