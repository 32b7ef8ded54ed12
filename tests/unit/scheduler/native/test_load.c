/* SPDX-License-Identifier: Apache-2.0
 *
 * Files that are not loaded, each with the reason, and one that is.
 */
#include <elf.h>
#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "scheduler/native/native.h"
#include "tests/unit/harness.h"

static struct bh_buf told;

static void tell(const char *line)
{
    bh_buf_addf(&told, "%s\n", line);
}

struct image {
    char *p;
    size_t n;
};

/* One that was built, as `make` leaves it beside the tests. */
static struct image built(const char *name)
{
    char exe[PATH_MAX], path[PATH_MAX + 64];
    struct image i = {0};
    ssize_t n = readlink("/proc/self/exe", exe, sizeof exe - 1);

    CU_ASSERT_FATAL(n > 0);
    exe[n] = '\0';
    snprintf(path, sizeof path, "%s/../../../plugins/%s", dirname(exe), name);
    CU_ASSERT_FATAL(bh_read_file(path, 64u << 20, &i.p, &i.n) == 0);
    return i;
}

/* ---- what is done to the copies -------------------------------------------------------------- */

static char *find_note(struct image *i)
{
    static const char note[] = "\6\0\0\0\x30\0\0\0\1\0\0\0Berth\0\0";
    char *p = memmem(i->p, i->n, note, sizeof note);

    CU_ASSERT_FATAL(p != NULL);
    return p + 20; /* the descriptor */
}
static void other_machine(struct image *i)
{
    i->p[offsetof(Elf64_Ehdr, e_machine)] = (char)EM_RISCV;
}
static void other_class(struct image *i)
{
    i->p[EI_CLASS] = ELFCLASS32;
}
static void executable(struct image *i)
{
    i->p[offsetof(Elf64_Ehdr, e_type)] = ET_EXEC;
}
static void other_major(struct image *i)
{
    find_note(i)[0] = 9;
}
static void newer_minor(struct image *i)
{
    find_note(i)[4] = 99;
}
static void demands(struct image *i)
{
    find_note(i)[10] = 1;
}
static void no_note(struct image *i)
{
    find_note(i)[-7] = 'X';
}
static void bad_name(struct image *i)
{
    find_note(i)[16] = ' ';
}
static void other_name(struct image *i)
{
    find_note(i)[16] = 'M';
}
static void bad_version(struct image *i)
{
    find_note(i)[16 + sizeof "NodeMetadata"] = '\xff';
}
static void no_entry(struct image *i)
{
    static const char name[] = "berth_plugin_entry_v1";
    for (char *p = i->p; (p = memmem(p, i->n - (size_t)(p - i->p), name, sizeof name)); p++)
        p[sizeof name - 2] = '9';
}
static void cut(struct image *i)
{
    i->n = 3000;
}
static void cut_symbols(struct image *i)
{
    ((Elf64_Ehdr *)(void *)i->p)->e_shoff = i->n - 8;
}
static void far_notes(struct image *i)
{
    Elf64_Ehdr *h = (Elf64_Ehdr *)(void *)i->p;
    Elf64_Phdr *ph = (Elf64_Phdr *)(void *)(i->p + h->e_phoff);
    for (unsigned k = 0; k < h->e_phnum; k++)
        if (ph[k].p_type == PT_NOTE)
            ph[k].p_offset = UINT64_MAX - 8;
}
static void tiny(struct image *i)
{
    i->n = 5;
}
static void text(struct image *i)
{
    memset(i->p, '#', 4096);
    i->n = 4096;
}

static const struct {
    const char *file;
    void (*change)(struct image *i);
    const char *why;
} files[] = {
    {"machine.so", other_machine, "machine.so is for machine 243 of ELF's list: machine"},
    {"class.so", other_class, "class.so is of another kind of machine: 64 bits"},
    {"exec.so", executable, "exec.so is not a shared object: build it with -shared -fPIC"},
    {"major.so", other_major, "major.so is built for plugin ABI 9.1: major 1 is needed"},
    {"minor.so", newer_minor, "minor.so needs plugin ABI 1.99: this Berth offers 1.1"},
    {"demands.so", demands, "demands.so demands what this Berth does not know (flags 0x10000"},
    {"note.so", no_note, "note.so has no note of a Berth plugin: BERTH_NOTE"},
    {"name.so", bad_name, "name.so: its note names the plugins \" odeMetadata\": 1 to 16 names"},
    {"version.so", bad_version, "version.so: the version in its note is not printable UTF-8"},
    {"entry.so", no_entry, "entry.so does not export the function berth_plugin_entry_v1"},
    {"cut.so", cut, "cut.so: its "},
    {"symbols.so", cut_symbols, "symbols.so: its sections would be beyond its end"},
    {"far.so", far_notes, "far.so: its notes would be beyond its end"},
    {"tiny.so", tiny, "tiny.so is not a shared object (5 bytes)"},
    {"text.so", text, "text.so is not a shared object (no ELF file)"},
};

