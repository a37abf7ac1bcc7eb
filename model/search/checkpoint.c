/* checkpoint.c - see the header.
 *
 * F-CKPT-COST. Written are the weights as they are held (in mixed precision both copies), the
 * optimizer's states and batch-norm statistics. Where every device holds all of them, rank 0 writes
 * and the others wait at the next collective; with sharded states or split layers every node writes
 * its part: size / min(rate of the file system, writers x rate of a node), after a copy from the
 * devices and the format's serialization on the cores (F-CKPT-SERIALIZE). An asynchronous format
 * blocks for the copies alone; a failure before it is complete falls back to the one before. Not
 * modelled: other jobs on the file system, and what writing takes from training meanwhile.
 */
#include "model/search/checkpoint.h"

#include <math.h>
#include <string.h>

#include "model/framework/gradient_sync.h"
#include "model/engine/memory.h"
#include "model/engine/strategies/strategy.h"

static const double HOPELESS_RATIO = 1e6;

double dl_checkpoint_young_s(double write_s, double mtbf_s) { return sqrt(2 * write_s * mtbf_s); }

double dl_checkpoint_daly_s(double write_s, double mtbf_s) {
    if (write_s >= 2 * mtbf_s) return mtbf_s;
    const double share = write_s / (2 * mtbf_s);
    return dl_checkpoint_young_s(write_s, mtbf_s) * (1 + sqrt(share) / 3 + share / 9) - write_s;
}

double dl_checkpoint_stretch_ratio(double interval_s, double write_s, double mtbf_s,
                                   double restart_s) {
    return mtbf_s * exp(restart_s / mtbf_s) * expm1((interval_s + write_s) / mtbf_s) / interval_s;
}

/* ZeRO's stages, and whatever splits layers or the network over devices. */
static bool shared_out(const struct dl_plan *plan) {
    return plan->shard > 0 || plan->tp > 1 || plan->pp > 1 || plan->ep > 1 ||
           strncmp(plan->strategy->name, "zero", 4) == 0;
}

/* Seconds from the devices' memory to the host's: rank_bytes from each of them, or all bytes from
 * the first alone. */
static double copy_s(const struct dl_system *system, const struct dl_plan *plan, double bytes,
                     bool shared, double rank_bytes) {
    const struct dl_gradient_sync_request request = {.system = system, .plan = plan};
    if (system->device->kind != DL_DEVICE_GPU) return 0;
    if (shared) return dl_gradient_sync_host_copy_s(&request, rank_bytes, true);
    return system->has_host ? bytes / system->host.copy_bandwidth_bytes_per_s : NAN;
}

/* Seconds per byte of the storage, all writers together. DL_ERR_INPUT: the system does not say. */
static enum dl_code storage_time(const struct dl_system *system, double writer_nodes, double *out,
                                 struct dl_err *err) {
    const struct dl_storage *storage = &system->storage;
    double rate = NAN;
    if (system->has_storage && dl_known(storage->write_bytes_per_s))
        rate = storage->write_bytes_per_s * writer_nodes;
    if (system->has_storage && dl_known(storage->total_write_bytes_per_s))
        rate = fmin(rate, storage->total_write_bytes_per_s);
    *out = 1 / rate;
    if (dl_known(rate)) return DL_OK;
    return dl_fail(err, DL_ERR_INPUT,
                   "system %s does not say what a node writes to storage, which checkpoints "
                   "need: give storage.kind "
                   "and storage.write_bytes_per_s in its file, or --set storage.write=2GB/s "
                   "where it has storage",
                   system->name);
}

static double known_or_zero(double value) { return dl_known(value) ? value : 0; }

/* What a plan's ranks write, and on how many cores. */
struct job {
    const struct dl_system *system;
    const struct dl_plan *plan;
    const struct dl_checkpoint_way *way;
    struct dl_checkpoint_content content;
    double ranks;
    bool shared;  /* every rank writes */
    bool sharded; /* no two ranks hold the same */
};

static double serialize_s(const struct job *job, const struct dl_checkpoint_cost *cost) {
    const struct dl_host *host = &job->system->host;
    const struct dl_checkpoint_scale scale = {
        .ranks = job->ranks,
        .is_sharded = job->sharded,
        .node_rank_count = (double)job->plan->devices_per_node,
        .node_core_count = job->system->has_host && host->cores > 0 ? (double)host->cores : NAN,
        .storage_s_per_byte = 0};
    return cost == NULL ? NAN
                        : dl_checkpoint_write_s(job->way->format, cost, &job->content, &scale);
}

static enum dl_code write_time(const struct job *job, struct dl_checkpoint *c, struct dl_err *err) {
    const struct dl_storage *storage = &job->system->storage;
    const struct dl_checkpoint_format *format = job->way->format;
    double storage_s_per_byte;
    const bool all = job->shared || (format != NULL && format->writers == DL_WRITER_EVERY);
    c->writer_nodes = all ? job->plan->nodes : 1;
    DL_TRY(storage_time(job->system, (double)c->writer_nodes, &storage_s_per_byte, err));
    /* an asynchronous copy is made before the ranks agree who writes what */
    const bool whole = format != NULL && format->is_async && !job->sharded;
    const double out_s = known_or_zero(copy_s(job->system, job->plan, c->bytes, job->shared,
                                              whole ? c->bytes : c->bytes / job->ranks));
    c->serialize_s = serialize_s(job, job->way->cost);
    const double cores_s = out_s + known_or_zero(c->serialize_s);
    c->write_s = cores_s + c->bytes * storage_s_per_byte;
    c->blocked_s = c->write_s;
    if (format != NULL && format->is_async && job->way->blocking != NULL)
        c->blocked_s = fmin(c->write_s, out_s + serialize_s(job, job->way->blocking));
    if (all && dl_known(storage->local_write_bytes_per_s))
        c->local_write_s =
            cores_s + c->bytes / ((double)c->writer_nodes * storage->local_write_bytes_per_s);
    return DL_OK;
}

