"""Checks of what keeps the servers from running on this machine: one module for each group of checks."""
