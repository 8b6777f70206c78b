"""What an operator may set of a program: on its command line, in its environment, and in files."""
