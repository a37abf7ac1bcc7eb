/* run_launch.c - the program that a script starts: its arguments, and how many devices its launcher
 * gives it. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "import/run/imported_run.h"
#include "model/core/file.h"

const char *dl_paired(const struct dl_word_pair *pairs, const char *word) {
    const size_t size = strlen(word);
    for (; pairs->theirs != NULL; pairs++)
        for (const char *at = pairs->theirs; at != NULL; at = strchr(at, '|')) {
            at += *at == '|';
            if (strcspn(at, "|") == size && strncasecmp(at, word, size) == 0) return pairs->ours;
        }
    return NULL;
}

/* ---- launchers ---- */

/* The number that a word begins with, the last of "1:4"; NAN: none. */
static double number_of(const char *text) {
    const char *colon = strrchr(text, ':');
    char *end;
    if (colon != NULL) text = colon + 1;
    const double value = strtod(text, &end);
    return end != text && value >= 1 && value <= 1e7 ? value : NAN;
}

enum place { NODES, PER_NODE, RANKS, TASKS_PER_NODE, GPUS_PER_NODE, PLACES };

static const struct option {
    const char *launchers; /* "": any */
    const char *names;     /* with underscores */
    enum place place;
} options[] = {
    {"", "nnodes num_nodes num_machines", NODES},
    {"", "nproc_per_node num_gpus", PER_NODE},
    {"srun sbatch salloc", "N nodes", NODES},
    {"srun sbatch salloc", "n ntasks", RANKS},
    {"srun sbatch salloc", "ntasks_per_node", TASKS_PER_NODE},
    {"srun sbatch salloc", "gpus_per_node gres", GPUS_PER_NODE},
    {"accelerate", "num_processes", RANKS},
    {"mpirun mpiexec horovodrun orterun", "np n num_proc", RANKS},
    {"mpirun mpiexec orterun", "npernode ppn", PER_NODE},
    {"composer", "n nproc", PER_NODE},
    {"composer", "world_size", RANKS},
};

static const char *underscored(struct dl_arena *arena, const char *name, size_t length) {
    char *plain = dl_arena_strndup(arena, name, length);
    for (char *c = plain; *c != '\0'; c++) *c = *c == '-' ? '_' : *c;
    return plain;
}

/* Returns whether the launcher has the option. */
static bool take_option(const char *launcher, const char *name, const char *value, double *places) {
    bool known = false;
    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++) {
        const struct option *o = &options[i];
        if (!dl_has_word(o->names, name)) continue;
        if (o->launchers[0] != '\0' && !dl_has_word(o->launchers, launcher)) continue;
        places[o->place] = number_of(value);
        known = true;
    }
    return known;
}

/* Notes an unknown launcher option that resembles one that sets the number of devices: without the
 * note, a misspelling would silently change the plan. */
static void note_misspelled(struct dl_run *run, const char *name) {
    static const char *const devices[] = {
        "nnodes", "num-nodes",       "num-machines",  "nodes",    "nproc-per-node", "num-gpus",
        "ntasks", "ntasks-per-node", "gpus-per-node", "num-proc", "num-processes",  NULL};
    static const char others[] = "nodelist node_rank nodefile gpus_per_task gpus_per_socket "
                                 "ntasks_per_core ntasks_per_socket ntasks_per_gpu";
    char *dashed = dl_arena_strdup(run->arguments.arena, name);
    for (char *c = dashed; *c != '\0'; c++) *c = *c == '_' ? '-' : *c;
    const char *near = strlen(name) > 4 ? dl_suggest(dashed, devices) : NULL;
    if (near == NULL || strcmp(near, dashed) == 0 ||
        dl_has_word(others, underscored(run->arguments.arena, name, strlen(name))))
        return;
    dl_arguments_note(&run->arguments,
                      "devices: the launcher has no option --%s and it was not read; did you mean "
                      "--%s?",
                      name, near);
}

static bool is_launcher(const char *word) {
    return dl_has_word("srun sbatch salloc accelerate mpirun mpiexec orterun horovodrun composer "
                       "torchrun deepspeed jsrun",
                       dl_base_name(word));
}

static bool has_option(const struct dl_shell_list *words, int count, const char *start) {
    for (int i = 0; i < count; i++)
        if (strncmp(words->texts[i], start, strlen(start)) == 0) return true;
    return false;
}

