/* cmd_help.c - help, the man page and completion, all from the tables of options. */
#include <stdio.h>
#include <string.h>

#include "model/command.h"

static const struct dl_option help_options[] = {
    {"man", 0, NULL, "Output", "the man page (roff)", false},
    {"completion", 0, "bash", "Output", "a completion script", false},
    {.name = NULL},
};
static const struct dl_option *const tables[] = {help_options, dl_output_options, NULL};
static const char *const examples[] = {"dlmodel help predict", "dlmodel help --man", NULL};

static const char exit_text[] =
    "Exit status\n"
    "  0  done\n"
    "  1  the answer is no: does not fit in memory, error above --max-error, nothing feasible\n"
    "  2  wrong use of the command line\n"
    "  3  bad input file: FILE:LINE:COL: error: KEY: what was expected\n"
    "  4  outside what was calibrated, with --strict\n"
    "  5  the system refused: file, memory, permission\n"
    "  6  a back-end failed: CUDA, cuDNN, NCCL, MPI, Slurm\n";

struct text { struct dl_arena *arena; char *text; };

static void add(struct text *t, const char *more) {
    t->text = t->text == NULL ? dl_arena_strdup(t->arena, more) : dl_arena_printf(t->arena, "%s%s", t->text, more);
}

static void add_paragraph(struct text *t, const char *text, size_t width) {
    size_t column = 0;
    while (*text != 0) {
        const size_t word = strcspn(text, " ");
        if (column > 0 && column + 1 + word > width) {
            add(t, "\n");
            column = 0;
        }
        add(t, dl_arena_printf(t->arena, "%s%.*s", column > 0 ? " " : "", (int)word, text));
        column += word + (column > 0 ? 1 : 0);
        text += word + (text[word] == ' ' ? 1 : 0);
    }
    add(t, "\n");
}

static const char *option_text(struct dl_arena *arena, const struct dl_option *o) {
    const char *letter = o->letter != 0 ? dl_arena_printf(arena, "-%c, ", o->letter) : "    ";
    return dl_arena_printf(arena, "%s--%s%s%s", letter, o->name, o->argument != NULL ? " " : "",
                           o->argument != NULL ? o->argument : "");
}

static void command_help(struct text *t, const struct dl_command *command) {
    struct dl_arena *arena = t->arena;
    add(t, dl_arena_printf(arena, "dlmodel %s: %s\n\nUsage: dlmodel [global options] %s %s\n\n", command->name,
                           command->summary, command->name, command->usage));
    add_paragraph(t, command->purpose, 96);
    add(t, "\nExamples\n");
    for (int i = 0; command->examples[i] != NULL; i++) add(t, dl_arena_printf(arena, "  %s\n", command->examples[i]));
    const char *group = "";
    for (int k = 0; command->options[k] != NULL; k++) {
        for (const struct dl_option *o = command->options[k]; o->name != NULL; o++) {
            if (strcmp(group, o->group) != 0) add(t, dl_arena_printf(arena, "\n%s\n", o->group));
            group = o->group;
            add(t, dl_arena_printf(arena, "  %-34s %s\n", option_text(arena, o), o->help));
        }
    }
    add(t, dl_arena_printf(arena, "\n%s", exit_text));
    if (command->exit_notes != NULL) add(t, dl_arena_printf(arena, "Here: %s.\n", command->exit_notes));
}

static void overview(struct text *t, const struct dl_command *const *commands) {
    struct dl_arena *arena = t->arena;
    add(t, "dlmodel: how will training of a deep network scale on a cluster, and what limits it?\n\n"
           "Usage: dlmodel [global options] COMMAND [options]\n\nCommands\n");
    for (int i = 0; commands[i] != NULL; i++) {
        add(t, dl_arena_printf(arena, "  %-12s %s\n", commands[i]->name, commands[i]->summary));
    }
    add(t, "\nGlobal options (before the command)\n"
           "  -q, --quiet                        no messages on stderr but errors\n"
           "  -v, --verbose                      also say what was read\n"
           "      --color auto|always|never      colour on the terminal; NO_COLOR is honoured\n"
           "      --data DIR                     look for data files in DIR first\n"
           "      --version                      version; with -v also the features compiled in\n\n"
           "Examples\n  dlmodel predict --nodes 16\n  dlmodel compare data/runs/*.csv\n\n"
           "'dlmodel COMMAND --help' tells about one command.\n\n");
    add(t, exit_text);
}

