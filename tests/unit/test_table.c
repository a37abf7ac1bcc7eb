/* Digits and widths of a table as text; goldens hold tables as text, CSV and JSON. */
#include "model/core/csv.h"
#include "model/core/table.h"
#include "tests/check.h"

/* A number of d digits without an exponent, read again, is the value rounded to d digits, or to a
 * whole number where it has more; as many digits stand behind the point as that takes. */
/* Puts commas between thousands from 10,000 on. */
static void separate(const char *plain, char *out) {
    const size_t sign = plain[0] == '-', whole = strcspn(plain + sign, ".");
    for (size_t i = 0; plain[i] != 0; i++) {
        const size_t left = sign + whole - i; /* digits of the whole part from here on */
        if (whole > 4 && i > sign && i < sign + whole && left % 3 == 0) *out++ = ',';
        *out++ = plain[i];
    }
    *out = 0;
}

static void test_all_digits(void **state) {
    for (int digits = 0; digits <= 19; digits++) {
        const struct dl_column column[] = {{"a", "a", NULL, DL_COLUMN_NUMBER, 0, digits}};
        struct dl_table table;
        int row_count = 0;
        const int d = digits == 0 ? 3 : digits > 17 ? 17 : digits;
        dl_table_init(&table, &test_arena, column, 1);
        for (int exponent = -5; exponent <= 14; exponent++) {
            static const double heads[] = {1,      -1,     1.2345678901234567, 4.5,
                                           9.4999, 9.9951, 9.9999999};
            for (size_t h = 0; h < sizeof heads / sizeof *heads; h++) {
                const double value = heads[h] * pow(10, exponent);
                char rounded[64], plain[64], expected[96];
                dl_table_row(&table)[0].number = value;
                const char *text = dl_table_cell_text(&table, row_count++, 0, &test_arena);
                snprintf(rounded, sizeof rounded, "%.*e", d - 1, value);
                const int power = atoi(strchr(rounded, 'e') + 1),
                          behind = d - 1 - power > 0 ? d - 1 - power : 0;
                snprintf(plain, sizeof plain, "%.*f", behind, value);
                separate(plain, expected);
                assert_string_equal(text, expected);
                const char *point = strchr(text, '.');
                assert_int_equal(point != NULL ? strlen(point + 1) : 0, behind);
                check_close(strtod(plain, NULL), behind > 0 ? strtod(rounded, NULL) : rint(value),
                            1e-15);
            }
        }
        /* with an exponent at and beyond 1e15 and below 1e-6 */
        static const double limits[] = {9.9e14, 1e15, 1e-6, 9.9e-7, -9.9e14, -1e15, -9.9e-7};
        static const bool has_exponent[] = {false, true, false, true, false, true, true};
        for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
            dl_table_row(&table)[0].number = limits[i];
            const char *text = dl_table_cell_text(&table, row_count++, 0, &test_arena);
            if (d < 16 || fabs(limits[i]) < 1) /* %g has one where the digits do not reach */
                assert_int_equal(strchr(text, 'e') != NULL, has_exponent[i]);
        }
        static const double others[] = {0, -0.0, INFINITY, -INFINITY, NAN};
        static const char *const texts[] = {"0", "0", "inf", "-inf", "-"};
        for (size_t i = 0; i < 5; i++) {
            dl_table_row(&table)[0].number = others[i];
            assert_string_equal(dl_table_cell_text(&table, row_count++, 0, &test_arena), texts[i]);
        }
    }
}

/* A column is as wide as its heading, its unit or its widest cell; one without a heading is not
 * shown; a line of blanks has none; a control character is shown as '?'. */
static void test_widths(void **state) {
    static const struct dl_column shown_columns[] = {
        {"a", "a", "samples/s", DL_COLUMN_INTEGER, 0, 0},
        {"b", "heading", "s", DL_COLUMN_INTEGER, 0, 0},
        {"c", "c", "", DL_COLUMN_STRING, 0, 0},
        {"d", NULL, "hidden", DL_COLUMN_STRING, 0, 0},
        {"e", "e", NULL, DL_COLUMN_INTEGER, 10, 2},
    };
    static const struct dl_column blank[] = {{"a", "", NULL, DL_COLUMN_STRING, 0, 0}};
    struct dl_table table;
    union dl_cell *row;

    dl_table_init(&table, &test_arena, shown_columns, 5);
    row = dl_table_row(&table);
    row[0].integer = -12, row[1].integer = 3, row[2].string = "x\x7f\x1fy \x20",
    row[4].integer = 125;
    row = dl_table_row(&table);
    row[1].integer = 1234567890;
    assert_string_equal(dl_table_text(&table), "           a        heading  c        e\n"
                                               " [samples/s]            [s]\n"
                                               "         -12              3  x??y    12\n"
                                               "           -  1,234,567,890  -        -\n");
    dl_table_init(&table, &test_arena, blank, 1);
    assert_string_equal(dl_table_text(&table), "\n");
    dl_table_row(&table)->string = "";
    assert_string_equal(dl_table_text(&table), "\n\n");
    /* the rows alone, in the widths of several tables; no rows are no text */
    struct dl_table_layout layout = {0};
    dl_table_init(&table, &test_arena, blank, 1);
    dl_table_measure(&table, &test_arena, &layout);
    assert_string_equal(dl_table_text_part(&table, &layout, false), "");
    assert_string_equal(dl_table_csv_part(&table, false), "");
    assert_string_equal(dl_table_csv(&table), "a\n");
    dl_table_row(&table)->string = "wide";
    dl_table_measure(&table, &test_arena, &layout);
    dl_table_init(&table, &test_arena, blank, 1);
    dl_table_row(&table)->string = "n";
    dl_table_measure(&table, &test_arena, &layout);
    assert_int_equal(layout.widths[0], 4);
    assert_false(layout.any_unit);
    assert_string_equal(dl_table_text_part(&table, &layout, false), " n\n");
    assert_string_equal(dl_table_csv_part(&table, false), "n\n");
    /* units belong to the head */
    struct dl_table_layout with_unit = {0};
    dl_table_init(&table, &test_arena, shown_columns, 2);
    row = dl_table_row(&table);
    row[0].integer = 1, row[1].integer = 2;
    dl_table_measure(&table, &test_arena, &with_unit);
    assert_true(with_unit.any_unit);
    assert_string_equal(dl_table_text_part(&table, &with_unit, false), "           1        2\n");
    assert_string_equal(dl_table_text_part(&table, &with_unit, true),
                        "           a  heading\n [samples/s]      [s]\n           1        2\n");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_digits),
        cmocka_unit_test(test_widths),
    };

    return cmocka_run_group_tests(tests, NULL, check_free);
}
