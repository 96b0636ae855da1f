"""Plans of work on a network: one file for each kind, from which any engine predicts any size."""
