/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/unit/common/k8s/test_compile.c - what nodes and pods mean for scheduling
 */
#include <errno.h>
#include <stdio.h>

#include "common/k8s/codec.h"
#include "common/k8s/compile.h"
#include "proto/kubernetes/kubernetes.pb-c.h"
#include "tests/unit/harness.h"

#define MI ((int64_t)1 << 20)
#define GI ((int64_t)1 << 30)

static struct bh_arena arena;
static struct bh_symtab *tab;
static struct bh_interner interner;

static void begin(void)
{
    bh_arena_fini(&arena);
    bh_arena_init(&arena, (size_t)64 << 20);
    bh_symtab_free(tab);
    tab = bh_symtab_new();
    interner = bh_symtab_interner(tab);
}

static bh_sym s(const char *text)
{
    return bh_sym_internc(tab, text);
}

static void *decode(const ProtobufCMessageDescriptor *d, const char *text)
{
    ProtobufCMessage *m = NULL;
    struct bh_err err = {""};
    if (bh_decode_object(&arena, d, text, strlen(text), &m, &err) != 0)
        printf("  %s\n", err.msg);
    CU_ASSERT_PTR_NOT_NULL_FATAL(m);
    return m;
}

/* Every record that a test compiles has to pass the validator. */
static struct bh_shape_rec *shape_json(const char *text)
{
    struct bh_shape_rec *r = NULL;
    struct bh_err err = {""};
    if (bh_compile_shape(&arena, decode(&k8s__pod__descriptor, text), &interner, &r, &err) != 0)
        printf("  %s\n", err.msg);
    CU_ASSERT_PTR_NOT_NULL_FATAL(r);
    CU_ASSERT_EQUAL(bh_rec_remap(r, r->h.size, NULL, NULL), 0);
    return r;
}

static struct bh_shape_rec *shape_spec(const char *spec)
{
    char text[8192];
    begin();
    snprintf(text, sizeof(text), "{\"metadata\":{\"name\":\"p\"},\"spec\":{%s}}", spec);
    for (char *c = text; *c; c++)
        *c = *c == '\'' ? '"' : *c;
    return shape_json(text);
}

static struct bh_node_rec *node_json(const char *quoted)
{
    struct bh_node_rec *r = NULL;
    char text[8192];
    snprintf(text, sizeof(text), "%s", quoted);
    for (char *c = text; *c; c++)
        *c = *c == '\'' ? '"' : *c;
    CU_ASSERT_EQUAL(
        bh_compile_node(&arena, decode(&k8s__node__descriptor, text), &interner, &r, NULL), 0);
    CU_ASSERT_PTR_NOT_NULL_FATAL(r);
    CU_ASSERT_EQUAL(bh_rec_remap(r, r->h.size, NULL, NULL), 0);
    return r;
}

static int64_t scalar(const void *rec, const struct bh_requests *q, const char *name)
{
    const struct bh_res *v = bh_rec_at(rec, q->scalars, struct bh_res);
    for (uint32_t i = 0; i < q->scalars.n; i++) {
        if (v[i].name == s(name))
            return v[i].value;
    }
    return -1;
}

/* ---- requests -------------------------------------------------------------------------------- */
#define MIXED                                                                                      \
    "'containers':[{'name':'a','resources':{'requests':{'cpu':'2','memory':'1Gi'}}},"              \
    "{'name':'b','resources':{'requests':{'cpu':'1','memory':'1Gi'}}}],'initContainers':["         \
    "{'name':'i1','resources':{'requests':{'cpu':'2','memory':'1Gi'}}},"                           \
    "{'name':'s1','restartPolicy':'Always','resources':{'requests':{'cpu':'1','memory':'512Mi'}}}" \
    ","                                                                                            \
    "{'name':'i2','resources':{'requests':{'cpu':'4','memory':'3Gi'}}},"                           \
    "{'name':'s2','restartPolicy':'Always','resources':{'requests':{'cpu':'500m'}}}],"             \
    "'overhead':{'cpu':'100m'}"

struct row {
    const char *spec;
    int64_t cpu, memory, nonzero_cpu, nonzero_memory;
};

static void test_requests_table(void)
{
    static const struct row rows[] = {
        /* the 200Mi assumed for s2 vanish behind i2, the largest moment */
        {MIXED, 5100, 3584 * MI, 5100, 3584 * MI},
        {"'containers':[{'name':'a'},{'name':'b','resources':{'requests':{'cpu':'0'}}}]", 0, 0, 100,
         419430400},
        {"'resources':{'requests':{'cpu':'2'}},'containers':[{'name':'a'},{'name':'b'}]", 2000, 0,
         2000, 419430400},
        {"'resources':{'limits':{'cpu':'2'}},'containers':[{'name':'a'},{'name':'b'}]", 0, 0, 200,
         419430400},
        {"'resources':{'requests':{'memory':'1Gi'}},'containers':[{'name':'a','resources':{"
         "'requests':{'cpu':'1'}}},{'name':'b'}]",
         1000, GI, 1000, GI},
        {"'containers':[{'name':'a','resources':{'requests':{'cpu':'1','memory':'1Gi'}}}],"
         "'initContainers':[{'name':'i'},{'name':'s','restartPolicy':'Always'}]",
         1000, GI, 1100, 1283457024},
    };
    for (size_t i = 0; i < BH_ARRAY_LEN(rows); i++) {
        const struct bh_shape_rec *r = shape_spec(rows[i].spec);
        CU_ASSERT_EQUAL(r->fit.cpu_milli, rows[i].cpu);
        CU_ASSERT_EQUAL(r->fit.memory_bytes, rows[i].memory);
        CU_ASSERT_EQUAL(r->used.cpu_milli, rows[i].cpu);
        CU_ASSERT_EQUAL(r->used.memory_bytes, rows[i].memory);
        CU_ASSERT_EQUAL(r->nonzero_cpu_milli, rows[i].nonzero_cpu);
        CU_ASSERT_EQUAL(r->nonzero_memory_bytes, rows[i].nonzero_memory);
    }
    const struct bh_shape_rec *r = shape_spec(MIXED ",'resources':{'requests':{'cpu':'10'}}");
    CU_ASSERT_EQUAL(r->fit.cpu_milli, 10100);
    CU_ASSERT_EQUAL(r->fit.memory_bytes, 3584 * MI);
    CU_ASSERT_EQUAL(r->score.cpu_milli, 5100); /* the scorer ignores pod-level requests */
}

static void test_status_aware_requests(void)
{
    static const struct {
        const char *spec, *reason;
        int64_t want;
    } rows[] = {
        {"1", NULL, 3000}, {"5", NULL, 5000}, {"5", "Infeasible", 3000}, {"5", "Deferred", 5000}};
    for (size_t i = 0; i < BH_ARRAY_LEN(rows); i++) {
        char text[1024];
        begin();
        snprintf(
            text, sizeof(text),
            "{\"metadata\":{\"name\":\"p\"},\"spec\":{\"nodeName\":\"n\",\"containers\":[{\"name\":"
            "\"a\",\"resources\":{\"requests\":{\"cpu\":\"%s\"}}}]},\"status\":{\"conditions\":[{"
            "\"type\":\"%s\",\"status\":\"True\",\"reason\":\"%s\"}],\"containerStatuses\":[{"
            "\"name\":"
            "\"a\",\"allocatedResources\":{\"cpu\":\"2\"},\"resources\":{\"requests\":{\"cpu\":"
            "\"3\"}}}"
            "]}}",
            rows[i].spec, rows[i].reason ? "PodResizePending" : "Ready",
            rows[i].reason ? rows[i].reason : "");
        const struct bh_shape_rec *r = shape_json(text);
        CU_ASSERT_EQUAL(r->used.cpu_milli, rows[i].want);
        CU_ASSERT_EQUAL(r->nonzero_cpu_milli, rows[i].want);
        CU_ASSERT_EQUAL(r->fit.cpu_milli, rows[i].spec[0] == '1' ? 1000 : 5000);
    }
}

