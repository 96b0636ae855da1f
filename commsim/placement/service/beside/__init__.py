"""Jobs beside those that run: kept tables of the running ones, kernels, and the ranking of new ones."""
