"""The ready-made servers; each is a separate program, started with `python -m servers.<name>`."""
