"""Worker processes of a server, for work that is untrusted or can't be interrupted."""
