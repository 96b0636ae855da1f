"""The gate: errors of every class of predictions, beside those that are committed."""
