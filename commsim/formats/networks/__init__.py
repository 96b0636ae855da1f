"""Networks as other simulators and graph libraries write them."""
