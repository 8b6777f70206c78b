"""What one sender, one session and one endpoint may take of a listener."""
