/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/unit/simulator/schema/test_schema.c - the tables, what they refuse, what they publish
 */
#include "common/base/map.h"
#include "simulator/schema/schema.h"
#include "tests/unit/common/k8s/fill.h"
#include "tests/unit/simulator/admission/admission_test.h"

static const struct bh_oas_type *root(const char *kind)
{
    return bh_oas_root(bh_sim_type_of_kind(NULL, kind));
}

/* What the check says of YAML, one line each; what is left of it goes to *ret_left. */
static const char *judged(struct bh_arena *a, const char *kind, const char *text, char *ret_left,
                          size_t n)
{
    struct bh_oas_report rep = {0};
    struct bh_json *v = NULL;
    struct bh_buf left = {0};
    const char *said;

    CU_ASSERT_EQUAL_FATAL(bh_yaml_parse(a, text, strlen(text), 0, &v, NULL), 0);
    bh_oas_check(root(kind), v, NULL, &rep);
    bh_json_write(&left, v);
    snprintf(ret_left, n, "%s", bh_buf_str(&left));
    said = bh_arena_printf(a, "%s%s", bh_buf_str(&rep.unknown), rep.mismatch);
    bh_buf_fini(&left);
    bh_buf_fini(&rep.unknown);
    return said;
}

static void test_every_type_has_fields(void)
{
    for (size_t i = 0; i < bh_sim_n_types; i++) {
        const struct bh_oas_type *t = bh_oas_root(&bh_sim_types[i]);
        if (!t && strstr(bh_sim_types[i].group, "berth"))
            continue; /* Berth's own kinds check themselves */
        CU_ASSERT_PTR_NOT_NULL_FATAL(t);
        if (t->n == 0)
            fprintf(stderr, "%s has no fields\n", bh_sim_types[i].kind);
        CU_ASSERT(t->n > 0);
        for (size_t k = 1; k < t->n; k++) /* looked up by halving */
            CU_ASSERT(strcmp(t->fields[k - 1].name, t->fields[k].name) < 0);
    }
    CU_ASSERT_PTR_NOT_NULL(bh_oas_field(root("Node"), "spec"));
    CU_ASSERT_PTR_NULL(bh_oas_field(root("Node"), "Spec"));
}

/* Every type that a field refers to is defined: an empty one would drop all members of it. */
static void walk(const struct bh_oas_type *t, struct bh_map *seen)
{
    static const char *const empty[] = {"CustomResourceSubresourceStatus", "BasicSchedulingPolicy",
                                        "SingleDisruptionMode", "AllDisruptionMode"};
    bool may = false;

    if (bh_map_put(seen, (const char *)&t, sizeof(t), seen))
        return;
    for (size_t i = 0; i < BH_ARRAY_LEN(empty); i++)
        may |= bh_streq(t->name, empty[i]);
    if (!t->n && !may)
        fprintf(stderr, "%s.%s has no fields\n", t->package, t->name);
    CU_ASSERT(t->n > 0 || may);
    for (size_t i = 0; i < t->n; i++) {
        CU_ASSERT((t->fields[i].type != NULL) != (t->fields[i].leaf != 0));
        CU_ASSERT(!t->fields[i].leaf || strchr("sildbyqtmxra", t->fields[i].leaf));
        if (t->fields[i].type)
            walk(t->fields[i].type, seen);
    }
}

static void test_references(void)
{
    struct bh_map seen = {0};

    for (size_t i = 0; i < bh_sim_n_types; i++) {
        if (bh_oas_root(&bh_sim_types[i]))
            walk(bh_oas_root(&bh_sim_types[i]), &seen);
    }
    CU_ASSERT(seen.len > 300);
    bh_map_fini(&seen);
}

