"""The user's consent to changes of a database, and the results of statements."""
