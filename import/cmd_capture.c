/* cmd_capture.c - the training that a script would start, as a command line of predict. */
#include <string.h>

#include "import/capture/capture.h"
#include "import/import.h"
#include "model/core/file.h"
#include "model/core/text.h"

extern const struct dl_command dl_cmd_import;

struct asked {
    bool commands;
    double limit_s;
};
#define ASKED(member) struct asked, member

static const struct dl_option capture_options[] = {
    {"commands", 0, NULL, "Capture", "print the captured commands as a script, import nothing",
     DL_FLAG(ASKED(commands))},
    {"time-limit", 0, "TIME", "Capture", "the script is ended after this; default 60s",
     DL_NUMBER(ASKED(limit_s), .unit = DL_UNIT_S, .min = 0.1, .max = 86400)},
    {.name = NULL},
};
/* Of import, which reads them. */
static const struct dl_option import_options[] = {
    {"system", 's', "NAME", "Import", "system of the printed command", NULL},
    {"workload", 'w', "NAME|FILE", "Import", "workload, where the command does not name it", NULL},
    {"framework", 'f', "NAME", "Import", "framework; default: that of the command", NULL},
    {"ranks", 0, "N", "Import", "number of devices, where the command does not say", NULL},
    {"vocab-size", 0, "N", "Import", "words of the tokenizer before padding", NULL},
    {"skip-unknown", 0, NULL, "Import", "skip arguments that are not known, with a warning", NULL},
    {.name = NULL},
};
static const struct dl_option *const tables[] = {capture_options, import_options, dl_output_options,
                                                 NULL};
static const char *const examples[] = {
    "dlmodel capture --system dgx-a100-80 -- bash tests/fixtures/runs/megatron.sh",
    "dlmodel capture --commands -- sh -c 'torchrun --nproc_per_node 8 train.py --model resnet50'",
    NULL,
};

static bool is_launcher(const char *name) {
    for (int i = 0; dl_capture_launchers[i] != NULL; i++)
        if (strcmp(dl_capture_launchers[i], name) == 0) return true;
    return false;
}

/* Whether Python is started with a program, not for a line or its version. */
static bool starts_program(const struct dl_captured_command *command) {
    for (int i = 1; i < command->count; i++) {
        const char *word = command->words[i];
        if (strcmp(word, "-m") == 0)
            return i + 1 < command->count && strcmp(command->words[i + 1], "pip") != 0;
        if (word[0] != '-') return true;
        if (word[1] == 'c' || word[1] == 'V' || strcmp(word, "--version") == 0) return false;
    }
    return false;
}

/* The first launcher, else the first program of Python; -1: none. */
static int training_of(const struct dl_captured *captured) {
    int program = -1;
    for (int i = 0; i < captured->count; i++) {
        const struct dl_captured_command *c = &captured->commands[i];
        if (is_launcher(c->words[0])) return i;
        if (program < 0 && starts_program(c)) program = i;
    }
    return program;
}

/* Lines "#SBATCH ..." of the script: Slurm reads the number of nodes there. */
static void add_batch_lines(const struct dl_options *options, struct dl_arena *arena,
                            struct dl_text *out) {
    for (int i = 0; i < options->positional_count; i++) {
        char *text;
        size_t length;
        struct dl_err ignored;
        if (dl_file_read_regular(options->positional[i], 1 << 20, arena, &text, &length,
                                 &ignored) != DL_OK ||
            strncmp(text, "#!", 2) != 0)
            continue;
        char *next = NULL;
        for (char *line = strtok_r(text, "\n", &next); line; line = strtok_r(NULL, "\n", &next))
            if (strncmp(line, "#SBATCH", 7) == 0) dl_text_printf(out, "%s\n", line);
        return;
    }
}

static void add_command(const struct dl_captured_command *command, struct dl_arena *arena,
                        struct dl_text *out) {
    for (int i = 0; i < command->count; i++)
        dl_text_printf(out, "%s%s", i > 0 ? " " : "", dl_shell_word(arena, command->words[i]));
    dl_text_add(out, "\n");
}

/* from, to: the commands that the script gets. */
static const char *script_of(const struct dl_options *options, const struct dl_captured *captured,
                             int from, int to, struct dl_arena *arena) {
    struct dl_text text = {.arena = arena};
    dl_text_add(&text, "#!/bin/bash\n# written by dlmodel capture\n");
    add_batch_lines(options, arena, &text);
    for (int i = from; i < to; i++) add_command(&captured->commands[i], arena, &text);
    return dl_text_string(&text);
}

