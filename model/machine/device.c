/* device.c - fields of data/devices/NAME.json, their checks, and the peak of a precision. */
#include "model/machine/device.h"

#include <stdio.h>
#include <math.h>
#include <string.h>

#include "model/core/provenance.h"

#define STRING(member, need, text)                                                                 \
    DL_FIELD(struct dl_device, member, STRING, .required = need, .help = text)
#define NUMBER(member, low, high, measure, text)                                                   \
    DL_FIELD(struct dl_device, member, NUMBER, DL_RANGE(low, high, measure), .help = text)
#define POWER(member, text)                                                                        \
    DL_FIELD_IN(struct dl_device, power, member, NUMBER, DL_RANGE(0.1, 1e5, DL_UNIT_W),            \
                .help = text)
#define SCALE(member, low, high, text)                                                             \
    DL_FIELD_IN(struct dl_device, scales, member, NUMBER, DL_RANGE(low, high, DL_UNIT_NONE),       \
                .help = text)

const char *const dl_device_kinds[] = {[DL_DEVICE_GPU] = "gpu", [DL_DEVICE_CPU] = "cpu", NULL};

static const char *const rate_units[] = {"vector", "matrix", NULL};

static const struct dl_field rate_fields[] = {
    DL_FIELD(struct dl_rate, precision, CHOICE, .choices = dl_precision_names, .required = true,
             .help = "precision of the arithmetic; mixed has no rate of its own"),
    DL_FIELD(struct dl_rate, unit, CHOICE, .choices = rate_units, .required = true,
             .help = "vector, or matrix (tensor cores, AMX)"),
    DL_FIELD(struct dl_rate, peak_flop_per_s, NUMBER, DL_RANGE(1e6, 1e18, DL_UNIT_FLOP_PER_S),
             .required = true, .help = "datasheet peak, dense"),
    DL_FIELD(struct dl_rate, sustained_flop_per_s, NUMBER, DL_RANGE(1e6, 1e18, DL_UNIT_FLOP_PER_S),
             .help = "measured rate of large GEMMs, with clocks under the power limit"),
    DL_FIELD(struct dl_rate, source, STRING,
             .help = "key of data/SOURCES.md; absent: the device's"),
    {.key = NULL},
};

static const struct dl_schema rate_schema = {
    .name = "rate",
    .summary = "peak arithmetic rate of one precision on one kind of unit",
    .size = sizeof(struct dl_rate),
    .fields = rate_fields,
};

#define WORK_CHOICE(member, names, text)                                                           \
    DL_FIELD(struct dl_work_factor, member, CHOICE, .choices = names, .required = true,            \
             .help = text)

static const struct dl_field work_fields[] = {
    WORK_CHOICE(work, dl_work_names, "kind of work"),
    WORK_CHOICE(pass, dl_pass_names, "pass of training"),
    WORK_CHOICE(precision, dl_precision_names, "precision of the samples"),
    DL_FIELD(struct dl_work_factor, factor, NUMBER, DL_RANGE(0.01, 100, DL_UNIT_NONE),
             .required = true,
             .help = "measured time of such kernels / time from the model that all kinds share"),
    DL_FIELD(struct dl_work_factor, source, STRING,
             .help = "key of data/SOURCES.md; absent: the device's"),
    {.key = NULL},
};

static const struct dl_schema work_schema = {
    .name = "work",
    .summary = "correction of the kernel-time model for one kind of work",
    .size = sizeof(struct dl_work_factor),
    .fields = work_fields,
};

