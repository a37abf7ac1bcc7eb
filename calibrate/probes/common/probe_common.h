/* probe_common.h - the skeleton of all probes: warm-up, adaptive repeats, interval of the median,
 * outliers, one JSON line per sample. Linked into every probe program that `dlmodel calibrate`
 * starts.
 *
 * Command line of a probe program:
 *   --list                        a line {"probe": {...}} for each of its probes
 *   [--dir DIR] --points {PROBE SHAPE PASS SHARE_S}...
 * Blocks in which another process preempted a core do not count, unless hardly any others are left.
 * Not modelled: frequency scaling during a sample, use of memory and caches by other processes
 * (calibrate records the load). */
#ifndef DL_CALIBRATE_PROBES_COMMON_PROBE_COMMON_H
#define DL_CALIBRATE_PROBES_COMMON_PROBE_COMMON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/core/status.h"

struct dl_point {
    const char *shape;     /* "m=64 n=64 k=64" */
    const char *pass;      /* "fwd", ... */
    const char *directory; /* for files */
    bool silent;           /* another rank prints */
    int variant;           /* of the probe */
    /* the shape names the precision: "prec=tf32"; default fp32 */
};

struct dl_probe {
    const char *name, *summary;
    double block_s; /* a timed block lasts at least this long; short calls are repeated inside it */
    /* NULL: can run here; else why not. */
    const char *(*unavailable)(void);
    size_t state_bytes;
    /* Allocates and fills with random data. state: zeroed, also passed to the other functions.
     * DL_ERR_SYSTEM: this machine cannot run the point (memory, disk); the next points still run.
     */
    enum dl_code (*open)(const struct dl_point *point, void *state, struct dl_err *err);
    /* Total seconds of `calls` calls; NAN and *err when one fails. */
    double (*run)(void *state, long calls, struct dl_err *err);
    /* Compares the result of the last call with a naive computation. NULL: nothing to compare. */
    enum dl_code (*verify)(void *state, struct dl_err *err);
    const char *(*implementation)(const void *state);
    void (*close)(void *state); /* frees what `open` made, in part where it failed; NULL: nothing */
    /* A counter that rises when another process takes a core; NULL: dl_preemptions of this process.
     */
    long (*preemptions)(void);
    int variant; /* for `open`, of probes that share it */
};
/* What every probe has; the other members follow by name. */
#define DL_PROBE(name_, summary_, block_s_, unavailable_, state, open_, run_, ...)                 \
    {                                                                                              \
        .name = name_, .summary = summary_, .block_s = block_s_, .unavailable = unavailable_,      \
        .state_bytes = sizeof(state), .open = open_, .run = run_, __VA_ARGS__                      \
    }

/* Opens a probe with a state that dl_probe_close frees. */
enum dl_code dl_probe_open(const struct dl_probe *probe, const struct dl_point *point, void **state,
                           struct dl_err *err);
void dl_probe_close(const struct dl_probe *probe, void *state);

/* Of a shape text "a=1 b=2": the number at `key`, else `fallback`. */
long dl_point_number(const struct dl_point *point, const char *key, long fallback);

double dl_now_s(void);     /* monotonic */
long dl_preemptions(void); /* involuntary context switches of all threads */

/* Uniform in [-1, 1), from a fixed seed: the same on every run. */
void dl_fill_random(float *x, size_t count, uint64_t seed);
uint64_t dl_random_next(uint64_t *state); /* xorshift64*, state != 0 */

/* Print {"fact": {"key": ..., "value": ...}}. */
void dl_print_fact(const char *key, const char *value);

/* Sets the function that reads the clock and power of the device after each sample; NAN values are
 * not printed. */
void dl_probe_conditions(void (*read)(double *clock_hz, double *power_w));

/* main() of a probe program. probes: NULL-terminated. facts() is called before the first point and
 * after the last. Returns the exit status: 0, or 6 after a message on stderr. */
int dl_probe_main(int argc, char **argv, const struct dl_probe *const *probes, bool silent,
                  void (*facts)(void));

#endif
