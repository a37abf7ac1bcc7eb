/* profile_fixture.h - a recorded quick calibration (2 cores, OpenBLAS, oneDNN, Open MPI) and the
 * profile that follows from it.
 */
#ifndef TESTS_PROFILE_FIXTURE_H
#define TESTS_PROFILE_FIXTURE_H

#include "calibrate/profile/cal_profile.h"

static const struct dl_cal_run RUN = {.host = {.name = "node7",
                                               .kernel = "Linux 6.1 x86_64",
                                               .cpu = "Test CPU",
                                               .sockets = 1,
                                               .cores = 2,
                                               .memory_bytes = 25769803776.0,
                                               .last_cache_bytes = 33554432.0,
                                               .clock_hz = 2.6e9},
                                      .finished = "2024-01-31T12:00:30Z",
                                      .load_after = 1.25,
                                      .seconds = 30.0};

static inline struct dl_cal_journal recorded(struct dl_arena *arena) {
    struct dl_cal_journal journal;
    struct dl_err err = {0};
    const char *path = dl_arena_printf(arena, "%s/tests/fixtures/cpu_quick.journal", check_root());
    if (dl_cal_journal_read(path, arena, &journal, &err) != DL_OK)
        fail_msg("%s: %s", path, err.message);
    return journal;
}

static inline struct dl_system profile_of(const struct dl_cal_journal *journal,
                                          struct dl_arena *arena) {
    struct dl_system profile;
    struct dl_err err = {0};
    if (dl_cal_profile(journal, &RUN, arena, &profile, &err) != DL_OK) fail_msg("%s", err.message);
    return profile;
}

/* The journal without the samples of two probes ("-": of none). */
static inline struct dl_cal_journal without(const struct dl_cal_journal *journal, const char *a,
                                            const char *b, struct dl_arena *arena) {
    struct dl_cal_journal out = *journal;
    out.samples = dl_arena_alloc(arena, journal->sample_count, sizeof *out.samples);
    assert_non_null(out.samples);
    out.sample_count = 0;
    for (size_t i = 0; i < journal->sample_count; i++) {
        const char *probe = journal->samples[i].probe;
        if (strcmp(probe, a) != 0 && strcmp(probe, b) != 0)
            out.samples[out.sample_count++] = journal->samples[i];
    }
    return out;
}

/* Best work / time of a probe. */
static inline double best_rate(const struct dl_cal_journal *journal, const char *probe) {
    double most = 0.0;
    for (size_t i = 0; i < journal->sample_count; i++) {
        const struct dl_raw_sample *s = &journal->samples[i];
        if (strcmp(s->probe, probe) == 0) most = fmax(most, dl_cal_work(s) / s->median_s);
    }
    return most;
}

#endif
