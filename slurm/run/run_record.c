/* run_record.c - see the header. */
#include "slurm/run/run_record.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "model/core/file.h"

#define STRING(member, need, text)                                                                 \
    DL_FIELD(struct dl_run_record, member, STRING, .required = need, .help = text)
#define INTEGER(member, low, need, text)                                                           \
    DL_FIELD(struct dl_run_record, member, INTEGER, DL_RANGE(low, 1e9, DL_UNIT_COUNT),             \
             .required = need, .help = text)

static const struct dl_field run_fields[] = {
    STRING(id, true, "name of its folder"),
    STRING(framework, true, "framework that ran"),
    STRING(strategy, true, "parallelization strategy"),
    STRING(backend, false, "library that communicated the gradients"),
    STRING(workload, true, "workload"),
    STRING(input, false, "input size if not that of the workload: 64x64, seq128"),
    STRING(precision, true, "fp32, mixed, ..."),
    STRING(optimizer, true, "sgd, momentum, adam, lamb"),
    INTEGER(nodes, 1, true, "requested nodes"),
    INTEGER(devices_per_node, 1, true, "training devices per node"),
    INTEGER(batch_per_device, 1, true, "samples per device and step"),
    INTEGER(dp, 1, false, "data-parallel replicas, if not all devices"),
    INTEGER(tp, 1, false, "tensor-parallel degree"),
    INTEGER(pp, 1, false, "pipeline stages"),
    INTEGER(steps, 1, true, "measured steps"),
    INTEGER(warmup_steps, 0, true, "warm-up steps before them"),
    INTEGER(repeat, 1, true, "number of this repeat, from 1"),
    DL_FIELD(struct dl_run_record, profile, BOOL, .has_fallback = true, .fallback = 0,
             .help =
                 "run under the profiler of the framework: measures layer times, not step times"),
    STRING(dataset, false, "folder of images; absent: synthetic input"),
    DL_FIELD(struct dl_run_record, command, STRINGS,
             .count_offset = offsetof(struct dl_run_record, command_count),
             .help = "command of framework custom"),
    STRING(site, true, "site file"),
    STRING(system, true, "system file of the nodes"),
    STRING(job_name, false, "job name"),
    STRING(job_id, false, "Slurm job id"),
    STRING(submitted_at, false, "date and time (UTC)"),
    STRING(dlmodel, false, "dlmodel version that submitted it"),
    {.key = NULL},
};

const struct dl_schema dl_run_schema = {.name = "dlmodel-run",
                                        .summary = "one run of a framework through Slurm",
                                        .size = sizeof(struct dl_run_record),
                                        .fields = run_fields,
                                        .top_level = true};

static int by_id(const void *a, const void *b) {
    return strcmp(((const struct dl_run_record *)a)->id, ((const struct dl_run_record *)b)->id);
}

static enum dl_code read_one(const char *folder, const char *name, struct dl_arena *arena,
                             struct dl_run_list *list, struct dl_err *err) {
    struct dl_json *doc = NULL;
    struct dl_run_record *run = &list->runs[list->count];
    struct dl_err bad = {0};
    const char *path = dl_arena_printf(arena, "%s/%s/run.json", folder, name);
    if (access(path, F_OK) != 0) return DL_OK;
    enum dl_code code = dl_json_read(path, arena, &doc, &bad);
    if (code == DL_OK) code = dl_json_load(doc, &dl_run_schema, arena, run, &bad);
    if (code == DL_OK && strcmp(run->id, name) != 0) {
        code = dl_json_fail(doc, "id", &bad,
                            "expected %.100s, the name of the folder (was it copied?)", name);
    }
    if (code ==
        DL_ERR_SYSTEM) { /* not an error of this folder: skip no folder for lack of memory */
        *err = bad;
        return code;
    }
    if (code != DL_OK) {
        if (list->unreadable++ == 0) list->fault = bad;
        return DL_OK;
    }
    run->folder = dl_arena_printf(arena, "%s/%s", folder, name);
    list->count++;
    return DL_OK;
}

enum dl_code dl_runs_read(const char *folder, struct dl_arena *arena, struct dl_run_list *out,
                          struct dl_err *err) {
    *out = (struct dl_run_list){.count = 0};
    DIR *dir = opendir(folder);
    if (dir == NULL)
        return dl_fail(err, DL_ERR_INPUT, "%.400s: cannot open the folder of runs: %s", folder,
                       strerror(errno));
    size_t entries = 0;
    while (readdir(dir) != NULL) entries++;
    rewinddir(dir);
    out->runs = dl_arena_alloc(arena, entries + 1, sizeof *out->runs);
    enum dl_code code = DL_OK;
    for (const struct dirent *entry = readdir(dir); code == DL_OK && entry != NULL;
         entry = readdir(dir)) {
        if (entry->d_name[0] == '.' || (size_t)(out->count + out->unreadable) >= entries) continue;
        code = read_one(folder, entry->d_name, arena, out, err);
    }
    closedir(dir);
    if (code == DL_OK) qsort(out->runs, (size_t)out->count, sizeof *out->runs, by_id);
    return code;
}

enum dl_code dl_run_write(const struct dl_run_record *run, struct dl_arena *arena,
                          struct dl_err *err) {
    const char *text = dl_json_text(&dl_run_schema, run, arena),
               *path = dl_arena_printf(arena, "%s/run.json", run->folder);
    return dl_file_write(path, text, strlen(text), err);
}
