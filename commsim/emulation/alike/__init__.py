"""One process for many ranks that are alike: its tensors have no data, and its operators take the time of a GPU."""
