"""The flow engine where all messages start at once: one filling of the links, or departure by departure."""
