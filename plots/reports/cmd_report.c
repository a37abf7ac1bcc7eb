/* cmd_report.c - one page to share: question, machine, scaling, breakdown, bottlenecks,
 * accuracy, method. */
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "predict/output/checkpoint_inputs.h"
#include "predict/inputs/match.h"
#include "predict/inputs/rates.h"
#include "plots/figures/choices.h"
#include "plots/reports/report.h"

struct asked {
    bool markdown, no_figures, where_given;
    const char *title, *path, *attach;
};
#define ASKED(member) struct asked, member

static const struct dl_option report_options[] = {
    {"where", 0, "COLUMN=VALUE", "Rows",
     "use only rows of the files with that value, e.g. backend=nccl or batch_per_device=64,32",
     DL_VALUE(.repeatable = true, DL_GIVEN(ASKED(where_given)))},
    {"by", 0, "COLUMN", "Rows",
     "group the figure of errors by workload, system, framework, ...; default source, or workload "
     "when there is one source",
     NULL},
    {"title", 0, "TEXT", "Output", "title of the page; default: what it is about",
     DL_TEXT(ASKED(title))},
    {"markdown", 0, NULL, "Output",
     "write Markdown with figures drawn in characters instead of HTML; -o FILE.md does the same",
     DL_FLAG(ASKED(markdown))},
    {"no-figures", 0, NULL, "Output", "write tables and text only; needs no gnuplot",
     DL_FLAG(ASKED(no_figures))},
    {"attach", 0, "FOLDER", "Output",
     "also write each figure to FOLDER, as PDF and its numbers as CSV, to attach to a paper",
     DL_TEXT(ASKED(attach))},
    {"output", 'o', "FILE", "Output",
     "write to FILE instead of stdout; FILE is replaced only when the page is complete",
     DL_TEXT(ASKED(path))},
    {"help", 'h', NULL, "Output", "print this text", NULL},
    {.name = NULL},
};
static const struct dl_option *const tables[] = {report_options,   dl_match_options,
                                                 dl_input_options, dl_checkpoint_options,
                                                 dl_rates_options, NULL};
static const char *const examples[] = {
    "dlmodel report --system iris-v100 --workload vgg16 --framework pytorch-ddp --nodes 1-16*2 -o "
    "report.html",
    "dlmodel report --systems cartesius-k40,das5-titanx,iris-v100 --workloads resnet50,vgg16 -o "
    "match.html",
    "dlmodel report data/runs/tensorflow_2017.csv --workload resnet50 -o report.html",
    "dlmodel report --system dgx-a100-80 --workload bert_large --precision mixed --nodes 1-8*2 "
    "--markdown -o report.md",
    NULL,
};

/* HTML or Markdown, by the extension of the file; a page with another extension would not open. */
static enum dl_code choose_form(const struct asked *asked, bool *markdown, struct dl_err *err) {
    const char *path = asked->path, *slash = path == NULL ? NULL : strrchr(path, '/');
    const char *dot = path == NULL ? NULL : strrchr(slash == NULL ? path : slash, '.');
    *markdown = asked->markdown;
    if (path == NULL && !*markdown && isatty(STDOUT_FILENO) == 1) {
        return dl_fail(err, DL_ERR_USAGE,
                       "a terminal cannot show HTML: give -o FILE.html, or --markdown to read the "
                       "page here");
    }
    if (dot == NULL || dot == path) return DL_OK;
    const bool is_markdown = strcmp(dot, ".md") == 0 || strcmp(dot, ".markdown") == 0;
    const bool is_html =
        strcmp(dot, ".html") == 0 || strcmp(dot, ".htm") == 0 || strcmp(dot, ".xhtml") == 0;
    if (!is_markdown && !is_html) {
        return dl_fail(err, DL_ERR_USAGE,
                       "--output: expected .html, .md or no extension, got \"%s\"%s", path,
                       strcmp(dot, ".pdf") == 0 ? "; a browser prints the HTML page to PDF" : "");
    }
    if (*markdown && is_html)
        return dl_fail(err, DL_ERR_USAGE, "--markdown contradicts the name \"%s\"", path);
    *markdown = *markdown || is_markdown;
    return DL_OK;
}

