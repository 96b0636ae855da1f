"""Reading and writing: the four values, and the files of the field that describe a machine."""
