"""Runs a program in a network of its own that has nothing but loopback: Ray listens on every interface that it finds.

Usage: alone.py PROGRAM ARGUMENTS..., inside `unshare --net`.
"""

import fcntl
import os
import socket
import struct
import sys

SIOCSIFFLAGS = 0x8914
IFF_UP, IFF_RUNNING = 0x1, 0x40

with socket.socket() as any_socket:
    fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack("16sH14s", b"lo", IFF_UP | IFF_RUNNING, b""))
os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
