# Rust declarations of berth/plugin.h, which stays the only source: constants, structs, tables of functions.
# usage: awk -f tools/rust-header.awk plugins/include/berth/plugin.h
# Knows the C that the header is written in (one declaration up to each `;`), and ends with status 1 at anything else.

function fail(what) {
    print "tools/rust-header.awk: " FILENAME ":" FNR ": " what >"/dev/stderr"
    failed = 1
    exit 1
}
function trim(s) {
    gsub(/^[ \t]+|[ \t]+$/, "", s)
    return s
}
# "const struct berth_node *const *" -> "*const *const berth_node". A name behind it is taken off by the caller.
function rust_type(c,    base, out, n, i, t, const_) {
    n = gsub(/\*/, " * ", c)
    gsub(/struct /, "", c)
    n = split(trim(c), t, /[ \t]+/)
    const_ = 0
    for (i = 1; i <= n; i++) {
        if (t[i] == "const")
            const_ = 1
        else if (t[i] == "*") {
            out = (const_ ? "*const " : "*mut ") (out == "" ? base : out)
            const_ = 0
        } else
            base = t[i] in simple ? simple[t[i]] : t[i]
    }
    return out == "" ? base : out
}
# "struct berth_call *c" -> name in `name`, type in `type`; of a type alone the name is empty.
function split_declarator(d) {
    d = trim(d)
    if (match(d, /[A-Za-z_][A-Za-z0-9_]*$/) && match(substr(d, 1, RSTART - 1), /[* ]$/) && !(d ~ /^(struct )?[a-z_0-9]+$/)) {
        match(d, /[A-Za-z_][A-Za-z0-9_]*$/)
        name = substr(d, RSTART)
        type = rust_type(substr(d, 1, RSTART - 1))
    } else {
        name = ""
        type = rust_type(d)
    }
}
function zero(rust) {
    if (rust ~ /^\*/)
        return rust ~ /^\*const/ ? "core::ptr::null()" : "core::ptr::null_mut()"
    if (rust == "berth_str")
        return "berth_str { p: core::ptr::null(), n: 0 }"
    return rust ~ /^Option/ ? "None" : "0"
}
function member(rust_name, rust) {
    if (rust_name ~ /^(type|match|ref|move|in|use|where)$/) # words of Rust
        rust_name = rust_name "_"
    printf "    pub %s: %s,\n", rust_name, rust
    zeros = zeros "        " rust_name ": " (rust_name == "size" ? "core::mem::size_of::<Self>() as u32" : zero(rust)) ",\n"
}
# Splits at the commas that are in no parentheses.
function split_parameters(s, p,    n, i, c, depth) {
    n = 1
    p[1] = ""
    for (i = 1; i <= length(s); i++) {
        c = substr(s, i, 1)
        depth += (c == "(") - (c == ")")
        if (c == "," && !depth)
            p[++n] = ""
        else
            p[n] = p[n] c
    }
    return n
}
# A function that is pointed to, or that a plugin has: result, parameters. One of these may be a function, too.
function function_type(result, parameters,    n, i, p, out, inner, head) {
    n = split_parameters(parameters, p)
    for (i = 1; i <= n; i++) {
        if (trim(p[i]) == "void")
            break
        if (match(p[i], /\(\*[a-z_0-9]+\)\(/)) {
            head = substr(p[i], 1, RSTART - 1)
            inner = substr(p[i], RSTART + RLENGTH)
            sub(/\)[^)]*$/, "", inner)
            type = "Option<" function_type(head, inner) ">"
        } else
            split_declarator(p[i])
        out = out (i > 1 ? ", " : "") type
    }
    return "unsafe extern \"C\" fn(" out ")" (trim(result) == "void" ? "" : " -> " rust_type(result))
}
function declare_member(d,    head, rest, n, i, p, first) {
    if (match(d, /\(\*[a-z_0-9]+\)\(/)) {
        head = substr(d, 1, RSTART - 1)
        name = substr(d, RSTART + 2, RLENGTH - 4)
        rest = substr(d, RSTART + RLENGTH)
        sub(/\)[^)]*$/, "", rest)
        member(name, "Option<" function_type(head, rest) ">")
        return
    }
    n = split(d, p, ",") # const struct x *a, *b
    split_declarator(p[1])
    first = type
    member(name, first)
    for (i = 2; i <= n; i++) {
        gsub(/[* ]/, "", p[i])
        member(p[i], first)
    }
}
function finish_struct() {
    print "}"
    if (struct == "berth_plugin" || struct == "berth_why")
        printf "impl %s {\n    /* Nothing but its size. */\n    pub const NONE: Self = Self {\n%s    };\n}\n", struct, zeros
    print "unsafe impl Sync for " struct " {}\n"
    struct = ""
}
function declare(d) {
    if (d ~ /^typedef /) {
        sub(/^typedef /, "", d)
        split_declarator(d)
        print "pub type " name " = " type ";\n"
    } else if (match(d, /^struct berth_[a-z_0-9]+$/)) {
        sub(/^struct /, "", d)
        print "#[repr(C)]\npub struct " d " {\n    _opaque: [u8; 0],\n}\n"
    } else if (d !~ /berth_plugin_entry_v1/) # the plugin's own
        fail("a declaration that is not understood: " d)
}

