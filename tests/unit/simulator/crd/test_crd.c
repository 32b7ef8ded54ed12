/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/unit/simulator/crd/test_crd.c - definitions make types; custom resources follow their
 * schema
 */
#include "proto/kubernetes/apiextensions.pb-c.h"
#include "simulator/crd/crd.h"
#include "tests/unit/simulator/admission/admission_test.h"

#include "common/k8s/codec.h"
#include "simulator/server/tree.h"

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
    /* Its names stay for whoever points to it, and nothing else. */
    EQ(t->plural, "widgets");
    EQ(t->short_names, "wi");
    CU_ASSERT_PTR_NULL(t->custom->schema);
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
    bh_crd_validate(&f->a, yaml(f, schema), yaml(f, text), NULL, &f->e);
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

/* What the CEL rules of a schema say of YAML that stands in the place of old (NULL: of nothing). */
static const char *ruled(struct fixture *f, const char *schema, const char *text, const char *old)
{
    struct bh_json *s = yaml(f, schema);
    struct bh_crd_rules *r;

    f->e = (struct bh_sim_error){0};
    r = bh_crd_rules_new(s, NULL, "schema", &f->e);
    if (!f->e.n_causes) {
        const struct bh_json *obj = yaml(f, text), *was = old ? yaml(f, old) : NULL;
        bh_crd_validate(&f->a, s, obj, was, &f->e);
        bh_crd_rules_check(r, &f->a, obj, was, &f->e, NULL);
    }
    bh_crd_rules_free(r);
    return causes(f);
}

#define RULE(x)      ", x-kubernetes-validations: [{" x "}]"
#define SPEC(p, x)   "{type: object, properties: {spec: {type: object, properties: {" p "}" x "}}}"
#define FAILED(text) "Invalid value: failed rule: " text

