#!/usr/bin/env python3
"""Rubbish for a ZeroMQ socket: raw bytes, half a handshake, and messages behind a good one.

usage: hostile_socket.py SOCKET...
"""
import random
import socket
import struct
import sys

GREETING = b"\xff" + bytes(8) + b"\x7f\x03\x00" + b"NULL".ljust(20, b"\x00") + bytes(32)


def ready(kind):
    body = b"\x05READY\x0bSocket-Type" + struct.pack(">I", len(kind)) + kind
    return b"\x04" + bytes([len(body)]) + body


def frame(data, more=False):
    if len(data) < 256:
        return bytes([1 if more else 0, len(data)]) + data
    return bytes([3 if more else 2]) + struct.pack(">Q", len(data)) + data


def say(path, data):
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as s:
        s.settimeout(2)
        try:
            s.connect(path)
            s.sendall(data)
            while s.recv(65536):
                pass
        except OSError:
            pass


def main():
    random.seed(1)
    for path in sys.argv[1:]:
        say(path, random.randbytes(100000))
        say(path, GREETING[:20])
        say(path, GREETING + b"\x04\xff" + random.randbytes(10))
        for kind in (b"DEALER", b"ROUTER", b"PUB", b"X" * 200):
            hello = GREETING + ready(kind)
            say(path, hello + b"".join(frame(random.randbytes(random.randrange(300)), i % 3 == 0) for i in range(200)))
            say(path, hello + frame(b"\x0a\xff\xff\xff\xff\x0f") + frame(b"\x0a" * 1000) + frame(b""))
            say(path, hello + b"\x02" + struct.pack(">Q", 2 ** 62) + b"x")
        say(path, GREETING + ready(b"DEALER") + frame(random.randbytes(1 << 20)) + frame(bytes(17 << 20)))


if __name__ == "__main__":
    main()
