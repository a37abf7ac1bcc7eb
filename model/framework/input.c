/* input.c - F-INPUT. */
#include "model/framework/gradient_sync.h"
#include "model/framework/input.h"
#include "model/network/path.h"

#include <math.h>
#include <stddef.h>

/* Assumed share of the host's memory that the page cache may fill; processes hold the rest. */
#define CACHE_FRAC 0.7

/* Processes of a node that read samples: of each device, or the leader of each replica. */
static double readers(const struct dl_framework *framework, const struct dl_plan *plan) {
    const bool led = framework->behaviour->leader_reads && plan->replica_devices > 1;
    return fmax(1, (double)plan->devices_per_node / (led ? (double)plan->replica_devices : 1));
}

/* One array for all devices of a node lies in the memory of one socket: devices of the others read
 * it over the bridge between sockets. F-INPUT. */
static double over_bridge_s(const struct dl_system *system, const struct dl_plan *plan,
                            double bytes) {
    const double bridge = dl_path_bridge_bytes_per_s(system),
                 others = (double)dl_path_beyond_socket(system, plan->devices_per_node);
    return others > 0 && dl_known(bridge) ? others * bytes / bridge : 0;
}

/* Host-to-device copy of a batch, all devices of a node at once. */
static double copy_s(const struct dl_system *system, const struct dl_framework_input *input,
                     const struct dl_plan *plan, double bytes) {
    const struct dl_host *host = &system->host;
    double bandwidth = host->copy_bandwidth_bytes_per_s;
    if (input->feeds_pageable && dl_known(host->pageable_bandwidth_bytes_per_s))
        bandwidth = host->pageable_bandwidth_bytes_per_s;
    if (!system->has_host || !dl_known(bandwidth) || system->device->kind != DL_DEVICE_GPU)
        return 0;
    const double shared =
        host->devices_per_copy_link == DL_ABSENT ? 1 : (double)host->devices_per_copy_link;
    const double devices = (double)plan->devices_per_node;
    const double bridge_s = input->feeds_one_array ? over_bridge_s(system, plan, bytes) : 0;
    if (input->feeds_each_device) bytes *= devices; /* each device then keeps its slice */
    /* One process that feeds its first device, which passes slices on, sends the whole batch over
     * one link. */
    return input->feeds_whole_batch ? bytes * devices / bandwidth
                                    : fmax(bytes * fmin(shared, devices) / bandwidth, bridge_s);
}

