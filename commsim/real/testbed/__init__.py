"""The same network for real: network namespaces on this machine, with real links between them."""
