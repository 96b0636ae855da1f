"""Placement of jobs and their start times: circles, link scores, time-shifts, candidates."""
