"""Files that other tools of the field read and write; commsim/files has our own."""
