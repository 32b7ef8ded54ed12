# SPDX-License-Identifier: Apache-2.0
#
# tests/integration/client.py - a client library of another language against berth-simulator
#
# usage: client.py KUBECONFIG. One line per check, "N passed, N failed, N skipped" at the end.
import sys
import threading
import time

from kubernetes import client, config, dynamic, watch
from kubernetes.client.rest import ApiException

passed = failed = 0


def check(name, good, detail=""):
    global passed, failed
    if good:
        passed += 1
        print(f"ok     {name}")
    else:
        failed += 1
        print(f"not ok {name}\n    | {detail}")


def refused(name, code, reason, call):
    try:
        got = call()
    except ApiException as e:
        check(name, e.status == code and reason in e.body, f"{e.status} {e.body}")
        return
    check(name, False, f"no refusal: {got}")


def pod(name, **spec):
    return {"metadata": {"name": name, "labels": {"app": "py"}},
            "spec": {"containers": [{"name": "c", "image": "x",
                                     "resources": {"requests": {"cpu": "100m"}}}], **spec}}


def objects(core):
    made = core.create_namespaced_pod("default", pod("a"))
    check("create", made.status.phase == "Pending" and made.metadata.uid, made)
    core.create_namespaced_pod("default", pod("b"))
    refused("create again is refused", 409, "AlreadyExists",
            lambda: core.create_namespaced_pod("default", pod("a")))
    check("read", core.read_namespaced_pod("a", "default").spec.containers[0].image == "x")
    names = [p.metadata.name for p in core.list_namespaced_pod("default", label_selector="app=py").items]
    check("list with a selector", names == ["a", "b"], names)
    page = core.list_namespaced_pod("default", limit=1)
    rest = core.list_namespaced_pod("default", limit=1, _continue=page.metadata._continue)
    check("list in pages", [page.items[0].metadata.name, rest.items[0].metadata.name] == ["a", "b"])
    core.api_client.set_default_header("Content-Type", "application/strategic-merge-patch+json")
    got = core.patch_namespaced_pod("a", "default", {"metadata": {"labels": {"tier": "one"}}})
    check("patch, strategic merge", got.metadata.labels == {"app": "py", "tier": "one"}, got.metadata.labels)
    core.api_client.default_headers.pop("Content-Type")
    got = core.patch_namespaced_pod(
        "a", "default", [{"op": "replace", "path": "/metadata/labels/tier", "value": "two"}])
    check("patch, JSON patch", got.metadata.labels["tier"] == "two", got.metadata.labels)
    got.metadata.labels["tier"] = "three"
    stale = core.read_namespaced_pod("a", "default")
    check("replace", core.replace_namespaced_pod("a", "default", got).metadata.labels["tier"] == "three")
    refused("replace of an old version is refused", 409, "Conflict",
            lambda: core.replace_namespaced_pod("a", "default", stale))
    refused("an invalid object is refused", 422, "spec.containers",
            lambda: core.create_namespaced_pod("default", {"metadata": {"name": "n"}, "spec": {"containers": []}}))
    core.delete_namespaced_pod("b", "default")
    refused("deleted", 404, "NotFound", lambda: core.read_namespaced_pod("b", "default"))


