/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/unit/common/flags/test_feature_gates.c - gates, their versions, and upstream's texts
 */
#include "common/flags/feature_gates.h"
#include "common/base/buf.h"
#include "tests/unit/harness.h"

#include <errno.h>

static struct bh_feature_gates g;
static struct bh_err err;

/* Lists of at most one text each; "" = not given. Texts may hold commas, as on the command line. */
static int set(const char *gates, const char *emulated, const char *min)
{
    const char *all[16];
    struct bh_opt_list list = {all, 0}, e = {&emulated, *emulated != 0}, m = {&min, *min != 0};
    char *text = bh_strdup(gates), *rest = text, *item;

    while ((item = strsep(&rest, ",")) && list.n < BH_ARRAY_LEN(all))
        all[list.n++] = item;
    err.msg[0] = 0;
    bh_feature_gates_init(&g);
    int rc = bh_feature_gates_set(&g, &list, &e, &m, &err);
    free(text);
    return rc;
}

static void refused(const char *gates, const char *emulated, const char *min, const char *text)
{
    CU_ASSERT_EQUAL(set(gates, emulated, min), -EINVAL);
    CU_ASSERT_STRING_EQUAL(err.msg, text);
}

static void test_table_is_sorted_and_sound(void)
{
    bh_feature_gates_init(&g);
    CU_ASSERT(bh_n_feature_rows > 200);
    for (size_t i = 0; i < bh_n_feature_rows; i++) {
        const struct bh_feature_row *r = &bh_feature_rows[i];
        if (i)
            CU_ASSERT(strcmp(bh_feature_rows[i - 1].name, r->name) < 0);
        CU_ASSERT_EQUAL(strlen(r->states), BH_FEATURE_MINOR - BH_FEATURE_MINOR_FLOOR + 1);
        CU_ASSERT_EQUAL(strspn(r->states, "-aAbBgGdDlLxX"), strlen(r->states));
    }
}

static void test_defaults(void)
{
    static const struct {
        const char *name;
        bool on;
    } wanted[] = {
        {"DynamicResourceAllocation", true},
        {"SchedulerQueueingHints", true},
        {"DRAAdminAccess", true},
        {"NodeDeclaredFeatures", true},
        {"OpportunisticBatching", true},
        {"SchedulerAsyncPreemption", true},
        {"SchedulerPopFromBackoffQ", true},
        {"SchedulerAsyncAPICalls", false},
        {"DRADeviceTaintRules", false},
        {"GangScheduling", false},
        {"GenericWorkload", false},
        {"StorageCapacityScoring", false},
        {"TaintTolerationComparisonOperators", false},
        {"NativeHistograms", false},
        {"ComponentFlagz", true},
        {"ContextualLogging", true},
        {"LoggingAlphaOptions", false},
        {"AllAlpha", false},
    };
    CU_ASSERT_EQUAL(set("", "", ""), 0);
    for (size_t i = 0; i < BH_ARRAY_LEN(wanted); i++)
        CU_ASSERT_EQUAL(bh_feature_enabled(&g, wanted[i].name), wanted[i].on);
}

static void test_setting(void)
{
    CU_ASSERT_EQUAL(set("SchedulerPopFromBackoffQ=false, NodeSwap = 1", "", ""), 0);
    CU_ASSERT(!bh_feature_enabled(&g, "SchedulerPopFromBackoffQ"));
    CU_ASSERT_EQUAL(set("kube:SchedulerPopFromBackoffQ=f,kube:SchedulerPopFromBackoffQ=T", "", ""),
                    0); /* the last word counts */
    CU_ASSERT(bh_feature_enabled(&g, "SchedulerPopFromBackoffQ"));
    CU_ASSERT_EQUAL(set("DynamicResourceAllocation=true", "", ""), 0); /* as it is locked */
}

static void test_classes(void)
{
    CU_ASSERT_EQUAL(set("AllAlpha=true,StorageCapacityScoring=false", "", ""), 0);
    CU_ASSERT(bh_feature_enabled(&g, "GangScheduling"));
    CU_ASSERT(!bh_feature_enabled(&g, "StorageCapacityScoring")); /* named itself */
    CU_ASSERT_EQUAL(set("AllBeta=false", "", ""), 0);
    CU_ASSERT(!bh_feature_enabled(&g, "SchedulerPopFromBackoffQ"));
    CU_ASSERT(bh_feature_enabled(&g, "DynamicResourceAllocation"));
}

static void test_refusals(void)
{
    refused("Foo=true", "", "", "unrecognized feature gate: Foo");
    refused("DynamicResource=true", "", "", "unrecognized feature gate: DynamicResource");
    refused(
        "DynamicResourceAllocation=false", "", "",
        "cannot set feature gate DynamicResourceAllocation to false, feature is locked to true");
    refused("GangScheduling=true", "", "",
            "GangScheduling is enabled, but depends on features that are disabled: "
            "[GenericWorkload]");
    refused("DRAResourceClaimDeviceStatus=false", "", "",
            "[DRADeviceBindingConditions is enabled, but depends on features that are disabled: "
            "[DRAResourceClaimDeviceStatus], DRAResourceClaimGranularStatusAuthorization is "
            "enabled, but depends on features that are disabled: [DRAResourceClaimDeviceStatus]]");
    refused("SchedulerQueueingHints=false,DRAAdminAccess=false", "", "",
            "[cannot set feature gate DRAAdminAccess to false, feature is locked to true, cannot "
            "set feature gate SchedulerQueueingHints to false, feature is locked to true]");
    refused("GangScheduling", "", "", "missing bool value for GangScheduling");
    refused("GangScheduling=maybe", "", "",
            "invalid value of GangScheduling=maybe, err: strconv.ParseBool: parsing \"maybe\": "
            "invalid syntax");
    refused("wardle:X=true", "", "", "component not registered: wardle");
    refused("kube:GenericWorkload=true,GangScheduling=true", "", "",
            "set kube feature gates with default empty prefix or kube: prefix consistently, do not "
            "mix use");
}

