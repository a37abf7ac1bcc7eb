/* plan_file.c - see the header. */
#include "predict/inputs/plan_file.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "import/file_kind.h"
#include "import/run/imported_run.h"
#include "model/catalog/node_class.h"
#include "model/core/text.h"

/* Options of which one replaces the others. */
static const char *const exclusive[][4] = {
    {"nodes", "gpus", NULL},
    {"batch-per-device", "global-batch", NULL},
    {"devices-per-node", "gpus", NULL},
    {"tokens", "epochs", NULL},
    {"cp", "spatial", NULL},
};

struct plan_file {
    struct dl_context *context;
    const struct dl_command *command;
    struct dl_options *options;
    const char *path;
    int given; /* options of the command line, before those of the file */
    struct dl_err *err;
};

static const char *own_value(const struct plan_file *p, const char *name) {
    for (int i = 0; i < p->given; i++)
        if (strcmp(p->options->given[i].option->name, name) == 0) return p->options->given[i].value;
    return NULL;
}

/* The option of the command line that excludes this one; NULL: none. */
static const char *excluded_by(const struct plan_file *p, const char *name) {
    for (size_t g = 0; g < sizeof exclusive / sizeof exclusive[0]; g++) {
        bool member = false;
        for (int i = 0; exclusive[g][i] != NULL; i++)
            member = member || strcmp(exclusive[g][i], name) == 0;
        for (int i = 0; member && exclusive[g][i] != NULL; i++)
            if (strcmp(exclusive[g][i], name) != 0 && own_value(p, exclusive[g][i]) != NULL)
                return exclusive[g][i];
    }
    return NULL;
}

static const struct dl_option *option_of(const struct plan_file *p, const char *name) {
    for (int t = 0; p->command->options[t] != NULL; t++)
        for (const struct dl_option *o = p->command->options[t]; o->name != NULL; o++)
            if (strcmp(o->name, name) == 0) return o;
    return NULL;
}

static enum dl_code add(struct plan_file *p, const char *name, const char *value) {
    const struct dl_option *option = option_of(p, name);
    const char *own = own_value(p, name), *other = excluded_by(p, name);
    struct dl_options *o = p->options;
    const bool flag = option != NULL && option->argument == NULL;
    if (option == NULL || (own != NULL && dl_option_repeatable(option))) own = NULL;
    if (option == NULL) {
        p->context->note(p->context, "%s: --%s has no part in %s", p->path, name, p->command->name);
        return DL_OK;
    }
    if (own != NULL || other != NULL) {
        if (other != NULL || (!flag && strcmp(own, value) != 0))
            p->context->note(p->context, "%s: --%s %s of the command line replaces --%s %s",
                             p->path, other != NULL ? other : name,
                             other != NULL ? own_value(p, other) : own, name,
                             value != NULL ? value : "");
        return DL_OK;
    }
    if (o->given_count == DL_MAX_REPEATS)
        return dl_fail(p->err, DL_ERR_USAGE, "--plan: more than %d options with those of %s",
                       (int)DL_MAX_REPEATS, p->path);
    o->given[o->given_count].option = option;
    o->given[o->given_count++].value = flag ? "" : value;
    return DL_OK;
}

/* Devices that the command line gives, on which the file's batch may depend; 0: none, or several
 * numbers. */
static enum dl_code own_devices(const struct plan_file *p, int64_t *out) {
    const char *gpus = own_value(p, "gpus"), *nodes = own_value(p, "nodes"),
               *each = own_value(p, "devices-per-node"), *system = own_value(p, "system");
    const struct dl_data *data = &p->context->data;
    const struct dl_system *loaded;
    struct dl_node_class of;
    *out = gpus != NULL ? strtoll(gpus, NULL, 10) : 0;
    if (gpus != NULL) return DL_OK;
    int64_t count = nodes != NULL ? strtoll(nodes, NULL, 10) : 0,
            per_node = each != NULL ? strtoll(each, NULL, 10) : 0;
    if (nodes != NULL && nodes[strspn(nodes, "0123456789")] != '\0') return DL_OK;
    if (system != NULL && dl_node_class_is(system) && dl_data_attachment(data, system) == NULL) {
        DL_TRY(dl_node_class_find(data, system, p->context->arena, &of, p->err));
        if (nodes == NULL) count = of.nodes;
        if (each == NULL) per_node = of.devices_per_node;
    }
    if (count > 0 && per_node == 0 && system != NULL) {
        DL_TRY(dl_data_system_alone(data, system, p->context->arena, &loaded, p->err));
        per_node = loaded->devices_per_node;
    }
    *out = count * per_node;
    return DL_OK;
}

static void note_names(const struct plan_file *p, const char *const *names, const char *what) {
    struct dl_text text = {.arena = p->context->arena};
    int count = 0;
    for (; names[count] != NULL; count++)
        dl_text_printf(&text, "%s%s", count > 0 ? ", " : "", names[count]);
    if (count > 0)
        p->context->note(p->context, "warning: %s: %s: %s", p->path, what, dl_text_string(&text));
}

/* The importer's words for a command that calls its --ranks otherwise. */
static void own_words(char *message) {
    for (char *at = message; (at = strstr(at, "--ranks")) != NULL; at += 6) {
        memcpy(at, "--gpus", 6);
        memmove(at + 6, at + 7, strlen(at + 7) + 1);
    }
}

