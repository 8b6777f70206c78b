"""A server that fetches web pages from the public web only, and returns them in a readable form."""
