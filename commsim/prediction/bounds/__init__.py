"""What no schedule and no engine can beat: bytes that must cross a cut, over the capacity of its links."""
