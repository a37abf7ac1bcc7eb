/* checkpoint.c - see the header.
 *
 * F-CKPT-COST. Written are the weights as they are held (in mixed precision both copies), the
 * optimizer's states and batch-norm statistics. Where every device holds all of them, rank 0 writes
 * and the others wait at the next collective; with sharded states or split layers every node writes
 * its part: size / min(rate of the file system, writers x rate of a node), after a copy from the
 * devices. Not modelled: serialisation on the CPU, asynchronous writing, other jobs on the file
 * system.
 */
#include "model/search/checkpoint.h"

#include <math.h>
#include <string.h>

#include "model/framework/gradient_sync.h"
#include "model/predict/memory.h"
#include "model/parallel/strategy.h"

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

/* Seconds from the devices' memory to the host's. */
static double copy_s(const struct dl_system *system, const struct dl_plan *plan, double bytes,
                     bool shared) {
    const struct dl_gradient_sync_request request = {.system = system, .plan = plan};
    if (system->device->kind != DL_DEVICE_GPU) return 0;
    if (shared)
        return dl_gradient_sync_host_copy_s(
            &request, bytes / (double)(plan->nodes * plan->devices_per_node), true);
    return system->has_host ? bytes / system->host.copy_bandwidth_bytes_per_s : NAN;
}

static enum dl_code write_time(const struct dl_system *system, const struct dl_plan *plan,
                               struct dl_checkpoint *c, struct dl_err *err) {
    const struct dl_storage *storage = &system->storage;
    const bool shared = shared_out(plan);
    double rate = NAN;
    c->writer_nodes = shared ? plan->nodes : 1;
    if (system->has_storage && dl_known(storage->write_bytes_per_s))
        rate = storage->write_bytes_per_s * (double)c->writer_nodes;
    if (system->has_storage && dl_known(storage->total_write_bytes_per_s))
        rate = fmin(rate, storage->total_write_bytes_per_s);
    if (!dl_known(rate)) {
        return dl_fail(err, DL_ERR_INPUT,
                       "system %s does not say what a node writes to storage, which checkpoints "
                       "need: give storage.kind "
                       "and storage.write_bytes_per_s in its file, or --set storage.write=2GB/s "
                       "where it has storage",
                       system->name);
    }
    const double out_s = copy_s(system, plan, c->bytes, shared);
    c->write_s = (dl_known(out_s) ? out_s : 0) + c->bytes / rate;
    return DL_OK;
}

enum dl_code dl_checkpoint_plan(const struct dl_system *system, const struct dl_workload *workload,
                                const struct dl_plan *plan, const struct dl_prediction *prediction,
                                double interval_s, struct dl_checkpoint *out, struct dl_err *err) {
    struct dl_checkpoint c = {.restart_s = dl_known(system->restart_s) ? system->restart_s : 0};
    c.bytes = workload->parameters * (dl_memory_weight_bytes(plan->precision) +
                                      dl_memory_optimizer_bytes(plan->optimizer)) +
              4 * workload->buffer_elements;
    if (!dl_known(system->node_mtbf_s)) {
        return dl_fail(err, DL_ERR_INPUT,
                       "system %s does not say how often a node fails, which checkpoints need: "
                       "give node_mtbf_s in its "
                       "file, or --set node_mtbf=20000h",
                       system->name);
    }
    DL_TRY(write_time(system, plan, &c, err));
    c.job_mtbf_s = system->node_mtbf_s / (double)plan->nodes;
    c.young_s = dl_checkpoint_young_s(c.write_s, c.job_mtbf_s);
    c.daly_s = dl_checkpoint_daly_s(c.write_s, c.job_mtbf_s);
    c.steps = fmax(1, round((interval_s > 0 ? interval_s : c.daly_s) / prediction->iteration_s));
    c.interval_s = c.steps * prediction->iteration_s;
    c.stretch_ratio =
        dl_checkpoint_stretch_ratio(c.interval_s, c.write_s, c.job_mtbf_s, c.restart_s);
    if (!(c.stretch_ratio < HOPELESS_RATIO)) {
        return dl_fail(err, DL_ERR_NO,
                       "with a failure every %.3g s and a checkpoint of %.3g s every %.3g s the "
                       "job does not get through: "
                       "fewer nodes, faster storage or shorter intervals",
                       c.job_mtbf_s, c.write_s, c.interval_s);
    }
    c.loss_s = c.interval_s / 2 + c.restart_s;
    c.epoch_s = prediction->epoch_s * c.stretch_ratio;
    *out = c;
    return DL_OK;
}
