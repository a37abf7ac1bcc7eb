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
    return cost;
}

double dl_host_count_s(const struct dl_host_cost *cost, const struct dl_host_count *count) {
    return count->call_count * cost->call_s + count->view_count * cost->view_s +
           count->operation_count * cost->operation_s + count->node_count * cost->node_s;
}

void dl_host_count_add(struct dl_host_count *to, const struct dl_host_count *from, double times) {
    to->call_count += times * from->call_count;
    to->view_count += times * from->view_count;
    to->operation_count += times * from->operation_count;
    to->node_count += times * from->node_count;
}

struct dl_host_count dl_host_count_of(const struct dl_framework *framework,
                                      const struct dl_layer *layer, bool backward, bool compiled,
                                      double launches) {
    const struct dl_host_release *counts = framework->host.counts;
    struct dl_host_count other = {0};
    if (counts == NULL || !(launches > 0)) return other;
    if (compiled) return (struct dl_host_count){.operation_count = launches};
    for (int i = 0; i < counts->kind_count; i++) {
        const struct dl_host_kind *row = &counts->kinds[i];
        if (strcmp(row->kind, layer->kind->name) == 0)
            return backward ? row->backward : row->forward;
        if (strcmp(row->kind, "other") == 0) other = backward ? row->backward : row->forward;
    }
    return other;
}
