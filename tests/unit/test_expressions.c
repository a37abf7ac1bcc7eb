/* Random expressions of workload files against their values; others are cases of
 * tests/golden/texts.txt. */

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

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_expressions),

    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
