"""Published figures beside ours: one file per paper, and the measures that its figures are of."""
