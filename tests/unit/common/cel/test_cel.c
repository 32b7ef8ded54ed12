/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/unit/common/cel/test_cel.c - expressions, errors and limits
 *
 * The device cases follow upstream's table in dynamic-resource-allocation/cel/compile_test.go.
 */
#include "tests/unit/common/cel/fixture.h"

#define A "device.attributes['dra.example.com']"
#define C "device.capacity['dra.example.com']"

static void test_selectors_of_drivers(void)
{
    static const struct expect t[] = {
        {"device.driver == 'dra.example.com'", 1, NULL},
        {"device.driver == 'gpu.example.com'", 0, NULL},
        {A ".model == 'h100-SXM'", 1, NULL},
        {A ".numa == 0 && device.driver == 'dra.example.com'", 0, NULL},
        {C ".memory.compareTo(quantity('64Gi')) >= 0", 1, NULL},
        {C ".memory.compareTo(quantity('96Gi')) >= 0", 0, NULL},
        {"timestamp('2026-07-01T22:30:59.5Z').getHours('Europe/Berlin') == 0", 1, NULL},
        {"timestamp('2026-07-01T22:30:59.5Z').getDate('Europe/Berlin') == 2", 1, NULL},
        {"timestamp('2026-01-01T22:30:00Z').getHours('Europe/Berlin') == 23", 1, NULL},
        {"timestamp('2026-01-01T00:30:00Z').getFullYear('-02:00') == 2025", 1, NULL},
        {"timestamp('2026-01-01T00:30:00Z').getMinutes('-5:45') == 45", 1, NULL},
        {"timestamp('2026-01-01T00:00:00.25Z').getMilliseconds('Asia/Tokyo') == 250", 1, NULL},
        {"timestamp('2026-01-01T00:00:00Z').getHours('') == 0", 1, NULL},
        {"int(timestamp('1969-12-31T23:59:58.5Z')) == -2", 1, NULL},
        {"timestamp(" A ".numa + 9) == timestamp('1970-01-01T00:00:10Z')", 1, NULL},
        {"timestamp(timestamp('1970-01-01T00:00:00Z')) == timestamp(0)", 1, NULL},
        {"timestamp(" A ".numa * 9223372036854775807) == timestamp(0)", -EINVAL,
         "timestamp overflow"},
        {"int(duration(duration('1.5s'))) == 1500000000", 1, NULL},
        {"duration(int(" A ".numa)) == duration('1s')", -EINVAL,
         "type conversion error from 'int' to 'google.protobuf.Duration'"},
        {"timestamp('2026-01-01T00:00:00Z').getHours('Nowhere/Town') == 0", -EINVAL,
         "unknown time zone Nowhere/Town"},
        {"timestamp('2026-01-01T00:00:00Z').getHours('a:00') == 0", -EINVAL,
         "strconv.Atoi: parsing \"a\": invalid syntax"},
        {A ".ok", 1, NULL},
        {A "['ok']", 1, NULL},
        {"device.attributes['other.example.com'].name == 'bird'", 1, NULL},
        {"cel.bind(dra, " A ", dra.ok && dra.numa > 0)", 1, NULL},
        {A ".version.isGreaterThan(semver('0.0.1'))", 1, NULL},
        {A ".version.isGreaterThan(semver('v0.0.1', true)) && isSemver('v1.0.0', true)", 1, NULL},
        {"'memory' in " C " && " C ".memory.isGreaterThan(quantity('1Ki'))", 1, NULL},
        {"!('x' in " C ") || " C ".x.isGreaterThan(quantity('1Ki'))", 1, NULL},
        {"device.attributes.exists_one(x, x == 'dra.example.com')", 1, NULL},
        {A ".exists_one(x, x == 'numa')", 1, NULL},
        {A ".name.split('i').size() >= 2", 1, NULL},
        {A ".model.lowerAscii().matches('^h[0-9]+-sxm$')", 1, NULL},
        {"device.allowMultipleAllocations == false", 1, NULL},
        {"has(" A ".numa) && !has(" A ".nothing)", 1, NULL},
        {A ".?nothing.orValue('x') == 'x' && " A ".?name.orValue('x') == 'fish'", 1, NULL},
        {A "[?'nothing'].hasValue()", 0, NULL},
        {A ".name in ['cat', 'fish']", 1, NULL},
        {"\n" A ".numa == 1 // the first\n && true\n", 1, NULL},
    };
    CHECK_ALL(t);
}

