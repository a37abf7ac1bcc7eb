/* Every row of the tables of prefixes and units, what is refused, how quantities print, and lists.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "model/core/units.h"
#include "tests/check.h"

static const struct {
    const char *text;
    enum dl_unit unit;
    double value;
} quantities[] = {
    /* bare numbers are SI */
    {"12", DL_UNIT_S, 12},
    {"1e12", DL_UNIT_FLOP_PER_S, 1e12},
    {"-3.5e-2", DL_UNIT_NONE, -0.035},
    {"+.5", DL_UNIT_NONE, 0.5},
    {"5.", DL_UNIT_BYTE, 5},
    {" 7 ", DL_UNIT_W, 7},
    {"1E3", DL_UNIT_J, 1000},
    /* times: results are the doubles nearest to the decimal value */
    {"1.5us", DL_UNIT_S, 1.5e-6},
    {"1.5 us", DL_UNIT_S, 1.5e-6},
    {"3\xc2\xb5s", DL_UNIT_S, 3e-6},
    {"3\xce\xbcs", DL_UNIT_S, 3e-6},
    {"20ms", DL_UNIT_S, 0.02},
    {"7ns", DL_UNIT_S, 7e-9},
    {"2s", DL_UNIT_S, 2},
    {"4ps", DL_UNIT_S, 4e-12},
    {"2min", DL_UNIT_S, 120},
    {"1.5h", DL_UNIT_S, 5400},
    /* sizes: k is 10^3, Ki 2^10; b is a bit */
    {"1B", DL_UNIT_BYTE, 1},
    {"1kB", DL_UNIT_BYTE, 1e3},
    {"1KB", DL_UNIT_BYTE, 1e3},
    {"1MB", DL_UNIT_BYTE, 1e6},
    {"1GB", DL_UNIT_BYTE, 1e9},
    {"1TB", DL_UNIT_BYTE, 1e12},
    {"1PB", DL_UNIT_BYTE, 1e15},
    {"1EB", DL_UNIT_BYTE, 1e18},
    {"1KiB", DL_UNIT_BYTE, 1024},
    {"1MiB", DL_UNIT_BYTE, 1048576},
    {"1GiB", DL_UNIT_BYTE, 1073741824},
    {"1TiB", DL_UNIT_BYTE, 1099511627776},
    {"1PiB", DL_UNIT_BYTE, 1125899906842624},
    {"16b", DL_UNIT_BYTE, 2},
    {"1kbit", DL_UNIT_BYTE, 125},
    {"8kb", DL_UNIT_BYTE, 1000},
    {"8Kib", DL_UNIT_BYTE, 1024},
    {"8Kibits", DL_UNIT_BYTE, 1024},
    {"8Kibit", DL_UNIT_BYTE, 1024},
    {"1Kibyte", DL_UNIT_BYTE, 1024},
    {"1Kibytes", DL_UNIT_BYTE, 1024},
    {"8Kib/s", DL_UNIT_BYTE_PER_S, 1024},
    {"8Kibit/s", DL_UNIT_BYTE_PER_S, 1024},
    {"8Kibits/s", DL_UNIT_BYTE_PER_S, 1024},
    {"1Kibyte/s", DL_UNIT_BYTE_PER_S, 1024},
    {"1Kibytes/s", DL_UNIT_BYTE_PER_S, 1024},
    {"1KB/s", DL_UNIT_BYTE_PER_S, 1000},
    {"1Ki", DL_UNIT_NONE, 1024},
    {"1PiB", DL_UNIT_BYTE, 1125899906842624},
    {"2us/byte", DL_UNIT_S_PER_BYTE, 2e-6},
    {"2uW", DL_UNIT_W, 2e-6},
    {"2MJ", DL_UNIT_J, 2e6},
    {"8bits", DL_UNIT_BYTE, 1},
    {"3byte", DL_UNIT_BYTE, 3},
    {"3kbytes", DL_UNIT_BYTE, 3000},
    /* bandwidths: 100e9 / 8 */
    {"25GB/s", DL_UNIT_BYTE_PER_S, 25e9},
    {"25GiB/s", DL_UNIT_BYTE_PER_S, 25.0 * 1073741824},
    {"100Gb/s", DL_UNIT_BYTE_PER_S, 12.5e9},
    {"100Gbit/s", DL_UNIT_BYTE_PER_S, 12.5e9},
    {"100Gbits/s", DL_UNIT_BYTE_PER_S, 12.5e9},
    {"100Gbps", DL_UNIT_BYTE_PER_S, 12.5e9},
    {"3Mbyte/s", DL_UNIT_BYTE_PER_S, 3e6},
    {"3Mbytes/s", DL_UNIT_BYTE_PER_S, 3e6},
    {"40ps/B", DL_UNIT_S_PER_BYTE, 4e-11},
    {"1ns/byte", DL_UNIT_S_PER_BYTE, 1e-9},
    /* work and rates */
    {"4.1GFLOP", DL_UNIT_FLOP, 4.1e9},
    {"4.1Gflop", DL_UNIT_FLOP, 4.1e9},
    {"15.7TFLOP/s", DL_UNIT_FLOP_PER_S, 15.7e12},
    {"15.7Tflop/s", DL_UNIT_FLOP_PER_S, 15.7e12},
    {"1PFLOPS", DL_UNIT_FLOP_PER_S, 1e15},
    {"1.53GHz", DL_UNIT_HZ, 1.53e9},
    {"300W", DL_UNIT_W, 300},
    {"5mW", DL_UNIT_W, 0.005},
    {"2kW", DL_UNIT_W, 2000},
    {"5kJ", DL_UNIT_J, 5000},
    {"3mJ", DL_UNIT_J, 0.003},
    /* counts */
    {"64k", DL_UNIT_COUNT, 64000},
    {"64Ki", DL_UNIT_COUNT, 65536},
    {"1.5k", DL_UNIT_COUNT, 1500},
    {"300B", DL_UNIT_COUNT, 300e9},
    {"0.29B", DL_UNIT_COUNT, 290e6},
    {"50%", DL_UNIT_NONE, 0.5},
    {"2M", DL_UNIT_NONE, 2e6},
    {"1.28M", DL_UNIT_SAMPLE, 1.28e6},
    {"3 samples", DL_UNIT_SAMPLE, 3},
    {"1sample", DL_UNIT_SAMPLE, 1},
    {"1200samples/s", DL_UNIT_SAMPLE_PER_S, 1200},
    {"9 sample/s", DL_UNIT_SAMPLE_PER_S, 9},
};