/* One task of a node may start the others. */
static double each_of(double tasks, double gpus) {
    return dl_known(tasks) && !(tasks == 1 && gpus > 1) ? tasks : gpus;
}

static void take_places(struct dl_run *run, const double *p) {
    const double each =
        dl_known(p[PER_NODE]) ? p[PER_NODE] : each_of(p[TASKS_PER_NODE], p[GPUS_PER_NODE]);
    if (dl_known(p[NODES])) run->nodes = p[NODES];
    if (dl_known(each)) run->per_node = each;
    if (dl_known(p[RANKS]) && !dl_known(run->ranks)) run->ranks = p[RANKS];
}

void dl_launch_options(struct dl_run *run, const struct dl_shell_list *words, int count) {
    double p[PLACES];
    const char *launcher = "";
    bool torch = false;
    for (int i = 0; i < PLACES; i++) p[i] = NAN;
    for (int i = 0; i < count; i++) {
        const char *word = words->texts[i], *equals = strchr(word, '=');
        if (is_launcher(word)) launcher = dl_base_name(word);
        torch = torch || strcmp(dl_base_name(word), "torchrun") == 0 ||
                strncmp(word, "torch.distributed", 17) == 0;
        if (word[0] != '-') continue;
        const char *name = word + strspn(word, "-");
        if (equals != NULL)
            name = dl_arena_strndup(run->arguments.arena, name, (size_t)(equals - name));
        const char *value = equals != NULL ? equals + 1 : i + 1 < count ? words->texts[i + 1] : "";
        const char *plain = underscored(run->arguments.arena, name, strlen(name));
        if (!take_option(launcher, plain, value, p)) note_misspelled(run, name);
    }
    run->launcher = launcher[0] != '\0' ? launcher : NULL;
    run->one_device = launcher[0] == '\0' && !torch;
    if (torch && !dl_known(run->nodes)) { /* its defaults, unless Slurm gives the nodes */
        if (!has_option(words, count, "--nnodes")) p[NODES] = 1;
        if (!has_option(words, count, "--nproc")) p[PER_NODE] = 1;
    }
    if (torch || strcmp(launcher, "deepspeed") == 0) p[RANKS] = NAN;
    take_places(run, p);
}

/* What Slurm sets, or the script for itself: the first of the variables that is a number. */
static double variable(const struct dl_shell *shell, const char *names) {
    size_t length;
    for (const char *name; (name = dl_word_next(&names, " ", &length)) != NULL;) {
        const char *text = dl_shell_get(shell, dl_arena_strndup(shell->arena, name, length));
        const double value = text != NULL ? number_of(text) : NAN;
        if (dl_known(value)) return value;
    }
    return NAN;
}

static void from_job(struct dl_run *run, const struct dl_shell *shell) {
    run->nodes = variable(shell, "SLURM_NNODES");
    run->per_node =
        each_of(variable(shell, "SLURM_NTASKS_PER_NODE"), variable(shell, "SLURM_GPUS_PER_NODE"));
    if (!dl_known(run->nodes) || !dl_known(run->per_node))
        run->ranks = variable(shell, "SLURM_NTASKS SLURM_GPUS");
}

/* The number of devices that the script computes with, where its launcher leaves it to a list of
 * hosts. */
static void from_script(struct dl_run *run, const struct dl_shell *shell) {
    if (run->one_device) return;
    if (!dl_known(run->per_node))
        run->per_node =
            variable(shell, "GPUS_PER_NODE NPROC_PER_NODE GPN NUM_GPUS_PER_NODE num_gpus_pernode");
    if (!dl_known(run->nodes)) run->nodes = variable(shell, "NNODES NUM_NODES NODES N_NODES");
    if (dl_known(run->ranks) || (dl_known(run->nodes) && dl_known(run->per_node))) return;
    const double value = variable(shell, "WORLD_SIZE NUM_GPUS N_GPUS NGPUS num_gpus TOTAL_GPUS");
    if (!dl_known(value)) return;
    run->ranks = value;
    dl_arguments_note(&run->arguments, "devices: %.0f, from a variable of the script", value);
}

