"""The definition of a prompt, and the file formats that it is read from."""
