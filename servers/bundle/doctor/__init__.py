"""Checks that find out why servers do not work on this machine. Each module contains one group of checks."""
