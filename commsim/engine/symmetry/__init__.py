"""The flow engine where many wires behave alike: one of each kind is played."""
