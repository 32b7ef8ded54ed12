#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Random modules, run by `berth wasm run` and by another engine: the same result, or the same trap.

usage: tests/wasm/differential.py [--bin build/bin] [--seed N] [--count N] [--compiled-each N] [--keep DIR]

A seed makes a module: functions that call earlier ones, with arithmetic, memory, globals, blocks, loops that end,
branches with values. Its main() folds results, memory and globals into one i64. NaNs are made canonical before
their bits can be seen, because engines may choose them. The other engine is Node's, else wabt's wasm-interp. Where there is a C compiler, one
module of N (--compiled-each, 4) is compiled by `berth wasmc` as well, and has to do the same.
Prints each difference with its seed, and "N passed, N failed, N skipped" (one test a module).
"""
import argparse
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile

TYPES = ["i32", "i64", "f32", "f64"]
INTS = {"i32": [0, 1, 2, 3, 7, 8, 31, 32, 33, 255, 32767, -32768, 40000, 65535, 65536, -1, -2, 2147483647, -2147483648],
        "i64": [0, 1, 2, 63, 64, 65, 255, -1, -32769, 4294967295, 4294967296, -2147483649, 2**63 - 1, -2**63]}
FLOATS = ["0", "-0", "1", "-1", "0.5", "2.5", "-3.5", "1e10", "-1e10", "4294967295", "2147483648", "-2147483649",
          "9223372036854775808", "1e-40", "inf", "-inf", "nan"]
INT_BINARY = "add sub mul and or xor shl shr_s shr_u rotl rotr".split()
INT_DIVIDE = "div_s div_u rem_s rem_u".split()
INT_COMPARE = "eq ne lt_s lt_u gt_s gt_u le_s le_u ge_s ge_u".split()
FLOAT_BINARY = "add sub mul div min max".split()
FLOAT_COMPARE = "eq ne lt gt le ge".split()
FLOAT_UNARY = "abs neg ceil floor trunc nearest sqrt".split()
CONVERT = {
    "i32": ["i32.wrap_i64 i64"] + [f"i32.trunc_sat_{f}_{s} {f}" for f in ("f32", "f64") for s in "su"],
    "i64": ["i64.extend_i32_s i32", "i64.extend_i32_u i32"] + [f"i64.trunc_sat_{f}_{s} {f}" for f in ("f32", "f64") for s in "su"],
    "f32": [f"f32.convert_{i}_{s} {i}" for i in ("i32", "i64") for s in "su"] + ["f32.demote_f64 f64", "f32.reinterpret_i32 i32"],
    "f64": [f"f64.convert_{i}_{s} {i}" for i in ("i32", "i64") for s in "su"] + ["f64.promote_f32 f32", "f64.reinterpret_i64 i64"],
}
TRAPPING = {"i32": ["i32.trunc_f32_s f32", "i32.trunc_f64_u f64"], "i64": ["i64.trunc_f64_s f64", "i64.trunc_f32_u f32"]}
LOADS = {"i32": ["load", "load8_s", "load8_u", "load16_s", "load16_u"],
         "i64": ["load", "load8_s", "load8_u", "load16_s", "load16_u", "load32_s", "load32_u"], "f32": ["load"], "f64": ["load"]}
STORES = {"i32": ["store", "store8", "store16"], "i64": ["store", "store8", "store16", "store32"], "f32": ["store"], "f64": ["store"]}


class Function:
    def __init__(self, module, number):
        self.m, self.r, self.number = module, module.r, number
        self.params = [self.r.choice(TYPES) for _ in range(self.r.randrange(4))]
        self.results = [self.r.choice(TYPES) for _ in range(1 if self.r.random() < 0.8 else 2)]
        self.locals = self.params + [self.r.choice(TYPES) for _ in range(self.r.randrange(1, 6))]
        self.loops = 0
        self.labels = []  # innermost last: types of their values
        body = [self.statement(3) for _ in range(self.r.randrange(1, 6))] + [self.expression(t, 4) for t in self.results]
        counters = ["i32"] * self.loops
        head = f"(func $f{number} {self.sig()} (local {' '.join(self.locals[len(self.params):] + counters)})"
        for i in range(self.loops):  # counters have names of their own place
            body = [b.replace(f"@{i}@", str(len(self.locals) + i)) for b in body]
        self.text = head + "\n  " + "\n  ".join(body) + ")"

    def sig(self):
        return f"(param {' '.join(self.params)}) (result {' '.join(self.results)})"

    def local(self, t):
        found = [i for i, has in enumerate(self.locals) if has == t]
        return self.r.choice(found) if found else None

    def constant(self, t):
        return f"({t}.const {self.r.choice(INTS[t] if t in INTS else FLOATS)})"

    def address(self, depth):
        if self.r.random() < 0.02:
            return self.expression("i32", depth)
        return f"(i32.and {self.expression('i32', depth)} (i32.const 1023))"

    def offset(self):
        return self.r.choice(["", "", " offset=4", " offset=100"])

    def canonical(self, t, depth):
        e = self.expression(t, depth)
        return f"(call $canonical_{t} {e})" if t[0] == "f" else e

    def expression(self, t, depth):
        r = self.r.random
        x = self.local(t)
        if depth <= 0 or r() < 0.15:
            return f"(local.get {x})" if x is not None and r() < 0.6 else self.constant(t)
        d = depth - 1
        kind = self.r.choice(["binary"] * 6 + ["unary", "convert", "convert", "load", "select", "if", "block", "tee", "call", "global",
                                            "trap", "divide", "late", "loop"])
        if kind == "tee" and x is not None:
            return f"(local.tee {x} {self.expression(t, d)})"
        if kind == "late" and x is not None:  # the local is read, and then written
            return (f"(block (result {t}) (local.get {x}) (local.set {x} {self.expression(t, d)}) (local.get {x}) "
                    f"({t}.{self.r.choice(['add', 'sub', 'mul'])}))")
        if kind == "load":
            return f"({t}.{self.r.choice(LOADS[t])}{self.offset()} {self.address(d)})"
        if kind == "select":
            return f"(select {self.expression(t, d)} {self.expression(t, d)} {self.condition(d)})"
        if kind == "if":
            return f"(if (result {t}) {self.condition(d)} (then {self.inside([], t, d)}) (else {self.inside([], t, d)}))"
        if kind == "block":
            return f"(block (result {t}) {self.inside([t], t, d, True)})"
        if kind == "loop":
            return self.loop(t, d)
        if kind == "call" and self.m.functions:
            f = self.r.choice(self.m.functions)
            args = " ".join(self.expression(p, d - 1) for p in f.params)
            drops = "(drop) " * (len(f.results) - 1)
            return f"(block (result {f.results[0]}) (call $f{f.number} {args}) {drops})" if f.results[0] == t else self.constant(t)
        if kind == "global":
            return f"(global.get $g{t})"
        if kind == "convert" or (kind == "trap" and r() < 0.9):
            op, source = self.r.choice(CONVERT[t]).split()
            return f"({op} {self.canonical(source, d) if 'reinterpret' in op else self.expression(source, d)})"
        if kind == "trap" and t in TRAPPING:
            op, source = self.r.choice(TRAPPING[t]).split()
            return f"({op} {self.expression(source, d)})"
        return self.number_expression(t, d, kind)

    def number_expression(self, t, d, kind):
        if t[0] == "f":
            if kind == "unary":
                return f"({t}.{self.r.choice(FLOAT_UNARY)} {self.expression(t, d)})"
            if kind == "divide":
                return f"({t}.copysign {self.expression(t, d)} {self.canonical(t, d)})"
            return f"({t}.{self.r.choice(FLOAT_BINARY)} {self.expression(t, d)} {self.expression(t, d)})"
        if kind == "unary":
            return f"({t}.{self.r.choice(['clz', 'ctz', 'popcnt', 'extend8_s', 'extend16_s'])} {self.expression(t, d)})"
        if kind == "divide":
            by = self.expression(t, d)
            if self.r.random() < 0.95:
                by = f"({t}.or {by} ({t}.const 2))"
            return f"({t}.{self.r.choice(INT_DIVIDE)} {self.expression(t, d)} {by})"
        if t == "i32" and self.r.random() < 0.3:
            return self.condition(d)
        return f"({t}.{self.r.choice(INT_BINARY)} {self.expression(t, d)} {self.expression(t, d)})"

    def condition(self, depth):
        t = self.r.choice(TYPES)
        if t[0] == "i" and self.r.random() < 0.3:
            return f"({t}.eqz {self.expression(t, depth - 1)})"
        return f"({t}.{self.r.choice(INT_COMPARE if t[0] == 'i' else FLOAT_COMPARE)} {self.expression(t, depth - 1)} {self.expression(t, depth - 1)})"

    def inside(self, label, t, d, branches=False):
        """The inside of a block that leaves a t; with branches out of it, which carry the value."""
        self.labels.append(label)
        parts = [self.statement(d - 1) for _ in range(self.r.randrange(2))]
        if branches:
            parts.append(f"(drop (br_if 0 {self.expression(t, d)} {self.condition(d)}))")
            if self.r.random() < 0.3:
                parts.append(f"{self.constant('i32')} {self.expression(t, d)} (br_if 0 {self.condition(d)}) (drop) (drop)")
            if self.r.random() < 0.2:
                parts.append(f"(br_table 0 0 {self.expression(t, d)} {self.expression('i32', d)})")
        parts.append(self.expression(t, d))
        self.labels.pop()
        return " ".join(parts)

    def loop(self, t, d):
        counter = f"@{self.loops}@"
        self.loops += 1
        self.labels.append([])
        body = " ".join(self.statement(d - 1) for _ in range(self.r.randrange(1, 3)))
        self.labels.pop()
        test = self.r.choice([f"(local.tee {counter} (i32.sub (local.get {counter}) (i32.const 1)))",
                              f"(i32.gt_s (local.tee {counter} (i32.sub (local.get {counter}) (i32.const 1))) (i32.const 0))",
                              f"(i32.ne (i32.const 0) (local.tee {counter} (i32.sub (local.get {counter}) (i32.const 1))))"])
        return (f"(local.set {counter} (i32.const {self.r.randrange(1, 5)})) {self.expression(t, d - 1)} "
                f"(loop (param {t}) (result {t}) {body} {self.expression(t, d - 1)} "
                f"({t}.{self.r.choice(['add', 'sub', 'mul'])}) (br_if 0 {test}))")

    def statement(self, depth):
        t = self.r.choice(TYPES)
        d = max(depth, 1)
        kind = self.r.choice(["set", "set", "set", "store", "store", "global", "if", "block", "fill", "copy", "table", "loop"])
        x = self.local(t)
        if kind == "set" and x is not None:
            return f"(local.set {x} {self.expression(t, d)})"
        if kind == "global":
            return f"(global.set $g{t} {self.expression(t, d)})"
        if kind == "if" and depth > 0:
            return f"(if {self.condition(d)} (then {self.statement(d - 1)}) (else {self.statement(d - 1)}))"
        if kind == "block" and depth > 0:
            return f"(block (br_if 0 {self.condition(d)}) {self.statement(d - 1)} (br_if 0 {self.expression('i32', d - 1)}) {self.statement(d - 1)})"
        if kind == "table" and depth > 0:
            return (f"(block (block (block (br_table 0 1 2 1 {self.expression('i32', d - 1)})) {self.statement(d - 1)}) "
                    f"{self.statement(d - 1)})")
        if kind == "loop" and depth > 0:
            return f"(drop (block (result {t}) {self.loop(t, d)}))"
        if kind == "fill":
            return f"(memory.fill {self.address(d - 1)} {self.expression('i32', d - 1)} (i32.const {self.r.randrange(64)}))"
        if kind == "copy":
            return f"(memory.copy {self.address(d - 1)} {self.address(d - 1)} (i32.const {self.r.randrange(64)}))"
        return f"({t}.{self.r.choice(STORES[t])}{self.offset()} {self.address(d - 1)} {self.canonical(t, d - 1)})"


class Module:
    def __init__(self, seed):
        self.r = random.Random(seed)
        self.functions = []
        for i in range(self.r.randrange(1, 6)):
            self.functions.append(Function(self, i))

    def text(self):
        fold = "(local.set 0 (i64.add (i64.rotl (local.get 0) (i64.const 7)) {}))"
        as_i64 = {"i32": "(i64.extend_i32_u {})", "i64": "{}", "f32": "(i64.extend_i32_u (i32.reinterpret_f32 (call $canonical_f32 {})))",
                  "f64": "(i64.reinterpret_f64 (call $canonical_f64 {}))"}
        main = ["(func (export \"main\") (result i64) (local i64 i32 i32 i64 f32 f64)"]
        for f in self.functions:
            for _ in range(2):
                main.append(f"(call $f{f.number} {' '.join(Function.constant(f, p) for p in f.params)})")
                main += [f"(local.set {2 + TYPES.index(t)})\n" + fold.format(as_i64[t].format(f"(local.get {2 + TYPES.index(t)})"))
                         for t in reversed(f.results)]
        main += [fold.format(as_i64[t].format(f"(global.get $g{t})")) for t in TYPES]
        main.append("(loop " + fold.format("(i64.load (local.get 1))") +
                    " (br_if 0 (i32.lt_u (local.tee 1 (i32.add (local.get 1) (i32.const 8))) (i32.const 1200)))) (local.get 0))")
        canon = "".join(f"(func $canonical_{t} (param {t}) (result {t}) (select (local.get 0) ({t}.const nan) ({t}.eq (local.get 0) (local.get 0))))\n"
                        for t in ("f32", "f64"))
        values = "".join(f"(global $g{t} (mut {t}) ({t}.const {self.r.randrange(100)}))\n" for t in TYPES)
        return "(module (memory 1)\n" + values + canon + "\n".join(f.text for f in self.functions) + "\n" + "\n".join(main) + ")\n"


# What engines call a trap, as one word.
TRAPS = [("bounds", r"out.of.bounds"), ("zero", r"divide by zero|division by zero|remainder by zero|divides? by zero"),
         ("overflow", r"integer overflow|divide result unrepresentable|unrepresentable in integer range"), ("nan", r"invalid conversion"),
         ("unreachable", "unreachable")]


def result_of(text):
    found = re.search(r"i64:(-?\d+)", text)
    if found:
        return int(found[1]) % 2**64
    for word, pattern in TRAPS:
        if re.search(pattern, text):
            return word if word != "nan" else "overflow"  # V8 has one text for both
    return text.strip() or "nothing"


NODE = """
const fs = require('fs');
for (const file of process.argv.slice(1)) {
  try {
    console.log('i64:' + new WebAssembly.Instance(new WebAssembly.Module(fs.readFileSync(file))).exports.main());
  } catch (e) { console.log(String(e.message).split('\\n')[0]); }
}
"""


def others(files):
    if shutil.which("node"):
        out = subprocess.run(["node", "-e", NODE] + files, capture_output=True, text=True, check=True).stdout.splitlines()
        return "node", [result_of(line) for line in out]
    run = [subprocess.run(["wasm-interp", "--run-all-exports", f], capture_output=True, text=True).stdout for f in files]
    return "wasm-interp", [result_of(text) for text in run]


def ours(bin_dir, file, *flags, cache=None):
    env = dict(os.environ, BERTH_WASM_CACHE=cache) if cache else None
    run = subprocess.run([os.path.join(bin_dir, "berth"), "wasm", "run", file, "main", "--limit", "0", *flags], capture_output=True, text=True, env=env)
    return result_of(run.stdout + run.stderr)


def compile_some(bin_dir, files, cache):
    """Those of the files that berth wasmc compiled: all, or none where there is no compiler."""
    if not files or not shutil.which("cc"):
        return set()
    made = subprocess.run([os.path.join(bin_dir, "berth"), "wasmc", "--cache", cache, *files], capture_output=True, text=True)
    if made.returncode != 0:
        print(f"not ok - berth wasmc: {made.stderr.strip()}")
    return set(files)


def main():
    a = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    a.add_argument("--bin", default="build/bin")
    a.add_argument("--seed", type=int, default=None, help="the first one (default: drawn)")
    a.add_argument("--count", type=int, default=200)
    a.add_argument("--compiled-each", type=int, default=4, help="one of so many is compiled, too; 0: none")
    a.add_argument("--keep", help="a folder for the modules that differ")
    args = a.parse_args()
    if not shutil.which("wat2wasm"):
        print("0 passed, 0 failed, 1 skipped")
        return 0
    first = args.seed if args.seed is not None else random.randrange(10**9)
    failed = 0
    with tempfile.TemporaryDirectory() as work:
        files = []
        for seed in range(first, first + args.count):
            text = Module(seed).text()
            name = os.path.join(work, str(seed))
            with open(name + ".wat", "w", encoding="utf-8") as f:
                f.write(text)
            made = subprocess.run(["wat2wasm", name + ".wat", "-o", name + ".wasm"], capture_output=True, text=True)
            if made.returncode != 0:
                print(f"not ok - seed {seed}: the generator is wrong: {made.stderr.splitlines()[0]}")
                failed += 1
                continue
            files.append(name + ".wasm")
        other, expected = others(files)
        compiled = compile_some(args.bin, files[::args.compiled_each] if args.compiled_each else [], work)
        values = 0
        for file, want in zip(files, expected):
            values += isinstance(want, int)
            has = {"berth": ours(args.bin, file)}
            if file in compiled:
                has["compiled"] = ours(args.bin, file, "--compiled", cache=work)
            wrong = [f"{how} {what}" for how, what in has.items() if what != want]
            if wrong:
                failed += 1
                print(f"not ok - seed {os.path.basename(file)[:-5]}: {other} {want}, {', '.join(wrong)}")
                if args.keep:
                    os.makedirs(args.keep, exist_ok=True)
                    shutil.copy(file, args.keep)
    print(f"# seeds {first} to {first + args.count - 1} against {other}: {values} with a value, {len(files) - values} with a trap, "
          f"{len(compiled)} compiled")
    print(f"{args.count - failed} passed, {failed} failed, 0 skipped")
    return failed > 0


sys.exit(main())
