"""Loading, from a URL to the bytes of a page: redirects, limits, robots.txt, the cache."""
