"""The presentation of a page to a client, and its pieces."""
