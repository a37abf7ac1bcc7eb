/* manual.c - the man page and the bash completion from the tables of commands and options. */
#include "predict/manual/manual.h"

#include <ctype.h>
#include <string.h>

/* Escapes text for roff, where backslashes, hyphens and the first character of a line are
 * special. */
static void roff(struct dl_text *t, const char *text) {
    char piece[2] = {0};
    bool start = true;
    for (; *text != 0; text++) {
        if (start && (*text == '.' || *text == '\'')) dl_text_add(t, "\\&");
        start = *text == '\n';
        if (*text == '\\')
            dl_text_add(t, "\\e");
        else if (*text == '-')
            dl_text_add(t, "\\-");
        else {
            piece[0] = *text;
            dl_text_add(t, piece);
        }
    }
}

/* A usage is ragged, without hyphenation, and may break after each |: a long list of kinds has no
 * spaces. */
static void man_usage(struct dl_text *t, const struct dl_command *c) {
    const char *usage = c->usage;
    const char *bar;
    dl_text_add(t, ".ad l\n.nh\n.B dlmodel\n[global options] ");
    dl_text_printf(t, "%s ", c->name);
    while ((bar = strchr(usage, '|')) != NULL) {
        roff(t, dl_arena_printf(t->arena, "%.*s", (int)(bar + 1 - usage), usage));
        dl_text_add(t, "\\:");
        usage = bar + 1;
    }
    roff(t, usage);
    dl_text_add(t, "\n.hy\n.ad b\n");
}

static void man_options(struct dl_text *t, const struct dl_option *options) {
    for (const struct dl_option *o = options; o != NULL && o->name != NULL; o++) {
        const char *usage = dl_option_usage(t->arena, o);
        dl_text_add(t, ".TP\n.B ");
        roff(t, usage + strspn(usage, " "));
        dl_text_add(t, "\n");
        roff(t, o->help);
        dl_text_add(t, "\n");
    }
}

/* Unchanged lines, without the first (a heading). */
static void man_lines(struct dl_text *t, const char *text) {
    const char *body = strchr(text, '\n');
    dl_text_add(t, ".nf\n");
    roff(t, body == NULL ? text : body + 1);
    dl_text_add(t, ".fi\n");
}

static void head(struct dl_text *t, const char *title) {
    char *upper = dl_arena_strdup(t->arena, title);
    for (char *c = upper; c != NULL && *c != 0; c++) *c = (char)toupper((unsigned char)*c);
    dl_text_add(t, ".TH ");
    roff(t, upper);
    dl_text_add(t, " 1 \"\" \"");
    roff(t, dl_version_text);
    dl_text_add(t, "\"\n.SH NAME\n");
}

/* The option of a table or of those after it that follows, or NULL. k: the table. */
static const struct dl_option *following(const struct dl_command *c, int *k,
                                         const struct dl_option *o) {
    if (o != NULL) o++;
    while (o == NULL || o->name == NULL) {
        if (o != NULL) ++*k;
        o = c->options[*k];
        if (o == NULL) return NULL;
    }
    return o;
}

int dl_option_list(const struct dl_command *command, const struct dl_option *list[DL_MAX_OPTIONS]) {
    int k = 0, count = 0;
    for (const struct dl_option *o = following(command, &k, NULL); o != NULL;
         o = following(command, &k, o)) {
        int j = 0;
        const struct dl_option *p = following(command, &j, NULL);
        while (strcmp(p->group, o->group) != 0) p = following(command, &j, p);
        if (p != o) continue; /* listed with the first option of its group */
        for (; p != NULL && count < DL_MAX_OPTIONS; p = following(command, &j, p))
            if (strcmp(p->group, o->group) == 0) list[count++] = p;
    }
    return count;
}

void dl_option_each(struct dl_text *text, const struct dl_command *command,
                    void (*each)(struct dl_text *, const struct dl_option *, bool first)) {
    const struct dl_option *list[DL_MAX_OPTIONS];
    const int count = dl_option_list(command, list);
    for (int i = 0; i < count; i++)
        each(text, list[i], i == 0 || strcmp(list[i]->group, list[i - 1]->group) != 0);
}

