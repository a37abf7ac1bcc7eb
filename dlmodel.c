/* dlmodel.c - entry: the table of commands, global options, dispatch, and the only place that
 * prints errors and exits.
 *
 * Reading order: this file, predict/commands/cmd_predict.c, model/engine/predict.h, then the
 * headers it includes.
 */
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#include "import/foreign_model.h"
#include "model/catalog/command.h"
#include "model/catalog/store.h"
#include "model/core/file.h"
#include "predict/inputs/plan_file.h"

#ifndef DLMODEL_VERSION
#define DLMODEL_VERSION "unknown"
#endif
#ifndef DLMODEL_COMMIT
#define DLMODEL_COMMIT "unknown"
#endif
#ifndef DLMODEL_DATADIR
#define DLMODEL_DATADIR "/usr/local/share/dlmodel/data"
#endif
#ifndef DLMODEL_SHAREDIR
#define DLMODEL_SHAREDIR "/usr/local/share/dlmodel"
#endif
#ifndef DL_FEATURES
#define DL_FEATURES "unknown"
#endif

extern const struct dl_command dl_cmd_calibrate, dl_cmd_predict, dl_cmd_search, dl_cmd_campaign,
    dl_cmd_advise, dl_cmd_match, dl_cmd_explain, dl_cmd_compare, dl_cmd_plot, dl_cmd_report,
    dl_cmd_slurm, dl_cmd_import, dl_cmd_list, dl_cmd_merge, dl_cmd_schema, dl_cmd_serve, dl_cmd_mcp,
    dl_cmd_capture, dl_cmd_probe_run, dl_cmd_cite, dl_cmd_help, dl_cmd_init;

static const struct dl_command *const commands[] = {
    &dl_cmd_init,
    &dl_cmd_calibrate,
    &dl_cmd_predict,
    &dl_cmd_search,
    &dl_cmd_campaign,
    &dl_cmd_advise,
    &dl_cmd_match,
    &dl_cmd_probe_run,
    &dl_cmd_explain,
    &dl_cmd_compare,
    &dl_cmd_plot,
    &dl_cmd_report,
    &dl_cmd_slurm,
    &dl_cmd_import,
    &dl_cmd_capture,
    &dl_cmd_merge,
    &dl_cmd_list,
    &dl_cmd_schema,
    &dl_cmd_serve,
    &dl_cmd_mcp,
    &dl_cmd_cite,
    &dl_cmd_help,
    NULL,
};

extern const struct dl_schema dl_site_schema, dl_run_schema, dl_runlog_schema;
static const struct dl_schema *const schemas[] = {&dl_site_schema, &dl_run_schema,
                                                  &dl_runlog_schema, NULL};

enum { COLOR_AUTO, COLOR_ALWAYS };
static const char *const color_names[] = {"auto", "always", "never", NULL};
struct globals {
    bool quiet, verbose, version, help, help_all;
    int color;
    const char *data;
};
#define GLOBAL(member) struct globals, member

static const struct dl_option global_options[] = {
    {"quiet", 'q', NULL, "Global", "print errors only on stderr",
     DL_FLAG_OF(GLOBAL(quiet), .repeatable = true)},
    {"verbose", 'v', NULL, "Global", "also print all notes and which files were read",
     DL_FLAG_OF(GLOBAL(verbose), .repeatable = true)},
    {"color", 0, "auto|always|never", "Global",
     "colour on the terminal; default auto, which honours NO_COLOR",
     DL_CHOICE(GLOBAL(color), .choices = color_names)},
    {"data", 0, "DIR", "Global", "search DIR for data files first", DL_TEXT(GLOBAL(data))},
    {"version", 0, NULL, "Global", "print the version; with -v also the compiled-in features",
     DL_FLAG(GLOBAL(version))},
    {"help", 'h', NULL, "Global", "list the commands", DL_FLAG(GLOBAL(help))},
    {"help-all", 0, NULL, "Global", "help of a command with every option",
     DL_FLAG(GLOBAL(help_all))},
    {.name = NULL},
};

static struct dl_arena arena;        /* of the whole process */
enum { PREDICTION_BYTES = 1 << 20 }; /* arena bytes reserved for one prediction */

/* On standard output; `last`: all of it. */
static enum dl_code show(const char *text, bool last, struct dl_err *err) {
    static char shown[65536];
    bool good = true;
    for (size_t length; good && (length = strlen(text)) > 0; text += length) {
        if (length >= sizeof shown) length = sizeof shown - 1;
        /* of a control character that takes two bytes, both */
        if (text[length] != 0 && (unsigned char)text[length - 1] == 0xc2) length--;
        memcpy(shown, text, length);
        shown[length] = 0;
        dl_text_printable(shown, "\n\t\r");
        good = fputs(shown, stdout) != EOF;
    }
    if (good && (!last || fflush(stdout) != EOF)) return DL_OK;
    return dl_fail(err, DL_ERR_SYSTEM, "cannot write to standard output: %s", strerror(errno));
}

