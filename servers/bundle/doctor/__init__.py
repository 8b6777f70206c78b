"""Checks that find out why servers do not work on this machine: one module for each group of checks."""
