/* heterogeneous_search.c - see the header. */
#include "model/plan/plan_defaults.h"
#include "predict/output/heterogeneous_search.h"

#include <math.h>
#include <string.h>

#include "model/core/columns.h"
#include "model/core/text.h"

const char *const dl_place_names[] = {"nodes", "stages", "parts", NULL};

struct subset_facts {
    struct dl_subset s;
    const char *nodes, *split, *command;
};
struct job_facts {
    struct dl_job_times t;
    const char *workload, *system;
    int64_t nodes;
};
#define SUBSET(member, key, heading, unit, scale, digits)                                          \
    DL_SHOWN(struct subset_facts, member, key, heading, unit, scale, digits, 0, NULL)
#define JOB(member, key, heading, unit, scale, digits)                                             \
    DL_SHOWN(struct job_facts, member, key, heading, unit, scale, digits, 0, NULL)
static const struct dl_list_column subset_columns[] = {
    SUBSET(nodes, "nodes", "nodes", "", 0, 0),
    SUBSET(split, "split", "split", "", 0, 0),
    SUBSET(s.samples_per_s, "throughput_samples_per_s", "samples", "1/s", 1, 4),
    SUBSET(s.low_samples_per_s, "throughput_low_samples_per_s", "low", "1/s", 1, 3),
    SUBSET(s.high_samples_per_s, "throughput_high_samples_per_s", "high", "1/s", 1, 3),
    SUBSET(s.iteration_s, "iteration_s", "iter", "ms", 1e-3, 3),
    SUBSET(s.sample_energy_j, "sample_energy_j", "energy", "J", 1, 3),
    SUBSET(s.cost_per_sample, "cost_per_sample", "cost", "per sample", 0, 3),
    SUBSET(s.fits, "fits", "fits", "", 0, 0),
    DL_HIDDEN(struct subset_facts, command, "command", NULL),
};
static const struct dl_list_column job_columns[] = {
    JOB(workload, "workload", "job", "", 0, 0),
    JOB(system, "system", "system", "", 0, 0),
    JOB(nodes, "nodes", "nodes", "", 0, 0),
    JOB(t.time_s, "time_s", "time", "s", 1, 4),
    JOB(t.energy_j, "energy_j", "energy", "kWh", 3.6e6, 3),
    JOB(t.cost, "cost", "cost", "", 0, 3),
};

/* "A:2,B:8"; kinds without nodes are left out. */
static const char *nodes_text(struct dl_arena *arena, const struct dl_heterogeneous_job *all,
                              const struct dl_subset *s) {
    struct dl_text text = {.arena = arena};
    const char *comma = "";
    for (int i = 0; i < all->group_count; i++) {
        if (s->nodes[i] == 0) continue;
        dl_text_printf(&text, "%s%s:%lld", comma, all->groups[i].system->name,
                       (long long)s->nodes[i]);
        comma = ",";
    }
    return dl_text_string(&text);
}

/* The same choice as a command of predict. */
static const char *command_of(struct dl_context *context, const struct dl_options *options,
                              const struct dl_framework *framework, const char *nodes,
                              bool balanced) {
    struct dl_options own = *options;
    int kept = 0;
    bool split = false;
    for (int i = 0; i < own.given_count; i++) {
        struct dl_given g = own.given[i];
        if (strcmp(g.option->name, "heterogeneous") == 0) g.value = nodes;
        if (strcmp(g.option->name, "split") == 0) {
            g.value = balanced ? "balanced" : "equal";
            split = true;
        }
        own.given[kept++] = g;
    }
    own.given_count = kept;
    return dl_arena_printf(context->arena, "%s%s",
                           dl_inputs_command(context, &own, "predict", framework, 1),
                           balanced && !split ? " --split balanced" : "");
}

enum dl_code dl_heterogeneous_put(struct dl_context *context,
                                  const struct dl_heterogeneous_request *request,
                                  const char *format_name, struct dl_table *table,
                                  const char *sentence, struct dl_err *err) {
    const struct dl_options *options = request->options;
    if (request->format != DL_FORMAT_TEXT)
        return dl_output_table(context, options, table, format_name, "results", err);
    return context->output(
        options, dl_arena_printf(context->arena, "%s\n%s\n", dl_table_text(table), sentence), err);
}