static void test_parse(void **state) {
    struct dl_err err;

    (void)state;
    for (size_t i = 0; i < sizeof quantities / sizeof quantities[0]; i++) {
        double value = -1;

        if (dl_units_parse(quantities[i].text, quantities[i].unit, &value, &err) != DL_OK)
            fail_msg("%s: %s", quantities[i].text, err.message);
        if (value != quantities[i].value)
            fail_msg("%s is %.17g, expected %.17g", quantities[i].text, value, quantities[i].value);
    }
}

static const struct {
    const char *text;
    enum dl_unit unit;
} refused[] = {
    {"", DL_UNIT_S},
    {" ", DL_UNIT_S},
    {"x", DL_UNIT_S},
    {"s", DL_UNIT_S},
    {"1x", DL_UNIT_S},
    {"1ss", DL_UNIT_S},
    {"1 s s", DL_UNIT_S},
    {"1S", DL_UNIT_S},
    {"1us/", DL_UNIT_S},
    {"1ks", DL_UNIT_S},
    {"1B", DL_UNIT_S},
    {"1s", DL_UNIT_BYTE},
    {"1GB/s", DL_UNIT_BYTE},
    {"1GB", DL_UNIT_BYTE_PER_S},
    {"64M", DL_UNIT_BYTE},
    {"1mB", DL_UNIT_BYTE},
    {"1kh", DL_UNIT_S},
    {"1mh", DL_UNIT_S},
    {"1Kimin", DL_UNIT_S},
    {"1mmin", DL_UNIT_S},
    {"1k%", DL_UNIT_NONE},
    {"1m%", DL_UNIT_NONE},
    {"1m", DL_UNIT_NONE},
    {"1m", DL_UNIT_COUNT},
    {"1KB", DL_UNIT_COUNT},
    {"1B", DL_UNIT_SAMPLE},
    {"1mbyte", DL_UNIT_BYTE},
    {"1mbytes", DL_UNIT_BYTE},
    {"8mb", DL_UNIT_BYTE},
    {"8mbit", DL_UNIT_BYTE},
    {"8mbits", DL_UNIT_BYTE},
    {"1mB/s", DL_UNIT_BYTE_PER_S},
    {"1mbyte/s", DL_UNIT_BYTE_PER_S},
    {"1mbytes/s", DL_UNIT_BYTE_PER_S},
    {"1mb/s", DL_UNIT_BYTE_PER_S},
    {"1mbit/s", DL_UNIT_BYTE_PER_S},
    {"1mbits/s", DL_UNIT_BYTE_PER_S},
    {"1mbps", DL_UNIT_BYTE_PER_S},
    {"1Mibps", DL_UNIT_BYTE_PER_S},
    {"1ks/B", DL_UNIT_S_PER_BYTE},
    {"1Kis/B", DL_UNIT_S_PER_BYTE},
    {"1ks/byte", DL_UNIT_S_PER_BYTE},
    {"1Kis", DL_UNIT_S},
    {"1mflop", DL_UNIT_FLOP},
    {"1Kiflop", DL_UNIT_FLOP},
    {"1mFLOP", DL_UNIT_FLOP},
    {"1KiFLOP", DL_UNIT_FLOP},
    {"1mflop/s", DL_UNIT_FLOP_PER_S},
    {"1KiFLOP/s", DL_UNIT_FLOP_PER_S},
    {"1mFLOPS", DL_UNIT_FLOP_PER_S},
    {"1mHz", DL_UNIT_HZ},
    {"1KiHz", DL_UNIT_HZ},
    {"1KiW", DL_UNIT_W},
    {"1KiJ", DL_UNIT_J},
    {"1m", DL_UNIT_SAMPLE},
    {"1ksample", DL_UNIT_SAMPLE},
    {"1ksamples", DL_UNIT_SAMPLE},
    {"1msample", DL_UNIT_SAMPLE},
    {"1ksample/s", DL_UNIT_SAMPLE_PER_S},
    {"1ksamples/s", DL_UNIT_SAMPLE_PER_S},
    {"1k", DL_UNIT_SAMPLE_PER_S},
    {"1kk", DL_UNIT_NONE},
    {"1gB", DL_UNIT_BYTE},
    {"1TFLOP", DL_UNIT_FLOP_PER_S},
    {"1TFLOPS", DL_UNIT_FLOP},
    {"1Mi", DL_UNIT_SAMPLE},
    {"1.5", DL_UNIT_COUNT},
    {"1e300", DL_UNIT_COUNT},
    {"0x10", DL_UNIT_NONE},
    {"0x1p3", DL_UNIT_NONE},
    {"inf", DL_UNIT_NONE},
    {"nan", DL_UNIT_NONE},
    {"-inf", DL_UNIT_S},
    {"infs", DL_UNIT_S},
    {"1e999", DL_UNIT_NONE},
    {"1e300EB", DL_UNIT_BYTE},
    {"1,5", DL_UNIT_NONE},
    {"--1", DL_UNIT_NONE},
    {".", DL_UNIT_NONE},
    {"1e", DL_UNIT_NONE},
    {"1 2", DL_UNIT_NONE},
    {"\t1", DL_UNIT_NONE},
    {"1_000", DL_UNIT_NONE},
    {"1111111111111111111111111111111111111111111111111111111111111111111", DL_UNIT_NONE},
    {NULL, DL_UNIT_S},
};

