/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/native/note.c - what a shared object says of itself, before anything of it runs
 *
 * The file is foreign: everything is read with bounds into our memory, and checked there.
 */
#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "scheduler/native/native_int.h"

#ifdef __aarch64__
#define MACHINE      EM_AARCH64
#define MACHINE_NAME "aarch64"
#else
#define MACHINE      EM_X86_64
#define MACHINE_NAME "x86-64"
#endif
#define OWNER        "Berth"
#define NOTES_MAX    65536u      /* bytes of notes that are looked at */
#define SYMBOLS_MAX  (16u << 20) /* bytes of a table of symbols, or of their names */
#define HEADERS_MAX  4096u       /* segments, sections */
#define NAMES_MAX    16u         /* plugins in one file */
#define NAME_MAX_LEN 63u
#define ENTRY        "berth_plugin_entry_v1"

struct file {
    int fd;
    const char *path;
    uint64_t size;
    struct bh_arena *a;
    struct bh_err *err;
};

/* Bytes of the file, in the arena; NULL and the reason. */
static void *get(const struct file *f, uint64_t at, uint64_t n, const char *what)
{
    if (n > f->size || at > f->size - n) {
        bh_err_set(f->err, -EINVAL,
                   "%s: its %s would be beyond its end: it is cut short or damaged", f->path, what);
        return NULL;
    }
    char *p = bh_arena_alloc(f->a, n + 1);
    p[n] = '\0';
    for (uint64_t k = 0; k < n;) {
        ssize_t r = pread(f->fd, p + k, n - k, (off_t)(at + k));
        if (r <= 0) {
            bh_err_set(f->err, -EIO, "%s: %s", f->path, r < 0 ? strerror(errno) : "cut short");
            return NULL;
        }
        k += (uint64_t)r;
    }
    return p;
}

static int check_header(const struct file *f, const Elf64_Ehdr *h)
{
    if (memcmp(h->e_ident, ELFMAG, SELFMAG) != 0)
        return bh_err_set(f->err, -EINVAL, "%s is not a shared object (no ELF file)", f->path);
    if (h->e_ident[EI_CLASS] != ELFCLASS64 || h->e_ident[EI_DATA] != ELFDATA2LSB)
        return bh_err_set(f->err, -EINVAL,
                          "%s is of another kind of machine: 64 bits, least significant byte first "
                          "are needed",
                          f->path);
    if (h->e_machine != MACHINE)
        return bh_err_set(f->err, -EINVAL,
                          "%s is for machine %u of ELF's list: machine %u (" MACHINE_NAME
                          ") is needed",
                          f->path, h->e_machine, MACHINE);
    if (h->e_type != ET_DYN)
        return bh_err_set(f->err, -EINVAL, "%s is not a shared object: build it with -shared -fPIC",
                          f->path);
    if (h->e_phentsize != sizeof(Elf64_Phdr) || h->e_phnum > HEADERS_MAX ||
        (h->e_shnum && h->e_shentsize != sizeof(Elf64_Shdr)) || h->e_shnum > HEADERS_MAX)
        return bh_err_set(f->err, -EINVAL, "%s: its tables of headers are damaged", f->path);
    return 0;
}

struct words { /* the descriptor's head, see BERTH_NOTE */
    uint32_t major, minor, flags, reserved;
};

static bool is_name(const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!bh_is_digit(s[i]) && !((s[i] | 0x20) >= 'a' && (s[i] | 0x20) <= 'z') &&
            (i == 0 || !strchr("._-", s[i])))
            return false;
    return n > 0 && n <= NAME_MAX_LEN;
}

static int check_names(const struct file *f, const char *names)
{
    unsigned n = 0;

    for (const char *s = names;; s++) {
        size_t len = strcspn(s, " ");
        if (!is_name(s, len) || ++n > NAMES_MAX)
            return bh_err_set(
                f->err, -EINVAL,
                "%s: its note names the plugins \"%.200s\": 1 to %u names of letters, "
                "digits, '.', '_' and '-' with one space between are needed",
                f->path, bh_native_is_text((struct berth_str){names, strlen(names)}) ? names : "?",
                NAMES_MAX);
        s += len;
        if (!*s)
            return 0;
    }
}

/* desc: n bytes, and a NUL behind them. */
static int take_note(const struct file *f, const char *desc, uint32_t n, struct bh_native_file *ret)
{
    struct words w;
    const char *text[3], *at = desc + sizeof w, *end = desc + n;

    if (n < sizeof w)
        return bh_err_set(f->err, -EINVAL, "%s: its note has %u bytes, at least %zu are needed",
                          f->path, n, sizeof w);
    memcpy(&w, desc, sizeof w);
    if (w.major != BERTH_ABI_MAJOR)
        return bh_err_set(f->err, -EINVAL,
                          "%s is built for plugin ABI %u.%u: major %u is needed, build it against "
                          "this Berth's berth/plugin.h",
                          f->path, w.major, w.minor, BERTH_ABI_MAJOR);
    if (w.minor > BERTH_ABI_MINOR)
        return bh_err_set(
            f->err, -EINVAL,
            "%s needs plugin ABI %u.%u: this Berth offers %u.%u, a newer one is needed", f->path,
            w.major, w.minor, BERTH_ABI_MAJOR, BERTH_ABI_MINOR);
    if (w.flags >> 16)
        return bh_err_set(f->err, -EINVAL,
                          "%s demands what this Berth does not know (flags 0x%x of its note)",
                          f->path, w.flags);
    for (unsigned i = 0; i < 3; i++) {
        text[i] = at < end ? at : end; /* the NUL behind */
        at += strlen(text[i]) + 1;
    }
    int rc = check_names(f, text[0]);
    for (unsigned i = 1; rc == 0 && i < 3; i++)
        if (!bh_native_is_text((struct berth_str){text[i], strlen(text[i])}))
            rc = bh_err_set(f->err, -EINVAL, "%s: the %s in its note is not printable UTF-8",
                            f->path, i == 1 ? "version" : "license");
    *ret = (struct bh_native_file){.file = bh_arena_strdup(f->a, f->path),
                                   .names = text[0],
                                   .version = text[1],
                                   .license = text[2],
                                   .major = w.major,
                                   .minor = w.minor};
    return rc;
}

