/* report_choices.c - the page about choices of nodes, stages or parts of a job on nodes of
 * different kinds, from what `search --heterogeneous --csv` wrote. */
#include <string.h>

#include "plots/figures/choices.h"
#include "plots/reports/report.h"

static const struct dl_column columns[] = {
    {"choice", "choice", "", DL_COLUMN_STRING, 0, 0},
    {"rate", "samples", "1/s", DL_COLUMN_NUMBER, 0, 4},
    {"low", "low", "1/s", DL_COLUMN_NUMBER, 0, 3},
    {"high", "high", "1/s", DL_COLUMN_NUMBER, 0, 3},
    {"energy", "energy", "J per sample", DL_COLUMN_NUMBER, 0, 3},
    {"cost", "cost", "per sample", DL_COLUMN_NUMBER, 0, 3},
};

static void choices_table(struct dl_report *r, const struct dl_choice *list, int count) {
    struct dl_table table;
    dl_table_init(&table, r->context->arena, columns, sizeof columns / sizeof *columns);
    for (int i = 0; i < count; i++) {
        dl_table_add(&table, {.string = list[i].label}, {.number = list[i].samples_per_s},
                     {.number = list[i].low_samples_per_s}, {.number = list[i].high_samples_per_s},
                     {.number = list[i].sample_energy_j}, {.number = list[i].cost_per_sample});
    }
    dl_document_table(&r->page, &table,
                      "Choices that fit in memory, the best one first; low and high: the 80 % "
                      "interval. Nodes that a choice leaves out cost nothing.");
}

/* "iris-v100:2 conv1..flatten; das5-titanx:1 fc..loss" as a list. */
static void stages(struct dl_report *r, const char *text) {
    if (text == NULL || text[0] == 0) return;
    dl_document_paragraph(&r->page, "Its stages, from the first layer to the last one:");
    for (const char *s = text; *s != 0;) {
        const size_t length = strcspn(s, ";");
        dl_document_item(&r->page, dl_arena_strndup(r->context->arena, s, length));
        s += length;
        s += strspn(s, "; ");
    }
    dl_document_items_end(&r->page);
}

static const char *answer(struct dl_arena *arena, const struct dl_choice *list, int count) {
    const struct dl_choice *best = &list[0], *frugal = &list[0];
    for (int i = 1; i < count; i++)
        if (list[i].sample_energy_j < frugal->sample_energy_j) frugal = &list[i];
    const char *text = dl_arena_printf(
        arena, "%s: %.4g samples/s (80 %% interval %.4g to %.4g), %.3g J per sample", best->label,
        best->samples_per_s, best->low_samples_per_s, best->high_samples_per_s,
        best->sample_energy_j);
    if (frugal == best || !dl_known(frugal->sample_energy_j))
        return dl_arena_printf(arena, "%s.", text);
    return dl_arena_printf(arena, "%s. The least energy: %s, %.3g J per sample at %.4g samples/s.",
                           text, frugal->label, frugal->sample_energy_j, frugal->samples_per_s);
}

enum dl_code dl_report_of_choices(struct dl_report *r, const char *title, struct dl_err *err) {
    struct dl_arena *arena = r->context->arena;
    struct dl_choice *list;
    struct dl_csv csv;
    int count;
    if (r->options.positional_count != 2)
        return dl_fail(err, DL_ERR_USAGE,
                       "report: expected one table of choices that search --heterogeneous wrote");
    DL_TRY(dl_csv_read(r->options.positional[1], arena, &csv, err));
    DL_TRY(dl_choices_read(&csv, arena, &list, &count, err));
    const char *text = answer(arena, list, count);
    dl_document_begin(&r->page, arena, r->page.markdown,
                      title != NULL ? title : "A job on nodes of different kinds",
                      dl_report_count(arena, count, "choice"));
    dl_document_section(&r->page, "Question and answer");
    dl_document_paragraph(&r->page, "Which nodes should the job take, what should each kind do, "
                                    "and which should it leave out?");
    dl_document_answer(&r->page, text);
    stages(r, list[0].stages);
    dl_document_section(&r->page, "The choices");
    DL_TRY(dl_report_figure(r, &r->options, dl_plot_heterogeneous, "match",
                            "Samples per second and per joule of each choice.", err));
    choices_table(r, list, count);
    const char *files[] = {r->options.positional[1]};
    dl_report_method(r, NULL, files, 1);
    return DL_OK;
}