static void test_refusals(void **state) {
    struct dl_err err;

    (void)state;
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        double value = 42;

        if (dl_units_parse(refused[i].text, refused[i].unit, &value, &err) != DL_ERR_USAGE)
            fail_msg("\"%s\" was taken as %g %s", refused[i].text, value,
                     dl_unit_name(refused[i].unit));
        assert_true(value == 42); /* nothing is written on failure */
        check_contains(err.message, "expected a");
    }
    dl_units_parse("25GB", DL_UNIT_BYTE_PER_S, &(double){0}, &err);
    assert_string_equal(
        err.message,
        "expected a bandwidth such as 25GB/s, 100Gb/s or 2.5e10 (byte/s), got \"25GB\"");
}

static void test_format(void **state) {
    static const struct {
        double value;
        enum dl_unit unit;
        const char *text;
    } cases[] = {
        {1.28e-3, DL_UNIT_S, "1.28 ms"},
        {0, DL_UNIT_S, "0 s"},
        {1, DL_UNIT_S, "1.00 s"},
        {12.34, DL_UNIT_S, "12.3 s"},
        {123.4, DL_UNIT_S, "123 s"},
        {1200, DL_UNIT_S, "20.0 min"},
        {36000, DL_UNIT_S, "10.0 h"},
        {1.5e-6, DL_UNIT_S, "1.50 us"},
        {2e-9, DL_UNIT_S, "2.00 ns"},
        {3e-12, DL_UNIT_S, "3.00 ps"},
        {0.99999e-3, DL_UNIT_S, "1.00 ms"},
        {0.9996, DL_UNIT_S, "1.00 s"}, /* never "1000 us" */
        {-2e-3, DL_UNIT_S, "-2.00 ms"},
        {512, DL_UNIT_BYTE, "512 B"},
        {1023, DL_UNIT_BYTE, "1023 B"},
        {1024, DL_UNIT_BYTE, "1.00 KiB"},
        {97.5 * 1048576, DL_UNIT_BYTE, "97.5 MiB"},
        {16.0 * 1073741824, DL_UNIT_BYTE, "16.0 GiB"},
        {1023.9 * 1048576, DL_UNIT_BYTE, "1.00 GiB"},
        {2 * 1099511627776.0, DL_UNIT_BYTE, "2.00 TiB"},
        {0, DL_UNIT_BYTE, "0 B"},
        {25e9, DL_UNIT_BYTE_PER_S, "25.0 GB/s"},
        {999.7e6, DL_UNIT_BYTE_PER_S, "1.00 GB/s"},
        {4e-11, DL_UNIT_S_PER_BYTE, "40.0 ps/B"},
        {4.1e9, DL_UNIT_FLOP, "4.10 Gflop"},
        {15.7e12, DL_UNIT_FLOP_PER_S, "15.7 Tflop/s"},
        {1.53e9, DL_UNIT_HZ, "1.53 GHz"},
        {300, DL_UNIT_W, "300 W"},
        {5000, DL_UNIT_J, "5.00 kJ"},
        {123456, DL_UNIT_COUNT, "123456"},
        {0.1234, DL_UNIT_NONE, "0.123"},
        {1234567, DL_UNIT_NONE, "1234567"},
        {256, DL_UNIT_SAMPLE, "256 samples"},
        {1234.4, DL_UNIT_SAMPLE_PER_S, "1234 samples/s"},
        {(double)NAN, DL_UNIT_S, "unknown"},
        {(double)INFINITY, DL_UNIT_BYTE, "infinite"},
    };
    char text[64];

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        dl_units_format(cases[i].value, cases[i].unit, text, sizeof text);
        assert_string_equal(text, cases[i].text);
    }
    dl_units_format(1.28e-3, DL_UNIT_S, text, 4);
    assert_string_equal(text, "1.2");
    dl_units_format(1, DL_UNIT_S, text, 0); /* writes nothing */
    assert_string_equal(text, "1.2");
}

