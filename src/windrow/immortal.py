"""Objects that outlive the interpreter: their destructors never run, not even as a process ends.

What it buys: a forked child that ends as a script does, by leaving its main module, ends at once. Destructors of
connection pools and databases of its parent would wait for threads that the child does not have, for ever.

The trick: each object gets one reference more than anybody holds, through the C API of Python (`Py_IncRef`). It fails
where `ctypes` has no such API, as outside of CPython. The plain way keeps the objects in a list of this module: then
they live until the interpreter clears its modules, and only children that end by `os._exit`, as all those of
`multiprocessing` do, are sure to end.
"""

from __future__ import annotations

import ctypes

from windrow.tricks import Trick, is_on

__all__ = ["abandon"]

_held: list[object] = []


def abandon(*things: object) -> None:
    """Never let go of things."""
    _held.extend(things)
    api = getattr(ctypes, "pythonapi", None)
    if api is not None and is_on(Trick.IMMORTAL_OBJECTS):
        for thing in things:
            api.Py_IncRef(ctypes.py_object(thing))
