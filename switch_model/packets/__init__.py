"""Packets of in-network aggregation on the wire: layouts, Scapy layers, captures written and read back."""
