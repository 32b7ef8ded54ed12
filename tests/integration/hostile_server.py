#!/usr/bin/env python3
"""A fake API server that says what no real one would: tests/integration/hostile.sh.

Serves lists and watches of hostile objects (made by hostile_objects.py) together with a few good ones,
takes bindings, and answers every other write with 200. What is not JSON is sent as it is.

usage: hostile_server.py KUBECONFIG-OUT
  POST /test/RESOURCE   the body, as it is, becomes an ADDED event (pods, nodes ...)
  POST /test/garbage    the body, as it is, goes into every watch stream of pods, which then ends
  GET  /test/bound      names of pods with a node, a line each
"""
import json
import re
import socketserver
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import hostile_objects

lock = threading.Condition()
store = {}  # resource -> {key: raw text}
events = {}  # resource -> [(version or 0 for rubbish, raw text of a watch event)]
version = [100]


def key_of(raw):
    """Namespace and name, found without a parser: the object may not be JSON."""
    name = re.search(r'"name": ?"([^"]*)"', raw)
    ns = re.search(r'"namespace": ?"([^"]*)"', raw)
    return (ns.group(1) if ns else "", name.group(1) if name else raw[:100])


def put(resource, raw, kind="ADDED"):
    with lock:
        version[0] += 1
        raw = raw.replace("@RV@", str(version[0]))
        store.setdefault(resource, {})[key_of(raw)] = raw
        events.setdefault(resource, []).append((version[0], '{"type":"%s","object":%s}\n' % (kind, raw)))
        lock.notify_all()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def reply(self, code, text):
        data = text.encode("utf-8", "surrogateescape")
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def chunk(self, text):
        data = text.encode("utf-8", "surrogateescape")
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self.wfile.flush()

    def body(self):
        return self.rfile.read(int(self.headers.get("Content-Length", 0))).decode("utf-8", "surrogateescape")

    def do_GET(self):
        path, _, query = self.path.partition("?")
        resource = path.rsplit("/", 1)[-1]
        if path == "/test/bound":
            with lock:
                pods = list(store.get("pods", {}).values())
            found = [key_of(p)[1] for p in pods if '"nodeName"' in p]
            self.reply(200, "".join(n[:200] + "\n" for n in found))
        elif path == "/version":
            self.reply(200, '{"major":"1","minor":"36","gitVersion":"v1.36.0"}')
        elif "watch=true" in query:
            since = re.search(r"resourceVersion=(\d+)", query)
            self.watch(resource, int(since.group(1)) if since else 0)
        elif resource in hostile_objects.RESOURCES:
            with lock:
                items = ",".join(store.get(resource, {}).values())
                rv = version[0]
            self.reply(200, '{"kind":"%sList","apiVersion":"v1","metadata":{"resourceVersion":"%d"},"items":[%s]}' % (
                hostile_objects.RESOURCES[resource], rv, items))
        else:
            self.reply(404, '{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}')

    def watch(self, resource, since):
        with lock:
            at = len(events.get(resource, []))
            new = [e for v, e in events.get(resource, []) if v > since]
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        try:
            while True:
                for e in new:
                    self.chunk(e)
                    if not e.endswith("}\n"):
                        self.chunk("")
                        return
                with lock:
                    lock.wait_for(lambda: len(events.get(resource, [])) > at, timeout=5)
                    new = [e for _, e in events.get(resource, [])[at:]]
                    at += len(new)
                    rv = version[0]
                if not new:
                    self.chunk('{"type":"BOOKMARK","object":{"kind":"Pod","apiVersion":"v1","metadata":{"resourceVersion":"%d"}}}\n' % rv)
        except OSError:
            pass

    def do_POST(self):
        text = self.body()
        binding = re.match(r"/api/v1/namespaces/([^/]+)/pods/([^/]+)/binding", self.path)
        if self.path == "/test/garbage":
            with lock:
                events.setdefault("pods", []).append((0, text))
                lock.notify_all()
            self.reply(200, "")
        elif self.path.startswith("/test/"):
            put(self.path.rsplit("/", 1)[-1], text)
            self.reply(200, "")
        elif binding:
            self.bind(binding.groups(), json.loads(text)["target"]["name"])
        else:
            self.reply(201, text or "{}")

    def bind(self, key, node):
        with lock:
            raw = store.get("pods", {}).get(tuple(key))
        if raw is None or '"nodeName"' in raw:
            self.reply(409, '{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Conflict","code":409}')
            return
        raw = re.sub(r'"resourceVersion": ?"\d+"', '"resourceVersion":"@RV@"', raw, count=1)
        put("pods", raw.replace('"spec":{', '"spec":{"nodeName":"%s",' % node, 1), "MODIFIED")
        self.reply(201, '{"kind":"Status","apiVersion":"v1","status":"Success","code":201}')

    def do_PATCH(self):
        self.body()
        self.reply(200, "{}")

    do_PUT = do_DELETE = do_PATCH


class Server(ThreadingHTTPServer):
    def server_bind(self):
        # HTTPServer's asks a name server for ours, and waits half a minute where there is none
        socketserver.TCPServer.server_bind(self)


def main():
    for resource, raw in hostile_objects.everything():
        put(resource, raw)
    server = Server(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    with open(sys.argv[1], "w", encoding="utf-8") as f:
        f.write("""apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "http://127.0.0.1:%d"}}]
users: [{name: u, user: {}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
current-context: x
""" % server.server_address[1])
    server.serve_forever()


if __name__ == "__main__":
    main()