static void test_an_unknown_domain_is_empty_but_not_there(void)
{
    static const struct expect t[] = {
        {"'none.example.com' in device.attributes", 0, NULL},
        {"'dra.example.com' in device.attributes", 1, NULL},
        {"device.attributes['none.example.com'].size() == 0", 1, NULL},
        {"has(device.attributes['none.example.com'].x)", 0, NULL},
        {"device.attributes['none.example.com'].x", -EINVAL, "no such key: x"},
        {"device.capacity['none.example.com']['x'].isGreaterThan(quantity('0'))", -EINVAL,
         "no such key: x"},
        {"'x' in device.attributes['none.example.com']", 0, NULL},
    };
    CHECK_ALL(t);
}

static void test_evaluation_errors_have_upstreams_text(void)
{
    static const struct expect t[] = {
        {A ".nothing == 1", -EINVAL, "no such key: nothing"},
        {A ".name", -EINVAL,
         "CEL result of type string could not be converted to bool: unsupported native "
         "conversion from string to 'bool'"},
        {A ".name && true", -EINVAL, "no such overload"},
        {A ".name > 1", -EINVAL, "no such overload"},
        {A ".name.isGreaterThan(quantity('1'))", -EINVAL,
         "no such overload: isGreaterThan(string, kubernetes.Quantity)"},
        {"dyn(" A ".numa).exists(x, x > 0)", -EINVAL, "got 'types.Int', expected iterable type"},
        {"dyn(" A ".version).exists(x, true)", -EINVAL, "got 'cel.Semver', expected iterable type"},
        {"1 / (" A ".numa - 1) == 1", -EINVAL, "division by zero"},
        {"1 % (" A ".numa - 1) == 1", -EINVAL, "modulus by zero"},
        {"9223372036854775807 + " A ".numa == 0", -EINVAL, "integer overflow"},
        {"[1, 2][2] == 1", -EINVAL, "index out of bounds: 2"},
        {"{1: true}[2]", -EINVAL, "no such key: 2"},
        {"{'a': 1, 'a': 2}.a == 2", 1, NULL},
        {A ".version == " A ".name", -EINVAL, "no such overload"},
        {A ".version != " A ".name", 1, NULL},
        {"quantity('1K').isInteger()", -EINVAL, "quantities must match"},
        {"optional.none().value() == 1", -EINVAL, "optional.none() dereference"},
    };
    CHECK_ALL(t);
}