static enum dl_code write_output(const struct dl_options *options, const char *text,
                                 struct dl_err *err) {
    const char *path = options == NULL ? NULL : dl_option_text(options, "output");
    return path != NULL ? dl_file_write(path, text, strlen(text), err) : show(text, true, err);
}

/* A file that is being written in parts. */
static struct dl_file_writer part_file = {.fd = -1};
static bool part_open;

static enum dl_code write_part(const struct dl_options *options, const char *text, bool last,
                               struct dl_err *err) {
    const char *path = dl_option_text(options, "output");
    if (path == NULL) return show(text, last, err);
    if (!part_open) DL_TRY(dl_file_begin(path, &part_file, err));
    part_open = true;
    DL_TRY(dl_file_add(&part_file, text, strlen(text), err));
    if (!last) return DL_OK;
    part_open = false;
    return dl_file_end(&part_file, err);
}

/* Messages on an answer follow it, the most important ones first; without -v only a few. */
enum { HELD_NOTES = 256, SHOWN_NOTES = 3 };
static const char *held_notes[HELD_NOTES];
static int held_count;
static bool hold_notes;

static void write_note(const struct dl_context *context, const char *format, ...) {
    if (context->verbosity < 0) return;
    char text[4096];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    dl_text_printable(text, "\n\t");
    if (hold_notes && held_count < HELD_NOTES)
        held_notes[held_count++] = dl_arena_strdup(&arena, text);
    else
        fprintf(stderr, "%s\n", text);
}

/* 0: the plan may not run, or is not all of its file; 1: the answer may be wrong; 2: what it
 * assumes or leaves out. */
static int rank_of_note(const char *text) {
    static const char *const grave[] = {"does not fit", "out of memory", "memory is tight",
                                        "not modelled"};
    for (size_t i = 0; i < sizeof grave / sizeof grave[0]; i++) {
        if (strstr(text, grave[i]) != NULL) return 0;
    }
    return strncmp(text, "warning:", 8) == 0 || strncmp(text, "corrected by", 12) == 0 ? 1 : 2;
}

static void show_notes(int verbosity) {
    const int most = verbosity > 0 || held_count == SHOWN_NOTES + 1 ? held_count : SHOWN_NOTES;
    int shown = 0;
    for (int rank = 0; rank < 3; rank++) {
        for (int i = 0; i < held_count; i++) {
            if (rank_of_note(held_notes[i]) != rank || shown == most) continue;
            fprintf(stderr, "%s\n", held_notes[i]);
            shown++;
        }
    }
    if (shown < held_count) fprintf(stderr, "%d more notes (-v)\n", held_count - shown);
}

static int show_progress(void *user, double done_frac, double elapsed_s) {
    (void)user;
    fprintf(stderr, "%.0f %% done after %.1f s\n", 100 * done_frac, elapsed_s);
    return 0;
}