struct dl_two_levels dl_checkpoint_two_level(double local_s, double global_s, double mtbf_s,
                                             double restart_s, double local_frac) {
    const double t1 = sqrt(2 * local_s * mtbf_s / local_frac),
                 t2 = sqrt(2 * global_s * mtbf_s / (1 - local_frac));
    const double n = fmax(1, round(t2 / t1));
    const double write_s = (local_s * (n - 1) + global_s) / n;
    const double lost_s = local_frac * t1 / 2 + (1 - local_frac) * n * t1 / 2 + restart_s;
    return (struct dl_two_levels){t1, n * t1, 1 / (1 + write_s / t1 + lost_s / mtbf_s)};
}

static void two_levels(const struct dl_storage *storage, struct dl_checkpoint *c) {
    c->local_interval_s = c->global_interval_s = c->two_level_goodput_frac = NAN;
    const double frac = storage->local_recovery_frac;
    if (!dl_known(c->local_write_s) || !dl_known(frac) || !(frac > 0 && frac < 1)) return;
    const struct dl_two_levels two =
        dl_checkpoint_two_level(c->local_write_s, c->write_s, c->job_mtbf_s, c->restart_s, frac);
    c->local_interval_s = two.local_interval_s;
    c->global_interval_s = two.global_interval_s;
    c->two_level_goodput_frac = two.goodput_frac;
}

/* Bytes of the checkpoint, and what the format's costs count. */
static double bytes_of(const struct dl_workload *workload, struct job *job) {
    const double weight_bytes =
        dl_memory_weight_bytes(job->plan->precision, job->plan->master_weights);
    if (job->way->format == NULL)
        return workload->parameters *
                   (weight_bytes + dl_memory_optimizer_bytes(job->plan->optimizer)) +
               weight_bytes * workload->frozen_elements + 4 * workload->buffer_elements;
    dl_checkpoint_content(job->way->format, workload, job->plan->optimizer, weight_bytes,
                          &job->content);
    return dl_checkpoint_bytes(job->way->format, &job->content, job->ranks);
}

enum dl_code dl_checkpoint_plan(const struct dl_system *system, const struct dl_workload *workload,
                                const struct dl_plan *plan, const struct dl_prediction *prediction,
                                const struct dl_checkpoint_way *way, struct dl_checkpoint *out,
                                struct dl_err *err) {
    struct dl_checkpoint c = {.local_write_s = NAN};
    struct job job = {.system = system,
                      .plan = plan,
                      .way = way,
                      .ranks = (double)(plan->nodes * plan->devices_per_node),
                      .sharded = shared_out(plan),
                      .shared = shared_out(plan) ||
                                (way->format != NULL && way->format->writers == DL_WRITER_SHARD)};
    c.bytes = bytes_of(workload, &job);
    DL_TRY(write_time(&job, &c, err));
    /* storage is taken to read as fast as it writes */
    c.restart_s = dl_known(system->operation.restart_s)
                      ? system->operation.restart_s
                      : DL_JOB_STARTUP_S + fmax(DL_JOB_RESUME_S, c.write_s);
    c.mtbf_assumed = !dl_known(system->operation.node_mtbf_s);
    c.job_mtbf_s = c.mtbf_assumed ? DL_DEVICE_MTBF_S / (double)system->devices_per_node
                                  : system->operation.node_mtbf_s;
    c.job_mtbf_s /= (double)plan->nodes;
    c.young_s = dl_checkpoint_young_s(c.blocked_s, c.job_mtbf_s);
    c.daly_s = dl_checkpoint_daly_s(c.blocked_s, c.job_mtbf_s);
    /* the next one begins when the last is complete */
    const double least_s = c.write_s - c.blocked_s;
    const double asked_s = way->interval_s > 0 ? way->interval_s : fmax(c.daly_s, least_s);
    c.steps = fmax(1, round(asked_s / prediction->iteration_s));
    c.interval_s = c.steps * prediction->iteration_s;
    c.stretch_ratio =
        dl_checkpoint_stretch_ratio(c.interval_s, c.blocked_s, c.job_mtbf_s, c.restart_s + least_s);
    if (!(c.stretch_ratio < HOPELESS_RATIO)) {
        return dl_fail(err, DL_ERR_NO,
                       "with a failure every %.3g s and a checkpoint of %.3g s every %.3g s the "
                       "job does not get through: "
                       "fewer nodes, faster storage or shorter intervals",
                       c.job_mtbf_s, c.write_s, c.interval_s);
    }
    c.loss_s = c.interval_s / 2 + c.restart_s + least_s;
    c.epoch_s = prediction->epoch_s * c.stretch_ratio;
    c.goodput_frac = 1 / c.stretch_ratio;
    two_levels(&system->storage, &c);
    *out = c;
    return DL_OK;
}
