/* strategy.c - the table of strategies. */
#include "model/engine/strategies/strategy.h"

#include <string.h>

extern const struct dl_strategy dl_st_data, dl_st_spatial, dl_st_filter, dl_st_channel,
    dl_st_pipeline, dl_st_tensor, dl_st_data_spatial, dl_st_data_filter, dl_st_data_channel,
    dl_st_data_pipeline, dl_st_data_tensor, dl_st_3d, dl_st_zero1, dl_st_zero2, dl_st_zero3,
    dl_st_mlsl_hybrid, dl_st_expert;

const struct dl_strategy *const dl_strategies[] = {
    &dl_st_data,          &dl_st_spatial,     &dl_st_filter,
    &dl_st_channel,       &dl_st_pipeline,    &dl_st_tensor,
    &dl_st_data_spatial,  &dl_st_data_filter, &dl_st_data_channel,
    &dl_st_data_pipeline, &dl_st_data_tensor, &dl_st_3d,
    &dl_st_zero1,         &dl_st_zero2,       &dl_st_zero3,
    &dl_st_mlsl_hybrid,   &dl_st_expert,      NULL,
};

const struct dl_strategy *dl_strategy_find(const char *name) {
    for (int i = 0; dl_strategies[i] != NULL; i++) {
        if (strcmp(dl_strategies[i]->name, name) == 0) return dl_strategies[i];
    }
    return NULL;
}

bool dl_partitions_layers(enum dl_partitioning way) {
    return way == DL_PARTITION_SPATIAL || way == DL_PARTITION_FILTER ||
           way == DL_PARTITION_CHANNEL || way == DL_PARTITION_MLSL;
}