static void test_pod_level_status(void)
{
    begin();
    const struct bh_shape_rec *r = shape_json(
        "{\"metadata\":{\"name\":\"p\"},\"spec\":{\"containers\":[{\"name\":\"a\"}],\"resources\":{"
        "\"requests\":{\"cpu\":\"1\",\"memory\":\"1Gi\",\"hugepages-2Mi\":\"4Mi\",\"x/y\":\"9\","
        "\"ephemeral-storage\":\"1Gi\"}}},\"status\":{\"resources\":{\"requests\":{\"cpu\":\"2\"}},"
        "\"allocatedResources\":{\"cpu\":\"3\"}}}");
    CU_ASSERT_EQUAL(r->fit.cpu_milli, 1000);
    CU_ASSERT_EQUAL(r->used.cpu_milli, 3000);
    CU_ASSERT_EQUAL(r->used.memory_bytes, GI);
    CU_ASSERT_EQUAL(r->fit.ephemeral_bytes, 0); /* not supported at pod level */
    CU_ASSERT_EQUAL(scalar(r, &r->fit, "hugepages-2Mi"), 4 * MI);
    CU_ASSERT_EQUAL(scalar(r, &r->fit, "x/y"), -1);
    CU_ASSERT_EQUAL(r->fit.scalars.n, 1);
}

static void test_sums_round_once(void)
{
    const struct bh_shape_rec *r = shape_spec(
        "'containers':[{'name':'a','resources':{'requests':{'cpu':'0.0004','x/y':'300m'}}},"
        "{'name':'b','resources':{'requests':{'cpu':'0.0004','x/y':'300m'}}}]");
    CU_ASSERT_EQUAL(r->fit.cpu_milli, 1);
    CU_ASSERT_EQUAL(scalar(r, &r->fit, "x/y"), 1);
}

static void test_score_vector(void)
{
    /* two containers {500m} and {1Gi}: 600m, 1Gi + 200Mi */
    const struct bh_shape_rec *r =
        shape_spec("'containers':[{'name':'a','resources':{'requests':{'cpu':'500m'}}},"
                   "{'name':'b','resources':{'requests':{'memory':'1Gi'}}}]");
    CU_ASSERT_EQUAL(r->score.cpu_milli, 600);
    CU_ASSERT_EQUAL(r->score.memory_bytes, GI + 200 * MI);
    r = shape_spec(
        "'resources':{'requests':{'cpu':'2','memory':'4Gi'}},'containers':[{'name':'a'}]");
    CU_ASSERT_EQUAL(r->score.cpu_milli, 100);
    CU_ASSERT_EQUAL(r->score.memory_bytes, 200 * MI);
    CU_ASSERT_EQUAL(r->fit.cpu_milli, 2000);
}

static void test_scalars(void)
{
    const struct bh_shape_rec *r = shape_spec(
        "'containers':[{'name':'a','resources':{'requests':{'nvidia.com/"
        "gpu':'0','pods':'5','foo':'1',"
        "'storage':'1','hugepages-2Mi':'2Mi','attachable-volumes-x':'1','x.kubernetes.io/z':'3',"
        "'requests.cpu/x':'1','ephemeral-storage':'1Ki'}}}]");
    CU_ASSERT_EQUAL(r->fit.scalars.n, 4);
    CU_ASSERT_EQUAL(scalar(r, &r->fit, "nvidia.com/gpu"), 0); /* present even when 0 */
    CU_ASSERT_EQUAL(scalar(r, &r->fit, "hugepages-2Mi"), 2 * MI);
    CU_ASSERT_EQUAL(scalar(r, &r->fit, "attachable-volumes-x"), 1);
    CU_ASSERT_EQUAL(scalar(r, &r->fit, "x.kubernetes.io/z"), 3);
    CU_ASSERT_EQUAL(r->fit.ephemeral_bytes, 1024);
}

static void test_clamped_sums(void)
{
    const struct bh_shape_rec *r = shape_spec(
        "'containers':[{'name':'a','resources':{'requests':{'memory':'1e40','cpu':'1E'}}},"
        "{'name':'b','resources':{'requests':{'memory':'1e40','cpu':'1E'}}}]");
    CU_ASSERT_EQUAL(r->fit.memory_bytes, INT64_MAX);
    CU_ASSERT_EQUAL(r->fit.cpu_milli, INT64_MAX);
}

static void test_resource_names(void)
{
    char name[300];
    CU_ASSERT(bh_resource_is_extended("nvidia.com/gpu"));
    CU_ASSERT(bh_resource_is_extended("a/b"));
    CU_ASSERT(!bh_resource_is_extended("cpu"));
    CU_ASSERT(!bh_resource_is_extended("x.kubernetes.io/y"));
    CU_ASSERT(!bh_resource_is_extended("requests.a/b"));
    CU_ASSERT(!bh_resource_is_extended("A/b")); /* prefix must be lower case */
    CU_ASSERT(!bh_resource_is_extended("a/b/c"));
    CU_ASSERT(!bh_resource_is_extended("a/"));
    CU_ASSERT(!bh_resource_is_extended("a/-b"));
    memset(name, 'a', sizeof(name));
    memcpy(name + 245, "/gpu", 5);
    CU_ASSERT(!bh_resource_is_extended(name)); /* 245 + "requests." > 253 */
    memcpy(name + 244, "/gpu", 5);
    CU_ASSERT(bh_resource_is_extended(name));
    CU_ASSERT(bh_resource_is_scalar("deviceclass.resource.kubernetes.io/x"));
    CU_ASSERT(!bh_resource_is_extended("deviceclass.resource.kubernetes.io/x"));
    CU_ASSERT(!bh_resource_is_scalar("storage"));
}

/* ---- node selector terms --------------------------------------------------------------------- */
static struct bh_node_rec *nodes[3];

static const struct bh_shape_rec *affinity(const char *json)
{
    char text[4096];
    snprintf(text, sizeof(text), "'affinity':{'nodeAffinity':{%s}}", json);
    const struct bh_shape_rec *r = shape_spec(text);
    nodes[0] = node_json("{'metadata':{'name':'a','labels':{'z':'1','n':'7'}}}");
    nodes[1] = node_json("{'metadata':{'name':'b','labels':{'z':'2','n':'x'}}}");
    nodes[2] = node_json("{'metadata':{'name':'c','labels':{'z':'1','d':'ssd'}}}");
    return r;
}

static unsigned required(const char *terms)
{
    char text[2048];
    unsigned mask = 0;
    snprintf(text, sizeof(text),
             "'requiredDuringSchedulingIgnoredDuringExecution':{'nodeSelectorTerms':[%s]}", terms);
    const struct bh_shape_rec *r = affinity(text);
    CU_ASSERT(r->flags & BH_SHAPE_HAS_REQUIRED_AFFINITY);
    const struct bh_node_term *t = bh_rec_at(r, r->required_terms, struct bh_node_term);
    for (unsigned n = 0; n < 3; n++) {
        for (uint32_t i = 0; i < r->required_terms.n; i++) {
            if (bh_node_term_match(r, &t[i], nodes[n], tab, s("metadata.name")))
                mask |= 1u << n;
        }
    }
    return mask;
}

#define EXPR(k, op, v) "{'matchExpressions':[{'key':'" k "','operator':'" op "','values':[" v "]}]}"
#define NAME(op, v)    "{'matchFields':[{'key':'metadata.name','operator':'" op "','values':[" v "]}]}"

