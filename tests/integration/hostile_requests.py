#!/usr/bin/env python3
"""Absurd requests to an API server: every one gets an answer below 500, and soon.

usage: hostile_requests.py SERVER   prints "METHOD path: what" for each that did not, and a count
"""
import http.client
import json
import random
import re
import sys
import urllib.parse

import hostile_objects

CLUSTER = {"nodes", "namespaces", "persistentvolumes", "storageclasses", "csinodes", "csidrivers",
           "volumeattachments", "priorityclasses", "resourceslices", "deviceclasses"}
PODS = "/api/v1/namespaces/default/pods"
JSON = "application/json"


def path_of(resource, version):
    base = "/api/v1" if version == "v1" else "/apis/" + version
    return base + ("/" if resource in CLUSTER else "/namespaces/default/") + resource


def objects():
    for resource, raw in hostile_objects.everything():
        raw = raw.replace('"resourceVersion":"@RV@",', "").replace(',"resourceVersion":"@RV@"', "")
        version = re.match(r'\{"apiVersion":"([^"]*)"', raw)
        yield "POST", path_of(resource, version.group(1) if version else "v1"), JSON, raw.encode("utf-8", "surrogatepass")


def bodies():
    good = json.dumps(hostile_objects.pod("victim"))
    yield "POST", PODS, JSON, good.replace('"resourceVersion": "@RV@", ', "").encode()
    for body in (b"", b"null", b"[]", b"{", b"\xff\xfe\x00", b"[" * 1000000, b'{"a":' * 1000000, good[:-9].encode(),
                 good.encode() + b"x" * 4000000, b"1" * 3000000, b'"' + b"\\u0000" * 100000 + b'"'):
        for kind in (JSON, "application/yaml", "application/vnd.kubernetes.protobuf"):
            yield "POST", PODS, kind, body
    bomb = "a: &a [x,x,x,x,x,x,x,x,x,x]\n" + "".join(
        "%c: &%c [%s]\n" % (98 + i, 98 + i, ",".join(["*%c" % (97 + i)] * 10)) for i in range(9))
    yield "POST", PODS, "application/yaml", bomb.encode()
    yield "POST", PODS, "application/yaml", b"a: &a [*a]\n"
    yield "POST", PODS, "application/yaml", b"- " * 100000
    random.seed(1)
    for n in (0, 1, 10, 1000, 100000):
        yield "POST", PODS, "application/vnd.kubernetes.protobuf", b"k8s\x00" + random.randbytes(n)
    yield "POST", PODS, "text/" + "x" * 5000, b"{}"


def patches():
    victim = PODS + "/victim"
    deep = '{"spec":' * 5000 + "1" + "}" * 5000
    for kind in ("application/json-patch+json", "application/merge-patch+json",
                 "application/strategic-merge-patch+json", "application/apply-patch+yaml"):
        for body in ("", "null", "[]", "{}", "{", deep, '[{"op":"copy","from":"","path":"/spec/x"}]',
                     json.dumps([{"op": "add", "path": "/metadata/labels", "value": {}}] +
                                [{"op": "copy", "from": "/metadata", "path": "/metadata/labels/a%d" % i} for i in range(40)]),
                     json.dumps([{"op": "test", "path": "/" + "a/" * 10000, "value": 1}] * 10),
                     '{"spec":{"containers":[{"$patch":"sometimes"}],"$setElementOrder/containers":7,"$retainKeys":{}}}',
                     json.dumps({"metadata": {"labels": {"l%d" % i: "v" for i in range(100000)}}}),
                     json.dumps({"metadata": {"managedFields": [{"fieldsV1": {"f:spec": {}}}] * 1000}})):
            yield "PATCH", victim + "?fieldManager=m", kind, body.encode()


def addresses():
    many = ",".join("a%d=b" % i for i in range(100000))
    for query in ("labelSelector=" + many, "labelSelector=((", "labelSelector=a+in+(" + "b," * 50000 + "b)",
                  "fieldSelector=" + many, "fieldSelector=x", "limit=-1", "limit=1e400", "limit=" + "9" * 400,
                  "continue=garbage", "continue=" + "A" * 100000, "resourceVersion=-1", "resourceVersion=x",
                  "resourceVersion=99999999999999999999999", "watch=true&timeoutSeconds=1&resourceVersion=x",
                  "watch=true&timeoutSeconds=-1&resourceVersion=1", "%", "%zz", "a=%00", "&&&=", "pretty=" + "t" * 5000):
        yield "GET", PODS + "?" + query, JSON, b""
    for path in ("/" * 5000, "/api/" + "x" * 60000, "/api/v1/namespaces/%2e%2e/pods", "/api/v1/../../etc/passwd",
                 PODS + "/" + "p" * 60000, PODS + "/%00", "/apis/" + "g/" * 2000, PODS + "/victim/binding/again"):
        yield "GET", path, JSON, b""
        yield "DELETE", path, JSON, b'{"gracePeriodSeconds":-5,"preconditions":{"uid":7}}'
    yield "BREW", PODS, JSON, b"{}"
    yield "POST", PODS + "/victim/binding", JSON, b'{"target":{"name":5}}'
    yield "POST", PODS + "/victim/binding", JSON, json.dumps({"target": {"kind": "Node", "name": "n" * 1000000}}).encode()
    yield "POST", PODS + "/victim/eviction", JSON, b'{"deleteOptions":[1]}'


def ask(server, method, path, kind, body):
    c = http.client.HTTPConnection(server.hostname, server.port, timeout=60)
    try:
        c.putrequest(method, path, skip_accept_encoding=True)
        c.putheader("Content-Type", kind)
        c.putheader("Content-Length", str(len(body)))
        c.endheaders()
        try:
            c.sock.sendall(body)
        except OSError:
            pass  # refused before it was read: the answer is there already
        return c.getresponse().status
    except http.client.HTTPException as e:
        return "no HTTP answer: %r" % e
    except ConnectionError as e:
        # a body far beyond the limit may cost the connection
        return 413 if len(body) > 3 << 20 else "no answer: %r" % e
    except OSError as e:
        return "no answer: %r" % e
    finally:
        c.close()


def main():
    server = urllib.parse.urlparse(sys.argv[1])
    total, wrong, codes = 0, 0, {}
    for source in (objects, bodies, patches, addresses):
        for method, path, kind, body in source():
            code = ask(server, method, path, kind, body)
            total += 1
            codes[code] = codes.get(code, 0) + 1
            if not isinstance(code, int) or code >= 500:
                wrong += 1
                print("%s %s (%s, %d bytes %r): %s" % (method, path[:80], kind[:40], len(body), body[:60], code))
    print("%d requests, %d wrong, %s" % (total, wrong, codes))
    sys.exit(wrong != 0)


if __name__ == "__main__":
    main()
