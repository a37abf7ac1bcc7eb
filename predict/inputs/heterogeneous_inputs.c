/* heterogeneous_inputs.c - see heterogeneous_inputs.h. */
#include "predict/inputs/heterogeneous_inputs.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/core/columns.h"

struct request {
    const char *groups;
    int split;
    bool split_given;
};
#define REQUEST(member) struct request, member

static const char *const splits[] = {"equal", "balanced", NULL};
enum { BALANCED = 1 };

const struct dl_option dl_heterogeneous_options[] = {
    {"heterogeneous", 0, "SYSTEM:N,...", "Plan: size",
     "one job on N nodes of each system, instead of --system and --nodes; the slowest network "
     "carries all traffic",
     DL_TEXT_OF(REQUEST(groups), .alias = "mixed-nodes")},
    {"split", 0, "equal|balanced", "Plan: size",
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

/* What the columns show of one group. */
struct facts {
    const char *system, *device;
    int64_t nodes, samples;
    double batch_samples, share_frac, iteration_s, busy_frac, memory_bytes;
    bool fits;
};
#define SHOWN(member, key, heading, unit, scale)                                                   \
    DL_SHOWN(struct facts, member, key, heading, unit, scale, 0, 0, NULL)
static const struct dl_list_column columns[] = {
    SHOWN(system, "system", "group", "", 0),
    SHOWN(device, "device", "device", "", 0),
    SHOWN(nodes, "nodes", "nodes", "", 0),
    SHOWN(batch_samples, "batch_per_device_samples", "batch", "", 0),
    SHOWN(samples, "samples", "samples", "", 0),
    SHOWN(share_frac, "share_frac", "share", "%", 0.01),
    SHOWN(iteration_s, "iteration_s", "alone", "ms", 1e-3),
    SHOWN(busy_frac, "busy_frac", "busy", "%", 0.01),
    SHOWN(memory_bytes, "memory_bytes", "memory", "GiB", 1 << 30),
    SHOWN(fits, "fits", "fits", "", 0),
};

static double all_samples(const struct dl_prediction *p) {
    double sum = 0;
    for (int i = 0; i < p->group_count; i++) sum += p->groups[i].samples;
    return sum;
}

static void fill(struct dl_table *table, const struct dl_prediction *p) {
    dl_list_table(table, table->arena, DL_LIST(columns), 0);
    for (int i = 0; i < p->group_count; i++) {
        const struct dl_heterogeneous_group *g = &p->groups[i];
        const struct facts facts = {.system = g->system->name,
                                    .device = g->system->device->name,
                                    .nodes = g->nodes,
                                    .batch_samples = g->batch_per_device_samples,
                                    .samples = llround(g->samples),
                                    .share_frac = g->samples / all_samples(p),
                                    .iteration_s = g->iteration_s,
                                    .busy_frac = g->busy_frac,
                                    .memory_bytes = g->memory.total_bytes,
                                    .fits = g->fits};
        dl_list_add(table, columns, &facts);
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
