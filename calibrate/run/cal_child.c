/* cal_child.c - see the header. */
#include "calibrate/run/cal_child.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

const char *dl_cal_find_program(const char *name, struct dl_arena *arena) {
    const char *path = getenv("PATH");
    while (path != NULL && *path != 0) {
        const size_t length = strcspn(path, ":");
        const char *full = dl_arena_printf(arena, "%.*s/%s", (int)length, path, name);
        if (length > 0 && access(full, X_OK) == 0) return full;
        path += length;
        if (*path == ':') path++;
    }
    return NULL;
}

/* Where the system allows it (root), so that other processes preempt the probe less often. Where
 * the kernel schedules by session (autogroup), only the value of the group counts against other
 * sessions. */
static void raise_priority(void) {
    setpriority(PRIO_PROCESS, 0, -20);
    const int group = open("/proc/self/autogroup", O_WRONLY);
    if (group < 0) return;
    if (write(group, "-20", 3) < 0) errno = 0; /* then the priority stays normal */
    close(group);
}

struct reader {
    dl_child_output *on_line;
    void *context;
    char line[8192];
    size_t length;
    bool too_long;
};

static enum dl_code take(void *reader, const char *text, size_t length, struct dl_err *err) {
    struct reader *r = reader;
    for (size_t i = 0; i < length; i++) {
        if (text[i] != '\n') {
            if (r->length < sizeof r->line)
                r->line[r->length++] = text[i];
            else
                r->too_long = true;
            continue;
        }
        if (!r->too_long && r->length > 0) DL_TRY(r->on_line(r->context, r->line, r->length, err));
        r->length = 0;
        r->too_long = false;
    }
    return DL_OK;
}

/* SIGTERM comes first: it lets mpirun end its ranks. */
enum dl_code dl_cal_child_run(const char *const *argv, double silence_s, dl_child_output *on_line,
                              void *context, struct dl_child_ending *ending, struct dl_err *err) {
    struct reader reader = {.on_line = on_line, .context = context};
    const struct dl_child child = {.argv = argv,
                                   .output = take,
                                   .context = &reader,
                                   .prepare = raise_priority,
                                   .silence_s = silence_s,
                                   .grace_s = 3};
    DL_TRY(dl_child_run(&child, ending, err));
    if (ending->cut == DL_CHILD_INTERRUPTED) return dl_fail(err, DL_ERR_SYSTEM, "interrupted");
    if (ending->cut == DL_CHILD_SILENT)
        return dl_fail(err, DL_ERR_BACKEND, "no output for %.0f s", silence_s);
    return DL_OK;
}
