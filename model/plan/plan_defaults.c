/* plan_defaults.c - batch and optimizer of a plan that leaves them open. */
#include "model/plan/plan_defaults.h"

#include <string.h>

enum dl_optimizer dl_default_optimizer(const struct dl_workload *workload) {
    return workload != NULL && workload->family != NULL &&
                   strcmp(workload->family, "transformer") == 0
               ? DL_ADAM
               : DL_MOMENTUM;
}

double dl_default_batch(bool cpu, const struct dl_workload *workload) {
    const bool images =
        workload == NULL || (workload->family != NULL && strcmp(workload->family, "cnn") == 0);
    return (images ? 32.0 : 8.0) / (cpu ? 4.0 : 1.0);
}
