/* dispatch.c - completes a plan, takes its canonical form, and hands it to the model that serves
 * that. */
#include "model/engine/canonical.h"
#include "model/engine/correct.h"

enum dl_code dl_predict(const struct dl_system *system, const struct dl_workload *workload,
                        const struct dl_framework *framework, const struct dl_plan *given,
                        const struct dl_predict_options *options, struct dl_arena *arena,
                        struct dl_prediction *out, struct dl_err *err) {
    struct dl_plan complete = *given;
    DL_TRY(dl_plan_complete(system, workload, framework, &complete, err));
    return dl_predict_complete(system, workload, framework, &complete, options, arena, out, err);
}

enum dl_code dl_predict_complete(const struct dl_system *system, const struct dl_workload *workload,
                                 const struct dl_framework *framework,
                                 const struct dl_plan *complete,
                                 const struct dl_predict_options *options, struct dl_arena *arena,
                                 struct dl_prediction *out, struct dl_err *err) {
    const struct dl_plan plan = dl_plan_canonical(workload, framework, complete);
    const struct dl_predict_request request = {.system = system,
                                               .workload = workload,
                                               .framework = framework,
                                               .plan = &plan,
                                               .options = options,
                                               .arena = arena};
    struct dl_prediction made;
    DL_TRY(plan.strategy->predict(&request, &made, err));
    if (!made.beyond_limit) dl_predict_correct(&request, &made);
    /* a term may lack its text */
    *out = made;
    return DL_OK;
}
