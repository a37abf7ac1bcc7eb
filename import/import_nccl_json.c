/* import_nccl_json.c - the file that nccl-tests writes with -J (version 1 of its form): arguments,
 * devices and results. Format: the tool's own output (NVIDIA/nccl-tests, src/util.cu). Its list of
 * environment variables is not looked at. */
#include <math.h>

#include "import/import_nccl.h"
#include "import/json_stream.h"
#include "model/core/json_node.h"

static const struct dl_json_node *first_of(const struct dl_json_node *array) {
    return array == NULL || array->kind != DL_JSON_ARRAY ? NULL : array->child;
}

static void read_devices(struct dl_nccl_reader *r, const struct dl_json_node *devices) {
    for (const struct dl_json_node *n = first_of(devices); n != NULL; n = n->next) {
        const char *host = dl_json_string_of(dl_json_get(n, "hostname")),
                   *device = dl_json_string_of(dl_json_get(n, "device_info"));
        r->ranks++;
        if (host != NULL) dl_nccl_add_host(r, host);
        if (device != NULL) r->device = device;
    }
}

static enum dl_code expected(const struct dl_nccl_reader *r, const char *key, const char *what) {
    return dl_nccl_bad(r, key, what, NULL);
}

/* One half of a row; null: the collective has no such variant. */
static enum dl_code read_half(struct dl_nccl_reader *r, const struct dl_json_node *row,
                              bool in_place, struct dl_nccl_time *out) {
    const struct dl_json_node *half = dl_json_get(row, in_place ? "in_place" : "out_of_place");
    *out = (struct dl_nccl_time){.size_bytes = dl_json_number_of(dl_json_get(row, "size")),
                                 .time_us = dl_json_number_of(dl_json_get(half, "time")),
                                 .alg_gb_per_s = dl_json_number_of(dl_json_get(half, "alg_bw")),
                                 .bus_gb_per_s = dl_json_number_of(dl_json_get(half, "bus_bw")),
                                 .type = dl_json_string_of(dl_json_get(row, "type")),
                                 .in_place = in_place,
                                 .wrong = dl_json_number_of(dl_json_get(half, "nwrong")) >= 1};
    if (half == NULL || half->kind == DL_JSON_NULL) return DL_OK;
    if (!(out->size_bytes >= 0 && out->size_bytes <= DL_BENCH_MOST_BYTES) ||
        out->size_bytes != floor(out->size_bytes))
        return expected(r, "size", "expected a size in bytes");
    if (!(out->time_us >= DL_BENCH_LEAST_US && out->time_us <= DL_BENCH_MOST_US))
        return expected(r, "time", "expected a time in microseconds");
    if (!(out->alg_gb_per_s >= 0)) return expected(r, "alg_bw", "expected a bandwidth in GB/s");
    if (!(out->bus_gb_per_s >= 0)) return expected(r, "bus_bw", "expected a bandwidth in GB/s");
    return DL_OK;
}

static enum dl_code read_row(struct dl_nccl_reader *r, const struct dl_json_node *row) {
    struct dl_nccl_time times[2];
    for (int i = 0; i < 2; i++) {
        const struct dl_json_node *half = dl_json_get(row, i == 1 ? "in_place" : "out_of_place");
        if (dl_json_get(half, "cpu_time") != NULL)
            return dl_nccl_bad(r, "cpu_time", dl_nccl_cpu_times, NULL);
    }
    for (int i = 0; i < 2; i++)
        if (read_half(r, row, i == 1, &times[i]) != DL_OK) {
            dl_nccl_leave_out(r);
            return DL_OK;
        }
    for (int i = 0; i < 2; i++)
        if (dl_known(times[i].time_us)) DL_TRY(dl_nccl_add(r, &times[i]));
    return DL_OK;
}

enum dl_code dl_nccl_read_json(struct dl_nccl_reader *r, const char *text, size_t length) {
    struct dl_json *doc;
    char *plain = dl_arena_strndup(r->out->arena, text, length);
    dl_json_plain_numbers(plain, length);
    DL_TRY(dl_json_parse(r->name, plain, length, r->out->arena, &doc, r->err));
    const struct dl_json_node *results = dl_json_get(doc->root, "results"),
                              *program = first_of(dl_json_get(doc->root, "args"));
    if (results == NULL || results->kind != DL_JSON_ARRAY)
        return dl_fail_at(r->err, r->name, 1, 1, "results",
                          "expected the JSON of nccl-tests (-J): a list of results");
    if (dl_json_string_of(program) != NULL) r->op = dl_nccl_operation(program->string);
    r->version =
        dl_nccl_version(r->out->arena, dl_json_number_of(dl_json_get(doc->root, "nccl_version")));
    read_devices(r, dl_json_get(dl_json_get(doc->root, "config"), "devices"));
    for (const struct dl_json_node *n = results->child; n != NULL; n = n->next) {
        int col;
        dl_json_position(doc->text, doc->length, n->place, &r->line, &col);
        DL_TRY(read_row(r, n));
    }
    return DL_OK;
}
