/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/plugins/dynamicresources/values.c - attributes as numbers
 *
 * Constraints compare one attribute of very many devices. The values of an attribute that
 * constraints ask for are numbered once for all devices, so that a comparison is one of integers.
 */
#include "scheduler/plugins/dynamicresources/search.h"

static uint32_t number_of(struct bh_map *known, struct bh_buf *b, char type, const void *p,
                          size_t n)
{
    bh_buf_reset(b);
    bh_buf_addc(b, type);
    bh_buf_add(b, p, n);
    uintptr_t v = (uintptr_t)bh_map_get(known, b->p, b->n);
    if (!v) {
        v = known->len + BH_DRA_VALUE_FIRST;
        bh_map_put(known, b->p, b->n, (void *)v); /* an integer, not an address */
    }
    return (uint32_t)v;
}

/* ABSENT as well for a value that no number can stand for; then the column is odd. */
static uint32_t read_value(struct bh_dra_column *k, struct bh_map *known, struct bh_buf *b,
                           const K8s__DeviceAttribute *a)
{
    if (!a)
        return BH_DRA_VALUE_ABSENT;
    int types = !!a->string + !!a->has_int_ + !!a->has_bool_ + !!a->version;
    bool truth = a->bool_;
    if (types != 1) {
        k->odd = true;
        return BH_DRA_VALUE_ABSENT;
    }
    if (a->string)
        return number_of(known, b, 's', a->string, strlen(a->string));
    if (a->version)
        return number_of(known, b, 'v', a->version, strlen(a->version));
    return a->has_int_ ? number_of(known, b, 'i', &a->int_, sizeof a->int_)
                       : number_of(known, b, 'b', &truth, sizeof truth);
}

const struct bh_dra_column *bh_dra_column_of(struct bh_dra *d, const char *attribute)
{
    unsigned i = 0;

    while (i < BH_DRA_COLUMNS && d->column[i] && !bh_streq(d->column[i]->attribute, attribute))
        i++;
    if (i == BH_DRA_COLUMNS)
        return NULL;
    if (!d->column[i]) {
        d->column[i] = bh_calloc(1, sizeof *d->column[i]);
        d->column[i]->attribute = bh_strdup(attribute);
    }
    struct bh_dra_column *k = d->column[i];
    if (k->index != d->index_generation) {
        struct bh_map known BH_CLEANUP(bh_map_fini) = {0};
        struct bh_buf b BH_CLEANUP(bh_buf_fini) = {0};
        k->odd = false;
        k->value = bh_reallocarray(k->value, (size_t)d->n_devices + 1, sizeof *k->value);
        for (uint32_t j = 0; j < d->n_devices; j++) {
            const struct bh_dra_device *dev = &d->devices[j];
            const char *driver = d->slices[dev->slice].driver;
            k->value[j] = read_value(k, &known, &b, bh_dra_attribute(dev->msg, driver, attribute));
        }
        k->index = d->index_generation;
    }
    return k->odd ? NULL : k;
}

void bh_dra_forget_columns(struct bh_dra *d)
{
    for (unsigned i = 0; i < BH_DRA_COLUMNS; i++) {
        if (d->column[i]) {
            free(d->column[i]->attribute);
            free(d->column[i]->value);
        }
        free(d->column[i]);
        d->column[i] = NULL;
    }
}

/* ---- constraints by numbers ---- */

bool bh_dra_number_add(struct bh_dra_constraint *c, uint32_t request, int32_t sub, uint32_t device)
{
    uint32_t value = c->column->value[device];

    if (!bh_dra_concerned(c, request, sub))
        return true;
    if (value == BH_DRA_VALUE_ABSENT)
        return false;
    if (c->distinct) {
        for (uint32_t i = 0; c->n > 0 && i < c->n_values; i++)
            if (c->numbers[i] == value)
                return false;
        c->numbers[request] = value;
    } else if (c->n == 0) {
        c->number = value;
    } else if (c->number != value) {
        return false;
    }
    c->n++;
    return true;
}

void bh_dra_number_remove(struct bh_dra_constraint *c, uint32_t request, int32_t sub)
{
    if (!bh_dra_concerned(c, request, sub))
        return;
    if (c->distinct)
        c->numbers[request] = BH_DRA_VALUE_NONE;
    c->n--;
}