/* Both sides of every place where a prefix, a unit or the number of decimals changes. */
static const struct {
    double value;
    enum dl_unit unit;
    const char *text;
} boundaries[] = {
    {7200, DL_UNIT_S, "2.00 h"},
    {7199, DL_UNIT_S, "120 min"},
    {999.5, DL_UNIT_S, "16.7 min"},
    {999.4, DL_UNIT_S, "999 s"},
    {0.9995, DL_UNIT_S, "1.00 s"},
    {0.9994, DL_UNIT_S, "999 ms"},
    {0.9996e-3, DL_UNIT_S, "1.00 ms"},
    {0.9994e-3, DL_UNIT_S, "999 us"},
    {0.9996e-6, DL_UNIT_S, "1.00 us"},
    {0.9994e-6, DL_UNIT_S, "999 ns"},
    {0.9996e-9, DL_UNIT_S, "1.00 ns"},
    {0.9994e-9, DL_UNIT_S, "999 ps"},
    {1e-15, DL_UNIT_S, "0.001 ps"},
    {1, DL_UNIT_S_PER_BYTE, "1.00 s/B"},
    {0.9994, DL_UNIT_S_PER_BYTE, "999 ms/B"},
    {0.9994e-3, DL_UNIT_S_PER_BYTE, "999 us/B"},
    {0.9996e-3, DL_UNIT_S_PER_BYTE, "1.00 ms/B"},
    {0.9994e-6, DL_UNIT_S_PER_BYTE, "999 ns/B"},
    {0.9996e-6, DL_UNIT_S_PER_BYTE, "1.00 us/B"},
    {0.9994e-9, DL_UNIT_S_PER_BYTE, "999 ps/B"},
    {0.9996e-9, DL_UNIT_S_PER_BYTE, "1.00 ns/B"},
    {0.9995e18, DL_UNIT_FLOP, "1.00 Eflop"},
    {0.9994e18, DL_UNIT_FLOP, "999 Pflop"},
    {0.9995e15, DL_UNIT_FLOP, "1.00 Pflop"},
    {0.9994e15, DL_UNIT_FLOP, "999 Tflop"},
    {0.9995e12, DL_UNIT_FLOP, "1.00 Tflop"},
    {0.9994e12, DL_UNIT_FLOP, "999 Gflop"},
    {0.9995e9, DL_UNIT_FLOP, "1.00 Gflop"},
    {0.9994e9, DL_UNIT_FLOP, "999 Mflop"},
    {0.9995e6, DL_UNIT_FLOP, "1.00 Mflop"},
    {0.9994e6, DL_UNIT_FLOP, "999 kflop"},
    {0.9995e3, DL_UNIT_FLOP, "1.00 kflop"},
    {0.9994e3, DL_UNIT_FLOP, "999 flop"},
    {0.5, DL_UNIT_FLOP, "0.500 flop"},
    {1023.5, DL_UNIT_BYTE, "1.00 KiB"},
    {1023.4, DL_UNIT_BYTE, "1023 B"},
    {1023.5 * 1024, DL_UNIT_BYTE, "1.00 MiB"},
    {1023.4 * 1024, DL_UNIT_BYTE, "1023 KiB"},
    {1023.5 * 1048576, DL_UNIT_BYTE, "1.00 GiB"},
    {1023.4 * 1048576, DL_UNIT_BYTE, "1023 MiB"},
    {1023.5 * 1073741824, DL_UNIT_BYTE, "1.00 TiB"},
    {1023.4 * 1073741824, DL_UNIT_BYTE, "1023 GiB"},
    {1023.5 * 1099511627776.0, DL_UNIT_BYTE, "1.00 PiB"},
    {1023.4 * 1099511627776.0, DL_UNIT_BYTE, "1023 TiB"},
    {-1023.5, DL_UNIT_BYTE, "-1.00 KiB"},
    {0.09995, DL_UNIT_NONE, "0.100"},
    {0.0999, DL_UNIT_NONE, "0.0999"},
    {1e-5, DL_UNIT_NONE, "1e-05"},
    {0.9994, DL_UNIT_NONE, "0.999"},
    {0.9996, DL_UNIT_NONE, "1.00"},
    {9.994, DL_UNIT_NONE, "9.99"},
    {9.996, DL_UNIT_NONE, "10.0"},
    {99.94, DL_UNIT_NONE, "99.9"},
    {99.96, DL_UNIT_NONE, "100"},
    {-99.96, DL_UNIT_NONE, "-100"},
    {999999999999999.0, DL_UNIT_NONE, "999999999999999"},
    {1e15, DL_UNIT_NONE, "1e+15"},
    {0, DL_UNIT_NONE, "0"},
    {0, DL_UNIT_FLOP_PER_S, "0 flop/s"},
    {0, DL_UNIT_W, "0 W"},
    {0, DL_UNIT_HZ, "0 Hz"},
    {0, DL_UNIT_J, "0 J"},
    {0, DL_UNIT_S_PER_BYTE, "0 s/B"},
    {0, DL_UNIT_BYTE_PER_S, "0 B/s"},
    {0, DL_UNIT_COUNT, "0"},
    {9007199254740992.0, DL_UNIT_COUNT, "9007199254740992"},
    {1e16, DL_UNIT_COUNT, "1e+16"},
    {-3, DL_UNIT_COUNT, "-3"},
    {1, DL_UNIT_SAMPLE, "1.00 sample"},
    {-1, DL_UNIT_SAMPLE, "-1.00 sample"},
    {2, DL_UNIT_SAMPLE, "2.00 samples"},
    {1, DL_UNIT_SAMPLE_PER_S, "1.00 samples/s"},
    {-(double)INFINITY, DL_UNIT_S, "-infinite"},
    {(double)INFINITY, DL_UNIT_COUNT, "infinite"},
    {5, DL_UNITS, "5.00"},
};

