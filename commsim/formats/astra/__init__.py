"""The files of ASTRA-sim: networks by dimensions, and the system layer that chooses collectives."""
