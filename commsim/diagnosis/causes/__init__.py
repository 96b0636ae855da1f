"""Why measured times are longer than expected: faults that are injected into the model, ranked by likelihood."""