static enum dl_code search_nodes(struct dl_context *context,
                                 const struct dl_heterogeneous_request *r, struct dl_err *err) {
    const struct dl_heterogeneous_job *all = r->inputs->heterogeneous;
    const struct dl_heterogeneous_question question = {all, r->inputs->workload, r->framework,
                                                       &r->inputs->plan};
    struct dl_subset *list;
    struct dl_table table;
    int count;
    DL_TRY(dl_subsets(&question, r->objective, context->arena, &list, &count, err));
    dl_list_table(&table, context->arena, DL_LIST(subset_columns), 0);
    for (int i = 0; i < count && i < r->top; i++) {
        const struct dl_subset *s = &list[i];
        const char *nodes = nodes_text(context->arena, all, s);
        const struct subset_facts facts = {
            *s, nodes, s->balanced ? "balanced" : "equal",
            command_of(context, r->options, r->framework, nodes, s->balanced)};
        dl_list_add(&table, subset_columns, &facts);
    }
    if (!list[0].fits) return dl_fail(err, DL_ERR_NO, "no choice of nodes fits in memory");
    return dl_heterogeneous_put(
        context, r, "dlmodel-heterogeneous", &table,
        dl_arena_printf(context->arena,
                        "Best by %s of %d choices with %s (F-HETEROGENEOUS-NODES): %s, %s "
                        "batches.\nEvery term: %s",
                        dl_placement_objectives[r->objective], count, r->framework->name,
                        nodes_text(context->arena, all, &list[0]),
                        list[0].balanced ? "balanced" : "equal",
                        command_of(context, r->options, r->framework,
                                   nodes_text(context->arena, all, &list[0]), list[0].balanced)),
        err);
}

/* ---- several jobs ---- */

struct jobs {
    struct dl_context *context;
    const struct dl_inputs *inputs;
    const struct dl_framework *framework;
    const char *names[DL_PLACED_JOBS];
    int count;
    const struct dl_workload *workloads[DL_PLACED_JOBS];
    const struct dl_heterogeneous_job *all;
    struct dl_job_times *times[DL_PLACED_JOBS][DL_MIXED_GROUPS]; /* [n - 1] */
};

static const struct dl_job_times *times_of(const void *data, int job, int kind, int64_t n) {
    return &((const struct jobs *)data)->times[job][kind][n - 1];
}

/* One job alone on n nodes of a kind; NAN: it cannot run, or does not fit. */
static enum dl_code time_job(const struct jobs *jobs, int job, int kind, int64_t n,
                             struct dl_err *err) {
    const struct dl_inputs *inputs = jobs->inputs;
    struct dl_job_times *out = &jobs->times[job][kind][n - 1];
    const struct dl_system *system = jobs->all->groups[kind].system;
    const struct dl_workload *workload = jobs->workloads[job];
    struct dl_plan plan = inputs->plan;
    struct dl_prediction p;
    struct dl_err refusal = {.code = DL_OK};
    plan.nodes = n;
    if (plan.batch_per_device_samples > 0)
        plan.batch_per_device_samples =
            inputs->given.batch_per_device
                ? plan.batch_per_device_samples
                : dl_default_batch(system->device->kind == DL_DEVICE_CPU, workload);
    plan.optimizer = inputs->given.plan.optimizer ? plan.optimizer : dl_default_optimizer(workload);
    *out = (struct dl_job_times){NAN, NAN, NAN};
    enum dl_code code = dl_plan_complete(system, workload, jobs->framework, &plan, &refusal);
    if (code == DL_OK)
        code = dl_predict(&(struct dl_predict_request){.system = system,
                                                       .workload = workload,
                                                       .framework = jobs->framework,
                                                       .plan = &plan,
                                                       .arena = jobs->context->arena},
                          &p, &refusal);
    if (code == DL_ERR_SYSTEM) return dl_fail(err, code, "%s", refusal.message);
    if (code != DL_OK || !p.fits) return DL_OK;
    const double epochs = inputs->length.epoch_count > 0 ? inputs->length.epoch_count : 1,
                 time_s = epochs * p.epoch_s;
    const struct dl_power power = dl_power_of(system, &plan, &p, NULL);
    const struct dl_spending s = dl_spending_of(system, &plan, &power, NULL, time_s);
    *out = (struct dl_job_times){time_s, s.energy_j, s.cost};
    return DL_OK;
}

