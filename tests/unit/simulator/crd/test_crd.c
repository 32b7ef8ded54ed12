/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/unit/simulator/crd/test_crd.c - definitions make types; custom resources follow their
 * schema
 */
#include "simulator/crd/crd.h"
#include "tests/unit/simulator/admission/admission_test.h"

#define CRDS "CustomResourceDefinition"
#define VERSION(name, storage, properties)                                                         \
    "  - {name: " name ", served: true, storage: " storage                                         \
    ", subresources: {status: {}}, schema: {openAPIV3Schema: {type: object, properties: {spec: "   \
    "{type: object, properties: {" properties "}}, status: {type: object}}}}}\n"
#define WIDGETS(versions)                                                                          \
    "metadata: {name: widgets.example.com}\nspec:\n  group: example.com\n  scope: Namespaced\n"    \
    "  names: {plural: widgets, kind: Widget, shortNames: [wi]}\n  versions:\n" versions

static const struct bh_sim_type *widgets(struct fixture *f, const char *version)
{
    return bh_sim_find_type(f->s, "example.com", version, "widgets");
}

static int put(struct fixture *f, const struct bh_sim_type *t, const char *text)
{
    f->e = (struct bh_sim_error){0};
    return bh_sim_create(f->s, t, "default", &f->a, yaml(f, text), NULL, &f->e);
}

static void test_life(void)
{
    struct fixture f;
    struct bh_sim_delete_options now = {.grace_s = 0};
    struct bh_sim_obj *o;
    const struct bh_sim_type *t;

    fixture_init(&f, NULL, false);
    CU_ASSERT_PTR_NULL(widgets(&f, "v1"));
    o = make(&f, CRDS, "", WIDGETS(VERSION("v1", "true", "size: {type: integer, default: 3}")));
    CU_ASSERT_PTR_NOT_NULL_FATAL(o);
    EQ(field(&f, o, "spec.names.singular"), "widget");
    EQ(field(&f, o, "status.storedVersions"), "[\"v1\"]");
    CU_ASSERT_PTR_NOT_NULL(strstr(o->json, "\"type\":\"Established\",\"status\":\"True\""));
    t = widgets(&f, "v1");
    CU_ASSERT_PTR_NOT_NULL_FATAL(t);
    EQ(t->short_names, "wi");
    CU_ASSERT_EQUAL(put(&f, t,
                        "{apiVersion: example.com/v1, kind: Widget, metadata: {name: a}, "
                        "spec: {junk: 1}}"),
                    0);
    EQ(field(&f, bh_sim_get(f.s, t, "default", "a"), "spec"), "{\"size\":3}");
    CU_ASSERT_EQUAL(bh_sim_count(f.s, t), 1);
    CU_ASSERT_EQUAL(
        bh_sim_delete(f.s, bh_sim_type_of_kind(NULL, CRDS), "", "widgets.example.com", &now, NULL),
        0);
    for (int i = 0; i < 100 && widgets(&f, "v1"); i++)
        uv_run(&f.loop, UV_RUN_ONCE);
    CU_ASSERT_PTR_NULL(widgets(&f, "v1"));
    CU_ASSERT_PTR_NULL(get(&f, BH_SIM_CRD_PLURAL, "", "widgets.example.com"));
    /* And again: the new type knows nothing of the old objects. */
    CU_ASSERT_PTR_NOT_NULL(make(&f, CRDS, "", WIDGETS(VERSION("v1", "true", ""))));
    CU_ASSERT_PTR_NOT_EQUAL(widgets(&f, "v1"), t);
    CU_ASSERT_PTR_NULL(bh_sim_get(f.s, widgets(&f, "v1"), "default", "a"));
    fixture_fini(&f);
}

/* Somebody took the finalizer off: the objects go all the same, one commit each. */
static void test_unheld(void)
{
    struct fixture f;
    struct bh_sim_delete_options now = {.grace_s = 0};
    uint64_t before;

    fixture_init(&f, NULL, false);
    CU_ASSERT_PTR_NOT_NULL_FATAL(make(&f, CRDS, "", WIDGETS(VERSION("v1", "true", ""))));
    CU_ASSERT_EQUAL(
        put(&f, widgets(&f, "v1"),
            "{apiVersion: example.com/v1, kind: Widget, metadata: {name: a, finalizers: "
            "[x.y/z]}}"),
        0);
    CU_ASSERT_EQUAL(
        change(&f, CRDS, "", "widgets.example.com", BH_SIM_MAIN, "metadata.finalizers", NULL), 0);
    before = bh_sim_revision(f.s);
    CU_ASSERT_EQUAL(
        bh_sim_delete(f.s, bh_sim_type_of_kind(NULL, CRDS), "", "widgets.example.com", &now, NULL),
        0);
    CU_ASSERT_EQUAL(bh_sim_revision(f.s), before + 2);
    CU_ASSERT_PTR_NULL(widgets(&f, "v1"));
    fixture_fini(&f);
}

