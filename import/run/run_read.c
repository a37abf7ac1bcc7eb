/* run_read.c - texts of Megatron and NeMo as arguments: launch scripts, the table that a run prints
 * when it starts, YAML of tests and of NeMo, whose keys get the names that Megatron gives them. */
#include <string.h>

#include "import/run/imported_run.h"
#include "import/run/yaml.h"

enum dl_code dl_run_read_yaml(const struct dl_run_source *source, struct dl_run *run) {
    return dl_yaml_read(source->text, source->length, &run->arguments, run->err);
}

/* ---- the table of arguments ---- */

/* "  num_layers ........... 24", whatever a launcher or a clock writes before it. */
static bool table_row(struct dl_arena *arena, const char *line, const char *end, const char **name,
                      const char **value) {
    static const char dots[] = " ....";
    const char *at = line;
    while (at + sizeof dots - 1 <= end && strncmp(at, dots, sizeof dots - 1) != 0) at++;
    if (at + sizeof dots - 1 > end) return false;
    const char *from = at;
    while (from > line && strchr(" \t:]|", from[-1]) == NULL) from--;
    if (from == at) return false;
    const char *to = at + 1;
    while (to < end && *to == '.') to++;
    if (to >= end || *to != ' ') return false;
    while (to < end && *to == ' ') to++;
    while (end > to && strchr(" \r\t", end[-1]) != NULL) end--;
    *name = dl_arena_strndup(arena, from, (size_t)(at - from));
    *value = dl_arena_strndup(arena, to, (size_t)(end - to));
    return true;
}

static bool is_table(const struct dl_run_source *s) {
    int rows = 0;
    for (const char *line = s->text, *end = s->text + s->length; line < end && rows < 5;) {
        const char *stop = memchr(line, '\n', (size_t)(end - line)), *name, *value;
        if (stop == NULL) stop = end;
        rows += table_row(s->context->arena, line, stop, &name, &value);
        line = stop + 1;
    }
    return rows >= 5;
}

static enum dl_code read_table(const struct dl_run_source *s, struct dl_run *run) {
    int number = 1;
    for (const char *line = s->text, *end = s->text + s->length; line < end; number++) {
        const char *stop = memchr(line, '\n', (size_t)(end - line)), *name, *value;
        if (stop == NULL) stop = end;
        if (table_row(s->context->arena, line, stop, &name, &value) && strcmp(value, "None") != 0)
            DL_TRY(dl_arguments_add(&run->arguments, name, value, number, run->err));
        line = stop + 1;
    }
    run->complete = true;
    return DL_OK;
}

/* ---- NeMo ---- */

/* Sections whose keys Megatron knows under the key alone, and keys with another name there. */
static const struct rename {
    const char *theirs, *ours; /* "model.*": what follows */
} renames[] = {
    {"trainer.num_nodes", "nnodes"},
    {"trainer.devices", "gpus_per_node"},
    {"trainer.precision", "precision"},
    {"trainer.max_steps", "train_iters"},
    {"trainer.accumulate_grad_batches", "accumulate_grad_batches"},
    {"model.optim.name", "optimizer_name"},
    {"optim.name", "optimizer_name"},
    {"model.tokenizer.type", "tokenizer_type"},
    {"model.tokenizer.model", "tokenizer_model"},
    {"model.tokenizer.library", "tokenizer_library"},
    {"tokenizer.tokenizer_type", "tokenizer_type"},
    {"tokenizer.tokenizer_model", "tokenizer_model"},
    {"dataset.seq_length", "seq_length"},
    {"dataset.sequence_length", "seq_length"},
    {"optimizer.optimizer", "optimizer"},
    {"optimizer.use_distributed_optimizer", "use_distributed_optimizer"},
    {"ddp.use_distributed_optimizer", "use_distributed_optimizer"},
    {"ddp.data_parallel_sharding_strategy", "data_parallel_sharding_strategy"},
    {"ddp.use_megatron_fsdp", "use_megatron_fsdp"},
    {"mixed_precision.recipe", "mixed_precision"},
    {"trainer.strategy.tensor_model_parallel_size", "tensor_model_parallel_size"},
    {"trainer.strategy.pipeline_model_parallel_size", "pipeline_model_parallel_size"},
    {"trainer.strategy.context_parallel_size", "context_parallel_size"},
    {"trainer.strategy.expert_model_parallel_size", "expert_model_parallel_size"},
    {"trainer.strategy.virtual_pipeline_model_parallel_size",
     "virtual_pipeline_model_parallel_size"},
    {"trainer.strategy.sequence_parallel", "sequence_parallel"},
    {"data.global_batch_size", "global_batch_size"},
    {"data.micro_batch_size", "micro_batch_size"},
    {"data.seq_length", "seq_length"},
    {"model.config.*", NULL},
    {"train.*", NULL},
    {"model.*", NULL},
    {"MODEL_ARGS.*", NULL}, /* functional tests of Megatron */
    {"BASE_MODEL_ARGS.*", NULL},
};

