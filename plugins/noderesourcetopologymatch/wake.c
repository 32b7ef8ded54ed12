/* SPDX-License-Identifier: Apache-2.0
 *
 * plugins/noderesourcetopologymatch/wake.c - pods that wait for a node whose object is ahead of its pods
 *
 * An object may know of a pod before the scheduler sees that the kubelet took it up, and that is no event
 * that would bring rejected pods back. So they are, once a period, while there is such a node; what has
 * become of it the next epoch() finds out.
 *
 * Runs in: a thread of its own, with the cache only; ahead is what it shares with callbacks.
 */
#define _POSIX_C_SOURCE 200809L

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include "nrt.h"

struct nrt_waker {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t over;
    int ends; /* under lock */
    atomic_int ahead;
    int64_t period;
    struct berth_home *home;
};

static void *run(void *arg)
{
    struct nrt_waker *w = arg;
    struct timespec at;

    pthread_mutex_lock(&w->lock);
    clock_gettime(CLOCK_MONOTONIC, &at);
    while (!w->ends) {
        at.tv_sec += (time_t)(w->period / 1000000000);
        while (!w->ends && pthread_cond_timedwait(&w->over, &w->lock, &at) == 0)
            ;
        if (!w->ends && atomic_exchange(&w->ahead, 0))
            nrt_host->base->wake(w->home);
    }
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

struct nrt_waker *nrt_waker_new(struct berth_home *home, int64_t period)
{
    struct nrt_waker *w = calloc(1, sizeof *w);
    pthread_condattr_t clock;

    if (!w)
        return NULL;
    w->home = home;
    w->period = period;
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->over, &clock);
    pthread_condattr_destroy(&clock);
    if (pthread_create(&w->thread, NULL, run, w) == 0)
        return w;
    pthread_cond_destroy(&w->over);
    pthread_mutex_destroy(&w->lock);
    free(w);
    return NULL;
}

void nrt_waker_free(struct nrt_waker *w)
{
    if (!w)
        return;
    pthread_mutex_lock(&w->lock);
    w->ends = 1;
    pthread_cond_signal(&w->over);
    pthread_mutex_unlock(&w->lock);
    pthread_join(w->thread, NULL);
    pthread_cond_destroy(&w->over);
    pthread_mutex_destroy(&w->lock);
    free(w);
}

void nrt_waker_ahead(struct nrt_waker *w)
{
    atomic_store(&w->ahead, 1);
}