static void test_required_terms(void)
{
    CU_ASSERT_EQUAL(required(""), 0);
    CU_ASSERT_EQUAL(required("{}"), 0);
    CU_ASSERT_EQUAL(required(NAME("In", "'a'") "," NAME("In", "'b'")), 3);
    CU_ASSERT_EQUAL(
        required("{'matchFields':[{'key':'metadata.name','operator':'In','values':['a']},"
                 "{'key':'metadata.name','operator':'In','values':['b']}]}"),
        0);
    CU_ASSERT_EQUAL(required(NAME("NotIn", "'a'")), 6);
    CU_ASSERT_EQUAL(required(NAME("In", "'a'") "," EXPR("z", "In", "'2'")), 3);
    CU_ASSERT_EQUAL(required("{}," NAME("In", "'a'")), 1);
    CU_ASSERT_EQUAL(required(EXPR("z", "Like", "'1'") "," EXPR("z", "In", "'1'")), 5);
    CU_ASSERT_EQUAL(required(NAME("In", "'a','b'")), 0); /* two values: does not parse */
    CU_ASSERT_EQUAL(required(NAME("Exists", "")), 0);
    CU_ASSERT_EQUAL(required(EXPR("n", "Gt", "'5'")), 1);
    CU_ASSERT_EQUAL(required(EXPR("n", "Gt", "'7'")), 0);
    CU_ASSERT_EQUAL(required(EXPR("n", "Lt", "'8'")), 1);
    CU_ASSERT_EQUAL(required(EXPR("n", "Lt", "'-8'")), 0); /* no label value */
    CU_ASSERT_EQUAL(required(EXPR("n", "Lt", "'7','8'")), 0);
    CU_ASSERT_EQUAL(required(EXPR("z", "NotIn", "'1'")), 2);
    CU_ASSERT_EQUAL(required(EXPR("d", "NotIn", "'hdd'")), 7);
    CU_ASSERT_EQUAL(required(EXPR("d", "Exists", "")), 4);
    CU_ASSERT_EQUAL(required(EXPR("d", "DoesNotExist", "")), 3);
    CU_ASSERT_EQUAL(required(EXPR("d", "Exists", "'x'")), 0);
    CU_ASSERT_EQUAL(required(EXPR("z", "In", "")), 0);
    CU_ASSERT_EQUAL(required(EXPR("z z", "Exists", "")), 0);
    /* an unknown field reads as "" */
    CU_ASSERT_EQUAL(
        required("{'matchFields':[{'key':'spec.x','operator':'NotIn','values':['a']}]}"), 7);
    CU_ASSERT_EQUAL(required("{'matchFields':[{'key':'spec.x','operator':'In','values':['a']}]}"),
                    0);
}

static void preferred(const char *terms, int64_t a, int64_t b, int64_t c)
{
    char text[2048];
    snprintf(text, sizeof(text), "'preferredDuringSchedulingIgnoredDuringExecution':[%s]", terms);
    const struct bh_shape_rec *r = affinity(text);
    const struct bh_node_term *t = bh_rec_at(r, r->preferred_terms, struct bh_node_term);
    int64_t score[3] = {0};
    CU_ASSERT(r->flags & BH_SHAPE_HAS_PREFERRED_LIST);
    for (unsigned n = 0; n < 3; n++) {
        for (uint32_t i = 0; i < r->preferred_terms.n; i++) {
            CU_ASSERT(!(t[i].flags & BH_TERM_INVALID));
            if (bh_node_term_match(r, &t[i], nodes[n], tab, s("metadata.name")))
                score[n] += t[i].weight;
        }
    }
    CU_ASSERT(score[0] == a && score[1] == b && score[2] == c);
}

static void test_preferred_terms(void)
{
    preferred("{'weight':2,'preference':" EXPR("z", "In", "'1'") "},{'weight':5,'preference':" EXPR(
                  "d", "Exists", "") "},{'weight':50,'preference':{}}",
              2, 0, 7);
    preferred("", 0, 0, 0);
    preferred("{'weight':3,'preference':" EXPR(
                  "z", "NotIn", "'1'") "},{'weight':1,'preference':" EXPR("n", "Gt", "'5'") "}",
              1, 3, 0);
    /* weight 0 is skipped before it is parsed */
    preferred("{'preference':" EXPR("z", "Like", "'1'") "}", 0, 0, 0);
}

static const char *first_error(const char *terms)
{
    char text[2048];
    snprintf(text, sizeof(text), "'preferredDuringSchedulingIgnoredDuringExecution':[%s]", terms);
    const struct bh_shape_rec *r = affinity(text);
    const struct bh_node_term *t = bh_rec_at(r, r->preferred_terms, struct bh_node_term);
    CU_ASSERT(t->flags & BH_TERM_INVALID);
    return bh_sym_text(tab, t->error);
}

static void test_error_texts(void)
{
    CU_ASSERT_STRING_EQUAL(
        first_error("{'weight':1,'preference':" EXPR("z", "Like", "'1'") "}"),
        "[0].matchExpressions[0].operator: Unsupported value: \"Like\": supported values: \"In\", "
        "\"NotIn\", \"Exists\", \"DoesNotExist\", \"Gt\", \"Lt\"");
    CU_ASSERT_STRING_EQUAL(first_error("{'weight':1,'preference':" NAME("In", "'a','b'") "}"),
                           "[0].matchFields[0].values: Invalid value: [\"a\",\"b\"]: must have one "
                           "element");
    CU_ASSERT_STRING_EQUAL(first_error("{'weight':1,'preference':" EXPR("z", "In", "") "}"),
                           "[0].matchExpressions[0].values: Invalid value: null: for 'in', 'notin' "
                           "operators, values set "
                           "can't be empty");
    CU_ASSERT_STRING_EQUAL(first_error("{'weight':1,'preference':" EXPR("z", "Gt", "'-5'") "}"),
                           "[0].matchExpressions[0].values[0][z]: Invalid value: \"-5\": a valid "
                           "label must be an empty "
                           "string or consist of alphanumeric characters, '-', '_' or '.', and "
                           "must start and end with an "
                           "alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', "
                           "regex used for validation "
                           "is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')");
    const char *two =
        first_error("{'weight':1,'preference':{'matchExpressions':[{'key':'z','operator':'X'}"
                    ",{'key':'z','operator':'Exists','values':['1']}]}}");
    CU_ASSERT_EQUAL(strncmp(two, "[[0].matchExpressions[0].operator: Unsup", 40), 0);
    CU_ASSERT_PTR_NOT_NULL(
        strstr(two, ", [0].matchExpressions[1].values: Invalid value: [\"1\"]: values "
                    "set must be empty for exists and does not exist]"));
}

/* Narrowing of candidate nodes reads the In values even of terms that do not parse. */
static void test_invalid_term_keeps_fields(void)
{
    const struct bh_shape_rec *r =
        affinity("'requiredDuringSchedulingIgnoredDuringExecution':{'nodeSelectorTerms':[" NAME(
            "In", "'a','b'") "]}");
    const struct bh_node_term *t = bh_rec_at(r, r->required_terms, struct bh_node_term);
    CU_ASSERT(t->flags & BH_TERM_INVALID);
    CU_ASSERT_EQUAL_FATAL(t->fields.n, 1);
    const struct bh_requirement *f = bh_rec_at(r, t->fields, struct bh_requirement);
    CU_ASSERT_EQUAL(f->values.n, 2);
    CU_ASSERT_EQUAL(bh_rec_at(r, f->values, bh_sym)[1], s("b"));
}

static void test_added_affinity(void)
{
    begin();
    struct bh_shape_rec *r = NULL;
    K8s__NodeAffinity *na = decode(
        &k8s__node_affinity__descriptor,
        "{\"requiredDuringSchedulingIgnoredDuringExecution\":{\"nodeSelectorTerms\":[{"
        "\"matchExpressions\":[{\"key\":\"z\",\"operator\":\"In\",\"values\":[\"1\",\"2\"]}]}]}}");
    CU_ASSERT_EQUAL_FATAL(bh_compile_node_affinity(&arena, na, &interner, &r, NULL), 0);
    CU_ASSERT_EQUAL(bh_rec_remap(r, r->h.size, NULL, NULL), 0);
    CU_ASSERT_EQUAL(r->flags, BH_SHAPE_HAS_REQUIRED_AFFINITY);
    CU_ASSERT_EQUAL(r->required_terms.n, 1);
}

/* ---- tolerations ----------------------------------------------------------------------------- */
static bool tolerates(const char *toleration, const char *taint)
{
    char text[512];
    snprintf(text, sizeof(text), "'tolerations':[%s]", toleration);
    const struct bh_shape_rec *r = shape_spec(text);
    snprintf(text, sizeof(text), "{'metadata':{'name':'n'},'spec':{'taints':[%s]}}", taint);
    const struct bh_node_rec *n = node_json(text);
    return bh_toleration_tolerates(bh_rec_at(r, r->tolerations, struct bh_toleration),
                                   bh_rec_at(n, n->taints, struct bh_taint));
}

static void test_a_node_selector(void)
{
    static const struct {
        const char *selector;
        bool matches;
    } cases[] = {{"", true},
                 {"'z':'1'", true},
                 {"'z':'1','y':'2'", true},
                 {"'z':'2'", false},
                 {"'w':'1'", false},
                 {"'y':'2','z':'2'", false},
                 {"'y':'1','z':'1'", false}};

    for (size_t i = 0; i < BH_ARRAY_LEN(cases); i++) {
        char text[512];
        snprintf(text, sizeof(text), "'nodeSelector':{%s}", cases[i].selector);
        const struct bh_shape_rec *r = shape_spec(text);
        const struct bh_node_rec *n =
            node_json("{'metadata':{'name':'n','labels':{'z':'1','y':'2','x':'3'}}}");
        CU_ASSERT_EQUAL(bh_required_node_match(r, n, tab, s("metadata.name")), cases[i].matches);
    }
}

