"""Another user at every name of a runtime directory: tamper.py UID GID RUN [NAME...]

As that user: truncates, overwrites, replaces, links and removes each file and link below RUN that does not belong to
it, and makes the names that are given (in RUN, or in a directory of it). Prints a line for each that it could: what it
did, and the path.
"""
import os
import stat
import sys

uid, gid, run, names = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4:]
paths = []  # of others, as root sees them
for folder, folders, files in os.walk(run):
    for name in folders + files:
        path = os.path.join(folder, name)
        st = os.lstat(path)
        if st.st_uid != uid and not name.startswith('link.'):
            paths.append((path, st.st_mode))
os.setgroups([])
os.setresgid(gid, gid, gid)
os.setresuid(uid, uid, uid)
os.umask(0)


def attempt(what, path, fn):
    try:
        fn()
    except OSError:
        return
    print(what, os.path.relpath(path, run))


def overwrite(path):
    fd = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
    os.write(fd, b'\xff' * 4096)
    os.close(fd)


def replace(path):
    mine = os.path.join(os.path.dirname(path), 'mine.%d' % uid)
    with open(mine, 'wb') as f:
        f.write(b'7 forged\n')
    try:
        os.rename(mine, path)
    finally:
        if os.path.lexists(mine):
            os.unlink(mine)


def link(path):  # which stays, when the directory lets only the file's owner remove it
    os.link(path, os.path.join(run, 'link.%s.%d' % (os.path.basename(path), uid)))


def make(path):
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    os.write(fd, b'\xff' * 20000)
    os.close(fd)


for path, mode in paths:
    if not stat.S_ISDIR(mode):
        attempt('truncated', path, lambda: os.truncate(path, 0))
        attempt('overwrote', path, lambda: overwrite(path))
        attempt('linked', path, lambda: link(path))
    attempt('replaced', path, lambda: replace(path))
    attempt('changed', path, lambda: os.chmod(path, 0o777))
    attempt('removed', path, lambda: os.rmdir(path) if stat.S_ISDIR(mode) else os.unlink(path))
for name in names:
    attempt('made', os.path.join(run, name), lambda: make(os.path.join(run, name)))
