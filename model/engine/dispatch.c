/* dispatch.c - completes a plan, takes its canonical form, and hands it to the model that serves
 * that. */
#include "model/engine/canonical.h"
#include "model/engine/correct.h"

enum dl_code dl_predict(const struct dl_predict_request *given, struct dl_prediction *out,
                        struct dl_err *err) {
    struct dl_plan complete = *given->plan;
    struct dl_predict_request request = *given;
    request.plan = &complete;
    DL_TRY(dl_plan_complete(given->system, given->workload, given->framework, &complete, err));
    return dl_predict_complete(&request, out, err);
}

enum dl_code dl_predict_complete(const struct dl_predict_request *complete,
                                 struct dl_prediction *out, struct dl_err *err) {
    const struct dl_plan plan =
        dl_plan_canonical(complete->workload, complete->framework, complete->plan);
    struct dl_predict_request request = *complete;
    struct dl_prediction made;
    request.plan = &plan;
    DL_TRY(plan.strategy->predict(&request, &made, err));
    if (!made.beyond_limit) dl_predict_correct(&request, &made);
    /* a term may lack its text */
    *out = made;
    return DL_OK;
}