static const struct dl_field device_fields[] = {
    STRING(name, true, "name of the file"),
    STRING(summary, true, "one line"),
    DL_FIELD(struct dl_device, aliases, STRINGS,
             .count_offset = offsetof(struct dl_device, alias_count),
             .help = "further names, in tables of measurements"),
    STRING(source, false, "key of data/SOURCES.md for numbers without their own"),
    {.key = "kind",
     .type = DL_FIELD_CHOICE,
     .offset = offsetof(struct dl_device, kind),
     .choices = dl_device_kinds,
     .required = true,
     .help = "GPU or CPU (one socket, or some of its cores)"},
    STRING(vendor, false, "maker, in lower case"),
    STRING(architecture, false, "generation, in lower case: volta"),
    DL_FIELD(struct dl_device, memory_bytes, NUMBER, DL_RANGE(1e6, 1e15, DL_UNIT_BYTE),
             .required = true, .help = "capacity of the device's memory"),
    DL_FIELD(struct dl_device, memory_bandwidth_bytes_per_s, NUMBER,
             DL_RANGE(1e6, 1e15, DL_UNIT_BYTE_PER_S), .required = true,
             .help = "memory bandwidth of the datasheet"),
    NUMBER(memory_efficiency, 0.01, 1, DL_UNIT_NONE,
           "bandwidth of long streams: attained / datasheet"),
    NUMBER(l2_bytes, 1, 1e12, DL_UNIT_BYTE, "last-level cache"),
    DL_FIELD(struct dl_device, unit_count, INTEGER, DL_RANGE(1, 1e6, DL_UNIT_COUNT),
             .help = "streaming multiprocessors or cores"),
    NUMBER(clock_hz, 1e6, 1e11, DL_UNIT_HZ, "clock at which the peaks hold"),
    POWER(tdp_w, "thermal design power: what it may draw where no limit is set"),
    POWER(idle_w, "power without work; absent: 0.15 of tdp_w"),
    POWER(load_w,
          "power in kernels bound by arithmetic at clock_hz, also above tdp_w; absent: tdp_w"),
    POWER(uncapped_load_w,
          "power in kernels bound by arithmetic at the highest clock, where tdp_w lowers it and "
          "kernels were timed under tdp_w (F-POWER-CAP); absent: load_w"),
    POWER(power_limit_w,
          "limit that an administrator set, e.g. nvidia-smi -pl; absent: tdp_w. Lowers the clock "
          "(F-POWER-CAP)"),
    NUMBER(kernel_latency_s, 0, 0.1, DL_UNIT_S, "shortest kernel on the device, start to end"),
    {.key = "together_ratio",
     .type = DL_FIELD_NUMBER,
     .offset = offsetof(struct dl_device, all_sockets_slowdown_ratio),
     DL_RANGE(1, 100, DL_UNIT_NONE),
     .help = "CPU: slowdown of compute when all devices of the host are busy (ratio)"},
    NUMBER(kernel_gap_s, 0, 0.1, DL_UNIT_S, "time between two queued kernels on the device"),
    NUMBER(collective_slowdown_frac, 0, 10, DL_UNIT_NONE,
           "compute time lost while NCCL runs / time of its transfers: its kernels occupy units of "
           "the device even while they wait"),
    SCALE(load_scale, 0.5, 2,
          "GEMMs of 16 bits and less in hours of training: time / time of short measurements: the "
          "clock under the power limit; absent: 1"),
    SCALE(attention_scale, 0.2, 10,
          "fused attention: time / time on the device whose kernel-time models this one borrows; "
          "absent: 1"),
    SCALE(triton_attention_scale, 0.5, 10,
          "attention: time of the first FlashAttention, in Triton / time of FlashAttention-2; "
          "absent: 1"),
    SCALE(flash2_scale, 0.2, 10,
          "attention: time of FlashAttention-2, which uses the instructions of Ampere / time of "
          "the kernels written for the device; absent: 1"),
    SCALE(
        grouped_scale, 0.2, 10,
        "GEMMs of experts: time of PyTorch's grouped kernels in 16 bits / time of a GEMM for each "
        "expert; absent: 1"),
    SCALE(narrow_grouped_scale, 0.2, 10, "the same in 8 bits and less"),
    NUMBER(launch_s, 0, 0.1, DL_UNIT_S, "host time to queue one kernel with the bare runtime"),
    NUMBER(context_bytes, 0, 1e12, DL_UNIT_BYTE, "device memory of the runtime and libraries"),
    NUMBER(workspace_bytes, 0, 1e12, DL_UNIT_BYTE,
           "default workspace limit of the convolution library"),
    DL_FIELD(struct dl_device, rates, LIST, .count_offset = offsetof(struct dl_device, rate_count),
             .child = &rate_schema, .required = true, .help = "peak arithmetic rates"),
    {.key = "kernel_models",
     .alias = "surfaces",
     .type = DL_FIELD_LIST,
     .offset = offsetof(struct dl_device, kernel_models),
     .count_offset = offsetof(struct dl_device, kernel_model_count),
     .child = &dl_kernel_model_schema,
     .help = "fitted kernel-time models; absent: those of kernels/NAME.json, if any"},
    DL_FIELD(struct dl_device, works, LIST, .count_offset = offsetof(struct dl_device, work_count),
             .child = &work_schema, .help = "kinds of work that were measured separately"),
    {.key = "kernel_models_from",
     .alias = "surfaces_from",
     .type = DL_FIELD_STRING,
     .offset = offsetof(struct dl_device, kernel_models_from),
     .help = "device whose kernel-time models are borrowed, scaled by the ratio of the peaks"},
    SCALE(direct_conv_scale, 0.1, 10,
          "convolutions without a fast algorithm (1x1, strided, unequal sides): time / time from "
          "borrowed kernel-time models"),
    SCALE(unequal_conv_scale, 0.1, 10,
          "convolutions with unequal sides (1x7) by the libraries of the device's time: time / as "
          "for others"),
    SCALE(norm_scale, 0.1, 20,
          "batch normalization by the libraries of the device's time: time / time by bandwidth, "
          "where the framework file gives none"),
    DL_FIELD(struct dl_device, sources, MAP,
             .count_offset = offsetof(struct dl_device, source_count),
             .help = "member -> key of data/SOURCES.md"),
    STRING(comment, false, "free text: how conflicting sources were weighed"),
    {.key = NULL},
};

