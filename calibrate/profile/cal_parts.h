/* cal_parts.h - what the files that make a profile from samples share and nobody else needs. */
#ifndef DL_CALIBRATE_PROFILE_CAL_PARTS_H
#define DL_CALIBRATE_PROFILE_CAL_PARTS_H

#include "calibrate/profile/cal_profile.h"
#include "model/hardware/kernel.h"

enum { DL_CAL_NOTES_MAX = 512, DL_CAL_COLLECTIVES_MAX = 128 };

struct dl_cal_maker {
    const struct dl_cal_journal *journal;
    const struct dl_cal_run *run;
    struct dl_arena *arena;
    struct dl_system *out; /* its lists have room: DL_CAL_NOTES_MAX, DL_CAL_COLLECTIVES_MAX */
    struct dl_kernel_sample *kernels;
    size_t kernel_count;
};

/* A line of "measurement"; nothing when the key or the text is NULL, or the list is full. */
void dl_cal_note(struct dl_cal_maker *m, const char *key, const char *text);

/* cal_network.c: links.intra and links.inter, and the collectives, from the samples of messages. */
enum dl_code dl_cal_network(struct dl_cal_maker *m, struct dl_err *err);

#endif
