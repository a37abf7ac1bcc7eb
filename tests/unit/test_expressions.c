/* Expressions of workload files: random ones against their values, priorities and associativity by
 * hand, and the words of every refusal. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "model/workload/workload_expr.h"
#include "tests/check.h"

static enum dl_code find(void *context, const char *name, double *out, struct dl_err *err) {
    assert_int_equal(*(const int *)context, 5);
    *out = strcmp(name, "two") == 0 ? 2 : strcmp(name, "_x1") == 0 ? -0.5 : NAN;
    if (!isnan(*out)) return DL_OK;
    return dl_fail(err, DL_ERR_INPUT, "no parameter %s", name);
}

static enum dl_code eval(const char *text, double *out, struct dl_err *err) {
    int five = 5;
    const struct dl_expr_names names = {.find = find, .context = &five};
    memset(err, 0, sizeof *err);
    return dl_expr_eval(text, &names, out, err);
}

static uint64_t seed = 11;
static int upto(int count) { return (int)(check_random(&seed) % (uint64_t)count); }

static const char *space(void) {
    static const char *const spaces[] = {"", "", " ", "\t", "  "};
    return spaces[upto(5)];
}

static double write_word(char *text, size_t size) {
    static const char *const words[] = {"0",    "1",     "2.5", "two", "_x1",
                                        "true", "false", ".25", "1e1", "7"};
    static const double values[] = {0, 1, 2.5, 2, -0.5, 1, 0, 0.25, 10, 7};
    const int i = upto(10);
    snprintf(text, size, "%s%s%s", space(), words[i], space());
    return values[i];
}

enum { DIVIDE = 3, AND = 12, OR, OPERATORS };
static const char *const operators[] = {
    "+", "-", "*", "/", "//", "%", "<=", ">=", "==", "!=", "<", ">", "&&", "||"};

/* NAN: it divides by zero; what is decided is not computed. */
static double operate(int which, double a, double b) {
    if (which == AND && a == 0) return 0;
    if (which == OR && !isnan(a) && a != 0) return 1;
    if (isnan(a) || isnan(b) || (which >= DIVIDE && which < DIVIDE + 3 && b == 0)) return NAN;
    const double all[OPERATORS] = {
        a + b,  a - b,  a * b,  a / b,     floor(a / b),     a - floor(a / b) * b, a <= b,
        a >= b, a == b, a != b, a<b, a> b, a != 0 && b != 0, a != 0 || b != 0};
    return all[which];
}

static double write_call(char *text, size_t size, const char *left, double a, const char *right,
                         double b) {
    static const char *const names[] = {"floor", "ceil", "round", "min", "max"};
    const int i = upto(5);
    if (i < 3) {
        snprintf(text, size, "%s%s(%s)", space(), names[i], left);
        return i == 0 ? floor(a) : i == 1 ? ceil(a) : floor(a + 0.5);
    }
    snprintf(text, size, "%s%s(%s%s,%s)", space(), names[i], space(), left, right);
    return isnan(a) || isnan(b) ? NAN : i == 4 ? fmax(a, b) : fmin(a, b);
}

/* An expression of at most `depth` levels, each operation in parentheses, and what it is worth.
 * Spaces may stand anywhere between words. */
static double write_random(char *text, size_t size, int depth) {
    char left[1500], right[1500], third[1500];
    if (depth == 0 || upto(8) == 0) return write_word(text, size);
    const double a = write_random(left, sizeof left, depth - 1),
                 b = write_random(right, sizeof right, depth - 1);
    const int form = upto(7), which = upto(OPERATORS);
    if (form == 0) {
        snprintf(text, size, "%s-%s(%s)", space(), space(), left);
        return -a;
    }
    if (form == 1) {
        snprintf(text, size, "%s!(%s)", space(), left);
        return isnan(a) ? a : a == 0;
    }
    if (form == 2) {
        const double c = write_random(third, sizeof third, depth - 1);
        snprintf(text, size, "((%s)%s?%s:%s(%s))", left, space(), right, space(), third);
        return isnan(a) ? a : a != 0 ? b : c;
    }
    if (form < 5) return write_call(text, size, left, a, right, b);
    snprintf(text, size, "%s(%s%s%s%s)", space(), left, operators[which], space(), right);
    return operate(which, a, b);
}

static void random_expressions(void **state) {
    (void)state;
    int good = 0, bad = 0;
    for (int i = 0; i < 20000; i++) {
        char text[1500];
        struct dl_err err;
        double value = -77;
        const double expected = write_random(text, sizeof text, 3);
        if (strlen(text) > 1000) continue;
        const enum dl_code code = eval(text, &value, &err);
        if (isnan(expected)) {
            bad++;
            if (code != DL_ERR_INPUT) fail_msg("%s is %g, expected a refusal", text, value);
            check_contains(err.message, "division by zero");
            assert_true(value == -77);
        } else {
            good++;
            if (code != DL_OK) fail_msg("%s: %s", text, err.message);
            if (fabs(value - expected) > 1e-12 * fabs(expected))
                fail_msg("%s is %.17g, expected %.17g", text, value, expected);
        }
    }
    assert_true(good > 10000 && bad > 300);
}

/* Without parentheses: unary before products before sums before comparisons before logic before
 * choices; equals from left to right. */
