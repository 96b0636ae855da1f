"""The flow engine where many messages share few links in no regular way: one rate and one clock per bottleneck."""
