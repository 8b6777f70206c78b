"""Writes files into libraries."""
