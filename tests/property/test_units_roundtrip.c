/* What dl_units_format prints, dl_units_parse reads back within the printed digits; 1000 random
 * cases a unit. */
#include "model/core/units.h"
#include "tests/check.h"

enum { CASES = 1000 };

static void test_round_trip(void **state) {
    uint64_t seed = 0x5eed0001;

    for (int unit = 0; unit < DL_UNITS; unit++) {
        for (int i = 0; i < CASES; i++) {
            double magnitude = pow(10, -14 + 32 * check_uniform(&seed)), value = magnitude,
                   back = 0;
            struct dl_err err;
            char text[64];

            /* 2^53: all are doubles */
            if (unit == DL_UNIT_COUNT) value = floor(fmin(magnitude, 9007199254740992.0));
            if (check_random(&seed) & 1) value = -value;
            dl_units_format(value, (enum dl_unit)unit, text, sizeof text);
            if (dl_units_parse(text, (enum dl_unit)unit, &back, &err) != DL_OK)
                fail_msg("seed case %d of unit %d: %.17g printed as %s: %s", i, unit, value, text,
                         err.message);
            if (!(fabs(back - value) <= 0.00501 * fabs(value)))
                fail_msg("seed case %d of unit %d: %.17g printed as %s, read as %.17g", i, unit,
                         value, text, back);
            if (strlen(text) > 26)
                fail_msg("%.17g printed as %s: too long for a column", value, text);
        }
    }
}

/* 17 digits with a decimal prefix are the same double as with the exponent written out. */
static void test_decimal_prefixes_are_exact(void **state) {
    static const struct {
        const char *prefix;
        int exponent;
    } prefixes[] = {
        {"k", 3}, {"M", 6}, {"G", 9}, {"T", 12}, {"P", 15}, {"E", 18},
    };
    uint64_t seed = 0x5eed0002;

    for (int i = 0; i < CASES; i++) {
        size_t p = (size_t)(check_random(&seed) % 6);
        double number = check_uniform(&seed) * 1000, value = 0;
        char with_prefix[64], with_exponent[64];

        snprintf(with_prefix, sizeof with_prefix, "%.12f%sB/s", number, prefixes[p].prefix);
        snprintf(with_exponent, sizeof with_exponent, "%.12fe%d", number, prefixes[p].exponent);
        assert_int_equal(dl_units_parse(with_prefix, DL_UNIT_BYTE_PER_S, &value, NULL), DL_OK);
        check_close(value, strtod(with_exponent, NULL), 0);
    }
}

/* Lists: every value is in range and ascending within a range, and there are never more than asked
 * for. */
static void test_lists(void **state) {
    uint64_t seed = 0x5eed0003;

    for (int i = 0; i < CASES; i++) {
        long long from = 1 + (long long)(check_random(&seed) % 100),
                  to = from + (long long)(check_random(&seed) % 5000);
        long long factor = 2 + (long long)(check_random(&seed) % 5), expected = from;
        int64_t values[64];
        size_t count = 0;
        char text[64];

        snprintf(text, sizeof text, "%lld-%lld*%lld", from, to, factor);
        assert_int_equal(dl_list_parse(text, values, 64, &count, NULL), DL_OK);
        assert_true(count >= 1 && count <= 64);
        for (size_t v = 0; v < count; v++, expected *= factor)
            assert_int_equal(values[v], expected);
        assert_true(expected > to && values[count - 1] <= to);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_decimal_prefixes_are_exact),
        cmocka_unit_test(test_lists),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
