"""Where jobs go, and when they start: circles, scores, shifts, candidates."""
