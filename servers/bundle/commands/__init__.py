"""The commands of `python -m servers`, one module each."""
