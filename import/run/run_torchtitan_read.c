/* run_torchtitan_read.c - torchtitan's TOML and its Python configurations as arguments: an object
 * of sections, whose names and keys are those of the command line, or of JobConfig. */
#include <stdio.h>
#include <string.h>

#include "import/run/imported_run.h"
#include "import/run/python.h"
#include "import/run/toml.h"
#include "import/run/torchtitan_models.h"

enum { DEEPEST = 8 };

static const char *word_of(struct dl_arena *arena, const struct dl_py_value *v) {
    switch (v->kind) {
    case DL_PY_BOOL: return v->number != 0 ? "true" : "false";
    case DL_PY_NUMBER: return dl_arena_printf(arena, "%.17g", v->number);
    case DL_PY_TEXT: return v->text;
    default: return NULL;
    }
}

/* Sections whose keys change a plan. */
static bool counts(const char *name) {
    static const char *const sections[] = {"training.", "parallelism.",           "compile.",
                                           "model.",    "activation_checkpoint.", "optimizer.name"};
    for (size_t i = 0; i < sizeof sections / sizeof sections[0]; i++)
        if (strncmp(name, sections[i], strlen(sections[i])) == 0) return true;
    return false;
}

/* The members of a value as "a.b.c"; of a list its words, one a line. */
static enum dl_code flatten(struct dl_run *run, const char *name, const struct dl_py_value *v,
                            int depth) {
    struct dl_arguments *a = &run->arguments;
    const char *word = word_of(a->arena, v);
    if (word != NULL) return dl_arguments_add(a, name, word, v->line, run->err);
    const bool unknown = v->kind == DL_PY_UNKNOWN || v->kind == DL_PY_PATH ||
                         (v->kind == DL_PY_OBJECT && !dl_py_is_instance(v));
    if (unknown && counts(name))
        dl_arguments_note(a, "line %d: the file does not say what %.80s is", v->line, name);
    const bool list = v->kind == DL_PY_LIST;
    if ((v->kind != DL_PY_OBJECT && v->kind != DL_PY_DICT && !list) || depth == DEEPEST)
        return DL_OK;
    struct dl_text words = {.arena = a->arena};
    for (const struct dl_py_member *m = v->members; m != NULL; m = m->next) {
        word = word_of(a->arena, m->value);
        if (list && word != NULL) dl_text_printf(&words, "%s\n", word);
        if (list && word == NULL) DL_TRY(flatten(run, name, m->value, depth + 1));
        if (m->name != NULL)
            DL_TRY(flatten(run, dl_arena_printf(a->arena, "%.200s.%.80s", name, m->name), m->value,
                           depth + 1));
    }
    return list && dl_text_string(&words)[0] != '\0'
               ? dl_arguments_add(a, name, dl_text_string(&words), v->line, run->err)
               : DL_OK;
}

/* ---- what stands for itself in Python ---- */

static bool is_model(const char *name) {
    for (const struct dl_torchtitan_model *m = dl_torchtitan_models; m->workload != NULL; m++)
        if (strcmp(m->name, name) == 0) return true;
    return false;
}

/* The model's name: the folder of the file, which need not be known below models/, or words of the
 * function's name. */
static const char *model_name(struct dl_arena *arena, const char *path, const char *function) {
    const char *end = path != NULL ? strrchr(path, '/') : NULL, *start = end, *found = NULL;
    while (start != NULL && start > path && start[-1] != '/') start--;
    if (end != NULL && start < end) {
        static const char models[] = "models/";
        const char *folder = dl_arena_strndup(arena, start, (size_t)(end - start));
        const size_t before = (size_t)(start - path), length = sizeof models - 1;
        if (is_model(folder) || (before >= length && strncmp(start - length, models, length) == 0))
            return folder;
    }
    for (const struct dl_torchtitan_model *m = dl_torchtitan_models; m->workload != NULL; m++) {
        const char *at = strstr(function, m->name);
        const size_t length = strlen(m->name);
        if (at != NULL && (at == function || at[-1] == '_') && strchr("_", at[length]) != NULL)
            found = m->name;
    }
    return found;
}

