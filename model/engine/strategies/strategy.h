/* strategy.h - how the work is split over devices. One strategy is one file (st_*.c) and one row
 * of dl_strategies.
 *
 * A strategy says over which axes it splits (a plan's dp, tp, pp, sp, ep; every other axis must be
 * 1), fills the axes that a plan leaves open, refuses what cannot be (more parts than there are
 * heads, filters, layers, ...) and predicts.
 */
#ifndef DL_MODEL_ENGINE_STRATEGIES_STRATEGY_H
#define DL_MODEL_ENGINE_STRATEGIES_STRATEGY_H

#include "model/engine/predict.h"

enum dl_axis { DL_AXIS_DP = 1, DL_AXIS_TP = 2, DL_AXIS_PP = 4, DL_AXIS_SP = 8, DL_AXIS_EP = 16 };

/* What a strategy partitions; selects the engine (canonical.h). */
enum dl_partitioning {
    DL_PARTITION_DATA,        /* nothing but the batch */
    DL_PARTITION_SPATIAL,     /* images, within layers: split_replica.h; so are the next three */
    DL_PARTITION_FILTER,      /* filters */
    DL_PARTITION_CHANNEL,     /* input channels */
    DL_PARTITION_MLSL,        /* filters, with the messages of MLSL */
    DL_PARTITION_STAGES,      /* consecutive layers: pipe.h */
    DL_PARTITION_TRANSFORMER, /* a stack of equal layers, states: transformer.h */
};

struct dl_strategy {
    const char *name, *summary;
    enum dl_partitioning partitioning;
    int shard;     /* ZeRO stage that the name implies; 0: as --zero says */
    unsigned axes; /* enum dl_axis, those that may differ from 1 */
    /* the axis that fills a node when the plan leaves it open; 0: none (the first of `axes` takes
     * all) */
    unsigned inside;
    /* NULL: nothing to refuse beyond the axes' product. Errors: DL_ERR_USAGE with the limit and the
     * nearest that is possible. */
    enum dl_code (*check)(const struct dl_system *system, const struct dl_workload *workload,
                          const struct dl_framework *framework, const struct dl_plan *plan,
                          struct dl_err *err);
    /* NULL: this version cannot predict it. */
    enum dl_code (*predict)(const struct dl_predict_request *request, struct dl_prediction *out,
                            struct dl_err *err);
};

extern const struct dl_strategy *const dl_strategies[]; /* NULL-terminated */
const struct dl_strategy *dl_strategy_find(const char *name);
/* Whether each layer's work is split over the devices of a replica. */
bool dl_partitions_layers(enum dl_partitioning way);

#endif
