#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""CPU time of the WebAssembly interpreter (common/wasm) beside that of wabt's, and of node as far as it is there.

usage: bench/wasm.py [BUILD]     (default: build)

Three programs, each the best of three runs, less what the same tool takes for a function that returns at once.
"""
import os
import resource
import shutil
import subprocess
import sys
import tempfile

PROGRAMS = {
    "empty": '(module (func (export "main") (result i32) (i32.const 0)))',
    "calls (fib 30)": """(module (func $fib (param i32) (result i32)
      (if (result i32) (i32.lt_s (local.get 0) (i32.const 2)) (then (local.get 0))
        (else (i32.add (call $fib (i32.sub (local.get 0) (i32.const 1))) (call $fib (i32.sub (local.get 0) (i32.const 2)))))))
      (func (export "main") (result i32) (call $fib (i32.const 30))))""",
    "memory (sieve)": """(module (memory 4)
      (func (export "main") (result i32) (local $i i32) (local $j i32) (local $n i32) (local $round i32)
        (local.set $round (i32.const 10))
        (loop $rounds
          (memory.fill (i32.const 0) (i32.const 1) (i32.const 200000))
          (local.set $i (i32.const 2)) (local.set $n (i32.const 0))
          (loop $outer
            (if (i32.load8_u (local.get $i)) (then
              (local.set $n (i32.add (local.get $n) (i32.const 1)))
              (local.set $j (i32.add (local.get $i) (local.get $i)))
              (block $done (loop $inner
                (br_if $done (i32.ge_u (local.get $j) (i32.const 200000)))
                (i32.store8 (local.get $j) (i32.const 0))
                (local.set $j (i32.add (local.get $j) (local.get $i)))
                (br $inner)))))
            (br_if $outer (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const 200000))))
          (br_if $rounds (local.tee $round (i32.sub (local.get $round) (i32.const 1)))))
        (local.get $n)))""",
    "floats (mandelbrot)": """(module (func (export "main") (result i32)
      (local $p i32) (local $n i32) (local $k i32) (local $x f64) (local $y f64) (local $a f64) (local $b f64) (local $t f64)
      (loop $points
        (local.set $a (f64.sub (f64.div (f64.convert_i32_u (i32.and (local.get $p) (i32.const 127))) (f64.const 48)) (f64.const 2)))
        (local.set $b (f64.sub (f64.div (f64.convert_i32_u (i32.shr_u (local.get $p) (i32.const 7))) (f64.const 64)) (f64.const 1)))
        (local.set $x (f64.const 0)) (local.set $y (f64.const 0)) (local.set $k (i32.const 100))
        (block $out (loop $steps
          (local.set $t (f64.add (f64.sub (f64.mul (local.get $x) (local.get $x)) (f64.mul (local.get $y) (local.get $y))) (local.get $a)))
          (local.set $y (f64.add (f64.mul (f64.mul (local.get $x) (local.get $y)) (f64.const 2)) (local.get $b)))
          (local.set $x (local.get $t))
          (br_if $out (f64.gt (f64.add (f64.mul (local.get $x) (local.get $x)) (f64.mul (local.get $y) (local.get $y))) (f64.const 4)))
          (local.set $n (i32.add (local.get $n) (i32.const 1)))
          (br_if $steps (local.tee $k (i32.sub (local.get $k) (i32.const 1))))))
        (br_if $points (i32.lt_u (local.tee $p (i32.add (local.get $p) (i32.const 1))) (i32.const 16384))))
      (local.get $n)))""",
}
NODE = "const m = new WebAssembly.Module(require('fs').readFileSync(process.argv[1]));" \
       "console.log(new WebAssembly.Instance(m).exports.main())"


def cpu(command):
    best = None
    for _ in range(3):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        took = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
        best = took if best is None else min(best, took)
    return best * 1000


def main():
    build = sys.argv[1] if len(sys.argv) > 1 else "build"
    tools = {"berth": lambda f: [os.path.join(build, "bin", "berth"), "wasm", "run", f, "main", "--limit", "0"]}
    if shutil.which("wasm-interp"):
        tools["wabt"] = lambda f: ["wasm-interp", "--run-all-exports", f]
    if shutil.which("node"):
        tools["node"] = lambda f: ["node", "-e", NODE, f]
    print(f"{'CPU ms':22}" + "".join(f"{t:>10}" for t in tools))
    base = {}
    with tempfile.TemporaryDirectory() as work:
        for name, text in PROGRAMS.items():
            wat, wasm = os.path.join(work, "p.wat"), os.path.join(work, "p.wasm")
            with open(wat, "w", encoding="utf-8") as f:
                f.write(text)
            subprocess.run(["wat2wasm", wat, "-o", wasm], check=True)
            took = {t: cpu(command(wasm)) for t, command in tools.items()}
            base = base or took
            if name != "empty":
                print(f"{name:22}" + "".join(f"{max(took[t] - base[t], 0):10.0f}" for t in tools))


main()