static void test_what_cannot_work_does_not_compile(void)
{
    static const struct expect t[] = {
        {"", -ENOEXEC, "Syntax error"},
        {"?!", -ENOEXEC, "<input>:1:1: Syntax error"},
        {"1", -ENOEXEC, "must evaluate to bool or the unknown type, not int"},
        {"device.attributes", -ENOEXEC,
         "must evaluate to bool or the unknown type, not map(string, map(string, any))"},
        {"true &&\n nothing", -ENOEXEC, "<input>:2:2: undeclared reference to 'nothing'"},
        {"'a'.nothing()", -ENOEXEC, "undeclared reference to 'nothing'"},
        {"device.nothing", -ENOEXEC, "undefined field 'nothing'"},
        {"device.driver.nothing", -ENOEXEC, "type 'string' does not support field selection"},
        {"1 + 'a' == 2", -ENOEXEC, "no matching overload for '_+_' applied to '(int, string)'"},
        {"1 == 'a'", -ENOEXEC, "no matching overload for '_==_'"},
        {"1 == 1.0", -ENOEXEC, "no matching overload"},
        {"1 && true", -ENOEXEC, "<input>:1:1: expected type 'bool' but found 'int'"},
        {A ".numa.exists(x, x > 0)", -ENOEXEC, "expression of type 'any' cannot be range"},
        {"[" A ".numa, 1].size() == 2", -ENOEXEC, "expected type 'any' but found 'int'"},
        {"dyn(true)", -ENOEXEC, "not dyn"},
        {"int(1e19) == 1", -ENOEXEC, "program instantiation failed: integer overflow"},
        {"int('x') == 1", -ENOEXEC, "type conversion error from 'string' to 'int'"},
        {"timestamp('2026-01-01T00:00:00Z\\u0000') == timestamp(0)", -ENOEXEC,
         "<input>:1:11: invalid timestamp argument"},
        {"duration('1s\\u0000') == duration('1s')", -ENOEXEC,
         "<input>:1:10: invalid duration argument"},
        {"true &&\n nothing", -ENOEXEC, "(in container '')\n |  nothing\n | .^"},
        {"-1u == 1u", -ENOEXEC, NULL},
        {"'a'.startsWith(1)", -ENOEXEC, "applied to 'string.(int)'"},
        {"'a'.startsWith()", -ENOEXEC, "no matching overload for 'startsWith'"},
        {C ".memory == 1", -ENOEXEC, "no matching overload"},
        {"[1, 'a'].size() == 2", -ENOEXEC, "expected type 'int' but found 'string'"},
        {"1.all(x, true)", -ENOEXEC, NULL},
        {"device.driver.all(x, true)", -ENOEXEC, "cannot be range of a comprehension"},
        {"[1].all(1, true)", -ENOEXEC, "argument must be a simple name"},
        {"[1].all(x, x)", -ENOEXEC, "expected type 'bool' but found 'int'"},
        {"has(device)", -ENOEXEC, "invalid argument to has() macro"},
        {"'a'.matches('(')", -ENOEXEC, "<input>:1:13: invalid matches argument"},
        {"cel.bond(1, 1, true)", -ENOEXEC, "undeclared reference to 'cel.bond'"},
        {"[1].exists(x, x == 1) && x == 1", -ENOEXEC, "undeclared reference to 'x'"},
        {"'a", -ENOEXEC, "unterminated string"},
        {"'\\q' == 'q'", -ENOEXEC, "invalid escape sequence"},
        {"9223372036854775808 == 1", -ENOEXEC, "invalid int literal"},
        {"99999999999999999999u == 1u", -ENOEXEC, "invalid uint literal"},
        {"(true", -ENOEXEC, "missing ')' at '<EOF>'"},
        {"true true", -ENOEXEC, "extraneous input 'true' expecting <EOF>"},
        {"{[1]: true}.size() == 1", -ENOEXEC, "unsupported key type"},
    };
    CHECK_ALL(t);
}

static void test_logic_absorbs_errors_on_either_side(void)
{
    static const struct expect t[] = {
        {A ".nothing && false", 0, NULL},
        {"false && " A ".nothing", 0, NULL},
        {A ".nothing || true", 1, NULL},
        {"true || " A ".nothing", 1, NULL},
        {A ".nothing && true", -EINVAL, "no such key: nothing"},
        {"false || " A ".nothing", -EINVAL, "no such key: nothing"},
        {A ".nothing || " A ".never", -EINVAL, "no such key: nothing"},
        {"true && " A ".nothing && 1 / 0 == 1 && false", 0, NULL},
        {"[1, 0].all(x, 1 / x > 5)", 0, NULL},
        {"[1, 0].exists(x, 1 / x == 1)", 1, NULL},
        {"[0, 1].exists(x, 1 / x == 1)", 1, NULL},
        {"[0, 1].all(x, 1 / x == 1)", -EINVAL, "division by zero"},
        {"[0, 1].exists_one(x, 1 / x == 1)", -EINVAL, "division by zero"},
        {"cel.bind(x, " A ".nothing, true)", 1, NULL},
        {"true ? true : " A ".nothing", 1, NULL},
        {A ".nothing ? true : true", -EINVAL, "no such key"},
        {"!" A ".nothing", -EINVAL, "no such key"},
    };
    CHECK_ALL(t);
}

