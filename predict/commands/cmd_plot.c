/* cmd_plot.c - figures: predicted and measured scaling, the parts of an iteration, errors. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "model/base/file.h"
#include "predict/plot/plot.h"

static const struct dl_option plot_options[] = {
    {"where", 0, "COLUMN=VALUE", "Rows",
     "of files: only rows with that value, e.g. backend=nccl or batch_per_device=64,32", true},
    {"by", 0, "COLUMN", "Rows",
     "plot error: workload, system, precision, framework, ... or source; default source", false},
    {"title", 0, "TEXT", "Output", "instead of the title that says what is drawn", false},
    {"csv", 0, NULL, "Output", "print the numbers of the figure instead; needs no gnuplot", false},
    {"format", 0, "png|svg|pdf|terminal", "Output",
     "default: that of FILE's name; terminal without -o", false},
    {"output", 'o', "FILE", "Output",
     "picture, replaced only when complete; a name without extension gives .png and .svg", false},
    {"help", 'h', NULL, "Output", "this text", false},
    {.name = NULL},
};
static const struct dl_option *const tables[] = {plot_options, dl_input_options, NULL};
static const char *const examples[] = {
    "dlmodel plot scaling data/runs/azure_batch_ai.csv --workload resnet50 --where backend=nccl -o "
    "scaling.png",
    "dlmodel plot scaling --system iris-v100 --workload vgg16 --framework "
    "horovod-tensorflow,tensorflow-ps --nodes 1-64*2",
    "dlmodel plot breakdown --system iris-v100 --framework pytorch-ddp --nodes 1-64*2 -o breakdown",
    "dlmodel plot timeline --system iris-v100 --workload vgg16 --framework pytorch-ddp --nodes 4 "
    "-o timeline.svg",
    "dlmodel plot strategies --system abci-v100 --workload vgg16 --strategy "
    "data,spatial,filter,channel --nodes 1-16*2",
    "dlmodel plot error data/runs/*.csv -o error.svg",
    "dlmodel plot roofline --system iris-v100 --workload resnet50 --precision mixed --framework "
    "pytorch-ddp --nodes 1",
    "dlmodel plot kernels data/kernels/deepbench_conv.csv --where device=V100 --where "
    "precision=fp32 -o kernels",
    "dlmodel plot alphabeta data/collectives/published.csv --where library=NCCL --where nodes=1 "
    "--where device=V100-SXM2-16GB -o fit.png",
    NULL,
};

/* A kind is one row here, one plot_KIND.c and one plots/KIND.gp. */
static const struct dl_plot_kind kinds[] = {
    {"scaling", "throughput against devices: measured, predicted with its interval, ideal",
     "scaling", dl_plot_scaling},
    {"efficiency", "the same as a share of linear scaling from the smallest run", "efficiency",
     dl_plot_efficiency},
    {"strategies", "throughput against devices by strategy (--strategy a,b,c or all)", "scaling",
     dl_plot_strategies},
    {"breakdown", "parts of an iteration against nodes", "breakdown", dl_plot_breakdown},
    {"timeline", "one iteration: device, network and what overlaps", "timeline", dl_plot_timeline},
    {"memory", "memory of a device by part, against its capacity", "memory", dl_plot_memory},
    {"roofline", "layers of a workload on their device's roofline", "roofline", dl_plot_roofline},
    {"pareto", "front of time and memory that a search found", "pareto", dl_plot_pareto},
    {"error", "signed error of every compared row, by source", "error", dl_plot_error},
    {"kernels", "predicted against measured kernel times", "kernels", dl_plot_kernels},
    {"alphabeta", "collectives against size: samples, fit, switches, residuals", "alphabeta",
     dl_plot_alphabeta},
    {NULL, NULL, NULL, NULL},
};

struct picture {
    const char *path;
    enum dl_plot_format format;
}; /* path NULL: stdout */

static enum dl_code find_kind(const struct dl_options *options, const struct dl_plot_kind **out,
                              struct dl_err *err) {
    const char *names[16], *given = options->positional_count > 0 ? options->positional[0] : NULL;
    char all[256] = "";
    int count = 0;
    for (const struct dl_plot_kind *k = kinds; k->name != NULL; k++) {
        if (given != NULL && strcmp(k->name, given) == 0) {
            *out = k;
            return DL_OK;
        }
        names[count++] = k->name;
        snprintf(all + strlen(all), sizeof all - strlen(all), "%s%s", all[0] != 0 ? ", " : "",
                 k->name);
    }
    names[count] = NULL;
    if (given == NULL) return dl_fail(err, DL_ERR_USAGE, "expected what to plot: one of %s", all);
    const char *near = dl_suggest(given, names);
    return dl_fail(err, DL_ERR_USAGE, "no plot '%.60s'; %s%s%sthere are %s", given,
                   near != NULL ? "did you mean '" : "", near != NULL ? near : "",
                   near != NULL ? "'? " : "", all);
}

/* "" when the last part of the path has no extension. */
static const char *extension_of(const char *path) {
    const char *slash = strrchr(path, '/'), *name = slash == NULL ? path : slash + 1,
               *dot = strrchr(name, '.');
    return dot == NULL || dot == name ? "" : dot + 1;
}

/* What to write: one picture, or two for a name without extension. Returns how many in *count_out.
 */
