"""Rows of files put into tables: how a file is written is found out, and said."""