static void priorities(void **state) {
    (void)state;
    static const struct {
        const char *text;
        double value;
    } rows[] = {
        {"2-3-4", -5},
        {"2-3+4", 3},
        {"8/4/2", 1},
        {"8/4*2", 4},
        {"9//2*2", 8},
        {"9%5%3", 1},
        {"7-2*3", 1},
        {"-2*-3", 6},
        {"1+1==2", 1},
        {"2>1+1", 0},
        {"1<2&&2<3", 1},
        {"0&&0||1", 1},
        {"1||1&&0", 0}, /* alike, from left to right */
        {"1?2:0?3:4", 2},
        {"0?2:0?3:4", 4},
        {"0||0?5:6", 6},
        {"1?0?7:8:9", 8},
        {"!0+1", 2},
        {"!two==0", 1},
        {"-7%4", 1},
        {"7%-4", -1},
        {"-0.5//1", -1},
        {"round(-2.5)", -2},
        {"round(2.4999)", 2},
        {"min(1,2)+max(3,min(5,4))", 5},
        {"1e-3", 1e-3},
        {"2 ", 2},
        {"0", 0},
        {"1 ? 2 : 1/0", 2},
        {"1 || 1%0", 1},
        {"0 ? 1//0 : 3", 3},
    };
    struct dl_err err;
    double value;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (eval(rows[i].text, &value, &err) != DL_OK)
            fail_msg("%s: %s", rows[i].text, err.message);
        if (value != rows[i].value)
            fail_msg("%s is %g, expected %g", rows[i].text, value, rows[i].value);
    }
}

static const struct {
    const char *text, *message;
} refused[] = {
    {"", "in \"\": expected a number, a name or '(', found the end"},
    {"1+", "in \"1+\": expected a number, a name or '(', found the end"},
    {"1 2", "in \"1 2\": expected an operator or the end, found '2'"},
    {"(1", "in \"(1\": expected ')', found the end"},
    {"(1 2)", "in \"(1 2)\": expected ')', found '2)'"},
    {"1?2", "in \"1?2\": expected ':' of a choice, found the end"},
    {"min(1)", "in \"min(1)\": expected ',' and a second argument, found ')'"},
    {"floor(1", "in \"floor(1\": expected ')', found the end"},
    {"floor(1,2)", "in \"floor(1,2)\": expected ')', found ',2)'"},
    {"max(1,2", "in \"max(1,2\": expected ')', found the end"},
    {"sin(1)", "in \"sin(1)\": no function 'sin'; expected min, max, floor, ceil or round"},
    {"0x10", "in \"0x10\": expected a decimal number, found '0x10'"},
    {"0X10", "in \"0X10\": expected a decimal number, found '0X10'"},
    {"1+0x10", "in \"1+0x10\": expected a decimal number, found '0x10'"},
    {"2two", "in \"2two\": expected an operator after the number, found 'two'"},
    {"2_", "in \"2_\": expected an operator after the number, found '_'"},
    {".", "in \".\": expected a number, found '.'"},
    {"1e999", "in \"1e999\": expected a number, found '1e999'"},
    {"1e308*10", "\"1e308*10\" is not a finite number"},
    {"1/0", "in \"1/0\": division by zero"},
    {"1//(1-1)", "in \"1//(1-1)\": division by zero"},
    {"1%0", "in \"1%0\": division by zero"},
    {"0?1:1/0", "in \"0?1:1/0\": division by zero"},
    {"0 ? nobody : 1", "no parameter nobody"},
    {"1 && (", "in \"1 && (\": expected a number, a name or '(', found the end"},
    {"!=1", "in \"!=1\": expected a number, a name or '(', found '!=1'"},
};

static void refusals(void **state) {
    (void)state;
    struct dl_err err;
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        double value;
        if (eval(refused[i].text, &value, &err) != DL_ERR_INPUT)
            fail_msg("%s was taken", refused[i].text);
        assert_string_equal(err.message, refused[i].message);
    }
}

static void limits(void **state) {
    (void)state;
    struct dl_err err;
    /* names of 63 letters are looked up, longer ones are none */
    char name[80];
    double value;
    memset(name, 'n', sizeof name), name[63] = '\0';
    assert_int_equal(eval(name, &value, &err), DL_ERR_INPUT);
    check_contains(err.message, "no parameter nnn");
    name[63] = 'n', name[64] = '\0';
    assert_int_equal(eval(name, &value, &err), DL_ERR_INPUT);
    assert_string_equal(err.message, "a name has more than 63 letters");
    /* 32 levels; each parenthesis takes two, for it holds a choice */
    char nested[200] = "";
    for (int i = 0; i < 31; i++) strcat(nested, "-");
    strcat(nested, "1");
    assert_int_equal(eval(nested + 1, &value, &err), DL_OK);
    assert_true(value == 1);
    assert_int_equal(eval(nested, &value, &err), DL_ERR_INPUT);
    assert_string_equal(err.message, "an expression is nested deeper than 32");
    assert_int_equal(eval("((((((((((((((1))))))))))))))", &value, &err), DL_OK);
    assert_int_equal(eval("(((((((((((((((1)))))))))))))))", &value, &err), DL_OK);
    assert_int_equal(eval("((((((((((((((((1))))))))))))))))", &value, &err), DL_ERR_INPUT);
    /* depth counts what is open, not what was */
    assert_int_equal(eval("(1)+(1)+(1)+(1)+(1)+(1)+(1)+(1)+(1)+(1)+(1)+(1)+(1)+(1)+(1)+(1)+(1)+(1)",
                          &value, &err),
                     DL_OK);
    assert_true(value == 18);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(random_expressions),
                                       cmocka_unit_test(priorities), cmocka_unit_test(refusals),
                                       cmocka_unit_test(limits)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
