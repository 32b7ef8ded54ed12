/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/native/sandbox.c - what a plugin's process may ask of the kernel
 *
 * A list of what is allowed; everything else fails with EPERM: no sockets, no programs, no files, no
 * other processes. In two steps: until the plugin's file is loaded, files may be opened for reading and
 * mapped as code, because the dynamic loader does so; the file's constructors can, too. Its entry, and all that
 * follows, cannot.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "scheduler/native/process.h"

#ifdef __aarch64__
#define ARCH AUDIT_ARCH_AARCH64
#else
#define ARCH AUDIT_ARCH_X86_64
#endif

/* Memory, threads, time, and the descriptors that are open. */
static const int always[] = {
    SYS_read,
    SYS_readv,
    SYS_write,
    SYS_writev,
    SYS_close,
    SYS_sendmsg,
    SYS_sendto,
    SYS_recvmsg,
    SYS_recvfrom,
    SYS_fstat,
    SYS_lseek,
    SYS_munmap,
    SYS_mremap,
    SYS_brk,
    SYS_madvise,
    SYS_futex,
    SYS_nanosleep,
    SYS_clock_nanosleep,
    SYS_clock_gettime,
    SYS_clock_getres,
    SYS_gettimeofday,
    SYS_sched_yield,
    SYS_sched_getaffinity,
    SYS_getrandom,
    SYS_exit,
    SYS_exit_group,
    SYS_rt_sigaction,
    SYS_rt_sigprocmask,
    SYS_rt_sigreturn,
    SYS_sigaltstack,
    SYS_rt_sigsuspend,
    SYS_restart_syscall,
    SYS_getpid,
    SYS_gettid,
    SYS_set_robust_list,
    SYS_rseq,
    SYS_membarrier,
    SYS_ppoll,
    SYS_getuid,
    SYS_geteuid,
    SYS_sysinfo,
    SYS_uname,
    SYS_getrusage,
#ifdef SYS_pause
    SYS_pause,
    SYS_poll,
    SYS_time,
    SYS_arch_prctl,
#endif
};
/* For the loader. */
static const int loading_too[] = {
    SYS_newfstatat, SYS_pread64,    SYS_statx,
#ifdef SYS_access
    SYS_access,     SYS_readlink,   SYS_stat,
#endif
    SYS_faccessat,  SYS_readlinkat, SYS_prctl, SYS_seccomp,
};

#define MAX_STEPS 256u
struct program {
    struct sock_filter step[MAX_STEPS];
    unsigned short n;
};

static void add(struct program *p, struct sock_filter s)
{
    bh_assert(p->n < MAX_STEPS);
    p->step[p->n++] = s;
}

#define ARG(i) (offsetof(struct seccomp_data, args) + 8 * (i)) /* its lower half */
static void load_word(struct program *p, size_t offset)
{
    add(p, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset));
}
static void answer(struct program *p, uint32_t what)
{
    add(p, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, what));
}
static void allow(struct program *p, int nr)
{
    add(p, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)nr, 0, 1));
    answer(p, SECCOMP_RET_ALLOW);
}

/* With argument i, of which the bits of mask must be exactly `bits`. */
static void allow_bits(struct program *p, int nr, unsigned i, uint32_t mask, uint32_t bits)
{
    add(p, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)nr, 0, 5));
    load_word(p, ARG(i));
    add(p, (struct sock_filter)BPF_STMT(BPF_ALU | BPF_AND | BPF_K, mask));
    add(p, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, bits, 0, 1));
    answer(p, SECCOMP_RET_ALLOW);
    answer(p, SECCOMP_RET_ERRNO | EPERM);
}

/* With all of these bits in argument i. */
static void deny_bits(struct program *p, int nr, unsigned i, uint32_t bits)
{
    add(p, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)nr, 0, 5));
    load_word(p, ARG(i));
    add(p, (struct sock_filter)BPF_STMT(BPF_ALU | BPF_AND | BPF_K, bits));
    add(p, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, bits, 0, 1));
    answer(p, SECCOMP_RET_ERRNO | EPERM);
    load_word(p, offsetof(struct seccomp_data, nr)); /* for what follows */
}

/* With exactly this in argument i. */
static void deny_value(struct program *p, int nr, unsigned i, uint32_t value)
{
    add(p, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)nr, 0, 4));
    load_word(p, ARG(i));
    add(p, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, 1));
    answer(p, SECCOMP_RET_ERRNO | EPERM);
    load_word(p, offsetof(struct seccomp_data, nr)); /* for what follows */
}

static void deny(struct program *p, int nr, uint32_t error)
{
    add(p, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)nr, 0, 1));
    answer(p, SECCOMP_RET_ERRNO | error);
}

int bh_px_sandbox(bool loading)
{
    struct program p = {.n = 0};

    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return -errno;
    load_word(&p, offsetof(struct seccomp_data, arch));
    add(&p, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCH, 1, 0));
    answer(&p, SECCOMP_RET_KILL_PROCESS);
    load_word(&p, offsetof(struct seccomp_data, nr));
    for (unsigned i = 0; i < BH_ARRAY_LEN(always); i++)
        allow(&p, always[i]);
    for (unsigned i = 0; loading && i < BH_ARRAY_LEN(loading_too); i++)
        allow(&p, loading_too[i]);
    deny_bits(&p, SYS_mmap, 3, MAP_SHARED | MAP_ANONYMOUS); /* RLIMIT_DATA does not count it */
    if (loading) {
        allow(&p, SYS_mmap);
        allow(&p, SYS_mprotect);
        allow_bits(&p, SYS_openat, 2, O_ACCMODE | O_CREAT | O_TRUNC, O_RDONLY);
    } else {
        allow_bits(&p, SYS_mmap, 2, PROT_EXEC, 0);
        allow_bits(&p, SYS_mprotect, 2, PROT_EXEC, 0);
    }
    /* Threads of this process, whose flags a filter can see (clone3's it cannot: the C library goes back
     * to clone); signals to itself: abort(). */
    allow_bits(&p, SYS_clone, 0, CLONE_THREAD | CLONE_VM, CLONE_THREAD | CLONE_VM);
    deny(&p, SYS_clone3, ENOSYS);
    /* Its own: the scheduler may be the same user. */
    allow_bits(&p, SYS_prlimit64, 0, UINT32_MAX, 0);
    for (unsigned i = 0; i < BH_ARRAY_LEN(bh_px_external); i++) {
        deny_value(&p, SYS_tgkill, 2, (uint32_t)bh_px_external[i]);
        deny_value(&p, SYS_kill, 1, (uint32_t)bh_px_external[i]);
    }
    allow_bits(&p, SYS_tgkill, 0, UINT32_MAX, (uint32_t)getpid());
    allow_bits(&p, SYS_kill, 0, UINT32_MAX, (uint32_t)getpid());
    answer(&p, SECCOMP_RET_ERRNO | EPERM);
    const struct sock_fprog prog = {.len = p.n, .filter = p.step};
    /* All threads: one waits for the end of the scheduler. */
    return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &prog) != 0
               ? -EPERM
               : 0;
}
