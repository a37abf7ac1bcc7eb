/* fuzz_output.c - libFuzzer entry: a prediction as text, as CSV and as JSON says the same three
 * times. The input chooses system, network, framework and plan from data/; the JSON is read by
 * jansson, the CSV by the program's own reader, and the text is compared cell by cell. */
#include <jansson.h>
#include <math.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "model/core/csv.h"
#include "model/core/text.h"
#include "model/engine/strategies/strategy.h"
#include "model/engine/predict.h"
#include "predict/output/rows.h"
#include "tests/catalog.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void demand(bool truth) {
    if (!truth) abort();
}

struct bytes {
    const uint8_t *at, *end;
};
static int upto(struct bytes *b, int count) {
    const int high = b->at < b->end ? *b->at++ : 0, low = b->at < b->end ? *b->at++ : 0;
    return (high * 256 + low) % count;
}

static struct dl_plan take_plan(struct bytes *b) {
    int strategies = 0;
    while (dl_strategies[strategies] != NULL) strategies++;
    const int strategy = upto(b, strategies + 1);
    struct dl_plan p = {.strategy = strategy == 0 ? NULL : dl_strategies[strategy - 1],
                        .nodes = 1 + upto(b, 33),
                        .precision = (enum dl_precision)upto(b, DL_PRECISIONS),
                        .optimizer = (enum dl_optimizer)upto(b, DL_OPTIMIZERS),
                        .batch_per_device_samples = 1 + upto(b, 96)};
    const unsigned axes = p.strategy != NULL ? p.strategy->axes : 0;
    p.input.synthetic = upto(b, 3) != 0;
    p.recompute = (enum dl_recompute)upto(b, 3);
    if ((axes & DL_AXIS_TP) != 0) p.tp = (int64_t)1 << upto(b, 4);
    if ((axes & DL_AXIS_PP) != 0) p.pp = (int64_t)1 << upto(b, 4);
    if (upto(b, 4) == 0) p.devices_per_node = 1 + upto(b, 4);
    if (upto(b, 4) == 0)
        p.input.sample_bytes = 1e3 * (1 + upto(b, 5000)), p.input.dataset_samples = 1e5;
    if (upto(b, 8) == 0) p.micro_batch_samples = 1 + upto(b, 8);
    return p;
}

/* The member of a key with dots. */
static const json_t *member(const json_t *row, const char *key) {
    const char *dot = strchr(key, '.');
    if (dot == NULL) return json_object_get(row, key);
    demand(strncmp(key, "memory.", 7) == 0);
    return json_object_get(json_object_get(row, "memory"), dot + 1);
}

/* A number of the text, which shows a few digits of value / scale, thousands separated. */
static void judge_shown(const char *shown, const struct dl_column *c, double value) {
    char plain[64], *to = plain, *end;
    demand(strlen(shown) < sizeof plain);
    for (const char *from = shown; *from != 0; from++)
        if (*from != ',') *to++ = *from;
    *to = 0;
    const double number = strtod(plain, &end), scale = c->scale != 0 ? c->scale : 1;
    const double digits = c->digits != 0 ? c->digits : 3;
    demand(end != plain && *end == 0);
    demand(fabs(number - value / scale) <=
           0.51 * pow(10, 1 - digits) * fabs(value / scale) + 1e-300);
}

static void judge_cell(const struct dl_table *t, const struct dl_csv *csv, int column, int keyed,
                       const json_t *row) {
    const struct dl_column *c = &t->columns[column];
    const char *cell = csv->rows[0][keyed], *shown = dl_table_cell_text(t, 0, column, t->arena);
    const json_t *value = member(row, c->key);
    demand(value != NULL && strcmp(csv->header[keyed], c->key) == 0 && shown != NULL);
    if (json_is_null(value)) {
        demand(cell[0] == 0);
    } else if (c->type == DL_COLUMN_STRING) {
        demand(json_is_string(value) && strcmp(json_string_value(value), cell) == 0);
        if (c->heading != NULL) demand(strcmp(cell, shown) == 0);
    } else if (c->type == DL_COLUMN_BOOL) {
        demand(strcmp(cell, json_is_true(value) ? "true" : "false") == 0);
    } else {
        char *end;
        const double number = json_number_value(value), again = strtod(cell, &end);
        demand(json_is_number(value) && cell[0] != 0 && *end == 0 && again == number);
        if (c->heading != NULL) judge_shown(shown, c, number);
    }
}

/* Every cell that has a heading stands in the text. */
static void judge_text(const struct dl_table *t) {
    const char *text = dl_table_text(t);
    demand(text != NULL);
    for (int c = 0; c < t->column_count; c++) {
        if (t->columns[c].heading == NULL) continue;
        const char *found = strstr(text, dl_table_cell_text(t, 0, c, t->arena));
        demand(found != NULL && strstr(text, t->columns[c].heading) != NULL);
    }
}

static void judge(const struct dl_prediction_row *row, unsigned show, struct dl_arena *arena) {
    const struct dl_rows_style style = {.show = show};
    struct dl_err err = {.code = DL_OK};
    struct dl_table table;
    struct dl_csv csv;
    struct dl_json_writer w;
    json_error_t error;
    dl_rows_init(&table, arena, &style);
    dl_rows_add(&table, row, &style);
    const char *text = dl_table_csv(&table);
    demand(text != NULL && dl_csv_parse("csv", text, strlen(text), arena, &csv, &err) == DL_OK);
    demand(csv.row_count == 1 && csv.column_count <= table.column_count);
    dl_jw_init(&w, arena, false);
    dl_rows_json_open(&w, row);
    dl_jw_end(&w);
    json_t *json = json_loads(w.text, JSON_REJECT_DUPLICATES, &error);
    demand(json_is_object(json));
    for (int c = 0, keyed = 0; c < table.column_count; c++) /* without a key: in text alone */
        if (table.columns[c].key != NULL) judge_cell(&table, &csv, c, keyed++, json);
    judge_text(&table);
    json_decref(json);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct bytes b = {data, data + size};
    struct dl_arena arena = {0};
    struct dl_err err = {.code = DL_OK};
    struct dl_prediction prediction;
    if (all.system_count == 0 && catalog_load(NULL) != 0) abort();
    struct dl_prediction_row row = {.system = all.systems[upto(&b, all.system_count)],
                                    .workload = all.workloads[upto(&b, all.workload_count)],
                                    .framework = all.frameworks[upto(&b, all.framework_count)],
                                    .prediction = &prediction};
    struct dl_plan plan = take_plan(&b);
    const unsigned show = (unsigned)upto(&b, 16);
    enum dl_code code = dl_plan_complete(row.system, row.workload, row.framework, &plan, &err);
    if (code == DL_OK)
        code = dl_predict(&(struct dl_predict_request){row.system, row.workload, row.framework,
                                                       &plan, NULL, &arena},
                          &prediction, &err);
    row.plan = &plan;
    if (code == DL_OK)
        judge(&row, show, &arena);
    else
        demand(err.message[0] != 0);
    dl_arena_free(&arena);
    return 0;
}
