"""The settings of a program by its operator: on its command line, in its environment, and in files."""
