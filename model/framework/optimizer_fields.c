/* optimizer_fields.c - the fields of data/optimizers.json. */
#include "model/framework/framework.h"

static const struct dl_field cost_fields[] = {
    DL_FIELD(struct dl_optimizer_cost, kernels, NUMBER, DL_RANGE(0, 1000, DL_UNIT_COUNT),
             .required = true, .help = "kernels per parameter tensor"),
    DL_FIELD(struct dl_optimizer_cost, bytes, NUMBER, DL_RANGE(0, 1000, DL_UNIT_BYTE),
             .required = true, .help = "memory traffic per parameter"),
    {.key = NULL},
};
static const struct dl_schema cost_schema = {
    .name = "optimizer cost",
    .summary = "of one parameter",
    .size = sizeof(struct dl_optimizer_cost),
    .fields = cost_fields,
};

#define COST(key_, member, text)                                                                   \
    {                                                                                              \
        .key = key_, .type = DL_FIELD_OBJECT, .offset = offsetof(struct dl_optimizer_row, member), \
        .child = &cost_schema, .help = text                                                        \
    }
static const struct dl_field row_fields[] = {
    DL_FIELD(struct dl_optimizer_row, name, STRING, .required = true,
             .help = "name, as in optimizer_kernels of a framework"),
    DL_FIELD(struct dl_optimizer_row, summary, STRING, .required = true, .help = "description"),
    DL_FIELD(struct dl_optimizer_row, source, STRING, .required = true,
             .help = "key of SOURCES.md"),
    COST("sgd", update[DL_SGD], "update by SGD"),
    COST("momentum", update[DL_MOMENTUM], "update by SGD with momentum"),
    COST("adam", update[DL_ADAM], "update by Adam"),
    COST("lamb", update[DL_LAMB], "update by LAMB"),
    COST("accumulation", accumulation,
         "sum of gradients with those of earlier micro-batches; absent: one kernel of 12 bytes"),
    COST("mixed_accumulation", mixed_accumulation,
         "the same in mixed precision, before casts; absent: accumulation"),
    {.key = NULL},
};
static const struct dl_schema row_schema = {
    .name = "optimizer implementation",
    .summary = "kernels of a framework's optimizers",
    .size = sizeof(struct dl_optimizer_row),
    .fields = row_fields,
};

static const struct dl_field table_fields[] = {
    {.key = "implementations",
     .type = DL_FIELD_LIST,
     .offset = offsetof(struct dl_optimizer_table, rows),
     .count_offset = offsetof(struct dl_optimizer_table, row_count),
     .child = &row_schema,
     .required = true,
     .help = "how frameworks update parameters"},
    {.key = NULL},
};
const struct dl_schema dl_optimizer_table_schema = {
    .name = "dlmodel-optimizers",
    .summary = "kernels and memory traffic of optimizers",
    .size = sizeof(struct dl_optimizer_table),
    .fields = table_fields,
    .top_level = true,
};
