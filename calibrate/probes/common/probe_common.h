/* probe_common.h - the one skeleton of all probes: warm-up, adaptive repeats, interval of the
 * median, outliers, one JSON line a sample. Linked into dlmodel-probe-cpu and dlmodel-probe-mpi,
 * which `dlmodel calibrate` starts.
 *
 * Command line of a probe program:
 *   --list                        one line {"probe": {...}} for each of its probes
 *   [--dir DIR] --points {PROBE SHAPE PASS SHARE_S}...
 * A block during which another program took one of the cores does not count, unless hardly any
 * other is left. Not modelled: frequency scaling during a sample, other programs' use of memory and
 * caches (calibrate records the load).
 */
#ifndef DL_CALIBRATE_PROBES_COMMON_PROBE_COMMON_H
#define DL_CALIBRATE_PROBES_COMMON_PROBE_COMMON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/base/status.h"

struct dl_point {
    const char *shape;     /* "m=64 n=64 k=64" */
    const char *pass;      /* "fwd", ... */
    const char *directory; /* for files */
    bool silent;           /* another rank prints */
    /* the precision stands in the shape: "prec=tf32"; fp32 without */
};

struct dl_probe {
    const char *name, *summary;
    double block_s; /* a timed block lasts at least this long; short calls are repeated inside it */
    /* NULL: can run here; else why not. */
    const char *(*unavailable)(void);
    /* Allocate, fill with random data. *state is passed to the others, and to `close` after DL_OK
     * only. DL_ERR_SYSTEM: this machine refuses (memory, disk); the other points go on. */
    enum dl_code (*open)(const struct dl_point *point, void **state, struct dl_err *err);
    /* Seconds that `calls` calls took together; NAN with *err filled when one failed. */
    double (*run)(void *state, long calls, struct dl_err *err);
    /* Compare the result of the last call with a naive computation. NULL: nothing to compare. */
    enum dl_code (*verify)(void *state, struct dl_err *err);
    const char *(*implementation)(const void *state);
    void (*close)(void *state);
    /* Counts up when another program took a core; NULL: dl_preemptions of this process. */
    long (*preemptions)(void);
};

/* Of a shape text "a=1 b=2": the number at `key`, else `fallback`. */
long dl_point_number(const struct dl_point *point, const char *key, long fallback);

double dl_now_s(void);     /* monotonic */
long dl_preemptions(void); /* involuntary context switches of all threads */

/* Uniform in [-1, 1), from a fixed seed: the same on every run. */
void dl_fill_random(float *x, size_t count, uint64_t seed);
uint64_t dl_random_next(uint64_t *state); /* xorshift64*, state != 0 */

/* Print {"fact": {"key": ..., "value": ...}}. */
void dl_print_fact(const char *key, const char *value);

/* Asked after each sample for the device's clock and power; what it leaves NAN is not printed. */
void dl_probe_conditions(void (*read)(double *clock_hz, double *power_w));

/* main() of a probe program. probes: NULL-terminated. facts() speaks before the first point and
 * after the last. Returns the exit status: 0, or 6 after a message on stderr. */
int dl_probe_main(int argc, char **argv, const struct dl_probe *const *probes, bool silent,
                  void (*facts)(void));

#endif