static void test_rules(void)
{
    static const struct {
        const char *schema, *obj, *old, *want;
    } cases[] = {
        {SPEC("x: {type: integer}", RULE("rule: self.x <= 5")), "{spec: {x: 5}}", NULL, ""},
        {SPEC("x: {type: integer}", RULE("rule: self.x <= 5")), "{spec: {x: 6}}", NULL,
         "spec: " FAILED("self.x <= 5")},
        {SPEC("x: {type: integer" RULE("rule: self <= 5, message: ' at most 5 '") "}", ""),
         "{spec: {x: 6}}", NULL, "spec.x: Invalid value: 6: at most 5"},
        {SPEC("x: {type: string" RULE("rule: self == oldSelf, reason: FieldValueForbidden, "
                                      "message: immutable") "}",
              ""),
         "{spec: {x: b}}", "{spec: {x: a}}", "spec.x: Forbidden: immutable"},
        {SPEC("x: {type: string" RULE("rule: self == oldSelf") "}", ""), "{spec: {x: b}}",
         "{spec: {}}", ""},
        {SPEC("x: {type: string" RULE("rule: oldSelf.hasValue() || self == \"a\", optionalOldSelf: "
                                      "true") "}",
              ""),
         "{spec: {x: b}}", NULL,
         "spec.x: Invalid value: \"b\": failed rule: oldSelf.hasValue() || self == \"a\""},
        {SPEC("x: {type: integer}, w: {type: integer}",
              RULE("rule: self.x < self.w, messageExpression: \"'x is %d'.format([self.x])\", "
                   "fieldPath: .x, reason: FieldValueRequired")),
         "{spec: {x: 6, w: 1}}", NULL, "spec.x: Required value: x is 6"},
        /* a line that only ends in a break is one line */
        {SPEC("x: {type: integer}", RULE("rule: \"self.x <= 5\\n\", message: \"at most 5\\n\"")),
         "{spec: {x: 6}}", NULL, "spec: Invalid value: at most 5"},
        {SPEC("x: {type: integer}", RULE("rule: has(self.x)")), "{spec: {}}", NULL,
         "spec: " FAILED("has(self.x)")},
        {SPEC("x: {type: integer}", RULE("rule: self.x > 0")), "{spec: {}}", NULL,
         "spec: Invalid value: \"object\": no such key: x evaluating rule: self.x > 0"},
        {"{type: object" RULE("rule: \"self.metadata.name.startsWith('a')\"") "}",
         "{metadata: {name: b}}", NULL, "<nil>: " FAILED("self.metadata.name.startsWith('a')")},
        /* items, additional properties, allOf, names that need an escape */
        {SPEC("l: {type: array, items: {type: object, properties: {k: {type: string}}" RULE(
                  "rule: self.k != 'b'") "}}",
              ""),
         "{spec: {l: [{k: a}, {k: b}]}}", NULL, "spec.l[1]: " FAILED("self.k != 'b'")},
        {SPEC("m: {type: object, additionalProperties: {type: integer" RULE("rule: self > 0") "}}",
              ""),
         "{spec: {m: {k: 0}}}", NULL, "spec.m[k]: Invalid value: 0: failed rule: self > 0"},
        {SPEC("m: {type: object, additionalProperties: {type: integer}" RULE(
                  "rule: \"self.all(k, k.size() < 3 && self[k] > 0)\"") "}",
              ""),
         "{spec: {m: {abc: 1}}}", NULL,
         "spec.m: " FAILED("self.all(k, k.size() < 3 && self[k] > 0)")},
        {"{type: object, properties: {a-b: {type: string}, in: {type: boolean}}" RULE(
             "rule: \"self.a__dash__b == 'x' && self.__in__\"") "}",
         "{a-b: x, in: true}", NULL, ""},
        {SPEC("x: {type: integer, allOf: [{x-kubernetes-validations: [{rule: self > 1}]}]}", ""),
         "{spec: {x: 1}}", NULL, "spec.x: Invalid value: 1: failed rule: self > 1"},
        /* items of a list with keys have their old selves by them */
        {SPEC("l: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [k], "
              "items: "
              "{type: object, properties: {k: {type: string}, v: {type: integer}}" RULE(
                  "rule: self.v >= oldSelf.v") "}}",
              ""),
         "{spec: {l: [{k: b, v: 5}, {k: a, v: 0}]}}", "{spec: {l: [{k: a, v: 1}, {k: b, v: 5}]}}",
         "spec.l[1]: " FAILED("self.v >= oldSelf.v")},
        /* formats, and values of more than one type */
        {SPEC("t: {type: string, format: date-time}, d: {type: string, format: duration}",
              RULE("rule: \"self.t + self.d < timestamp('2026-01-01T00:00:00Z') && self.d > "
                   "duration('1s') && self.t.getFullYear() == 2025\"")),
         "{spec: {t: '2025-12-31T23:00:00Z', d: 30m}}", NULL, ""},
        {SPEC("p: {x-kubernetes-int-or-string: true}",
              RULE("rule: type(self.p) == int || self.p.endsWith('%')")),
         "{spec: {p: '5%'}}", NULL, ""},
        {SPEC("p: {x-kubernetes-int-or-string: true}", RULE("rule: self.p > 3")), "{spec: {p: a}}",
         NULL,
         "spec: Invalid value: \"object\": 'no such overload': call arguments did not match a "
         "supported operator, function or macro signature for rule: self.p > 3"},
        /* texts that are put together, URLs, formats with a name */
        {SPEC("x: {type: integer}, u: {type: string}",
              RULE("rule: \"self.x < 5 && url(self.u).getHost() == 'a'\", messageExpression: "
                   "\"'x is %d of %s'.format([self.x, url(self.u).getHost()])\"")),
         "{spec: {x: 6, u: 'http://b/c'}}", NULL, "spec: Invalid value: x is 6 of b"},
        {SPEC("u: {type: string, maxLength: 63}",
              RULE("rule: \"!format.dns1123Label().validate(self.u).hasValue()\"")),
         "{spec: {u: a.b}}", NULL,
         "spec: " FAILED("!format.dns1123Label().validate(self.u).hasValue()")},
        /* what was as bad before stays */
        {SPEC("x: {type: integer" RULE("rule: self <= 5") "}, w: {type: integer}", ""),
         "{spec: {x: 6, w: 2}}", "{spec: {x: 6, w: 1}}", ""},
        /* also by the schema's other words: a member, an item with a key, a list that is the same */
        {SPEC("a: {type: string, enum: [x]}, b: {type: integer}", ""), "{spec: {a: w, b: 2}}",
         "{spec: {a: w, b: 1}}", ""},
        {SPEC("a: {type: string, enum: [x]}, b: {type: integer}", ""), "{spec: {a: z, b: 1}}",
         "{spec: {a: w, b: 1}}", "spec.a: Unsupported value: \"z\": supported values: \"x\""},
        {SPEC("a: {type: string, enum: [x]}, b: {type: integer}", ""), "{spec: {a: w}}", NULL,
         "spec.a: Unsupported value: \"w\": supported values: \"x\""},
        {SPEC("l: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [k], "
              "items: {type: object, properties: {k: {type: string}, v: {type: integer, maximum: "
              "3}}}}",
              ""),
         "{spec: {l: [{k: b, v: 9}, {k: a, v: 5}]}}", "{spec: {l: [{k: a, v: 5}, {k: b, v: 8}]}}",
         "spec.l[0].v: Invalid value: 9: spec.l[0].v in body should be less than or equal to 3"},
        {SPEC("l: {type: array, items: {type: integer, maximum: 3}}, b: {type: integer}", ""),
         "{spec: {l: [5], b: 2}}", "{spec: {l: [5], b: 1}}", ""},
        {SPEC("l: {type: array, items: {type: integer, maximum: 3}}", ""), "{spec: {l: [5, 1]}}",
         "{spec: {l: [5]}}",
         "spec.l[0]: Invalid value: 5: spec.l[0] in body should be less than or equal to 3"},
        /* rules do not run on what has the wrong types */
        {SPEC("x: {type: integer}", RULE("rule: self.x <= 5")), "{spec: {x: a}}", NULL,
         "spec.x: Invalid value: \"a\": spec.x in body must be of type integer: \"string\"\n"
         "<nil>: Invalid value: null: some validation rules were not checked because the object "
         "was "
         "invalid; correct the existing errors to complete validation"},
        {SPEC(
             "l: {type: array, maxItems: 30, items: {type: integer}}",
             RULE("rule: 'self.l.all(a, self.l.all(b, self.l.all(c, self.l.all(d, a + b + c + d >= "
                  "0))))'")),
         "{spec: {l: [1,2,3,4,5,6,7,8,9,10,1,2,3,4,5,6,7,8,9,10,1,2,3,4,5,6,7,8,9,10]}}", NULL,
         "spec: Invalid value: \"object\": 'operation cancelled: actual cost limit exceeded': no "
         "further validation rules will be run due to call cost exceeds limit for rule: "
         "self.l.all(a, "
         "self.l.all(b, self.l.all(c, self.l.all(d, a + b + c + d >= 0))))"},
    };
    struct fixture f;

    fixture_init(&f, NULL, false);
    for (size_t i = 0; i < BH_ARRAY_LEN(cases); i++)
        EQ(ruled(&f, cases[i].schema, cases[i].obj, cases[i].old), cases[i].want);
    fixture_fini(&f);
}

