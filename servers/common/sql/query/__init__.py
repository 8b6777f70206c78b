"""Queries, the rows that an answer has of them, and the formats of files that have them all."""
