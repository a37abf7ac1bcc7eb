/* torchtitan_models.h - the models and flavors of torchtitan that are workloads here. */
#ifndef DL_IMPORT_TORCHTITAN_MODELS_H
#define DL_IMPORT_TORCHTITAN_MODELS_H

/* torchtitan's name and flavor of a model, its body layers; NULL: none. */
struct dl_torchtitan_model {
    const char *workload, *name, *flavor;
    int layers;
};
extern const struct dl_torchtitan_model dl_torchtitan_models[]; /* ended by workload NULL */

#endif
