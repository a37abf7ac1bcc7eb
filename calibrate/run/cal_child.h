/* cal_child.h - a probe program as a child process, read line by line. */
#ifndef DL_CALIBRATE_RUN_CAL_CHILD_H
#define DL_CALIBRATE_RUN_CAL_CHILD_H

#include "process/child.h"

/* Runs argv (ended by NULL) to its end; on_line gets each complete line of its standard output.
 * silence_s: time without a line after which the child counts as hung. DL_ERR_SYSTEM: cannot start,
 * or interrupted (dl_signal_caught); DL_ERR_BACKEND: hung. DL_OK also for a child that fails: see
 * *ending. */
enum dl_code dl_cal_child_run(const char *const *argv, double silence_s, dl_child_output *on_line,
                              void *context, struct dl_child_ending *ending, struct dl_err *err);

/* Full path of a program of $PATH, or NULL. */
const char *dl_cal_find_program(const char *name, struct dl_arena *arena);

#endif
