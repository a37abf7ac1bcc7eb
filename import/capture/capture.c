/* capture.c - see capture.h. A stand-in is a script of the shell in a temporary folder that comes
 * first in PATH. Bash also gets a function of each name, since scripts put other folders first (an
 * environment of Python, modules). */
#include "import/capture/capture.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "model/core/file.h"
#include "model/core/text.h"
#include "process/child.h"

enum { MOST_COMMANDS = 1000, COMMAND_BYTES = 8 << 20 };

const char *const dl_capture_launchers[] = {"torchrun", "deepspeed", "accelerate", "srun",
                                            "mpirun",   "mpiexec",   "horovodrun", "composer",
                                            "sbatch",   NULL};
const char *const dl_capture_interpreters[] = {"python", "python3", NULL};

/* A command is one file, of the number of its process: two may start at once. */
static const char stand_in[] =
    "#!/bin/sh\n"
    "printf '%s\\0' \"${0##*/}\" \"$@\" > \"$DLMODEL_CAPTURE/$$\" || exit 1\n"
    "printf 'dlmodel capture: not started:' >&2\n"
    "printf ' %s' \"${0##*/}\" \"$@\" >&2\n"
    "echo >&2\n";

struct folder {
    const char *path;     /* of the stand-ins */
    const char *commands; /* below it: what they wrote down */
};

static enum dl_code fail(struct dl_err *err, const char *what, const char *path) {
    return dl_fail(err, DL_ERR_SYSTEM, "cannot %s %s: %s", what, path, strerror(errno));
}

static enum dl_code add_stand_ins(const struct folder *folder, const char *const *names,
                                  struct dl_arena *arena, struct dl_err *err) {
    for (int i = 0; names[i] != NULL; i++) {
        const char *path = dl_arena_printf(arena, "%s/%s", folder->path, names[i]);
        DL_TRY(dl_file_write(path, stand_in, strlen(stand_in), err));
        if (chmod(path, 0700) != 0) return fail(err, "make executable", path);
        if (access(path, X_OK) != 0)
            return dl_fail(err, DL_ERR_SYSTEM,
                           "cannot execute files in %s; set TMPDIR to a folder where programs may "
                           "run",
                           folder->path);
    }
    return DL_OK;
}

static void empty(const char *path) {
    DIR *list = opendir(path);
    for (struct dirent *e = list == NULL ? NULL : readdir(list); e != NULL; e = readdir(list))
        if (e->d_name[0] != '.') unlinkat(dirfd(list), e->d_name, 0);
    if (list != NULL) closedir(list);
    rmdir(path);
}

static void remove_folder(const struct folder *folder) {
    if (folder->commands != NULL) empty(folder->commands);
    if (folder->path != NULL) empty(folder->path);
}

static enum dl_code make_folder(struct folder *folder, struct dl_arena *arena, struct dl_err *err) {
    const char *base = getenv("TMPDIR");
    char *path = dl_arena_printf(arena, "%s/dlmodel-capture-XXXXXX",
                                 base != NULL && base[0] != '\0' ? base : "/tmp");
    if (mkdtemp(path) == NULL) return fail(err, "make the folder", path);
    folder->path = path;
    const char *commands = dl_arena_printf(arena, "%s/commands", path);
    if (mkdir(commands, 0700) != 0) return fail(err, "make the folder", commands);
    folder->commands = commands;
    DL_TRY(add_stand_ins(folder, dl_capture_launchers, arena, err));
    return add_stand_ins(folder, dl_capture_interpreters, arena, err);
}

/* ---- the script ---- */

enum { MOST_VARIABLES = 16 };

static int add_functions(const struct folder *folder, const char *const *names,
                         struct dl_arena *arena, const char **out) {
    const char *path = dl_shell_quote(arena, folder->path);
    int count = 0;
    for (; names[count] != NULL; count++)
        out[count] = dl_arena_printf(arena, "BASH_FUNC_%s%%%%=() { %s/%s \"$@\"; }", names[count],
                                     path, names[count]);
    return count;
}

/* Variables added to the environment of the script. */
static void add_variables(const struct folder *folder, struct dl_arena *arena, const char **out) {
    const char *path = getenv("PATH");
    *out++ = dl_arena_printf(arena, "DLMODEL_CAPTURE=%s", folder->commands);
    *out++ =
        dl_arena_printf(arena, "PATH=%s:%s", folder->path, path != NULL ? path : "/usr/bin:/bin");
    out += add_functions(folder, dl_capture_launchers, arena, out);
    add_functions(folder, dl_capture_interpreters, arena, out);
}

