/* compare_kernels.c - published kernel times next to the kernel-time models of the device files.
 * These models were fitted to the same tables: the errors are those of a fit, not of predictions of
 * unseen kernels. */
#include <math.h>
#include <string.h>

#include "model/catalog/data.h"
#include "model/machine/kernel_match.h"
#include "predict/compare/compare.h"

enum { MAX_DEVICES = 64 };

/* A device file is read once; a missing one is remembered with the reason. */
struct device_cache {
    const struct dl_data *data;
    struct dl_arena *arena;
    struct dl_loaded_device {
        const char *column;
        const struct dl_device *device;
        const char *why;
    } entries[MAX_DEVICES];
    int count;
};

/* The device file with an alias, for a name that no file has. */
static enum dl_code follow_alias(const struct dl_data *data, const char **name,
                                 struct dl_arena *arena, struct dl_err *err) {
    const char **names = NULL, *path = NULL;
    struct dl_err ignored;
    const bool is_path = strstr(*name, ".json") != NULL, two = strchr(*name, '/') != NULL;
    if ((is_path || !two) &&
        dl_data_path(data, DL_DATA_DEVICE, *name, arena, &path, &ignored) == DL_OK)
        return DL_OK;
    dl_data_names(data, DL_DATA_DEVICE, arena, &names);
    for (int i = 0; names[i] != NULL; i++) {
        const struct dl_device *device = NULL;
        DL_TRY(dl_data_device(data, names[i], arena, &device, err));
        for (int a = 0; a < device->alias_count; a++)
            if (strcmp(device->aliases[a], *name) == 0) {
                *name = device->name;
                return DL_OK;
            }
    }
    if (two) *name = NULL; /* "X/Y", either of two, is no path */
    return DL_OK;
}

static enum dl_code find_device(struct device_cache *cache, const char *column, bool by_gpu,
                                struct dl_loaded_device *out, struct dl_err *err) {
    for (int i = 0; i < cache->count; i++) {
        if (strcmp(cache->entries[i].column, column) == 0) {
            *out = cache->entries[i];
            return DL_OK;
        }
    }
    *out = (struct dl_loaded_device){.column = column};
    const char *name = by_gpu ? column : dl_kernel_match_device(column);
    struct dl_err inner = {0};
    if (name != NULL) DL_TRY(follow_alias(cache->data, &name, cache->arena, err));
    const enum dl_code code =
        name == NULL ? DL_ERR_USAGE
                     : dl_data_device(cache->data, name, cache->arena, &out->device, &inner);
    if (code != DL_OK && code != DL_ERR_USAGE) {
        *err = inner;
        return code;
    }
    if (code != DL_OK) {
        out->device = NULL;
        out->why = name == NULL
                       ? dl_arena_printf(cache->arena, "no device file describes %s", column)
                       : dl_arena_strdup(cache->arena, inner.message);
    }
    if (cache->count < MAX_DEVICES) cache->entries[cache->count++] = *out;
    return DL_OK;
}

/* "conv fwd", "conv fwd+" with further passes: shown where runs show their workload. */
static const char *kernel_text(struct dl_arena *arena, const struct dl_kernel_row *row) {
    return dl_arena_printf(arena, "%s %s%s", dl_op_names[row->kernel.op],
                           dl_pass_names[row->kernel.pass], row->more_count > 0 ? "+" : "");
}

/* GPU, operation and type: the group of a row in a table by GPU. */
static const char *group_text(struct dl_arena *arena, const struct dl_kernel_row *row) {
    return dl_arena_printf(arena, "%s %s %s", row->device, dl_op_names[row->kernel.op],
                           dl_precision_names[row->precision]);
}

/* A time taken from outside is no shorter than the call; smooth where both are near. */
static double with_call(double time_s, double call_s) {
    if (!(call_s > 0)) return time_s;
    const double ratio = fmin(time_s, call_s) / fmax(time_s, call_s);
    return fmax(time_s, call_s) * sqrt(sqrt(1 + ratio * ratio * ratio * ratio));
}

static void predict_row(const struct dl_device *device, const struct dl_kernel_row *row,
                        struct dl_compared *out, struct dl_arena *arena) {
    static const char *const limits[] = {"compute", "memory-bandwidth", "latency"};
    /* 90 % quantile of the normal distribution: 80 % lie inside +- */
    const double normal_90 = 1.2815515655446004;
    struct dl_kernel_time time;
    if (device->kernel_model_count == 0 && device->borrowed == NULL) {
        out->skipped = true;
        out->why = dl_arena_printf(arena, "%s has no kernel-time model", device->name);
        return;
    }
    dl_kernel_time(device, row->precision, &row->kernel, &time);
    double longest_s = time.time_s;
    for (int i = 0; i < row->more_count; i++) {
        struct dl_kernel_time part;
        dl_kernel_time(device, row->precision, &row->more[i], &part);
        time.time_s += part.time_s;
        time.sigma_log = fmax(time.sigma_log, part.sigma_log);
        if (part.time_s > longest_s) {
            longest_s = part.time_s;
            time.limit = part.limit;
        }
    }
    if (!(time.time_s > 0)) {
        out->skipped = true;
        out->why = dl_arena_printf(arena, "%s has no %s rate", device->name,
                                   dl_precision_names[row->precision]);
        return;
    }
    if (row->by_call)
        time.time_s =
            with_call(time.time_s, dl_kernel_call_s(device, row->precision, &row->kernel));
    out->predicted = time.time_s;
    out->low = time.time_s * exp(-normal_90 * time.sigma_log);
    out->high = time.time_s * exp(normal_90 * time.sigma_log);
    out->error_pct = 100 * (out->predicted - out->measured) / out->measured;
    out->bottleneck = limits[time.limit];
}

enum dl_code dl_compare_kernels(const struct dl_data *data, const struct dl_csv *csv,
                                struct dl_comparison *out, struct dl_err *err) {
    struct device_cache cache = {.data = data, .arena = out->arena};
    const int source = dl_csv_column(csv, "source_path");
    const bool by_gpu = dl_csv_column(csv, "gpu") >= 0;
    for (int r = 0; r < csv->row_count; r++) {
        struct dl_kernel_row row;
        struct dl_loaded_device device = {.device = NULL};
        DL_TRY(dl_kernel_row_read(csv, r, &row, err));
        DL_TRY(find_device(&cache, row.device, by_gpu, &device, err));
        struct dl_compared *compared = dl_comparison_add(out);
        *compared = (struct dl_compared){
            .id = dl_arena_printf(out->arena, "%s:%d", csv->name, csv->row_lines[r]),
            .source = by_gpu       ? group_text(out->arena, &row)
                      : source < 0 ? csv->name
                                   : csv->rows[r][source],
            .unit = "s",
            .devices = 1,
            .system = device.device != NULL ? device.device->name : row.device,
            .framework = NULL,
            .measured = row.measured_s,
            .predicted = NAN,
            .error_pct = NAN,
            .low = NAN,
            .high = NAN,
            .workload = row.why == NULL ? kernel_text(out->arena, &row) : NULL,
        };
        if (row.why != NULL || device.device == NULL) {
            compared->skipped = true;
            compared->why = row.why != NULL ? row.why : device.why;
            continue;
        }
        predict_row(device.device, &row, compared, out->arena);
    }
    return DL_OK;
}