static void test_format_boundaries(void **state) {
    char text[64];

    (void)state;
    for (size_t i = 0; i < sizeof boundaries / sizeof boundaries[0]; i++) {
        dl_units_format(boundaries[i].value, boundaries[i].unit, text, sizeof text);
        if (strcmp(text, boundaries[i].text) != 0)
            fail_msg("%.17g prints as \"%s\", expected \"%s\"", boundaries[i].value, text,
                     boundaries[i].text);
    }
}

/* What an error says was expected; each of its examples is one. */
static const struct {
    enum dl_unit unit;
    const char *name, *wanted, *examples[3];
} units[] = {
    {DL_UNIT_NONE, "", "a number such as 0.5 or 50%", {"0.5", "50%"}},
    {DL_UNIT_COUNT, "", "a whole number such as 16 or 64k", {"16", "64k"}},
    {DL_UNIT_S,
     "s",
     "a time such as 1.5us, 20ms, 36h, 60d, 2w or 3 (seconds)",
     {"1.5us", "20ms", "3"}},
    {DL_UNIT_BYTE, "byte", "a size such as 64MiB, 25MB or 4096 (bytes)", {"64MiB", "25MB", "4096"}},
    {DL_UNIT_BYTE_PER_S,
     "byte/s",
     "a bandwidth such as 25GB/s, 100Gb/s or 2.5e10 (byte/s)",
     {"25GB/s", "100Gb/s", "2.5e10"}},
    {DL_UNIT_S_PER_BYTE,
     "s/byte",
     "a time per byte such as 40ps/B or 4e-11 (s/byte)",
     {"40ps/B", "4e-11"}},
    {DL_UNIT_FLOP,
     "flop",
     "an amount of work such as 4.1GFLOP or 4.1e9 (flop)",
     {"4.1GFLOP", "4.1e9"}},
    {DL_UNIT_FLOP_PER_S,
     "flop/s",
     "a rate such as 15.7TFLOP/s or 1.57e13 (flop/s)",
     {"15.7TFLOP/s", "1.57e13"}},
    {DL_UNIT_HZ, "Hz", "a frequency such as 1.53GHz or 1.53e9 (Hz)", {"1.53GHz", "1.53e9"}},
    {DL_UNIT_W, "W", "a power such as 300W or 300", {"300W", "300"}},
    {DL_UNIT_J, "J", "an energy such as 5kJ or 5000 (J)", {"5kJ", "5000"}},
    {DL_UNIT_SAMPLE, "sample", "a number of samples such as 256 or 1.28M", {"256", "1.28M"}},
    {DL_UNIT_SAMPLE_PER_S,
     "sample/s",
     "a throughput such as 1200samples/s or 1200",
     {"1200samples/s", "1200"}},
};

