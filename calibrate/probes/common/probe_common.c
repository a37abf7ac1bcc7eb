/* probe_common.c - see the header. */
#include "calibrate/probes/common/probe_common.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "calibrate/probes/common/load_average.h"
#include "model/core/json.h"
#include "model/statistics/stats.h"

enum {
    MIN_BLOCKS = 3,   /* even once the share is spent */
    FIRST_CHECK = 10, /* blocks before the interval may end a sample */
    MAX_BLOCKS = 2000,
};
/* shares that a sample may take when other processes preempt its blocks */
static const double PATIENCE = 2;
/* half width of the 95 % interval of the median at which a sample ends */
static const double TIGHT_FRAC = 0.02;
static const double WARM_S = 2e-3; /* clocks, caches and just-in-time code settle */
static const double MAX_CALLS = 1e6;
/* below it, drift is run-to-run spread of a quiet machine */
static const double DRIFT_FRAC = 0.03;

double dl_now_s(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

uint64_t dl_random_next(uint64_t *state) {
    uint64_t x = *state;
    x ^= x >> 12;
    x ^= x << 25;
    x ^= x >> 27;
    *state = x;
    return x * UINT64_C(2685821657736338717);
}

void dl_fill_random(float *x, size_t count, uint64_t seed) {
    uint64_t state = seed * 2 + 1;
    for (size_t i = 0; i < count; i++)
        x[i] = (float)(dl_random_next(&state) >> 40) * 0x1p-23f - 1.0f;
}

long dl_point_number(const struct dl_point *point, const char *key, long fallback) {
    const size_t length = strlen(key);
    for (const char *at = point->shape; at != NULL && *at != 0; at = strchr(at, ' ')) {
        if (*at == ' ') at++;
        if (strncmp(at, key, length) == 0 && at[length] == '=')
            return strtol(at + length + 1, NULL, 10);
    }
    return fallback;
}

static void print_line(struct dl_json_writer *w) {
    printf("%s\n", w->text);
    fflush(stdout);
    dl_arena_free(w->arena);
}

static void print_pair(const char *object, const char *first, const char *a, const char *second,
                       const char *b) {
    struct dl_arena arena = {0};
    struct dl_json_writer w;
    dl_jw_init(&w, &arena, true);
    dl_jw_object(&w, NULL);
    dl_jw_object(&w, object);
    dl_jw_string(&w, first, a);
    if (b != NULL) dl_jw_string(&w, second, b);
    dl_jw_end(&w);
    dl_jw_end(&w);
    print_line(&w);
}

void dl_print_fact(const char *key, const char *value) {
    print_pair("fact", "key", key, "value", value);
}

/* times: undisturbed blocks from the front, preempted ones from the back. */
struct series {
    double times[MAX_BLOCKS], sorted[MAX_BLOCKS];
    bool outlier[MAX_BLOCKS];
    size_t count, preempted;
    bool settled; /* `times` holds blocks out of their order */
    double median, low, high, fastest;
};

static void add_block(struct series *s, double time_s, bool preempted) {
    if (time_s < s->fastest) s->fastest = time_s; /* preemption only makes a block longer */
    if (preempted)
        s->times[MAX_BLOCKS - ++s->preempted] = time_s;
    else
        s->times[s->count++] = time_s;
}

/* With too few undisturbed blocks, takes the fastest quarter of the preempted ones: preemption only
 * makes them longer. */
static void settle(struct series *s) {
    if (s->count >= MIN_BLOCKS || s->preempted == 0) return;
    double *others = s->times + MAX_BLOCKS - s->preempted;
    dl_sort(others, s->preempted);
    size_t taken = s->preempted / 4;
    if (taken + s->count < MIN_BLOCKS) taken = MIN_BLOCKS - s->count;
    if (taken > s->preempted) taken = s->preempted;
    memmove(s->times + s->count, others, taken * sizeof *others);
    s->count += taken;
    s->preempted -= taken;
    s->settled = true;
}

static void summarize(struct series *s) {
    memcpy(s->sorted, s->times, s->count * sizeof *s->times);
    dl_sort(s->sorted, s->count);
    s->median = dl_quantile_sorted(s->sorted, s->count, 0.5);
    dl_median_interval(s->sorted, s->count, &s->low, &s->high);
}

/* Involuntary context switches of this process. */
long dl_preemptions(void) {
    struct rusage usage;
    return getrusage(RUSAGE_SELF, &usage) == 0 ? usage.ru_nivcsw : 0;
}

/* Warms up; returns the number of calls that fill a block, 0 when a call failed. */
static long warm_up(const struct dl_probe *probe, void *state, struct dl_err *err) {
    double spent = 0, last = 0;
    for (int i = 0; i < 1 || (i < 2 && last < 25 * WARM_S) || (spent < WARM_S && i < 1000); i++) {
        last = probe->run(state, 1, err);
        if (isnan(last)) return 0;
        spent += last;
    }
    /* One call can be shorter than the clock's resolution: time groups of calls. */
    long calls = 1;
    while (last < probe->block_s && (double)calls < MAX_CALLS) {
        const double factor = last > 0 ? fmin(1.2 * probe->block_s / last, 10.0) : 10.0;
        calls = (long)fmin(ceil((double)calls * fmax(factor, 1.1)), MAX_CALLS);
        last = probe->run(state, calls, err);
        if (isnan(last)) return 0;
    }
    return calls;
}

/* Decides only by what `run` and `preemptions` return, so that ranks that see the same values stay
 * in step. */
static enum dl_code repeat(const struct dl_probe *probe, void *state, double share_s,
                           struct series *s, struct dl_err *err) {
    const long calls = warm_up(probe, state, err);
    if (calls == 0) return err->code;
    long (*const preemptions)(void) =
        probe->preemptions != NULL ? probe->preemptions : dl_preemptions;
    double spent = 0;
    size_t check = FIRST_CHECK;
    s->count = s->preempted = 0;
    s->fastest = INFINITY;
    s->settled = false;
    for (long before = preemptions(), after; s->count + s->preempted < MAX_BLOCKS; before = after) {
        const double elapsed = probe->run(state, calls, err);
        if (isnan(elapsed)) return err->code;
        after = preemptions();
        add_block(s, elapsed / (double)calls, after != before);
        spent += elapsed;
        if (spent >= share_s && s->count >= MIN_BLOCKS) break;
        if (spent >= PATIENCE * share_s && s->count + s->preempted >= MIN_BLOCKS) break;
        if (s->count < check) continue;
        check = s->count + s->count / 4;
        summarize(s);
        if (s->high - s->low <= 2 * TIGHT_FRAC * s->median) break;
    }
    settle(s);
    summarize(s);
    return DL_OK;
}

static void (*read_conditions)(double *clock_hz, double *power_w);
void dl_probe_conditions(void (*read)(double *clock_hz, double *power_w)) {
    read_conditions = read;
}

static void print_precision(struct dl_json_writer *w, const char *shape) {
    char text[16] = "fp32";
    const char *at = strstr(shape, "prec=");
    if (at != NULL)
        snprintf(text, sizeof text, "%.*s", (int)strcspn(at + strlen("prec="), " "),
                 at + strlen("prec="));
    dl_jw_string(w, "precision", text);
}

static void print_sample(const struct dl_probe *probe, const struct dl_point *point,
                         const char *implementation, struct series *s) {
    struct dl_arena arena = {0};
    struct dl_json_writer w;
    const size_t outliers = dl_outliers(s->times, s->count, s->outlier, s->sorted);
    const double drift = s->settled ? NAN : dl_drift_frac(s->times, s->count, s->sorted),
                 load = dl_load_average();
    dl_jw_init(&w, &arena, true);
    dl_jw_object(&w, NULL);
    dl_jw_object(&w, "sample");
    dl_jw_string(&w, "probe", probe->name);
    dl_jw_string(&w, "shape", point->shape);
    dl_jw_string(&w, "pass", point->pass);
    print_precision(&w, point->shape);
    if (implementation != NULL) dl_jw_string(&w, "implementation", implementation);
    dl_jw_number(&w, "median_s", s->median);
    dl_jw_number(&w, "low_s", s->low);
    dl_jw_number(&w, "high_s", s->high);
    dl_jw_number(&w, "min_s", s->fastest);
    if (!isnan(drift) && fabs(drift) >= DRIFT_FRAC) dl_jw_number(&w, "drift_frac", drift);
    if (!isnan(load)) dl_jw_number(&w, "load_average", load);
    dl_jw_integer(&w, "repeats", (int64_t)s->count);
    dl_jw_integer(&w, "outliers", (int64_t)outliers);
    dl_jw_integer(&w, "preempted", (int64_t)s->preempted);
    double clock_hz = NAN, power_w = NAN;
    if (read_conditions != NULL) read_conditions(&clock_hz, &power_w);
    if (!isnan(clock_hz)) dl_jw_number(&w, "clock_hz", clock_hz);
    if (!isnan(power_w)) dl_jw_number(&w, "power_w", power_w);
    dl_jw_end(&w);
    dl_jw_end(&w);
    print_line(&w);
}

enum dl_code dl_probe_open(const struct dl_probe *probe, const struct dl_point *point, void **state,
                           struct dl_err *err) {
    struct dl_point own = *point;
    own.variant = probe->variant;
    *state = calloc(1, probe->state_bytes);
    if (*state == NULL) return dl_fail(err, DL_ERR_BACKEND, "out of memory");
    const enum dl_code code = probe->open(&own, *state, err);
    if (code != DL_OK) dl_probe_close(probe, *state);
    return code;
}

void dl_probe_close(const struct dl_probe *probe, void *state) {
    if (probe->close != NULL) probe->close(state);
    free(state);
}

static enum dl_code measure(const struct dl_probe *probe, const struct dl_point *point,
                            double share_s, struct dl_err *err) {
    static struct series series; /* too large for a stack; one thread measures */
    void *state = NULL;
    DL_TRY(dl_probe_open(probe, point, &state, err));
    enum dl_code code = repeat(probe, state, share_s, &series, err);
    if (code == DL_OK && probe->verify != NULL) code = probe->verify(state, err);
    if (code == DL_OK && !point->silent) {
        print_sample(probe, point,
                     probe->implementation != NULL ? probe->implementation(state) : NULL, &series);
    }
    dl_probe_close(probe, state);
    return code;
}

static const struct dl_probe *find(const struct dl_probe *const *probes, const char *name) {
    for (; *probes != NULL; probes++) {
        if (strcmp((*probes)->name, name) == 0) return *probes;
    }
    return NULL;
}

static int list(const struct dl_probe *const *probes, void (*facts)(void)) {
    for (; *probes != NULL; probes++) {
        print_pair("probe", "name", (*probes)->name, "unavailable", (*probes)->unavailable());
    }
    facts();
    return 0;
}

/* The exit status: 0 also for a point that this machine refuses. */
static int measure_named(const struct dl_probe *const *probes, const char *name,
                         const struct dl_point *point, double share_s) {
    struct dl_err err = {0};
    enum dl_code code = DL_OK;
    const struct dl_probe *probe = find(probes, name);
    const char *reason = probe == NULL ? "no such probe" : probe->unavailable();
    if (reason == NULL) {
        code = measure(probe, point, share_s, &err);
        if (code == DL_ERR_SYSTEM) reason = err.message;
    }
    if (reason != NULL) {
        if (!point->silent) print_pair("skipped", "name", name, "unavailable", reason);
        return 0;
    }
    if (code == DL_OK) return 0;
    fprintf(stderr, "%s, %s, %s: %s\n", name, point->shape, point->pass, err.message);
    return DL_ERR_BACKEND;
}

struct named {
    const struct dl_probe *const *probes;
    const char *name;
    struct dl_point *point;
    double time_s;
    int status;
};

static enum dl_code measure_guarded(void *state, struct dl_err *err) {
    struct named *n = state;
    (void)err;
    n->status = measure_named(n->probes, n->name, n->point, n->time_s);
    return DL_OK;
}

int dl_probe_main(int argc, char **argv, const struct dl_probe *const *probes, bool silent,
                  void (*facts)(void)) {
    struct dl_point point = {.directory = ".", .silent = silent};
    int i = 1;
    if (i < argc && strcmp(argv[i], "--list") == 0) return silent ? 0 : list(probes, facts);
    if (i + 1 < argc && strcmp(argv[i], "--dir") == 0) {
        point.directory = argv[i + 1];
        i += 2;
    }
    if (i >= argc || strcmp(argv[i], "--points") != 0 || (argc - i - 1) % 4 != 0) {
        fprintf(stderr,
                "%s: a helper of 'dlmodel calibrate'; expected [--dir DIR] --points {PROBE SHAPE "
                "PASS SECONDS}...\n",
                argv[0]);
        return DL_ERR_USAGE;
    }
    if (!silent) facts();
    for (i++; i + 3 < argc; i += 4) {
        point.shape = argv[i + 1];
        point.pass = argv[i + 2];
        struct named named = {probes, argv[i], &point, strtod(argv[i + 3], NULL), 0};
        struct dl_err err = {0};
        if (dl_guarded(measure_guarded, &named, &err) != DL_OK)
            fprintf(stderr, "%s: %s\n", argv[i], err.message);
        if (named.status != 0 || err.code != DL_OK)
            return named.status != 0 ? named.status : (int)err.code;
    }
    if (!silent) facts(); /* disturbances since the first call */
    return 0;
}