/* An option under the heading of its group. */
static void man_option(struct dl_text *t, const struct dl_option *o, bool first) {
    const struct dl_option one[] = {*o, {.name = NULL}};
    if (first) {
        dl_text_add(t, ".SS ");
        roff(t, o->group);
        dl_text_add(t, "\n");
    }
    man_options(t, one);
}

/* Paragraphs, one a line. */
static void man_paragraphs(struct dl_text *t, const char *text) {
    for (size_t length; *text != 0; text += length + (text[length] != 0 ? 1 : 0)) {
        length = strcspn(text, "\n");
        roff(t, dl_arena_printf(t->arena, "%.*s", (int)length, text));
        dl_text_add(t, text[length] != 0 ? "\n.PP\n" : "\n");
    }
}

static void examples(struct dl_text *t, const struct dl_command *c) {
    dl_text_add(t, ".SH EXAMPLES\n.nf\n");
    for (int i = 0; c->examples[i] != NULL; i++) {
        roff(t, c->examples[i]);
        dl_text_add(t, "\n");
    }
    dl_text_add(t, ".fi\n");
}

void dl_manual_command(struct dl_text *t, const struct dl_context *context,
                       const struct dl_command *c) {
    head(t, dl_arena_printf(t->arena, "dlmodel-%s", c->name));
    roff(t, dl_arena_printf(t->arena, "dlmodel-%s", c->name));
    dl_text_add(t, " \\- ");
    roff(t, c->summary);
    dl_text_add(t, "\n.SH SYNOPSIS\n");
    man_usage(t, c);
    dl_text_add(t, ".SH DESCRIPTION\n");
    man_paragraphs(t, c->purpose);
    if (c->instead != NULL) {
        dl_text_add(t, ".PP\n");
        man_paragraphs(t, c->instead);
    }
    dl_text_add(t, ".SH OPTIONS\n");
    dl_option_each(t, c, man_option);
    dl_text_add(t, ".PP\nGlobal options (\\-q, \\-v, \\-\\-color, \\-\\-data): see dlmodel(1).\n");
    examples(t, c);
    dl_text_add(t, ".SH EXIT STATUS\n");
    man_lines(t, dl_exit_text);
    if (c->exit_notes != NULL) {
        dl_text_add(t, ".PP\nHere: ");
        roff(t, c->exit_notes);
        dl_text_add(t, ".\n");
    }
    dl_text_add(t, ".SH SEE ALSO\n.BR dlmodel (1)");
    for (int i = 0; context->commands[i] != NULL; i++) {
        if (context->commands[i] == c) continue;
        dl_text_add(t, ",\n.BR ");
        roff(t, dl_arena_printf(t->arena, "dlmodel-%s", context->commands[i]->name));
        dl_text_add(t, " (1)");
    }
    dl_text_add(t, "\n");
}

void dl_manual_page(struct dl_text *t, const struct dl_context *context, const char *environment) {
    head(t, "dlmodel");
    dl_text_add(
        t, "dlmodel \\- predict how training of deep networks scales on clusters\n.SH SYNOPSIS\n"
           ".B dlmodel\n[global options] COMMAND [options]\n.SH DESCRIPTION\nPredicts time and "
           "memory of distributed "
           "training from the physics of devices and links, calibrates a node, compares with "
           "measured runs and "
           "plots. Results go to standard output, messages to standard error.\n.SH COMMANDS\n");
    for (int i = 0; context->commands[i] != NULL; i++) {
        dl_text_add(t, ".TP\n.BR ");
        roff(t, dl_arena_printf(t->arena, "dlmodel-%s", context->commands[i]->name));
        dl_text_add(t, " (1)\n");
        roff(t, context->commands[i]->summary);
        dl_text_add(t, "\n");
    }
    dl_text_add(t, ".SH GLOBAL OPTIONS\n");
    man_options(t, context->global_options);
    dl_text_add(t, ".SH OUTPUT OPTIONS\nOf most commands:\n");
    man_options(t, dl_output_options);
    dl_text_add(t, ".SH EXAMPLES\n.nf\n");
    for (int i = 0; context->commands[i] != NULL; i++) {
        roff(t, context->commands[i]->examples[0]);
        dl_text_add(t, "\n");
    }
    dl_text_add(t, ".fi\n.SH EXIT STATUS\n");
    man_lines(t, dl_exit_text);
    dl_text_add(t, ".SH ENVIRONMENT\n");
    man_lines(t, environment);
}