static enum dl_code choose_pictures(struct dl_context *context, const struct dl_options *options,
                                    struct picture *out, int *count_out, struct dl_err *err) {
    const char *path = dl_option_text(options, "output");
    const bool given = dl_option_given(options, "format"),
               to_file = path != NULL && strcmp(path, "-") != 0;
    int format = DL_PLOT_TERMINAL, named = 0;
    DL_TRY(dl_option_choice(options, "format", dl_plot_formats, &format, err));
    *count_out = 1;
    out[0] = (struct picture){NULL, (enum dl_plot_format)format};
    if (!to_file) {
        if (format == DL_PLOT_TERMINAL || !isatty(STDOUT_FILENO)) return DL_OK;
        return dl_fail(err, DL_ERR_USAGE,
                       "a %s picture is not for a terminal; give -o FILE.%s or --format terminal",
                       dl_plot_formats[format], dl_plot_formats[format]);
    }
    const char *extension = extension_of(path);
    struct stat place;
    if (path[0] == 0 || path[strlen(path) - 1] == '/' ||
        (stat(path, &place) == 0 && S_ISDIR(place.st_mode))) {
        return dl_fail(err, DL_ERR_USAGE,
                       "--output: expected a file such as scaling.png, got \"%s\"%s", path,
                       path[0] == 0 ? "" : ", a directory");
    }
    if (strcmp(extension, "txt") == 0) extension = dl_plot_formats[DL_PLOT_TERMINAL];
    while (dl_plot_formats[named] != NULL && strcmp(dl_plot_formats[named], extension) != 0)
        named++;
    if (extension[0] == 0 && given) {
        out[0].path = dl_arena_printf(context->arena, "%s.%s", path,
                                      format == DL_PLOT_TERMINAL ? "txt" : dl_plot_formats[format]);
    } else if (extension[0] == 0) {
        *count_out = 2;
        for (int f = DL_PLOT_PNG; f <= DL_PLOT_SVG; f++) {
            out[f] =
                (struct picture){dl_arena_printf(context->arena, "%s.%s", path, dl_plot_formats[f]),
                                 (enum dl_plot_format)f};
        }
    } else if (dl_plot_formats[named] == NULL && !given) {
        return dl_fail(err, DL_ERR_USAGE,
                       "--output: expected .png, .svg, .pdf, .txt or no extension, got \"%s\"",
                       path);
    } else if (dl_plot_formats[named] != NULL && given && named != format) {
        return dl_fail(err, DL_ERR_USAGE, "--format %s contradicts the name \"%s\"",
                       dl_plot_formats[format], path);
    } else {
        out[0] = (struct picture){path,
                                  given ? (enum dl_plot_format)format : (enum dl_plot_format)named};
    }
    for (int i = 0; i < *count_out; i++) {
        if (out[i].path == NULL) return dl_fail(err, DL_ERR_SYSTEM, "out of memory");
    }
    return DL_OK;
}

static enum dl_code run(struct dl_context *context, const struct dl_options *options,
                        struct dl_err *err) {
    const struct dl_plot_kind *kind = NULL;
    struct picture pictures[2];
    struct dl_figure figure = {.group_count = 0};
    int count = 0;
    DL_TRY(find_kind(options, &kind, err));
    const bool numbers = dl_option_given(options, "csv");
    if (numbers && dl_option_given(options, "format"))
        return dl_fail(err, DL_ERR_USAGE, "--csv prints numbers, --format draws: give one");
    if (dl_option_given(options, "by") && kind->build != dl_plot_error)
        return dl_fail(err, DL_ERR_USAGE, "--by is for plot error");
    if (dl_option_given(options, "where") && options->positional_count < 2) {
        return dl_fail(err, DL_ERR_USAGE, "--where chooses rows of files, and no file is given");
    }
    if (!numbers) DL_TRY(choose_pictures(context, options, pictures, &count, err));
    DL_TRY(kind->build(context, options, &figure, err));
    if (numbers) return context->output(options, dl_table_csv(&figure.table), err);
    if (dl_option_given(options, "title")) figure.title = dl_option_text(options, "title");
    for (int i = 0; i < count; i++) {
        char *bytes;
        size_t length;
        DL_TRY(dl_plot_render(context, &figure, kind->script, pictures[i].format, &bytes, &length,
                              err));
        if (length > 0 && bytes[0] == '\f') { /* the text terminal begins with a new page */
            bytes++;
            length--;
        }
        DL_TRY(
            dl_file_write(pictures[i].path == NULL ? "-" : pictures[i].path, bytes, length, err));
        if (pictures[i].path != NULL) context->note(context, "wrote %s", pictures[i].path);
    }
    return DL_OK;
}

const struct dl_command dl_cmd_plot = {
    .name = "plot",
    .summary = "scaling, breakdown of an iteration, errors: as a picture or in the terminal",
    .usage = "KIND [FILE.csv...] [options]",
    .purpose =
        "Draws with gnuplot. KIND is one of: scaling, efficiency (with files measured runs beside "
        "predictions, without files "
        "predictions for --nodes), strategies (--strategy a,b,c or all), breakdown (parts of an "
        "iteration), timeline (of one iteration), "
        "memory (of a device by part), roofline (layers on that of the system's device), pareto "
        "FILE (front that search --pareto --csv wrote), "
        "error FILE... (by --by), kernels FILE... (predicted beside measured times), alphabeta "
        "FILE... (collectives against size with their "
        "alpha-beta pieces, the model's switches and residuals; without files those of the profile "
        "--system). With files, --system, "
        "--workload, --framework, --precision and --where choose rows; values may be lists (a,b).",
    .examples = examples,
    .words = "scaling efficiency strategies breakdown timeline memory roofline pareto error "
             "kernels alphabeta",
    .options = tables,
    .run = run,
};
