"""A server that reads web pages, from the public web only, and gives them as a reader wants them."""
