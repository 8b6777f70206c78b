"""A server as a child process: its pipes, the messages on them, and what it writes for people."""
