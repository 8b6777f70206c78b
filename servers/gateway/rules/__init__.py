"""Rules of the operator for a third-party server: which tools, under which names, and limits of size and time."""