void dl_launch_devices(struct dl_run *run, double least) {
    struct dl_arguments *a = &run->arguments;
    if (!dl_known(run->ranks) && !(dl_known(run->nodes) && dl_known(run->per_node))) {
        const double each = dl_known(run->per_node) ? run->per_node : run->one_device ? 1 : 8;
        const double nodes = dl_known(run->nodes) ? run->nodes : fmax(1, ceil(least / each));
        if (!run->one_device)
            dl_arguments_note(a,
                              "devices: the file does not say on how many it runs; %.0f node%s of "
                              "%.0f taken (--ranks N gives another number)",
                              nodes, nodes > 1 ? "s" : "", each);
        run->nodes = nodes;
        run->per_node = each;
    }
    if (!dl_known(run->ranks)) {
        run->ranks = run->nodes * run->per_node;
        if (fmod(run->ranks, least) != 0) {
            const double nodes = ceil(ceil(run->ranks / least) * least / run->per_node);
            dl_arguments_note(a,
                              "devices: its degrees do not fit on %.0f node%s of %.0f; %.0f taken "
                              "(--ranks N gives another number)",
                              run->nodes, run->nodes > 1 ? "s" : "", run->per_node, nodes);
            run->nodes = nodes;
            run->ranks = nodes * run->per_node;
        }
    }
    if (dl_known(run->nodes) && dl_known(run->per_node) &&
        run->nodes * run->per_node == run->ranks) {
        dl_plan_words_add(run->out, "nodes", "%.0f", run->nodes);
        dl_plan_words_add(run->out, "devices-per-node", "%.0f", run->per_node);
    } else {
        dl_plan_words_add(run->out, "gpus", "%.0f", run->ranks);
    }
}

/* ---- the program ---- */

/* The program among the words, a script or a module of Python; count: none. */
static int program_at(const struct dl_shell_list *words) {
    for (int i = 0; i < words->count; i++) {
        if (dl_ends_in(words->texts[i], ".py")) return i;
        if (i > 0 && strcmp(words->texts[i - 1], "-m") == 0 &&
            strncmp(words->texts[i], "torch.distributed", 17) != 0)
            return i;
    }
    return words->count;
}

static int options_of(const struct dl_shell_list *words, int from) {
    int count = 0;
    for (int i = from; i < words->count; i++)
        count += strncmp(words->texts[i], "--", 2) == 0 || strchr(words->texts[i], '=') != NULL;
    return count;
}

/* The first command that starts a program with arguments; with several that differ, a note. */
static const struct dl_shell_command *training(struct dl_run *run, const struct dl_shell *shell) {
    const struct dl_shell_command *found = NULL;
    int others = 0;
    for (int i = 0; i < shell->command_count; i++) {
        const struct dl_shell_command *c = &shell->commands[i];
        const int at = program_at(&c->words);
        if (at == c->words.count) continue;
        const bool trains = strstr(c->words.texts[at], "train") != NULL ||
                            strstr(c->words.texts[at], "finetune") != NULL;
        const int count = options_of(&c->words, at);
        const bool more = found == NULL ||
                          (count >= 4 && options_of(&found->words, program_at(&found->words)) < 4);
        if (count < (trains ? 1 : 4)) continue;
        if (more)
            found = c;
        else
            others += c->line != found->line;
    }
    if (others > 0)
        dl_arguments_note(&run->arguments,
                          "the script starts %d programs; the first is taken, at "
                          "line %d",
                          others + 1, found->line);
    return found;
}

static bool is_option(const char *word) { return strncmp(word, "--", 2) == 0 && word[2] != '\0'; }

/* Arguments of several words (argparse's nargs "*"). */
static bool takes_words(const char *name) {
    return dl_has_word("recompute_modules cuda_graph_scope cuda_graph_modules offload_modules",
                       name);
}

/* The words after words[*at] that are no options, with blanks between them. */
static const char *words_after(struct dl_arena *arena, const struct dl_shell_list *words, int *at) {
    struct dl_text all = {.arena = arena};
    while (*at + 1 < words->count && words->texts[*at + 1][0] != '-' &&
           strchr(words->texts[*at + 1], '=') == NULL) {
        const char *word = words->texts[++*at];
        dl_text_printf(&all, "%s%s", all.length > 0 ? " " : "", dl_shell_shown(arena, word));
    }
    return dl_text_string(&all);
}

