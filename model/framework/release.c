/* release.c - see release.h. */
#include "model/framework/release.h"

#include "model/core/arena.h"

#include <ctype.h>
#include <limits.h>
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

/* Whether the run is one of those that the release is for, whatever its version. */
static bool is_for(const struct dl_framework_release *release,
                   const struct dl_release_facts *facts) {
    for (int i = 0; i < release->where_count; i++) {
        const char *const *fact = fact_of(facts, release->where[i].key);
        if (fact == NULL || *fact == NULL || !is_listed(release->where[i].text, *fact))
            return false;
    }
    return true;
}

static bool applies(const struct dl_framework_release *release,
                    const struct dl_release_facts *facts) {
    return is_for(release, facts) &&
           covers_one_of(release->versions, release->version_count, facts->version);
}

static bool names_version(const struct dl_framework_release *release, const char *version) {
    for (int i = 0; i < release->version_count; i++) {
        if (strcmp(release->versions[i], version) == 0) return true;
    }
    return false;
}

/* Whether the file describes the version as it is written; its release (NULL: the file's own). A
 * name that is a version as well may have other releases for some runs. */
static bool describes(const struct dl_framework *framework, const struct dl_release_facts *facts,
                      const struct dl_framework_release **out) {
    const struct dl_framework_release *called =
        dl_framework_release_find(framework, facts->version);
    *out = called != NULL && !names_version(called, facts->version) ? called : NULL;
    for (int i = 0; *out == NULL && i < framework->release_count; i++) {
        if (applies(&framework->releases[i], facts)) *out = &framework->releases[i];
    }
    return *out != NULL || covers(framework->release, facts->version) ||
           covers_one_of(framework->versions, framework->version_count, facts->version);
}

/* Containers are numbered by year and month: "20.03". */
static bool is_month(const char *number) {
    return strspn(number, DIGITS) == 2 && number[2] == '.' && strspn(number + 3, DIGITS) == 2;
}

/* How a version may be spelled in a file, most literal first. */
enum { SPELLINGS = 4, SPELLING_BYTES = 32 };
struct spellings {
    const char *list[SPELLINGS];
    int count;
    char ngc[SPELLING_BYTES], nemo[SPELLING_BYTES];
};

static void spell(const char *version, struct spellings *out) {
    *out = (struct spellings){.list = {version}, .count = 1};
    const char *number = strpbrk(version, DIGITS);
    if (number == NULL) return;
    if (number != version) out->list[out->count++] = number;
    if (!is_month(number)) return;
    snprintf(out->ngc, sizeof out->ngc, "NGC %.20s", number);
    snprintf(out->nemo, sizeof out->nemo, "NeMo %.20s", number);
    out->list[out->count++] = out->ngc;
    out->list[out->count++] = out->nemo;
}

static bool is_described(const struct dl_framework *framework, const struct dl_release_facts *facts,
                         const struct dl_framework_release **out) {
    struct dl_release_facts of = *facts;
    struct spellings spellings;
    *out = NULL;
    if (of.version == NULL) return false;
    spell(of.version, &spellings);
    for (int i = 0; i < spellings.count; i++) {
        of.version = spellings.list[i];
        if (of.version[0] != '\0' && describes(framework, &of, out)) return true;
    }
    return false;
}

/* The numbers of "25.04.01", `open` for those that it leaves out; false: it begins with none. */
enum { NUMBERS = 3 };
static bool read_numbers(const char *text, int open, int out[NUMBERS]) {
    for (int i = 0; i < NUMBERS; i++) out[i] = open;
    return sscanf(text, "%9d.%9d.%9d", &out[0], &out[1], &out[2]) > 0;
}

/* Below, at or above 0: `a` is the earlier, the same or the later version. */
static int by_number(const int a[NUMBERS], const int b[NUMBERS]) {
    for (int i = 0; i < NUMBERS; i++) {
        if (a[i] != b[i]) return a[i] < b[i] ? -1 : 1;
    }
    return 0;
}

/* A described version near to another one of the same product. */
struct near {
    const char *name; /* NULL: none yet */
    int wanted[NUMBERS], number[NUMBERS];
};

/* The lower, the nearer: of the same major version and earlier, and later; another and earlier. */
static int distance(const struct near *n, const int number[NUMBERS]) {
    const bool later = by_number(number, n->wanted) > 0;
    return 2 * (number[0] != n->wanted[0]) + later;
}

