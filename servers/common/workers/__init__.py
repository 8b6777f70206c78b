"""Runs work that is untrusted or can't be interrupted in worker processes."""
