"""What clients see of PostgreSQL alone."""
