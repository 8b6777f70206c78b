"""What a message means to a session, in both eras and on both sides."""