static void test_precedence_and_literals(void)
{
    static const struct expect t[] = {
        {"1 + 2 * 3 == 7 && (1 + 2) * 3 == 9", 1, NULL},
        {"7 - 2 - 1 == 4 && 12 / 2 / 3 == 2", 1, NULL},
        {"true || false && false", 1, NULL},
        {"false ? true : false ? false : true", 1, NULL},
        {"-2 + 3 == 1 && - -1 == 1 && !!true", 1, NULL},
        {"-9223372036854775808 < 0 && 0x7f == 127 && -7 / 2 == -3 && -7 % 2 == -1", 1, NULL},
        {"1.5e1 == 15.0 && .5 == 0.5 && 3u + 4u == 7u", 1, NULL},
        {"1 < 1.5 && 2u > 1 && 1.0 <= 1u && -1 < 0u", 1, NULL},
        {"9223372036854775807 < 9223372036854775808u", 1, NULL},
        {"'\\x41\\u00e9\\101\\n' == \"A\303\251A\\n\" && r'\\n'.size() == 2", 1, NULL},
        {"'''it's''' == \"it's\" && b'\\xff' != b'a' && \"\"\"a\nb\"\"\".size() == 3", 1, NULL},
        {"'h\303\251'.size() == 2 && size(b'h\303\251') == 3", 1, NULL},
        {"'a' < 'b' && 'a' < 'aa' && false < true", 1, NULL},
        {"[1, 2] + [3] == [1, 2, 3] && [] == [] && [[1]] != [[2]]", 1, NULL},
        {"{'a': 1, 'b': 2} == {'b': 2, 'a': 1} && {1: 'x'}[1] == 'x'", 1, NULL},
        {"{'a': {'b': true}}.a.b", 1, NULL},
        {"type(1) == int && type('a') != int && type(null) == null_type", 1, NULL},
        {"int('-12') == -12 && string(12) == '12' && double('1.5') == 1.5 && uint(3) == 3u", 1,
         NULL},
        {"int(3.9) == 3 && string(b'a') == 'a' && bool('true') && string(1.5) == '1.5'", 1, NULL},
        {"dyn(1) == dyn('a')", 0, NULL},
        {"dyn(1) == dyn(1.0) && dyn(1u) in [1.0, 2.0]", 1, NULL},
        {"device.driver\t==\r\n'dra.example.com'", 1, NULL},
    };
    CHECK_ALL(t);
}

static void test_macros(void)
{
    static const struct expect t[] = {
        {"[1, 2, 3].all(x, x > 0) && [].all(x, false) && ![].exists(x, true)", 1, NULL},
        {"[1, 2, 3].filter(x, x > 1) == [2, 3]", 1, NULL},
        {"[1, 2, 3].map(x, x * 2) == [2, 4, 6] && [1, 2, 3].map(x, x > 1, x * 2) == [4, 6]", 1,
         NULL},
        {"[1, 2].map(x, [3, 4].map(y, x * y)) == [[3, 4], [6, 8]]", 1, NULL},
        {"[1].exists(x, [2].exists(x, x == 2) && x == 1)", 1, NULL},
        {"{'a': 1}.all(k, k == 'a') && {'a': 1}.all(k, v, k == 'a' && v == 1)", 1, NULL},
        {"['a', 'b'].exists(i, v, i == 1 && v == 'b')", 1, NULL},
        {"cel.bind(x, 1, cel.bind(y, x + 1, x + y)) == 3", 1, NULL},
        {"optional.of(2).optMap(x, x + 1).value() == 3 && !optional.none().optMap(x, x).hasValue()",
         1, NULL},
        {"optional.of(2).optFlatMap(x, optional.of(x)).or(optional.of(5)) == optional.of(2)", 1,
         NULL},
        {"!optional.ofNonZeroValue('').hasValue() && optional.ofNonZeroValue(1).hasValue()", 1,
         NULL},
        {"{'a': {'b': 1}}.?a.b.orValue(0) == 1 && {'a': {'b': 1}}.?a.c.orValue(7) == 7", 1, NULL},
        {"[1][?3].hasValue()", 0, NULL},
        {A ".map(key, " A "[key]).filter(e, type(e) == int && e > 0).size() == 1", 1, NULL},
    };
    CHECK_ALL(t);
}

