"""Rules of the operator for a foreign server: which tools, under which names, and limits of size and time."""
