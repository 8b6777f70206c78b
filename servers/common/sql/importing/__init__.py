"""Import of files into tables: the format of a file is detected, and reported."""