static void test_string_functions(void)
{
    static const struct expect t[] = {
        {"'hello'.contains('ell') && 'hello'.startsWith('he') && 'hello'.endsWith('lo')", 1, NULL},
        {"'HeLLo'.lowerAscii() == 'hello' && 'HeLLo'.upperAscii() == 'HELLO'", 1, NULL},
        {"'a,b,,c'.split(',') == ['a', 'b', '', 'c'] && 'a,b,c'.split(',', 2) == ['a', 'b,c']", 1,
         NULL},
        {"'h\303\251y'.split('') == ['h', '\303\251', 'y'] && 'ab'.split(',', 0) == []", 1, NULL},
        {"''.split(',') == [''] && ''.split('') == [] && 'a,'.split(',') == ['a', '']", 1, NULL},
        {"'tacocat'.substring(4) == 'cat' && 'tacocat'.substring(0, 4) == 'taco'", 1, NULL},
        {"'h\303\251y'.substring(2) == 'y' && 'h\303\251y'.indexOf('y') == 2", 1, NULL},
        {"'abc'.substring(4) == ''", -EINVAL, "index out of range: 4"},
        {"'abc'.substring(2, 1) == ''", -EINVAL, "invalid substring range. start: 2, end: 1"},
        {"'hello mellow'.indexOf('ello') == 1 && 'hello mellow'.indexOf('ello', 2) == 7", 1, NULL},
        {"'hello mellow'.lastIndexOf('ello') == 7 && 'a'.indexOf('z') == -1", 1, NULL},
        {"'hello'.replace('l', 'LL') == 'heLLLLo' && 'hello'.replace('l', '', 1) == 'helo'", 1,
         NULL},
        {"'ab'.replace('', '_') == '_a_b_' && 'ab'.replace('', '_', 2) == '_a_b'", 1, NULL},
        {"'  a b\\t\\n'.trim() == 'a b' && ' '.trim() == ''", 1, NULL},
        {"['a', 'b'].join('-') == 'a-b' && ['a', 'b'].join() == 'ab' && [].join('-') == ''", 1,
         NULL},
        {"'abc'.charAt(1) == 'b' && 'abc'.charAt(3) == '' && [1, 2].reverse() == [2, 1]", 1, NULL},
        {"'abc 123'.find('[0-9]+') == '123' && 'a1b22'.findAll('[0-9]+') == ['1', '22']", 1, NULL},
        {"'a1b22'.findAll('[0-9]+', 1) == ['1'] && 'abc'.findAll('x*') == ['', '', '', '']", 1,
         NULL},
        {"matches('abc', 'b') && !'abc'.matches('^b') && 'abc'.matches(device.driver + '|c')", 1,
         NULL},
        {"'a'.matches('(' + '')", -EINVAL, "error parsing regexp"},
    };
    CHECK_ALL(t);
}

static void test_lists_sets_quantities_and_versions(void)
{
    static const struct expect t[] = {
        {"sets.contains([1, 2, 3], [1, 3]) && !sets.contains([1], [1, 2])", 1, NULL},
        {"sets.equivalent([1, 1, 2], [2, 1]) && sets.intersects([1, 2], [2, 5])", 1, NULL},
        {"!sets.intersects([1], [2]) && !sets.intersects([], [1])", 1, NULL},
        {"[1, 2, 2].isSorted() && [3, 1].min() == 1 && [1, 3].max() == 3 && [1, 2].sum() == 3", 1,
         NULL},
        {"[1, 2, 1].indexOf(1) == 0 && [1, 2, 1].lastIndexOf(1) == 2 && [1].indexOf(5) == -1", 1,
         NULL},
        {A ".name.includes('fish') && [1, 2].includes(2) && !" A ".numa.includes(3)", 1, NULL},
        {"quantity('200M').compareTo(quantity('0.2G')) == 0", 1, NULL},
        {"quantity('50Mi').isGreaterThan(quantity('50M')) && "
         "quantity('1').isLessThan(quantity('2'))",
         1, NULL},
        {"quantity('1Gi') == quantity('1024Mi') && isQuantity('1.3Gi') && !isQuantity('200K')", 1,
         NULL},
        {"quantity('50k').add(20).sub(quantity('100k')).sub(-50000) == quantity('20')", 1, NULL},
        {"quantity('50k').asInteger() == 50000 && !quantity('500m').isInteger()", 1, NULL},
        {C ".frac.asInteger() == 0", -EINVAL, "cannot convert value to integer"},
        {C ".frac.asApproximateFloat() == 0.5 && sign(quantity('-1')) == -1", 1, NULL},
        {"semver('1.2.3').major() == 1 && semver('1.2.3').minor() == 2 && semver('1.2.3').patch() "
         "== 3",
         1, NULL},
        {"semver('1.0.0-alpha').isLessThan(semver('1.0.0-alpha.1')) && "
         "semver('1.0.0-alpha.1').isLessThan(semver('1.0.0-beta')) && "
         "semver('1.0.0-2').isLessThan(semver('1.0.0-11')) && "
         "semver('1.0.0-11').isLessThan(semver('1.0.0-a')) && "
         "semver('1.0.0-rc.1').isLessThan(semver('1.0.0'))",
         1, NULL},
        {"semver('1.0.0+a') == semver('1.0.0+b') && semver('1.2.3').compareTo(semver('0.9.9')) == "
         "1",
         1, NULL},
        {"semver('v01.02', true) == semver('1.2.0') && semver('1', true) == semver('1.0.0')", 1,
         NULL},
        {"isSemver('1.0') || isSemver('01.0.0') || isSemver('1.0.0-01') || isSemver('1.0.0-') || "
         "isSemver('') || isSemver('1.0.0+') || isSemver('v1.0.0') || isSemver('1.0-a', true)",
         0, NULL},
        {"isSemver('1.0.0-x-y.0+b.01') && isSemver('00.0', true)", 1, NULL},
    };
    CHECK_ALL(t);
}