static bool is_directory(const char *path) {
    struct stat status;
    return path != NULL && stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

/* A path from the folder of the executable; NULL: it was found through PATH. */
static const char *beside_program(const struct dl_context *context, const char *relative) {
    const char *program = context->program, *slash = strrchr(program, '/');
    if (slash == NULL) return NULL;
    return dl_arena_printf(context->arena, "%.*s/%s", (int)(slash - program), program, relative);
}

/* All that exist of: --data, $DLMODEL_DATA, next to the executable (build tree, moved
 * installation), the installed one. */
static enum dl_code find_data(struct dl_context *context, const char *given, struct dl_err *err) {
    static const char *const relative[] = {"data", "../data", "../share/dlmodel/data", NULL};
    static const char *found[8];
    int count = 0;
    if (given != NULL) {
        if (!is_directory(given))
            return dl_fail(err, DL_ERR_USAGE, "--data: no directory %s", given);
        found[count++] = given;
    }
    const char *environment = getenv("DLMODEL_DATA");
    if (environment != NULL && environment[0] != 0) {
        if (!is_directory(environment))
            return dl_fail(err, DL_ERR_USAGE, "DLMODEL_DATA: no directory %s", environment);
        found[count++] = environment;
    }
    for (int i = 0; relative[i] != NULL; i++) {
        const char *path = beside_program(context, relative[i]);
        if (is_directory(path)) found[count++] = path;
    }
    if (is_directory(DLMODEL_DATADIR)) found[count++] = DLMODEL_DATADIR;
    if (count == 0) {
        return dl_fail(err, DL_ERR_SYSTEM,
                       "no data directory found: give --data DIR or set DLMODEL_DATA");
    }
    context->data.directories = found;
    context->data.directory_count = count;
    return DL_OK;
}

/* Folders of scripts, next to the executable (build tree, build elsewhere, moved installation) and
 * installed. */
static void find_scripts(struct dl_context *context) {
    static const char *const relative[] = {"..", "source", "../share/dlmodel", NULL};
    static const char *found[4];
    int count = 0;
    for (int i = 0; relative[i] != NULL; i++) {
        const char *root = beside_program(context, relative[i]);
        if (root != NULL && is_directory(dl_arena_printf(context->arena, "%s/plots", root)))
            found[count++] = root;
    }
    if (is_directory(DLMODEL_SHAREDIR "/plots")) found[count++] = DLMODEL_SHAREDIR;
    context->script_roots = found;
    context->script_root_count = count;
}

/* The path that a variable names; else dlmodel/NAME in the folder that the XDG variable names, or
 * in that one of the user's home; NULL: neither is set. */
static const char *user_file(struct dl_arena *of, const char *variable, const char *xdg_variable,
                             const char *folder, const char *name) {
    const char *direct = getenv(variable), *xdg = getenv(xdg_variable), *home = getenv("HOME");
    if (direct != NULL && direct[0] != 0) return direct;
    if (xdg != NULL && xdg[0] == '/') return dl_arena_printf(of, "%s/dlmodel/%s", xdg, name);
    if (home == NULL || home[0] == 0) return NULL;
    return dl_arena_printf(of, "%s/%s/dlmodel/%s", home, folder, name);
}

/* The host's profile, and the site's file where it exists or is named. */
static void find_profile_and_site(struct dl_context *context) {
    const char *direct = getenv("DLMODEL_SITE");
    const char *site =
        user_file(context->arena, "DLMODEL_SITE", "XDG_CONFIG_HOME", ".config", "site.json");
    context->profile_path = context->data.local_profile =
        user_file(context->arena, "DLMODEL_LOCAL", "XDG_DATA_HOME", ".local/share", "local.json");
    if (site != NULL && (site == direct || access(site, F_OK) == 0)) context->site = site;
}

/* Global options may precede or follow the command; the last one wins. `after` lists a command's
 * options too, and a command may define its own option with a global name: --help. */
static enum dl_code read_globals(struct dl_context *context, const struct dl_options *before,
                                 const struct dl_options *after, struct globals *out,
                                 struct dl_err *err) {
    *out = (struct globals){.color = COLOR_AUTO};
    DL_TRY(dl_options_bind(before, global_options, out, err));
    DL_TRY(dl_options_bind(after, global_options, out, err));
    out->help = out->help || dl_option_given(after, "help");
    const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");
    const bool allowed =
        (no_color == NULL || no_color[0] == 0) && (term == NULL || strcmp(term, "dumb") != 0);
    context->color = out->color == COLOR_ALWAYS ||
                     (out->color == COLOR_AUTO && allowed && isatty(STDOUT_FILENO));
    context->progress = isatty(STDERR_FILENO);
    if (out->verbose) context->verbosity = 1;
    if (out->quiet) context->verbosity = -1;
    if (context->progress && context->verbosity >= 0) context->watch = show_progress;
    find_profile_and_site(context);
    return DL_OK;
}

static enum dl_code print_version(const struct dl_context *context, struct dl_err *err) {
    const char *text = context->verbosity > 0 ? "dlmodel " DLMODEL_VERSION " (" DLMODEL_COMMIT
                                                ")\nfeatures: " DL_FEATURES "\n"
                                              : "dlmodel " DLMODEL_VERSION "\n";
    return write_output(NULL, text, err);
}

/* A command's own options come first: it may redefine a global name. */
static enum dl_code parse_command(const struct dl_command *command, int argc, char **argv,
                                  struct dl_options *out, struct dl_err *err) {
    static const struct dl_option *tables[16];
    int count = 0;
    for (; count < 14 && command->options[count] != NULL; count++)
        tables[count] = command->options[count];
    tables[count] = global_options;
    return dl_options_parse(tables, argc, argv, out, err);
}

/* Words before the command: options of global_options and their values. */
static int count_globals(int argc, char **argv) {
    int count = 0;
    while (count < argc && argv[count][0] == '-' && argv[count][1] != 0) {
        if (strcmp(argv[count], "--") == 0) return count;
        count += strcmp(argv[count], "--data") == 0 || strcmp(argv[count], "--color") == 0 ? 2 : 1;
    }
    return count < argc ? count : argc;
}

static const struct dl_option *all_option(void) {
    const struct dl_option *o = global_options;
    while (strcmp(o->name, "help-all") != 0) o++;
    return o;
}

static enum dl_code dispatch(struct dl_context *context, int argc, char **argv, const char **who,
                             struct dl_err *err) {
    static const struct dl_option *const tables[] = {global_options, NULL};
    static struct dl_options before, after;
    static struct dl_workload_files workload_files;
    const int at = count_globals(argc, argv);
    DL_TRY(dl_options_parse(tables, at, argv, &before, err));
    const struct dl_command *command = NULL;
    if (at < argc) {
        DL_TRY(dl_command_find(commands, argv[at], &command, err));
        *who = dl_arena_printf(context->arena, "dlmodel %s", command->name);
        DL_TRY(parse_command(command, argc - at - 1, argv + at + 1, &after, err));
    }
    struct globals globals;
    DL_TRY(read_globals(context, &before, &after, &globals, err));
    if (globals.version) return print_version(context, err);
    const bool help = globals.help || (globals.help_all && command != &dl_cmd_help);
    if (command == NULL || help) {
        struct dl_options about = {.positional_count = 0};
        if (command != NULL) about.positional[about.positional_count++] = command->name;
        if (globals.help_all) {
            about.given[about.given_count].option = all_option();
            about.given[about.given_count++].value = "";
        }
        DL_TRY(dl_cmd_help.run(context, &about, err));
        return help ? DL_OK : dl_fail(err, DL_ERR_USAGE, "expected a command");
    }
    if (command != &dl_cmd_help) DL_TRY(find_data(context, globals.data, err));
    context->data.store = dl_store_open(); /* NULL: each load reads its files */
    find_scripts(context);
    dl_arena_reserve(context->arena, PREDICTION_BYTES);
    dl_workload_files_allow(&workload_files, context);
    DL_TRY(dl_plan_file_apply(context, command, &after, err));
    const char *format = dl_option_text(&after, "format");
    if (format != NULL && strcmp(format, "latex") == 0 && !command->latex)
        return dl_fail(err, DL_ERR_USAGE,
                       "--format latex: for predict, search, compare, match and advise");
    hold_notes = command->few_notes;
    return command->run(context, &after, err);
}

/* Absolute path of this program; "": unknown. The kernel says what it was started as; asking /proc
 * takes ten times as long and is needed only where that is a link, which has other neighbours. */
static const char *own_path(void) {
    static char path[4096];
    char link[1];
    const char *started =
        (const char *)getauxval(AT_EXECFN); /* NOLINT(performance-no-int-to-ptr) */
    const bool is_file = started != NULL && strncmp(started, "/dev/", 5) != 0 &&
                         strncmp(started, "/proc/", 6) != 0 &&
                         readlink(started, link, sizeof link) < 0 && errno == EINVAL;
    if (is_file) {
        size_t length = 0;
        if (started[0] != '/' && getcwd(path, sizeof path - 1) != NULL && path[0] == '/') {
            length = strlen(path);
            path[length++] = '/';
        }
        const size_t more = strlen(started);
        if ((started[0] == '/' || length > 0) && more < sizeof path - length) {
            memcpy(path + length, started, more + 1);
            return path;
        }
    }
    const ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
    path[length > 0 ? length : 0] = 0;
    return path;
}

struct call {
    struct dl_context *context;
    int argc;
    char **argv;
    const char **who;
};

static enum dl_code dispatch_call(void *state, struct dl_err *err) {
    const struct call *c = state;
    return dispatch(c->context, c->argc, c->argv, c->who, err);
}

int main(int argc, char **argv) {
    struct dl_err err = {0};
    /* what it refers to ends with the process, which is faster than giving back each mapping */
    static struct dl_context context = {.program = "",
                                        .commands = commands,
                                        .arena = &arena,
                                        .output = write_output,
                                        .output_part = write_part,
                                        .note = write_note,
                                        .global_options = global_options,
                                        .schemas = schemas};
    /* A limit on file sizes is an error to report, after which temporary files go. */
    signal(SIGXFSZ, SIG_IGN);
    context.program = own_path();
    const char *who = "dlmodel";
    struct call call = {&context, argc > 0 ? argc - 1 : 0, argv + 1, &who};
    enum dl_code code = dl_guarded(dispatch_call, &call, &err);
    if (part_open) dl_file_abandon(&part_file); /* a result that is not whole */
    show_notes(context.verbosity);
    /* regardless of the outcome */
    if (code != DL_OK && err.message[0] != 0) {
        char text[2048];
        dl_err_text(&err, who != NULL ? who : "dlmodel", text, sizeof text);
        fprintf(stderr, "%s\n", text);
        if (code == DL_ERR_USAGE) fprintf(stderr, "see '%s --help'\n", who);
    }
    return (int)code;
}