def watching(core):
    seen, since = [], core.list_namespaced_config_map("default").metadata.resource_version
    w = watch.Watch()

    def follow():
        for e in w.stream(core.list_namespaced_config_map, "default", resource_version=since,
                          timeout_seconds=20):
            seen.append((e["type"], e["object"].metadata.name))
            if len(seen) == 3:
                w.stop()

    t = threading.Thread(target=follow)
    t.start()
    made = core.create_namespaced_config_map("default", {"metadata": {"name": "m"}, "data": {"a": "1"}})
    core.patch_namespaced_config_map("m", "default", {"data": {"a": "2"}})
    core.delete_namespaced_config_map("m", "default")
    t.join(30)
    want = [("ADDED", "m"), ("MODIFIED", "m"), ("DELETED", "m")]
    check("watch", seen == want, seen)
    again = []
    for e in w.stream(core.list_namespaced_config_map, "default",
                      resource_version=made.metadata.resource_version, timeout_seconds=20):
        again.append((e["type"], e["object"].metadata.name))
        if len(again) == 2:
            w.stop()
    check("a watch that resumes sees what came after its version", again == want[1:], again)
    try:
        for e in watch.Watch().stream(core.list_namespaced_config_map, "default", resource_version="1",
                                      timeout_seconds=5):
            check("a watch from too long ago ends with 410", False, e)
            return
        check("a watch from too long ago ends with 410", False, "it ended without a word")
    except ApiException as e:
        check("a watch from too long ago ends with 410", e.status == 410, e)


CRD = {
    "metadata": {"name": "widgets.example.com"},
    "spec": {
        "group": "example.com", "scope": "Namespaced",
        "names": {"plural": "widgets", "kind": "Widget", "singular": "widget"},
        "versions": [{
            "name": "v1", "served": True, "storage": True, "subresources": {"status": {}},
            "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                "spec": {"type": "object", "required": ["size"], "properties": {
                    "size": {"type": "integer", "minimum": 1}, "colour": {"type": "string", "default": "red"}}},
                "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}}}}]}}


def custom(api):
    ext, co = client.ApiextensionsV1Api(api), client.CustomObjectsApi(api)
    crd = ext.create_custom_resource_definition(CRD)
    check("a definition is established", any(
        c.type == "Established" and c.status == "True" for c in crd.status.conditions), crd.status)
    at = ("example.com", "v1", "default", "widgets")
    got = co.create_namespaced_custom_object(*at, {
        "apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"},
        "spec": {"size": 3, "nonsense": 1}})
    check("a custom object gets defaults and loses unknown fields",
          got["spec"] == {"size": 3, "colour": "red"}, got)
    refused("a custom object against its schema is refused", 422, "spec.size",
            lambda: co.create_namespaced_custom_object(*at, {
                "apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "x"},
                "spec": {"size": 0}}))
    got = co.patch_namespaced_custom_object(*at, "w", {"spec": {"size": 4}})
    check("patch of a custom object", got["spec"]["size"] == 4 and got["metadata"]["generation"] == 2, got)
    got = co.patch_namespaced_custom_object_status(*at, "w", {"status": {"ready": True}, "spec": {"size": 9}})
    check("its status", got["status"] == {"ready": True} and got["spec"]["size"] == 4, got)
    dyn = dynamic.DynamicClient(api)
    widgets = dyn.resources.get(api_version="example.com/v1", kind="Widget")
    items = widgets.get(namespace="default").items
    check("the dynamic client lists custom objects", [i.metadata.name for i in items] == ["w"])
    for e in widgets.watch(namespace="default", timeout=20):
        check("and watches them", (e["type"], e["object"].metadata.name) == ("ADDED", "w"), e)
        break
    nodes = dyn.resources.get(api_version="v1", kind="Node")
    nodes.create(body={"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}})
    got = nodes.patch(body={"spec": {"unschedulable": True}}, name="n1",
                      content_type="application/merge-patch+json")
    check("and writes built-in kinds, with a merge patch", got.spec.unschedulable is True, got)
    ext.delete_custom_resource_definition("widgets.example.com")
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        try:
            co.list_namespaced_custom_object(*at)
        except ApiException as e:
            check("with the definition its objects and paths are gone", e.status == 404, e)
            return
        time.sleep(0.05)
    check("with the definition its objects and paths are gone", False, "still served")


config.load_kube_config(sys.argv[1])
api = client.ApiClient()
objects(client.CoreV1Api(api))
watching(client.CoreV1Api(client.ApiClient()))
custom(client.ApiClient())
print(f"{passed} passed, {failed} failed, 0 skipped")
sys.exit(failed > 0)
