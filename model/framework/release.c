/* release.c - see release.h. */
#include "model/framework/release.h"

#include <ctype.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define DIGITS "0123456789"

/* "20.03" covers "20.03", "20.03-py3" and "20.03 (gluon)", not "20.031": `name` is the version or
 * its beginning up to a character that cannot continue a number or word. Case does not matter. */
static bool covers(const char *name, const char *version) {
    const size_t length = strlen(name);
    return length > 0 && strncasecmp(version, name, length) == 0 &&
           !isalnum((unsigned char)version[length]);
}

static bool covers_one_of(const char **names, int count, const char *version) {
    for (int i = 0; i < count; i++) {
        if (covers(names[i], version)) return true;
    }
    return false;
}

static const struct {
    const char *column;
    size_t offset;
} where_columns[] = {
    {"workload", offsetof(struct dl_release_facts, workload)},
    {"layout", offsetof(struct dl_release_facts, layout)},
    {"strategy", offsetof(struct dl_release_facts, strategy)},
    {"compiler", offsetof(struct dl_release_facts, compiler)},
    {"precision", offsetof(struct dl_release_facts, precision)},
};
enum { WHERE_COLUMNS = sizeof where_columns / sizeof where_columns[0] };

/* NULL: no such column. */
static const char *const *fact_of(const struct dl_release_facts *facts, const char *column) {
    for (int i = 0; i < WHERE_COLUMNS; i++) {
        if (strcmp(where_columns[i].column, column) == 0)
            return (const void *)((const char *)facts + where_columns[i].offset);
    }
    return NULL;
}

/* Whether `value` is one of several between commas; a workload whatever its parameters
 * ("bert_large:seq=512"). */
static bool is_listed(const char *list, const char *value) {
    const size_t length = strcspn(value, ":");
    for (const char *at = list; length > 0; at++) {
        const size_t item = strcspn(at, ",");
        if (item == length && strncmp(at, value, length) == 0) return true;
        at += item;
        if (*at == '\0') break;
    }
    return false;
}

static bool applies(const struct dl_framework_release *release,
                    const struct dl_release_facts *facts) {
    for (int i = 0; i < release->where_count; i++) {
        const char *const *fact = fact_of(facts, release->where[i].key);
        if (fact == NULL || *fact == NULL || !is_listed(release->where[i].text, *fact))
            return false;
    }
    return covers_one_of(release->versions, release->version_count, facts->version);
}

/* As dl_framework_release_of, of a version as it is written. */
static const struct dl_framework_release *release_as_written(const struct dl_framework *framework,
                                                             const struct dl_release_facts *facts,
                                                             bool *covered_out) {
    *covered_out = true;
    for (int i = 0; facts->version[0] != '\0' && i < framework->release_count; i++) {
        if (applies(&framework->releases[i], facts)) return &framework->releases[i];
    }
    *covered_out = framework->release_count == 0 || covers(framework->release, facts->version) ||
                   covers_one_of(framework->versions, framework->version_count, facts->version);
    return NULL;
}

/* NVIDIA's containers are numbered by year and month: "20.03". */
static bool is_month(const char *number) {
    return strspn(number, DIGITS) == 2 && number[2] == '.' && strspn(number + 3, DIGITS) == 2;
}

const struct dl_framework_release *dl_framework_release_of(const struct dl_framework *framework,
                                                           const struct dl_release_facts *facts,
                                                           bool *covered_out) {
    struct dl_release_facts of = *facts;
    if (of.version == NULL) of.version = "";
    const char *number = strpbrk(of.version, DIGITS);
    char container[32];
    const char *spellings[] = {of.version, number != of.version ? number : NULL, NULL};
    if (number != NULL && is_month(number)) {
        snprintf(container, sizeof container, "NGC %.20s", number);
        spellings[2] = container;
    }
    for (size_t i = 0; i < sizeof spellings / sizeof spellings[0]; i++) {
        if (spellings[i] == NULL) continue;
        of.version = spellings[i];
        const struct dl_framework_release *release =
            release_as_written(framework, &of, covered_out);
        if (*covered_out) return release;
    }
    return NULL;
}

/* The numbers of "25.04.01"; false where they begin with none. */
enum { NUMBERS = 3 };
static bool read_numbers(const char *text, int out[NUMBERS]) {
    memset(out, 0, NUMBERS * sizeof *out);
    return sscanf(text, "%9d.%9d.%9d", &out[0], &out[1], &out[2]) > 0;
}

/* Below, at or above 0: `a` is the earlier, the same or the later version. */
static int by_number(const int a[NUMBERS], const int b[NUMBERS]) {
    for (int i = 0; i < NUMBERS; i++) {
        if (a[i] != b[i]) return a[i] < b[i] ? -1 : 1;
    }
    return 0;
}

/* The latest of `versions` of the product of `version` up to its number, if later than `best`. */
static const char *latest(const char **versions, int count, const char *version, const char *best) {
    const size_t product = strcspn(version, DIGITS);
    int limit[NUMBERS], number[NUMBERS], best_number[NUMBERS];
    if (!read_numbers(version + product, limit)) return best;
    for (int i = 0; i < count; i++) {
        if (strcspn(versions[i], DIGITS) != product ||
            strncasecmp(versions[i], version, product) != 0 ||
            !read_numbers(versions[i] + product, number) || by_number(number, limit) > 0)
            continue;
        if (best != NULL) read_numbers(best + product, best_number);
        if (best == NULL || by_number(number, best_number) > 0) best = versions[i];
    }
    return best;
}

const char *dl_framework_earlier_version(const struct dl_framework *framework,
                                         const char *version) {
    const char *best = latest(framework->versions, framework->version_count, version, NULL);
    for (int i = 0; i < framework->release_count; i++) {
        const struct dl_framework_release *release = &framework->releases[i];
        best = latest(release->versions, release->version_count, version, best);
    }
    return best;
}

/* DL_ERR_INPUT: `from` names no release of the file, or the chain of releases is a circle. */
static enum dl_code check_from(const struct dl_framework *framework,
                               const struct dl_framework_release *release,
                               const struct dl_json *doc, struct dl_err *err) {
    const struct dl_framework_release *at = release;
    for (int steps = 0; strcmp(at->from, DL_RELEASE_BASE) != 0; steps++) {
        const struct dl_framework_release *parent = dl_framework_release_find(framework, at->from);
        if (parent == NULL)
            return dl_json_fail(doc, "releases", err,
                                "release %s: from: expected the name of another release of this "
                                "file or \"" DL_RELEASE_BASE "\", got \"%.60s\"",
                                at->name, at->from);
        if (steps > framework->release_count)
            return dl_json_fail(doc, "releases", err, "release %s inherits from itself",
                                release->name);
        at = parent;
    }
    return DL_OK;
}

enum dl_code dl_framework_release_check(const struct dl_framework *framework,
                                        const struct dl_json *doc, struct dl_err *err) {
    static const struct dl_release_facts none = {0};
    for (int i = 0; i < framework->release_count; i++) {
        const struct dl_framework_release *release = &framework->releases[i];
        DL_TRY(check_from(framework, release, doc, err));
        for (int k = 0; k < release->where_count; k++) {
            if (fact_of(&none, release->where[k].key) != NULL) continue;
            return dl_json_fail(doc, "releases", err,
                                "release %s: where names column '%s', expected workload, layout, "
                                "compiler, precision or strategy",
                                release->name, release->where[k].key);
        }
    }
    return DL_OK;
}