static void test_rules_that_cannot_be(void)
{
    static const char *const cases[][2] = {
        {SPEC("x: {type: integer}", RULE("rule: self.y > 1")),
         "rule: Invalid value: \"self.y > 1\": "
         "compilation failed: ERROR: "},
        {SPEC("x: {type: integer}", RULE("rule: self.y > 1")), "undefined field 'y'"},
        {SPEC("x: {type: integer}", RULE("rule: self.x")),
         "cel expression must evaluate to a bool"},
        {SPEC("x: {type: integer}", RULE("rule: self.x == 'a'")), "found no matching overload"},
        {SPEC("x: {type: integer}", RULE("rule: 'true', messageExpression: self.x")),
         "messageExpression: Invalid value: \"self.x\": messageExpression must evaluate to a "
         "string"},
        {SPEC("x: {type: integer}", RULE("rule: ' '")),
         "rule: Required value: rule is not specified"},
        {SPEC("x: {type: integer}", RULE("rule: 'true', reason: Bad")),
         "reason: Unsupported value"},
        {SPEC("x: {type: integer}", RULE("rule: 'true', fieldPath: .z")),
         "fieldPath: Invalid value: \".z\": must be a valid path"},
        {SPEC("x: {type: integer}", RULE("rule: 'true', message: \"a\\nb\"")),
         "message: Invalid value: \"a\\nb\": must not contain line breaks"},
        {SPEC("x: {type: integer}", RULE("rule: 'true', message: ' '")),
         "message: Invalid value: \" \": must be non-empty if specified"},
        {SPEC("x: {type: integer}", RULE("rule: \"true\\n|| false\"")),
         "message: Required value: message must be specified if rule contains line breaks"},
        {SPEC("x: {type: integer}", RULE("rule: 'true', messageExpression: ' '")),
         "messageExpression: Required value: messageExpression must be non-empty if specified"},
        {SPEC("x: {type: integer}", RULE("rule: 'true', fieldPath: ' '")),
         "fieldPath: Invalid value: \" \": must be non-empty if specified"},
        {SPEC("x: {type: integer}", RULE("rule: 'true', optionalOldSelf: true")),
         "may not be set if oldSelf is not used in rule"}};
    struct fixture f;

    fixture_init(&f, NULL, false);
    for (size_t i = 0; i < BH_ARRAY_LEN(cases); i++) {
        const char *said = ruled(&f, cases[i][0], "{}", NULL);
        if (!strstr(said, cases[i][1]))
            fprintf(stderr, "want %s\ngot  %s\n", cases[i][1], said);
        CU_ASSERT_PTR_NOT_NULL(strstr(said, cases[i][1]));
        CU_ASSERT_EQUAL(strncmp(said, "schema.properties[spec].x-kubernetes-validations[0].", 52),
                        0);
    }
    /* Elements of a list without keys are not found again: they have no oldSelf, nor what is in them. */
    const char *said = ruled(&f,
                             SPEC("l: {type: array, items: {type: object, properties: {v: {type: "
                                  "integer" RULE("rule: self >= oldSelf") "}}}}",
                                  ""),
                             "{}", NULL);
    EQ(said,
       "schema.properties[spec].properties[l].items.properties[v].x-kubernetes-validations[0]."
       "rule: Invalid value: \"self >= oldSelf\": oldSelf cannot be used on the uncorrelatable "
       "portion of the schema within schema.properties[spec].properties[l]");
    said = ruled(&f,
                 SPEC("l: {type: array, items: {type: array, items: {type: integer" RULE(
                          "rule: self >= oldSelf") "}}}",
                      ""),
                 "{}", NULL);
    CU_ASSERT_PTR_NOT_NULL(strstr(said, "within schema.properties[spec].properties[l]"));
    CU_ASSERT_PTR_NULL(strstr(said, "within schema.properties[spec].properties[l].items"));
    fixture_fini(&f);
}

