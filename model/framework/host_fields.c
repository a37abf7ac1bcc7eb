/* host_fields.c - the fields of data/host_counts.json. */
#include "model/framework/host_counts.h"

#define COUNT(key_, member, text)                                                                  \
    {                                                                                              \
        .key = key_, .type = DL_FIELD_NUMBER, .offset = offsetof(struct dl_host_count, member),    \
        DL_RANGE(0, 1e6, DL_UNIT_COUNT), .required = true, .help = text                            \
    }
static const struct dl_field count_fields[] = {
    COUNT("calls", call_count, "calls of functions by Python"),
    COUNT("views", view_count, "ATen operations that move no data"),
    COUNT("operations", operation_count, "other ATen operations, and functions of a library"),
    COUNT("nodes", node_count, "nodes of autograd"),
    {.key = NULL},
};
static const struct dl_schema count_schema = {
    .name = "host count",
    .summary = "what the host runs in one pass of one layer",
    .size = sizeof(struct dl_host_count),
    .fields = count_fields,
};

#define PASS(member, text)                                                                         \
    {                                                                                              \
        .key = #member, .type = DL_FIELD_OBJECT, .offset = offsetof(struct dl_host_kind, member),  \
        .child = &count_schema, .required = true, .help = text                                     \
    }
static const struct dl_field kind_fields[] = {
    DL_FIELD(struct dl_host_kind, kind, STRING, .required = true,
             .help = "kind of layers; expert: each expert that a rank holds, beside moe; other: "
                     "those without a row"),
    DL_FIELD(struct dl_host_kind, precision, STRING,
             .help = "fp8, mxfp8 or nvfp4: of layers whose products run in it; without a row of it "
                     "they count as in 16 bits"),
    PASS(forward, "forward pass"),
    PASS(backward, "backward pass"),
    DL_FIELD(struct dl_host_kind, forward_s, NUMBER, DL_RANGE(0, 1, DL_UNIT_S),
             .help = "measured time of a forward pass; default: that of its counts"),
    DL_FIELD(struct dl_host_kind, backward_s, NUMBER, DL_RANGE(0, 1, DL_UNIT_S),
             .help = "measured time of a backward pass; default: that of its counts"),
    {.key = NULL},
};
static const struct dl_schema kind_schema = {
    .name = "host counts of a kind of layer",
    .summary = "both passes",
    .size = sizeof(struct dl_host_kind),
    .fields = kind_fields,
};

#define LIST(key_, type_, member, count, child_, text)                                             \
    {                                                                                              \
        .key = key_, .type = DL_FIELD_LIST, .offset = offsetof(type_, member),                     \
        .count_offset = offsetof(type_, count), .child = child_, .required = true, .help = text    \
    }
static const struct dl_field release_fields[] = {
    DL_FIELD(struct dl_host_release, name, STRING, .required = true,
             .help = "name, as in host_counts of a framework"),
    DL_FIELD(struct dl_host_release, summary, STRING, .required = true, .help = "what was counted"),
    DL_FIELD(struct dl_host_release, source, STRING, .required = true, .help = "key of SOURCES.md"),
    LIST("kinds", struct dl_host_release, kinds, kind_count, &kind_schema, "kinds of layers"),
    {.key = NULL},
};
static const struct dl_schema release_schema = {
    .name = "host counts of a release",
    .summary = "what the host of one framework runs",
    .size = sizeof(struct dl_host_release),
    .fields = release_fields,
};

#define TIME(member, text)                                                                         \
    DL_FIELD(struct dl_host_cost, member, NUMBER, DL_RANGE(0, 1e-3, DL_UNIT_S), .required = true,  \
             .help = text)
static const struct dl_field cost_fields[] = {
    TIME(call_s, "one call by Python"),
    TIME(view_s, "one operation that moves no data"),
    TIME(operation_s, "one other operation, without its launch"),
    TIME(node_s, "one node of autograd, without its operations"),
    DL_FIELD(struct dl_host_cost, source, STRING, .required = true, .help = "key of SOURCES.md"),
    {.key = NULL},
};
static const struct dl_schema cost_schema = {
    .name = "host cost",
    .summary = "host time on the processor that was measured",
    .size = sizeof(struct dl_host_cost),
    .fields = cost_fields,
};

static const struct dl_field processor_fields[] = {
    DL_FIELD(struct dl_host_processor, word, STRING, .required = true,
             .help = "part of host.cpu of a system; empty: any other"),
    DL_FIELD(struct dl_host_processor, scale, NUMBER, DL_RANGE(0.1, 100, DL_UNIT_NONE),
             .required = true, .help = "host time over that of the measured processor"),
    DL_FIELD(struct dl_host_processor, source, STRING, .required = true,
             .help = "key of SOURCES.md"),
    {.key = NULL},
};
static const struct dl_schema processor_schema = {
    .name = "processor",
    .summary = "how much longer one processor takes",
    .size = sizeof(struct dl_host_processor),
    .fields = processor_fields,
};

static const struct dl_field table_fields[] = {
    {.key = "cost",
     .type = DL_FIELD_OBJECT,
     .offset = offsetof(struct dl_host_table, cost),
     .child = &cost_schema,
     .required = true,
     .help = "host time of one operation of each kind"},
    LIST("processors", struct dl_host_table, processors, processor_count, &processor_schema,
         "processors; the first whose word is in the name counts"),
    LIST("releases", struct dl_host_table, releases, release_count, &release_schema,
         "counts by framework release"),
    {.key = NULL},
};
const struct dl_schema dl_host_table_schema = {
    .name = "dlmodel-host-counts",
    .summary = "what the host runs for each layer, and how long it takes",
    .size = sizeof(struct dl_host_table),
    .fields = table_fields,
    .top_level = true,
};
