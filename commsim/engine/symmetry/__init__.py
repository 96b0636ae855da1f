"""The flow engine where many connections behave alike: one of each kind is simulated."""
