"""Protocols of aggregation, proved: every state is looked at that losses, copies and failures can lead to."""