static void test_emulated_version(void)
{
    CU_ASSERT_EQUAL(set("", "1.33", ""), 0);
    CU_ASSERT(g.emulated == 33 && g.min_compatibility == 33);
    CU_ASSERT(!bh_feature_enabled(&g, "DynamicResourceAllocation")); /* beta and off in 1.33 */
    CU_ASSERT(!bh_feature_enabled(&g, "NodeDeclaredFeatures"));      /* not there yet */
    CU_ASSERT_EQUAL(set("", "kube=1.35", ""), 0);
    CU_ASSERT(g.min_compatibility == 34 && bh_feature_enabled(&g, "DynamicResourceAllocation"));
    CU_ASSERT_EQUAL(set("", "1.36", "1.34"), 0);
    CU_ASSERT_EQUAL(g.min_compatibility, 34);
    refused("GangScheduling=true", "1.33", "",
            "cannot set feature gate GangScheduling to true, feature is PreAlpha at emulated "
            "version 1.33, min compatibility version 1.33");
    refused("", "abc", "", "could not parse \"abc\" as version");
    refused("", "1", "", "illegal version string \"1\"");
    refused("", "01.35", "", "illegal zero-prefixed version component \"01\" in \"01.35\"");
    refused("", "1.35.2", "", "patch version not allowed, got: kube=1.35.2");
    refused("", "wardle=1.2", "", "component not registered: wardle");
}

static void collect(void *arg, const char *text)
{
    struct bh_buf *b = arg;
    bh_buf_addf(b, "%s\n", text);
}

static void test_version_ranges(void)
{
    static const struct {
        const char *emulated, *min, *text;
    } cases[] = {
        {"1.33", "", ""},
        {"", "", ""},
        {"1.20", "1.33",
         "emulation version 1.20 is not between [1.33, 1.36.0]\n"
         "minCompatibilityVersion version 1.33 is not between [1.33, 1.20]\n"},
        {"1.37", "", "emulation version 1.37 is not between [1.33, 1.36.0]\n"},
        {"2.0", "1.36", "emulation version 2.0 is not between [1.33, 1.36.0]\n"},
        {"", "1.32", "minCompatibilityVersion version 1.32 is not between [1.33, 1.36]\n"},
    };
    for (size_t i = 0; i < BH_ARRAY_LEN(cases); i++) {
        struct bh_buf b = {0};
        CU_ASSERT_EQUAL(set("", cases[i].emulated, cases[i].min), 0);
        bh_feature_gates_check_versions(&g, collect, &b);
        CU_ASSERT_STRING_EQUAL(bh_buf_str(&b), cases[i].text);
        bh_buf_fini(&b);
    }
}

struct seen {
    unsigned n, alpha;
    bool future, lock, differs, given;
};

static void look(void *arg, const struct bh_feature_state *s)
{
    struct seen *k = arg;

    k->n++;
    k->alpha += bh_streq(s->stage, "ALPHA");
    if (bh_streq(s->name, "WorkloadAwarePreemption"))
        k->future = true;
    if (bh_streq(s->name, "DynamicResourceAllocation"))
        k->lock = bh_streq(s->stage, "") && s->enabled;
    if (bh_streq(s->name, "SchedulerPopFromBackoffQ"))
        k->differs = s->differs && !s->enabled, k->given = s->given;
}

static void test_visiting(void)
{
    struct seen now = {0}, old = {0};

    CU_ASSERT_EQUAL(set("SchedulerPopFromBackoffQ=false", "", ""), 0);
    bh_feature_gates_each(&g, look, &now);
    CU_ASSERT(now.n == bh_n_feature_rows && now.future && now.lock && now.differs && now.given);
    CU_ASSERT_EQUAL(set("", "1.34", ""), 0);
    bh_feature_gates_each(&g, look, &old);
    CU_ASSERT(old.n < now.n && !old.future && old.alpha > 0 && !old.differs);
}

BH_TESTS("common/data/feature_gates",
         {"the table is sorted and every row has a letter a version",
          test_table_is_sorted_and_sound},
         {"defaults are those of v1.36", test_defaults},
         {"gates are set by name, with and without kube:", test_setting},
         {"AllAlpha and AllBeta set what is not named itself", test_classes},
         {"unknown, locked, dependent and unreadable gates: upstream's texts", test_refusals},
         {"an emulated version has the gates of its time", test_emulated_version},
         {"versions out of range are named", test_version_ranges},
         {"visiting shows name, stage and value", test_visiting})
