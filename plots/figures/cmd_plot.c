/* cmd_plot.c - figures: predicted and measured scaling, the parts of an iteration, errors. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "model/core/file.h"
#include "model/core/text.h"
#include "predict/output/checkpoint_inputs.h"
#include "predict/inputs/match.h"
#include "plots/figures/plot.h"

struct asked {
    bool numbers, format_given, by_given, where_given;
    int format;
    int64_t width;
    const char *title, *path, *by;
};
#define ASKED(member) struct asked, member

static const struct dl_option plot_options[] = {
    {"where", 0, "COLUMN=VALUE", "Rows",
     "draw only rows of the files with that value, e.g. backend=nccl or batch_per_device=64,32",
     DL_VALUE(.repeatable = true, DL_GIVEN(ASKED(where_given)))},
    {"by", 0, "COLUMN", "Rows",
     "plot error: group rows by workload, system, precision, framework, ...; default source",
     DL_TEXT_OF(ASKED(by), DL_GIVEN(ASKED(by_given)))},
    {"title", 0, "TEXT", "Output", "title of the figure; default: what it shows",
     DL_TEXT(ASKED(title))},
    {"csv", 0, NULL, "Output", "print the numbers of the figure instead; needs no gnuplot",
     DL_FLAG(ASKED(numbers))},
    {"format", 0, "png|svg|pdf|eps|terminal", "Output",
     "format of the figure; default: by the extension of FILE, terminal without -o",
     DL_CHOICE(ASKED(format), .choices = dl_plot_formats, DL_GIVEN(ASKED(format_given)))},
    {"width", 0, "PX", "Output",
     "width of the figure in pixels, 400 to 4000; text keeps its size; default: by the kind, 800 "
     "to 1000 (PDF and EPS: 24 cm are 800)",
     DL_INTEGER(ASKED(width), .min = 400, .max = 4000)},
    {"output", 'o', "FILE", "Output",
     "write the figure to FILE, replaced only when complete; without an extension: .png and .svg",
     DL_TEXT(ASKED(path))},
    {"help", 'h', NULL, "Output", "print this text", NULL},
    {.name = NULL},
};
static const struct dl_option *const tables[] = {plot_options, dl_input_options,
                                                 dl_checkpoint_options, dl_match_options, NULL};
static const char *const examples[] = {
    "dlmodel plot scaling data/runs/azure_batch_ai.csv --workload resnet50 --where backend=nccl -o "
    "scaling.png",
    "dlmodel plot scaling --system iris-v100 --workload vgg16 --framework "
    "horovod-tensorflow,tensorflow-ps --nodes 1-64*2",
    "dlmodel plot breakdown --system iris-v100 --framework pytorch-ddp --nodes 1-64*2 -o breakdown",
    "dlmodel plot timeline --system iris-v100 --workload vgg16 --framework pytorch-ddp --nodes 4 "
    "-o timeline.svg",
    "dlmodel plot pipeline --system dgx-a100-80 --workload gpt2_xl --framework megatron --nodes 2 "
    "--pp 4 "
    "--global-batch 32 --micro-batch 1 --precision bf16 -o pipeline.svg",
    "dlmodel plot strategies --system abci-v100 --workload vgg16 --strategy "
    "data,spatial,filter,channel --nodes 1-16*2",
    "dlmodel plot advise --system iris-v100 --workload vgg16 --framework pytorch-ddp --nodes 8 -o "
    "advise.svg",
    "dlmodel plot match --framework pytorch-ddp,horovod-tensorflow -o match.svg",
    "dlmodel plot error data/runs/*.csv -o error.svg",
    "dlmodel plot error docs/generalize/source.csv -o unseen.svg",
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
    {"scaling", "throughput per device against devices: measured, predicted with interval",
     "scaling", dl_plot_scaling},
    {"efficiency", "scaling efficiency relative to the smallest run", "scaling",
     dl_plot_efficiency},
    {"strategies", "throughput per device against devices by strategy (--strategy a,b,c or all)",
     "scaling", dl_plot_strategies},
    {"breakdown", "parts of an iteration against nodes", "breakdown", dl_plot_breakdown},
    {"timeline", "one iteration on device and network, with their overlap", "timeline",
     dl_plot_timeline},
    {"pipeline", "which micro-batch runs when on each stage of a pipeline (Gantt chart)",
     "pipeline", dl_plot_pipeline},
    {"memory", "memory of a device by part: of one plan over time, of several as bars", "memory",
     dl_plot_memory},
    {"mfu", "model and hardware flop utilization of each plan", "mfu", dl_plot_mfu},
    {"roofline", "layers of a workload on the roofline of the device", "roofline",
     dl_plot_roofline},
    {"pareto", "Pareto front of time and memory that search found", "pareto", dl_plot_pareto},
    {"campaign", "schedule of a campaign: which task trained on which slot, when", "campaign",
     dl_plot_campaign},
    {"checkpoint", "time lost to checkpoints and failures against their interval, by format",
     "checkpoint", dl_plot_checkpoint},
    {"advise", "what each change of settings or network gains, with its interval", "advise",
     dl_plot_advise},
    {"match", "samples/s and samples/J of networks on systems (--systems a,b --workloads c,d)",
     "match", dl_plot_match},
    {"heterogeneous", "samples/s and samples/J of choices that search --heterogeneous --csv wrote",
     "match", dl_plot_heterogeneous},
    {"error", "signed error of every compared row, by source", "error", dl_plot_error},
    {"kernels", "predicted against measured kernel times", "kernels", dl_plot_kernels},
    {"alphabeta", "collective times against size: samples, fit, algorithm switches, residuals",
     "alphabeta", dl_plot_alphabeta},
    {NULL, NULL, NULL, NULL},
};

struct picture {
    const char *path;
    enum dl_plot_format format;
}; /* path NULL: stdout */

