#!/usr/bin/env python3
"""Stands for a load watcher, Prometheus and an API server with metrics-server: says what a file says.

usage: metrics_source.py FILE PORTFILE      FILE: JSON by path (Prometheus: by query), read anew at each request; a number is a status code.
Prometheus' paths want the token "secret".
"""
import http.server
import json
import sys
import urllib.parse


class Source(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        url = urllib.parse.urlsplit(self.path)
        key = urllib.parse.parse_qs(url.query).get("query", [url.path])[0]
        with open(sys.argv[1], encoding="utf-8") as f:
            answer = json.load(f).get(key, 404)
        if url.path == "/api/v1/query" and self.headers.get("Authorization") != "Bearer secret":
            answer = 401
        body = json.dumps(answer).encode()
        self.send_response(answer if isinstance(answer, int) else 200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Source)
with open(sys.argv[2], "w", encoding="utf-8") as f:
    f.write(f"{server.server_port}\n")
server.serve_forever()
