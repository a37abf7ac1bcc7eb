/* limits.c - limits of a plan by predicting it again with more of each resource, and with
 * neighbouring plans. Works for every strategy: dl_predict is all that it needs.
 */
#include "model/search/limits.h"

#include <math.h>
#include <string.h>

#include "model/machine/what_if.h"
#include "model/framework/input.h"
#include "model/engine/strategies/strategy.h"
#include "model/framework/capabilities.h"
#include "model/engine/transformer/transformer_internal.h"

enum resource {
    NETWORK,
    NETWORK_LATENCY,
    NETWORK_FLOW,
    NODE_LINKS,
    NODE_LATENCY,
    PEAK,
    MEMORY,
    STORAGE,
    HOST_LINK,
    DECODING,
    RESOURCES
};
enum { PLAN_CHANGES = 9 }; /* that try_plans() makes at most */
_Static_assert(RESOURCES + PLAN_CHANGES <= DL_MAX_LIMITS, "room for every change");
enum {
    OF_KERNELS = 1 << DL_BOUND_COMPUTE | 1 << DL_BOUND_MEMORY_BANDWIDTH,
    OF_NODE = 1 << DL_BOUND_INTRA,
    OF_NETWORK = 1 << DL_BOUND_INTER,
    OF_HOST = 1 << DL_BOUND_HOST_COPY,
    /* nor is latency one: most of it is launches and steps, which no link has */
    NO_RESOURCE = (1 << DL_BOUNDS) - 1 - (OF_KERNELS | OF_NODE | OF_NETWORK | OF_HOST)
};
static const struct {
    const char *name;
    unsigned relieves;
} resources[RESOURCES] = {
    [NETWORK] = {"links.inter.bandwidth", OF_NETWORK},
    [NETWORK_LATENCY] = {"links.inter.latency", OF_NETWORK},
    [NETWORK_FLOW] = {"links.inter.flow_bandwidth", OF_NETWORK},
    [NODE_LINKS] = {"links.intra.bandwidth", OF_NODE},
    [NODE_LATENCY] = {"links.intra.latency", OF_NODE},
    [PEAK] = {"peak", OF_KERNELS},
    [MEMORY] = {"memory bandwidth", OF_KERNELS},
    [STORAGE] = {"storage", 0},
    [HOST_LINK] = {"host.copy_bandwidth", OF_HOST},
    [DECODING] = {"decoding workers", 0},
};

static void scale(double *value, double by) {
    if (dl_known(*value)) *value *= by;
}

static void scale_link(struct dl_link *link, double bandwidth, double latency) {
    scale(&link->bandwidth_bytes_per_s, bandwidth);
    scale(&link->cross_bandwidth_bytes_per_s, bandwidth);
    scale(&link->latency_s, latency);
    scale(&link->per_message_cpu_s, latency);
}

/* `measured` with more or less of one resource. */
static void scale_device(const struct dl_device *measured, enum resource what, double by,
                         struct dl_arena *arena, struct dl_device *device) {
    *device = *measured;
    if (what == MEMORY) device->memory_bandwidth_bytes_per_s *= by;
    if (what == PEAK) {
        struct dl_rate *rates =
            dl_arena_alloc(arena, (size_t)measured->rate_count + 1, sizeof *rates);
        for (int i = 0; i < measured->rate_count; i++) {
            rates[i] = measured->rates[i];
            rates[i].peak_flop_per_s *= by;
        }
        device->rates = rates;
    }
    dl_device_what_if(measured, device, arena);
}

/* The same from the memo, or into it: it names what its kernels take. */
static void recall_device(struct dl_cost_memo *memo, const struct dl_device *measured,
                          enum resource what, double by, const struct dl_device **out) {
    *out = dl_cost_memo_device(memo, measured, (int)what, by);
    if (*out != NULL) return;
    struct dl_memo_device *made = dl_arena_alloc(memo->arena, 1, sizeof *made);
    scale_device(measured, what, by, memo->arena, &made->device);
    made->of = measured;
    made->resource = (int)what;
    made->by_ratio = by;
    made->next = memo->devices;
    memo->devices = made;
    *out = &made->device;
}