/* The letters of fields.data that a field of the descriptor may have. */
static const char *letters(const ProtobufCFieldDescriptor *f)
{
    switch (f->type) {
    case PROTOBUF_C_TYPE_STRING:
        return "s";
    case PROTOBUF_C_TYPE_BOOL:
        return "b";
    case PROTOBUF_C_TYPE_BYTES:
        return "y";
    case PROTOBUF_C_TYPE_INT64:
        return "li";
    case PROTOBUF_C_TYPE_DOUBLE:
        return "d";
    case PROTOBUF_C_TYPE_MESSAGE:
        break;
    default:
        return "i";
    }
    switch (bh_json_form_of(f->descriptor)) {
    case BH_FORM_QUANTITY:
        return "q";
    case BH_FORM_TIME:
        return "t";
    case BH_FORM_MICRO_TIME:
        return "m";
    case BH_FORM_INT_OR_STRING:
        return "x";
    case BH_FORM_RAW:
        return "ra";
    case BH_FORM_STRING_LIST:
        return "s";
    default:
        return "";
    }
}

/* Every member of the protobuf message is one of the type's, and of its kind. */
static void same_fields(const struct bh_oas_type *t, const ProtobufCMessageDescriptor *d,
                        struct bh_map *seen)
{
    const ProtobufCFieldDescriptor *inlined = bh_schema_inlined(d);

    if (bh_map_put(seen, (const char *)&d, sizeof(d), seen))
        return;
    for (unsigned i = 0; i < d->n_fields; i++) {
        const ProtobufCFieldDescriptor *f = &d->fields[i];
        if (d == &k8s__pod_group__descriptor && bh_streq(f->name, "served"))
            continue; /* ours, between processes */
        if (f == inlined) {
            same_fields(t, f->descriptor, seen);
            continue;
        }
        const struct bh_oas_field *o = bh_oas_field(t, f->name);
        if (!o)
            fprintf(stderr, "%s.%s of the protobuf message is no field\n", t->name, f->name);
        CU_ASSERT_PTR_NOT_NULL_FATAL(o);
        bool map = f->type == PROTOBUF_C_TYPE_MESSAGE &&
                   bh_json_form_of(f->descriptor) == BH_FORM_MAP_ENTRY;
        const ProtobufCMessageDescriptor *of = map ? f->descriptor : NULL;
        const ProtobufCFieldDescriptor *value = of ? &of->fields[1] : f;
        bool right = o->type ? value->type == PROTOBUF_C_TYPE_MESSAGE && !*letters(value)
                             : *letters(value) && strchr(letters(value), o->leaf) != NULL;
        if (!right)
            fprintf(stderr, "%s.%s is of another kind in protobuf\n", t->name, f->name);
        CU_ASSERT(right);
        CU_ASSERT_EQUAL(map, strchr(o->form, '{') != NULL);
        if (right && o->type)
            same_fields(o->type, value->descriptor, seen);
    }
}

/* Custom resources and what defines them are JSON upstream, too. */
static void test_protobuf_of_every_kind(void)
{
    struct bh_map seen = {0};

    for (size_t i = 0; i < bh_sim_n_types; i++) {
        const struct bh_sim_type *t = &bh_sim_types[i];
        if ((t->flags & (BH_SIM_COMPUTED | BH_SIM_DEFINES)) || strstr(t->group, "berth"))
            continue;
        if (bh_streq(t->kind, "Workload") && t->stored_as)
            continue; /* JSON only */
        if (!t->pb)
            fprintf(stderr, "%s has no protobuf message\n", t->kind);
        CU_ASSERT_PTR_NOT_NULL_FATAL(t->pb);
        same_fields(bh_oas_root(t), t->pb, &seen);
    }
    CU_ASSERT(seen.len > 300);
    bh_map_fini(&seen);
}

