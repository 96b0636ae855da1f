"""Rules for the source tree, and the files that are made from the registries: tables of the docs, JSON schemas."""
