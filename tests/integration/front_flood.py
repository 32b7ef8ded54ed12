#!/usr/bin/env python3
"""Strangers at the HTTPS port, and the API server that is asked about them.

front_flood.py api FILE           the API server; its port goes to FILE. Tokens: good-* are root's, slow-* are
                                  answered after 0.2 s, stuck-* never, user-* are alice's, others nobody's. GET /stats
front_flood.py <attack> PORT ...  see the functions; says what happened, exits 1 when it should not have
"""
import asyncio
import http.client
import json
import os
import selectors
import socket
import ssl
import sys
import time

LONG = float(os.environ.get("BH_TEST_TIMEOUT_SCALE", "1")) * 300


# ---- the API server ------------------------------------------------------------------------------------------------
stats = {"asked": 0, "open": 0, "most": 0, "left": 0}


async def review(reader, head):
    n = next((int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length")), 0)
    body = json.loads(await reader.readexactly(n))
    token = body["spec"].get("token", "")
    stats["asked"] += 1
    stats["open"] += 1
    stats["most"] = max(stats["most"], stats["open"])
    try:
        if token.startswith("stuck-") or "/stuck" in json.dumps(body):
            await reader.read(1)  # until the client leaves
            stats["left"] += 1
            return None
        if token.startswith("slow-"):
            await asyncio.sleep(0.2)
    finally:
        stats["open"] -= 1
    kind = {"apiVersion": body["apiVersion"], "kind": body["kind"]}
    if token.startswith("good-"):
        return {**kind, "status": {"authenticated": True, "user": {"username": "root", "groups": ["system:masters"]}}}
    if token.startswith("user-"):
        return {**kind, "status": {"authenticated": True, "user": {"username": "alice"}}}
    return {**kind, "status": {"authenticated": False, "allowed": False}}


async def serve(reader, writer):
    try:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            if head.startswith(b"GET /stats?reset"):
                stats["most"] = stats["open"]
            answer = stats if head.startswith(b"GET /stats") else await review(reader, head) if head.startswith(b"POST") else {}
            if answer is None:
                break
            text = json.dumps(answer).encode()
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(text) + text)
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    writer.close()


async def api(path):
    server = await asyncio.start_server(serve, "127.0.0.1", 0, backlog=1000)
    with open(path + ".new", "w") as f:
        f.write(str(server.sockets[0].getsockname()[1]))
    os.rename(path + ".new", path)
    await asyncio.Event().wait()


def api_stats(port, query=""):
    c = http.client.HTTPConnection("127.0.0.1", int(port), timeout=LONG)
    c.request("GET", "/stats" + query)
    return json.load(c.getresponse())


def wait_stats(port, test):
    end = time.monotonic() + LONG
    while not test(s := api_stats(port)):
        if time.monotonic() > end:
            sys.exit(f"the API server saw {s}")
        time.sleep(0.05)
    return s


# ---- clients -------------------------------------------------------------------------------------------------------
context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
context.check_hostname = False
context.verify_mode = ssl.CERT_NONE


def plain(port, source="127.0.0.1"):
    return socket.create_connection(("127.0.0.1", int(port)), timeout=LONG, source_address=(source, 0))


def tls(port, source="127.0.0.1"):
    return context.wrap_socket(plain(port, source))


def request(token, path="/metrics"):
    return f"GET {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n\r\n".encode()


def answer(s):
    """All of an answer's head, b"" when the connection ended."""
    got = b""
    try:
        while b"\r\n\r\n" not in got:
            part = s.recv(65536)
            if not part:
                break
            got += part
    except (ConnectionError, ssl.SSLError):
        pass
    return got


def code(got):
    return int(got.split()[1]) if got else 0


def ask(port, token, source="127.0.0.1", path="/metrics"):
    with tls(port, source) as s:
        s.sendall(request(token, path))
        return code(answer(s))


# ---- attacks -------------------------------------------------------------------------------------------------------
def rss(pid):
    with open(f"/proc/{pid}/status") as f:
        return next(int(line.split()[1]) for line in f if line.startswith("VmRSS"))


def tokens(port, pid, n="4000", bound="32"):
    """Clients with a long token each that do not wait for the answer, while the API server says nothing."""
    before = most = rss(pid)
    for i in range(int(n)):
        try:
            with tls(port) as s:
                s.sendall(request(f"stuck-{i}-" + "x" * 7000))
        except OSError:
            pass
        if i % 100 == 0:
            most = max(most, rss(pid))
    most = max(most, rss(pid))
    print(f"{n} tokens: {before} -> {most} KiB")
    sys.exit(most - before > int(bound) * 1024)


def bound(port, api_port, path=None):
    """100 clients of 5 addresses, each with a question of its own that the API server never answers."""
    wait_stats(api_port, lambda s: s["open"] == 0)
    seen = api_stats(api_port, "?reset")
    with selectors.DefaultSelector() as waiting:
        for i in range(100):
            s = tls(port, f"127.0.0.{2 + i % 5}")
            s.sendall(request(f"user-{i % 5}", f"{path}-{i}") if path else request(f"stuck-{os.getpid()}-{i}"))
            waiting.register(s, selectors.EVENT_READ)
        wait_stats(api_port, lambda s: s["open"] >= 16)
        while len(waiting.get_map()) > 16:  # those that are with the API server
            for key, _ in waiting.select(LONG) or sys.exit(f"{len(waiting.get_map())} wait"):
                got = answer(key.fileobj)
                if code(got) != 429 or b"\r\nretry-after: 1\r\n" not in got.lower():
                    sys.exit(f"somebody got {got!r}")
                waiting.unregister(key.fileobj)
                key.fileobj.close()
        s = api_stats(api_port)
        print(f"at most {s['most']} at once, {len(waiting.get_map())} wait, the others were sent away")
        if s["most"] > 16:
            sys.exit(1)
        for key in list(waiting.get_map().values()):
            key.fileobj.close()
    s = wait_stats(api_port, lambda s: s["open"] == 0)
    print(f"{s['left'] - seen['left']} were taken back when their clients left")


def shared(port, api_port):
    """20 clients with one token: one question, that ends with the last of them."""
    seen = api_stats(api_port)
    clients = [tls(port) for _ in range(20)]
    for c in clients:
        c.sendall(request(f"stuck-shared-{os.getpid()}"))
    wait_stats(api_port, lambda s: s["open"] == 1)
    for c in clients[1:]:
        c.close()
    if ask(port, "good-between") != 200:  # whatever the departures caused is through
        sys.exit("no answer in between")
    s = api_stats(api_port)
    if s["open"] != 1 or s["asked"] != seen["asked"] + 2:
        sys.exit(f"{seen} -> {s}")
    clients[0].close()
    wait_stats(api_port, lambda s: s["open"] == 0)
    print("one question for 20 clients, taken back with the last")


def valid(port, api_port):
    """A flood of slow made-up tokens, while good ones come from the same address, another one, and from memory."""
    if ask(port, "good-known") != 200:
        sys.exit("no answer without a flood")
    flood = [tls(port) for _ in range(24)]
    for i, c in enumerate(flood):
        c.sendall(request(f"slow-{i}"))
    n = 24
    for i in range(20):
        for name, token, source in (("known", "good-known", "127.0.0.1"), ("new", f"good-{i}", "127.0.0.1"),
                                    ("other", f"good-other-{i}", "127.0.0.9")):
            if (got := ask(port, token, source)) != 200:
                sys.exit(f"{name} got {got} in round {i}")
        for k, c in enumerate(flood):
            c.settimeout(0.001)
            try:
                answer(c)
            except TimeoutError:
                continue
            c.settimeout(LONG)
            c.sendall(request(f"slow-{n}"))
            n += 1
    print(f"60 good tokens among {n}")


def dripping(port, n="512"):
    """Connections that send a byte now and then, as many as one host may think of, and a probe."""
    held, refused = [], 0
    for i in range(int(n)):
        try:
            s = plain(port)
            s.settimeout(0.01)
            s = context.wrap_socket(s, do_handshake_on_connect=False)
            s.setblocking(False)
            held.append(s)
            s.do_handshake()
        except (OSError, ssl.SSLError):
            refused += 1

    def drip():
        alive = []
        for s in held:
            try:
                try:
                    s.do_handshake()
                    s.send(b"G")
                except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
                    pass
                if not closed(s):
                    alive.append(s)
            except OSError:
                pass
        return alive

    held = drip()
    most = len(held)
    answered = 0
    end = time.monotonic() + LONG
    while held and time.monotonic() < end:
        for path in ("/livez", "/healthz?verbose", "/readyz"):
            got = probe(port, path)
            if got not in (200, 500):
                sys.exit(f"{path} got {got} while {len(held)} dripped")
            answered += 1
        time.sleep(0.2)
        held = drip()
    print(f"{answered} probes answered, {most} of {n} connections held at the start, {len(held)} at the end")
    sys.exit(bool(held))


def closed(s):
    d = socket.socket(fileno=os.dup(s.fileno()))
    try:
        return d.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT) == b""
    except BlockingIOError:
        return False
    except OSError:
        return True
    finally:
        d.close()


