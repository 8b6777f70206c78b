"""Client commands: each sends a request to one server and prints the answer."""
