#!/usr/bin/env python3
"""Prints what seccomp filters did not allow, a line each, as the kernel tells its audit log:
    user program system-call action
action: "killed", or "failed" with an errno. The first line is "listening"; "lost" says that there were more. Filters tell nothing unless they are told to: systemd does that where SYSTEMD_LOG_SECCOMP=1.
Needs CAP_AUDIT_READ in the first user namespace."""
import ctypes
import errno
import re
import socket
import struct

NETLINK_AUDIT, READLOG, AUDIT_SECCOMP = 9, 1, 1326
lib = ctypes.CDLL("libseccomp.so.2")
lib.seccomp_syscall_resolve_num_arch.restype = ctypes.c_char_p
lib.seccomp_syscall_resolve_num_arch.argtypes = [ctypes.c_uint32, ctypes.c_int]


def main():
    s = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_AUDIT)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
    s.bind((0, READLOG))
    print("listening", flush=True)
    while True:
        try:
            message = s.recv(1 << 16)
        except OSError as e:
            if e.errno != errno.ENOBUFS:
                raise
            print("lost", flush=True)
            continue
        if struct.unpack_from("=IH", message)[1] != AUDIT_SECCOMP:
            continue
        text = message[16:].decode(errors="replace")
        f = dict(re.findall(r'(\w+)=("[^"]*"|\S+)', text))
        name = lib.seccomp_syscall_resolve_num_arch(int(f["arch"], 16), int(f["syscall"]))
        print(f["uid"], f["exe"].strip('"'), name.decode() if name else f["syscall"],
              "failed" if int(f["code"], 16) >> 16 == 5 else "killed", flush=True)


main()
