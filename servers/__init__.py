"""The ready-made servers; each is a program of its own, started with `python -m servers.<name>`."""
