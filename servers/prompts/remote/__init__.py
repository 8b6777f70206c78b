"""Fetches libraries from git repositories and packages into a cache."""
