/* plot.h - figures: a table of numbers with groups and titles, drawn by a script of plots/ that
 * gnuplot runs.
 *
 * A kind of figure is one row of the table in cmd_plot.c, one plot_KIND.c that fills the table and
 * one script of plots/ that draws it. The scripts hold no numbers.
 */
#ifndef DL_PLOTS_FIGURES_PLOT_H
#define DL_PLOTS_FIGURES_PLOT_H

#include "predict/compare/compare.h"
#include "predict/inputs/inputs.h"
#include "predict/output/predicted.h"

enum { DL_PLOT_CURVES = 6, DL_PLOT_GROUPS = 64, DL_PLOT_BARS = 48, DL_PLOT_PARAMETERS = 6 };

struct dl_plot_parameter { /* a variable of the script: text when there is one, else the number */
    const char *name, *text;
    double number;
};

/* How a terminal shows a figure with Unicode blocks. Bars: a row of the table is one, of the
 * parts in `count` columns from `first`. Lanes: a row is a stretch of its group's lane, from
 * `first` to the column after it, of the kind (from 1) in the next one. */
struct dl_plot_blocks {
    bool lanes;
    int first, count; /* count 0: gnuplot draws with letters */
    int sum, limit;   /* columns of bars; limit -1: none */
    const char *const *names;
    double unit_scale; /* of the axis, in SI units */
    const char *unit_name, *limit_name;
};

/* How a terminal shows curves and points with Unicode: columns of the table (0: none, but for
 * curve and point: -1), each row a place of its group's curve, a point, or both. */
struct dl_plot_curves {
    int x, curve, point;
    int over;                         /* the column that both are divided by */
    int kind, curve_kind, point_kind; /* the column that distinguishes points from curves */
    bool log_x, log_y;
    double x_scale, y_scale;     /* of the axes, in units of the table */
    const char *x_name, *y_name; /* with units; NULL: no such figure */
    const char *curve_name;      /* of a curve that all groups share; NULL: each has its own */
    const char *point_note;      /* what the points of a curve are, after its name */
};

/* Values of a group's rows along a line of a terminal. */
struct dl_plot_strip {
    int column;
    const char *symbol, *name; /* symbol NULL: end of the list */
};

struct dl_figure {
    /* first column: number of the group from 1; rows of a group are consecutive */
    struct dl_table table;
    const char *labels[DL_PLOT_GROUPS]; /* of the groups */
    /* a second line under a label, or another text of the script's; NULL: none */
    const char *notes[DL_PLOT_GROUPS];
    int group_count;
    const char *title, *subtitle;
    const char *script; /* in place of the kind's; NULL: that */
    struct dl_plot_blocks blocks;
    struct dl_plot_curves curves;
    const struct dl_plot_strip *strips; /* later ones above earlier ones; NULL: none */
    const char *strip_axis;             /* with its unit */
    struct dl_plot_parameter parameters[DL_PLOT_PARAMETERS + 1]; /* ends with name NULL */
    int width, height;                                           /* of PNG and SVG; 0: 800 x 540 */
};

/* Fills a figure from the options and the files after the kind. */
typedef enum dl_code dl_plot_builder(struct dl_context *context, const struct dl_options *options,
                                     struct dl_figure *out, struct dl_err *err);
struct dl_plot_kind {
    const char *name, *summary, *script; /* plots/SCRIPT.gp */
    dl_plot_builder *build;
};

dl_plot_builder dl_plot_scaling, dl_plot_breakdown, dl_plot_memory, dl_plot_mfu, dl_plot_error,
    dl_plot_roofline, dl_plot_kernels, dl_plot_alphabeta, dl_plot_efficiency, dl_plot_strategies,
    dl_plot_timeline, dl_plot_pipeline, dl_plot_campaign, dl_plot_checkpoint, dl_plot_advise,
    dl_plot_match, dl_plot_heterogeneous, dl_plot_pareto;

/* Whether a table holds errors by group of `compare --generalize`, and their figure. */
bool dl_plot_unseen_table(const struct dl_csv *csv);
enum dl_code dl_plot_unseen(struct dl_context *context, const struct dl_csv *csv,
                            struct dl_figure *out, struct dl_err *err);

/* The table that plots/scaling.gp draws: throughputs against devices, by group. */
struct dl_plot_point {
    int group;
    const char *label, *id;
    int64_t devices, nodes; /* nodes: DL_ABSENT when a table has no column for it */
    double measured, predicted, low, high, ideal_samples_per_s; /* samples/s; NAN: none */
};
extern const char dl_plot_throughput[]; /* what titles of its figures begin with */
void dl_plot_scaling_table(struct dl_table *table, struct dl_arena *arena);
/* That table in a terminal: throughput per device; measured: with points. */
void dl_plot_scaling_curves(struct dl_figure *out, bool measured);
void dl_plot_scaling_add(struct dl_table *table, const struct dl_plot_point *point);

/* The keys that distinguish runs besides the number of devices; each is a column of a table of
 * runs. */
enum dl_plot_key {
    DL_KEY_WORKLOAD,
    DL_KEY_SYSTEM,
    DL_KEY_PRECISION,
    DL_KEY_FRAMEWORK,
    DL_KEY_STRATEGY,
    DL_KEY_BACKEND,
    DL_KEY_INPUT,
    DL_KEY_BATCH,
    DL_KEY_SOURCE,
    DL_KEYS
};
extern const char *const dl_plot_keys[]; /* column names, NULL-terminated */

