"""``commsim emulate``; and with many ranks that are alike."""
