"""What several servers share: work on files, databases and pages, and what none of these knows anything of.

Limits are counted where they hold, and not here, because they have no more in common than a number that goes down.
The first entry of a page fits always; the lines of a schema share what is left; a large page of the web waits for its
turn; what a watch remembers is somebody's; what a session keeps is part of what all keep. How much of a file fits
into JSON is estimated from a sample, since files may be large, and a web page is measured whole: one way for both
would cut one of them elsewhere.
"""