/* What `dlmodel import captured.sh` does with the given options. */
static enum dl_code import_script(struct dl_context *context, const struct dl_options *options,
                                  const char *script, struct dl_err *err) {
    static const char name[] = "captured.sh";
    struct dl_context own = *context;
    const struct dl_attachment document = {.name = name, .text = script, .length = strlen(script)};
    char **words = dl_arena_alloc(context->arena, DL_MAX_REPEATS + 1, sizeof *words);
    int count = 0;
    words[count++] = dl_arena_strdup(context->arena, name);
    for (int i = 0; i < options->given_count; i++) {
        const struct dl_given *g = &options->given[i];
        if (strcmp(g->option->group, "Capture") == 0) continue;
        words[count++] =
            g->option->argument == NULL
                ? dl_arena_printf(context->arena, "--%s", g->option->name)
                : dl_arena_printf(context->arena, "--%s=%s", g->option->name, g->value);
    }
    own.data.attachments = &document;
    own.data.attachment_count = 1;
    struct dl_options *import = dl_arena_alloc(context->arena, 1, sizeof *import);
    DL_TRY(dl_options_parse(dl_cmd_import.options, count, words, import, err));
    return dl_cmd_import.run(&own, import, err);
}

static void remark(const struct dl_context *context, const struct dl_captured *captured,
                   int training) {
    int others = 0;
    for (int i = 0; i < captured->count; i++)
        others += i != training && (is_launcher(captured->commands[i].words[0]) ||
                                    starts_program(&captured->commands[i]));
    if (captured->late)
        context->note(context, "warning: the script was ended at its time limit (--time-limit)");
    else if (captured->status != 0)
        context->note(context,
                      "warning: the script ended with exit status %d; a command may have "
                      "needed the output of one that was not started",
                      captured->status);
    if (captured->too_many)
        context->note(context, "warning: commands beyond the first 1000 are left out");
    if (training >= 0 && others > 0)
        context->note(context, "other commands captured: %d; --commands prints all", others);
}

static enum dl_code run(struct dl_context *context, const struct dl_options *options,
                        struct dl_err *err) {
    struct asked asked = {.limit_s = 60};
    struct dl_captured captured;
    struct dl_arena *arena = context->arena;
    DL_TRY(dl_options_bind(options, capture_options, &asked, err));
    if (options->positional_count == 0)
        return dl_fail(err, DL_ERR_USAGE, "expected a command: dlmodel capture -- bash train.sh");
    const char **words = dl_arena_alloc(arena, DL_MAX_POSITIONAL + 1, sizeof *words);
    for (int i = 0; i < options->positional_count; i++) words[i] = options->positional[i];
    context->note(
        context,
        "running %s with stand-ins for torchrun, deepspeed, accelerate, srun, mpirun, "
        "mpiexec, horovodrun, composer, sbatch and python: they print their arguments and "
        "end. Everything else of it runs as always.",
        words[0]);
    DL_TRY(dl_capture_run(words, asked.limit_s, arena, &captured, err));
    const int training = training_of(&captured);
    if (captured.count == 0 && captured.status == 127)
        return dl_fail(err, DL_ERR_USAGE, "%s: a command was not found", words[0]);
    remark(context, &captured, asked.commands ? -1 : training);
    if (captured.count == 0 || (training < 0 && !asked.commands))
        return dl_fail(err, DL_ERR_NO,
                       "the command started no training: none of the stand-ins was called by its "
                       "name with a program; a program called by its full path runs as always");
    if (asked.commands)
        return context->output(options, script_of(options, &captured, 0, captured.count, arena),
                               err);
    return import_script(context, options,
                         script_of(options, &captured, training, training + 1, arena), err);
}

const struct dl_command dl_cmd_capture = {
    .name = "capture",
    .summary = "run a launch script without its training, and import what it would start",
    .usage = "[options] -- COMMAND [ARGUMENT...]",
    .purpose =
        "Runs COMMAND, such as bash train.sh, with stand-ins for torchrun, deepspeed, accelerate, "
        "srun, mpirun, mpiexec, horovodrun, composer, sbatch, python and python3: earlier in PATH, "
        "and as functions of bash, so that an environment that the script enters does not hide "
        "them. A stand-in notes its arguments, prints them and ends with status 0; nothing else "
        "is changed, so whatever else the script does, it does (copying, downloading, programs by "
        "their full path). The first command of a launcher, else the first program of Python, is "
        "then read as by dlmodel import, with the script's #SBATCH lines: the command line of "
        "predict for the same training is printed. The output of COMMAND goes to standard error. "
        "Use it where import cannot decide what a script does.",
    .examples = examples,
    .options = tables,
    .exit_notes = "1 when the command started no training",
    .run = run,
};