/* Of the taints that matter every one has to be tolerated. */
static void test_taints_that_are_tolerated(void)
{
    static const struct {
        const char *taints;
        bool tolerated;
    } cases[] = {{"", true},
                 {"{'key':'k','effect':'NoSchedule'}", true},
                 {"{'key':'k','effect':'NoExecute'},{'key':'j','effect':'PreferNoSchedule'}", true},
                 {"{'key':'k','effect':'NoSchedule'},{'key':'j','effect':'NoSchedule'}", false},
                 {"{'key':'j','effect':'NoExecute'},{'key':'k','effect':'NoSchedule'}", false}};

    for (size_t i = 0; i < BH_ARRAY_LEN(cases); i++) {
        char text[512];
        const struct bh_shape_rec *r =
            shape_spec("'tolerations':[{'key':'x','operator':'Exists'},{'key':'k','operator':"
                       "'Exists'}]");
        snprintf(text, sizeof(text), "{'metadata':{'name':'n'},'spec':{'taints':[%s]}}",
                 cases[i].taints);
        CU_ASSERT_EQUAL(bh_taints_tolerated(r, node_json(text)), cases[i].tolerated);
    }
}

static void test_tolerations(void)
{
    static const char taint[] = "{'key':'k','value':'v','effect':'NoSchedule'}";
    CU_ASSERT(tolerates("{'key':'k','value':'v','effect':'NoSchedule'}", taint));
    CU_ASSERT(tolerates("{'key':'k','value':'v'}", taint));
    CU_ASSERT(tolerates("{'key':'k','operator':'Equal','value':'v'}", taint));
    CU_ASSERT(tolerates("{'key':'k','operator':'Exists'}", taint));
    CU_ASSERT(tolerates("{'operator':'Exists'}", taint));
    CU_ASSERT(tolerates("{'value':'v'}", taint)); /* no key, Equal: compares values only */
    CU_ASSERT(!tolerates("{'key':'k','value':'w'}", taint));
    CU_ASSERT(!tolerates("{'key':'k'}", taint));
    CU_ASSERT(!tolerates("{'key':'j','operator':'Exists'}", taint));
    CU_ASSERT(!tolerates("{'operator':'Exists','effect':'NoExecute'}", taint));
    CU_ASSERT(!tolerates("{'key':'k','operator':'Lt','value':'5'}",
                         "{'key':'k','value':'3','effect':'NoSchedule'}"));
    CU_ASSERT(!tolerates("{'operator':'Like'}", taint));
    CU_ASSERT(tolerates("{'key':'k'}", "{'key':'k','effect':'PreferNoSchedule'}"));
    CU_ASSERT(!tolerates("{'operator':'Exists','effect':'Other'}", "{'key':'k','effect':'Else'}"));
}

/* ---- the rest of a shape --------------------------------------------------------------------- */
static void test_images(void)
{
    const struct bh_shape_rec *r = shape_spec(
        "'containers':[{'name':'a','image':'r/x'},{'name':'b','image':'host:5000/x'},{'name':'c',"
        "'image':'r/x@sha256:0a'}],'initContainers':[{'name':'i','image':'r/"
        "i:v1'}],'volumes':[{'name':"
        "'v','image':{'reference':'r/data'}},{'name':'w','emptyDir':{}}]");
    static const char *const want[] = {"r/i:v1", "r/x:latest", "host:5000/x:latest",
                                       "r/x@sha256:0a", "r/data:latest"};
    CU_ASSERT_EQUAL_FATAL(r->images.n, 5);
    for (size_t i = 0; i < 5; i++)
        CU_ASSERT_STRING_EQUAL(bh_sym_text(tab, bh_rec_at(r, r->images, bh_sym)[i]), want[i]);
    CU_ASSERT_EQUAL(r->image_containers, 4);
    CU_ASSERT(!(r->flags & BH_SHAPE_USES_VOLUMES));
}

static void test_host_ports(void)
{
    const struct bh_shape_rec *r = shape_spec(
        "'containers':[{'name':'a','ports':[{'containerPort':1},{'hostPort':80,'containerPort':80},"
        "{'hostPort':81,'protocol':'UDP','hostIP':'10.0.0.1'}]}],'initContainers':[{'name':'i','"
        "ports':[{"
        "'hostPort':1}]},{'name':'s','restartPolicy':'Always','ports':[{'hostPort':2}]}]");
    const struct bh_host_port *p = bh_rec_at(r, r->host_ports, struct bh_host_port);
    CU_ASSERT_EQUAL_FATAL(r->host_ports.n, 3);
    CU_ASSERT(p[0].port == 2 && p[0].ip == s("0.0.0.0") && p[0].protocol == s("TCP"));
    CU_ASSERT(p[1].port == 80);
    CU_ASSERT(p[2].port == 81 && p[2].ip == s("10.0.0.1") && p[2].protocol == s("UDP"));
}

/* Columns: the volume's source, then what is kept of it; no type for volumes that are left out. */
static void test_volumes(void)
{
    static const struct {
        const char *json, *source, *extra, *disk_name;
        int type;
        uint32_t flags, monitors;
    } rows[] = {
        {"'persistentVolumeClaim':{'claimName':'c'}", "c", "", "", BH_VOL_CLAIM, 0, 0},
        {"'persistentVolumeClaim':{}", "", "", "", BH_VOL_CLAIM, 0, 0},
        {"'ephemeral':{}", "", "", "", BH_VOL_EPHEMERAL, 0, 0},
        {"'csi':{'driver':'d','readOnly':true}", "d", "", "", BH_VOL_CSI, 0, 0},
        {"'gcePersistentDisk':{'pdName':'p','readOnly':true}", "p", "", "", BH_VOL_GCE_PD,
         BH_VOL_READ_ONLY, 0},
        {"'awsElasticBlockStore':{'volumeID':'e'}", "e", "", "", BH_VOL_EBS, 0, 0},
        {"'iscsi':{'targetPortal':'t','iqn':'q','readOnly':true}", "q", "", "", BH_VOL_ISCSI,
         BH_VOL_READ_ONLY, 0},
        {"'rbd':{'monitors':['a','b'],'image':'i'}", "i", "rbd", "", BH_VOL_RBD, 0, 2},
        {"'rbd':{'image':'i','pool':'p','readOnly':true}", "i", "p", "", BH_VOL_RBD,
         BH_VOL_READ_ONLY, 0},
        {"'azureDisk':{'diskName':'n','diskURI':'u','kind':'Managed'}", "u", "Managed", "n",
         BH_VOL_AZURE_DISK, 0, 0},
        {"'azureFile':{'secretName':'s','shareName':'f'}", "f", "", "", BH_VOL_AZURE_FILE, 0, 0},
        {"'cinder':{'volumeID':'x'}", "x", "", "", BH_VOL_CINDER, 0, 0},
        {"'vsphereVolume':{'volumePath':'x'}", "x", "", "", BH_VOL_VSPHERE, 0, 0},
        {"'portworxVolume':{'volumeID':'x'}", "x", "", "", BH_VOL_PORTWORX, 0, 0},
        {"'emptyDir':{}", "", "", "", -1, 0, 0},
        {"'nfs':{'server':'s'}", "", "", "", -1, 0, 0},
    };
    struct bh_buf b = {0};
    uint32_t at = 0;

    for (size_t i = 0; i < BH_ARRAY_LEN(rows); i++)
        bh_buf_addf(&b, "%s{'name':'v%zu',%s}", i ? "," : "'volumes':[", i, rows[i].json);
    bh_buf_adds(&b, ",{'name':'nothing'}]");
    const struct bh_shape_rec *r = shape_spec(bh_buf_str(&b));
    const struct bh_volume *v = bh_rec_at(r, r->volumes, struct bh_volume);
    for (size_t i = 0; i < BH_ARRAY_LEN(rows); i++) {
        char name[16];
        if (rows[i].type < 0)
            continue;
        snprintf(name, sizeof(name), "v%zu", i);
        CU_ASSERT_FATAL(at < r->volumes.n);
        CU_ASSERT_EQUAL(v[at].type, (uint32_t)rows[i].type);
        CU_ASSERT_EQUAL(v[at].flags, rows[i].flags);
        CU_ASSERT_EQUAL(v[at].name, s(name));
        CU_ASSERT_STRING_EQUAL(bh_sym_text(tab, v[at].source), rows[i].source);
        CU_ASSERT_STRING_EQUAL(bh_sym_text(tab, v[at].extra), rows[i].extra);
        CU_ASSERT_STRING_EQUAL(bh_sym_text(tab, v[at].disk_name), rows[i].disk_name);
        CU_ASSERT_EQUAL(v[at].monitors.n, rows[i].monitors);
        at++;
    }
    CU_ASSERT_EQUAL(at, r->volumes.n);
    bh_buf_fini(&b);
}

