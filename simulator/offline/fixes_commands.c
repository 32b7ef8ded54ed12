/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/offline/fixes_commands.c - a change as commands for a shell
 *
 * Little of a pod's spec may be changed: the patch goes to the template of the owner, and a pod
 * without one is replaced.
 */
#include "simulator/offline/fixes_int.h"

#include "common/data/yaml.h"

static const char *quoted(struct bh_fixes *f, const struct bh_json *patch)
{
    struct bh_buf json BH_CLEANUP(bh_buf_fini) = {0}, b BH_CLEANUP(bh_buf_fini) = {0};

    bh_json_write(&json, patch);
    bh_buf_addc(&b, '\'');
    for (size_t i = 0; i < json.n; i++) {
        if (json.p[i] == '\'')
            bh_buf_adds(&b, "'\\''");
        else
            bh_buf_addc(&b, json.p[i]);
    }
    bh_buf_addc(&b, '\'');
    return bh_arena_strdup(f->a, bh_buf_str(&b));
}

/* Whose template the pod is made of; a ReplicaSet of a Deployment has the pod's hash in its name. */
static const char *owner(struct bh_fixes *f, const char **ret_kind)
{
    const struct bh_json *meta = bh_json_get(f->pod, "metadata");

    *ret_kind = "";
    bh_json_each(o, bh_json_get_list(meta, "ownerReferences")) {
        const char *name = bh_json_get_text(o, "name"), *kind = bh_json_get_text(o, "kind");
        const char *hash = bh_json_get_text(bh_json_get(meta, "labels"), "pod-template-hash");
        size_t n = strlen(name), h = strlen(hash);
        if (!bh_json_get_bool(o, "controller", false))
            continue;
        *ret_kind = kind;
        if (!bh_streq(kind, "ReplicaSet") || !h || n < h + 2 || !bh_streq(name + n - h, hash) ||
            name[n - h - 1] != '-')
            return name;
        *ret_kind = "Deployment";
        return bh_arena_strndup(f->a, name, n - h - 1);
    }
    return "";
}

static bool has_template(const char *kind)
{
    return bh_word_at("Deployment ReplicaSet StatefulSet DaemonSet ReplicationController", kind) >=
           0;
}

bool bh_fixes_patches_owner(struct bh_fixes *f)
{
    const char *kind;

    return *owner(f, &kind) && has_template(kind);
}

/* What may be changed on a pod that is there: more tolerations, fewer gates. */
static bool in_place(const struct bh_fix *x)
{
    bh_json_each(m, bh_json_get(x->pod, "spec"))
        if (!bh_streq(m->key.p, "tolerations") && !bh_streq(m->key.p, "schedulingGates"))
            return false;
    return true;
}

static void say(struct bh_fixes *f, struct bh_json *to, const char *command)
{
    bh_json_push(bh_json_list_at(f->a, to, "commands"), bh_json_new_cstr(f->a, command));
}

/* What admission adds to every pod is not said in a template. */
static void drop_added(struct bh_json *tolerations)
{
    struct bh_json *next;

    for (struct bh_json *t = bh_json_first(tolerations); t; t = next) {
        next = t->next;
        if (bh_json_get_i64(t, "tolerationSeconds", 0) == 300 &&
            bh_word_at("node.kubernetes.io/not-ready node.kubernetes.io/unreachable",
                       bh_json_get_text(t, "key")) >= 0)
            (void)bh_json_remove(tolerations, t);
    }
}

/* The same command for each member of a group, or for the pod alone. */
static void add_pod_command(struct bh_fixes *f, struct bh_json *to, const char *before,
                            const char *after)
{
    const char *name = bh_json_get_text(bh_json_get(f->pod, "metadata"), "name");

    say(f, to,
        f->names
            ? bh_arena_printf(f->a, "for pod in %s; do %s $pod %s; done", f->names, before, after)
            : bh_arena_printf(f->a, "%s %s %s", before, name, after));
}

static void of_pod(struct bh_fixes *f, const struct bh_fix *x, struct bh_json *to)
{
    const struct bh_json *meta = bh_json_get(f->pod, "metadata");
    const char *ns = bh_json_get_text(meta, "namespace");
    const char *kind, *of = owner(f, &kind);
    struct bh_json *patch = bh_json_clone(f->a, x->pod);

    bh_json_drop(bh_json_get(patch, "spec"), "priority"); /* follows from the class */
    if (has_template(kind)) {
        bh_json_set_str(f->a, to, "note",
                        bh_arena_printf(f->a,
                                        "most of a pod's spec is immutable: the patch goes to the "
                                        "template of its owner, %s %s, and changes all of its pods",
                                        kind, of));
        drop_added(bh_json_path(patch, "spec.tolerations"));
        say(f, to,
            bh_arena_printf(f->a, "kubectl patch %s %s -n %s -p %s", kind, of, ns,
                            quoted(f, bh_json_make(f->a, "spec: {template: %p}", patch))));
    } else if (*of && !in_place(x)) {
        bh_json_set_str(f->a, to, "note",
                        bh_arena_printf(f->a,
                                        "the pod belongs to %s %s, whose pods cannot be patched: "
                                        "delete it and create it again with this change",
                                        kind, of));
    } else if (in_place(x)) {
        add_pod_command(f, to, "kubectl patch pod",
                        bh_arena_printf(f->a, "-n %s -p %s", ns, quoted(f, patch)));
    } else {
        bh_json_set_str(f->a, to, "note",
                        f->names ? "most of a pod's spec is immutable, and these have no owner: "
                                   "they are deleted and created again"
                                 : "most of a pod's spec is immutable, and this one has no owner: "
                                   "it is deleted and created again");
        add_pod_command(f, to, "kubectl get pod",
                        bh_arena_printf(f->a,
                                        "-n %s -o json | kubectl patch --local -f - -p %s -o json "
                                        "| kubectl replace --force -f -",
                                        ns, quoted(f, patch)));
    }
}

void bh_fixes_commands(struct bh_fixes *f, const struct bh_fix *x, struct bh_json *to)
{
    bh_json_each(o, x->create) {
        struct bh_buf b BH_CLEANUP(bh_buf_fini) = {0};
        bh_buf_adds(&b, "kubectl apply -f - <<'EOF'\n");
        bh_yaml_write(&b, o);
        bh_buf_adds(&b, "EOF");
        say(f, to, bh_buf_str(&b));
    }
    if (x->node)
        say(f, to,
            bh_arena_printf(f->a, "kubectl patch node %s --type merge -p %s", x->node_name,
                            quoted(f, x->node)));
    if (x->pod)
        of_pod(f, x, to);
}
