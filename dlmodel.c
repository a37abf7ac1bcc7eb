/* dlmodel.c - entry: the table of commands, global options, dispatch, and the only place that prints errors and exits.
 *
 * Reading order: this file, predict/cmd_predict.c, model/predict.h, then the headers it includes.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "model/command.h"
#include "model/file.h"

#ifndef DLMODEL_VERSION
#define DLMODEL_VERSION "unknown"
#endif
#ifndef DLMODEL_COMMIT
#define DLMODEL_COMMIT "unknown"
#endif
#ifndef DLMODEL_DATADIR
#define DLMODEL_DATADIR "/usr/local/share/dlmodel/data"
#endif
#ifndef DL_FEATURES
#define DL_FEATURES "unknown"
#endif

extern const struct dl_command dl_cmd_calibrate, dl_cmd_predict, dl_cmd_explain, dl_cmd_compare, dl_cmd_plot, dl_cmd_list,
    dl_cmd_schema, dl_cmd_help;

static const struct dl_command *const commands[] = {
    &dl_cmd_calibrate, &dl_cmd_predict, &dl_cmd_explain, &dl_cmd_compare, &dl_cmd_plot,
    &dl_cmd_list,      &dl_cmd_schema,  &dl_cmd_help,    NULL,
};

static const struct dl_option global_options[] = {
    {"quiet", 'q', NULL, "Global", "no messages on stderr but errors", false},
    {"verbose", 'v', NULL, "Global", "also say what was read and which constants were used", false},
    {"color", 0, "auto|always|never", "Global", "colour on the terminal; NO_COLOR is honoured", false},
    {"data", 0, "DIR", "Global", "look for data files in DIR first", false},
    {"version", 0, NULL, "Global", "version; with -v also the features compiled in", false},
    {"help", 'h', NULL, "Global", "the commands", false},
    {.name = NULL},
};

static enum dl_code write_output(const struct dl_options *options, const char *text, struct dl_err *err) {
    if (text == NULL) return dl_fail(err, DL_ERR_SYSTEM, "out of memory");
    const char *path = options == NULL ? NULL : dl_option_text(options, "output");
    if (path != NULL) return dl_file_write(path, text, strlen(text), err);
    if (fputs(text, stdout) == EOF || fflush(stdout) == EOF) {
        return dl_fail(err, DL_ERR_SYSTEM, "cannot write to standard output: %s", strerror(errno));
    }
    return DL_OK;
}

static void write_note(const struct dl_context *context, const char *format, ...) {
    if (context->verbosity < 0) return;
    va_list args;
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
}

static bool is_directory(const char *path) {
    struct stat status;
    return path != NULL && stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

/* --data, $DLMODEL_DATA, beside the executable (build tree), where it was installed: those that exist. */
static enum dl_code find_data(struct dl_context *context, const char *given, struct dl_err *err) {
    static const char *found[5];
    int count = 0;
    struct dl_arena *arena = context->arena;
    if (given != NULL) {
        if (!is_directory(given)) return dl_fail(err, DL_ERR_USAGE, "--data: no directory %s", given);
        found[count++] = given;
    }
    const char *environment = getenv("DLMODEL_DATA");
    if (is_directory(environment)) found[count++] = environment;
    const char *slash = strrchr(context->program, '/');
    if (slash != NULL) {
        const int length = (int)(slash - context->program);
        const char *above = dl_arena_printf(arena, "%.*s/../data", length, context->program);
        const char *beside = dl_arena_printf(arena, "%.*s/data", length, context->program);
        if (is_directory(beside)) found[count++] = beside;
        if (is_directory(above)) found[count++] = above;
    }
    if (is_directory(DLMODEL_DATADIR)) found[count++] = DLMODEL_DATADIR;
    if (count == 0) {
        return dl_fail(err, DL_ERR_SYSTEM, "no data directory found: give --data DIR or set DLMODEL_DATA");
    }
    context->data.directories = found;
    context->data.directory_count = count;
    return DL_OK;
}

/* $DLMODEL_LOCAL, else $XDG_DATA_HOME/dlmodel/local.json, else ~/.local/share/dlmodel/local.json. */
static void find_profile(struct dl_context *context) {
    const char *direct = getenv("DLMODEL_LOCAL"), *xdg = getenv("XDG_DATA_HOME"), *home = getenv("HOME");
    if (direct != NULL && direct[0] != 0) context->profile_path = direct;
    else if (xdg != NULL && xdg[0] == '/') context->profile_path = dl_arena_printf(context->arena, "%s/dlmodel/local.json", xdg);
    else if (home != NULL && home[0] != 0) {
        context->profile_path = dl_arena_printf(context->arena, "%s/.local/share/dlmodel/local.json", home);
    }
    context->data.local_profile = context->profile_path;
}

