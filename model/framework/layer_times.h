/* layer_times.h - times of layers as a framework's own profiler measured them ("dlmodel-layers",
 * written by `import trace`).
 *
 * A framework's kernels can differ from those that the kernel-time model was fitted to. Where a
 * file matches workload, framework, device and precision, its times replace the modelled ones
 * (F-LAYER-TIMES): as measured at a measured batch; interpolated in log-log between two batches;
 * beyond them the nearest one times the ratio of modelled times, marked as extrapolated. Layers
 * that the file does not name keep modelled times.
 */
#ifndef DL_MODEL_FRAMEWORK_LAYER_TIMES_H
#define DL_MODEL_FRAMEWORK_LAYER_TIMES_H

#include "model/framework/cost.h"

struct dl_layer_time {
    const char *name;             /* of the workload's layer */
    double forward_s, backward_s; /* NAN: not measured */
};

struct dl_layer_batch {   /* all layers at one batch */
    double batch_samples; /* on one device */
    double update_s;      /* optimizer; NAN: not measured */
    /* standard deviation of the iterations / their mean; NAN: not measured */
    double jitter_frac;
    /* a fixed GEMM on one core of this CPU, timed between the iterations; NAN: not measured */
    double core_s;
    int64_t steps; /* measured iterations; DL_ABSENT: unknown */
    struct dl_layer_time *layers;
    int layer_count;
};

struct dl_layer_times {
    const char *name, *summary, *source;
    const char *workload;  /* its name */
    const char *framework; /* a framework whose name contains this: "pytorch" */
    const char *device;    /* its name; NULL: any */
    enum dl_precision precision;
    struct dl_layer_batch *batches;
    int batch_count; /* ascending */
    const char *measured_on, *measured_at, *comment;
};

extern const struct dl_schema dl_layer_times_schema;

/* Batches ascend, each names a layer once. */
enum dl_code dl_layer_times_check(const struct dl_layer_times *times, const struct dl_json *doc,
                                  struct dl_err *err);

/* Whether they were measured for this combination. */
bool dl_layer_times_fit(const struct dl_layer_times *times, const struct dl_workload *workload,
                        const struct dl_framework *framework, const struct dl_device *device,
                        enum dl_precision precision);

/* How many of the workload's layers they name. */
int dl_layer_times_known(const struct dl_layer_times *times, const struct dl_workload *workload);

/* jitter_frac of the measured batch that is nearest; NAN: none has it. */
double dl_layer_times_jitter_frac(const struct dl_layer_times *times, double batch);

/* core_s of the measured batch that is nearest; NAN: none has it. */
double dl_layer_times_core_s(const struct dl_layer_times *times, double batch);

/* Modelled costs of the smallest and the largest measured batch, and of the batch to predict. */
struct dl_layer_costs {
    const struct dl_cost *lowest, *highest;
    struct dl_cost *here;
};
/* F-LAYER-TIMES: replaces times of costs->here, which are those of `batch`. */
enum dl_code dl_layer_times_apply(const struct dl_layer_times *times,
                                  const struct dl_workload *workload, double batch,
                                  const struct dl_layer_costs *costs, struct dl_err *err);

#endif
