/* Numbers in text: bit for bit what strtod reads, and as far. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "model/core/decimal.h"
#include "tests/check.h"

static void check_same(const char *text) {
    const char *end;
    char *wanted_end;
    const double wanted = strtod(text, &wanted_end), got = dl_decimal(text, &end);
    if (memcmp(&wanted, &got, sizeof got) != 0 || end != wanted_end)
        fail_msg("\"%s\": %.17g up to %td, strtod has %.17g up to %td", text, got, end - text,
                 wanted, wanted_end - text);
    double plain = 0;
    const char *plain_end = dl_decimal_plain(text, &plain);
    const bool hexadecimal = text[0] == '0' && text[1] == 'x'; /* to strtod alone */
    if (plain_end != NULL && !hexadecimal &&
        (memcmp(&wanted, &plain, sizeof plain) != 0 || plain_end != wanted_end))
        fail_msg("\"%s\": %.17g up to %td as a plain number, strtod has %.17g up to %td", text,
                 plain, plain_end - text, wanted, wanted_end - text);
}

/* Which numbers are plain, and where they end. */
static void test_plain(void **state) {
    static const struct {
        const char *text;
        long length; /* 0: not plain */
    } cases[] = {
        {"0", 1},
        {"-0,", 2},
        {"20.3422,", 7},
        {"-1.5]", 4},
        {"0.001 ", 5},
        {"7.25.1", 4},
        {"", 0},
        {"-", 0},
        {"01", 0},
        {"1.", 0},
        {".5", 0},
        {"+1", 0},
        {"1e5", 0},
        {"1.5E-3", 0},
        {"x", 0},
        {"123456789012345", 15},
        {"0.12345678901234", 16},
        {"0.123456789012345", 17},
        {"1234567890123456", 16},
        {"0.05172050157555762", 19},
        {"0.052315522259115685", 20},
        {"9999999999999999999", 19},
        {"0.1234567890123456789", 0},
        {"12345678901234567890", 0},
        {"-123456789.012345", 17},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        double value;
        const char *end = dl_decimal_plain(cases[i].text, &value);
        assert_int_equal(end == NULL ? 0 : end - cases[i].text, cases[i].length);
    }
}

static void test_edges(void **state) {
    static const char *const texts[] = {
        "0",
        "-0",
        "0.0",
        "-0.0e5",
        "1",
        "-1",
        "0.1",
        "1e22",
        "1e23",
        "1e-22",
        "1e-23",
        "9007199254740993",
        "9007199254740993.0",
        "9007199254740993.001",
        "4503599627370497.5",
        "-4503599627370498.5",
        "9999999999999999999",
        "0.9999999999999999999",
        "0.0000000000000000001",
        "999999999999999",
        "1000000000000000",
        "123456789012345e-10",
        "0.000000000000000000000123",
        "1e400",
        "-1e400",
        "1e-400",
        "4.9e-324",
        "2.2250738585072011e-308",
        "1.7976931348623157e308",
        "00012.50",
        "3.",
        "3.e2",
        "1e",
        "1e+",
        "1e5x",
        "12,13",
        "12]",
        "1.5E+3",
        "1E-3 ",
        "0x10",
        "1x",
        "1.2.3",
        "179769313486231580793728971405303415079934132710037826936173778980444968292764750946649",
        "0.30000000000000004",
        "8.5e-05",
        "100000000000000000000000",
        "1e99999999999",
        "0e99999999999",
        "-5e-7"};
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) check_same(texts[i]);
}

/* As data files print them (%g of some digits), and any digits with any exponent. */
static void test_random(void **state) {
    uint64_t seed = 88172645463325252u;
    char text[64];
    (void)state;
    for (int i = 0; i < 200000; i++) {
        seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
        const int digits = 1 + (int)(seed % 17), power = (int)(seed >> 20 & 63) - 32;
        const double value = (double)(seed >> 11) * (i % 2 == 0 ? 1e-16 : -1e-9);
        if (i % 3 == 0)
            snprintf(text, sizeof text, "%.*g", digits, value);
        else if (i % 6 == 1)
            snprintf(text, sizeof text, "%.*f", digits % 10, value);
        else if (i % 3 == 1)
            snprintf(text, sizeof text, "%.*fe%d", digits, value, power);
        else
            snprintf(text, sizeof text, "%llue%d", (unsigned long long)(seed >> (seed % 50)),
                     power);
        check_same(text);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_edges), cmocka_unit_test(test_random),
                                       cmocka_unit_test(test_plain)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
