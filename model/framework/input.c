/* input.c - F-INPUT. */
#include "model/framework/input.h"

#include <math.h>
#include <string.h>

/* Share of the host's memory that the page cache may hold; the rest is the processes' (a choice of
 * ours). */
#define CACHE_FRAC 0.7

static double copy_s(const struct dl_system *system, const struct dl_framework *framework,
                     const struct dl_plan *plan, double bytes) {
    const struct dl_host *host = &system->host;
    double bandwidth = host->copy_bandwidth_bytes_per_s;
    if (framework->feeds_pageable && dl_known(host->pageable_bandwidth_bytes_per_s))
        bandwidth = host->pageable_bandwidth_bytes_per_s;
    if (!system->has_host || !dl_known(bandwidth) || strcmp(system->device->kind, "gpu") != 0)
        return 0;
    const double shared =
        host->devices_per_copy_link == DL_ABSENT ? 1 : (double)host->devices_per_copy_link;
    const double devices = (double)plan->devices_per_node;
    if (framework->feeds_each_device) bytes *= devices; /* of which a device then keeps its part */
    /* One process that feeds its first device, which passes the parts on, sends the whole batch
     * over one link. */
    return framework->feeds_whole_batch ? bytes * devices / bandwidth
                                        : bytes * fmin(shared, devices) / bandwidth;
}

static double storage_s(const struct dl_system *system, const struct dl_plan *plan,
                        double node_bytes) {
    double seconds = 0;
    if (!system->has_storage) return 0;
    if (dl_known(system->storage.read_bytes_per_s))
        seconds = node_bytes / system->storage.read_bytes_per_s;
    if (dl_known(system->storage.total_read_bytes_per_s)) {
        seconds = fmax(seconds,
                       node_bytes * (double)plan->nodes / system->storage.total_read_bytes_per_s);
    }
    return seconds;
}

struct dl_input_time dl_input_compute(const struct dl_system *system,
                                      const struct dl_workload *workload,
                                      const struct dl_framework *framework,
                                      const struct dl_plan *plan) {
    struct dl_input_time t = {0};
    const double batch = plan->batch_per_device_samples,
                 node_batch = batch * (double)plan->devices_per_node;
    const double tensor_bytes =
        dl_known(workload->input_bytes_per_sample) ? workload->input_bytes_per_sample : 0;
    const double sample_bytes =
        plan->sample_bytes > 0 ? plan->sample_bytes : workload->sample_bytes;
    t.copy_s = copy_s(system, framework, plan, batch * tensor_bytes);
    if (dl_known(framework->feed_bytes_per_s) && framework->feed_bytes_per_s > 0) {
        const bool one_process = framework->single_process || framework->feeds_whole_batch ||
                                 framework->feeds_each_device;
        t.feed_s = (one_process ? node_batch : batch) * tensor_bytes / framework->feed_bytes_per_s;
    }
    if (!plan->synthetic_input) {
        const double dataset_bytes =
            sample_bytes *
            (plan->dataset_samples > 0 ? plan->dataset_samples : workload->epoch_samples);
        t.cached = !plan->first_epoch && system->has_host && dl_known(system->host.memory_bytes) &&
                   dataset_bytes <= CACHE_FRAC * system->host.memory_bytes;
        if (!dl_known(sample_bytes))
            t.unknown = "the stored size of a sample";
        else if (!system->has_storage && !t.cached)
            t.unknown = "the storage of the system";
        else if (!t.cached)
            t.storage_s = storage_s(system, plan, node_batch * sample_bytes);
        if (plan->decode_s_per_sample > 0) {
            const double cores = system->has_host && system->host.cores != DL_ABSENT
                                     ? (double)system->host.cores
                                     : 0;
            double workers = plan->decode_workers > 0
                                 ? plan->decode_workers * (double)plan->devices_per_node
                                 : cores;
            if (cores > 0) workers = fmin(workers, cores);
            if (workers > 0) t.decode_s = node_batch * plan->decode_s_per_sample / workers;
        }
    }
    t.pipeline_s = framework->prefetch_batches > 0 ? fmax(t.copy_s, fmax(t.storage_s, t.decode_s))
                                                   : t.copy_s + t.storage_s + t.decode_s;
    return t;
}