enum { NO = 0, SMALL = 1, LARGE = 2, BINARY = 4 };
static const struct {
    const char *text;
    int kind;
    double size;
} prefixes[] = {{"p", SMALL, 1e-12},
                {"n", SMALL, 1e-9},
                {"u", SMALL, 1e-6},
                {"\xc2\xb5", SMALL, 1e-6},
                {"\xce\xbc", SMALL, 1e-6},
                {"m", SMALL, 1e-3},
                {"k", LARGE, 1e3},
                {"K", LARGE, 1e3},
                {"M", LARGE, 1e6},
                {"G", LARGE, 1e9},
                {"T", LARGE, 1e12},
                {"P", LARGE, 1e15},
                {"E", LARGE, 1e18},
                {"Ki", BINARY, 1024},
                {"Mi", BINARY, 1048576},
                {"Gi", BINARY, 1073741824},
                {"Ti", BINARY, 1099511627776},
                {"Pi", BINARY, 1125899906842624}};
static const struct {
    enum dl_unit unit;
    const char *text;
    int kinds;
    double size;
} spelled[] = {
    {DL_UNIT_NONE, "%", NO, 0.01},
    {DL_UNIT_S, "s", SMALL, 1},
    {DL_UNIT_S, "min", NO, 60},
    {DL_UNIT_S, "h", NO, 3600},
    {DL_UNIT_BYTE, "B", LARGE | BINARY, 1},
    {DL_UNIT_BYTE, "byte", LARGE | BINARY, 1},
    {DL_UNIT_BYTE, "bytes", LARGE | BINARY, 1},
    {DL_UNIT_BYTE, "b", LARGE | BINARY, 0.125},
    {DL_UNIT_BYTE, "bit", LARGE | BINARY, 0.125},
    {DL_UNIT_BYTE, "bits", LARGE | BINARY, 0.125},
    {DL_UNIT_BYTE_PER_S, "B/s", LARGE | BINARY, 1},
    {DL_UNIT_BYTE_PER_S, "byte/s", LARGE | BINARY, 1},
    {DL_UNIT_BYTE_PER_S, "bytes/s", LARGE | BINARY, 1},
    {DL_UNIT_BYTE_PER_S, "b/s", LARGE | BINARY, 0.125},
    {DL_UNIT_BYTE_PER_S, "bit/s", LARGE | BINARY, 0.125},
    {DL_UNIT_BYTE_PER_S, "bits/s", LARGE | BINARY, 0.125},
    {DL_UNIT_BYTE_PER_S, "bps", LARGE, 0.125},
    {DL_UNIT_S_PER_BYTE, "s/B", SMALL, 1},
    {DL_UNIT_S_PER_BYTE, "s/byte", SMALL, 1},
    {DL_UNIT_FLOP, "flop", LARGE, 1},
    {DL_UNIT_FLOP, "FLOP", LARGE, 1},
    {DL_UNIT_FLOP_PER_S, "flop/s", LARGE, 1},
    {DL_UNIT_FLOP_PER_S, "FLOP/s", LARGE, 1},
    {DL_UNIT_FLOP_PER_S, "FLOPS", LARGE, 1},
    {DL_UNIT_HZ, "Hz", LARGE, 1},
    {DL_UNIT_W, "W", SMALL | LARGE, 1},
    {DL_UNIT_J, "J", SMALL | LARGE, 1},
    {DL_UNIT_SAMPLE, "sample", NO, 1},
    {DL_UNIT_SAMPLE, "samples", NO, 1},
    {DL_UNIT_SAMPLE_PER_S, "sample/s", NO, 1},
    {DL_UNIT_SAMPLE_PER_S, "samples/s", NO, 1},
    {DL_UNIT_NONE, "", LARGE | BINARY, 1},
    {DL_UNIT_COUNT, "", LARGE | BINARY, 1},
    {DL_UNIT_SAMPLE, "", LARGE, 1},
    {DL_UNIT_HZ, "", NO, 1},
    {DL_UNIT_BYTE, "", NO, 1},
};