struct dl_plot_run {
    const struct dl_compared *compared;
    const char *keys[DL_KEYS]; /* "" when the file has none */
    int64_t nodes;             /* DL_ABSENT when the file has none */
    int group;                 /* from 1; 0: in none */
};
struct dl_plot_runs {
    struct dl_plot_run *rows;
    int count;
};

/* Rows of the files after the kind that pass --system, --workload, --framework, --precision and
 * --where, compared with predictions. only_runs: tables of collectives and kernels are errors.
 * DL_ERR_USAGE lists the available values when no row is left. */
enum dl_code dl_plot_runs_read(struct dl_context *context, const struct dl_options *options,
                               bool only_runs, struct dl_plot_runs *out, struct dl_err *err);

struct dl_plot_predictions {
    struct dl_inputs inputs;
    struct dl_predicted_row *rows; /* by framework, then nodes */
    int count;
};

/* Predictions for --nodes of one framework, of several (a,b,c) or of all; a message names those
 * that cannot run. Files are not allowed. */
enum dl_code dl_plot_predict(struct dl_context *context, const struct dl_options *options,
                             const char *kind, struct dl_plot_predictions *out, struct dl_err *err);

/* One prediction with its terms for a figure of one iteration: a single number of nodes; of several
 * frameworks, the default one. */
struct dl_plot_one {
    struct dl_inputs inputs;
    const struct dl_framework *framework;
    struct dl_plan plan;
    struct dl_prediction prediction;
    const char *details;
};
enum dl_code dl_plot_predict_one(struct dl_context *context, const struct dl_options *options,
                                 const char *kind, struct dl_plot_one *out, struct dl_err *err);

/* Sets the unit, MiB or GiB, and parameters 2 to 5 of a figure of memory; returns the unit. */
double dl_plot_memory_unit(struct dl_figure *out, const char *unit_name, double most_bytes,
                           const struct dl_plan *plan, double capacity_bytes);
/* Memory over time; false: the figure cannot show it (no course, or too many stages). */
bool dl_plot_memory_course(struct dl_arena *arena, const struct dl_plot_one *one,
                           struct dl_figure *out);

/* Sets a parameter of the script that is a number. */
void dl_plot_set(struct dl_figure *figure, int index, const char *name, double number);
/* The unit of a time axis that ends at `longest_s`, as the parameters unit and unit_s. */
void dl_plot_time_unit(double longest_s, struct dl_plot_parameter *two);

/* Bars of predictions, at most DL_PLOT_BARS: fills groups, title and two parameters (xtitle,
 * slanted) of the figure. */
struct dl_plot_bar {
    int group;
    const char *label;
    double index; /* of the bar on the axis */
};
enum dl_code dl_plot_bars(struct dl_context *context, const struct dl_plot_predictions *predictions,
                          struct dl_plot_bar *bars, struct dl_figure *out, struct dl_err *err);

/* "4 nodes x 8 devices" */
const char *dl_plot_nodes(struct dl_arena *arena, const struct dl_plan *plan);
/* The second line of a figure, in addition to its title: "SYSTEM, NODES, PRECISION, BATCH,
 * MORE", where NODES is the number of devices per node when there are several numbers of nodes;
 * MORE may be empty. */
const char *dl_plot_details(struct dl_arena *arena, const struct dl_inputs *inputs,
                            const struct dl_plan *plan, const char *more);

/* "a, b" of two parts that may be empty, in the arena. */
const char *dl_plot_join(struct dl_arena *arena, const char *a, const char *b);

/* Whether the figure has blocks, curves or strips, and the locale (LC_ALL, LC_CTYPE, LANG) is
 * UTF-8. */
bool dl_plot_blocks_wanted(const struct dl_figure *figure);
/* The figure with blocks. */
const char *dl_plot_blocks_text(const struct dl_figure *figure, int columns, bool color,
                                struct dl_arena *arena);

/* The figure with curves. */
const char *dl_plot_canvas_text(const struct dl_figure *figure, int columns, int lines, bool color,
                                struct dl_arena *arena);
/* The figure with strips. */
const char *dl_plot_strips_text(const struct dl_figure *figure, int columns, bool color,
                                struct dl_arena *arena);
/* Its title and subtitle above it. */
void dl_plot_heading(struct dl_text *out, const struct dl_figure *figure, int columns);
/* At most `most` bytes of a text that may hold anything, safe for a terminal; never NULL. */
const char *dl_plot_label(struct dl_arena *arena, const char *text, size_t most);

enum dl_plot_format { DL_PLOT_PNG, DL_PLOT_SVG, DL_PLOT_PDF, DL_PLOT_EPS, DL_PLOT_TERMINAL };
extern const char *const dl_plot_formats[]; /* "png", "svg", "pdf", "terminal", NULL */

/* The picture as bytes in the arena. DL_ERR_SYSTEM when gnuplot or its script is missing, or
 * with gnuplot's message. */
struct dl_plot_file {
    char *bytes;
    size_t length;
};
enum dl_code dl_plot_render(struct dl_context *context, const struct dl_figure *figure,
                            const char *script, enum dl_plot_format format,
                            struct dl_plot_file *out, struct dl_err *err);

#endif
