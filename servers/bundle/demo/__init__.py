"""A demo of the servers, started as a desktop host would start them."""
