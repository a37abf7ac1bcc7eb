/* torchtitan_models.h - the models and flavors of torchtitan as workloads. */
#ifndef DL_IMPORT_RUN_TORCHTITAN_MODELS_H
#define DL_IMPORT_RUN_TORCHTITAN_MODELS_H

#include <stdbool.h>

/* torchtitan's name and flavor of a model, its body layers; the workload may be one with other
 * values of its parameters. */
struct dl_torchtitan_model {
    const char *workload, *name, *flavor;
    int layers;
};
extern const struct dl_torchtitan_model dl_torchtitan_models[]; /* ended by workload NULL */

/* The model of that name and flavor, suffixes of either that only choose an implementation aside;
 * NULL: none. */
const struct dl_torchtitan_model *dl_torchtitan_model(const char *name, const char *flavor);

#endif
