/* SPDX-License-Identifier: Apache-2.0
 *
 * common/api/from_flags.c - which API server, as which user, how fast
 */
#include "common/api/from_flags.h"

#include <errno.h>
#include <sys/stat.h>

#define CONFIG_ARENA_BYTES ((size_t)256 << 20) /* a file of 4 MiB as a tree */

static int set_limit(struct bh_api_setup *s, const char *runtime_dir, struct bh_err *err)
{
    const struct bh_client_config *c = &s->file.client;

    s->qps = c->qps > 0 ? c->qps : 0;
    s->burst = c->burst;
    if (s->qps > 0 && s->burst <= 0)
        return bh_err_set(err, -EINVAL,
                          "burst is required to be greater than 0 when RateLimiter is not set and "
                          "QPS is set to greater than 0");
    if (s->qps > 0 && runtime_dir) {
        snprintf(s->limit_file, sizeof(s->limit_file), "%s/api.limit", runtime_dir);
        snprintf(s->event_limit_file, sizeof(s->event_limit_file), "%s/events.limit", runtime_dir);
    }
    return 0;
}

bool bh_api_unit_kubeconfig(char out[static 256])
{
    const char *dir = getenv("CREDENTIALS_DIRECTORY");
    struct stat st;
    int n = dir && *dir == '/' ? snprintf(out, 256, "%s/kubeconfig", dir) : 0;

    return n > 0 && n < 256 && stat(out, &st) == 0 && st.st_size > 1;
}

int bh_api_setup_load(struct bh_api_setup *s, const struct bh_kube_flags *f,
                      const struct bh_api_own_flags *own, const char *runtime_dir,
                      struct bh_err *err)
{
    *s = (struct bh_api_setup){0};
    bh_arena_init(&s->arena, CONFIG_ARENA_BYTES);
    int rc = bh_component_config_load(f->config, &s->arena, &s->file, err);

    if (rc < 0)
        return rc;
    bh_kube_flags_apply(f, &s->file);
    if (own->kubeconfig)
        s->file.client.kubeconfig = own->kubeconfig;
    else if (bh_api_unit_kubeconfig(s->unit_kubeconfig))
        s->file.client.kubeconfig = s->unit_kubeconfig;
    const char *accept = s->file.client.accept_content_types;
    s->json = bh_streq(*accept ? accept : s->file.client.content_type, "application/json");
    rc =
        bh_kubeconfig_load_master(s->file.client.kubeconfig, own->context, f->master, &s->api, err);
    return rc < 0 ? rc : set_limit(s, runtime_dir, err);
}

void bh_api_setup_fini(struct bh_api_setup *s)
{
    bh_api_config_free(s->api);
    s->api = NULL;
    bh_arena_fini(&s->arena);
}

struct bh_api_options bh_api_setup_options(const struct bh_api_setup *s, bool events)
{
    const char *file = events ? s->event_limit_file : s->limit_file;

    return (struct bh_api_options){
        .qps = s->qps, .burst = s->burst, .limit_file = *file ? file : NULL, .json = s->json};
}