/* F-WHAT-IF: as `--set` would, so that both agree. */
static void make_variant(const struct dl_system *system, enum resource what, double by,
                         struct dl_cost_memo *memo, struct dl_arena *arena, struct dl_system *out) {
    *out = *system;
    if (out->as_measured == NULL) out->as_measured = system;
    switch (what) {
    case NETWORK: scale_link(&out->inter, by, 1); break;
    case NETWORK_LATENCY: scale_link(&out->inter, 1, by); break;
    case NETWORK_FLOW: scale(&out->inter.flow_bandwidth_bytes_per_s, by); break;
    case NODE_LINKS: scale_link(&out->intra, by, 1); break;
    case NODE_LATENCY: scale_link(&out->intra, 1, by); break;
    case PEAK:
    case MEMORY: recall_device(memo, system->device, what, by, &out->device); break;
    case STORAGE:
        scale(&out->storage.read_bytes_per_s, by);
        scale(&out->storage.total_read_bytes_per_s, by);
        break;
    case HOST_LINK: scale(&out->host.copy_bandwidth_bytes_per_s, by); break;
    default: break; /* of the plan */
    }
    dl_system_what_if(system, out, arena);
}

struct asker {
    struct dl_predict_request request;
    struct dl_cost_memo *memo; /* links do not change what kernels take */
    struct dl_prediction base;
    struct dl_limits *out;
};

/* times_only: without memory. */
static enum dl_code ask(struct asker *a, enum resource what, double by, bool times_only,
                        struct dl_prediction *p, struct dl_err *err) {
    const struct dl_predict_options options = {
        .times_only = times_only, .brief = times_only, .memo = a->memo};
    struct dl_system *system = dl_arena_alloc(a->request.arena, 1, sizeof *system);
    make_variant(a->request.system, what, by, a->memo, a->request.arena, system);
    struct dl_plan plan = *a->request.plan;
    if (what == DECODING) plan.input.decode_s_per_sample /= by;
    struct dl_predict_request request = a->request;
    request.system = system, request.plan = &plan, request.options = &options;
    return dl_predict(&request, p, err);
}

/* Resources that samples pass through before they reach a device. */
static bool without_input(const struct asker *a, int resource) {
    const bool synthetic = a->request.plan->input.synthetic;
    return (resource == STORAGE && (synthetic || !a->request.system->has_storage)) ||
           (resource == DECODING &&
            (synthetic || !(a->request.plan->input.decode_s_per_sample > 0)));
}

/* Resources that the plan does not use at all. */
static bool is_idle(const struct asker *a, int resource) {
    if (resource == NETWORK_FLOW && !(a->request.system->inter.flow_bandwidth_bytes_per_s > 0))
        return true;
    if (resource <= NETWORK_FLOW) return a->request.plan->nodes < 2;
    if (resource == NODE_LINKS || resource == NODE_LATENCY)
        return a->request.plan->devices_per_node < 2;
    return without_input(a, resource);
}

static enum dl_code find_elasticities(struct asker *a, struct dl_err *err) {
    const double step = 0.01;
    for (int r = 0; r < RESOURCES; r++) {
        struct dl_prediction more = {0}, less = {0};
        if (is_idle(a, r)) continue;
        DL_TRY(ask(a, (enum resource)r, 1 + step, true, &more, err));
        DL_TRY(ask(a, (enum resource)r, 1 / (1 + step), true, &less, err));
        const double value = log(more.iteration_s / less.iteration_s) / (2 * log1p(step));
        a->out->elasticity[a->out->elasticity_count++] =
            (struct dl_elasticity){resources[r].name, value};
    }
    return DL_OK;
}

