/* predict.c - hands a complete plan to its strategy. */
#include "model/predict/predict.h"

#include "model/parallel/strategy.h"

const char *const dl_bottleneck_names[] = {
    "compute",    "memory-bandwidth", "latency",       "intra-link",
    "inter-link", "parameter-server", "input",         "pipeline-bubble",
    "framework",  "memory-capacity",  "scaling-limit", NULL,
};

enum dl_code dl_predict(const struct dl_system *system, const struct dl_workload *workload,
                        const struct dl_framework *framework, const struct dl_plan *given,
                        const struct dl_predict_options *options, struct dl_arena *arena,
                        struct dl_prediction *out, struct dl_err *err) {
    struct dl_plan plan = *given;
    DL_TRY(dl_plan_complete(system, workload, framework, &plan, err));
    const struct dl_strategy_request request = {.system = system,
                                                .workload = workload,
                                                .framework = framework,
                                                .plan = &plan,
                                                .options = options,
                                                .arena = arena};
    struct dl_prediction made;
    DL_TRY(plan.strategy->predict(&request, &made, err));
    /* a term may lack its text */
    if (arena->failed) return dl_fail(err, DL_ERR_SYSTEM, "out of memory");
    *out = made;
    return DL_OK;
}
