"""Code that several servers share, for files, documents, databases and web pages. It depends on none of the servers.

There is no common code for limits, because their rules differ. For example, the first entry of a page of results is
returned even if it exceeds the limit, and a large web page waits until others are done. How much of a file fits into
an answer is estimated from a sample, since files may be large, while a web page is measured completely.
"""