static void test_a_broken_version_fails_every_selector(void)
{
    struct fixture f;

    fixture_init(&f);
    f.value[4].version = (char *)"1.2";
    CU_ASSERT_EQUAL(fixture_eval(&f, "true"), -EINVAL);
    CU_ASSERT_PTR_NOT_NULL(strstr(f.err.msg, "attribute version: parse semantic version: "));
}

static void test_an_attribute_without_a_known_value_fails_every_selector(void)
{
    struct fixture f;

    fixture_init(&f);
    f.value[0].string = NULL;
    CU_ASSERT_EQUAL(fixture_eval(&f, "true"), -EINVAL);
    CU_ASSERT_STRING_EQUAL(f.err.msg, "attribute name: unsupported attribute value");
}

static void test_a_bare_device_without_driver_name(void)
{
    K8s__Device bare = K8S__DEVICE__INIT;
    struct fixture f;

    fixture_init(&f);
    f.arg = (struct bh_cel_device){"", &bare};
    CU_ASSERT_EQUAL(fixture_eval(&f, "device.driver == '' && device.attributes.size() == 0"), 1);
    bare.has_allowmultipleallocations = bare.allowmultipleallocations = 1;
    CU_ASSERT_EQUAL(fixture_eval(&f, "device.allowMultipleAllocations"), 1);
}

/* Upstream's table states the estimated maximum; where nothing depends on sizes it is the actual
 * cost. */
static void test_costs_are_upstreams(void)
{
    static const struct {
        const char *text;
        uint64_t cost;
    } t[] = {
        {"true", 0},
        {"device.driver == ''", 2},
        {"device.driver == 'dra.example.com'", 4},
        {A ".ok", 4},
        {A ".numa > 0", 5},
        {A ".name == \"fish\"", 5},
        {"'dra.example.com' in device.attributes", 3},
        {"cel.bind(dra, " A ", dra.ok)", 5},
        {"cel.bind(dra, " A ", true)", 0},
        {"[1, 2, 3].exists(x, x == 9)", 19},
        {A ".name in ['a', 'b']", 4},
        {C ".memory.isGreaterThan(quantity('1Ki'))", 6},
        {"!('x' in " C ") || " C ".memory.isGreaterThan(quantity('1Ki'))", 5},
        {A ".version.isGreaterThan(semver('0.0.1'))", 6},
        {"device.allowMultipleAllocations == true", 3},
    };
    struct fixture f;

    for (size_t i = 0; i < BH_ARRAY_LEN(t); i++) {
        fixture_init(&f);
        fixture_eval(&f, t[i].text);
        if (f.cost != t[i].cost)
            printf("# %s costs %llu\n", t[i].text, (unsigned long long)f.cost);
        CU_ASSERT_EQUAL(f.cost, t[i].cost);
    }
}

