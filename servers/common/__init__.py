"""Code that several servers share, for files, documents, databases and pages; independent of each server.

Limits are counted where they apply, not here, because they have nothing in common except a decreasing number. The
first entry of a page always fits; the lines of a schema share the remaining bytes; a large web page waits for its
turn; the memory of a watch is counted for each client, the memory of sessions in total. How much of a file fits into
JSON is estimated from a sample, since files may be large, while a web page is measured as a whole. One method for
both would cut one of them in the wrong place.
"""
