/* cal_child.h - a probe program as a child process: started without a shell in a process group of
 * its own, read line by line, terminated with its whole group. It gets SIGTERM when this process
 * dies. */
#ifndef DL_CALIBRATE_RUN_CAL_CHILD_H
#define DL_CALIBRATE_RUN_CAL_CHILD_H

#include <stdbool.h>
#include <stddef.h>

#include "model/core/arena.h"
#include "model/core/status.h"

/* Called for each complete line of the child's stdout. Anything but DL_OK ends the child. */
typedef enum dl_code dl_cal_on_line(void *context, const char *line, size_t length,
                                    struct dl_err *err);

struct dl_cal_ending {
    int exit_status; /* of the child; -1: ended by a signal */
    int signal;
    char last_words[400]; /* last lines of its stderr */
};

/* Runs argv (NULL-terminated; argv[0] is a path) to its end. silence_s: time without a line after
 * which the child counts as hung. DL_ERR_SYSTEM: cannot start, or interrupted by SIGINT or SIGTERM
 * (dl_cal_interrupted()); DL_ERR_BACKEND: hung. DL_OK also for a child that fails: see *ending. */
enum dl_code dl_cal_child_run(char *const *argv, double silence_s, dl_cal_on_line *on_line,
                              void *context, struct dl_cal_ending *ending, struct dl_err *err);

/* Until dl_cal_signals_end, SIGINT and SIGTERM only set a flag. */
void dl_cal_signals_begin(void);
void dl_cal_signals_end(void);
bool dl_cal_interrupted(void);

/* Full path of a program of $PATH, or NULL. */
const char *dl_cal_find_program(const char *name, struct dl_arena *arena);

#endif
