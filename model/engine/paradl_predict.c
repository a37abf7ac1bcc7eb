/* paradl_predict.c - a plan under ParaDL's assumptions, from this model's kernel times and the
 * system's links. F-PARADL. */
#include <math.h>
#include <string.h>

#include "model/framework/cost.h"
#include "model/engine/memory.h"
#include "model/engine/split_replica.h"
#include "model/engine/paradl.h"
#include "model/network/path.h"

static struct dl_paradl_link link_over(const struct dl_system *system, int64_t span,
                                       const struct dl_plan *plan) {
    struct dl_path_adapter adapter;
    const bool between = span > plan->devices_per_node,
               present = dl_path_adapter_of(system, false, &adapter);
    const double rate = !between  ? dl_path_device_bytes_per_s(system)
                        : present ? adapter.bytes_per_s
                                  : NAN,
                 latency_s = between ? adapter.latency_s : dl_path_device_latency_s(system);
    return (struct dl_paradl_link){.alpha_s = rate > 0 && dl_known(latency_s) ? latency_s : 0,
                                   .beta_s_per_byte = rate > 0 ? 1 / rate : NAN};
}

static enum dl_code fill_layers(const struct dl_predict_request *r, enum dl_split_kind kind,
                                int64_t parts, struct dl_paradl_layer *layers, struct dl_err *err) {
    const struct dl_workload *workload = r->workload;
    const double samples = r->plan->batch_per_device_samples * (double)parts;
    const struct dl_split split = {.kind = kind, .parts = (double)parts, .grid = {1, 1, 1}};
    struct dl_cost cost;
    bool *is_split = dl_arena_alloc(r->arena, (size_t)workload->layer_count, sizeof *is_split);
    DL_TRY(dl_cost_compute(
        &(struct dl_cost_request){r->system->device, workload, r->framework, r->plan, samples},
        r->arena, &cost, err));
    dl_split_layers(workload, &split, is_split);
    for (int i = 0; i < workload->layer_count; i++) {
        const struct dl_layer *layer = &workload->layers[i];
        const double own = layer->tied_to < 0 ? layer->parameter_elements : 0;
        double outputs = layer->out.channels;
        for (int d = 0; d < DL_DIMS; d++) outputs *= layer->out.size[d];
        layers[i] = (struct dl_paradl_layer){
            .compute_s = (cost.layers[i].forward.time_s + cost.layers[i].backward.time_s) / samples,
            .update_s =
                workload->parameters > 0 ? cost.update.time_s * own / workload->parameters : 0,
            .output_bytes = 4 * outputs,
            .weight_bytes = 4 * own,
            .split = is_split[i] && strcmp(layer->kind->name, "dense") != 0,
        };
    }
    return DL_OK;
}

enum dl_code dl_paradl_predict(const struct dl_predict_request *r, enum dl_split_kind kind,
                               int64_t parts, struct dl_prediction *out, struct dl_err *err) {
    const struct dl_plan *plan = r->plan;
    if (kind == DL_SPLIT_SPATIAL) {
        return dl_fail(err, DL_ERR_USAGE,
                       "--assume paradl: for strategies data, filter, channel and their products");
    }
    struct dl_paradl_layer *layers =
        dl_arena_alloc(r->arena, (size_t)r->workload->layer_count, sizeof *layers);
    DL_TRY(fill_layers(r, kind, parts, layers, err));
    const struct dl_paradl_request request = {
        .layers = layers,
        .layer_count = r->workload->layer_count,
        .dataset_samples = plan->global_batch_samples,
        .batch_samples = plan->global_batch_samples,
        .replicas = (double)plan->dp,
        .parts = (double)parts,
        .inside = link_over(r->system, parts, plan),
        .across = link_over(r->system, plan->dp * parts, plan),
    };
    const struct dl_paradl_time t = dl_paradl_epoch(&request);
    struct dl_prediction p = {.update_s = t.update_s,
                              .compute_s = t.compute_s + t.update_s,
                              .comm_s = t.comm_s,
                              .exposed_comm_s = t.comm_s};
    if (!dl_known(t.comm_s))
        return dl_fail(err, DL_ERR_INPUT, "--assume paradl needs the bandwidth of %s's links",
                       r->system->name);
    p.forward_s = t.compute_s / 3; /* the forms do not tell them apart; a third is forward */
    p.backward_s = t.compute_s - p.forward_s;
    p.iteration_s = p.compute_s + p.comm_s;
    p.iteration_low_s = p.iteration_high_s = p.iteration_s;
    p.throughput_samples_per_s = plan->global_batch_samples / p.iteration_s;
    const double samples =
        plan->input.dataset_samples > 0 ? plan->input.dataset_samples : r->workload->epoch_samples;
    p.epoch_s = samples / p.throughput_samples_per_s;
    p.scaling_efficiency = p.compute_s / p.iteration_s;
    p.bottleneck = t.comm_s > p.compute_s ? (plan->nodes > 1 ? DL_BOUND_INTER : DL_BOUND_INTRA)
                                          : DL_BOUND_COMPUTE;
    p.bottleneck_share = fmax(t.comm_s, p.compute_s) / p.iteration_s;
    p.max_batch_samples = NAN;
    dl_memory_compute(r->system, r->workload, r->framework, plan,
                      plan->batch_per_device_samples * (double)parts, &p.memory, NULL);
    p.fits = !dl_known(p.memory.capacity_bytes) || p.memory.total_bytes <= p.memory.capacity_bytes;
    dl_memory_weigh(&p);
    static const char *const words =
        "under ParaDL's assumptions: perfect scaling of compute, rings over one link, no overlap";
    p.warnings = dl_arena_alloc(r->arena, 1, sizeof *p.warnings);
    p.warnings[p.warning_count++] = words;
    *out = p;
    return DL_OK;
}
