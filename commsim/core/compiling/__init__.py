"""How kernels are compiled, and kept on disk."""

# Packages with kernels: their named tuples go to kernels, which never make, return or take one apart.
PACKAGES = {"commsim"}