/* What the page is about: measured runs unless the first file is another table. */
typedef enum dl_code page_of(struct dl_report *r, const char *title, struct dl_err *err);
static enum dl_code choose_page(struct dl_context *context, const struct dl_options *options,
                                page_of **out, struct dl_err *err) {
    struct dl_csv csv;
    *out = dl_match_asked(options) ? dl_report_of_match : dl_report_of_plan;
    if (options->positional_count == 0) return DL_OK;
    DL_TRY(dl_csv_read(options->positional[0], context->arena, &csv, err));
    *out = dl_report_is_schedule(&csv) ? dl_report_of_campaign
           : dl_choices_table(&csv)    ? dl_report_of_choices
                                       : dl_report_of_runs;
    return DL_OK;
}

static enum dl_code run(struct dl_context *context, const struct dl_options *options,
                        struct dl_err *err) {
    struct dl_report *r = dl_arena_alloc(context->arena, 1, sizeof *r);
    r->context = context;
    r->options = *options;
    struct asked asked = {.markdown = false};
    DL_TRY(dl_options_bind(options, report_options, &asked, err));
    r->figures = !asked.no_figures;
    r->attach = asked.attach;
    r->attached = 0;
    if (asked.attach != NULL && asked.no_figures)
        return dl_fail(err, DL_ERR_USAGE, "--attach writes figures, --no-figures none");
    DL_TRY(choose_form(&asked, &r->page.markdown, err));
    /* the first word of a figure's options is its kind */
    if (options->positional_count == DL_MAX_POSITIONAL)
        return dl_fail(err, DL_ERR_USAGE, "too many files");
    for (int i = options->positional_count; i > 0; i--)
        r->options.positional[i] = options->positional[i - 1];
    r->options.positional[0] = "report";
    r->options.positional_count = options->positional_count + 1;
    page_of *page;
    DL_TRY(choose_page(context, options, &page, err));
    if (asked.where_given && options->positional_count == 0)
        return dl_fail(err, DL_ERR_USAGE, "--where selects rows of files: give a file");
    DL_TRY(page(r, asked.title, err));
    char day[32] = "";
    const time_t now = time(NULL);
    struct tm parts;
    if (gmtime_r(&now, &parts) != NULL) strftime(day, sizeof day, "%Y-%m-%d", &parts);
    DL_TRY(context->output(
        options,
        dl_document_end(&r->page,
                        dl_arena_printf(context->arena, "Made by %s on %s.", dl_version_text, day)),
        err));
    if (asked.path != NULL) context->note(context, "wrote %s", asked.path);
    return DL_OK;
}

const struct dl_command dl_cmd_report = {
    .name = "report",
    .summary = "write a self-contained page (HTML or Markdown) about a plan or measured runs",
    .usage = "[FILE.csv...] [options]",
    .purpose =
        "Writes a page to share: question and answer, the machine and its calibration, "
        "scaling, breakdown of time, memory, limits and changes that save time, checkpoints with "
        "--checkpoint, accuracy of the model, method. Without files the page is about "
        "--system, --workload, --framework "
        "and --nodes, with cost and energy where prices and power are known; with --systems "
        "and --workloads about which of them match (as match prints); with files of "
        "measured runs it compares those with their predictions and "
        "shows how they were measured; with one or two schedules of a campaign (predicted, "
        "measured), or with the choices that search --heterogeneous --csv wrote, it is "
        "about those. "
        "Figures and style are embedded: the page loads nothing.",
    .examples = examples,
    .options = tables,
    .common = "where by title markdown attach output " DL_COMMON_INPUTS "help",
    .run = run,
};