static void test_flags(void)
{
    static const struct {
        const char *spec;
        uint32_t flags;
    } rows[] = {
        {"'containers':[]", 0},
        {"'nodeSelector':{}", 0},
        {"'nodeSelector':{'a':'b'}", BH_SHAPE_HAS_NODE_SELECTOR},
        {"'preemptionPolicy':'Never'", BH_SHAPE_NEVER_PREEMPT},
        {"'preemptionPolicy':'PreemptLowerPriority'", 0},
        {"'hostNetwork':true,'hostUsers':false", BH_SHAPE_HOST_NETWORK | BH_SHAPE_HOST_USERS_FALSE},
        {"'hostUsers':true", 0},
        {"'affinity':{'podAffinity':{}}", BH_SHAPE_HAS_POD_AFFINITY_OBJECT},
        {"'affinity':{'podAntiAffinity':{'preferredDuringSchedulingIgnoredDuringExecution':[{}]}}",
         BH_SHAPE_HAS_POD_AFFINITY_OBJECT | BH_SHAPE_USES_POD_AFFINITY},
        {"'topologySpreadConstraints':[{}]", BH_SHAPE_USES_SPREAD},
        {"'resourceClaims':[{'name':'x'}]", BH_SHAPE_USES_CLAIMS},
        {"'volumes':[{'name':'a','secret':{}},{'name':'b','configMap':{}},{'name':'c','emptyDir':{}"
         "},"
         "{'name':'d','downwardAPI':{}},{'name':'e','projected':{}},{'name':'f','hostPath':{}},{'"
         "name':'g'}]",
         0},
        {"'volumes':[{'name':'a','persistentVolumeClaim':{'claimName':'x'}}]",
         BH_SHAPE_USES_VOLUMES},
        {"'volumes':[{'name':'a','nfs':{}}]", BH_SHAPE_USES_VOLUMES},
        {"'volumes':[{'name':'a','ephemeral':{}}]", BH_SHAPE_USES_VOLUMES},
        {"'volumes':[{'name':'a','csi':{}}]", BH_SHAPE_USES_VOLUMES},
        {"'containers':[{'restartPolicyRules':[{'action':'RestartAllContainers'}]}]",
         BH_SHAPE_RESTART_ALL_CONTAINERS},
        {"'initContainers':[{'restartPolicyRules':[{'action':'Restart'},{'action':'"
         "RestartAllContainers'}]}]",
         BH_SHAPE_RESTART_ALL_CONTAINERS},
    };
    for (size_t i = 0; i < BH_ARRAY_LEN(rows); i++) {
        const struct bh_shape_rec *r = shape_spec(rows[i].spec);
        if (r->flags != rows[i].flags)
            printf("  %s: %u\n", rows[i].spec, r->flags);
        CU_ASSERT_EQUAL(r->flags, rows[i].flags);
    }
    const struct bh_shape_rec *r = shape_spec(
        "'priority':-5,'schedulerName':'x','schedulingGates':[{'name':'g2'},{'name':'g1'}]");
    CU_ASSERT_EQUAL(r->priority, -5);
    CU_ASSERT_EQUAL(r->scheduler_name, s("x"));
    CU_ASSERT_EQUAL_FATAL(r->gates.n, 2);
    CU_ASSERT_EQUAL(bh_rec_at(r, r->gates, bh_sym)[0], s("g2"));
}

/* ---- inter-pod affinity and topology spread -------------------------------------------------- */
/* Which of the label sets {}, {app=web}, {app=db}, {app=db, tier=x} the selector means. */
static unsigned selected(const struct bh_shape_rec *r, const struct bh_label_selector *sel)
{
    const struct bh_kv none[1] = {{0, 0}}, web[] = {{s("app"), s("web")}},
                       db[] = {{s("app"), s("db")}, {s("tier"), s("x")}};
    return (unsigned)bh_selector_matches(r, sel, none, 0, tab) |
           (unsigned)bh_selector_matches(r, sel, web, 1, tab) << 1 |
           (unsigned)bh_selector_matches(r, sel, db, 1, tab) << 2 |
           (unsigned)bh_selector_matches(r, sel, db, 2, tab) << 3;
}

static const struct bh_shape_rec *pod_of(const char *labels, const char *spec)
{
    char text[8192];
    begin();
    snprintf(text, sizeof(text),
             "{'metadata':{'name':'p','namespace':'own','labels':{%s}},'spec':{%s}}", labels, spec);
    for (char *c = text; *c; c++)
        *c = *c == '\'' ? '"' : *c;
    return shape_json(text);
}

#define REQUIRED(kind, list)                                                                       \
    "'affinity':{'" kind "':{'requiredDuringSchedulingIgnoredDuringExecution':[" list "]}}"
#define PREFERRED(kind, list)                                                                      \
    "'affinity':{'" kind "':{'preferredDuringSchedulingIgnoredDuringExecution':[" list "]}}"

static const struct bh_pod_term *first_term(const struct bh_shape_rec *r, struct bh_slice list)
{
    CU_ASSERT_FATAL(list.n > 0);
    return bh_rec_at(r, list, struct bh_pod_term);
}

static void test_label_selectors(void)
{
    static const struct {
        const char *selector;
        uint32_t flags;
        unsigned selected; /* see selected() */
    } rows[] = {
        {"", BH_SELECTOR_NIL, 0},
        {",'labelSelector':{}", 0, 15},
        {",'labelSelector':{'matchLabels':{'app':'db'}}", 0, 12},
        {",'labelSelector':{'matchExpressions':[{'key':'app','operator':'In','values':['web','db']}"
         "]}",
         0, 14},
        {",'labelSelector':{'matchExpressions':[{'key':'app','operator':'NotIn','values':['db']}]}",
         0, 3},
        {",'labelSelector':{'matchExpressions':[{'key':'tier','operator':'Exists'}]}", 0, 8},
        {",'labelSelector':{'matchExpressions':[{'key':'tier','operator':'DoesNotExist'}]}", 0, 7},
        {",'labelSelector':{'matchLabels':{'app':'db'},'matchExpressions':[{'key':'tier','operator'"
         ":"
         "'Exists'}]}",
         0, 8},
        {",'labelSelector':{'matchExpressions':[{'key':'app','operator':'Gt','values':['1']}]}",
         BH_SELECTOR_INVALID, 0},
        {",'labelSelector':{'matchExpressions':[{'key':'app','operator':'In'}]}",
         BH_SELECTOR_INVALID, 0},
        {",'labelSelector':{'matchLabels':{'app':'a b'}}", BH_SELECTOR_INVALID, 0},
    };
    for (size_t i = 0; i < BH_ARRAY_LEN(rows); i++) {
        char spec[1024];
        snprintf(spec, sizeof(spec), REQUIRED("podAffinity", "{'topologyKey':'z'%s}"),
                 rows[i].selector);
        const struct bh_shape_rec *r = pod_of("", spec);
        const struct bh_pod_term *t = first_term(r, r->affinity);
        CU_ASSERT_EQUAL(t->selector.flags, rows[i].flags);
        CU_ASSERT_EQUAL(selected(r, &t->selector), rows[i].selected);
        CU_ASSERT_EQUAL(bh_selector_is_everything(&t->selector), rows[i].selected == 15);
        CU_ASSERT_EQUAL(t->selector.error != BH_SYM_NONE, rows[i].flags == BH_SELECTOR_INVALID);
    }
}

