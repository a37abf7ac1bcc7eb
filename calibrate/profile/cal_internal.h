/* cal_internal.h - shared by the files of this folder, which make a profile from samples. */
#ifndef DL_CALIBRATE_PROFILE_CAL_INTERNAL_H
#define DL_CALIBRATE_PROFILE_CAL_INTERNAL_H

#include "calibrate/fits/fit_kernel.h"
#include "calibrate/fits/fit_link.h"
#include "calibrate/profile/cal_profile.h"
#include "model/machine/kernel.h"

enum { DL_CAL_NOTES_MAX = 512, DL_CAL_COLLECTIVES_MAX = 128 };

struct dl_cal_maker {
    const struct dl_cal_journal *journal;
    const struct dl_cal_run *run;
    struct dl_arena *arena;
    struct dl_system *out; /* with room for DL_CAL_NOTES_MAX and DL_CAL_COLLECTIVES_MAX entries */
    struct dl_kernel_sample *kernels;
    size_t kernel_count;
};

/* A line of "measurement"; nothing when the key or the text is NULL, or the list is full. */
void dl_cal_note(struct dl_cal_maker *m, const char *key, const char *text);
void dl_cal_note_fit(struct dl_cal_maker *m, const char *key, const struct dl_fit_quality *quality);

/* Equal texts; NULL equals nothing. */
bool dl_cal_is(const char *text, const char *other);
/* Number at `key` of a sample's shape; the other form gives `fallback` where it is absent, not NAN.
 */
double dl_cal_number(const struct dl_raw_sample *sample, const char *key);
double dl_cal_number_or(const struct dl_raw_sample *sample, const char *key, double fallback);
/* The convolution that a sample of "conv" or "gpu-conv" measured. */
struct dl_kernel dl_cal_convolution(const struct dl_raw_sample *sample);

/* Samples of one probe over one rank set, ascending in bytes, each size once (the first sample
 * counts). */
struct dl_cal_messages {
    struct dl_link_sample points[DL_LINK_SAMPLES_MAX];
    struct dl_coll_sample *samples;
    int64_t ranks;
    size_t count;
};
/* pass NULL, ranks 0, nodes 0: any. */
void dl_cal_messages(const struct dl_cal_maker *m, const char *probe, const char *pass,
                     int64_t ranks, int64_t nodes, struct dl_cal_messages *out);
int64_t dl_cal_nodes_of(const struct dl_raw_sample *sample); /* 1 where the shape names none */

/* cal_network.c: links.intra and links.inter, and the collectives, from the samples of messages. */
enum dl_code dl_cal_network(struct dl_cal_maker *m, struct dl_err *err);

#endif
