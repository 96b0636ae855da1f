"""The page that shows cost models."""
