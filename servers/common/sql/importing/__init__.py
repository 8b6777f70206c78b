"""Imports files into tables. The format of a file is detected and reported."""