static const char *renamed(struct dl_arena *arena, const char *name) {
    for (size_t i = 0; i < sizeof renames / sizeof renames[0]; i++) {
        const char *theirs = renames[i].theirs;
        const size_t length = strlen(theirs);
        if (strcmp(name, theirs) == 0) return renames[i].ours;
        if (theirs[length - 1] != '*' || strncmp(name, theirs, length - 1) != 0) continue;
        const char *rest = name + length - 1;
        char *plain = dl_arena_strdup(arena, strncmp(rest, "--", 2) == 0 ? rest + 2 : rest);
        for (char *c = plain; *c != '\0' && *rest == '-'; c++) *c = *c == '-' ? '_' : *c;
        return strchr(plain, '.') != NULL ? renamed(arena, plain) : plain;
    }
    return name;
}

/* The keys under the names of Megatron's arguments; where two become one, the later counts. */
static enum dl_code rename_all(struct dl_run *run) {
    struct dl_arguments old = run->arguments, *new = &run->arguments;
    dl_arguments_start(new, old.path, old.arena);
    new->remarks = old.remarks;
    new->remark_count = old.remark_count;
    for (int i = 0; i < old.count; i++) {
        const struct dl_argument *a = &old.all[i];
        DL_TRY(dl_arguments_add(new, renamed(old.arena, a->name), a->value, a->line, run->err));
        new->all[new->count - 1].list = a->list;
    }
    return DL_OK;
}

enum dl_code dl_run_read_nemo(const struct dl_run_source *source, struct dl_run *run) {
    DL_TRY(dl_run_read_yaml(source, run));
    return rename_all(run);
}

/* A line "key: value" or "key:" before any other. */
static bool is_yaml(const struct dl_run_source *s) {
    const char *end = s->text + s->length;
    for (const char *line = s->text; line < end;) {
        const char *stop = memchr(line, '\n', (size_t)(end - line)), *at = line;
        if (stop == NULL) stop = end;
        while (at < stop &&
               (*at == '_' || (*at >= 'a' && *at <= 'z') || (*at >= 'A' && *at <= 'Z')))
            at++;
        if (at > line && at < stop && *at == ':' &&
            (at + 1 == stop || strchr(" \r", at[1]) != NULL))
            return true;
        while (line < stop && strchr(" \t\r", *line) != NULL) line++;
        if (line < stop && *line != '#' && *line != '-' && strncmp(line, "---", 3) != 0)
            return false;
        line = stop + 1;
    }
    return false;
}

enum dl_code dl_run_read_megatron(const struct dl_run_source *source, struct dl_run *run) {
    if (is_table(source)) return read_table(source, run);
    if (is_yaml(source)) return dl_run_read_nemo(source, run);
    DL_TRY(dl_run_read_script(source, run));
    for (int i = 0; i < run->arguments.count; i++) /* overrides of hydra */
        if (strncmp(run->arguments.all[i].name, "model.", 6) == 0 ||
            strncmp(run->arguments.all[i].name, "train.", 6) == 0 ||
            strncmp(run->arguments.all[i].name, "trainer.", 8) == 0)
            return rename_all(run);
    return DL_OK;
}
