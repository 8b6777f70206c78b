"""The commands of `python -m servers`, a module each."""
