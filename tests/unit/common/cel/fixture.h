/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/unit/common/cel/fixture.h - one device, and what an expression says about it
 *
 * Driver dra.example.com; attributes name = "fish", model = "h100-SXM", numa = 1, ok = true,
 * version = 1.2.3, other.example.com/name = "bird"; capacity memory = 80Gi, frac = 500m.
 */
#include <errno.h>

#include "common/cel/cel.h"
#include "tests/unit/harness.h"

struct fixture {
    K8s__DeviceAttribute value[8];
    K8s__DeviceAttributeEntry entry[8];
    K8s__DeviceAttributeEntry *attributes[8];
    K8s__Quantity quantity[2];
    K8s__DeviceCapacity amount[2];
    K8s__DeviceCapacityEntry cap_entry[2];
    K8s__DeviceCapacityEntry *capacity[2];
    K8s__Device device;
    struct bh_cel_device arg;
    struct bh_err err;
    uint64_t cost;
};

static K8s__DeviceAttribute *add_attribute(struct fixture *f, const char *key)
{
    size_t i = f->device.n_attributes++;
    f->value[i] = (K8s__DeviceAttribute)K8S__DEVICE_ATTRIBUTE__INIT;
    f->entry[i] = (K8s__DeviceAttributeEntry)K8S__DEVICE_ATTRIBUTE_ENTRY__INIT;
    f->entry[i].key = (char *)key;
    f->entry[i].value = &f->value[i];
    f->attributes[i] = &f->entry[i];
    return &f->value[i];
}

static void add_capacity(struct fixture *f, const char *key, const char *amount)
{
    size_t i = f->device.n_capacity++;
    f->quantity[i] = (K8s__Quantity)K8S__QUANTITY__INIT;
    f->quantity[i].string = (char *)amount;
    f->amount[i] = (K8s__DeviceCapacity)K8S__DEVICE_CAPACITY__INIT;
    f->amount[i].value = &f->quantity[i];
    f->cap_entry[i] = (K8s__DeviceCapacityEntry)K8S__DEVICE_CAPACITY_ENTRY__INIT;
    f->cap_entry[i].key = (char *)key;
    f->cap_entry[i].value = &f->amount[i];
    f->capacity[i] = &f->cap_entry[i];
}

static BH_UNUSED void fixture_init(struct fixture *f)
{
    K8s__DeviceAttribute *a;

    memset(f, 0, sizeof(*f));
    f->device = (K8s__Device)K8S__DEVICE__INIT;
    f->device.attributes = f->attributes;
    f->device.capacity = f->capacity;
    f->arg = (struct bh_cel_device){"dra.example.com", &f->device};
    add_attribute(f, "name")->string = (char *)"fish";
    add_attribute(f, "model")->string = (char *)"h100-SXM";
    a = add_attribute(f, "dra.example.com/numa");
    a->has_int_ = 1;
    a->int_ = 1;
    a = add_attribute(f, "ok");
    a->has_bool_ = a->bool_ = 1;
    add_attribute(f, "version")->version = (char *)"1.2.3";
    add_attribute(f, "other.example.com/name")->string = (char *)"bird";
    add_capacity(f, "memory", "80Gi");
    add_capacity(f, "frac", "500m");
}

/* 0 or 1; -E2BIG, -EINVAL from the evaluation, -ENOEXEC when it did not compile. */
static BH_UNUSED int fixture_eval(struct fixture *f, const char *text)
{
    struct bh_cel_program *p = NULL;
    struct bh_arena scratch;
    bool match = false;
    int rc;

    f->err.msg[0] = '\0';
    f->cost = 0;
    if (bh_cel_compile(text, &p, &f->err) != 0)
        return -ENOEXEC;
    bh_arena_init(&scratch, 0);
    rc = bh_cel_match_device(p, &f->arg, &scratch, &match, &f->cost, &f->err);
    bh_arena_fini(&scratch);
    bh_cel_free(p);
    return rc ? rc : match;
}

struct expect {
    const char *text;
    int rc;
    const char *says; /* part of the error; NULL = do not look */
};

/* Every line, so that one failure does not hide the others. */
static BH_UNUSED void check_all(const struct expect *t, size_t n)
{
    struct fixture f;

    for (size_t i = 0; i < n; i++) {
        fixture_init(&f);
        int rc = fixture_eval(&f, t[i].text);
        bool ok = rc == t[i].rc && (!t[i].says || strstr(f.err.msg, t[i].says));
        if (!ok)
            printf("# %s -> %d (%s)\n", t[i].text, rc, f.err.msg);
        CU_ASSERT(ok);
    }
}
#define CHECK_ALL(t) check_all((t), BH_ARRAY_LEN(t))