static enum dl_code find_command(const char *name, const struct dl_command **out, struct dl_err *err) {
    static const char *const later[] = {"search", "slurm", "import", NULL};
    const char *names[16];
    int count = 0;
    for (; commands[count] != NULL; count++) {
        names[count] = commands[count]->name;
        if (strcmp(names[count], name) == 0) {
            *out = commands[count];
            return DL_OK;
        }
    }
    names[count] = NULL;
    for (int i = 0; later[i] != NULL; i++) {
        if (strcmp(later[i], name) == 0) {
            return dl_fail(err, DL_ERR_USAGE, "'%s' is not in this version; see 'dlmodel help' for what is", name);
        }
    }
    const char *near = dl_suggest(name, names);
    if (near != NULL) return dl_fail(err, DL_ERR_USAGE, "no command '%s'; did you mean '%s'?", name, near);
    return dl_fail(err, DL_ERR_USAGE, "no command '%s'; see 'dlmodel help'", name);
}

static enum dl_code set_globals(struct dl_context *context, const struct dl_options *global, struct dl_err *err) {
    static const char *const choices[] = {"auto", "always", "never", NULL};
    int color = 0;
    DL_TRY(dl_option_choice(global, "color", choices, &color, err));
    const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");
    const bool allowed = (no_color == NULL || no_color[0] == 0) && (term == NULL || strcmp(term, "dumb") != 0);
    context->color = color == 1 || (color == 0 && allowed && isatty(STDOUT_FILENO));
    context->progress = isatty(STDERR_FILENO);
    context->verbosity = dl_option_given(global, "quiet") ? -1 : dl_option_given(global, "verbose") ? 1 : 0;
    find_profile(context);
    return DL_OK;
}

static enum dl_code run_command(struct dl_context *context, const struct dl_command *command, int argc, char **argv,
                                struct dl_err *err) {
    struct dl_options options;
    DL_TRY(dl_options_parse(command->options, argc, argv, &options, err));
    if (!dl_option_given(&options, "help")) return command->run(context, &options, err);
    struct dl_options help = {.positional = {command->name}, .positional_count = 1};
    return dl_cmd_help.run(context, &help, err);
}

/* Global options stand before the command; -q and -v are accepted after it too. */
static enum dl_code dispatch(struct dl_context *context, int argc, char **argv, const char **who, struct dl_err *err) {
    static const struct dl_option *const tables[] = {global_options, NULL};
    int first = 1;
    while (first < argc && argv[first][0] == '-') {
        const bool takes_value = strcmp(argv[first], "--data") == 0 || strcmp(argv[first], "--color") == 0;
        first += takes_value ? 2 : 1;
    }
    if (first > argc) first = argc;
    struct dl_options global;
    DL_TRY(dl_options_parse(tables, first - 1, argv + 1, &global, err));
    DL_TRY(set_globals(context, &global, err));
    if (dl_option_given(&global, "version")) {
        const char *text = context->verbosity > 0 ? "dlmodel " DLMODEL_VERSION " (" DLMODEL_COMMIT ")\nfeatures: " DL_FEATURES "\n"
                                                  : "dlmodel " DLMODEL_VERSION "\n";
        return write_output(NULL, text, err);
    }
    if (dl_option_given(&global, "help") || first >= argc) {
        const struct dl_options none = {0};
        const enum dl_code code = dl_cmd_help.run(context, &none, err);
        if (code != DL_OK || dl_option_given(&global, "help")) return code;
        return dl_fail(err, DL_ERR_USAGE, "expected a command");
    }
    const struct dl_command *command = NULL;
    DL_TRY(find_command(argv[first], &command, err));
    *who = dl_arena_printf(context->arena, "dlmodel %s", command->name);
    DL_TRY(find_data(context, dl_option_text(&global, "data"), err));
    return run_command(context, command, argc - first - 1, argv + first + 1, err);
}

int main(int argc, char **argv) {
    struct dl_arena arena = {0};
    struct dl_err err = {0};
    struct dl_context context = {.program = "", .commands = commands, .arena = &arena, .output = write_output, .note = write_note};
    static char program[4096];
    const ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    if (length > 0) context.program = program;
    const char *who = "dlmodel";
    const enum dl_code code = dispatch(&context, argc, argv, &who, &err);
    if (code != DL_OK && err.message[0] != 0) {
        char text[2048];
        dl_err_text(&err, who, text, sizeof text);
        fprintf(stderr, "%s\n", text);
        if (code == DL_ERR_USAGE) fprintf(stderr, "see '%s --help'\n", who);
    }
    dl_arena_free(&arena);
    return (int)code;
}
