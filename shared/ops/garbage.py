"""How often the interpreter looks for garbage.

Nearly everything is freed at once, by counting references. The garbage collector is for what refers to itself, and
of that there is little: what cancelled tasks leave behind. As the interpreter sets it up it takes a tenth of the time
of every call.
"""

import gc

__all__ = ["settle"]

BETWEEN_COLLECTIONS = 20_000
"""Objects that may be made, beyond those freed meanwhile, before the collector looks at them: some 2 MB."""


def settle() -> None:
    """Sets the collector up for a program that has loaded what it needs, and now makes and frees small objects all
    the time: what is loaded is not looked at again, and what is new less often. It is for the whole process."""
    gc.freeze()
    gc.set_threshold(BETWEEN_COLLECTIONS, 20, 50)
    gc.enable()