static void test_pod_affinity_terms(void)
{
    const struct bh_shape_rec *r = pod_of(
        "", REQUIRED("podAntiAffinity", "{'topologyKey':'z','labelSelector':{}},{'topologyKey':'y',"
                                        "'namespaces':['b','a']},{'topologyKey':'x',"
                                        "'namespaceSelector':{}}"));
    const struct bh_pod_term *t = first_term(r, r->anti_affinity);
    CU_ASSERT_EQUAL_FATAL(r->anti_affinity.n, 3);
    CU_ASSERT(r->affinity.n == 0 && r->preferred_affinity.n == 0);
    CU_ASSERT(t[0].topology_key == s("z") && t[0].namespaces.n == 1);
    CU_ASSERT_EQUAL(*bh_rec_at(r, t[0].namespaces, bh_sym), s("own"));
    CU_ASSERT_EQUAL(t[0].namespace_selector.flags, BH_SELECTOR_NIL);
    CU_ASSERT_EQUAL_FATAL(t[1].namespaces.n, 2);
    CU_ASSERT_EQUAL(bh_rec_at(r, t[1].namespaces, bh_sym)[1], s("a"));
    /* a namespace selector, even an empty one, takes the place of the pod's own namespace */
    CU_ASSERT(t[2].namespaces.n == 0 && bh_selector_is_everything(&t[2].namespace_selector));

    r = pod_of("", PREFERRED("podAffinity", "{'weight':7,'podAffinityTerm':{'topologyKey':'z'}},"
                                            "{'weight':-2,'podAffinityTerm':{'topologyKey':'y'}}"));
    t = first_term(r, r->preferred_affinity);
    CU_ASSERT_EQUAL_FATAL(r->preferred_affinity.n, 2);
    CU_ASSERT(t[0].weight == 7 && t[1].weight == -2 && t[1].topology_key == s("y"));

    /* one bad term spoils its list and no other */
    r = pod_of("", "'affinity':{'podAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':["
                   "{'topologyKey':'z','labelSelector':{}},{'topologyKey':'y','labelSelector':{"
                   "'matchExpressions':[{'key':'a','operator':'Like'}]}}],"
                   "'preferredDuringSchedulingIgnoredDuringExecution':[{'weight':1,"
                   "'podAffinityTerm':{'topologyKey':'z'}}]}}");
    t = first_term(r, r->affinity);
    CU_ASSERT(r->affinity.n == 1 && r->preferred_affinity.n == 1);
    CU_ASSERT_EQUAL(t->topology_key, s("y"));
    CU_ASSERT_STRING_EQUAL(bh_sym_text(tab, t->selector.error),
                           "\"Like\" is not a valid label selector operator");
}

static void test_spread_constraints(void)
{
    const struct bh_shape_rec *r = pod_of(
        "'app':'db','tier':'x'",
        "'topologySpreadConstraints':["
        "{'maxSkew':2,'topologyKey':'z','whenUnsatisfiable':'DoNotSchedule','labelSelector':{}},"
        "{'maxSkew':1,'topologyKey':'z','whenUnsatisfiable':'ScheduleAnyway','minDomains':3,"
        "'nodeAffinityPolicy':'Ignore','nodeTaintsPolicy':'Honor','labelSelector':{},"
        "'matchLabelKeys':['tier','missing']},"
        "{'maxSkew':1,'topologyKey':'z','whenUnsatisfiable':'Other','matchLabelKeys':['tier'],"
        "'nodeAffinityPolicy':'Honor','nodeTaintsPolicy':'Ignore'}]");
    const struct bh_spread *k = bh_rec_at(r, r->spread, struct bh_spread);
    CU_ASSERT_EQUAL_FATAL(r->spread.n, 3);
    CU_ASSERT(k[0].max_skew == 2 && k[0].min_domains == 1 && k[0].topology_key == s("z"));
    CU_ASSERT_EQUAL(k[0].flags, BH_SPREAD_HARD | BH_SPREAD_HONOR_AFFINITY);
    CU_ASSERT(bh_selector_is_everything(&k[0].selector));
    CU_ASSERT_EQUAL(k[1].min_domains, 3);
    CU_ASSERT_EQUAL(k[1].flags, BH_SPREAD_SOFT | BH_SPREAD_HONOR_TAINTS);
    CU_ASSERT_EQUAL(selected(r, &k[1].selector), 8); /* tier=x, from the pod's labels */
    CU_ASSERT(!bh_selector_is_everything(&k[1].selector));
    CU_ASSERT_EQUAL(k[2].flags, BH_SPREAD_HONOR_AFFINITY);
    CU_ASSERT_EQUAL(k[2].selector.flags, BH_SELECTOR_NIL); /* matchLabelKeys add nothing to nil */
    CU_ASSERT_EQUAL(k[2].selector.requirements.n, 0);
}

/* How many labels and keys there are is the sender's choice: a pod of a megabyte. Each with each
 * would take minutes. */
static void test_many_labels_and_match_label_keys(void)
{
    enum { LABELS = 100000, KEYS = 200000 };
    struct bh_buf text BH_CLEANUP(bh_buf_fini) = {0};
    struct bh_shape_rec *r = NULL;

    begin();
    bh_buf_adds(&text, "{\"metadata\":{\"name\":\"p\",\"labels\":{\"tier\":\"x\"");
    for (int i = 0; i < LABELS; i++)
        bh_buf_addf(&text, ",\"a%d\":\"\"", i);
    bh_buf_adds(&text, "}},\"spec\":{\"topologySpreadConstraints\":[{\"maxSkew\":1,"
                       "\"topologyKey\":\"z\",\"labelSelector\":{},\"matchLabelKeys\":[");
    for (int i = 0; i < KEYS; i++)
        bh_buf_adds(&text, "\"b\",");
    bh_buf_adds(&text, "\"tier\"]}]}}");
    const K8s__Pod *p = decode(&k8s__pod__descriptor, bh_buf_str(&text));
    CU_ASSERT_EQUAL_FATAL(bh_compile_shape(&arena, p, &interner, &r, NULL), 0);
    const struct bh_spread *k = bh_rec_at(r, r->spread, struct bh_spread);
    CU_ASSERT_EQUAL(k[0].selector.requirements.n, 1); /* tier=x */
}

static void test_owners(void)
{
    static const struct {
        const char *refs;
        uint32_t kind;
        const char *name;
    } rows[] = {
        {"", BH_OWNER_NONE, ""},
        {"{'apiVersion':'apps/v1','kind':'ReplicaSet','name':'a','controller':true}",
         BH_OWNER_REPLICASET, "a"},
        {"{'apiVersion':'apps/v1','kind':'ReplicaSet','name':'a'}", BH_OWNER_NONE, ""},
        {"{'apiVersion':'apps/v1','kind':'ReplicaSet','name':'a','controller':false},"
         "{'apiVersion':'apps/v1','kind':'StatefulSet','name':'b','controller':true}",
         BH_OWNER_STATEFULSET, "b"},
        {"{'apiVersion':'v1','kind':'ReplicationController','name':'c','controller':true}",
         BH_OWNER_REPLICATIONCONTROLLER, "c"},
        {"{'apiVersion':'apps/v1beta1','kind':'ReplicaSet','name':'a','controller':true}",
         BH_OWNER_OTHER, ""},
        {"{'apiVersion':'batch/v1','kind':'Job','name':'a','controller':true}", BH_OWNER_OTHER, ""},
        {"{'apiVersion':'apps/v1','kind':'DaemonSet','name':'a','controller':true}",
         BH_OWNER_DAEMONSET, ""},
        {"{'apiVersion':'v1','kind':'Node','name':'a','controller':true}", BH_OWNER_NODE, ""},
    };
    for (size_t i = 0; i < BH_ARRAY_LEN(rows); i++) {
        char text[1024];
        begin();
        snprintf(text, sizeof(text), "{'metadata':{'name':'p','ownerReferences':[%s]}}",
                 rows[i].refs);
        for (char *c = text; *c; c++)
            *c = *c == '\'' ? '"' : *c;
        const struct bh_shape_rec *r = shape_json(text);
        CU_ASSERT_EQUAL(r->owner_kind, rows[i].kind);
        CU_ASSERT_STRING_EQUAL(bh_sym_text(tab, r->owner), rows[i].name);
    }
}

