"""Puts the rows of queries into results and exports, and continues queries with cursors."""