static enum dl_code take_run(struct plan_file *p, const char *kind) {
    struct dl_import_asked asked = {.system = own_value(p, "system"),
                                    .workload = own_value(p, "workload"),
                                    .framework = own_value(p, "framework")};
    const struct dl_run_source file = {.path = p->path, .alone = p->context->data.names_only};
    struct dl_imported_run *imported = dl_arena_alloc(p->context->arena, 1, sizeof *imported);
    DL_TRY(own_devices(p, &asked.ranks));
    const enum dl_code code = dl_run_import(p->context, &file, kind, &asked, imported, p->err);
    own_words(p->err->message);
    DL_TRY(code);
    const struct dl_plan_words *w = imported->run.out;
    if (own_value(p, "workload") == NULL) DL_TRY(add(p, "workload", dl_text_string(w->workload)));
    if (own_value(p, "framework") == NULL) DL_TRY(add(p, "framework", w->framework));
    for (int i = 0; i < w->option_count; i++)
        DL_TRY(add(p, w->options[i].option, w->options[i].value));
    for (int i = 0; i < imported->run.arguments.remark_count; i++) {
        char *remark = dl_arena_strdup(p->context->arena, imported->run.arguments.remarks[i]);
        own_words(remark);
        p->context->note(p->context, "%s: %s", p->path, remark);
    }
    note_names(p, imported->lists.not_modelled, "not modelled, though it changes the prediction");
    if (asked.workload == NULL) /* else the arguments of the file's own model are among them */
        note_names(p, imported->lists.unknown, "not known, and not modelled");
    return DL_OK;
}

/* ---- a job's environment ---- */

/* The value of the variable in lines NAME=VALUE; NULL: it is not set, or set to nothing. */
static const char *variable(const char *text, const char *name, struct dl_arena *arena) {
    const size_t length = strlen(name);
    for (const char *line = text; line != NULL; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, name, length) != 0 || line[length] != '=') continue;
        const char *value = line + length + 1;
        const size_t size = strcspn(value, "\r\n");
        if (size > 0) return dl_arena_strndup(arena, value, size);
    }
    return NULL;
}

/* "nccl_algorithm=ring" of NCCL_ALGO=Ring,Tree: the first of a list, in small letters. */
static const char *setting(const char *key, const char *value, struct dl_arena *arena) {
    char *text = dl_arena_printf(arena, "%s=%.*s", key, (int)strcspn(value, ",;"), value);
    for (char *c = text; *c != '\0'; c++) *c = (char)tolower((unsigned char)*c);
    return text;
}

static enum dl_code take_environment(struct plan_file *p) {
    static const struct {
        const char *variable, *option, *set;
    } rows[] = {
        {"SLURM_JOB_NUM_NODES", "nodes", NULL},
        {"SLURM_NTASKS_PER_NODE", "devices-per-node", NULL},
        {"SLURM_GPUS_ON_NODE", "devices-per-node", NULL},
        {"NCCL_ALGO", "set", "nccl_algorithm"},
        {"NCCL_PROTO", "set", "nccl_protocol"},
        {"NCCL_MIN_NCHANNELS", "set", "nccl_rings"},
        {"NCCL_MIN_NRINGS", "set", "nccl_rings"},
        {"CUDA_LAUNCH_BLOCKING", "blocking-launches", NULL},
    };
    struct dl_arena *arena = p->context->arena;
    char *text;
    size_t length;
    bool each = false;
    DL_TRY(dl_data_read(&p->context->data, p->path, 1 << 20, arena, &text, &length, p->err));
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const char *value = variable(text, rows[i].variable, arena);
        const bool devices = strcmp(rows[i].option, "devices-per-node") == 0;
        if (value == NULL || (devices && each) || strcmp(value, "0") == 0) continue;
        each = each || devices;
        if (rows[i].set != NULL) value = setting(rows[i].set, value, arena);
        DL_TRY(add(p, rows[i].option, value));
    }
    return DL_OK;
}

enum dl_code dl_plan_file_apply(struct dl_context *context, const struct dl_command *command,
                                struct dl_options *options, struct dl_err *err) {
    struct plan_file p = {
        context, command, options, dl_option_text(options, "plan"), options->given_count, err};
    if (p.path == NULL) return DL_OK;
    const char *kind = dl_file_kind(&context->data, p.path, context->arena);
    if (kind != NULL && strcmp(kind, "environment") == 0) return take_environment(&p);
    for (const struct dl_run_format *f = dl_run_formats; f->name != NULL; f++)
        if (kind != NULL && strcmp(f->name, kind) == 0) return take_run(&p, kind);
    if (kind != NULL)
        return dl_fail_at(err, p.path, 0, 0, NULL,
                          "expected a script, configuration or log of a training, found a file of "
                          "the kind %s",
                          kind);
    char *text; /* says why it cannot be read, if so */
    size_t length;
    DL_TRY(dl_data_read(&context->data, p.path, 64 << 20, context->arena, &text, &length, err));
    return dl_fail_at(err, p.path, 0, 0, NULL,
                      "no script, configuration or log of a training that is known (see 'dlmodel "
                      "import --help')");
}
