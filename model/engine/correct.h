/* correct.h - applies the error model to a prediction. */
#ifndef DL_MODEL_ENGINE_CORRECT_H
#define DL_MODEL_ENGINE_CORRECT_H

#include "model/engine/interval.h"
#include "model/engine/predict.h"

/* F-POSTERIOR, F-INTERVAL: corrects the parts of a prediction by what measured runs of the
 * framework say (framework->errors.measured), and sets its interval from the errors of runs that
 * were in no fit (framework->errors.intervals; NULL: nothing changes). */
void dl_predict_correct(const struct dl_predict_request *request, struct dl_prediction *prediction);

/* What the interval of a prediction depends on. */
struct dl_interval_case dl_interval_case_of(const struct dl_system *system,
                                            const struct dl_workload *workload,
                                            const struct dl_framework *framework,
                                            const struct dl_plan *plan,
                                            const struct dl_prediction *prediction);

/* F-PACED: root of the sum of squares of three parts of an iteration that do not follow the device:
 * what follows the host's pace (at least the time that the device waits for it), the wait for the
 * slowest device, the bubble. Their errors are independent. [s] */
double dl_prediction_waits_s(const struct dl_prediction *p);

/* F-TIE: half of the 80 % interval of an alternative's error around the mean error of its job, as
 * frameworks and as plans of one framework were measured; half of the prediction's own interval
 * where that is not known. */
double dl_prediction_framework_half_log(const struct dl_prediction *p);
double dl_prediction_plan_half_log(const struct dl_prediction *p);

/* F-TIE: whether the 80 % interval of the ratio of two predictions of one job includes 1, so that
 * neither is known to be faster: of two frameworks, and of two plans of one framework. */
bool dl_prediction_frameworks_tie(const struct dl_prediction *a, const struct dl_prediction *b);
bool dl_prediction_plans_tie(const struct dl_prediction *a, const struct dl_prediction *b);

/* Whether a measured iteration is slower than the 80 % interval where other jobs of the set-up were
 * measured. A stranger's interval is wider by what is unknown of the set-up, which is what a cause
 * names. Without that spread, the prediction's own interval counts. */
bool dl_prediction_is_slow(const struct dl_prediction *p, double measured_s);

#endif