static void test_the_cost_limit_ends_what_would_not(void)
{
#define TEN "[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]"
    static const struct expect t[] = {
        {TEN ".all(a, " TEN ".all(b, " TEN ".all(c, " TEN ".all(d, " TEN ".all(e, " TEN
             ".all(f, " TEN ".all(g, int('1'.find('[0-9]*')) < 100)))))))",
         -E2BIG, "actual cost limit exceeded"},
        {TEN ".all(a, " TEN ".all(b, " TEN ".all(c, " TEN ".all(d, " TEN ".all(e, " TEN
             ".all(f, " TEN ".all(g, true))))))) || true",
         -E2BIG, NULL},
        /* doubling strings */
        {TEN ".all(a, " TEN ".all(b, cel.bind(x, '0123456789'.replace('', '0123456789'), "
             "cel.bind(y, x.replace('', x), cel.bind(z, y.replace('', y), z != '')))))",
         -E2BIG, NULL},
        /* patterns made while evaluating, each a large program or an error that || absorbs */
        {TEN ".all(a, " TEN ".all(b, " TEN ".all(c, " TEN
             ".all(d, 'x'.matches('(a?b?c?){999}' + 'd') || 'x'.matches('(a?b?c?d?e?f?){999}' + "
             "'') || true))))",
         -E2BIG, NULL},
        /* long strings inside lists */
        {"cel.bind(x, 'abcdefghij'.replace('', 'abcdefghij'), cel.bind(y, x.replace('', x), "
         "cel.bind(l, y.split('').map(z, y), l == l && l.isSorted() && l.max() == y && y in l)))",
         -E2BIG, NULL},
    };
    CHECK_ALL(t);
}

/* Work that upstream does not charge has a limit of its own, far away. */
static void test_cheap_expressions_that_are_work_are_answered(void)
{
    static const struct expect t[] = {
        /* sharing: 2^k leaves out of k nodes */
        {"cel.bind(a, [1, 1], cel.bind(b, [a, a], cel.bind(c, [b, b], cel.bind(d, [c, c], "
         "cel.bind(e, [d, d], cel.bind(f, [e, e], cel.bind(g, [f, f], cel.bind(h, [g, g], "
         "cel.bind(i, [h, h], cel.bind(j, [i, i], cel.bind(k, [j, j], cel.bind(l, [k, k], "
         "cel.bind(m, [l, l], cel.bind(n, [m, m], cel.bind(o, [n, n], cel.bind(p, [o, o], "
         "cel.bind(q, [p, p], cel.bind(r, [q, q], cel.bind(s, [r, r], cel.bind(t, [s, s], "
         "cel.bind(u, [t, t], cel.bind(v, [u, u], v == [u, u]))))))))))))))))))))))",
         1, NULL},
        {"lists.range(300).all(a, lists.range(300).all(b, b >= 0))", 1, NULL},
        {"lists.range(3000000).size() == 1", -E2BIG, NULL},
        {"lists.range(9223372036854775807).size() == 1", -E2BIG, NULL},
    };
    CHECK_ALL(t);
}

/* What has hardly a price upstream, of texts of a megabyte and of lists that share their parts. */
static void test_what_is_long_is_work(void)
{
#define TWICE(x)   x ".map(a, [a, a])"
#define TWICE_5(x) TWICE(TWICE(TWICE(TWICE(TWICE(x)))))
#define LONG(rest)                                                                                 \
    "cel.bind(x, 'aaaaaaaaaa'.replace('', 'aaaaaaaaaa'), cel.bind(y, x.replace('', x), "           \
    "cel.bind(z, y.replace('', x), " rest ")))"
    static const struct expect t[] = {
        {TWICE_5(TWICE_5(TWICE_5(TWICE_5(TWICE_5("[[]]"))))) ".indexOf([]) == -1", -E2BIG, NULL},
        {TWICE_5(TWICE_5(TWICE_5(TWICE_5(TWICE_5("[{}]"))))) ".lastIndexOf([]) == -1", -E2BIG,
         NULL},
        {LONG("lists.range(300).all(i, timestamp(z) == timestamp(0) || true)"), -E2BIG, NULL},
        {LONG("lists.range(300).all(i, timestamp(0).getHours(z) == 0 || true)"), -E2BIG, NULL},
        {LONG("lists.range(400).all(i, z.charAt(0) == 'a')"), -E2BIG, NULL},
        {LONG("lists.range(400).all(i, z != 'a')"), -E2BIG, NULL},
        {LONG("lists.range(400).all(i, dyn(z) <= dyn(z))"), -E2BIG, NULL},
        {LONG("lists.range(300).map(i, dyn(z)).sort().size() == 300"), -E2BIG, NULL},
        {LONG("cel.bind(u, url('/' + z), lists.range(400).all(i, u.getEscapedPath() != 'a'))"),
         -E2BIG, NULL},
        {LONG("z.lastIndexOf(z.substring(900000) + 'b') == -1"), 1, NULL},
        {LONG("z.lastIndexOf('a') + 1 == z.size() && z.lastIndexOf('') == z.size()"), 1, NULL},
        {LONG("lists.range(10).all(i, z.charAt(0) == 'a' && z != 'a')"), 1, NULL},
    };
    CHECK_ALL(t);
}

