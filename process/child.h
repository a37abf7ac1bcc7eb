/* child.h - another program as a child process: started without a shell, in a session of its own,
 * ended as a whole. It gets SIGTERM when this program dies. */
#ifndef DL_PROCESS_CHILD_H
#define DL_PROCESS_CHILD_H

#include <stdbool.h>
#include <stddef.h>

#include "model/core/arena.h"
#include "model/core/status.h"

/* Called for each piece of the child's standard output. Anything but DL_OK ends the child. */
typedef enum dl_code dl_child_output(void *context, const char *bytes, size_t length,
                                     struct dl_err *err);

struct dl_child {
    const char *const *argv;      /* ended by NULL; argv[0] is looked up in PATH */
    const char *const *variables; /* NAME=VALUE, added to its environment, ended by NULL; or NULL */
    int input_fd;                 /* its standard input; 0: /dev/null */
    dl_child_output *output; /* NULL: standard output and error are this program's standard error */
    void *context;           /* of output */
    void (*prepare)(void);   /* in the child, before its program starts; or NULL. Calls only what a
                                signal handler may. */
    double limit_s;          /* until its end; 0: none */
    double silence_s;        /* without standard output; 0: any */
    double grace_s;          /* between SIGTERM and SIGKILL where it is ended; 0: SIGKILL at once */
    bool group; /* it lasts until all processes of its session's first group have ended */
};

enum dl_child_cut { DL_CHILD_WHOLE, DL_CHILD_LATE, DL_CHILD_SILENT, DL_CHILD_INTERRUPTED };

struct dl_child_ending {
    enum dl_child_cut cut; /* why it was ended; DL_CHILD_WHOLE: it ended by itself */
    int exit_status;       /* -1: ended by a signal; 127: its program was not found */
    int signal;
    char last_words[4096]; /* the end of its standard error */
};

/* Runs the child to its end. DL_OK also for a child that fails or was ended: see *ending.
 * DL_ERR_SYSTEM: no process; else the code of output. */
enum dl_code dl_child_run(const struct dl_child *child, struct dl_child_ending *ending,
                          struct dl_err *err);

double dl_clock_s(void); /* monotonic */

/* All of the standard output, at most 256 MiB; ended by a zero byte. `output` for a context of
 * this type, whose arena is set. */
struct dl_child_text {
    struct dl_arena *arena;
    char *bytes;
    size_t length, capacity;
};
dl_child_output dl_child_collect;

/* Until dl_signals_end, SIGINT, SIGTERM and SIGHUP only end a child that runs and set what
 * dl_signal_caught returns: the signal; 0: none. A SIGHUP that nohup ignores stays ignored. */
void dl_signals_begin(void);
void dl_signals_end(void);
int dl_signal_caught(void);

#endif