/* Every unit with every prefix: taken or refused, and how much it is. */
static void test_all_prefixes(void **state) {
    struct dl_err err;

    (void)state;
    for (size_t u = 0; u < sizeof spelled / sizeof *spelled; u++) {
        double value = -1;
        char text[64];

        snprintf(text, sizeof text, "24%s", spelled[u].text);
        assert_int_equal(dl_units_parse(text, spelled[u].unit, &value, &err), DL_OK);
        check_close(value, 24 * spelled[u].size, 1e-15);
        for (size_t p = 0; p < sizeof prefixes / sizeof *prefixes; p++) {
            snprintf(text, sizeof text, "24%s%s", prefixes[p].text, spelled[u].text);
            const int taken =
                (spelled[u].kinds & prefixes[p].kind) != 0 &&
                !(spelled[u].unit == DL_UNIT_COUNT && 24 * prefixes[p].size > 9007199254740992.0);

            value = -1;
            if ((dl_units_parse(text, spelled[u].unit, &value, &err) == DL_OK) != taken)
                fail_msg("\"%s\" as %s: %s", text, dl_unit_name(spelled[u].unit),
                         taken ? "refused" : "taken");
            if (taken) check_close(value, 24 * prefixes[p].size * spelled[u].size, 1e-15);
        }
    }
}

static void test_wanted(void **state) {
    struct dl_err err;
    double value;

    (void)state;
    assert_int_equal(sizeof units / sizeof units[0], DL_UNITS);
    for (int i = 0; i < DL_UNITS; i++) {
        char expected[160];
        assert_string_equal(dl_unit_name(units[i].unit), units[i].name);
        for (int e = 0; e < 3 && units[i].examples[e] != NULL; e++) {
            check_contains(units[i].wanted, units[i].examples[e]);
            assert_int_equal(dl_units_parse(units[i].examples[e], units[i].unit, &value, &err),
                             DL_OK);
        }
        assert_int_equal(dl_units_parse("?", units[i].unit, &value, &err), DL_ERR_USAGE);
        snprintf(expected, sizeof expected, "expected %s, got \"?\"", units[i].wanted);
        assert_string_equal(err.message, expected);
        assert_int_equal(dl_units_parse(NULL, units[i].unit, &value, &err), DL_ERR_USAGE);
        snprintf(expected, sizeof expected, "expected %s, got nothing", units[i].wanted);
        assert_string_equal(err.message, expected);
        assert_int_equal(dl_units_parse("1e999", units[i].unit, &value, &err), DL_ERR_USAGE);
        snprintf(expected, sizeof expected, "expected %s, got \"1e999\": too large",
                 units[i].wanted);
        assert_string_equal(err.message, expected);
    }
}

