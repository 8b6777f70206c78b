"""The commands that act as a client of one server: each connects to it and prints the answers."""