static enum dl_code find_kind(const struct dl_options *options, const struct dl_plot_kind **out,
                              struct dl_err *err) {
    const char *names[32], *given = options->positional_count > 0 ? options->positional[0] : NULL;
    char all[512] = "";
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
    if (given == NULL) return dl_fail(err, DL_ERR_USAGE, "expected a kind of plot: one of %s", all);
    const char *near = dl_suggest(given, names);
    return dl_fail(err, DL_ERR_USAGE, "no plot '%.60s'; %s%s%sthere are %s", given,
                   near != NULL ? "did you mean '" : "", near != NULL ? near : "",
                   near != NULL ? "'? " : "", all);
}

/* "" when the last part of the path has no extension. */
static const char *extension_of(const char *path) {
    const char *name = dl_base_name(path), *dot = strrchr(name, '.');
    return dot == NULL || dot == name ? "" : dot + 1;
}

static enum dl_code to_terminal(const struct asked *asked, struct picture *out,
                                struct dl_err *err) {
    *out = (struct picture){NULL, (enum dl_plot_format)asked->format};
    if (asked->format == DL_PLOT_TERMINAL || !isatty(STDOUT_FILENO)) return DL_OK;
    const char *format = dl_plot_formats[asked->format];
    return dl_fail(err, DL_ERR_USAGE,
                   "a terminal cannot show %s; give -o FILE.%s or --format terminal", format,
                   format);
}

static enum dl_code check_path(const char *path, struct dl_err *err) {
    struct stat place;
    const bool directory = path[0] != 0 && (path[strlen(path) - 1] == '/' ||
                                            (stat(path, &place) == 0 && S_ISDIR(place.st_mode)));
    if (path[0] != 0 && !directory) return DL_OK;
    return dl_fail(err, DL_ERR_USAGE, "--output: expected a file such as scaling.png, got \"%s\"%s",
                   path, directory ? ", a directory" : "");
}

/* The format of an extension; -1: none. */
static int format_of(const char *extension) {
    int format = 0;
    if (strcmp(extension, "txt") == 0) return DL_PLOT_TERMINAL;
    while (dl_plot_formats[format] != NULL && strcmp(dl_plot_formats[format], extension) != 0)
        format++;
    return dl_plot_formats[format] == NULL ? -1 : format;
}

/* A name without extension gets that of --format, or results in a .png and a .svg. */
static void extend_path(struct dl_arena *arena, const struct asked *asked, struct picture *out,
                        int *count) {
    const int first = asked->format_given ? asked->format : DL_PLOT_PNG;
    *count = asked->format_given ? 1 : 2;
    for (int i = 0; i < *count; i++) {
        const int format = first + i;
        const char *extension = format == DL_PLOT_TERMINAL ? "txt" : dl_plot_formats[format];
        out[i] = (struct picture){dl_arena_printf(arena, "%s.%s", asked->path, extension),
                                  (enum dl_plot_format)format};
    }
}

/* Writes one picture, or two for a name without extension. */
static enum dl_code choose_pictures(struct dl_arena *arena, const struct asked *asked,
                                    struct picture *out, int *count, struct dl_err *err) {
    const char *path = asked->path;
    *count = 1;
    if (path == NULL || strcmp(path, "-") == 0) return to_terminal(asked, out, err);
    DL_TRY(check_path(path, err));
    const char *extension = extension_of(path);
    if (extension[0] == 0) {
        extend_path(arena, asked, out, count);
        return DL_OK;
    }
    const int named = format_of(extension);
    if (named < 0 && !asked->format_given)
        return dl_fail(
            err, DL_ERR_USAGE,
            "--output: expected .png, .svg, .pdf, .eps, .txt or no extension, got \"%s\"", path);
    if (named >= 0 && asked->format_given && named != asked->format)
        return dl_fail(err, DL_ERR_USAGE, "--format %s contradicts the name \"%s\"",
                       dl_plot_formats[asked->format], path);
    out[0] =
        (struct picture){path, (enum dl_plot_format)(asked->format_given ? asked->format : named)};
    return DL_OK;
}