/* Classes that change linear layers to narrow ones, as the words of model.converters. */
static enum dl_code add_converters(struct dl_run *run, const struct dl_py_value *list) {
    static const struct dl_word_pair classes[] = {{"Float8Linear", "float8"},
                                                  {"MXFP8Linear", "mx"},
                                                  {"MXLinear", "mx"},
                                                  {"NVFP4Linear", "nvfp4"},
                                                  {NULL, NULL}};
    struct dl_arguments *a = &run->arguments;
    struct dl_text words = {.arena = a->arena};
    for (const struct dl_py_member *m = list->members; m != NULL; m = m->next) {
        const char *class = m->value->text, *word = NULL;
        for (int i = 0; classes[i].theirs != NULL; i++)
            if (strncmp(class, classes[i].theirs, strlen(classes[i].theirs)) == 0)
                word = classes[i].ours;
        if (word != NULL) dl_text_printf(&words, "%s\n", word);
        const char *section = word == NULL && strncmp(class, "LoRA", 4) == 0 ? "lora" : "model";
        if (word == NULL && strcmp(section, "model") == 0)
            dl_arguments_note(a, "not modelled: the converter %.80s", class);
        DL_TRY(flatten(run, section, m->value, 1));
    }
    return dl_arguments_add(a, "model.converters", dl_text_string(&words), list->line, run->err);
}

/* model_registry("8B", attn_backend="flex", converters=[...]) */
static enum dl_code add_model(struct dl_run *run, const char *function,
                              const struct dl_py_value *spec) {
    struct dl_arguments *a = &run->arguments;
    const struct dl_py_value *flavor = dl_py_argument(spec, 0),
                             *converters = dl_py_member(spec, "converters");
    if (flavor == NULL) flavor = dl_py_member(spec, "flavor");
    const char *name = model_name(a->arena, spec->path, function);
    if (name == NULL && run->workload == NULL)
        return dl_fail_at(run->err, a->path, spec->line, 1, "model_spec",
                          "the model of \"%.80s\" is not known: its name stands in the folder of "
                          "the file, models/NAME/, or in the function's name; or give --workload",
                          function);
    if (name != NULL) DL_TRY(dl_arguments_add(a, "model.name", name, spec->line, run->err));
    if (flavor != NULL && flavor->kind == DL_PY_TEXT)
        DL_TRY(dl_arguments_add(a, "model.flavor", flavor->text, flavor->line, run->err));
    for (const struct dl_py_member *m = spec->members; m != NULL; m = m->next)
        if (m->name != NULL && m->value != converters && strcmp(m->name, "flavor") != 0)
            DL_TRY(flatten(run, dl_arena_printf(a->arena, "model.%.80s", m->name), m->value, 1));
    return converters != NULL && converters->kind == DL_PY_LIST ? add_converters(run, converters)
                                                                : DL_OK;
}

/* SelectiveAC.Config(), FullAC.Config(), None */
static enum dl_code add_recompute(struct dl_run *run, const struct dl_py_value *v) {
    static const struct dl_word_pair classes[] = {{"FullAC", "full"},
                                                  {"SelectiveAC", "selective"},
                                                  {"MemoryBudgetAC", "memory_budget"},
                                                  {NULL, NULL}};
    const char *mode = v->kind == DL_PY_NONE ? "none" : NULL;
    for (int i = 0; v->kind == DL_PY_OBJECT && classes[i].theirs != NULL; i++)
        if (strncmp(v->text, classes[i].theirs, strlen(classes[i].theirs)) == 0)
            mode = classes[i].ours;
    if (mode != NULL)
        DL_TRY(dl_arguments_add(&run->arguments, "activation_checkpoint.mode", mode, v->line,
                                run->err));
    return flatten(run, "activation_checkpoint", v, 1);
}

