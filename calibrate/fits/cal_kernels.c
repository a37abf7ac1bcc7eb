/* cal_kernels.c - see the header. */
#include "calibrate/fits/cal_kernels.h"

#include <string.h>

#include "calibrate/fits/fit_kernel.h"
#include "model/core/file.h"

static const struct dl_column columns[] = {
    {"op", "op", "", DL_COLUMN_STRING, 0, 0},
    {"pass", "pass", "", DL_COLUMN_STRING, 0, 0},
    {"precision", "precision", "", DL_COLUMN_STRING, 0, 0},
    {"work", "work", "", DL_COLUMN_STRING, 0, 0},
    {"variant", "variant", "", DL_COLUMN_STRING, 0, 0},
    {"samples", "samples", "", DL_COLUMN_INTEGER, 0, 0},
    {"folds", "folds", "", DL_COLUMN_INTEGER, 0, 0},
    {"median_error_frac", "median", "%", DL_COLUMN_NUMBER, 0.01, 3},
    {"p90_error_frac", "p90", "%", DL_COLUMN_NUMBER, 0.01, 3},
    {"max_error_frac", "max", "%", DL_COLUMN_NUMBER, 0.01, 3},
    {"bias_frac", "bias", "%", DL_COLUMN_NUMBER, 0.01, 2},
    {"one_factor_median_error_frac", "one factor", "%", DL_COLUMN_NUMBER, 0.01, 3},
    {"one_factor_p90_error_frac", "its p90", "%", DL_COLUMN_NUMBER, 0.01, 3},
};
enum { COLUMNS = sizeof columns / sizeof *columns };

static void fill(struct dl_table *table, const struct dl_fit_report_row *rows, size_t count) {
    for (size_t i = 0; i < count; i++) {
        const struct dl_fit_quality *q = &rows[i].quality;
        dl_table_add(
            table, {.string = dl_op_names[rows[i].op]}, {.string = dl_pass_names[rows[i].pass]},
            {.string = dl_precision_names[rows[i].precision]},
            {.string = dl_work_names[rows[i].work]}, {.string = dl_variant_names[rows[i].variant]},
            {.integer = (int64_t)q->samples}, {.integer = (int64_t)q->folds},
            {.number = q->median_ape}, {.number = q->p90_ape}, {.number = q->max_ape},
            {.number = q->bias}, {.number = q->one_factor_median_ape},
            {.number = q->one_factor_p90_ape});
    }
}

enum dl_code dl_cal_kernels(struct dl_context *context, const struct dl_options *options,
                            enum dl_format format, struct dl_err *err) {
    const char *name = dl_option_text(options, "device"), *path = dl_option_text(options, "output");
    const struct dl_device *device;
    struct dl_fit_report report;
    const char *files[DL_MAX_POSITIONAL + 1];
    size_t file_count = 0;
    files[file_count++] = dl_option_text(options, "kernels");
    for (int i = 0; i < options->positional_count; i++)
        files[file_count++] = options->positional[i];
    if (name == NULL)
        return dl_fail(err, DL_ERR_USAGE,
                       "--kernels needs --device NAME; 'dlmodel list devices' shows the names");
    DL_TRY(dl_data_device(&context->data, name, context->arena, &device, err));
    DL_TRY(dl_fit_kernel_files(files, file_count, device, context->arena, &report, err));
    const char *text = dl_json_text(&dl_kernel_model_set_schema, &report.set, context->arena);
    if (path != NULL) DL_TRY(dl_file_write(path, text, strlen(text), err));
    if (path != NULL && strcmp(path, "-") == 0) return DL_OK;
    if (format == DL_FORMAT_JSON) return context->output(NULL, text, err);
    struct dl_table table;
    dl_table_init(&table, context->arena, columns, COLUMNS);
    fill(&table, report.rows, (size_t)report.set.kernel_model_count);
    if (format == DL_FORMAT_CSV) return context->output(NULL, dl_table_csv(&table), err);
    const char *shown = dl_table_text(&table);
    return context->output(
        NULL,
        dl_arena_printf(context->arena,
                        "Kernel-time models of %s: errors on held-out shapes (folds 0: in-sample); "
                        "one factor: with a single share of the peak for all kernels\n%s%s%s%s",
                        device->name, shown, path != NULL ? "kernel-time models: " : "",
                        path != NULL ? path : "no file written; give -o FILE", "\n"),
        err);
}
