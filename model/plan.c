/* plan.c - names of optimizers, recomputation modes, schedules. */
#include "model/plan.h"

const char *const dl_optimizer_names[] = {"sgd", "momentum", "adam", "lamb", NULL};
const char *const dl_recompute_names[] = {"none", "selective", "full", NULL};
const char *const dl_schedule_names[] = {"1f1b", "gpipe", "interleaved", "async", NULL};
const char *const dl_assume_names[] = {"nothing", "paradl", NULL};
