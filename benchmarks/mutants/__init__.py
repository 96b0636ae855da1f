"""Mutation testing: small seeded changes of the code, and whether a test of the area fails for them."""
