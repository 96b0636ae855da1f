"""One page with all figures: offline, with its own scripts inside."""