static void test_unknown(void)
{
    struct bh_arena a;
    char left[400];

    bh_arena_init(&a, 0);
    EQ(judged(&a, "Pod",
              "{metadata: {name: x, lables: {}}, spec: {containers: [{name: c, imge: i}], foo: "
              "{bar: 1}}}",
              left, sizeof(left)),
       "unknown field \"metadata.lables\"\nunknown field \"spec.containers[0].imge\"\nunknown "
       "field \"spec.foo\"\n");
    EQ(left, "{\"metadata\":{\"name\":\"x\"},\"spec\":{\"containers\":[{\"name\":\"c\"}]}}");
    /* Keys of maps are anything. */
    EQ(judged(&a, "Node", "{metadata: {labels: {a/b: c}}, status: {capacity: {x.y/z: 1}}}", left,
              sizeof(left)),
       "");
    EQ(judged(&a, "Pod", "{spec: {containers: [{name: 1}]}}", left, sizeof(left)),
       "json: cannot unmarshal number into Go struct field Container.spec.containers.name of type "
       "string");
    EQ(judged(&a, "LimitRange", "{spec: {limits: {a: b}}}", left, sizeof(left)),
       "json: cannot unmarshal object into Go struct field LimitRangeSpec.spec.limits of type "
       "[]v1.LimitRangeItem");
    EQ(judged(&a, "Pod", "{spec: {priority: 3000000000}}", left, sizeof(left)),
       "json: cannot unmarshal number 3000000000 into Go struct field PodSpec.spec.priority of "
       "type int32");
    EQ(judged(&a, "Pod", "{spec: null, metadata: {labels: {a: null}}}", left, sizeof(left)), "");
    EQ(left, "{\"spec\":null,\"metadata\":{\"labels\":{\"a\":\"\"}}}");
    bh_arena_fini(&a);
}

/* As decoding into Go's types leaves them: who reads a list of texts finds nothing else in it. */
static void test_nulls(void)
{
    struct bh_arena a;
    char left[400];

    bh_arena_init(&a, 0);
    EQ(judged(&a, "Role", "{rules: [null, {verbs: [get, null]}]}", left, sizeof(left)), "");
    EQ(left, "{\"rules\":[{},{\"verbs\":[\"get\",\"\"]}]}");
    EQ(judged(&a, "Pod",
              "{spec: {overhead: {cpu: null}, securityContext: {supplementalGroups: [null]}}}",
              left, sizeof(left)),
       "");
    EQ(left, "{\"spec\":{\"overhead\":{\"cpu\":\"0\"},\"securityContext\":{\"supplementalGroups\":["
             "0]}}}");
    EQ(judged(&a, "SubjectAccessReview", "{spec: {extra: {a: null}}}", left, sizeof(left)), "");
    EQ(left, "{\"spec\":{\"extra\":{\"a\":[]}}}");
    /* A time that is none is written as null there, too; "anything" may be null. */
    EQ(judged(&a, "PodDisruptionBudget", "{status: {disruptedPods: {p: null}}}", left,
              sizeof(left)),
       "");
    EQ(left, "{\"status\":{\"disruptedPods\":{\"p\":null}}}");
    bh_arena_fini(&a);
}

static void test_repeats(void)
{
    static const char text[] = "{\"a\":1,\"b\":{\"c\":[{\"d\":1,\"d\":2}]},\"a\":2}";
    struct bh_oas_report rep = {0};
    struct bh_arena a;
    struct bh_json *v = NULL;

    bh_arena_init(&a, 0);
    CU_ASSERT_EQUAL_FATAL(bh_json_parse(&a, text, strlen(text), BH_JSON_REPEATS, &v, NULL), 0);
    bh_oas_repeats(v, &rep);
    EQ(bh_buf_str(&rep.unknown), "duplicate field \"b.c[0].d\"\nduplicate field \"a\"\n");
    bh_buf_fini(&rep.unknown);
    bh_arena_fini(&a);
}

static void test_emit(void)
{
    struct bh_buf out = {0}, whole = {0};
    struct bh_map done = {0};
    struct bh_arena a;
    struct bh_json *v = NULL;
    const struct bh_json *f;

    bh_arena_init(&a, 0);
    for (size_t i = 0; i < bh_sim_n_types; i++)
        bh_oas_emit(&bh_sim_types[i], &done, &out);
    bh_buf_addf(&whole, "{%s}", bh_buf_str(&out));
    CU_ASSERT_EQUAL_FATAL(bh_json_parse(&a, whole.p, whole.n, BH_JSON_STRICT, &v, NULL), 0);
    f = bh_json_get(bh_json_get(bh_json_get(v, "io.k8s.api.core.v1.PodSpec"), "properties"),
                    "containers");
    EQ(bh_json_get_text(f, "type"), "array");
    EQ(bh_json_get_text(f, "x-kubernetes-patch-merge-key"), "name");
    CU_ASSERT_PTR_NOT_NULL(strstr(bh_json_get_text(f, "description"), "at least one"));
    CU_ASSERT_PTR_NOT_NULL(bh_json_get(v, "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"));
    CU_ASSERT_PTR_NULL(strstr(whole.p, "\"properties\":{}")); /* does not survive a client */
    /* Whatever is referred to is there. */
    for (const char *p = whole.p; (p = strstr(p, "#/components/schemas/"));) {
        p += strlen("#/components/schemas/");
        CU_ASSERT_PTR_NOT_NULL(bh_json_get(v, bh_arena_strndup(&a, p, strcspn(p, "\""))));
    }
    bh_buf_fini(&out);
    bh_buf_fini(&whole);
    bh_map_fini(&done);
    bh_arena_fini(&a);
}

