"""Files that other tools of the field read and write; core/formats has our own."""