/* default_adamw(lr), OptimizersContainer.Config(name="Adam"), default_muon(...) */
static enum dl_code add_optimizer(struct dl_run *run, const struct dl_py_value *v) {
    struct dl_arguments *a = &run->arguments;
    if (v->kind == DL_PY_OBJECT && strstr(v->text, "Config") == NULL &&
        strstr(v->text, "adamw") == NULL)
        DL_TRY(dl_arguments_add(a, "optimizer.name", v->text, v->line, run->err));
    const struct dl_py_value *groups =
        v->kind == DL_PY_OBJECT ? dl_py_member(v, "param_groups") : NULL;
    for (const struct dl_py_member *m = groups != NULL ? groups->members : NULL; m != NULL;
         m = m->next) {
        const struct dl_py_value *name = dl_py_member(m->value, "optimizer_name");
        if (name != NULL && name->kind == DL_PY_TEXT && strncmp(name->text, "Adam", 4) != 0)
            DL_TRY(dl_arguments_add(a, "optimizer.name", name->text, name->line, run->err));
    }
    return groups != NULL ? DL_OK : flatten(run, "optimizer", v, 1);
}

static enum dl_code add_section(struct dl_run *run, const char *function,
                                const struct dl_py_member *m) {
    if (strcmp(m->name, "model_spec") == 0 && m->value->kind == DL_PY_OBJECT)
        return add_model(run, function, m->value);
    if (strcmp(m->name, "activation_checkpoint") == 0) return add_recompute(run, m->value);
    if (strcmp(m->name, "optimizer") == 0) return add_optimizer(run, m->value);
    return flatten(run, m->name, m->value, 0);
}

/* What wraps a configuration: to_graph_trainer_config(config, registry). */
static const struct dl_py_value *unwrapped(struct dl_run *run, const struct dl_py_value *v) {
    const struct dl_py_value *inner = v->kind == DL_PY_OBJECT ? dl_py_argument(v, 0) : NULL;
    if (inner == NULL || inner->kind != DL_PY_OBJECT || !dl_ends_in(inner->text, "Config"))
        return v;
    dl_arguments_note(&run->arguments, "line %d: what %.80s changes is not known", v->line,
                      v->text);
    return inner;
}

static enum dl_code read_python(const struct dl_run_source *source, struct dl_run *run) {
    struct dl_py_value *config;
    const char *name;
    DL_TRY(dl_py_evaluate(source, source->config, &run->arguments, &config, &name, run->err));
    const struct dl_py_value *inner = unwrapped(run, config), *layers[] = {inner, config};
    if (config->kind != DL_PY_OBJECT)
        return dl_fail_at(run->err, source->path, config->line, 1, name,
                          "what it returns is not decided by the file: give a TOML file, or the "
                          "options to predict");
    if (dl_py_member(inner, "generator") != NULL)
        return dl_fail_at(run->err, source->path, config->line, 1, name,
                          "reinforcement learning, whose generation has no model");
    for (int i = 0; i < (inner != config ? 2 : 1); i++)
        for (const struct dl_py_member *m = layers[i]->members; m != NULL; m = m->next)
            if (m->name != NULL) DL_TRY(add_section(run, name, m));
    if (run->workload == NULL && dl_arguments_find(&run->arguments, "model.flavor") == NULL)
        return dl_fail_at(run->err, source->path, config->line, 1, name,
                          "the file does not say the flavor of the model: give --workload");
    if (dl_ends_in(inner->text, "Trainer.Config") &&
        !dl_arguments_flag(&run->arguments, "training.disable_cuda_graphs"))
        dl_arguments_note(&run->arguments, "not modelled: CUDA graphs, which this release captures "
                                           "where no pipeline runs");
    return DL_OK;
}

static bool is_python(const struct dl_run_source *s) {
    static const char *const starts[] = {"import ", "from ", "def ", "class ", "\"\"\""};
    for (const char *line = s->text, *end = s->text + s->length; line < end;) {
        const char *stop = memchr(line, '\n', (size_t)(end - line));
        for (size_t i = 0; i < sizeof starts / sizeof starts[0]; i++)
            if (strncmp(line, starts[i], strlen(starts[i])) == 0) return true;
        if (stop == NULL) return false;
        line = stop + 1;
    }
    return false;
}

enum dl_code dl_run_read_torchtitan(const struct dl_run_source *source, struct dl_run *run) {
    return is_python(source)
               ? read_python(source, run)
               : dl_toml_read(source->text, source->length, &run->arguments, run->err);
}