/* Replicas of one template give the same bytes, whatever order their maps arrive in. */
static void test_replicas_share_a_shape(void)
{
    static const char form[] =
        "{\"metadata\":{\"name\":\"web-%d\",\"namespace\":\"x\",\"uid\":\"u%d\",\"labels\":{%s}},"
        "\"spec\":{"
        "\"nodeName\":\"n%d\",\"nodeSelector\":{%s},\"containers\":[{\"name\":\"c\",\"resources\":{"
        "\"requests\":{%s}}}]}}";
    char text[1024];
    begin();
    (void)s("b"); /* symbol order differs from the order in either text */
    snprintf(text, sizeof(text), form, 1, 1, "\"a\":\"1\",\"b\":\"2\"", 1,
             "\"d\":\"1\",\"c\":\"2\"", "\"cpu\":\"1\",\"x/y\":\"2\",\"a/b\":\"3\"");
    const struct bh_shape_rec *one = shape_json(text);
    snprintf(text, sizeof(text), form, 2, 2, "\"b\":\"2\",\"a\":\"1\"", 2,
             "\"c\":\"2\",\"d\":\"1\"", "\"a/b\":\"3000m\",\"x/y\":\"2\",\"cpu\":\"1000m\"");
    const struct bh_shape_rec *two = shape_json(text);
    CU_ASSERT_EQUAL_FATAL(one->h.size, two->h.size);
    CU_ASSERT_EQUAL(memcmp(one, two, one->h.size), 0);
    CU_ASSERT_EQUAL(bh_rec_hash(one), bh_rec_hash(two));
    snprintf(text, sizeof(text), form, 2, 2, "\"b\":\"2\",\"a\":\"3\"", 2,
             "\"c\":\"2\",\"d\":\"1\"", "\"a/b\":\"3000m\",\"x/y\":\"2\",\"cpu\":\"1000m\"");
    CU_ASSERT_NOT_EQUAL(bh_rec_hash(one), bh_rec_hash(shape_json(text)));
}

/* ---- nodes and pods -------------------------------------------------------------------------- */
static void test_node(void)
{
    begin();
    const struct bh_node_rec *r = node_json(
        "{'metadata':{'name':'n1','uid':'u','resourceVersion':'42','labels':{'a':'b','e':''},'"
        "annotations':"
        "{'x':'1','y':'2'}},'spec':{'unschedulable':true,'taints':[{'key':'k','effect':'NoExecute'}"
        "]},"
        "'status':{'allocatable':{'cpu':'3900m','memory':'1Gi','pods':'110','ephemeral-storage':'"
        "1k',"
        "'nvidia.com/"
        "gpu':'8','foo':'1'},'conditions':[{'type':'Ready','status':'True'}],'images':[{'names':"
        "['r/x:v1','r/"
        "x@sha256:1'],'sizeBytes':5},{'names':['y'],'sizeBytes':7}],'declaredFeatures':['F','G']}"
        "}");
    const struct bh_image *img = bh_rec_at(r, r->images, struct bh_image);
    bh_sym v = 99;
    CU_ASSERT(r->name == s("n1") && r->uid == s("u"));
    CU_ASSERT(r->flags == BH_NODE_UNSCHEDULABLE && r->resource_version == 42);
    CU_ASSERT(r->alloc_cpu_milli == 3900 && r->alloc_memory_bytes == GI && r->alloc_pods == 110);
    CU_ASSERT(r->alloc_ephemeral_bytes == 1000 && r->scalars.n == 1);
    CU_ASSERT_EQUAL(bh_rec_at(r, r->scalars, struct bh_res)->value, 8);
    CU_ASSERT(r->images.n == 3 && img[1].size_bytes == 5 && img[2].name == s("y"));
    CU_ASSERT(r->features.n == 2 && r->taints.n == 1);
    CU_ASSERT_EQUAL(bh_rec_at(r, r->taints, struct bh_taint)->effect, BH_NO_EXECUTE);
    CU_ASSERT(bh_labels_get(bh_rec_at(r, r->labels, struct bh_kv), r->labels.n, s("e"), &v));
    CU_ASSERT_EQUAL(v, BH_SYM_NONE);
    CU_ASSERT(!bh_labels_get(bh_rec_at(r, r->labels, struct bh_kv), r->labels.n, s("zz"), &v));
    /* the hashes ignore order and tell changes */
    const struct bh_node_rec *o = node_json("{'metadata':{'name':'n1','annotations':{'y':'2','x':'"
                                            "1'}},'status':{'conditions':[{'type':'Ready',"
                                            "'status':'False'}]}}");
    CU_ASSERT_EQUAL(o->annotations_hash, r->annotations_hash);
    CU_ASSERT_NOT_EQUAL(o->conditions_hash, r->conditions_hash);
    o = node_json("{'metadata':{'name':'n1','annotations':{'x':'2','y':'1'}}}");
    CU_ASSERT_NOT_EQUAL(o->annotations_hash, r->annotations_hash);
}

static int64_t amount(const void *rec, struct bh_slice list, const char *name)
{
    return bh_res_get(rec, list, s(name), -1);
}

/* Only what differs from allocatable is kept, also what stands in one of the lists alone. */
static void test_capacity(void)
{
    begin();
    const struct bh_node_rec *r = node_json(
        "{'metadata':{'name':'n'},'status':{'capacity':{'cpu':'4','memory':'2Gi','pods':'110',"
        "'x.y/a':'2','x.y/b':'3'},'allocatable':{'cpu':'3900m','memory':'2Gi','pods':'100',"
        "'x.y/a':'2','x.y/c':'4'}}}");
    CU_ASSERT_EQUAL(r->capacity.n, 4);
    CU_ASSERT_EQUAL(amount(r, r->capacity, "cpu"), 4000);
    CU_ASSERT_EQUAL(amount(r, r->capacity, "pods"), 110);
    CU_ASSERT_EQUAL(amount(r, r->capacity, "x.y/b"), 3);
    CU_ASSERT_EQUAL(amount(r, r->capacity, "x.y/c"), 0);
    CU_ASSERT_EQUAL(amount(r, r->capacity, "memory"), -1);
}

/* Init containers first; a resource that is named with 0 differs from one that is not named. */
static void test_containers(void)
{
    const struct bh_shape_rec *r = shape_spec(
        "'containers':[{'name':'a','resources':{'requests':{'cpu':'1500u','memory':'1Ki',"
        "'x.y/z':'0'},'limits':{'cpu':'2'}}},{'name':'b'}],"
        "'initContainers':[{'name':'i','resources':{'limits':{'memory':'5'}}},"
        "{'name':'s','restartPolicy':'Always'}],'overhead':{'cpu':'250m','memory':'120Mi'}");
    const struct bh_container *k = bh_rec_at(r, r->containers, struct bh_container);

    CU_ASSERT_EQUAL_FATAL(r->containers.n, 4);
    CU_ASSERT_EQUAL(k[0].flags, BH_CONTAINER_INIT);
    CU_ASSERT_EQUAL(k[1].flags, BH_CONTAINER_INIT | BH_CONTAINER_SIDECAR);
    CU_ASSERT_STRING_EQUAL(bh_sym_text(tab, k[0].name), "i");
    CU_ASSERT_STRING_EQUAL(bh_sym_text(tab, k[3].name), "b");
    CU_ASSERT(k[2].flags == 0 && k[2].requests.n == 3 && k[2].limits.n == 1);
    CU_ASSERT_EQUAL(amount(r, k[0].limits, "memory"), 5);
    CU_ASSERT_EQUAL(amount(r, k[2].requests, "cpu"), 2); /* rounded up */
    CU_ASSERT_EQUAL(amount(r, k[2].requests, "memory"), 1024);
    CU_ASSERT_EQUAL(amount(r, k[2].requests, "x.y/z"), 0);
    CU_ASSERT_EQUAL(amount(r, k[2].requests, "ephemeral-storage"), -1);
    CU_ASSERT_EQUAL(amount(r, k[2].limits, "cpu"), 2000);
    CU_ASSERT(k[3].requests.n == 0 && k[3].limits.n == 0);
    CU_ASSERT_EQUAL(amount(r, r->overhead, "cpu"), 250);
    CU_ASSERT_EQUAL(amount(r, r->overhead, "memory"), 120 * MI);
}