static enum dl_code check_asked(const struct asked *asked, const struct dl_plot_kind *kind,
                                int positional_count, struct dl_err *err) {
    if (asked->numbers && asked->format_given)
        return dl_fail(err, DL_ERR_USAGE, "--csv prints numbers, --format draws: give one");
    if (asked->by_given && kind->build != dl_plot_error)
        return dl_fail(err, DL_ERR_USAGE, "--by is for plot error");
    if (asked->where_given && positional_count < 2)
        return dl_fail(err, DL_ERR_USAGE, "--where selects rows of files: give a file");
    return DL_OK;
}

static enum dl_code draw(struct dl_context *context, const struct dl_figure *figure,
                         const char *script, const struct picture *picture, struct dl_err *err) {
    struct dl_plot_file drawn;
    DL_TRY(dl_plot_render(context, figure, script, picture->format, &drawn, err));
    if (drawn.length > 0 && drawn.bytes[0] == '\f') { /* the text terminal begins with a new page */
        drawn.bytes++;
        drawn.length--;
    }
    DL_TRY(
        dl_file_write(picture->path == NULL ? "-" : picture->path, drawn.bytes, drawn.length, err));
    if (picture->path != NULL) context->note(context, "wrote %s", picture->path);
    return DL_OK;
}

/* Rows of text keep their height; a picture of curves keeps its proportions, and a narrow one has
 * its key in a column below. */
static void set_width(struct dl_figure *figure, int width) {
    if (figure->height == 0) figure->height = width > 800 ? 540 * width / 800 : 540;
    if (width < 700) figure->height += 100;
    figure->width = width;
}

static enum dl_code run(struct dl_context *context, const struct dl_options *options,
                        struct dl_err *err) {
    const struct dl_plot_kind *kind = NULL;
    struct picture pictures[2];
    struct dl_figure figure = {.group_count = 0};
    struct asked asked = {.format = DL_PLOT_TERMINAL};
    int count = 0;
    DL_TRY(find_kind(options, &kind, err));
    DL_TRY(dl_options_bind(options, plot_options, &asked, err));
    DL_TRY(check_asked(&asked, kind, options->positional_count, err));
    if (!asked.numbers) DL_TRY(choose_pictures(context->arena, &asked, pictures, &count, err));
    DL_TRY(kind->build(context, options, &figure, err));
    if (asked.numbers) return context->output(options, dl_table_csv(&figure.table), err);
    if (asked.title != NULL) figure.title = asked.title;
    if (asked.width > 0) set_width(&figure, (int)asked.width);
    for (int i = 0; i < count; i++) DL_TRY(draw(context, &figure, kind->script, &pictures[i], err));
    return DL_OK;
}

const struct dl_command dl_cmd_plot = {
    .name = "plot",
    .summary = "draw scaling, breakdown, timeline, errors, ...: to a file or in the terminal",
    .usage = "KIND [FILE.csv...] [options]",
    .purpose =
        "Draws one of these figures with gnuplot. FILE.csv: measured runs.\n"
        "scaling, efficiency: with files, measured runs and their predictions; without, "
        "predictions for --nodes\n"
        "strategies: those of --strategy a,b,c or all\n"
        "breakdown: the parts of an iteration\n"
        "timeline: what runs when in one iteration\n"
        "pipeline: the schedule of a plan with --pp, as a Gantt chart\n"
        "memory: that of one device, by part\n"
        "mfu: the part of the devices' rate that a model uses (MFU), by number of nodes\n"
        "roofline: the layers on the roofline of the device\n"
        "pareto FILE: the front that search --pareto --csv wrote\n"
        "campaign FILE: the schedule that campaign --show schedule --csv wrote\n"
        "checkpoint: time lost by interval and format\n"
        "advise: what changes gain\n"
        "match: samples/s and samples/J of networks on systems\n"
        "heterogeneous FILE: the same of the choices that search --heterogeneous --csv wrote\n"
        "error FILE...: errors, grouped by --by; of a table of docs/generalize, errors that no "
        "fit has seen\n"
        "kernels FILE...: predicted against measured times\n"
        "alphabeta FILE...: collective times against size with alpha-beta fits, the algorithm "
        "switches of the model, and residuals; without files, those of the profile --system\n"
        "With files, --system, --workload, --framework, --precision and --where select rows; "
        "values may be lists (a,b).",
    .examples = examples,
    .words = "scaling efficiency strategies breakdown timeline pipeline memory mfu roofline pareto "
             "campaign checkpoint advise match heterogeneous error kernels alphabeta",
    .options = tables,
    .common = "where by title csv format width output systems workloads " DL_COMMON_INPUTS "help",
    .run = run,
};