static char *repeated(const char *before, const char *what, size_t n, const char *after)
{
    size_t each = strlen(what), b = strlen(before), a = strlen(after);
    char *s = bh_malloc(b + n * each + a + 1);

    memcpy(s, before, b);
    for (size_t i = 0; i < n; i++)
        memcpy(s + b + i * each, what, each);
    memcpy(s + b + n * each, after, a + 1);
    return s;
}

static int eval_repeated(const char *before, const char *what, size_t n, const char *after)
{
    BH_CLEANUP(bh_freep) char *s = repeated(before, what, n, after);
    struct fixture f;

    fixture_init(&f);
    return fixture_eval(&f, s);
}

static void test_depth_and_length_are_bounded(void)
{
    CU_ASSERT_EQUAL(eval_repeated("true", " && true", 1000, ""), 1);
    CU_ASSERT_EQUAL(eval_repeated("", "[", 5000, ""), -ENOEXEC);
    CU_ASSERT_EQUAL(eval_repeated("", "(", 63, "true"), -ENOEXEC);
    CU_ASSERT_EQUAL(eval_repeated("", "!", 5000, "true"), 1); /* two of them are none */
    CU_ASSERT_EQUAL(eval_repeated("", "!-", 2500, "true"), -ENOEXEC);
    CU_ASSERT_EQUAL(eval_repeated("", "!", 40, "true"), 1);
    CU_ASSERT_EQUAL(eval_repeated("0", " + 1", 200, " == 200"), 1);
    CU_ASSERT_EQUAL(eval_repeated("0", " + 1", 2000, " == 2000"), -ENOEXEC);
    CU_ASSERT_EQUAL(eval_repeated("[", "1, ", 3000, "1].size() == 3001"), 1);
    CU_ASSERT_EQUAL(eval_repeated("", "true ? true : ", 600, "true"), -ENOEXEC);
    CU_ASSERT_EQUAL(eval_repeated("true //", " ", 10240 - 7, ""), 1);
    CU_ASSERT_EQUAL(eval_repeated("true //", " ", 10240 - 6, ""), -ENOEXEC);
}

BH_TESTS("common/cel", {"selectors of drivers", test_selectors_of_drivers},
         {"an unknown domain is empty but not there",
          test_an_unknown_domain_is_empty_but_not_there},
         {"evaluation errors have upstream's text", test_evaluation_errors_have_upstreams_text},
         {"what cannot work does not compile", test_what_cannot_work_does_not_compile},
         {"logic absorbs errors on either side", test_logic_absorbs_errors_on_either_side},
         {"precedence and literals", test_precedence_and_literals}, {"macros", test_macros},
         {"string functions", test_string_functions},
         {"lists, sets, quantities and versions", test_lists_sets_quantities_and_versions},
         {"a broken version fails every selector", test_a_broken_version_fails_every_selector},
         {"an attribute without a known value fails every selector",
          test_an_attribute_without_a_known_value_fails_every_selector},
         {"a bare device without driver name", test_a_bare_device_without_driver_name},
         {"costs are upstream's", test_costs_are_upstreams},
         {"the cost limit ends what would not", test_the_cost_limit_ends_what_would_not},
         {"cheap expressions that are work are answered",
          test_cheap_expressions_that_are_work_are_answered},
         {"what is long is work", test_what_is_long_is_work},
         {"depth and length are bounded", test_depth_and_length_are_bounded})