static void test_pod(void)
{
    begin();
    struct bh_pod_rec *r = NULL;
    const K8s__Pod *p = decode(
        &k8s__pod__descriptor,
        "{\"metadata\":{\"name\":\"p\",\"namespace\":\"ns\",\"uid\":\"u-1\",\"generation\":3,"
        "\"resourceVersion\":\"7\",\"creationTimestamp\":\"2026-01-01T00:00:18Z\","
        "\"deletionTimestamp\":"
        "\"2026-01-01T00:01:18Z\"},\"spec\":{\"nodeName\":\"n1\",\"schedulingGroup\":{"
        "\"podGroupName\":\"g\"}},\"status\":{\"nominatedNodeName\":\"n2\","
        "\"startTime\":\"2026-01-01T00:00:19Z\",\"conditions\":[{\"type\":\"DisruptionTarget\","
        "\"status\":"
        "\"True\",\"reason\":\"PreemptionByScheduler\"}]}}");
    CU_ASSERT_EQUAL_FATAL(bh_compile_pod(&arena, p, &interner, &r, NULL), 0);
    CU_ASSERT_EQUAL(bh_rec_remap(r, r->h.size, NULL, NULL), 0);
    CU_ASSERT_EQUAL(r->flags, BH_POD_TERMINATING | BH_POD_PREEMPTED_BY_SCHEDULER);
    CU_ASSERT(r->node == s("n1") && r->nominated_node == s("n2") && r->group == s("g"));
    CU_ASSERT(r->resource_version == 7 && r->generation == 3 && r->shape == 0);
    CU_ASSERT(r->creation_ns == 1767225618000000000 && r->start_ns == 1767225619000000000);
    CU_ASSERT(bh_str_eqc(bh_rec_text(r, r->name), "p"));
    CU_ASSERT(bh_str_eqc(bh_rec_text(r, r->namespace_), "ns"));
    CU_ASSERT(bh_str_eqc(bh_rec_text(r, r->uid), "u-1"));
    CU_ASSERT_STRING_EQUAL(bh_rec_text(r, r->uid).p, "u-1");
}

static void test_missing_identity(void)
{
    begin();
    struct bh_pod_rec *pod = NULL;
    struct bh_node_rec *node = NULL;
    struct bh_shape_rec *shape = NULL;
    struct bh_err err;
    CU_ASSERT_EQUAL(
        bh_compile_pod(&arena, decode(&k8s__pod__descriptor, "{}"), &interner, &pod, &err),
        -EINVAL);
    CU_ASSERT_STRING_EQUAL(err.msg, "pod: metadata.name is empty");
    CU_ASSERT_EQUAL(bh_compile_pod(&arena,
                                   decode(&k8s__pod__descriptor,
                                          "{\"metadata\":{\"name\":\"p\",\"namespace\":\"n\"}}"),
                                   &interner, &pod, &err),
                    -EINVAL);
    CU_ASSERT_STRING_EQUAL(err.msg, "pod n/p: metadata.uid is empty");
    CU_ASSERT_EQUAL(
        bh_compile_node(&arena, decode(&k8s__node__descriptor, "{}"), &interner, &node, &err),
        -EINVAL);
    CU_ASSERT_EQUAL(
        bh_compile_shape(&arena, decode(&k8s__pod__descriptor, "{}"), &interner, &shape, &err),
        -EINVAL);
    /* protobuf does not check quantities; the compiler does */
    K8s__Node *n =
        decode(&k8s__node__descriptor,
               "{\"metadata\":{\"name\":\"n\"},\"status\":{\"allocatable\":{\"cpu\":\"1\"}}}");
    n->status->allocatable[0]->value->string = bh_arena_strdup(&arena, "1x");
    CU_ASSERT_EQUAL(bh_compile_node(&arena, n, &interner, &node, &err), -EINVAL);
    CU_ASSERT_STRING_EQUAL(err.msg,
                           "node n: status.allocatable[cpu]: quantity \"1x\" does not parse");
    CU_ASSERT(!pod && !node && !shape);
}

static void test_negative_requests(void)
{
    struct bh_shape_rec *shape = NULL;
    struct bh_err err = {""};
    K8s__Pod *p = decode(&k8s__pod__descriptor,
                         "{\"metadata\":{\"name\":\"p\",\"namespace\":\"ns\"},\"spec\":{"
                         "\"containers\":[{\"name\":\"c\",\"resources\":{\"requests\":{"
                         "\"memory\":\"-1\"}}}]}}");

    CU_ASSERT_EQUAL(bh_compile_shape(&arena, p, &interner, &shape, &err), -EINVAL);
    CU_ASSERT_STRING_EQUAL(err.msg, "pod p: spec.containers[c]: resources.requests[memory]: -1: "
                                    "must be greater than or equal to 0");
    p->spec->containers[0]->resources->requests[0]->value->string = bh_arena_strdup(&arena, "-0");
    CU_ASSERT_EQUAL(bh_compile_shape(&arena, p, &interner, &shape, &err), 0);
}

static void test_size_limits(void)
{
    /* 300,000 tolerations of 16 bytes fit, 600,000 do not. */
    for (int i = 0; i < 2; i++) {
        struct bh_arena a;
        begin();
        K8s__Pod *p = decode(&k8s__pod__descriptor,
                             "{\"metadata\":{\"name\":\"p\"},\"spec\":{\"tolerations\":[{}]}}");
        struct bh_shape_rec *r = NULL;
        size_t n = i ? 600000 : 300000;
        K8s__Toleration **many = bh_arena_new_array(&arena, K8s__Toleration *, n);
        for (size_t j = 0; j < n; j++)
            many[j] = p->spec->tolerations[0];
        p->spec->tolerations = many;
        p->spec->n_tolerations = n;
        bh_arena_init(&a, 0);
        CU_ASSERT_EQUAL(bh_compile_shape(&a, p, &interner, &r, NULL), i ? -E2BIG : 0);
        bh_arena_fini(&a);
    }
    bool ok = false;
    K8s__Pod *p =
        decode(&k8s__pod__descriptor,
               "{\"metadata\":{\"name\":\"p\",\"labels\":{\"a\":\"b\"}},\"spec\":{\"containers\":[{"
               "\"name\":\"c\",\"image\":\"x\",\"resources\":{\"requests\":{\"x/y\":\"1\"}}}]}}");
    for (size_t limit = 16; limit < 32768 && !ok; limit += 32) {
        struct bh_arena a;
        struct bh_shape_rec *r = NULL;
        bh_arena_init(&a, limit);
        int rc = bh_compile_shape(&a, p, &interner, &r, NULL);
        CU_ASSERT(rc == 0 || rc == -E2BIG);
        ok = rc == 0;
        bh_arena_fini(&a);
    }
    CU_ASSERT(ok);
}

BH_TESTS("common/k8s/compile", {"requests, the documented table", test_requests_table},
         {"assigned pods: status counts, unless infeasible", test_status_aware_requests},
         {"pod-level requests with status", test_pod_level_status},
         {"sums are rounded once", test_sums_round_once},
         {"the score vector ignores pod-level requests", test_score_vector},
         {"which resource names count", test_scalars}, {"huge sums are clamped", test_clamped_sums},
         {"extended and scalar names", test_resource_names},
         {"required node affinity, the documented table", test_required_terms},
         {"preferred node affinity, the documented table", test_preferred_terms},
         {"errors of terms read as upstream's", test_error_texts},
         {"a term that does not parse keeps its fields", test_invalid_term_keeps_fields},
         {"negative requests are refused", test_negative_requests},
         {"node affinity of the configuration", test_added_affinity},
         {"tolerations", test_tolerations}, {"a node selector", test_a_node_selector},
         {"taints that are tolerated", test_taints_that_are_tolerated},
         {"image names are normalised", test_images}, {"host ports", test_host_ports},
         {"flags", test_flags}, {"volumes that plugins look at", test_volumes},
         {"label selectors: nil, empty, requirements, errors", test_label_selectors},
         {"pod affinity terms and their namespaces", test_pod_affinity_terms},
         {"topology spread constraints and matchLabelKeys", test_spread_constraints},
         {"many labels and matchLabelKeys", test_many_labels_and_match_label_keys},
         {"the owner whose selector counts", test_owners},
         {"replicas share one shape", test_replicas_share_a_shape}, {"a node", test_node},
         {"capacity where it is not allocatable", test_capacity},
         {"containers one by one", test_containers}, {"a pod", test_pod},
         {"missing identity is an error", test_missing_identity},
         {"records and memory are bounded", test_size_limits}, )
