#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writers against a server that is killed again and again; compares what was answered with what is there afterwards.

usage: data_writers.py PROGRAM FILE ROUNDS batch|full

In each round a server is started on FILE, four writers create, change and delete objects of their own until the server is
killed in the middle, and the next server is asked for all of them. full: everything that was answered has to be there.
batch: everything that was answered SLACK seconds before the kill. In both: uids stay, no version is ever given away twice
for different contents, a watch from before the kill gets 410. Prints what is wrong; exit status 1 if anything is.
"""
import http.client
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time

SCALE = float(os.environ.get('BH_TEST_TIMEOUT_SCALE', '1'))
SLACK = 3.0 * SCALE   # far more than the 20 ms of a batch: a slow disk may hold one up
wrong = []


class Server:
    def __init__(self, program, path, sync):
        self.process = subprocess.Popen([program, '--no-controllers', '--data', path, '--data-sync', sync],
                                        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        line = self.process.stdout.readline().strip()
        if not line.startswith('http://'):
            raise SystemExit(f'the server did not start: {line!r}')
        self.port = int(line.rsplit(':', 1)[1])

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        self.process.stdout.close()

    def stop(self):
        self.process.terminate()
        if self.process.wait() != 0:
            wrong.append(f'the server ended with {self.process.returncode}')
        self.process.stdout.close()


def request(c, method, path, body=None, content_type='application/json'):
    c.request(method, path, json.dumps(body) if body is not None else None, {'Content-Type': content_type})
    r = c.getresponse()
    return r.status, json.loads(r.read())


class Writer(threading.Thread):
    """state[name] = list of (answered at, version, value, uid); value None = deleted; answered at None = not known."""

    def __init__(self, number, first, port):
        super().__init__()
        self.number, self.n, self.port, self.state, self.end = number, first, port, {}, False
        self.answered = threading.Event()

    def run(self):
        c = http.client.HTTPConnection('127.0.0.1', self.port, timeout=30)
        base = '/api/v1/namespaces/default/configmaps'
        try:
            while not self.end:
                self.n += 1
                name = f'w{self.number}-{self.n}'
                log = self.state.setdefault(name, [])
                for value in (1, 2, None)[:2 + self.n % 2]:
                    log.append((None, 0, value, ''))
                    if value == 1:
                        status, o = request(c, 'POST', base, {'metadata': {'name': name}, 'data': {'v': '1'}})
                    elif value:
                        status, o = request(c, 'PATCH', f'{base}/{name}', {'data': {'v': '2'}},
                                            'application/merge-patch+json')
                    else:
                        status, o = request(c, 'DELETE', f'{base}/{name}')
                    if status >= 300:
                        wrong.append(f'{name}: {status} {o}')
                        return
                    m = o.get('metadata') or {}
                    log[-1] = (time.monotonic(), int(m.get('resourceVersion') or 0), value, m.get('uid') or '')
                    self.answered.set()
        except (OSError, http.client.HTTPException, ValueError):
            pass   # killed


def check(name, log, there, dead, sync):
    """Is what is there one of the states that may be?"""
    sure = -1
    for i, (at, *_) in enumerate(log):
        if at is not None and (sync == 'full' or at < dead - SLACK):
            sure = i
    may = [None] if sure < 0 else []
    may += [value for _, _, value, _ in log[max(sure, 0):]]
    now = int(there['data']['v']) if there else None
    if now not in may:
        wrong.append(f'{name}: {now} is there; answered were {log}, killed at {dead}')
    uids = {uid for at, _, value, uid in log if at is not None and value and uid}
    if there and uids and there['metadata']['uid'] not in uids:
        wrong.append(f'{name}: uid {there["metadata"]["uid"]}, was {uids}')


def one_round(server, first, sync):
    """Writes, kills; returns the writers' states and when it was."""
    writers = [Writer(i, first, server.port) for i in range(4)]
    for w in writers:
        w.start()
    for w in writers:
        w.answered.wait(30 * SCALE)
    time.sleep(random.uniform(0.1, 0.5) + (SLACK / 2 if sync == 'batch' else 0))
    dead = time.monotonic()
    server.kill()
    for w in writers:
        w.end = True
        w.join()
    return {k: v for w in writers for k, v in w.state.items()}, max(w.n for w in writers), dead


def check_round(server, state, dead, sync, high):
    c = http.client.HTTPConnection('127.0.0.1', server.port, timeout=30)
    status, all_of_them = request(c, 'GET', '/api/v1/namespaces/default/configmaps')
    there = {o['metadata']['name']: o for o in all_of_them['items']}
    for name, log in state.items():
        check(name, log, there.get(name), dead, sync)
    revision = int(all_of_them['metadata']['resourceVersion'])
    if revision < high:
        wrong.append(f'the server goes on at {revision}, {high} was given away')
    status, o = request(c, 'GET', f'/api/v1/configmaps?watch=1&resourceVersion={max(high - 1, 1)}')
    if o.get('object', o).get('code') != 410:
        wrong.append(f'a watch from before the kill: {status} {o}')
    c.close()
    return len(there)


def main():
    program, path, rounds, sync = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]
    server, first, answered, found = Server(program, path, sync), 0, 0, 0
    for _ in range(rounds):
        state, first, dead = one_round(server, first, sync)
        high = max((rv for log in state.values() for _, rv, _, _ in log), default=0)
        answered += sum(at is not None for log in state.values() for at, *_ in log)
        server = Server(program, path, sync)
        found = check_round(server, state, dead, sync, high)
    server.stop()
    for w in wrong[:20]:
        print(w)
    print(f'{rounds} kills, {answered} answers, {found} objects at the end')
    sys.exit(1 if wrong or answered < rounds else 0)


if __name__ == '__main__':
    main()
