/* report.h - parts of the page that `dlmodel report` writes. The order of a page is in
 * cmd_report.c. */
#ifndef DL_PLOTS_REPORTS_REPORT_H
#define DL_PLOTS_REPORTS_REPORT_H

#include "predict/compare/compare.h"
#include "plots/reports/document.h"
#include "predict/inputs/inputs.h"
#include "predict/output/rows.h"
#include "plots/figures/plot.h"

struct dl_report {
    struct dl_context *context;
    struct dl_options options; /* as given, but for the first positional word: what to plot */
    struct dl_document page;
    bool figures;       /* draw */
    const char *attach; /* folder that gets each figure as PDF and CSV; NULL: none */
    int attached;       /* figures in it */
};

/* A figure of the kind that `build` fills, drawn by plots/SCRIPT.gp. DL_ERR_USAGE when these
 * options do not allow it. */
enum dl_code dl_report_figure(struct dl_report *r, const struct dl_options *options,
                              dl_plot_builder *build, const char *script, const char *caption,
                              struct dl_err *err);
enum dl_code dl_report_drawn(struct dl_report *r, struct dl_figure *figure, const char *script,
                             const char *caption, struct dl_err *err);

/* The same options with one more; an unknown name is omitted. */
struct dl_options dl_report_with(const struct dl_options *options, const char *name,
                                 const char *value);

/* The machine and the quality of its data: when and how it was measured, fits and their errors,
 * assumptions. */
void dl_report_system(struct dl_report *r, const struct dl_system *system,
                      enum dl_precision precision);
void dl_report_calibration(struct dl_report *r, const struct dl_system *system);
/* The limits of one plan, the sensitivity of the iteration to each resource, and the first
 * change to make. */
enum dl_code dl_report_limits(struct dl_report *r, const struct dl_modelled *m, struct dl_err *err);
/* How far off predictions are, the first sight first (headline.h). */
enum dl_code dl_report_headline(struct dl_report *r, struct dl_err *err);
/* Errors of compared rows by source, by system and all. */
void dl_report_errors(struct dl_report *r, const struct dl_comparison *c, const char *caption);
/* Changes to settings and network that save time, for the one plan of the options. */
enum dl_code dl_report_advice(struct dl_report *r, const struct dl_options *options,
                              struct dl_err *err);
/* What checkpoints and failures cost the row's job; nothing without --checkpoint. */
enum dl_code dl_report_checkpoint(struct dl_report *r, const struct dl_options *options,
                                  const struct dl_prediction_row *row, struct dl_err *err);
/* Errors for runs like this plan's that no fit has seen; nothing where no table is installed. */
enum dl_code dl_report_unseen(struct dl_report *r, const struct dl_modelled *m, struct dl_err *err);
/* How many nodes of `framework`, and their time, cost and energy. */
void dl_report_cost(struct dl_report *r, const struct dl_inputs *inputs,
                    const struct dl_predicted_row *rows, int count,
                    const struct dl_framework *framework);
/* How the runs of the files were measured: repeats with intervals, environment. */
enum dl_code dl_report_repeats(struct dl_report *r, struct dl_err *err);
/* How the page was made: method, formulas of a prediction (NULL: none), command line, files. */
void dl_report_method(struct dl_report *r, const struct dl_prediction *p, const char *const *files,
                      int file_count);

/* "64 devices", "1 device". */
const char *dl_report_count(struct dl_arena *arena, long long count, const char *what);
/* A quantity with its unit, in the arena; "unknown" for NAN. */
const char *dl_report_quantity(struct dl_arena *arena, double value, enum dl_unit unit);

/* The whole page between its title and its end, from a system and a workload, from several of both,
 * from the schedule of a campaign, or from files of runs. */
enum dl_code dl_report_of_plan(struct dl_report *r, const char *title, struct dl_err *err);
enum dl_code dl_report_of_runs(struct dl_report *r, const char *title, struct dl_err *err);
/* Choices of `search --heterogeneous --csv`. */
enum dl_code dl_report_of_choices(struct dl_report *r, const char *title, struct dl_err *err);
/* --systems, --workloads */
enum dl_code dl_report_of_match(struct dl_report *r, const char *title, struct dl_err *err);
/* One or two schedules of a campaign. */
enum dl_code dl_report_of_campaign(struct dl_report *r, const char *title, struct dl_err *err);
bool dl_report_is_schedule(const struct dl_csv *csv);

#endif
