/* SPDX-License-Identifier: Apache-2.0
 *
 * What is wrong with a plugin's args, in upstream's words.
 */
#include <stdio.h>

#include "common/data/json.h"
#include "scheduler/config/field.h"
#include "scheduler/framework/plugin.h"
#include "scheduler/plugins/registry.h"
#include "tests/unit/harness.h"

#define REQUIRED "args.addedAffinity.requiredDuringSchedulingIgnoredDuringExecution."
#define TERMS(list)                                                                                \
    "'addedAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':{'nodeSelectorTerms':"      \
    "[" list "]}}"
#define PREFERRED   "args.addedAffinity.preferredDuringSchedulingIgnoredDuringExecution"
#define LIKES(list) "'addedAffinity':{'preferredDuringSchedulingIgnoredDuringExecution':[" list "]}"
#define EXPR(key, op, values)                                                                      \
    "{'matchExpressions':[{'key':'" key "','operator':'" op "','values':[" values "]}]}"
#define FIELD(key, op, values)                                                                     \
    "{'matchFields':[{'key':'" key "','operator':'" op "','values':[" values "]}]}"
#define NO_VALUES "{'matchExpressions':[{'key':'a','operator':'In'}]}"
#define QUALIFIED                                                                                  \
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "    \
    "alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for "         \
    "validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"

static void expect(const char *plugin, const char *members, const char *want)
{
    struct bh_arena a;
    struct bh_json *args = NULL;
    struct bh_err err = {{0}};

    bh_arena_init(&a, 0);
    char *text = bh_arena_printf(&a, "{%s}", members);
    for (char *p = text; *p; p++)
        *p = *p == '\'' ? '"' : *p;
    CU_ASSERT_FATAL(bh_json_parse(&a, text, strlen(text), 0, &args, &err) == 0);
    struct bh_field_errors errs = {.a = &a};
    bh_plugin_find(plugin)->args_check(NULL, args, "args", &errs);
    if (errs.n)
        bh_err_set(&err, 0, "%s", bh_field_errors_text(&errs));
    if (!bh_streq(err.msg, want))
        printf("  %s: have %s\n  want %s\n", plugin, err.msg, want);
    CU_ASSERT(bh_streq(err.msg, want));
    bh_arena_fini(&a);
}

static void test_required(void)
{
    expect("NodeAffinity", "", "");
    expect("NodeAffinity", TERMS(""), "");
    expect("NodeAffinity", TERMS("{}," EXPR("a", "In", "'b'")), "");
    expect("NodeAffinity", TERMS(EXPR("a", "Exists", "")), "");
    expect("NodeAffinity", TERMS(EXPR("a", "Gt", "'5'")), "");
    expect("NodeAffinity", TERMS(FIELD("metadata.name", "In", "'n'")), "");
    expect("NodeAffinity", TERMS(EXPR("a", "Like", "")),
           REQUIRED "nodeSelectorTerms[0].matchExpressions[0].operator: Unsupported value: "
                    "\"Like\": supported values: \"In\", \"NotIn\", \"Exists\", \"DoesNotExist\", "
                    "\"Gt\", \"Lt\"");
    expect("NodeAffinity", TERMS("{}," EXPR("a b", "Exists", "")),
           REQUIRED "nodeSelectorTerms[1].matchExpressions[0].key: Invalid value: \"a b\": name "
                    "part " QUALIFIED);
    expect("NodeAffinity", TERMS(NO_VALUES),
           REQUIRED "nodeSelectorTerms[0].matchExpressions[0].values: Invalid value: null: for "
                    "'in', 'notin' operators, values set can't be empty");
    expect("NodeAffinity", TERMS(EXPR("a", "Exists", "'b'")),
           REQUIRED "nodeSelectorTerms[0].matchExpressions[0].values: Invalid value: [\"b\"]: "
                    "values set must be empty for exists and does not exist");
    expect("NodeAffinity", TERMS(EXPR("a", "Gt", "'1','2'")),
           REQUIRED "nodeSelectorTerms[0].matchExpressions[0].values: Invalid value: "
                    "[\"1\",\"2\"]: for 'Gt', 'Lt' operators, exactly one value is required");
    expect("NodeAffinity", TERMS(EXPR("a", "Lt", "'x'")),
           REQUIRED "nodeSelectorTerms[0].matchExpressions[0].values[0]: Invalid value: \"x\": for "
                    "'Gt', 'Lt' operators, the value must be an integer");
    expect("NodeAffinity", TERMS(FIELD("metadata.name", "Exists", "")),
           REQUIRED "nodeSelectorTerms[0].matchFields[0].operator: Unsupported value: \"Exists\": "
                    "supported values: \"In\", \"NotIn\"");
    expect("NodeAffinity", TERMS(FIELD("metadata.name", "In", "'a','b'")),
           REQUIRED "nodeSelectorTerms[0].matchFields[0].values: Invalid value: [\"a\",\"b\"]: "
                    "must have one element");
}

static void test_preferred(void)
{
    expect("NodeAffinity", LIKES("{'weight':1,'preference':" EXPR("a", "In", "'b'") "}"), "");
    expect(
        "NodeAffinity",
        LIKES("{'weight':0,'preference':" EXPR("a", "Like", "") "},{'weight':2,'preference':{}}"),
        "");
    expect("NodeAffinity",
           LIKES("{'weight':1,'preference':" EXPR("a", "Like",
                                                  "") "},{'weight':1,'preference':" NO_VALUES "}"),
           "[" PREFERRED "[0].matchExpressions[0].operator: Unsupported value: \"Like\": supported "
           "values: \"In\", \"NotIn\", \"Exists\", \"DoesNotExist\", \"Gt\", \"Lt\", " PREFERRED
           "[1].matchExpressions[0].values: Invalid value: null: for 'in', 'notin' "
           "operators, values set can't be empty]");
}

#define STRATEGY                                                                                   \
    ",'scoringStrategy':{'type':'LeastAllocated','resources':[{'name':'cpu','weight':1}]}"

static void test_fit(void)
{
    expect("NodeResourcesFit", "'ignoredResources':['a b']" STRATEGY,
           "ignoredResources[0]: Invalid value: \"a b\": name part " QUALIFIED);
    expect("NodeResourcesFit", "'ignoredResourceGroups':['a/b','c d']" STRATEGY,
           "[ignoredResourceGroups[0]: Invalid value: \"a/b\": resource group name can't contain "
           "'/', ignoredResourceGroups[1]: Invalid value: \"c d\": name part " QUALIFIED "]");
    expect("NodeResourcesFit",
           "'ignoredResources':['a/b','c'],'ignoredResourceGroups':['d.e']" STRATEGY, "");
}

BH_TESTS("scheduler/plugins/args", {"NodeAffinity: required terms", test_required},
         {"NodeAffinity: preferred terms", test_preferred}, {"NodeResourcesFit", test_fit})