/* "table|csv|json" is a list of words to complete, "NAME|FILE" and "N|max" are not. */
static bool is_choice(const char *argument) {
    if (argument == NULL || strchr(argument, '|') == NULL) return false;
    for (; *argument != 0; argument++) {
        if (isupper((unsigned char)*argument)) return false;
    }
    return true;
}

static const char *spaced(struct dl_arena *arena, const char *choices) {
    char *text = dl_arena_strdup(arena, choices);
    for (char *c = text; c != NULL && *c != 0; c++) {
        if (*c == '|') *c = ' ';
    }
    return text;
}

/* Cases of `$prev`: words of choices, of each option once. */
static void complete_values(struct dl_text *t, const struct dl_context *context) {
    const char *done[64];
    int count = 0;
    for (int i = 0; context->commands[i] != NULL; i++) {
        for (int k = 0; context->commands[i]->options[k] != NULL; k++) {
            for (const struct dl_option *o = context->commands[i]->options[k]; o->name != NULL;
                 o++) {
                bool again = !is_choice(o->argument) || count == 64;
                for (int d = 0; d < count && !again; d++) again = strcmp(done[d], o->name) == 0;
                if (again) continue;
                done[count++] = o->name;
                dl_text_printf(t, "    --%s) words='%s' ;;\n", o->name,
                               spaced(t->arena, o->argument));
            }
        }
    }
}

void dl_manual_completion(struct dl_text *t, const struct dl_context *context) {
    dl_text_add(
        t, "# bash completion of dlmodel, made by: dlmodel help --completion bash\n_dlmodel() {\n"
           "  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} cmd= words= i\n"
           "  for ((i = 1; i < COMP_CWORD; i++)); do\n"
           "    case ${COMP_WORDS[i]} in --data|--color) ((i++)) ;; -*) ;; *) "
           "cmd=${COMP_WORDS[i]}; break ;; esac\n"
           "  done\n  case $prev in\n");
    static const char *const kinds[] = {"system", "workload", "framework", NULL};
    for (int i = 0; kinds[i] != NULL; i++) {
        dl_text_printf(t,
                       "    --%s|-%c) words=\"$(\"${COMP_WORDS[0]}\" list %ss --csv 2>/dev/null | "
                       "tail -n +2 | cut -d, -f1)\" ;;\n",
                       kinds[i], kinds[i][0], kinds[i]);
    }
    dl_text_add(t, "    --strategy) words=\"$(\"${COMP_WORDS[0]}\" list strategies --csv "
                   "2>/dev/null | tail -n +2 | cut -d, -f1)\" ;;\n");
    complete_values(t, context);
    dl_text_add(t, "    *) case $cmd in\n");
    for (int i = 0; context->commands[i] != NULL; i++) {
        const struct dl_command *c = context->commands[i];
        dl_text_printf(t, "      %s) words='", c->name);
        if (c->words != NULL) dl_text_printf(t, "%s ", c->words);
        for (int n = 0; strcmp(c->name, "help") == 0 && context->commands[n] != NULL; n++) {
            dl_text_printf(t, "%s ", context->commands[n]->name);
        }
        for (int k = 0; c->options[k] != NULL; k++) {
            for (const struct dl_option *o = c->options[k]; o->name != NULL; o++) {
                dl_text_printf(t, "--%s ", o->name);
            }
        }
        dl_text_add(t, "' ;;\n");
    }
    dl_text_add(t, "      *) words='");
    for (int i = 0; context->commands[i] != NULL; i++) {
        dl_text_printf(t, "%s ", context->commands[i]->name);
    }
    for (const struct dl_option *o = context->global_options; o != NULL && o->name != NULL; o++) {
        dl_text_printf(t, "--%s ", o->name);
    }
    dl_text_add(t, "' ;;\n    esac ;;\n  esac\n  COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n"
                   "  [[ ${#COMPREPLY[@]} -eq 0 ]] && COMPREPLY=($(compgen -f -- \"$cur\"))\n}\n"
                   "complete -o filenames -F _dlmodel dlmodel\n");
}
