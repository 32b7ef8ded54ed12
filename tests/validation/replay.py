#!/usr/bin/env python3
"""replay.py [--write] PORT: replays the recorded requests of this folder on an API server at 127.0.0.1:PORT, and compares its answers
with those of a kube-apiserver v1.36.2 (README.md). What differs has to be in known.txt, and nothing else; --write writes known.txt."""
import gzip
import http.client
import json
import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
KNOWN = os.path.join(HERE, "known.txt")
UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)")


def cases(name):
    with gzip.open(os.path.join(HERE, name), "rt") as f:
        yield from map(json.loads, f)


class Server:
    def __init__(self, port):
        self.port, self.conn = port, None

    def send(self, method, path, body=b"", ctype=""):
        headers = {"Accept": "application/json", **({"Content-Type": ctype} if ctype else {})}
        for again in (True, False):
            self.conn = self.conn or http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
            try:
                self.conn.request(method, path, body=body, headers=headers)
                r = self.conn.getresponse()
                return r.status, r.read()
            except (http.client.HTTPException, OSError):
                self.conn = None
                if not again:
                    raise

    def ask(self, case):
        body = raw(case["body"])
        if b'"$RV"' in body:
            _, now = self.send("GET", case["path"].split("?")[0])
            body = body.replace(b"$RV", json.loads(now)["metadata"]["resourceVersion"].encode())
        code, data = self.send(case["method"], case["path"], body, case["ctype"])
        try:
            return answer(case, code, json.loads(data))
        except ValueError:
            return {"code": code, "reason": "", "message": data.decode("utf8", "replace"), "causes": []}


def raw(body):
    """What is sent: {"$raw": TEXT} stands for TEXT."""
    if body is None:
        return b""
    return (body["$raw"] if isinstance(body, dict) and set(body) == {"$raw"} else json.dumps(body)).encode()


def text(s, sent):
    """s without what differs between two servers; what the request had in it stays."""
    s = re.sub(r'(resourceVersion\\?":\\?")\d+', r"\1<rv>", s)
    s = UUID.sub(lambda m: m.group() if m.group() in sent else "<uid>", s)
    fixed = lambda t: t in sent or t.startswith("2006-01-02T15:04:05")
    return TIME.sub(lambda m: m.group() if fixed(m.group()) else "<time>", s)


def plain(x, sent, key=""):
    if isinstance(x, dict):
        return {text(k, sent): plain(v, sent, k) for k, v in x.items()}
    if isinstance(x, list):
        return [plain(v, sent, key) for v in x]
    if isinstance(x, str):
        given = key in ("clusterIP", "clusterIPs") and x.startswith("10.") and x not in sent
        return "<ip>" if given else text(x, sent)
    if key in ("nodePort", "healthCheckNodePort") and isinstance(x, int) and x and str(x) not in sent:
        return "<port>"
    return x


def answer(case, code, body):
    sent = json.dumps(case["body"], ensure_ascii=False)
    meta = case["body"].get("metadata") if isinstance(case["body"], dict) else None
    prefix = meta.get("generateName") if isinstance(meta, dict) else None

    def words(s):
        s = text(s, sent)
        return re.sub(re.escape(prefix[:58]) + r"[a-z0-9]{5}\b", prefix[:58] + "<random>", s) if prefix else s

    e = {"code": code, "reason": "", "message": "", "causes": []}
    if code < 300 and body.get("kind") != "Status":
        e["spec"] = {k: v for k, v in plain(body, sent).items() if k not in ("metadata", "status")}
        return e
    e["reason"] = body.get("reason", "") if code >= 300 else body.get("status", "")
    e["message"] = words(body.get("message", ""))
    e["causes"] = [{"field": c.get("field", ""), "message": words(c.get("message", ""))}
                   for c in (body.get("details") or {}).get("causes") or []]
    return e


def spec(case, e):
    """No plugin gives pods a service account there."""
    spec = e.get("spec")
    if case["kind"] == "Pod" and spec:
        spec = {k: v for k, v in (spec.get("spec") or {}).items() if not k.startswith("serviceAccount")}
    return json.dumps(spec, sort_keys=True)


def difference(case, here):
    real = case["expected"]
    if (here["code"] < 300) != (real["code"] < 300):
        return "accepted" if here["code"] < 300 else "refused"
    if here["code"] < 300:
        return "" if spec(case, here) == spec(case, real) else "spec"
    if (here["code"], here["reason"]) != (real["code"], real["reason"]):
        return "code"
    if {c["field"] for c in here["causes"]} != {c["field"] for c in real["causes"]}:
        return "fields"
    if not real.get("unordered"):
        return "" if here["message"] == real["message"] else "text"
    causes = lambda e: sorted((c["field"], c["message"]) for c in e["causes"])
    return "" if causes(here) == causes(real) else "text"


def main():
    server, found, n = Server(int(sys.argv[-1])), {}, 0
    for w in cases("world.jsonl.gz"):
        code, data = server.send(w["method"], w["path"], raw(w["body"]), w["ctype"])
        if code >= 300 and code != 409:
            print("world:", code, w["method"], w["path"], data[:200])
            return 1
    for name in sorted(f for f in os.listdir(HERE) if f.endswith(".jsonl.gz") and f != "world.jsonl.gz"):
        for case in cases(name):
            n += 1
            why = difference(case, server.ask(case))
            if why:
                found[case["id"]] = why
    if "--write" in sys.argv:
        with open(KNOWN, "w") as f:
            f.writelines(f"{case} {why}\n" for case, why in found.items())
    known = dict(line.split() for line in open(KNOWN))
    for case in sorted({**known, **found}):
        if known.get(case) != found.get(case):
            print(f"{case}: differs in {found.get(case, 'nothing')}, known.txt: {known.get(case, 'nothing')}")
    print(f"{n} requests, {n - len(found)} answered as kube-apiserver does")
    return known != found or not n


if __name__ == "__main__":
    sys.exit(main())