#define BUDGET(by)                                                                                 \
    " exceeds budget by factor of " by " (try simplifying the rule, or adding maxItems, "          \
    "maxProperties, and maxLength where arrays, maps, and strings are declared)"
#define L(bounds)  "l: {type: array, items: {type: number}" bounds "}"
#define AT_L(text) "schema.properties[spec].x-kubernetes-validations[0]." text

/* What a rule might cost is judged when it is written. */
static void test_rules_that_are_too_dear(void)
{
    static const char *const cases[][2] = {
        {SPEC(L(", maxItems: 3000000"), RULE("rule: 'self.l.all(x, true)'")), ""},
        {SPEC(L(", maxItems: 4000000"), RULE("rule: 'self.l.all(x, true)'")),
         AT_L("rule: Forbidden: estimated rule cost" BUDGET("1.200000x"))},
        {SPEC(L(", maxItems: 8333333"), RULE("rule: 'self.l.all(x, true)'")),
         AT_L("rule: Forbidden: estimated rule cost" BUDGET("2.5x"))},
        {SPEC(L(""), RULE("rule: 'self.l.all(x, self.l.all(y, x < y))'")),
         AT_L("rule: Forbidden: estimated rule cost" BUDGET("more than 100x") "\n" AT_L(
             "rule: Forbidden: contributed to estimated rule cost total "
             "exceeding cost limit for entire OpenAPIv3 "
             "schema") "\nschema: Forbidden: x-kubernetes-validations "
                       "estimated rule cost total for entire OpenAPIv3 "
                       "schema" BUDGET("more than 100x"))},
        {SPEC(L(", maxItems: 1000"), RULE("rule: 'self.l.all(x, self.l.all(y, x < y))'")), ""},
        {SPEC(L(", maxItems: 4000000"),
              RULE("rule: 'true', messageExpression: 'self.l.all(x, true) ? \"a\" : \"b\"'")),
         AT_L("messageExpression: Forbidden: estimated messageExpression "
              "cost" BUDGET("1.200000x"))},
        /* As often as there can be values: by bounds all the way, by what has room in a request. */
        {SPEC(
             "m: {type: object, maxProperties: 2, additionalProperties: {type: array, maxItems: 3, "
             "items: {type: array, maxItems: 999999, items: {type: number}" RULE(
                 "rule: 'self.all(x, true)'") "}}}",
             ""),
         "schema.properties[spec].properties[m].additionalProperties.items.x-kubernetes-"
         "validations["
         "0].rule: Forbidden: estimated rule cost" BUDGET("1.8x")},
        {SPEC("m: {type: object, additionalProperties: {type: string, maxLength: 50" RULE(
                  "rule: 'self.contains(\"abcdefghijklmnop\")'") "}}",
              ""),
         "schema.properties[spec].properties[m].additionalProperties.x-kubernetes-validations[0]."
         "rule: Forbidden: estimated rule cost" BUDGET("4.3x")},
        {SPEC("m: {type: object, maxProperties: 0, additionalProperties: {type: string" RULE(
                  "rule: 'self.contains(\"abcdefghijklmnop\")'") "}}",
              ""),
         ""},
    };
    struct fixture f;

    fixture_init(&f, NULL, false);
    for (size_t i = 0; i < BH_ARRAY_LEN(cases); i++)
        EQ(ruled(&f, cases[i][0], "{}", NULL), cases[i][1]);
        /* Each may be, all of them may not; but what was taken before stays. */
#define DEAR "{rule: 'self.l.all(x, true)'}"
    struct bh_json *s =
        yaml(&f, SPEC(L(", maxItems: 3333332"),
                      ", x-kubernetes-validations: [" DEAR ", " DEAR ", " DEAR ", " DEAR ", " DEAR
                      ", " DEAR ", " DEAR ", " DEAR ", " DEAR ", " DEAR ", " DEAR "]"));
    f.e = (struct bh_sim_error){0};
    bh_crd_rules_free(bh_crd_rules_new(s, NULL, "schema", &f.e));
    CU_ASSERT_EQUAL(f.e.n_causes, 5); /* the four dearest, and the whole */
    CU_ASSERT_PTR_NOT_NULL(
        strstr(causes(&f), "schema: Forbidden: x-kubernetes-validations estimated "
                           "rule cost total for entire OpenAPIv3 schema" BUDGET("1.100000x")));
    s = yaml(&f, cases[1][0]);
    f.e = (struct bh_sim_error){0};
    bh_crd_rules_free(bh_crd_rules_new(s, yaml(&f, cases[1][0]), "schema", &f.e));
    CU_ASSERT_EQUAL(f.e.n_causes, 0);
    fixture_fini(&f);
}

