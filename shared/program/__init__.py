"""A server as a program: its options, how it starts, and how it ends."""
