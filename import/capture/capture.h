/* capture.h - what a script would start: it runs with stand-ins for launchers and Python, which
 * write their arguments down and end. */
#ifndef DL_IMPORT_CAPTURE_CAPTURE_H
#define DL_IMPORT_CAPTURE_CAPTURE_H

#include "model/core/arena.h"
#include "model/core/status.h"

/* A command line that a stand-in wrote down. */
struct dl_captured_command {
    const char *const *words; /* the first is the stand-in's name */
    int count;
};

struct dl_captured {
    const struct dl_captured_command *commands; /* in the order of their start */
    int count;
    int status;    /* exit status of the script, or 128 and a signal's number */
    bool late;     /* it was ended at its time limit */
    bool too_many; /* further commands were not read */
};

/* Names of the stand-ins, launchers first, ended by NULL. */
extern const char *const dl_capture_launchers[], *const dl_capture_interpreters[];

/* Runs the words (NULL-terminated) for at most limit_s. Its output goes to standard error. Signals
 * that end this program end the script, too. DL_ERR_SYSTEM: no temporary folder, no process, or
 * such a signal. */
enum dl_code dl_capture_run(const char *const *words, double limit_s, struct dl_arena *arena,
                            struct dl_captured *out, struct dl_err *err);

#endif