static void test_versions(void)
{
    struct fixture f;
    const struct bh_sim_type *v1, *v2;

    fixture_init(&f, NULL, false);
    CU_ASSERT_PTR_NOT_NULL_FATAL(make(&f, CRDS, "",
                                      WIDGETS(VERSION("v1", "true", "a: {type: string}")
                                                  VERSION("v2", "false", "b: {type: string}"))));
    v1 = widgets(&f, "v1");
    v2 = widgets(&f, "v2");
    CU_ASSERT_PTR_EQUAL(bh_sim_type_stored(v2), v1);
    CU_ASSERT_EQUAL(put(&f, v1, "{apiVersion: example.com/v1, kind: Widget, metadata: {name: x}}"),
                    0);
    CU_ASSERT_PTR_EQUAL(bh_sim_get(f.s, v1, "default", "x"), bh_sim_get(f.s, v2, "default", "x"));
    /* v1 is no longer served: its store remains that of all versions. */
    CU_ASSERT_EQUAL(change(&f, CRDS, "", "widgets.example.com", BH_SIM_MAIN, "spec.versions",
                           "[{name: v2, served: true, storage: true, schema: {openAPIV3Schema: "
                           "{type: object}}}]"),
                    0);
    CU_ASSERT_PTR_NULL(widgets(&f, "v1"));
    CU_ASSERT_PTR_EQUAL(widgets(&f, "v2"), v2);
    CU_ASSERT_PTR_NOT_NULL(bh_sim_get(f.s, v2, "default", "x"));
    EQ(field(&f, get(&f, BH_SIM_CRD_PLURAL, "", "widgets.example.com"), "status.storedVersions"),
       "[\"v1\",\"v2\"]");
    fixture_fini(&f);
}

static void test_refused(void)
{
    static const char *const bad[][2] = {
        {"metadata: {name: a.b.c}\nspec: {group: b.c, scope: Namespaced, names: {plural: x, kind: "
         "X}, versions: []}",
         "metadata.name: Invalid value: \"a.b.c\": must be spec.names.plural"},
        {"metadata: {name: x.c}\nspec: {group: c, scope: Some, names: {plural: x, kind: X}, "
         "versions: [{name: v1, storage: true, served: true}]}",
         "spec.scope: Unsupported value: \"Some\""},
        {"metadata: {name: x.b.c}\nspec: {group: b.c, scope: Cluster, names: {plural: x, kind: X}, "
         "versions: [{name: v1, storage: true, served: true, schema: {openAPIV3Schema: {type: "
         "object, properties: {a: {type: thing}, b: {pattern: \"(\", type: string}, c: {type: "
         "array}}}}}]}",
         "properties[a].type: Unsupported value: \"thing\""},
        {"metadata: {name: x.b.c}\nspec: {group: b.c, scope: Cluster, names: {plural: x, kind: "
         "\"X\\\"Y\", shortNames: [\"a b\", 1]}, versions: [1]}",
         "spec.names.kind: Invalid value: "},
        {"metadata: {name: x.b.c}\nspec: {group: b.c, scope: Cluster, names: {plural: x, kind: X}, "
         "versions: [{name: v1, storage: true, served: true, schema: {openAPIV3Schema: {type: "
         "object, properties: [1]}}}]}",
         "properties and items are objects"},
        {"metadata: {name: deployments.apps}\nspec: {group: apps, scope: Namespaced, names: "
         "{plural: deployments, kind: Deployment}, versions: [{name: v1, storage: true, served: "
         "true, schema: {openAPIV3Schema: {type: object}}}]}",
         "spec.names.plural: Forbidden: this resource is part of the API already"}};
    struct fixture f;

    fixture_init(&f, NULL, false);
    for (size_t i = 0; i < BH_ARRAY_LEN(bad); i++) {
        CU_ASSERT_PTR_NULL(make(&f, CRDS, "", bad[i][0]));
        CU_ASSERT_EQUAL(f.e.code, 422);
        if (!strstr(causes(&f), bad[i][1]))
            fprintf(stderr, "want %s\ngot  %s\n", bad[i][1], causes(&f));
        CU_ASSERT_PTR_NOT_NULL(strstr(causes(&f), bad[i][1]));
    }
    /* A kind that another definition of the group has is not accepted, and not served. */
    CU_ASSERT_PTR_NOT_NULL(make(&f, CRDS, "", WIDGETS(VERSION("v1", "true", ""))));
    CU_ASSERT_PTR_NOT_NULL(make(&f, CRDS, "",
                                "metadata: {name: others.example.com}\nspec: {group: example.com, "
                                "scope: Cluster, names: {plural: others, kind: Widget}, versions: "
                                "[{name: v1, storage: true, served: true, schema: "
                                "{openAPIV3Schema: {type: object}}}]}"));
    CU_ASSERT_PTR_NULL(bh_sim_find_type(f.s, "example.com", "v1", "others"));
    fixture_fini(&f);
}

