"""The work of `pin`: what tools of a server were accepted, what is another now, and how that is shown."""
