"""What a process has allocated and not given back, apart from what its allocator merely holds on to."""

from __future__ import annotations

import ctypes
from typing import ClassVar


class _Mallinfo2(ctypes.Structure):
    _fields_: ClassVar = [
        (name, ctypes.c_size_t)
        for name in (
            *("arena", "ordblks", "smblks", "hblks", "hblkhd"),
            *("usmblks", "fsmblks", "uordblks", "fordblks", "keepcost"),
        )
    ]


def heap_bytes() -> int:
    """In use by `malloc`, which has everything above 512 bytes and all of the C libraries; 0 where that is not told.

    Resident memory also counts what was freed between what is still in use, and grows long after this has stopped.
    """
    try:
        mallinfo2 = ctypes.CDLL(None).mallinfo2  # of glibc 2.33 and later
    except AttributeError:
        return 0
    mallinfo2.restype = _Mallinfo2
    told = mallinfo2()
    return int(told.uordblks) + int(told.hblkhd)