/* The longest number and suffix, and one more; whole numbers to 2^53; exponents. */
static void test_extremes(void **state) {
    struct dl_err err;
    double value;

    (void)state;
    char text[80];
    memset(text, '0', sizeof text), text[63] = '\0';
    assert_int_equal(dl_units_parse(text, DL_UNIT_NONE, &value, &err), DL_OK);
    text[63] = '0', text[64] = '\0';
    assert_int_equal(dl_units_parse(text, DL_UNIT_NONE, &value, &err), DL_ERR_USAGE);
    assert_int_equal(dl_units_parse("9007199254740992", DL_UNIT_COUNT, &value, &err), DL_OK);
    check_close(value, 9007199254740992.0, 0);
    assert_int_equal(dl_units_parse("9007199254740994", DL_UNIT_COUNT, &value, &err), DL_ERR_USAGE);
    assert_int_equal(dl_units_parse("-4k", DL_UNIT_COUNT, &value, &err), DL_OK);
    check_close(value, -4000, 0);
    assert_int_equal(dl_units_parse("1e-999999999999", DL_UNIT_NONE, &value, &err), DL_OK);
    check_close(value, 0, 0);
    assert_int_equal(dl_units_parse("2e3us", DL_UNIT_S, &value, &err), DL_OK);
    check_close(value, 2e-3, 0);
    assert_int_equal(dl_units_parse("2E", DL_UNIT_NONE, &value, &err), DL_OK); /* exa */
    check_close(value, 2e18, 0);
    assert_int_equal(dl_units_parse("5", DL_UNITS, &value, &err), DL_OK); /* none */
    check_close(value, 5, 0);
}

static void test_names(void **state) {
    (void)state;
    assert_string_equal(dl_unit_name(DL_UNIT_NONE), "");
    assert_string_equal(dl_unit_name(DL_UNIT_COUNT), "");
    assert_string_equal(dl_unit_name(DL_UNIT_BYTE_PER_S), "byte/s");
    assert_string_equal(dl_unit_name(DL_UNITS), "");
    for (int u = 0; u < DL_UNITS; u++) assert_non_null(dl_unit_name((enum dl_unit)u));
}

static void check_list(const char *text, const char *expected) {
    int64_t values[64];
    size_t count = 0, length = 0;
    struct dl_err err;
    char got[600] = "";

    if (dl_list_parse(text, values, 64, &count, &err) != DL_OK)
        fail_msg("%s: %s", text, err.message);
    for (size_t i = 0; i < count; i++)
        length += (size_t)snprintf(got + length, sizeof got - length, "%s%lld", i > 0 ? " " : "",
                                   (long long)values[i]);
    assert_string_equal(got, expected);
}

static void test_lists(void **state) {
    static const char *const wrong[] = {"",
                                        "sixteen",
                                        "0",
                                        "-1",
                                        "1,",
                                        ",1",
                                        "1,,2",
                                        "1-",
                                        "-",
                                        "4-1",
                                        "1-4*",
                                        "1-4*1",
                                        "1-4*0",
                                        "1 2",
                                        "1.5",
                                        "1000000001",
                                        "99999999999999999999",
                                        "1-4-8",
                                        "1*2",
                                        "1-99999999999999999999*2",
                                        NULL};
    int64_t values[64];
    size_t count = 77;
    struct dl_err err;

    (void)state;
    check_list("16", "16");
    check_list("1,2,4", "1 2 4");
    check_list("1-64*2", "1 2 4 8 16 32 64");
    check_list("1-4", "1 2 3 4");
    check_list("1-100*3", "1 3 9 27 81");
    check_list("1-2,8-32*4,5", "1 2 8 32 5");
    check_list("1000000000", "1000000000");
    check_list("3-1000000000*1000000000", "3");
    check_list("7-7", "7");
    for (int i = 0; wrong[i] != NULL; i++) {
        if (dl_list_parse(wrong[i], values, 64, &count, &err) != DL_ERR_USAGE)
            fail_msg("\"%s\" was taken", wrong[i]);
        check_contains(err.message,
                       "expected a count or range such as 16, 1,2,4 or 1-64*2, got \"");
    }
    assert_int_equal(dl_list_parse("1-1000000000", values, 64, &count, &err), DL_ERR_USAGE);
    assert_string_equal(err.message, "expected at most 64 values, got \"1-1000000000\"");
    assert_int_equal(dl_list_parse(NULL, values, 64, &count, &err), DL_ERR_USAGE);
    assert_int_equal(dl_list_parse("1", values, 0, &count, &err), DL_ERR_USAGE);
    assert_int_equal(count, 77); /* nothing is written on failure */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parse),        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_format),       cmocka_unit_test(test_names),
        cmocka_unit_test(test_lists),        cmocka_unit_test(test_format_boundaries),
        cmocka_unit_test(test_all_prefixes), cmocka_unit_test(test_wanted),
        cmocka_unit_test(test_extremes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