/* ---- the check and the decoder --------------------------------------------------------------- */

/* A value of another kind in the same place. */
static void spoil(struct bh_json *v, uint64_t how)
{
    static const char *const texts[] = {
        "", "x", "100m", "1Gi", " 1", "QQ==", "2026-01-01T00:00:00Z"};
    static const char *const numbers[] = {"0", "-1", "4294967296", "1.5"};
    switch (how % 5) {
    case 0:
        v->type = BH_JSON_BOOL;
        v->b = true;
        break;
    case 1:
        v->type = BH_JSON_NUMBER;
        v->s = bh_str_c(numbers[how / 5 % BH_ARRAY_LEN(numbers)]);
        break;
    case 2:
        v->type = BH_JSON_STRING;
        v->s = bh_str_c(texts[how / 5 % BH_ARRAY_LEN(texts)]);
        break;
    default:
        v->type = how % 5 == 3 ? BH_JSON_ARRAY : BH_JSON_OBJECT;
        memset(&v->c, 0, sizeof(v->c));
    }
}

/* The server decodes a body only when the check asks for it (careful): so nothing that the check
 * takes without asking may be refused by the decoder. */
static void test_what_needs_no_care_decodes(void)
{
    struct bh_arena a;
    struct bh_rand rnd;
    size_t sure = 0, wrong = 0, decoded = 0;

    bh_rand_seed(&rnd, 11);
    bh_arena_init(&a, 0);
    for (size_t i = 0; i < bh_sim_n_types; i++) {
        const struct bh_sim_type *t = &bh_sim_types[i];
        for (int round = 0; t->pb && bh_oas_root(t) && round < 300; round++) {
            struct fill f = {&a, 0};
            struct bh_json *v = bh_pb_to_json(&a, fill_message(&f, t->pb));
            struct bh_oas_report rep = {0};
            ProtobufCMessage *m;
            struct bh_err err = {""};
            size_t at = bh_rand_below(&rnd, 400);
            struct bh_json *spoilt = round ? nth_value(v, &at) : NULL;
            if (spoilt)
                spoil(spoilt, bh_rand_u64(&rnd));
            bh_oas_check(bh_oas_root(t), v, NULL, &rep);
            int rc = bh_json_to_pb(&a, t->pb, v, &m, NULL, &err);
            decoded += rc == 0;
            wrong += *rep.mismatch != '\0';
            if (!*rep.mismatch && !rep.careful) {
                sure++;
                if (rc)
                    printf("  %s: %s\n", t->kind, err.msg);
                CU_ASSERT_EQUAL(rc, 0);
            }
            bh_buf_fini(&rep.unknown);
            bh_arena_reset(&a);
        }
    }
    CU_ASSERT(sure > 100);
    CU_ASSERT(wrong > 100);
    CU_ASSERT(decoded > 100);
    (void)same_message;
    bh_arena_fini(&a);
}

BH_TESTS("simulator/schema", {"every built-in type has its fields", test_every_type_has_fields},
         {"whatever a field refers to is defined", test_references},
         {"every built-in kind has its protobuf message", test_protobuf_of_every_kind},
         {"nulls in lists and maps are their types' zero values", test_nulls},
         {"unknown members are named and taken out, wrong types named", test_unknown},
         {"members that stand twice are named", test_repeats},
         {"the published schemas hang together", test_emit},
         {"what needs no care decodes", test_what_needs_no_care_decodes})