def probe(port, path):
    with tls(port) as s:
        s.sendall(f"GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
        return code(answer(s))


def crowd(port):
    """32 connections of one address: the next is for probes; another address is as before."""
    held = [tls(port) for _ in range(32)]
    if (got := probe(port, "/livez")) != 200:
        sys.exit(f"the probe got {got}")
    if (got := probe(port, "/metrics")) != 503:
        sys.exit(f"the reserve answered /metrics with {got}")
    if (got := ask(port, "good-1", "127.0.0.77")) != 200:
        sys.exit(f"another address got {got}")
    held.pop().close()
    end = time.monotonic() + LONG
    while (got := ask(port, "good-1")) != 200:  # the server may not have noticed yet
        if time.monotonic() > end:
            sys.exit(f"room was made, and /metrics got {got}")
    print("32, a probe, and another address")


def crowd_from_afar(port):
    """33 connections of an address that is not loopback: the reserve is not for them."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        try:
            s.connect(("192.0.2.1", 9))
        except OSError:
            pass
        me = s.getsockname()[0]
    if me.startswith(("127.", "0.")):
        print("no address")
        return
    there = [socket.create_connection((me, int(port)), timeout=LONG) for _ in range(33)]
    ended = there[32].recv(1) == b""
    print("32, no probe" if ended and context.wrap_socket(there[0]) else "33")


def slow(port):
    """Who says nothing, or not all, is not waited for; in the handshake, before the head, within it, within the body."""
    start = time.monotonic()
    s = [plain(port), tls(port), tls(port), tls(port)]
    s[2].sendall(b"GET /livez HTTP/1.1\r\nHost: x\r\n")
    ask_livez = b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n"
    s[3].sendall(ask_livez)
    if code(answer(s[3])) != 200:
        sys.exit("no answer")
    s[3].sendall(b"G")
    for c in s:
        if answer(c):
            sys.exit("an answer to nothing")
    print(f"all ended after {time.monotonic() - start:.0f} s")


def shapes(port):
    """Requests that two readers would read differently."""
    get = b"GET /livez HTTP/1.1\r\n"
    put = b"PUT /debug/flags/v HTTP/1.1\r\nHost: x\r\n"
    bad = {
        "two Content-Lengths": put + b"Content-Length: 1\r\nContent-Length: 1\r\n\r\n4",
        "two that differ": put + b"Content-Length: 1\r\nContent-Length: 30\r\n\r\n4",
        "a list of lengths": put + b"Content-Length: 1, 1\r\n\r\n4",
        "a length with a sign": put + b"Content-Length: +1\r\n\r\n4",
        "length and chunks": put + b"Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n4\r\n0\r\n\r\n",
        "chunks and length": put + b"Transfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\n1\r\n4\r\n0\r\n\r\n",
        "chunked twice": put + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "another coding": put + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
        "bare LF": b"GET /livez HTTP/1.1\nHost: x\n\n",
        "bare LF in a header": get + b"Host: x\nA: b\r\n\r\n",
        "bare LF at the end": get + b"Host: x\r\n\n",
        "a folded line": get + b"Host: x\r\nA: b\r\n c\r\n\r\n",
        "a folded line with a tab": get + b"Host: x\r\nA: b\r\n\tc\r\n\r\n",
        "no Host": get + b"\r\n",
        "two Hosts": get + b"Host: x\r\nHost: x\r\n\r\n",
        "a blank before the colon": get + b"Host: x\r\nContent-Length : 0\r\n\r\n",
        "a NUL": get + b"Host: x\r\nA: b\0c\r\n\r\n",
        "a bare CR": get + b"Host: x\r\nA: b\rc\r\n\r\n",
        "two blanks": b"GET  /livez HTTP/1.1\r\nHost: x\r\n\r\n",
        "a chunk too long": put + b"Transfer-Encoding: chunked\r\n\r\n1\r\n44\r\n0\r\n\r\n",
    }
    # Wherever such a body ends: nothing behind it is a request.
    last = {
        "a length": put + b"Content-Length: 1\r\n\r\n4",
        "chunks": put + b"Transfer-Encoding: chunked\r\n\r\n1\r\n4\r\n0\r\n\r\n",
        "a chunk with LF": put + b"Transfer-Encoding: chunked\r\n\r\n1\n4\r\n0\r\n\r\n",
        "a trailer with LF": put + b"Transfer-Encoding: chunked\r\n\r\n0\r\nA: b\n\r\n\r\n",
    }
    wrong = []
    for name, text in bad.items():
        with tls(port) as s:
            s.sendall(text)
            got = answer(s)
            if code(got) != 400:
                wrong.append(f"{name}: {got[:60]!r}")
        # behind a good one, in the same record
        with tls(port) as s:
            s.sendall(get + b"Host: x\r\n\r\n" + text)
            got = answer(s)
            while part := s.recv(65536):
                got += part
            if got.count(b"HTTP/1.1 200") != 1 or got.count(b"HTTP/1.1 400") != 1:
                wrong.append(f"{name}, behind a good one: {got[:200]!r}")
    for name, text in last.items():
        with tls(port) as s:
            s.sendall(text + get + b"Host: x\r\n\r\n")
            got = b""
            while part := s.recv(65536):
                got += part
            if got.count(b"HTTP/1.1 ") != 1:
                wrong.append(f"{name}, a good one behind it: {got[:200]!r}")
    for line in wrong:
        print(line)
    print(f"{len(bad) + len(last)} shapes, {len(wrong)} taken for requests")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    if sys.argv[1] == "api":
        asyncio.run(api(sys.argv[2]))
    else:
        globals()[sys.argv[1]](*sys.argv[2:])
