"""A server as a child process: its pipes, the messages on them, and its stderr."""
