/* interval_schema.c - members of data/intervals.json. */
#include "model/engine/interval.h"

#define I(member, type, ...) DL_FIELD(struct dl_interval_model, member, type, __VA_ARGS__)
#define SIGMA(member, text)                                                                        \
    I(member, NUMBER, DL_RANGE(0, 5, DL_UNIT_NONE), .required = true, .help = text)
#define LEFT(type)                                                                                 \
    DL_FIELD(type, sigma_log, NUMBER, DL_RANGE(0, 5, DL_UNIT_NONE), .required = true,              \
             .help = "what the runs leave unknown of its effect")
static const struct dl_field release_fields[] = {
    DL_FIELD(struct dl_interval_release, framework, STRING, .required = true, .help = "its name"),
    DL_FIELD(struct dl_interval_release, release, STRING, .required = true, .help = "release"),
    DL_FIELD(struct dl_interval_release, precision, STRING, .required = true,
             .help = "precision of the runs"),
    LEFT(struct dl_interval_release),
    {.key = NULL},
};
static const struct dl_schema release_schema = {.name = "release",
                                                .summary = "a release in a precision",
                                                .size = sizeof(struct dl_interval_release),
                                                .fields = release_fields};
static const struct dl_field framework_fields[] = {
    DL_FIELD(struct dl_interval_framework, name, STRING, .required = true,
             .help = "file of frameworks/"),
    LEFT(struct dl_interval_framework),
    {.key = NULL},
};
static const struct dl_schema framework_schema = {.name = "framework",
                                                  .summary = "a framework with measured runs",
                                                  .size = sizeof(struct dl_interval_framework),
                                                  .fields = framework_fields};
static const struct dl_field device_fields[] = {
    DL_FIELD(struct dl_interval_device, kernels, STRING, .required = true,
             .help = "file of devices/ that has the kernel-time model"),
    DL_FIELD(struct dl_interval_device, architecture, STRING, .required = true,
             .help = "architecture of the devices that were measured"),
    LEFT(struct dl_interval_device),
    {.key = NULL},
};
static const struct dl_schema device_schema = {.name = "device",
                                               .summary = "devices with measured runs",
                                               .size = sizeof(struct dl_interval_device),
                                               .fields = device_fields};
static const struct dl_field arithmetic_fields[] = {
    DL_FIELD(struct dl_interval_arithmetic, kernels, STRING, .required = true,
             .help = "file of devices/ that has the kernel-time model"),
    DL_FIELD(struct dl_interval_arithmetic, architecture, STRING, .required = true,
             .help = "architecture of the devices that were measured"),
    DL_FIELD(struct dl_interval_arithmetic, precision, STRING, .required = true,
             .help = "precision of the runs"),
    DL_FIELD(struct dl_interval_arithmetic, source_count, INTEGER, DL_RANGE(1, 1e6, DL_UNIT_NONE),
             .required = true, .help = "sources that measured them"),
    {.key = NULL},
};
static const struct dl_schema arithmetic_schema = {.name = "arithmetic",
                                                   .summary = "devices measured in a precision",
                                                   .size = sizeof(struct dl_interval_arithmetic),
                                                   .fields = arithmetic_fields};
static const struct dl_field pair_fields[] = {
    DL_FIELD(struct dl_interval_pair, system, STRING, .required = true, .help = "its name"),
    DL_FIELD(struct dl_interval_pair, framework, STRING, .required = true, .help = "its name"),
    {.key = NULL},
};
static const struct dl_schema pair_schema = {.name = "pair",
                                             .summary = "a framework measured on a machine",
                                             .size = sizeof(struct dl_interval_pair),
                                             .fields = pair_fields};
#define WIDTH(index, name, text)                                                                   \
    {                                                                                              \
        .key = name, .type = DL_FIELD_NUMBER,                                                      \
        .offset = offsetof(struct dl_interval_widths, half_log[index]),                            \
        DL_RANGE(0, 10, DL_UNIT_NONE), .has_fallback = true, .fallback = 0, .help = text           \
    }
static const struct dl_field width_fields[] = {
    WIDTH(DL_WIDTH_ALL, "all_log", "of every run"),
    WIDTH(DL_WIDTH_FRAMEWORK, "framework_log", "of a framework that was never measured"),
    WIDTH(DL_WIDTH_RELEASE, "release_log", "of a release in a precision never measured"),
    WIDTH(DL_WIDTH_DEVICE, "device_log", "of a device that nobody measured in this precision"),
    WIDTH(DL_WIDTH_COMMUNICATION, "communication_log", "of exposed communication alone"),
    WIDTH(DL_WIDTH_OVERHEAD, "overhead_log", "of the host's pace, of waits and of bubbles alone"),
    WIDTH(DL_WIDTH_MIXED, "mixed_log", "of automatic mixed precision"),
    WIDTH(DL_WIDTH_KERNELS, "kernels_ratio", "ends / spread of kernels and collectives"),
    WIDTH(DL_WIDTH_NETWORK, "network_log", "of a network that was never measured"),
    WIDTH(DL_WIDTH_ASSUMED, "assumed_log", "of a run that does not say which release it used"),
    WIDTH(DL_WIDTH_STRANGER, "stranger_log", "of a framework nobody measured on the machine"),
    WIDTH(DL_WIDTH_SETUP, "setup_log", "of its set-up on several devices"),
    WIDTH(DL_WIDTH_STRANGER_COMMUNICATION, "stranger_communication_log",
          "of its exposed communication"),
    WIDTH(DL_WIDTH_STRANGER_OVERHEAD, "stranger_overhead_log", "of its overhead"),
    {.key = NULL},
};
static const struct dl_schema width_schema = {.name = "widths",
                                              .summary = "ends of 80 % intervals",
                                              .size = sizeof(struct dl_interval_widths),
                                              .fields = width_fields};
