"""Sweeps: many points over any parameter, on any executor, resumable."""