BEGIN {
    simple["void"] = "core::ffi::c_void"
    simple["char"] = "u8"
    simple["double"] = "f64"
    simple["uint32_t"] = "u32"
    simple["int32_t"] = "i32"
    simple["uint64_t"] = "u64"
    simple["int64_t"] = "i64"
    print "/* Made of berth/plugin.h, which says what everything means: do not edit. */"
    print "#![allow(non_camel_case_types, dead_code)]\n"
}
/^#define BERTH_NOTE/ { in_macro = 1 }
/what callbacks say/ { codes = 1 }
/functions of the host/ { codes = 0 }
in_macro || /\\$/ { # macros are for C
    in_macro = /\\$/
    next
}
/^#define BERTH_[A-Z_0-9]+ +(UINT32_MAX|(0x)?[0-9a-f]+u?)( |$)/ {
    value = $3
    sub(/u$/, "", value)
    sub(/UINT32_MAX/, "u32::MAX", value)
    print "pub const " $2 ": " (codes ? "i32" : "u32") " = " value ";"
    next
}
/^#|^extern "C"/ { next }
/^static inline / { in_function = 1 } # Rust's own texts compare themselves
in_function {
    in_function = $0 != "}"
    next
}
{
    line = $0
    if (commented) {
        if (!match(line, /\*\//))
            next
        line = substr(line, RSTART + 2)
        commented = 0
    }
    while (match(line, /\/\*/)) {
        start = RSTART
        rest = substr(line, start)
        if (match(rest, /\*\//))
            line = substr(line, 1, start - 1) substr(rest, RSTART + 2)
        else {
            line = substr(line, 1, start - 1)
            commented = 1
        }
    }
    text = trim(text " " line)
    if (struct == "" && match(text, /^struct berth_[a-z_0-9]+ \{/)) {
        struct = substr(text, 8, RLENGTH - 9)
        zeros = ""
        text = trim(substr(text, RSTART + RLENGTH))
        print "#[repr(C)]"
        if (struct == "berth_str" || struct == "berth_event")
            print "#[derive(Clone, Copy)]"
        print "pub struct " struct " {"
    }
    while ((at = index(text, ";")) > 0) {
        d = trim(substr(text, 1, at - 1))
        text = trim(substr(text, at + 1))
        if (struct == "")
            declare(d)
        else if (d == "}")
            finish_struct()
        else
            declare_member(d)
    }
    if (text == "}") # of extern "C"
        text = ""
}
END {
    if (failed)
        exit 1
    if (text != "" || struct != "")
        fail("the header ends within a declaration: " struct " " text)
    print "impl berth_str {"
    print "    pub const fn new(s: &'static str) -> Self {\n        berth_str { p: s.as_ptr(), n: s.len() as u64 }\n    }"
    print "    /* Safe as long as the text lives: the header says how long. */"
    print "    pub unsafe fn text<'a>(self) -> &'a str {"
    print "        if self.n == 0 {\n            return \"\";\n        }"
    print "        core::str::from_utf8(core::slice::from_raw_parts(self.p, self.n as usize)).unwrap_or(\"\")\n    }\n}\n"
    print "/* Once in a file, as BERTH_NOTE in C: names of its plugins, version, license. */"
    print "#[macro_export]\nmacro_rules! berth_note {"
    print "    ($names:literal, $version:literal, $license:literal) => {"
    print "        const _: () = {"
    print "            const TEXT: &[u8] = concat!($names, \"\\0\", $version, \"\\0\", $license, \"\\0\").as_bytes();"
    print "            const N: usize = (TEXT.len() + 3) & !3;"
    print "            #[repr(C, align(4))]"
    print "            struct Note(u32, u32, u32, [u8; 8], [u32; 4], [u8; N]);"
    print "            const fn padded() -> [u8; N] {"
    print "                let mut t = [0u8; N];\n                let mut i = 0;"
    print "                while i < TEXT.len() {\n                    t[i] = TEXT[i];\n                    i += 1;\n                }\n                t\n            }"
    print "            #[used]\n            #[link_section = \".note.berth\"]"
    print "            static NOTE: Note = Note(6, 16 + N as u32, 1, *b\"Berth\\0\\0\\0\","
    print "                [berth::BERTH_ABI_MAJOR, berth::BERTH_ABI_MINOR, 0, 0], padded());"
    print "        };\n    };\n}"
}
