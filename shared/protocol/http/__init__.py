"""What HTTP adds to the protocol, without a socket."""
