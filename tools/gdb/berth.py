# gdb pretty-printers for Berth's strings, buffers, maps, symbols' records.
#   (gdb) source tools/gdb/berth.py
# struct bh_str, bh_buf    their text
# struct bh_map            key -> value, how many
# struct bh_umap           number -> number
# struct bh_node_rec, bh_pod_rec   their fields; slices of known type with their elements
# Text that is not UTF-8 is shown escaped; at most 200 bytes of a string and gdb's `print elements` of a map.
import gdb
import gdb.printing

TEXT_MAX = 200
# What a slice of a record holds: "text", or the type of its elements.
SLICES = {
    "bh_node_rec": {"labels": "struct bh_kv", "scalars": "struct bh_res", "features": "bh_sym"},
    "bh_pod_rec": {"name": "text", "uid": "text"},
}


def text_of(p, n):
    n = int(n)
    if int(p) == 0:
        return "NULL"
    raw = gdb.selected_inferior().read_memory(int(p), min(n, TEXT_MAX)).tobytes() if n else b""
    more = "... (%d bytes)" % n if n > TEXT_MAX else ""
    return '"%s"%s' % (raw.decode("utf-8", "backslashreplace").replace('"', '\\"'), more)


class Str:
    """struct bh_str, struct bh_buf: p and n"""

    def __init__(self, val):
        self.val = val

    def to_string(self):
        return text_of(self.val["p"], self.val["n"])


class Map:
    """struct bh_map: open addressing, a free slot has no key"""

    def __init__(self, val):
        self.val = val

    def to_string(self):
        return "bh_map of %d" % int(self.val["len"])

    def children(self):
        for i in range(int(self.val["cap"])):
            e = self.val["e"][i]
            if int(e["key"]):
                yield "key%d" % i, text_of(e["key"], e["key_len"])
                yield "value%d" % i, e["value"]

    def display_hint(self):
        return "map"


class UMap:
    """struct bh_umap: state 1 is a slot in use"""

    def __init__(self, val):
        self.val = val

    def to_string(self):
        return "bh_umap of %d" % int(self.val["len"])

    def children(self):
        for i in range(int(self.val["cap"])):
            if int(self.val["state"][i]) == 1:
                yield "key%d" % i, self.val["k"][i]
                yield "value%d" % i, self.val["v"][i]

    def display_hint(self):
        return "map"


class Record:
    """A record is one block: a head, fixed fields, and slices that point behind them."""

    def __init__(self, val):
        self.val = val
        self.slices = SLICES.get(val.type.strip_typedefs().tag, {})

    def to_string(self):
        return "%s of %d bytes" % (self.val.type.strip_typedefs().tag, int(self.val["h"]["size"]))

    def children(self):
        start = int(self.val.address) if self.val.address is not None else 0
        for f in self.val.type.fields():
            v = self.val[f.name]
            kind = self.slices.get(f.name)
            if kind and start and str(f.type.strip_typedefs()) == "struct bh_slice":
                at = start + int(v["off"])
                if kind == "text":
                    yield f.name, text_of(at, v["n"])
                    continue
                elem = gdb.lookup_type(kind)
                n = min(int(v["n"]), 50)
                if n:
                    yield f.name, gdb.Value(at).cast(elem.pointer()).dereference().cast(elem) if n == 1 else (
                        gdb.Value(at).cast(elem.array(n - 1).pointer()).dereference()
                    )
                else:
                    yield f.name, "{}"
            elif f.name not in ("h", "pad"):
                yield f.name, v


def printers():
    pp = gdb.printing.RegexpCollectionPrettyPrinter("berth")
    pp.add_printer("str", "^bh_(str|buf)$", Str)
    pp.add_printer("map", "^bh_map$", Map)
    pp.add_printer("umap", "^bh_umap$", UMap)
    pp.add_printer("record", "^bh_(node|pod)_rec$", Record)
    return pp


gdb.printing.register_pretty_printer(gdb.current_objfile(), printers(), replace=True)
