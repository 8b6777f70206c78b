"""What a prompt is, and the three forms of files it is read from."""