/* Through the store: a definition's rules hold for its objects, and go with it. */
static void test_rules_hold(void)
{
    struct fixture f;

    fixture_init(&f, NULL, false);
    CU_ASSERT_PTR_NOT_NULL_FATAL(
        make(&f, CRDS, "",
             WIDGETS(VERSION("v1", "true", "size: {type: integer" RULE("rule: self < 4") "}"))));
    CU_ASSERT_EQUAL(put(&f, widgets(&f, "v1"),
                        "{apiVersion: example.com/v1, kind: Widget, metadata: {name: a}, spec: "
                        "{size: 4}}"),
                    422);
    EQ(f.e.message,
       "Widget.example.com \"a\" is invalid: spec.size: Invalid value: 4: failed rule: "
       "self < 4");
    CU_ASSERT_EQUAL(put(&f, widgets(&f, "v1"),
                        "{apiVersion: example.com/v1, kind: Widget, metadata: {name: a}, spec: "
                        "{size: 3}}"),
                    0);
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

/* ---- protobuf -------------------------------------------------------------------------------- */

/* The schema as it comes out of a definition in protobuf; NULL: it was not read. */
static struct bh_json *read_back(struct fixture *f, K8s__JSONSchemaProps *schema)
{
    K8s__CustomResourceDefinition crd = K8S__CUSTOM_RESOURCE_DEFINITION__INIT;
    K8s__CustomResourceDefinitionSpec spec = K8S__CUSTOM_RESOURCE_DEFINITION_SPEC__INIT;
    K8s__CustomResourceDefinitionVersion v = K8S__CUSTOM_RESOURCE_DEFINITION_VERSION__INIT;
    K8s__CustomResourceValidation val = K8S__CUSTOM_RESOURCE_VALIDATION__INIT;
    K8s__CustomResourceDefinitionVersion *versions[] = {&v};
    ProtobufCMessage *m;

    val.openapiv3schema = schema;
    v.schema = &val;
    spec.versions = versions;
    spec.n_versions = 1;
    crd.spec = &spec;
    uint8_t *bytes = bh_arena_alloc(&f->a, k8s__custom_resource_definition__get_packed_size(&crd));
    size_t n = k8s__custom_resource_definition__pack(&crd, bytes);
    m = bh_pb_unpack_fast(&f->a, &k8s__custom_resource_definition__descriptor, bytes, n);
    if (!m)
        return NULL;
    struct bh_json *o = bh_pb_to_json(&f->a, m);
    bh_crd_from_pb(&f->a, o);
    return bh_tree_obj(bh_json_at(bh_tree_arr(o, "spec.versions"), 0), "schema.openAPIV3Schema");
}

static void test_protobuf(void)
{
    struct fixture f;
    BH_CLEANUP(bh_buf_fini) struct bh_buf text = {0};
    K8s__JSONSchemaProps top = K8S__JSONSCHEMA_PROPS__INIT, in = top, item = top, deep[40];
    K8s__JSONSchemaPropsOrArray items = K8S__JSONSCHEMA_PROPS_OR_ARRAY__INIT;
    K8s__JSONSchemaPropsOrBool more = K8S__JSONSCHEMA_PROPS_OR_BOOL__INIT, chain[40];
    K8s__JSONSchemaPropsEntry entry = K8S__JSONSCHEMA_PROPS_ENTRY__INIT, *entries[] = {&entry};

    fixture_init(&f, NULL, false);
    item.type = (char *)"string";
    items.schema = &item;
    in.items = &items;
    in.has_maximum = true;
    in.maximum = 1.5;
    in.xkuberneteslisttype = (char *)"set";
    entry.key = (char *)"schema"; /* a name like any other here */
    entry.value = &in;
    top.properties = entries;
    top.n_properties = 1;
    more.has_allows = true;
    more.allows = true;
    top.additionalproperties = &more;
    bh_json_write(&text, read_back(&f, &top));
    EQ(text.p, "{\"properties\":{\"schema\":{\"maximum\":1.5,\"items\":{\"type\":\"string\"},"
               "\"x-kubernetes-list-type\":\"set\"}},\"additionalProperties\":true}");

    for (size_t i = 0; i < BH_ARRAY_LEN(deep); i++) {
        deep[i] = (K8s__JSONSchemaProps)K8S__JSONSCHEMA_PROPS__INIT;
        chain[i] = (K8s__JSONSchemaPropsOrBool)K8S__JSONSCHEMA_PROPS_OR_BOOL__INIT;
        chain[i].schema = i + 1 < BH_ARRAY_LEN(deep) ? &deep[i + 1] : &item;
        deep[i].additionalproperties = &chain[i];
    }
    CU_ASSERT_PTR_NULL(read_back(&f, &deep[0])); /* 80 messages within each other */
    CU_ASSERT_PTR_NOT_NULL(read_back(&f, &deep[20]));
    fixture_fini(&f);
}

BH_TESTS("simulator/crd", {"a definition makes a type, and its end takes it away", test_life},
         {"objects go even when nothing holds their definition", test_unheld},
         {"versions share one store", test_versions},
         {"definitions that make no sense are refused", test_refused},
         {"objects against a schema", test_schema}, {"rules of a schema", test_rules},
         {"rules that cannot be are refused", test_rules_that_cannot_be},
         {"rules that may cost too much are refused", test_rules_that_are_too_dear},
         {"rules hold for a definition's objects", test_rules_hold},
         {"unknown members go, defaults come", test_prune}, {"JSON paths of columns", test_paths},
         {"definitions come as protobuf, too", test_protobuf})
