/* manual_zsh.c - the completion for zsh, from the tables of commands and options. */
#include <ctype.h>
#include <string.h>

#include "predict/manual/manual.h"

/* Text inside single quotes of zsh, and inside the brackets of _arguments. */
static void quoted(struct dl_text *t, const char *text) {
    char piece[3] = {0};
    for (; *text != 0; text++) {
        if (*text == '\'')
            dl_text_add(t, "'\\''");
        else if (strchr("[]:\\", *text) != NULL) {
            piece[0] = '\\', piece[1] = *text;
            dl_text_add(t, piece);
        } else {
            piece[0] = *text, piece[1] = 0;
            dl_text_add(t, piece);
        }
    }
}

static bool has_upper(const char *text) {
    for (; *text != 0; text++) {
        if (isupper((unsigned char)*text)) return true;
    }
    return false;
}

/* The completion of an option's value. */
static const char *action_of(struct dl_arena *arena, const struct dl_option *o) {
    static const char *const kinds[] = {"system", "workload", "framework", NULL};
    for (int i = 0; kinds[i] != NULL; i++) {
        if (strcmp(o->name, kinds[i]) == 0)
            return dl_arena_printf(arena, "_dlmodel_names %ss", kinds[i]);
    }
    if (strcmp(o->name, "strategy") == 0) return "_dlmodel_names strategies";
    if (strcmp(o->argument, "DIR") == 0) return "_files -/";
    if (strstr(o->argument, "FILE") != NULL) return "_files";
    if (strchr(o->argument, '|') == NULL || has_upper(o->argument)) return " ";
    char *words = dl_arena_printf(arena, "(%s)", o->argument);
    for (char *c = words; c != NULL && *c != 0; c++) {
        if (*c == '|') *c = ' ';
    }
    return words;
}

static void option(struct dl_text *t, const struct dl_option *o) {
    for (int form = o->letter != 0 ? 0 : 1; form < 2; form++) {
        dl_text_printf(t, " \\\n        '%s", dl_option_repeatable(o) ? "*" : "");
        dl_text_add(
            t, form == 0
                   ? dl_arena_printf(t->arena, "-%c%s", o->letter, o->argument != NULL ? "+" : "")
                   : dl_arena_printf(t->arena, "--%s%s", o->name, o->argument != NULL ? "=" : ""));
        dl_text_add(t, "[");
        quoted(t, o->help);
        dl_text_add(t, "]");
        if (o->argument != NULL) {
            dl_text_add(t, ":");
            quoted(t, o->argument);
            dl_text_printf(t, ":%s", action_of(t->arena, o));
        }
        dl_text_add(t, "'");
    }
}

static void options(struct dl_text *t, const struct dl_option *list) {
    for (const struct dl_option *o = list; o != NULL && o->name != NULL; o++) option(t, o);
}

void dl_manual_zsh(struct dl_text *t, const struct dl_context *context) {
    dl_text_add(
        t,
        "#compdef dlmodel\n# zsh completion of dlmodel, made by: dlmodel help --completion zsh\n\n"
        "_dlmodel_names() {\n  local -a names\n  names=(${(f)\"$(dlmodel list $argv[-1] --csv "
        "2>/dev/null | tail -n +2 | cut -d, -f1)\"})\n"
        "  _alternative 'names:name:compadd -a names' 'files:file:_files'\n}\n\n"
        "_dlmodel() {\n  local -a commands\n  local state line\n  commands=(\n");
    for (int i = 0; context->commands[i] != NULL; i++) {
        dl_text_printf(t, "    '%s:", context->commands[i]->name);
        quoted(t, context->commands[i]->summary);
        dl_text_add(t, "'\n");
    }
    dl_text_add(t, "  )\n  _arguments -C");
    options(t, context->global_options);
    dl_text_add(t,
                " \\\n        '1:command:->command' '*::argument:->argument'\n  case $state in\n"
                "    command) _describe 'command' commands ;;\n    argument) case $line[1] in\n");
    for (int i = 0; context->commands[i] != NULL; i++) {
        const struct dl_command *c = context->commands[i];
        dl_text_printf(t, "      %s) _arguments", c->name);
        for (int k = 0; c->options[k] != NULL; k++) options(t, c->options[k]);
        if (c->words != NULL) dl_text_printf(t, " \\\n        '1:kind:(%s)'", c->words);
        dl_text_add(t, strcmp(c->name, "help") == 0
                           ? " \\\n        '*:command:{_describe command commands}' ;;\n"
                           : " \\\n        '*:file:_files' ;;\n");
    }
    dl_text_add(t, "    esac ;;\n  esac\n}\n\nif [ \"$funcstack[1]\" = \"_dlmodel\" ]; then "
                   "_dlmodel \"$@\"; else compdef _dlmodel dlmodel; fi\n");
}