const struct dl_schema dl_device_schema = {
    .name = "dlmodel-device",
    .summary = "one accelerator or CPU socket: peaks, memory, kernel times",
    .size = sizeof(struct dl_device),
    .fields = device_fields,
    .top_level = true,
};

static const struct dl_rate *rate_of(const struct dl_device *device, enum dl_precision precision,
                                     int unit) {
    for (int i = 0; i < device->rate_count; i++)
        if (device->rates[i].precision == (int)precision && device->rates[i].unit == unit)
            return &device->rates[i];
    return NULL;
}

/* The fastest unit of a precision; NULL: none. */
static const struct dl_rate *fastest(const struct dl_device *device, enum dl_precision precision) {
    enum dl_precision operands = precision == DL_MIXED ? DL_FP16 : precision;
    const struct dl_rate *matrix = rate_of(device, operands, 1),
                         *vector = rate_of(device, operands, 0);
    if (matrix != NULL)
        return vector != NULL && vector->peak_flop_per_s > matrix->peak_flop_per_s ? vector
                                                                                   : matrix;
    if (precision == DL_MIXED) return rate_of(device, DL_FP32, 0);
    if (vector != NULL) return vector;
    return precision == DL_FP16 ? rate_of(device, DL_FP32, 0) : NULL;
}

double dl_device_gap_s(const struct dl_device *device) {
    return dl_known(device->kernel_gap_s) ? device->kernel_gap_s : 0;
}

double dl_device_peak(const struct dl_device *device, enum dl_precision precision) {
    const struct dl_rate *rate = fastest(device, precision);
    return rate != NULL ? rate->peak_flop_per_s : NAN;
}

bool dl_device_on_matrix_units(const struct dl_device *device, enum dl_precision precision) {
    const struct dl_rate *rate = fastest(device, precision);
    return rate != NULL && rate->unit == 1;
}

double dl_device_sustained(const struct dl_device *device, enum dl_precision precision) {
    const struct dl_rate *rate = fastest(device, precision);
    return rate != NULL && rate->sustained_flop_per_s > 0.0 ? rate->sustained_flop_per_s : NAN;
}

static enum dl_code check_rates(const struct dl_device *device, const struct dl_json *doc,
                                const char *prefix, struct dl_err *err) {
    char where[192];
    for (int i = 0; i < device->rate_count; i++) {
        const struct dl_rate *rate = &device->rates[i];
        snprintf(where, sizeof where, "%srates[%d].precision", prefix, i);
        if (rate->precision == DL_MIXED)
            return dl_json_fail(doc, where, err,
                                "mixed is not a rate of its own; give the fp16 rate");
        for (int j = 0; j < i; j++)
            if (device->rates[j].precision == rate->precision &&
                device->rates[j].unit == rate->unit)
                return dl_json_fail(
                    doc, where, err,
                    "expected one rate for each precision and unit; rates[%d] has the same", j);
    }
    snprintf(where, sizeof where, "%srates", prefix);
    if (device->rate_count == 0) return dl_json_fail(doc, where, err, "expected at least one rate");
    return DL_OK;
}

