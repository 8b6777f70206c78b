"""Whole results of queries as files, which clients read as resources."""
