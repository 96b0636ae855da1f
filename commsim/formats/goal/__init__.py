"""GOAL, the schedules that LogGOPSim and ATLAHS simulate, as text and in binary."""