static void add_change(struct asker *a, const char *text, bool of_plan,
                       const struct dl_prediction *p) {
    struct dl_limits *out = a->out;
    if (!p->fits || (a->base.fits && a->base.iteration_s / p->iteration_s < 1.001)) return;
    int at = out->change_count++;
    for (; at > 0 && out->changes[at - 1].iteration_s > p->iteration_s; at--)
        out->changes[at] = out->changes[at - 1];
    out->changes[at] = (struct dl_change){text, p->iteration_s, p->fits, of_plan};
}

/* Twice as much of each resource. */
static enum dl_code try_resources(struct asker *a, struct dl_err *err) {
    for (int r = 0; r < RESOURCES; r++) {
        struct dl_prediction p = {0};
        const bool latency = r == NETWORK_LATENCY || r == NODE_LATENCY;
        if (without_input(a, r)) continue;
        DL_TRY(ask(a, (enum resource)r, latency ? 0.5 : 2, false, &p, err));
        add_change(a,
                   dl_arena_printf(a->request.arena, latency ? "half the %s" : "twice the %s",
                                   resources[r].name),
                   false, &p);
    }
    return DL_OK;
}

/* One step of the plan alone; what is impossible is left out. */
static void try_plan(struct asker *a, const char *text, const struct dl_plan *plan) {
    struct dl_err ignored = {.code = DL_OK};
    struct dl_prediction p = {0};
    struct dl_plan copy = *plan;
    char lacks[DL_LACKS_TEXT];
    copy.batch_per_device_samples = 0;
    if (dl_framework_lacks(a->request.framework, plan, dl_transformer_shard_of(plan), lacks))
        return;
    struct dl_predict_request request = a->request;
    request.plan = &copy, request.options = NULL;
    if (dl_predict(&request, &p, &ignored) == DL_OK) add_change(a, text, true, &p);
}

static void try_plans(struct asker *a) {
    struct dl_plan p = *a->request.plan;
    if (p.tp > 1 && !p.sequence_parallel) {
        p.sequence_parallel = true;
        try_plan(a, "--sequence-parallel", &p);
    }
    for (int r = 0; r <= DL_RECOMPUTE_FULL; r++) {
        p = *a->request.plan;
        if (r == (int)p.recompute) continue;
        p.recompute = (enum dl_recompute)r;
        try_plan(a, dl_arena_printf(a->request.arena, "--recompute %s", dl_recompute_names[r]), &p);
    }
    for (int up = 0; up < 2; up++) {
        p = *a->request.plan;
        p.micro_batch_samples *= up ? 2 : 0.5;
        if (p.micro_batch_samples < 1) continue;
        try_plan(a, dl_arena_printf(a->request.arena, "--micro-batch %g", p.micro_batch_samples),
                 &p);
    }
    p = *a->request.plan;
    if (p.pp > 1 && p.schedule != DL_INTERLEAVED) {
        p.schedule = DL_INTERLEAVED;
        p.virtual_stages = 2;
        try_plan(a, "--schedule interleaved", &p);
    }
    p = *a->request.plan;
    if (p.tp % 2 == 0) {
        p.tp /= 2, p.dp *= 2;
        try_plan(a,
                 dl_arena_printf(a->request.arena, "--tp %lld --dp %lld", (long long)p.tp,
                                 (long long)p.dp),
                 &p);
    }
    p = *a->request.plan;
    if (p.pp % 2 == 0) {
        p.pp /= 2, p.dp *= 2;
        try_plan(a,
                 dl_arena_printf(a->request.arena, "--pp %lld --dp %lld", (long long)p.pp,
                                 (long long)p.dp),
                 &p);
    }
}

static void add_active(struct dl_limits *out, struct dl_limit_active limit) {
    const double cost = dl_known(limit.cost_s) ? limit.cost_s : limit.cost_bytes;
    if (!(cost > 0)) return;
    int at = out->active_count++;
    for (; at > 0 && dl_known(limit.cost_s) && !(out->active[at - 1].cost_s >= limit.cost_s); at--)
        out->active[at] = out->active[at - 1];
    out->active[at] = limit;
}

