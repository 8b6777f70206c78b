"""Changes on disk: nothing is left half written, and nothing is lost."""
