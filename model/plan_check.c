/* plan_check.c - completes a plan from what it is for, and says what is wrong with it. */
#include <math.h>
#include <string.h>

#include "model/exchange.h"
#include "model/predict.h"

enum { MAX_DEVICES = 100000000 };

static enum dl_code check_devices(const struct dl_system *system, struct dl_plan *plan, struct dl_err *err) {
    if (plan->nodes < 1) return dl_fail(err, DL_ERR_USAGE, "nodes: expected at least 1, got %lld", (long long)plan->nodes);
    if (plan->devices_per_node <= 0) plan->devices_per_node = system->devices_per_node;
    if (plan->devices_per_node > system->devices_per_node) {
        return dl_fail(err, DL_ERR_USAGE, "devices per node: system %s has %lld, got %lld", system->name,
                       (long long)system->devices_per_node, (long long)plan->devices_per_node);
    }
    if (plan->nodes > MAX_DEVICES / plan->devices_per_node) {
        return dl_fail(err, DL_ERR_USAGE, "nodes: expected at most %d devices in all, got %lld nodes", MAX_DEVICES,
                       (long long)plan->nodes);
    }
    return DL_OK;
}

static enum dl_code complete_batch(struct dl_plan *plan, double devices, struct dl_err *err) {
    const bool global = plan->global_batch_samples > 0, each = plan->batch_per_device_samples > 0;
    if (!global && !each) return dl_fail(err, DL_ERR_USAGE, "give --batch-per-device or --global-batch");
    if (!each) plan->batch_per_device_samples = plan->global_batch_samples / devices;
    if (!global) plan->global_batch_samples = plan->batch_per_device_samples * devices;
    if (fabs(plan->global_batch_samples - plan->batch_per_device_samples * devices) > 1e-3 * plan->global_batch_samples) {
        return dl_fail(err, DL_ERR_USAGE, "batch: %g a device on %g devices is not a global batch of %g",
                       plan->batch_per_device_samples, devices, plan->global_batch_samples);
    }
    if (plan->batch_per_device_samples < 1) {
        return dl_fail(err, DL_ERR_USAGE, "batch: %g samples are fewer than %g devices (scaling limit of data parallelism)",
                       plan->global_batch_samples, devices);
    }
    if (plan->batch_per_device_samples > 1e7) {
        return dl_fail(err, DL_ERR_USAGE, "batch: expected at most 1e7 samples a device, got %g",
                       plan->batch_per_device_samples);
    }
    return DL_OK;
}

static enum dl_code check_framework(const struct dl_system *system, const struct dl_framework *framework,
                                    const struct dl_plan *plan, struct dl_err *err) {
    const struct dl_framework_behaviour *behaviour = dl_framework_behaviour_find(framework->behaviour);
    if (behaviour == NULL) return dl_fail(err, DL_ERR_INPUT, "framework %s: no behaviour '%s'", framework->name, framework->behaviour);
    if (strcmp(system->device->kind, "cpu") == 0 && framework->cpu_library == NULL) {
        return dl_fail(err, DL_ERR_USAGE, "%s needs GPUs; %s has CPUs only", framework->name, system->name);
    }
    if (strcmp(framework->library, "mlsl") == 0 && strcmp(system->device->kind, "cpu") != 0) {
        return dl_fail(err, DL_ERR_USAGE, "%s runs on CPUs; %s has GPUs", framework->name, system->name);
    }
    if (framework->single_node && plan->nodes > 1) {
        return dl_fail(err, DL_ERR_USAGE, "%s runs inside one node: use --nodes 1", framework->name);
    }
    const char *why = behaviour->refuse == NULL ? NULL : behaviour->refuse(system, plan);
    if (why != NULL) return dl_fail(err, DL_ERR_USAGE, "%s: %s", framework->name, why);
    return DL_OK;
}

static enum dl_code check_library(const struct dl_plan *plan, struct dl_err *err) {
    if (plan->library == NULL) return DL_OK;
    for (int i = 0; dl_library_names[i] != NULL; i++) {
        if (strcmp(dl_library_names[i], plan->library) == 0) return DL_OK;
    }
    return dl_fail(err, DL_ERR_USAGE, "library: no collective library '%s'", plan->library);
}

enum dl_code dl_plan_complete(const struct dl_system *system, const struct dl_workload *workload,
                              const struct dl_framework *framework, struct dl_plan *plan, struct dl_err *err) {
    if (plan->recompute == DL_RECOMPUTE_FULL && !dl_known(workload->transformer_layers)) {
        return dl_fail(err, DL_ERR_USAGE, "--recompute full: only transformers say which activations are kept; use selective or none");
    }
    if (plan->strategy == NULL) plan->strategy = dl_strategy_find("data");
    if (!plan->strategy->available) {
        return dl_fail(err, DL_ERR_USAGE, "strategy %s: this version predicts data parallelism only", plan->strategy->name);
    }
    if (plan->nodes == 0) plan->nodes = 1;
    DL_TRY(check_devices(system, plan, err));
    const int64_t devices = plan->nodes * plan->devices_per_node;
    if (plan->dp <= 0) plan->dp = devices;
    if (plan->tp <= 0) plan->tp = 1;
    if (plan->pp <= 0) plan->pp = 1;
    if (plan->sp <= 0) plan->sp = 1;
    if (plan->ep <= 0) plan->ep = 1;
    if (plan->tp != 1 || plan->pp != 1 || plan->sp != 1 || plan->ep != 1) {
        return dl_fail(err, DL_ERR_USAGE, "strategy data: --tp, --pp, --sp and --ep must be 1 (this version predicts data "
                       "parallelism only)");
    }
    if (plan->dp != devices) {
        return dl_fail(err, DL_ERR_USAGE, "--dp %lld is not nodes x devices per node = %lld", (long long)plan->dp,
                       (long long)devices);
    }
    DL_TRY(check_library(plan, err));
    DL_TRY(complete_batch(plan, (double)devices, err));
    return check_framework(system, framework, plan, err);
}
