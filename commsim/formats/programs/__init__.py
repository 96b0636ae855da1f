"""What every rank does, as LogGOPSim and ASTRA-sim say it: sends, receives and computations that wait."""