/* The framework's own copy of the batch; one process copies that of all devices of the node. */
static double feed_s(const struct dl_framework *framework, const struct dl_plan *plan,
                     double tensor_bytes) {
    const struct dl_framework_input *input = &framework->input;
    const double batch = plan->batch_per_device_samples,
                 node_batch = batch * (double)plan->devices_per_node;
    if (!dl_known(input->feed_bytes_per_s) || !(input->feed_bytes_per_s > 0)) return 0;
    const bool one_process =
        framework->host.single_process || input->feeds_whole_batch || input->feeds_each_device;
    return (one_process ? node_batch : batch) * tensor_bytes / input->feed_bytes_per_s;
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

/* Time of one core to decode a sample. */
static double decode_each_s(const struct dl_framework *framework, const struct dl_plan *plan) {
    return plan->input.decode_s_per_sample *
           (plan->input.cropped ? 1 - framework->input.crop_skip_frac : 1);
}

/* Decoding `samples` on the workers of a node, at most its cores. */
static double decode_s(const struct dl_system *system, const struct dl_framework *framework,
                       const struct dl_plan *plan, double samples) {
    if (!(plan->input.decode_s_per_sample > 0) || framework->input.decodes_on_device) return 0;
    const double cores =
        system->has_host && system->host.cores != DL_ABSENT ? (double)system->host.cores : 0;
    double workers = plan->input.decode_workers > 0
                         ? plan->input.decode_workers * readers(framework, plan)
                         : cores;
    if (cores > 0) workers = fmin(workers, cores);
    return workers > 0 ? samples * decode_each_s(framework, plan) / workers : 0;
}

/* Other nodes read, decode and send the tensors of all samples of the job. */
static void read_elsewhere(const struct dl_system *system, const struct dl_workload *workload,
                           const struct dl_framework *framework, const struct dl_plan *plan,
                           double node_batch, double sample_bytes, struct dl_input_time *t) {
    const struct dl_system *there = plan->input.nodes;
    const double nodes = (double)plan->nodes, count = (double)plan->input.node_count,
                 samples = node_batch * nodes;
    const struct dl_plan all = {.nodes = plan->input.node_count};
    if (!t->cached) t->storage_s = storage_s(there, &all, samples / count * sample_bytes);
    t->decode_s =
        there->has_host && there->host.cores != DL_ABSENT
            ? samples * decode_each_s(framework, plan) / (count * (double)there->host.cores)
            : NAN;
    t->transfer_s =
        workload->input_bytes_per_sample * fmax(node_batch / dl_path_node_bytes_per_s(system),
                                                samples / count / dl_path_node_bytes_per_s(there));
    if (!dl_known(t->decode_s)) t->unknown = "the cores of the nodes that decode";
    if (!dl_known(t->transfer_s)) t->unknown = "the network to the nodes that decode";
    if (!dl_known(t->decode_s)) t->decode_s = 0;
    if (!dl_known(t->transfer_s)) t->transfer_s = 0;
}

/* Storage and decoding of stored samples. */
static void read_samples(const struct dl_system *system, const struct dl_workload *workload,
                         const struct dl_framework *framework, const struct dl_plan *plan,
                         struct dl_input_time *t) {
    const double node_batch = plan->batch_per_device_samples * readers(framework, plan);
    const double sample_bytes =
        plan->input.sample_bytes > 0 ? plan->input.sample_bytes : workload->sample_bytes;
    const double dataset_bytes =
        sample_bytes *
        (plan->input.dataset_samples > 0 ? plan->input.dataset_samples : workload->epoch_samples);
    const struct dl_system *reader = plan->input.nodes != NULL ? plan->input.nodes : system;
    t->cached = !plan->input.first_epoch && reader->has_host &&
                dl_known(reader->host.memory_bytes) &&
                dataset_bytes <= CACHE_FRAC * reader->host.memory_bytes;
    if (!dl_known(sample_bytes))
        t->unknown = "the stored size of a sample";
    else if (!reader->has_storage && !t->cached)
        t->unknown = "the storage of the system";
    else if (!t->cached && plan->input.nodes == NULL)
        t->storage_s = storage_s(system, plan, node_batch * sample_bytes);
    if (plan->input.nodes != NULL) {
        read_elsewhere(system, workload, framework, plan, node_batch, sample_bytes, t);
        return;
    }
    t->decode_s = decode_s(system, framework, plan, node_batch);
    if (t->unknown == NULL && !(plan->input.decode_s_per_sample > 0))
        t->unknown = "the time to decode a sample";
}

static const char *slowest_of(const struct dl_input_time *t) {
    const struct {
        const char *name;
        double seconds;
    } parts[] = {{"decoding", t->decode_s},
                 {"samples from other nodes", t->transfer_s},
                 {"storage", t->storage_s},
                 {"host-to-device copy", t->copy_s},
                 {"data loading", t->feed_s}};
    const char *name = NULL;
    double most_s = 0;
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        if (!(parts[i].seconds > most_s)) continue;
        name = parts[i].name;
        most_s = parts[i].seconds;
    }
    return name;
}

struct dl_input_time dl_input_compute(const struct dl_system *system,
                                      const struct dl_workload *workload,
                                      const struct dl_framework *framework,
                                      const struct dl_plan *plan) {
    struct dl_input_time t = {0};
    const double tensor_bytes =
        dl_known(workload->input_bytes_per_sample) ? workload->input_bytes_per_sample : 0;
    t.copy_s =
        copy_s(system, &framework->input, plan, plan->batch_per_device_samples * tensor_bytes);
    t.feed_s = feed_s(framework, plan, tensor_bytes);
    if (!plan->input.synthetic) read_samples(system, workload, framework, plan, &t);
    t.slowest = slowest_of(&t);
    double ahead_s = t.copy_s;
    if (framework->input.copies_in_step) {
        t.feed_s += t.copy_s;
        ahead_s = 0;
    }
    t.pipeline_s = framework->input.prefetch_batches > 0
                       ? fmax(fmax(ahead_s, t.transfer_s), fmax(t.storage_s, t.decode_s))
                       : ahead_s + t.storage_s + t.decode_s + t.transfer_s;
    return t;
}