/* What the schema says of YAML. */
static const char *said(struct fixture *f, const char *schema, const char *text)
{
    f->e = (struct bh_sim_error){0};
    bh_crd_validate(&f->a, yaml(f, schema), yaml(f, text), &f->e);
    return causes(f);
}

static void test_schema(void)
{
    struct fixture f;

    fixture_init(&f, NULL, false);
#define S(x) "{type: object, properties: {a: {" x "}}}"
    EQ(said(&f, S("type: integer, minimum: 2, maximum: 4"), "{a: 3}"), "");
    EQ(said(&f, S("type: integer, maximum: 4, exclusiveMaximum: true"), "{a: 4}"),
       "a: Invalid value: 4: a in body should be less than 4");
    EQ(said(&f, S("type: integer"), "{a: 1.5}"),
       "a: Invalid value: 1.5: a in body must be of type integer: \"number\"");
    static const struct {
        const char *step, *n;
        bool ok;
    } multiples[] = {{"0.01", "0.07", true},
                     {"0.01", "0.075", false},
                     {"0.01", "0.29", false}, /* refused upstream as well */
                     {"0.5", "-1.5", true},
                     {"0.5", "3", true},
                     {"2.5", "7.5", true},
                     {"3", "9007199254740993", true},
                     {"3", "9007199254740994", false},
                     {"3", "-9223372036854775808", false},
                     {"1", "1e+300", false},
                     {"1e-300", "1e+300", false},
                     {"7", "0", true},
                     {"0.1", "0.05", false}};
    for (size_t i = 0; i < BH_ARRAY_LEN(multiples); i++) {
        char schema[120], text[64], want[200] = "";
        snprintf(schema, sizeof(schema), S("type: number, multipleOf: %s"), multiples[i].step);
        snprintf(text, sizeof(text), "{a: %s}", multiples[i].n);
        if (!multiples[i].ok)
            snprintf(want, sizeof(want),
                     "a: Invalid value: %s: a in body should be a multiple of %s", multiples[i].n,
                     multiples[i].step);
        EQ(said(&f, schema, text), want);
    }
    EQ(said(&f, S("type: string, enum: [x, z]"), "{a: z}"), ""); /* leaked the words before it */
    EQ(said(&f, S("type: string, enum: [x, z]"), "{a: w}"),
       "a: Unsupported value: \"w\": supported values: \"x\", \"z\"");
    EQ(said(&f, S("type: string, pattern: \"^\\\\d+$\""), "{a: \"12\"}"), "");
    EQ(said(&f, S("type: string, pattern: \"^\\\\d+$\", maxLength: 9"), "{a: b}"),
       "a: Invalid value: \"b\": a in body should match '^\\d+$'");
    EQ(said(&f, S("type: string, maxLength: 2"), "{a: \"\\u00e4\\u00e4\\u00e4\"}"),
       "a: Invalid value: \"\xc3\xa4\xc3\xa4\xc3\xa4\": a in body should be at most 2 chars long");
    EQ(said(&f, S("type: array, minItems: 1, items: {type: object, required: [b]}"), "{a: [{}]}"),
       "a[0].b: Required value");
    EQ(said(&f, S("type: object, additionalProperties: {type: string}"), "{a: {k: 1}}"),
       "a.k: Invalid value: 1: a.k in body must be of type string: \"integer\"");
    EQ(said(&f, S("x-kubernetes-int-or-string: true"), "{a: true}"),
       "a: Invalid value: true: a in body must be of type : \"boolean\"");
    EQ(said(&f, S("type: string, nullable: true"), "{a: null}"), "");
    EQ(said(&f, "{type: object, oneOf: [{required: [x]}, {required: [z]}]}", "{x: 1, z: 2}"),
       ": Invalid value: \"object\":  in body must validate one and only one schema (oneOf)");
    EQ(said(&f, S("type: string, format: date-time"), "{a: soon}"),
       "a: Invalid value: \"soon\": a in body must be of type date-time: \"soon\"");
    EQ(said(&f, S("type: string, format: date-time"), "{a: '1970-01-01T00:00:00Z'}"), "");
    EQ(said(&f, S("type: string, format: date-time"), "{a: '2026-02-31T00:00:00Z'}"),
       "a: Invalid value: \"2026-02-31T00:00:00Z\": a in body must be of type date-time: "
       "\"2026-02-31T00:00:00Z\"");
    EQ(said(&f, S("type: string, format: date-time"), "{a: '2026-02-03T00:00:00'}"),
       "a: Invalid value: \"2026-02-03T00:00:00\": a in body must be of type date-time: "
       "\"2026-02-03T00:00:00\"");
    EQ(said(&f, S("type: string, format: byte"), "{a: aGk=}"), "");
    EQ(said(&f, S("type: string, format: byte"), "{a: aGk}"),
       "a: Invalid value: \"aGk\": a in body must be of type byte: \"aGk\"");
    fixture_fini(&f);
}

