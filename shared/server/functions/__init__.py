"""Functions of an author: what their arguments may be, what they return, and how they are called."""