static void roff_text(struct text *t, const char *text) { /* backslashes and leading dots have meaning in roff */
    char piece[3] = {0};
    if (*text == '.') add(t, "\\&");
    for (; *text != 0; text++) {
        if (*text == '\\') add(t, "\\e");
        else if (*text == '-') add(t, "\\-");
        else {
            piece[0] = *text;
            add(t, piece);
        }
    }
}

static void man_command(struct text *t, const struct dl_command *c) {
    add(t, dl_arena_printf(t->arena, ".SS %s %s\n", c->name, c->usage));
    roff_text(t, c->purpose);
    add(t, "\n");
    for (int k = 0; c->options[k] != NULL; k++) {
        for (const struct dl_option *o = c->options[k]; o->name != NULL; o++) {
            add(t, ".TP\n.B ");
            const char *text = option_text(t->arena, o);
            roff_text(t, text + strspn(text, " "));
            add(t, "\n");
            roff_text(t, o->help);
            add(t, "\n");
        }
    }
    add(t, ".PP\nExamples:\n.nf\n");
    for (int i = 0; c->examples[i] != NULL; i++) {
        roff_text(t, c->examples[i]);
        add(t, "\n");
    }
    add(t, ".fi\n");
}

static void man_page(struct text *t, const struct dl_command *const *commands) {
    add(t, ".TH DLMODEL 1\n.SH NAME\ndlmodel \\- predict how training of deep networks scales on clusters\n.SH SYNOPSIS\n"
           ".B dlmodel\n[global options] COMMAND [options]\n.SH COMMANDS\n");
    for (int i = 0; commands[i] != NULL; i++) man_command(t, commands[i]);
    add(t, ".SH EXIT STATUS\n.nf\n");
    roff_text(t, exit_text);
    add(t, ".fi\n.SH ENVIRONMENT\n.TP\n.B DLMODEL_DATA\ndirectory of data files\n.TP\n.B DLMODEL_LOCAL\npath of the profile "
           "that calibrate writes and 'local' names\n.TP\n.B NO_COLOR\nno colour when set\n");
}

static void completion(struct text *t, const struct dl_command *const *commands) {
    add(t, "_dlmodel() {\n  local cur=${COMP_WORDS[COMP_CWORD]} cmd= i\n"
           "  for ((i = 1; i < COMP_CWORD; i++)); do\n    case ${COMP_WORDS[i]} in -*) ;; *) cmd=${COMP_WORDS[i]}; break ;; esac\n  done\n"
           "  case $cmd in\n");
    for (int i = 0; commands[i] != NULL; i++) {
        add(t, dl_arena_printf(t->arena, "    %s) COMPREPLY=($(compgen -W \"", commands[i]->name));
        for (int k = 0; commands[i]->options[k] != NULL; k++) {
            for (const struct dl_option *o = commands[i]->options[k]; o->name != NULL; o++) {
                add(t, dl_arena_printf(t->arena, "--%s ", o->name));
            }
        }
        add(t, "\" -- \"$cur\") $(compgen -f -- \"$cur\")) ;;\n");
    }
    add(t, "    *) COMPREPLY=($(compgen -W \"");
    for (int i = 0; commands[i] != NULL; i++) add(t, dl_arena_printf(t->arena, "%s ", commands[i]->name));
    add(t, "\" -- \"$cur\")) ;;\n  esac\n}\ncomplete -F _dlmodel dlmodel\n");
}

static enum dl_code run(struct dl_context *context, const struct dl_options *options, struct dl_err *err) {
    struct text t = {.arena = context->arena};
    const char *shell = dl_option_text(options, "completion");
    if (dl_option_given(options, "man")) {
        man_page(&t, context->commands);
    } else if (shell != NULL) {
        if (strcmp(shell, "bash") != 0) return dl_fail(err, DL_ERR_USAGE, "--completion: expected bash, got \"%s\"", shell);
        completion(&t, context->commands);
    } else if (options->positional_count == 0) {
        overview(&t, context->commands);
    } else {
        int i = 0;
        while (context->commands[i] != NULL && strcmp(context->commands[i]->name, options->positional[0]) != 0) i++;
        if (context->commands[i] == NULL) {
            return dl_fail(err, DL_ERR_USAGE, "no command '%s'; see 'dlmodel help'", options->positional[0]);
        }
        command_help(&t, context->commands[i]);
    }
    return context->output(options, t.text, err);
}

const struct dl_command dl_cmd_help = {
    .name = "help",
    .summary = "help on a command, the man page, completion",
    .usage = "[COMMAND] [--man | --completion bash]",
    .purpose = "Without arguments lists the commands; with a command explains it.",
    .examples = examples,
    .options = tables,
    .run = run,
};
