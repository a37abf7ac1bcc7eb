/* cmd_report.c - one page that can be handed on: question, machine, scaling, breakdown,
 * bottlenecks, accuracy, method. */
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "predict/report/report.h"

static const struct dl_option report_options[] = {
    {"where", 0, "COLUMN=VALUE", "Rows",
     "of files: only rows with that value, e.g. backend=nccl or batch_per_device=64,32", true},
    {"by", 0, "COLUMN", "Rows",
     "of the figure of errors: workload, system, framework, ...; default source, or workload of "
     "one source",
     false},
    {"title", 0, "TEXT", "Output", "of the page", false},
    {"markdown", 0, NULL, "Output",
     "Markdown with figures drawn in characters, instead of HTML; so does -o FILE.md", false},
    {"no-figures", 0, NULL, "Output", "tables and text only; needs no gnuplot", false},
    {"output", 'o', "FILE", "Output",
     "write to FILE (replaced only when complete) instead of stdout", false},
    {"help", 'h', NULL, "Output", "this text", false},
    {.name = NULL},
};
static const struct dl_option *const tables[] = {report_options, dl_input_options, NULL};
static const char *const examples[] = {
    "dlmodel report --system iris-v100 --workload vgg16 --framework pytorch-ddp --nodes 1-16*2 -o "
    "report.html",
    "dlmodel report data/runs/tensorflow_2017.csv --workload resnet50 -o report.html",
    "dlmodel report --system dgx-a100-80 --workload bert_large --precision mixed --nodes 1-8*2 "
    "--markdown -o report.md",
    NULL,
};

/* HTML or Markdown, as the file's name says; a page under another name would not open. */
static enum dl_code choose_form(const struct dl_options *options, bool *markdown,
                                struct dl_err *err) {
    const char *path = dl_option_text(options, "output"),
               *slash = path == NULL ? NULL : strrchr(path, '/');
    const char *dot = path == NULL ? NULL : strrchr(slash == NULL ? path : slash, '.');
    *markdown = dl_option_given(options, "markdown");
    if (path == NULL && !*markdown && isatty(STDOUT_FILENO) == 1) {
        return dl_fail(err, DL_ERR_USAGE,
                       "a page of HTML is not for a terminal: -o FILE.html writes it to a file, "
                       "--markdown prints one to read here");
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

static enum dl_code run(struct dl_context *context, const struct dl_options *options,
                        struct dl_err *err) {
    struct dl_report *r = dl_arena_alloc(context->arena, 1, sizeof *r);
    if (r == NULL) return dl_fail(err, DL_ERR_SYSTEM, "out of memory");
    r->context = context;
    r->options = *options;
    r->figures = !dl_option_given(options, "no-figures");
    DL_TRY(choose_form(options, &r->page.markdown, err));
    /* the first word of a figure's options is its kind */
    if (options->positional_count == DL_MAX_POSITIONAL)
        return dl_fail(err, DL_ERR_USAGE, "too many files");
    for (int i = options->positional_count; i > 0; i--)
        r->options.positional[i] = options->positional[i - 1];
    r->options.positional[0] = "report";
    r->options.positional_count = options->positional_count + 1;
    const char *title = dl_option_text(options, "title");
    if (options->positional_count > 0)
        DL_TRY(dl_report_of_runs(r, title, err));
    else if (dl_option_given(options, "where"))
        return dl_fail(err, DL_ERR_USAGE, "--where chooses rows of files, and no file is given");
    else
        DL_TRY(dl_report_of_plan(r, title, err));
    char day[32] = "";
    const time_t now = time(NULL);
    struct tm parts;
    if (gmtime_r(&now, &parts) != NULL) strftime(day, sizeof day, "%Y-%m-%d", &parts);
    DL_TRY(context->output(
        options,
        dl_document_end(&r->page,
                        dl_arena_printf(context->arena, "Made by %s on %s.", dl_version_text, day)),
        err));
    if (dl_option_given(options, "output"))
        context->note(context, "wrote %s", dl_option_text(options, "output"));
    return DL_OK;
}

const struct dl_command dl_cmd_report = {
    .name = "report",
    .summary = "one self-contained page (HTML or Markdown) about a plan or about measured runs",
    .usage = "[FILE.csv...] [options]",
    .purpose = "Writes a page that can be handed on: the question and its answer, the machine and "
               "how well it is known, scaling, where the time "
               "goes, memory, what limits it and what to change, how far the model is off, method. "
               "Without files it is about --system, --workload, "
               "--framework and --nodes; with files of measured runs about those, set beside their "
               "predictions. Figures and style stand in the page: "
               "it loads nothing.",
    .examples = examples,
    .options = tables,
    .run = run,
};