/* Takes `name` if it is nearer to `version` than what is there. */
static void take_nearer(struct near *best, const char *name, const char *version) {
    const size_t product = strcspn(version, DIGITS);
    int number[NUMBERS];
    if (strcspn(name, DIGITS) != product || strncasecmp(name, version, product) != 0 ||
        !read_numbers(name + product, INT_MAX, number)) /* "1" covers 1.15 */
        return;
    if (best->name != NULL) {
        const int difference = distance(best, number) - distance(best, best->number);
        const bool closer = by_number(number, best->wanted) > 0
                                ? by_number(number, best->number) < 0
                                : by_number(number, best->number) > 0;
        if (difference > 0 || (difference == 0 && !closer)) return;
    }
    best->name = name;
    memcpy(best->number, number, sizeof number);
}

static const char *nearest_of(const struct dl_framework *framework,
                              const struct dl_release_facts *facts, const char *version) {
    struct near best = {.name = NULL};
    if (!read_numbers(version + strcspn(version, DIGITS), 0, best.wanted)) return NULL;
    take_nearer(&best, framework->release, version);
    for (int i = 0; i < framework->version_count; i++)
        take_nearer(&best, framework->versions[i], version);
    for (int i = 0; i < framework->release_count; i++) {
        const struct dl_framework_release *release = &framework->releases[i];
        for (int k = 0; k < release->version_count && is_for(release, facts); k++)
            take_nearer(&best, release->versions[k], version);
    }
    return best.name;
}

/* The nearest described version of the same product for this run; NULL: none. A number alone
 * ("1.14", "v2.6") is the framework's, but a year and month is a container's. */
static const char *nearest_version(const struct dl_framework *framework,
                                   const struct dl_release_facts *facts) {
    const char *version = facts->version;
    struct spellings spellings;
    spell(version, &spellings);
    const char *number = strpbrk(version, DIGITS);
    for (int i = 0; number != NULL && i < spellings.count; i++) {
        const char *text = spellings.list[i];
        const bool bare = text == number;
        if (bare && (is_month(number) || strspn(version, "vV") < (size_t)(number - version)))
            continue;
        const char *found = nearest_of(framework, facts, text);
        if (found != NULL) return found;
    }
    return NULL;
}

/* The release of a version that the file does not describe; false: the usual one. `near`: whether
 * the version is this framework's. */
static bool choose_other(const struct dl_framework *framework, const struct dl_release_facts *facts,
                         const char *architecture, bool near,
                         const struct dl_framework_release **out) {
    struct dl_release_facts of = *facts;
    const char *nearest = near && facts->version != NULL ? nearest_version(framework, facts) : NULL;
    of.version = nearest != NULL ? nearest : dl_framework_usual_version(framework, architecture);
    is_described(framework, &of, out);
    return nearest != NULL;
}

void dl_release_choose(const struct dl_framework *framework, const struct dl_framework *kernels,
                       const struct dl_release_facts *facts, const char *architecture,
                       struct dl_release_choice *out) {
    *out = (struct dl_release_choice){.origin = DL_RELEASE_DESCRIBED};
    const bool own = is_described(framework, facts, &out->release),
               theirs = kernels != NULL && is_described(kernels, facts, &out->kernels);
    bool near = false;
    if (!own) near = choose_other(framework, facts, architecture, !theirs, &out->release);
    if (kernels != NULL && !theirs) choose_other(kernels, facts, architecture, !own, &out->kernels);
    if (own || theirs) return;
    out->origin = framework->release_count == 0 ? DL_RELEASE_ONLY
                  : near                        ? DL_RELEASE_NEAREST
                                                : DL_RELEASE_USUAL;
}

bool dl_release_is_version(const char *text) { return strpbrk(text, DIGITS) != NULL; }

enum dl_code dl_release_refuse(const char *name, const struct dl_framework *const *frameworks,
                               int count, struct dl_arena *arena, struct dl_err *err) {
    const char *all = "";
    for (int i = 0; i < count; i++) {
        const struct dl_framework *f = frameworks[i];
        all = dl_arena_printf(arena, "%s%s%s %s", all, i > 0 ? ", " : "", f->name, f->release);
        for (int r = 0; r < f->release_count; r++)
            all = dl_arena_printf(arena, "%s, %s", all, f->releases[r].name);
    }
    return dl_fail(err, DL_ERR_USAGE, "--release: no release \"%s\"; there are %s", name, all);
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
