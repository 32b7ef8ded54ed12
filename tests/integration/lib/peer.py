"""Somebody at a Unix socket: peer.py UID GID knock|replace|squat PATH

knock: greets as a peer of the bus does; prints "let in", "turned away" or "not reached".
replace: puts a socket of its own at PATH; prints "replaced" or "not replaced".
squat: listens at PATH and greets who comes, prints "listening", until it is killed.
"""
import os
import socket
import sys

uid, gid, what, path = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4]
os.setgroups([])
os.setresgid(gid, gid, gid)
os.setresuid(uid, uid, uid)
os.umask(0o007)
s = socket.socket(socket.AF_UNIX)
greeting = b'\xff' + bytes(8) + b'\x7f\x03\x00' + b'NULL'.ljust(20, b'\x00') + bytes(32)  # ZMTP 3.0
if what == 'knock':
    try:
        s.connect(path)
    except PermissionError:
        sys.exit('not reached')
    s.settimeout(20)
    try:
        s.sendall(greeting)
        print('let in' if s.recv(1) else 'turned away')  # who is let in is greeted
    except (BrokenPipeError, ConnectionResetError):
        print('turned away')
elif what == 'replace':
    mine = path + '.mine'
    s.bind(mine)
    try:
        os.rename(mine, path)
        print('replaced')
    except PermissionError:
        os.unlink(mine)
        try:
            os.unlink(path)
            print('replaced')
        except PermissionError:
            print('not replaced')
else:
    s.bind(path)
    s.listen()
    print('listening', flush=True)
    while True:
        s.accept()[0].sendall(greeting)
