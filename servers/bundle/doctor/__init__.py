"""Checks that determine why servers do not work on this machine, with one module for each group of checks."""
