"""The commands that are a client of one server: each asks it for something and shows the answer."""