/* "--name value", "--name=value", "--flag", "name=value". */
static enum dl_code add_words(struct dl_run *run, const struct dl_shell_list *words, int from,
                              int line) {
    struct dl_arguments *a = &run->arguments;
    for (int i = from; i < words->count; i++) {
        const char *word = words->texts[i], *equals = strchr(word, '=');
        if (!is_option(word)) {
            if (equals == NULL || equals == word || word[0] == '-' || strchr(word, ' ') != NULL)
                continue;
            const char *name = dl_arena_strndup(a->arena, word, (size_t)(equals - word));
            DL_TRY(dl_arguments_add(a, name + strspn(name, "+"),
                                    dl_shell_shown(a->arena, equals + 1), line, run->err));
            continue;
        }
        const char *name = word + 2, *value = NULL;
        size_t length = strlen(name);
        if (takes_words(underscored(a->arena, name, length))) {
            DL_TRY(dl_arguments_add(a, underscored(a->arena, name, length),
                                    words_after(a->arena, words, &i), line, run->err));
            continue;
        }
        if (equals != NULL && equals > name) {
            length = (size_t)(equals - name);
            value = equals + 1;
        } else if (i + 1 < words->count && !is_option(words->texts[i + 1])) {
            value = words->texts[++i];
        }
        /* a variable that nothing sets, alone: after a flag it may be no value at all */
        if (value != NULL) value = dl_shell_shown(a->arena, value);
        DL_TRY(dl_arguments_add(a, underscored(a->arena, name, length), value, line, run->err));
    }
    return DL_OK;
}

/* The words of a text. */
static void push_words(struct dl_arena *arena, struct dl_shell_list *out, const char *text) {
    size_t length;
    for (const char *word; (word = dl_word_next(&text, " \t\n", &length)) != NULL;)
        dl_shell_push(arena, out, dl_arena_strndup(arena, word, length));
}

/* A file of variables with arguments, which another script starts. */
static enum dl_code add_variables(struct dl_run *run, const struct dl_shell *shell) {
    struct dl_shell_list all = {NULL, 0};
    for (int i = 0; i < shell->variable_count; i++) {
        const struct dl_shell_variable *v = &shell->variables[i];
        for (int k = 0; k < v->values.count; k++) {
            const char *at = v->values.texts[k];
            if (strstr(at, "--") == NULL) {
                if (all.count > 0 && v->values.count > 1) dl_shell_push(shell->arena, &all, at);
                continue;
            }
            push_words(shell->arena, &all, at);
        }
    }
    dl_launch_options(run, &all, all.count);
    DL_TRY(add_words(run, &all, 0, 1));
    for (int i = 0; i < shell->command_count; i++) { /* words without a program */
        const struct dl_shell_command *c = &shell->commands[i];
        if (!is_option(c->words.texts[0])) continue;
        dl_launch_options(run, &c->words, c->words.count);
        DL_TRY(add_words(run, &c->words, 0, c->line));
    }
    run->one_device = false;
    return DL_OK;
}

/* ---- the script ---- */

/* A file that the script includes, in the folder of the script or below. */
static const char *read_near(void *data, const char *name, size_t *length) {
    const struct dl_run_source *source = data;
    const char *slash = strrchr(source->path, '/');
    struct dl_arena *arena = source->context->arena;
    struct dl_err ignored;
    char *text;
    while (strncmp(name, "./", 2) == 0) name += 2;
    if (slash != NULL && strncmp(name, source->path, (size_t)(slash + 1 - source->path)) == 0)
        name += slash + 1 - source->path;
    if (source->alone || name[0] == '/' || strstr(name, "..") != NULL ||
        dl_shell_shown(arena, name) != name)
        return NULL;
    const char *path =
        slash == NULL
            ? name
            : dl_arena_printf(arena, "%.*s%s", (int)(slash + 1 - source->path), source->path, name);
    return dl_data_read(&source->context->data, path, 4 << 20, arena, &text, length, &ignored) ==
                   DL_OK
               ? text
               : NULL;
}

/* The DeepSpeed configuration that the arguments name: written by the script, or a file in the
 * script's folder. */
static enum dl_code add_deepspeed(const struct dl_run_source *source, struct dl_run *run,
                                  const struct dl_shell *shell) {
    struct dl_arguments *a = &run->arguments;
    const char *name = dl_arguments_word(a, "deepspeed_config|deepspeed", NULL), *text = NULL;
    size_t length = 0;
    if (name == NULL) return DL_OK;
    for (int i = 0; i < shell->file_count; i++) {
        if (strcmp(dl_shell_shown(a->arena, shell->files[i].path), name) != 0) continue;
        text = shell->files[i].text;
        length = strlen(text);
    }
    if (text == NULL) text = read_near((void *)source, name, &length);
    if (text == NULL) {
        dl_arguments_note(a,
                          "the configuration of DeepSpeed, \"%.100s\", is not there: what it says "
                          "is not taken",
                          name);
        return DL_OK;
    }
    struct dl_err broken;
    if (dl_run_add_json(name, text, length, a, &broken) != DL_OK)
        dl_arguments_note(
            a, "the configuration of DeepSpeed, \"%.60s\", is not taken: line %d: %.200s", name,
            broken.line, broken.message);
    return DL_OK;
}

