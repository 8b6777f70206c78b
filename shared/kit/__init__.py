"""What servers and the protocol package share and that knows nothing of either."""