/* 1: it is there and good. 0: not among these notes. */
static int search_notes(const struct file *f, const Elf64_Phdr *ph, struct bh_native_file *ret)
{
    uint64_t size = ph->p_filesz, align = ph->p_align == 8 ? 8 : 4;

    if (size > NOTES_MAX)
        return 0;
    const char *p = get(f, ph->p_offset, size, "notes");
    if (!p)
        return -EINVAL;
    for (uint64_t at = 0; at + sizeof(Elf64_Nhdr) <= size;) {
        Elf64_Nhdr h;
        memcpy(&h, p + at, sizeof h);
        uint64_t name = at + sizeof h, desc = name + (h.n_namesz + align - 1) / align * align;
        uint64_t next = desc + (h.n_descsz + align - 1) / align * align;
        if (desc + h.n_descsz > size)
            return bh_err_set(f->err, -EINVAL, "%s: its notes are damaged", f->path);
        if (h.n_namesz == sizeof OWNER && memcmp(p + name, OWNER, sizeof OWNER) == 0 &&
            h.n_type == 1) {
            int rc = take_note(f, bh_arena_more(f->a, p + desc, h.n_descsz, (size_t)h.n_descsz + 1),
                               h.n_descsz, ret);
            return rc < 0 ? rc : 1;
        }
        at = next;
    }
    return 0;
}

/* The dynamic symbols are looked at where the section headers have them: every linker writes these,
 * and strip leaves them. */
static int check_entry(const struct file *f, const Elf64_Ehdr *h)
{
    const Elf64_Shdr *sh =
        h->e_shnum ? get(f, h->e_shoff, (uint64_t)h->e_shnum * sizeof *sh, "sections") : NULL;

    for (unsigned i = 0; sh && i < h->e_shnum; i++) {
        const Elf64_Shdr *s = &sh[i], *names = s->sh_link < h->e_shnum ? &sh[s->sh_link] : NULL;
        if (s->sh_type != SHT_DYNSYM || !names || s->sh_size > SYMBOLS_MAX ||
            names->sh_size > SYMBOLS_MAX)
            continue;
        const Elf64_Sym *sym = get(f, s->sh_offset, s->sh_size, "symbols");
        const char *text = get(f, names->sh_offset, names->sh_size, "names of symbols");
        if (!sym || !text)
            return -EINVAL;
        for (uint64_t k = 0; k < s->sh_size / sizeof *sym; k++)
            if (sym[k].st_shndx != SHN_UNDEF && ELF64_ST_TYPE(sym[k].st_info) == STT_FUNC &&
                sym[k].st_name < names->sh_size && bh_streq(text + sym[k].st_name, ENTRY))
                return 0;
    }
    if (h->e_shnum && !sh)
        return -EINVAL;
    return bh_err_set(f->err, -EINVAL, "%s does not export the function %s", f->path, ENTRY);
}

int bh_native_read_note(int fd, const char *path, struct bh_arena *a, struct bh_native_file *ret,
                        struct bh_err *err)
{
    struct file f = {.fd = fd, .path = path, .a = a, .err = err};
    struct stat st;
    int found = 0;

    if (fstat(fd, &st) < 0)
        return bh_err_set(err, -errno, "%s: %s", path, strerror(errno));
    f.size = (uint64_t)st.st_size;
    if (f.size < sizeof(Elf64_Ehdr))
        return bh_err_set(err, -EINVAL, "%s is not a shared object (%llu bytes)", path,
                          (unsigned long long)f.size);
    const Elf64_Ehdr *h = get(&f, 0, sizeof *h, "header");
    int rc = h ? check_header(&f, h) : -EINVAL;
    if (rc < 0)
        return rc;
    const Elf64_Phdr *ph =
        get(&f, h->e_phoff, (uint64_t)h->e_phnum * sizeof *ph, "table of segments");
    if (!ph)
        return -EINVAL;
    for (unsigned i = 0; i < h->e_phnum && !found; i++)
        if (ph[i].p_type == PT_NOTE)
            found = search_notes(&f, &ph[i], ret);
    if (found == 0)
        return bh_err_set(
            err, -EINVAL,
            "%s has no note of a Berth plugin: BERTH_NOTE of berth/plugin.h is needed", path);
    return found < 0 ? found : check_entry(&f, h);
}