static const struct dl_field interval_fields[] = {
    SIGMA(source_sigma_log, "spread between those who measure"),
    SIGMA(framework_sigma_log, "spread between frameworks"),
    SIGMA(release_sigma_log, "spread between releases of a framework in a precision"),
    SIGMA(device_sigma_log, "spread between devices"),
    SIGMA(workload_sigma_log, "spread between networks"),
    I(job_sigma_log, NUMBER, DL_RANGE(0, 5, DL_UNIT_NONE), .has_fallback = true, .fallback = 0,
      .help = "spread between jobs: a network in one release, precision and batch per device"),
    SIGMA(communication_sigma_log, "spread of exposed communication between those who measure"),
    SIGMA(overhead_sigma_log, "spread of overhead between those who measure"),
    SIGMA(row_sigma_log, "spread of single runs"),
    SIGMA(row_communication_sigma_log, "spread of exposed communication between runs"),
    SIGMA(row_overhead_sigma_log, "spread of overhead between runs"),
    SIGMA(row_narrow_sigma_log, "spread that arithmetic below 32 bit adds to a run"),
    I(row_kernels_ratio, NUMBER, DL_RANGE(0, 10, DL_UNIT_NONE), .required = true,
      .help = "spread of a run / that of its kernels and collectives"),
    I(plans_sigma_log, NUMBER, DL_RANGE(0, 5, DL_UNIT_NONE), .has_fallback = true, .fallback = 0,
      .help = "spread of the plans of one job around their common error"),
    I(frameworks_sigma_log, NUMBER, DL_RANGE(0, 5, DL_UNIT_NONE), .has_fallback = true,
      .fallback = 0, .help = "spread of the frameworks that ran one job around their common error"),
    I(widths, OBJECT, .child = &width_schema, .required = true,
      .help = "slow ends of 80 % intervals: the squares of those that concern a run add"),
    I(fast_widths, OBJECT, .child = &width_schema, .required = true, .help = "the fast ends"),
    I(anchored_widths, OBJECT, .child = &width_schema, .required = true,
      .help = "both ends where a run of the same job was measured"),
    I(update_ratio, NUMBER, DL_RANGE(0.01, 1, DL_UNIT_NONE), .has_fallback = true, .fallback = 1,
      .help = "spread of what a system's runs share that measured runs may move / its spread"),
    I(constants_hash, STRING, .required = true, .help = "of the constants whose errors these are"),
    I(first_sight_hash, STRING, .help = "of the first sights in them: the last of their chain"),
    I(frameworks, LIST, .count_offset = offsetof(struct dl_interval_model, framework_count),
      .child = &framework_schema, .help = "frameworks with measured runs"),
    I(releases, LIST, .count_offset = offsetof(struct dl_interval_model, release_count),
      .child = &release_schema, .help = "releases with measured runs"),
    I(devices, LIST, .count_offset = offsetof(struct dl_interval_model, device_count),
      .child = &device_schema, .help = "devices with measured runs"),
    I(arithmetics, LIST, .count_offset = offsetof(struct dl_interval_model, arithmetic_count),
      .child = &arithmetic_schema, .help = "how many sources measured a device in a precision"),
    I(pairs, LIST, .count_offset = offsetof(struct dl_interval_model, pair_count),
      .child = &pair_schema, .help = "frameworks measured on machines"),
    I(network_parameters, NUMBERS, DL_RANGE(1, 1e15, DL_UNIT_NONE),
      .count_offset = offsetof(struct dl_interval_model, network_count),
      .help = "trainable parameters of each network with measured runs"),
    I(layer_kinds, STRINGS, .count_offset = offsetof(struct dl_interval_model, layer_kind_count),
      .help = "kinds of layers with measured runs: decoder, decoder-experts"),
    {.key = NULL},
};
const struct dl_schema dl_interval_schema = {
    .name = "dlmodel-intervals",
    .summary = "spread of the errors of runs that were in no fit, written by make generalize",
    .size = sizeof(struct dl_interval_model),
    .fields = interval_fields,
    .top_level = true,
};
