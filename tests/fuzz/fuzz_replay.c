/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/fuzz/fuzz_replay.c - a record file of any bytes: read, cleaned and played to its end
 *
 * Plain or gzip. Whatever comes, the replay ends as Done or Failed, with every record applied or
 * named. The server is made anew every hundred inputs.
 */
#include "common/base/loop.h"
#include "simulator/replay/engine.h"
#include "simulator/server/server.h"

#include <stdio.h>

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

#define INPUTS_PER_SERVER 100

static uv_loop_t loop;
static struct bh_sim *sim;
static struct bh_player *player;

static void ensure_server(void)
{
    static const struct bh_sim_options o = {
        .manual_clock = true, .seed = 1, .first_revision = 1000};
    static unsigned inputs;
    struct bh_err err;

    if (sim && ++inputs % INPUTS_PER_SERVER)
        return;
    if (sim) {
        bh_player_free(player);
        bh_sim_free(sim);
        bh_loop_drain_close(&loop);
    }
    uv_loop_init(&loop);
    if (bh_sim_new_bare(&loop, &o, &sim, &err) < 0) {
        fprintf(stderr, "%s\n", err.msg);
        abort();
    }
    player = bh_player_new(sim);
}

static const char *phase(struct bh_arena *a)
{
    return bh_json_get_text(bh_player_state(player, a), "phase");
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    struct bh_player_options o = {
        .name = "fuzz", .speed = 1e6, .follow = n % 2, .clear = n % 3 == 0};
    struct bh_arena a;
    struct bh_err err;
    int turns = 0;

    ensure_server();
    if (bh_player_start(player, p, n, &o, &err) < 0)
        return 0;
    bh_arena_init(&a, 0);
    while (bh_streq(phase(&a), "Loading"))
        uv_run(&loop, UV_RUN_ONCE);
    /* Years can lie between two records. */
    while (bh_streq(phase(&a), "Running") && turns++ < 1000)
        if (bh_sim_advance(sim, bh_sim_now_ns(sim) + INT64_C(3600) * 1000000000) < 0)
            abort();
    if (turns < 1000 && !bh_streq(phase(&a), "Done") && !bh_streq(phase(&a), "Failed"))
        abort();
    bh_player_stop(player);
    bh_arena_fini(&a);
    return 0;
}