static void test_prune(void)
{
    static const char schema[] =
        "{type: object, properties: {a: {type: object, properties: {b: {type: integer, default: "
        "1}, "
        "w: {type: string, default: x}}}, l: {type: array, items: {type: object, properties: {k: "
        "{type: string}}}}, free: {type: object, x-kubernetes-preserve-unknown-fields: true}, m: "
        "{type: object, additionalProperties: {type: string}}}}";
    struct bh_oas_report rep = {0};
    struct fixture f;
    struct bh_json *v, *s;
    struct bh_buf b = {0};

    fixture_init(&f, NULL, false);
    s = yaml(&f, schema);
    v = yaml(&f,
             "{kind: K, metadata: {name: q}, a: {w: null, z: 1}, l: [{k: v, j: 1}], free: {any: "
             "{thing: 1}}, m: {x: z}, top: 1}");
    bh_crd_prune(s, v, &rep);
    bh_crd_default(&f.a, s, v);
    bh_json_write(&b, v);
    EQ(b.p, "{\"kind\":\"K\",\"metadata\":{\"name\":\"q\"},\"a\":{\"b\":1,\"w\":\"x\"},\"l\":[{"
            "\"k\":\"v\"}],\"free\":{\"any\":{\"thing\":1}},\"m\":{\"x\":\"z\"}}");
    EQ(bh_buf_str(&rep.unknown),
       "unknown field \"a.z\"\nunknown field \"l[0].j\"\nunknown field \"top\"\n");
    bh_buf_fini(&rep.unknown);
    bh_buf_fini(&b);
    fixture_fini(&f);
}

static void test_paths(void)
{
    static const char *const cases[][2] = {{".a.b", "1"},
                                           {"{.a.b}", "1"},
                                           {"['a']['b']", "1"},
                                           {".l[0].t", "x"},
                                           {".l[-1].t", "z"},
                                           {".l[*].s", "no"},
                                           {".l[?(@.t==\"z\")].s", "yes"},
                                           {".l[?(@.t!='x')].s", "yes"},
                                           {".a\\.b", "2"},
                                           {".l[9]", NULL},
                                           {".l[", NULL},
                                           {".l[?(@.t==", NULL},
                                           {"a", NULL},
                                           {"{", NULL},
                                           {"", "{"}};
    struct fixture f;
    struct bh_json *v;

    fixture_init(&f, NULL, false);
    v = yaml(&f, "{a: {b: 1}, \"a.b\": 2, l: [{t: x, s: \"no\"}, {t: z, s: \"yes\"}]}");
    for (size_t i = 0; i < BH_ARRAY_LEN(cases); i++) {
        const struct bh_json *got = bh_crd_path(v, cases[i][0]);
        struct bh_buf b = {0};
        if (got && (got->type == BH_JSON_STRING || got->type == BH_JSON_NUMBER))
            bh_buf_adds(&b, got->s.p);
        else if (got)
            bh_buf_adds(&b, "{");
        if (!cases[i][1] != !got || (got && !bh_streq(bh_buf_str(&b), cases[i][1])))
            fprintf(stderr, "%s: got %s\n", cases[i][0], got ? bh_buf_str(&b) : "nothing");
        CU_ASSERT(!cases[i][1] == !got);
        if (got && cases[i][1])
            CU_ASSERT_STRING_EQUAL(bh_buf_str(&b), cases[i][1]);
        bh_buf_fini(&b);
    }
    fixture_fini(&f);
}

BH_TESTS("simulator/crd", {"a definition makes a type, and its end takes it away", test_life},
         {"objects go even when nothing holds their definition", test_unheld},
         {"versions share one store", test_versions},
         {"definitions that make no sense are refused", test_refused},
         {"objects against a schema", test_schema},
         {"unknown members go, defaults come", test_prune}, {"JSON paths of columns", test_paths})
