"""Reaching files beneath the allowed directories, and nothing outside."""