/* The script, then what it left in the background. */
static enum dl_code run_script(const char *const *words, double limit_s,
                               const struct folder *folder, struct dl_arena *arena,
                               struct dl_captured *out, struct dl_err *err) {
    const char *variables[MOST_VARIABLES] = {NULL};
    struct dl_child_ending ending;
    add_variables(folder, arena, variables);
    const struct dl_child child = {
        .argv = words, .variables = variables, .limit_s = limit_s, .grace_s = 2, .group = true};
    dl_signals_begin();
    const enum dl_code code = dl_child_run(&child, &ending, err);
    dl_signals_end();
    DL_TRY(code);
    if (ending.cut == DL_CHILD_INTERRUPTED)
        return dl_fail(err, DL_ERR_SYSTEM, "ended by signal %d", dl_signal_caught());
    out->late = ending.cut == DL_CHILD_LATE;
    out->status = ending.exit_status >= 0 ? ending.exit_status : 128 + ending.signal;
    return DL_OK;
}

/* ---- what the stand-ins wrote down ---- */

struct entry {
    const char *name;
    struct timespec at;
};

static int by_time(const void *a, const void *b) {
    const struct entry *x = a, *y = b;
    if (x->at.tv_sec != y->at.tv_sec) return x->at.tv_sec < y->at.tv_sec ? -1 : 1;
    if (x->at.tv_nsec != y->at.tv_nsec) return x->at.tv_nsec < y->at.tv_nsec ? -1 : 1;
    return strcmp(x->name, y->name);
}

static int list_entries(const struct folder *folder, struct entry *entries, struct dl_arena *arena,
                        struct dl_captured *out) {
    DIR *list = opendir(folder->commands);
    int count = 0;
    for (struct dirent *e = list == NULL ? NULL : readdir(list); e != NULL; e = readdir(list)) {
        struct stat facts;
        if (e->d_name[0] == '.' || fstatat(dirfd(list), e->d_name, &facts, 0) != 0) continue;
        out->too_many = count == MOST_COMMANDS;
        if (out->too_many) break;
        entries[count++] = (struct entry){dl_arena_strdup(arena, e->d_name), facts.st_mtim};
    }
    if (list != NULL) closedir(list);
    qsort(entries, (size_t)count, sizeof *entries, by_time);
    return count;
}

/* Words, each ended by a zero byte. */
static void split(const char *text, size_t length, struct dl_arena *arena,
                  struct dl_captured_command *out) {
    size_t count = 0;
    for (size_t i = 0; i < length; i++) count += text[i] == '\0';
    const char **words = dl_arena_alloc(arena, count, sizeof *words);
    for (size_t at = 0; at < length && (size_t)out->count < count; at += strlen(text + at) + 1)
        words[out->count++] = text + at;
    out->words = words;
}

static enum dl_code read_commands(const struct folder *folder, struct dl_arena *arena,
                                  struct dl_captured *out, struct dl_err *err) {
    struct entry *entries = dl_arena_alloc(arena, MOST_COMMANDS, sizeof *entries);
    const int count = list_entries(folder, entries, arena, out);
    struct dl_captured_command *commands =
        dl_arena_alloc(arena, (size_t)(count > 0 ? count : 1), sizeof *commands);
    for (int i = 0; i < count; i++) {
        char *text;
        size_t length;
        const char *path = dl_arena_printf(arena, "%s/%s", folder->commands, entries[i].name);
        DL_TRY(dl_file_read_regular(path, COMMAND_BYTES, arena, &text, &length, err));
        struct dl_captured_command *command = &commands[out->count];
        split(text, length, arena, command);
        if (command->count > 0) out->count++;
    }
    out->commands = commands;
    return DL_OK;
}

enum dl_code dl_capture_run(const char *const *words, double limit_s, struct dl_arena *arena,
                            struct dl_captured *out, struct dl_err *err) {
    struct folder folder = {NULL, NULL};
    *out = (struct dl_captured){.count = 0};
    enum dl_code code = make_folder(&folder, arena, err);
    if (code == DL_OK) code = run_script(words, limit_s, &folder, arena, out, err);
    if (code == DL_OK) code = read_commands(&folder, arena, out, err);
    remove_folder(&folder);
    return code;
}
