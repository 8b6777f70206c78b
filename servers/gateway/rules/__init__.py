"""Rules of the operator for a third-party server: the tools that clients see, their names, and limits of size and
time."""
