/* report_cost.c - how many nodes, and what they cost: time, device-hours, money, energy, carbon
 * dioxide. F-RUN-LENGTH, F-POWER, F-ENERGY, F-COST, F-KNEE */
#include <string.h>

#include "model/core/text.h"
#include "predict/output/advice_print.h"
#include "plots/reports/report.h"

static const struct dl_column columns[] = {
    {"nodes", "nodes", "", DL_COLUMN_INTEGER, 0, 0},
    {"time", "time", "h", DL_COLUMN_NUMBER, 3600, 4},
    {"device_time", "device-hours", "h", DL_COLUMN_NUMBER, 3600, 4},
    {"cost", "cost", "", DL_COLUMN_NUMBER, 0, 4},
    {"energy", "energy", "kWh", DL_COLUMN_NUMBER, 3.6e6, 4},
    {"carbon", "CO2", "kg", DL_COLUMN_NUMBER, 1000, 3},
    {"power", "power", "kW", DL_COLUMN_NUMBER, 1000, 3},
    {"efficiency", "efficiency", "%", DL_COLUMN_NUMBER, 0.01, 3},
    {"mfu", "MFU", "%", DL_COLUMN_NUMBER, 0.01, 3},
};
enum { NODES, TIME, DEVICE_TIME, COST, ENERGY, CARBON, POWER, EFFICIENCY, MFU, COUNT };

static void add_row(struct dl_table *table, const struct dl_prediction_row *row, double samples) {
    const struct dl_prediction *p = row->prediction;
    const struct dl_run_total run = dl_rows_total(row);
    const bool whole = dl_known(run.time_s);
    const double time_s = whole ? run.time_s : samples / p->throughput_samples_per_s,
                 devices = (double)(row->plan->nodes * row->plan->devices_per_node);
    const struct dl_spending spent = dl_rows_spending(row, time_s);
    dl_table_add(table, {.integer = row->plan->nodes}, {.number = time_s},
                 {.number = whole ? run.device_time_s : time_s * devices}, {.number = spent.cost},
                 {.number = spent.energy_j}, {.number = spent.carbon_g},
                 {.number = dl_rows_power(row).job_w}, {.number = p->scaling_efficiency},
                 {.number = dl_rows_throughput(row).mfu_frac});
}

/* An item of the advice without the blanks that align it: "4 nodes, the knee: ...". */
static const char *item_of(struct dl_arena *arena, const char *line, size_t length) {
    struct dl_text text = {.arena = arena};
    for (size_t at = 0; at < length;) {
        const size_t blanks = strspn(line + at, " "), rest = length - at;
        const char *between = blanks > 1 && blanks < rest ? ", " : blanks == 1 ? " " : "";
        const size_t word = blanks < rest ? strcspn(line + at + blanks, " \n") : 0;
        dl_text_add(&text, at == 0 ? "" : between);
        dl_text_add(&text, dl_arena_strndup(arena, line + at + blanks, word));
        at += blanks + word;
    }
    return dl_text_string(&text);
}

/* Lines of a text as paragraphs and items: a line that begins with blanks is an item. */
static void put_lines(struct dl_report *r, const char *text) {
    bool listed = false;
    for (const char *line = text; *line != 0;) {
        const size_t length = strcspn(line, "\n");
        const char *copy = item_of(r->context->arena, line, length);
        const bool item = line[0] == ' ';
        if (listed && !item) dl_document_items_end(&r->page);
        listed = item;
        if (item)
            dl_document_item(&r->page,
                             copy != NULL && strncmp(copy, "-, ", 3) == 0 ? copy + 3 : copy);
        else if (length > 0)
            dl_document_paragraph(&r->page, copy);
        line += length + (line[length] != 0);
    }
    if (listed) dl_document_items_end(&r->page);
}

void dl_report_cost(struct dl_report *r, const struct dl_inputs *inputs,
                    const struct dl_predicted_row *rows, int count,
                    const struct dl_framework *framework) {
    static const double SAMPLES = 1e6;
    struct dl_arena *arena = r->context->arena;
    struct dl_advice_request *advice = dl_arena_alloc(arena, 1, sizeof *advice);
    struct dl_column *own = dl_arena_alloc(arena, COUNT, sizeof *own);
    struct dl_table table;
    advice->arena = arena;
    memcpy(own, columns, sizeof columns);
    const char *currency = dl_currency_of(inputs->system, &inputs->rates);
    if (currency != NULL) own[COST].unit = currency;
    dl_table_init(&table, arena, own, COUNT);
    const bool whole = inputs->length.tokens > 0 || inputs->length.epoch_count > 0;
    for (int i = 0; i < count; i++) {
        const struct dl_prediction_row row = dl_predicted_row_of(inputs, &rows[i]);
        if (rows[i].framework != framework) continue;
        add_row(&table, &row, SAMPLES);
        dl_advice_add(advice, &row);
    }
    dl_document_section(&r->page, "How many nodes, and at what price");
    const char *text = dl_advice_text(advice);
    put_lines(r, text);
    dl_document_table(
        &r->page, &table,
        whole ? dl_arena_printf(
                    arena, "The whole run with %s: %s %s, training alone.", framework->name,
                    dl_report_quantity(arena,
                                       inputs->length.tokens > 0 ? inputs->length.tokens
                                                                 : inputs->length.epoch_count,
                                       DL_UNIT_COUNT),
                    inputs->length.tokens > 0 ? "tokens" : "epochs")
              : dl_arena_printf(arena,
                                "A million samples with %s, training alone; --epochs or --tokens "
                                "give a whole run.",
                                framework->name));
}