/* Numbers that ${NAME:-N} took, ports and ranks aside. */
static void note_defaults(struct dl_run *run, const struct dl_shell *shell) {
    struct dl_text names = {.arena = shell->arena};
    for (int i = 0; i < shell->defaults.count; i++) {
        const char *text = shell->defaults.texts[i], *value = strchr(text, '=') + 1;
        if (!dl_known(number_of(value)) || strstr(text, "PORT") != NULL ||
            strstr(text, "RANK") != NULL || strstr(text, "CUDA_DEVICE_MAX") != NULL)
            continue;
        dl_text_printf(&names, "%s%s", names.length > 0 ? ", " : "", text);
    }
    if (names.length > 0)
        dl_arguments_note(&run->arguments,
                          "taken from the script's own defaults, as no --env "
                          "NAME=VALUE gives another: %.300s",
                          dl_text_string(&names));
}

/* "ENV MODEL_SIZE ...": the variables that take the script's arguments; NULL: none does. */
static const char *names_of_arguments(const struct dl_shell *shell) {
    struct dl_text names = {.arena = shell->arena};
    for (int number = 1;; number++) {
        const char *name = NULL, *mark = dl_arena_printf(shell->arena, "$%d", number);
        for (int i = 0; i < shell->variable_count && name == NULL; i++) {
            const struct dl_shell_variable *v = &shell->variables[i];
            if (v->values.count == 1 &&
                strcmp(dl_shell_shown(shell->arena, v->values.texts[0]), mark) == 0)
                name = v->name;
        }
        if (name == NULL) break;
        dl_text_printf(&names, "%s%s", number > 1 ? " " : "", name);
    }
    return names.length > 0 ? dl_text_string(&names) : NULL;
}

enum dl_code dl_run_read_script(const struct dl_run_source *source, struct dl_run *run) {
    struct dl_arena *arena = source->context->arena;
    struct dl_shell shell = {.arena = arena, .read = read_near, .data = (void *)source};
    dl_shell_set(&shell, "PWD", ".");
    dl_shell_set(&shell, "0", source->path);
    dl_shell_set(&shell, "BASH_SOURCE", source->path);
    for (const char *const *pair = source->environment; pair != NULL && *pair != NULL; pair++) {
        const char *equals = strchr(*pair, '=');
        dl_shell_set(&shell, dl_arena_strndup(arena, *pair, (size_t)(equals - *pair)), equals + 1);
    }
    if (source->arguments != NULL) {
        struct dl_shell_list words = {NULL, 0};
        push_words(arena, &words, source->arguments);
        dl_shell_arguments(&shell, &words);
    }
    DL_TRY(dl_shell_run(&shell, source->path, source->text, source->length, run->err));
    const struct dl_shell_command *c = training(run, &shell);
    if (source->arguments == NULL) run->script_arguments = names_of_arguments(&shell);
    from_job(run, &shell);
    if (c != NULL) {
        const int at = program_at(&c->words);
        run->program = dl_base_name(c->words.texts[at]);
        dl_launch_options(run, &c->words, at);
        DL_TRY(add_words(run, &c->words, at + 1, c->line));
        DL_TRY(add_deepspeed(source, run, &shell));
    } else {
        DL_TRY(add_variables(run, &shell));
    }
    from_script(run, &shell);
    for (int i = 0; i < shell.remarks.count; i++)
        dl_arguments_note(&run->arguments, "%s", shell.remarks.texts[i]);
    note_defaults(run, &shell);
    if (run->arguments.count > 0) return DL_OK;
    if (shell.missing.count > 0)
        return dl_fail_at(
            run->err, source->path, 1, 1, NULL,
            "no program with arguments; it includes \"%.80s\", which is not in its folder",
            dl_shell_shown(arena, shell.missing.texts[0]));
    return dl_fail_at(run->err, source->path, 1, 1, NULL,
                      "no program with arguments: expected a script that starts a training");
}
