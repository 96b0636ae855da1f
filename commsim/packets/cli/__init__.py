"""Flags of the packet engine, of packet headers and of transports."""
