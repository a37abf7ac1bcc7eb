/* plan.h - how the work is split: strategy, framework, devices, batch, precision.
 */
#ifndef DL_MODEL_PLAN_H
#define DL_MODEL_PLAN_H

#include "model/kernel.h"
#include "model/status.h"

enum dl_optimizer { DL_SGD, DL_MOMENTUM, DL_ADAM, DL_LAMB, DL_OPTIMIZERS };
extern const char *const dl_optimizer_names[]; /* "sgd","momentum","adam","lamb", NULL */
enum dl_recompute { DL_RECOMPUTE_NONE, DL_RECOMPUTE_SELECTIVE, DL_RECOMPUTE_FULL };
extern const char *const dl_recompute_names[]; /* "none","selective","full", NULL */

/* Every strategy name of the contract; those that this version cannot predict have available = false. */
struct dl_strategy { const char *name, *summary; bool available; };
extern const struct dl_strategy dl_strategies[]; /* ends with name NULL */
const struct dl_strategy *dl_strategy_find(const char *name);

struct dl_plan {
    const struct dl_strategy *strategy;
    int64_t nodes, devices_per_node;      /* in use */
    int64_t dp, tp, pp, sp, ep;           /* product = nodes * devices_per_node */
    double batch_per_device_samples, global_batch_samples;
    double micro_batch_samples;           /* 0: no micro-batches */
    enum dl_precision precision;
    enum dl_optimizer optimizer;
    enum dl_recompute recompute;
    bool sequence_parallel;
    const char *variable_placement;       /* tensorflow-ps: "cpu", "gpu"; NULL: the default */
    const char *library;                  /* collective library instead of the framework's own; NULL: the framework's */
    bool synthetic_input;
    double compute_scale;                 /* times all kernel times: `compare --anchor` corrects them by a measured run; 0: 1 */
};

#endif