static void put(const char *dir, const char *name, const struct image *i, unsigned mode)
{
    char path[PATH_MAX];

    snprintf(path, sizeof path, "%s/%s", dir, name);
    CU_ASSERT_FATAL(bh_write_file(path, i->p, i->n, mode) == 0);
    CU_ASSERT_FATAL(chmod(path, mode) == 0);
}

static void expect(const char *why)
{
    bool there = strstr(bh_buf_str(&told), why) != NULL;

    CU_ASSERT(there);
    if (!there)
        fprintf(stderr, "  not told: %s\n  but: %s\n", why, bh_buf_str(&told));
}

static void put_config(const char *dir)
{
    static const char config[] =
        "{name: Pinned, file: gang.so, sha256: "
        "'0000000000000000000000000000000000000000000000000000000000000000'}\n"
        "---\n{name: Elsewhere, file: gang.so}\n"
        "---\n{name: X, file: /x.so, colour: red}\n"
        "---\n{file: /x.so}\n"
        "---\n{name: X}\n"
        "---\n{name: X, file: /x.so, sha256: abc}\n"
        "---\n{name: X, file: /x.so, mode: elsewhere}\n"
        "---\n[1]\n"
        "---\n{name: X, file: /x.so, onCrash: no}\n";
    static char broken[] = "a: [";
    const struct image good = {(char *)(uintptr_t)config, sizeof config - 1}, bad = {broken, 4};

    put(dir, "a.yaml", &good, 0600);
    put(dir, "b.yaml", &bad, 0600);
}

static void test_files(void)
{
    const char *dir = bh_test_tmpdir();
    struct image good = built("nodemetadata.so"), gang = built("labelgang.so");
    char at[PATH_MAX];

    for (unsigned i = 0; i < BH_ARRAY_LEN(files); i++) {
        struct image copy = {bh_memdup(good.p, good.n), good.n};
        files[i].change(&copy);
        put(dir, files[i].file, &copy, 0600);
        free(copy.p);
    }
    put(dir, "writable.so", &good, 0620);
    struct image copy = {bh_memdup(good.p, good.n), good.n};
    other_name(&copy);
    put(dir, "other.so", &copy, 0600);
    free(copy.p);
    snprintf(at, sizeof at, "%s/link.so", dir);
    CU_ASSERT_FATAL(symlink("zz-good.so", at) == 0);
    snprintf(at, sizeof at, "%s/folder.so", dir);
    CU_ASSERT_FATAL(mkdir(at, 0700) == 0);
    put(dir, "zz-good.so", &good, 0600);
    put(dir, "gang.so", &gang, 0600);
    put_config(dir);
    const struct bh_native_options o = {.dir = dir, .config = dir, .policy = "owned"};
    bh_native_start(&o, tell);

    CU_ASSERT(bh_plugin_find("Nothing") == NULL);
    for (unsigned i = 0; i < BH_ARRAY_LEN(files); i++)
        expect(files[i].why);
    expect("writable.so has mode 0620: a plugin and its folders must not be writable for group");
    expect("link.so is a symbolic link: give the path of a plugin without any");
    expect("folder.so is not a regular file");
    expect(
        "a.yaml line 5: unknown field \"colour\": name, file, sha256, mode and onCrash are known");
    expect("a.yaml line 7: field name: a plugin's name is needed");
    expect("a.yaml line 9: field file: the path of a shared object is needed");
    expect("a.yaml line 11: field sha256: 64 small hexadecimal digits in quotes are needed");
    expect("a.yaml line 13: field mode: inProcess or process is needed");
    expect("a.yaml line 17: field onCrash: fail or skip is needed");
    expect("b.yaml: line 2, column 1");
    bh_buf_reset(&told);
    CU_ASSERT(bh_plugin_find("Nothing") == NULL && told.n == 0); /* told once */

    CU_ASSERT(bh_plugin_find("Pinned") == NULL);
    expect("its configuration demands 000000");
    CU_ASSERT(bh_plugin_find("Elsewhere") == NULL);
    expect("gang.so has no plugin \"Elsewhere\": its note names \"LabelGang\"");
    CU_ASSERT(bh_plugin_find("ModeMetadata") == NULL);
    expect("other.so has a plugin \"NodeMetadata\", its note names \"ModeMetadata\" only");
    setenv("BERTH_PLUGIN_POLICY", "pinned", 1);
    CU_ASSERT(bh_plugin_find("LabelGang") == NULL);
    expect("gang.so has no sha256 in the plugin configuration");
    setenv("BERTH_PLUGIN_POLICY", "owned", 1);
    bh_buf_reset(&told);

    const struct bh_plugin *p = bh_plugin_find("NodeMetadata");
    CU_ASSERT(p && bh_streq(p->name, "NodeMetadata") && p->score_rows && told.n == 0);
    CU_ASSERT(bh_plugin_find("NodeMetadata") == p);
    CU_ASSERT(bh_plugin_find("NodeName") != NULL);
    bh_buf_fini(&told);
    free(good.p);
    free(gang.p);
}

