"""Runs a command to which the kernel gives no random bytes: every ``getrandom`` of it fails, as on a system without it.

    python no_random_bytes.py COMMAND ...

Linux on 64-bit PCs. A filter of system calls (seccomp) that no process takes off again, its children included.
"""

import ctypes
import errno
import os
import struct
import sys

GETRANDOM = 318
PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 38, 22, 2
LOAD, JUMP_IF_EQUAL, RETURN = 0x20, 0x15, 0x06
ALLOW, FAIL = 0x7FFF0000, 0x00050000


def filter_of(call: int) -> bytes:
    """Four instructions of the kernel's packet filter: the number of the call, and what becomes of it."""
    program = [(LOAD, 0, 0, 0), (JUMP_IF_EQUAL, 0, 1, call), (RETURN, 0, 0, FAIL | errno.ENOSYS), (RETURN, 0, 0, ALLOW)]
    return b"".join(struct.pack("HBBI", *instruction) for instruction in program)


class Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p)]


def main() -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    program = Program(4, filter_of(GETRANDOM))
    for option, *given in ((PR_SET_NO_NEW_PRIVS, 1, 0), (PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(program))):
        if libc.prctl(option, *given, 0, 0):
            sys.exit(f"the kernel takes no filter of system calls: {os.strerror(ctypes.get_errno())}")
    os.execvp(sys.argv[1], sys.argv[1:])


if __name__ == "__main__":
    main()
