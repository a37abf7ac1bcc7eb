/* check.h - cmocka with its headers, comparisons that print both values, scratch files.
 */
#ifndef TESTS_CHECK_H
#define TESTS_CHECK_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#include <cmocka.h>

#include "model/core/arena.h"

/* cmocka passes every test a state, which few use. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

/* Fails unless |actual - expected| <= rel * |expected|; two NANs, and equal infinities, are equal.
 * For an expected value of 0, `rel` is absolute. */
#define check_close(actual, expected, rel)                                                         \
    do {                                                                                           \
        double check_a = (actual), check_e = (expected), check_r = (rel);                          \
        double check_limit = check_e != 0 ? check_r * fabs(check_e) : check_r;                     \
        int check_same = check_a == check_e || (isnan(check_a) && isnan(check_e));                 \
        if (!check_same && !(fabs(check_a - check_e) <= check_limit))                              \
            fail_msg("%s:%d: %s is %.17g, expected %.17g within %g", __FILE__, __LINE__, #actual,  \
                     check_a, check_e, check_r);                                                   \
    } while (0)

/* Fails unless `text` contains `part`. */
#define check_contains(text, part)                                                                 \
    do {                                                                                           \
        const char *check_t = (text), *check_p = (part);                                           \
        if (check_t == NULL || strstr(check_t, check_p) == NULL)                                   \
            fail_msg("%s:%d: expected \"%s\" in \"%s\"", __FILE__, __LINE__, check_p,              \
                     check_t ? check_t : "(null)");                                                \
    } while (0)

#define check_nan(actual) check_close(actual, (double)NAN, 0)

/* Path of a file of the repository. */
static inline const char *check_root(void) {
    const char *root = getenv("DLMODEL_ROOT");

    return root != NULL && root[0] != '\0' ? root : ".";
}

/* A new empty directory, named in path (at least 64 bytes). */
static inline int check_directory(char *path, size_t size) {
    const char *base = getenv("TMPDIR");

    snprintf(path, size, "%s/dlmodel-test-XXXXXX", base != NULL && base[0] != '\0' ? base : "/tmp");
    return mkdtemp(path) != NULL;
}

/* What the tests of a program allocate; check_free, the teardown of their group, frees it. */
static struct dl_arena test_arena;
static inline int check_free(void **state) {
    dl_arena_free(&test_arena);
    return 0;
}

/* A generator whose sequence does not depend on the C library (xorshift64*, Vigna 2016). State is
 * not 0. */
static inline uint64_t check_random(uint64_t *state) {
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return *state * 0x2545f4914f6cdd1du;
}

/* Uniform in [0, 1). */
static inline double check_uniform(uint64_t *state) {
    return (double)(check_random(state) >> 11) / 9007199254740992.0;
}

#endif
