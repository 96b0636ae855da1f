"""Networks with failed or slower parts: transformers that return another network."""
