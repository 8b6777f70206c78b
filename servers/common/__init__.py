"""Code that several servers share, for files, documents, databases and pages; independent of each server.

Limits are counted where they apply, not here, because they have nothing in common but a number that goes down.
The first entry of a page always fits; the lines of a schema share the remaining bytes; a large web page waits for its
turn; the memory of a watch belongs to a client; that of a session is part of a common total. How much of a file fits
into JSON is estimated from a sample, since files may be large, and a web page is measured whole: one method for both
would cut one of them elsewhere.
"""
