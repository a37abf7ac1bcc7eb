/* heterogeneous_inputs.c - see heterogeneous_inputs.h. */
#include "predict/inputs/heterogeneous_inputs.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/core/table.h"

struct request {
    const char *groups;
    int split;
    bool split_given;
};
#define REQUEST(member) struct request, member

static const char *const splits[] = {"equal", "balanced", NULL};
enum { BALANCED = 1 };

const struct dl_option dl_heterogeneous_options[] = {
    {"heterogeneous", 0, "SYSTEM:N,...", "Plan",
     "one job on N nodes of each system, instead of --system and --nodes; the slowest network "
     "carries all traffic",
     DL_TEXT_OF(REQUEST(groups), .alias = "mixed-nodes")},
    {"split", 0, "equal|balanced", "Plan",
     "with --heterogeneous: the same batch on each device (equal) or one in proportion to its "
     "speed (balanced); default equal",
     DL_CHOICE(REQUEST(split), .choices = splits, DL_GIVEN(REQUEST(split_given)))},
    {.name = NULL},
};

/* "NAME:N" of `length` characters: the name may contain colons; the number follows the last one. */
static enum dl_code read_group(struct dl_context *context, const struct dl_data *data,
                               const char *text, size_t length, struct dl_heterogeneous_group *out,
                               struct dl_err *err) {
    char *name = dl_arena_strndup(context->arena, text, length);
    char *colon = strrchr(name, ':'), *end = NULL;
    const long long nodes = colon == NULL ? 0 : strtoll(colon + 1, &end, 10);
    if (colon == NULL || colon == name || nodes < 1 || nodes > 100000000 || *end != 0) {
        return dl_fail(err, DL_ERR_USAGE,
                       "--heterogeneous: expected SYSTEM:NODES, e.g. dgx1-v100:4, got \"%s\"",
                       name);
    }
    *colon = 0;
    *out = (struct dl_heterogeneous_group){.nodes = nodes};
    return dl_data_system(data, name, context->arena, &out->system, err);
}

enum dl_code dl_heterogeneous_load(struct dl_context *context, const struct dl_data *data,
                                   const struct dl_options *options, struct dl_inputs *inputs,
                                   struct dl_err *err) {
    struct request request = {.groups = NULL};
    DL_TRY(dl_options_bind(options, dl_heterogeneous_options, &request, err));
    if (request.groups == NULL) {
        return request.split_given ? dl_fail(err, DL_ERR_USAGE, "--split needs --heterogeneous")
                                   : DL_OK;
    }
    if (inputs->given.system || inputs->given.nodes) {
        return dl_fail(err, DL_ERR_USAGE,
                       "--heterogeneous replaces --system and --nodes: give it alone");
    }
    struct dl_heterogeneous_job *job = dl_arena_alloc(context->arena, 1, sizeof *job);
    struct dl_heterogeneous_group *groups =
        dl_arena_alloc(context->arena, DL_MIXED_GROUPS, sizeof *groups);
    struct dl_system *system = dl_arena_alloc(context->arena, 1, sizeof *system);
    *job = (struct dl_heterogeneous_job){.groups = groups, .balanced = request.split == BALANCED};
    inputs->nodes[0] = 0;
    for (const char *rest = request.groups;;) {
        const size_t length = strcspn(rest, ",");
        if (job->group_count == DL_MIXED_GROUPS) {
            return dl_fail(err, DL_ERR_USAGE, "--heterogeneous: at most %d systems",
                           DL_MIXED_GROUPS);
        }
        DL_TRY(read_group(context, data, rest, length, &groups[job->group_count], err));
        inputs->nodes[0] += groups[job->group_count++].nodes;
        if (rest[length] == 0) break;
        rest += length + 1;
    }
    *system = *groups[0].system;
    system->name = request.groups;
    inputs->heterogeneous = job;
    inputs->system = system;
    inputs->words.system = groups[0].system->name;
    inputs->node_count = 1;
    return DL_OK;
}

static const struct dl_column columns[] = {
    {"system", "group", "", DL_COLUMN_STRING, 0, 0},
    {"device", "device", "", DL_COLUMN_STRING, 0, 0},
    {"nodes", "nodes", "", DL_COLUMN_INTEGER, 0, 0},
    {"batch_per_device_samples", "batch", "", DL_COLUMN_NUMBER, 0, 0},
    {"samples", "samples", "", DL_COLUMN_INTEGER, 0, 0},
    {"share_frac", "share", "%", DL_COLUMN_NUMBER, 0.01, 0},
    {"iteration_s", "alone", "ms", DL_COLUMN_NUMBER, 1e-3, 0},
    {"busy_frac", "busy", "%", DL_COLUMN_NUMBER, 0.01, 0},
    {"memory_bytes", "memory", "GiB", DL_COLUMN_NUMBER, 1 << 30, 0},
    {"fits", "fits", "", DL_COLUMN_BOOL, 0, 0},
};

static double all_samples(const struct dl_prediction *p) {
    double sum = 0;
    for (int i = 0; i < p->group_count; i++) sum += p->groups[i].samples;
    return sum;
}

static void fill(struct dl_table *table, const struct dl_prediction *p) {
    dl_table_init(table, table->arena, columns, sizeof columns / sizeof columns[0]);
    for (int i = 0; i < p->group_count; i++) {
        const struct dl_heterogeneous_group *g = &p->groups[i];
        union dl_cell *c = dl_table_row(table);
        c[0].string = g->system->name;
        c[1].string = g->system->device->name;
        c[2].integer = g->nodes;
        c[3].number = g->batch_per_device_samples;
        c[4].integer = llround(g->samples);
        c[5].number = g->samples / all_samples(p);
        c[6].number = g->iteration_s;
        c[7].number = g->busy_frac;
        c[8].number = g->memory.total_bytes;
        c[9].boolean = g->fits;
    }
}

const char *dl_heterogeneous_text(struct dl_arena *arena, const struct dl_prediction *p) {
    struct dl_table table = {.arena = arena};
    if (p->group_count == 0) return "";
    fill(&table, p);
    return dl_arena_printf(arena,
                           "\nGroups of nodes (F-HETEROGENEOUS: the slowest sets the pace; alone: "
                           "step time of a group by itself)\n\n%s",
                           dl_table_text(&table));
}

void dl_heterogeneous_json(struct dl_json_writer *writer, const struct dl_prediction *p) {
    struct dl_table table = {.arena = writer->arena};
    if (p->group_count == 0) return;
    fill(&table, p);
    dl_jw_array(writer, "groups");
    dl_table_json(&table, writer);
    dl_jw_end(writer);
}
