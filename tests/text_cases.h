/* text_cases.h - files below tests/golden/ with one "CASE => OUTCOME" a line: each outcome is
 * computed again. DL_ACCEPT=1 (make golden-accept) rewrites the outcomes; the diff is reviewed. */
#ifndef TESTS_TEXT_CASES_H
#define TESTS_TEXT_CASES_H

#include <stdbool.h>

#include "tests/check.h"

enum { TEXT_CASE_BYTES = 4096, TEXT_CASES_SHOWN = 12 };

/* Writes the outcome of one case to out[TEXT_CASE_BYTES]. */
typedef void text_case(void *user, const char *one, char *out);
/* Whether two outcomes are equal; NULL: letter for letter. */
typedef bool text_case_equal(const char *expected, const char *actual);

/* Appends to an outcome. */
static inline void text_case_add(char *out, const char *format, ...) {
    const size_t used = strlen(out);
    va_list args;
    va_start(args, format);
    vsnprintf(out + used, TEXT_CASE_BYTES - used, format, args);
    va_end(args);
}

/* The same words, with numbers that differ by rounding at most. */
static inline bool text_case_close(const char *expected, const char *actual) {
    while (*expected != 0 && *actual != 0) {
        const bool number =
            *expected >= '0' && *expected <= '9' && *actual >= '0' && *actual <= '9';
        char *expected_end, *actual_end;
        if (!number) {
            if (*expected++ != *actual++) return false;
            continue;
        }
        const double a = strtod(expected, &expected_end), b = strtod(actual, &actual_end);
        if (!(fabs(a - b) <= 3e-6 * fabs(a) + 1e-12)) return false;
        expected = expected_end, actual = actual_end;
    }
    return *expected == *actual;
}

static void check_text_cases(const char *name, text_case *outcome, text_case_equal *equal,
                             void *user) {
    char path[TEXT_CASE_BYTES], new_path[TEXT_CASE_BYTES + 8], line[2 * TEXT_CASE_BYTES],
        actual[TEXT_CASE_BYTES];
    snprintf(path, sizeof path, "%s/tests/golden/%s", check_root(), name);
    snprintf(new_path, sizeof new_path, "%s.new", path);
    FILE *in = fopen(path, "r"), *out = getenv("DL_ACCEPT") != NULL ? fopen(new_path, "w") : NULL;
    if (in == NULL) fail_msg("cannot open %s", path);
    int cases = 0, different = 0;
    /* after so many that differ the others tell nothing new */
    while ((out != NULL || different < TEXT_CASES_SHOWN) && fgets(line, sizeof line, in) != NULL) {
        line[strcspn(line, "\n")] = 0;
        char *expected = strstr(line, " => ");
        const bool is_case = line[0] != '#' && line[0] != 0;
        if (is_case) {
            if (expected != NULL) *expected = 0, expected += 4;
            outcome(user, line, actual);
            cases++;
            if (expected != NULL &&
                (equal != NULL ? equal(expected, actual) : strcmp(expected, actual) == 0)) {
                snprintf(actual, sizeof actual, "%s", expected); /* the last digit stays */
            } else if (different++, out == NULL) {
                print_error("%s\n  - %s\n  + %s\n", line, expected != NULL ? expected : "", actual);
            }
        }
        if (out != NULL) fprintf(out, is_case ? "%s => %s\n" : "%s\n", line, actual);
    }
    fclose(in);
    assert_true(cases > 0);
    if (out != NULL) {
        assert_int_equal(fclose(out), 0);
        assert_int_equal(rename(new_path, path), 0);
    } else if (different > 0) {
        fail_msg("%d of the first %d cases differ from tests/golden/%s: make golden-accept, and "
                 "review the diff",
                 different, cases, name);
    }
}

#endif