/* ---- the configuration is read again ---------------------------------------------------------- */

static void expect_refresh(int want, const char *why)
{
    struct bh_err err = {0};

    bh_buf_reset(&told);
    CU_ASSERT_EQUAL(bh_native_refresh(&err), want);
    CU_ASSERT(strstr(err.msg, why) != NULL);
    if (!strstr(err.msg, why))
        fprintf(stderr, "  not said: %s\n  but: %s\n", why, err.msg);
}

/* In the folder of the test before. */
static void test_refresh(void)
{
    const char *dir = bh_test_tmpdir();
    struct image good = built("nodemetadata.so"), gang = built("labelgang.so"),
                 strange = built("../tests/plugins/strange.so");
    static char no_key[] = "x";
    char at[PATH_MAX];

    expect_refresh(0, "");
    CU_ASSERT_PTR_NOT_NULL(bh_plugin_find("LabelGang")); /* "pinned" is over */
    put(dir, "late.so", &strange, 0600);
    CU_ASSERT_PTR_NULL(bh_plugin_find("Strange"));
    expect_refresh(0, "");
    CU_ASSERT_PTR_NOT_NULL(bh_plugin_find("Strange"));

    snprintf(at, sizeof at, "%s/zz-good.so", dir);
    put(dir, "zz-good.so", &gang, 0600);
    expect_refresh(1, "");
    put(dir, "zz-good.so", &good, 0620);
    expect_refresh(-EINVAL, "zz-good.so has mode 0620: a plugin and its folders must not be");
    CU_ASSERT_EQUAL(unlink(at), 0);
    expect_refresh(1, "");
    put(dir, "zz-good.so", &good, 0600);
    expect_refresh(0, "");

    put(dir, "none.pub", &(struct image){no_key, 1}, 0600);
    setenv("BERTH_PLUGIN_POLICY", "signed", 1);
    expect_refresh(-EINVAL, ".so: the policy \"signed\" demands a signature: ");
    expect("none.pub is not a public key of minisign");
    setenv("BERTH_PLUGIN_POLICY", "owned", 1);
    setenv("BERTH_PLUGIN_DIR", at, 1);
    expect_refresh(0, "");
    expect("zz-good.so: Not a directory");
    setenv("BERTH_PLUGIN_DIR", dir, 1);
    bh_buf_fini(&told);
    free(good.p);
    free(gang.p);
    free(strange.p);
}

/* Each time those are counted that are there now: 64 at most. In the folder of the test before. */
static void test_keys_are_read_again(void)
{
    static char key[] = "untrusted comment: minisign public key B75F87468A5BBA32\n"
                        "RWQyuluKRodftyjETBnZj8fn7K3Su8m3BrJq71zcxEkpPxjWvRocLAzW\n";
    const char *dir = bh_test_tmpdir();
    const struct image good = {key, sizeof key - 1};
    char at[PATH_MAX];

    snprintf(at, sizeof at, "%s/none.pub", dir);
    CU_ASSERT_FATAL(unlink(at) == 0);
    setenv("BERTH_PLUGIN_POLICY", "signed", 1);
    for (unsigned i = 1; i <= 65; i++) {
        snprintf(at, sizeof at, "key%u.pub", i);
        put(dir, at, &good, 0600);
        if (i < 64)
            continue;
        for (unsigned again = 0; again < 2; again++) {
            expect_refresh(-EINVAL, ".so: the policy \"signed\" demands a signature: ");
            CU_ASSERT_EQUAL(strstr(bh_buf_str(&told), "at most 64 keys are read") != NULL, i == 65);
        }
    }
    setenv("BERTH_PLUGIN_POLICY", "owned", 1);
    bh_buf_fini(&told);
}

/* In this order: each reads the first's folder again. */
BH_TESTS("scheduler/native/load", {"what is refused, and why", test_files},
         {"files that changed since", test_refresh},
         {"keys are read again", test_keys_are_read_again})
