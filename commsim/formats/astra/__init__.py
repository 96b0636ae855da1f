"""The configuration of ASTRA-sim: the network and the system layer."""
