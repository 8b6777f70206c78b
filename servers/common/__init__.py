"""Code that several servers share, for files, documents, databases and pages; independent of each server.

There is no common code for limits: each is counted where it applies, because the rules differ. The first entry of a
page of results is returned even if it exceeds the limit; the lines of a schema share the bytes that are left; a large
web page waits until others are done; the memory of a watch is counted for each client, the memory of sessions in
total. How much of a file fits into an answer is estimated from a sample, since files may be large, while a web page
is measured completely.
"""
