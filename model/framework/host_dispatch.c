/* host_dispatch.c - see the header. */
#include "model/framework/host_dispatch.h"

#include <math.h>
#include <string.h>

#include "model/workload/layer.h"

double dl_dispatch_s(const struct dl_framework *framework, const struct dl_device *device) {
    const double own_s = framework->host.dispatch_s,
                 launch_s = dl_known(device->launch_s) ? device->launch_s : 0;
    return own_s > 0 ? fmax(own_s, launch_s) : 0;
}

static double scale_of(const struct dl_host_table *table, const struct dl_system *system) {
    const char *cpu = system->has_host && system->host.cpu != NULL ? system->host.cpu : "";
    if (system->has_host && dl_known(system->host.call_scale)) return system->host.call_scale;
    for (int i = 0; i < table->processor_count; i++)
        if (strstr(cpu, table->processors[i].word) != NULL) return table->processors[i].scale;
    return 1;
}

struct dl_host_cost dl_host_cost_of(const struct dl_framework *framework,
                                    const struct dl_system *system, double scale) {
    const struct dl_host_table *table = framework->host.table;
    struct dl_host_cost cost = {0};
    if (framework->host.counts == NULL || table == NULL) return cost;
    scale *= scale_of(table, system);
    cost = table->cost;
    cost.call_s *= scale;
    cost.view_s *= scale;
    cost.operation_s *= scale;
    cost.node_s *= scale;
    cost.scale = scale;
    return cost;
}

void dl_host_count_add(struct dl_host_count *to, const struct dl_host_count *from, double times) {
    to->call_count += times * from->call_count;
    to->view_count += times * from->view_count;
    to->operation_count += times * from->operation_count;
    to->node_count += times * from->node_count;
    to->rest_s += times * from->rest_s;
}

/* One pass of a row; a measured time is that of the counts and a rest. */
static struct dl_host_count pass_of(const struct dl_host_kind *row, bool backward,
                                    const struct dl_host_cost *cost) {
    struct dl_host_count out = backward ? row->backward : row->forward;
    const double measured_s = backward ? row->backward_s : row->forward_s;
    if (measured_s > 0 && cost != NULL) out.rest_s = measured_s - dl_host_count_s(cost, &out);
    return out;
}

/* The row of a kind in a precision, else in 16 bits; NULL: none. */
static const struct dl_host_kind *row_of(const struct dl_host_release *counts, const char *kind,
                                         const char *narrow) {
    const struct dl_host_kind *wide = NULL;
    for (int i = 0; i < counts->kind_count; i++) {
        const struct dl_host_kind *row = &counts->kinds[i];
        if (strcmp(row->kind, kind) != 0) continue;
        if (row->precision == NULL)
            wide = row;
        else if (narrow != NULL && strcmp(row->precision, narrow) == 0)
            return row;
    }
    return wide;
}

struct dl_host_count dl_host_count_of(const struct dl_framework *framework,
                                      const struct dl_layer *layer, bool backward, bool compiled,
                                      double launches, const char *narrow) {
    const struct dl_host_release *counts = framework->host.counts;
    struct dl_host_count out = {0};
    if (counts == NULL || !(launches > 0)) return out;
    if (compiled) return (struct dl_host_count){.operation_count = launches};
    const struct dl_host_kind *row = row_of(counts, layer->kind->name, narrow),
                              *expert = row_of(counts, "expert", narrow);
    if (row == NULL) row = row_of(counts, "other", NULL);
    if (row == NULL) return out;
    const struct dl_host_cost *cost = framework->host.table ? &framework->host.table->cost : NULL;
    out = pass_of(row, backward, cost);
    if (layer->moe.held_experts > 0 && expert != NULL) {
        const struct dl_host_count each = pass_of(expert, backward, cost);
        dl_host_count_add(&out, &each, layer->moe.held_experts);
    }
    return out;
}