/* The known limits (L) and bottlenecks (B) of parallel training (Kahira et al., table V)
 * that this plan reaches. */
static void find_active(struct asker *a) {
    const struct dl_prediction *p = &a->base;
    const struct dl_memory *m = &p->memory;
    const struct dl_plan *plan = a->request.plan;
    const struct dl_input_time input =
        dl_input_compute(a->request.system, a->request.workload, a->request.framework, plan);
    const double states = m->weights_bytes + m->gradients_bytes + m->optimizer_bytes;
    const double replicas = (double)(plan->dp * plan->ep);
    add_active(a->out, (struct dl_limit_active){"exposed communication", "communication",
                                                p->messages.algorithm, p->exposed_comm_s, NAN});
    add_active(a->out, (struct dl_limit_active){"overlapped communication", "communication", NULL,
                                                p->comm_s - p->exposed_comm_s, NAN});
    add_active(a->out, (struct dl_limit_active){"idle pipeline stages", "computation",
                                                "workload balance and bubble", p->bubble_s, NAN});
    add_active(a->out,
               (struct dl_limit_active){"weight update", "computation", NULL, p->update_s, NAN});
    add_active(a->out, (struct dl_limit_active){"input waited for", "input", input.slowest,
                                                p->exposed_input_s, NAN});
    add_active(a->out, (struct dl_limit_active){"host and stragglers", "framework", NULL,
                                                p->overhead_s, NAN});
    if (replicas > 1 && plan->shard == 0 && plan->strategy->shard == 0) {
        add_active(a->out,
                   (struct dl_limit_active){"states held by every data rank", "memory",
                                            "redundancy", NAN, states * (replicas - 1) / replicas});
    }
    add_active(a->out,
               (struct dl_limit_active){"activations", "memory", NULL, NAN, m->activations_bytes});
    add_active(a->out, (struct dl_limit_active){"over the capacity", "memory", NULL, NAN,
                                                m->total_bytes - m->capacity_bytes});
}

enum dl_code dl_limits_of(const struct dl_predict_request *request, struct dl_limits *out,
                          struct dl_err *err) {
    struct dl_cost_memo memo = {.arena = request->arena};
    struct asker a = {.request = *request, .memo = &memo, .out = out};
    const struct dl_predict_options options = {.memo = &memo};
    memset(out, 0, sizeof *out);
    a.request.options = &options;
    DL_TRY(dl_predict(&a.request, &a.base, err));
    find_active(&a);
    DL_TRY(find_elasticities(&a, err));
    DL_TRY(try_resources(&a, err));
    try_plans(&a);
    /* not: an impossible plan */
    return DL_OK;
}

/* F-SAVING */
enum dl_code dl_gains_of(const struct dl_predict_request *request, double iteration_s,
                         struct dl_saving *out, int *count_out, struct dl_err *err) {
    const double more = 1.1;
    struct dl_cost_memo own = {.arena = request->arena};
    const bool shared = request->options != NULL && request->options->memo != NULL;
    struct asker a = {.request = *request, .memo = shared ? request->options->memo : &own};
    int count = 0;
    for (int r = 0; r < RESOURCES; r++) {
        struct dl_prediction p = {0};
        const bool latency = r == NETWORK_LATENCY || r == NODE_LATENCY;
        if (is_idle(&a, r)) continue;
        DL_TRY(ask(&a, (enum resource)r, latency ? 1 / more : more, true, &p, err));
        const struct dl_saving gain = {resources[r].name, 1 - p.iteration_s / iteration_s,
                                       resources[r].relieves | NO_RESOURCE};
        int at = count++;
        for (; at > 0 && out[at - 1].saved_frac < gain.saved_frac; at--) out[at] = out[at - 1];
        out[at] = gain;
    }
    *count_out = count;
    return DL_OK;
}