static enum dl_code load_jobs(const char *list, struct jobs *jobs, struct dl_err *err) {
    struct dl_context *context = jobs->context;
    jobs->all = jobs->inputs->heterogeneous;
    for (const char *name; (name = dl_list_next(&list, context->arena)) != NULL;) {
        if (jobs->count == DL_PLACED_JOBS)
            return dl_fail(err, DL_ERR_USAGE, "--jobs: more than %d", DL_PLACED_JOBS);
        const int j = jobs->count++;
        jobs->names[j] = name;
        DL_TRY(dl_data_workload(&context->data, jobs->names[j], context->arena, &jobs->workloads[j],
                                err));
        if (!dl_known(jobs->workloads[j]->epoch_samples))
            return dl_fail(err, DL_ERR_USAGE, "--jobs: %s has no usual dataset", jobs->names[j]);
        for (int k = 0; k < jobs->all->group_count; k++) {
            const int64_t most = jobs->all->groups[k].nodes;
            if (most > DL_SUBSETS)
                return dl_fail(err, DL_ERR_USAGE, "--jobs: at most %d nodes of a kind", DL_SUBSETS);
            jobs->times[j][k] =
                dl_arena_alloc(context->arena, (size_t)most, sizeof *jobs->times[j][k]);
            for (int64_t n = 1; n <= most; n++) DL_TRY(time_job(jobs, j, k, n, err));
        }
    }
    return DL_OK;
}

static enum dl_code place_jobs(struct dl_context *context, const struct dl_heterogeneous_request *r,
                               struct dl_err *err) {
    struct jobs *jobs = dl_arena_alloc(context->arena, 1, sizeof *jobs);
    *jobs = (struct jobs){.context = context, .inputs = r->inputs, .framework = r->framework};
    struct dl_placement best;
    struct dl_table table;
    DL_TRY(load_jobs(r->jobs, jobs, err));
    struct dl_placement_request request = {.jobs = jobs->count,
                                           .kinds = jobs->all->group_count,
                                           .times = times_of,
                                           .data = jobs,
                                           .objective = r->objective};
    for (int k = 0; k < request.kinds; k++) request.nodes[k] = jobs->all->groups[k].nodes;
    DL_TRY(dl_placement_of(&request, context->arena, &best, err));
    dl_list_table(&table, context->arena, DL_LIST(job_columns), 0);
    for (int j = 0; j < jobs->count; j++) {
        const struct job_facts facts = {
            *times_of(jobs, j, best.kind[j], best.nodes[j]), jobs->names[j],
            jobs->all->groups[best.kind[j]].system->name, best.nodes[j]};
        dl_list_add(&table, job_columns, &facts);
    }
    return dl_heterogeneous_put(
        context, r, "dlmodel-placement", &table,
        dl_arena_printf(context->arena,
                        "Least %s with %s, all jobs at once (F-HETEROGENEOUS-JOBS): the last "
                        "ends after %.4g s, %.4g kWh in all.",
                        dl_placement_objectives[r->objective], r->framework->name, best.time_s,
                        best.energy_j / 3.6e6),
        err);
}

enum dl_code dl_heterogeneous_search(struct dl_context *context,
                                     const struct dl_heterogeneous_request *r, struct dl_err *err) {
    if (r->jobs != NULL) return place_jobs(context, r, err);
    if (r->place == DL_PLACE_STAGES) return dl_heterogeneous_stages(context, r, err);
    if (r->place == DL_PLACE_PARTS) return dl_heterogeneous_parts(context, r, err);
    return search_nodes(context, r, err);
}