enum dl_code dl_device_check_at(const struct dl_device *device, const struct dl_json *doc,
                                const char *path, struct dl_err *err) {
    char prefix[128], where[192];
    snprintf(prefix, sizeof prefix, "%s%s", path, *path != '\0' ? "." : "");
    if (device->kernel_models_from != NULL &&
        strcmp(device->kernel_models_from, device->name) == 0) {
        snprintf(where, sizeof where, "%skernel_models_from", prefix);
        return dl_json_fail(doc, where, err,
                            "expected another device: a device cannot borrow from itself");
    }
    if (dl_known(device->context_bytes) && device->context_bytes >= device->memory_bytes) {
        snprintf(where, sizeof where, "%scontext_bytes", prefix);
        return dl_json_fail(doc, where, err, "expected less than memory_bytes");
    }
    DL_TRY(check_rates(device, doc, prefix, err));
    return dl_provenance_check(device->sources, device->source_count, &dl_device_schema, doc, path,
                               err);
}

/* Fraction of the datasheet's bandwidth that long streams attain, where the device file has none;
 * 0.75 to 0.85 are usual (unverified). */
static const double GENERIC_BANDWIDTH_FRAC = 0.8;
double dl_device_stream_bandwidth(const struct dl_device *device) {
    const double efficiency = device->memory_efficiency;
    return device->memory_bandwidth_bytes_per_s *
           (dl_known(efficiency) ? efficiency : GENERIC_BANDWIDTH_FRAC);
}

static const double INTEGER_LANES = 64.0; /* of a unit, from Volta on */

double dl_device_integer_rate(const struct dl_device *device) {
    const enum dl_generation generation = dl_generation_of(device->architecture);
    const double fp32 = dl_device_peak(device, DL_FP32) / 2.0;
    if (generation >= DL_KEPLER && generation < DL_VOLTA) return fp32;
    const double integers = INTEGER_LANES * (double)device->unit_count * device->clock_hz;
    return integers > 0.0 ? fmin(fp32, integers) : fp32;
}

bool dl_device_same_architecture(const struct dl_device *a, const struct dl_device *b) {
    return a->architecture != NULL && b->architecture != NULL &&
           strcmp(a->architecture, b->architecture) == 0;
}

double dl_device_attained(const struct dl_device *device, enum dl_precision precision) {
    for (const struct dl_device *from = device; from != NULL; from = from->borrowed) {
        const double share = dl_device_sustained(from, precision) / dl_device_peak(from, precision);
        if (share > 0.0 && (from == device || dl_device_same_architecture(device, from)))
            return share * dl_device_peak(device, precision);
    }
    return precision == DL_MXFP8 ? dl_device_attained(device, DL_FP8) : NAN;
}

enum dl_code dl_device_check(const struct dl_device *device, const struct dl_json *doc,
                             struct dl_err *err) {
    return dl_device_check_at(device, doc, "", err);
}

const char *dl_device_kernels_name(const struct dl_device *device) {
    return device->kernel_models_from != NULL ? device->kernel_models_from : device->name;
}

const char *dl_device_architecture(const struct dl_device *device) {
    return device->architecture != NULL ? device->architecture : "";
}

enum dl_generation dl_generation_of(const char *architecture) {
    static const struct {
        const char *architecture;
        enum dl_generation generation;
    } rows[] = {{"kepler", DL_KEPLER},       {"maxwell", DL_MAXWELL},  {"pascal", DL_PASCAL},
                {"volta", DL_VOLTA},         {"turing", DL_TURING},    {"ampere", DL_AMPERE},
                {"ampere-rtx", DL_AMPERE},   {"ada", DL_ADA},          {"hopper", DL_HOPPER},
                {"blackwell", DL_BLACKWELL}, {"blackwell-rtx", DL_ADA}};
    for (size_t i = 0; architecture != NULL && i < sizeof rows / sizeof rows[0]; i++)
        if (strcmp(architecture, rows[i].architecture) == 0) return rows[i].generation;
    return DL_NO_GENERATION;
}
