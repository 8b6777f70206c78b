"""Loads pages, from the URL to the bytes. Follows redirects, enforces limits, and obeys robots.txt and the cache."""
