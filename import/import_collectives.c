/* import_collectives.c - `dlmodel import nccl-tests` and `import osu`: a table in the format of
 * data/collectives/, or with --profile measured samples in a system's file, which predictions then
 * use first.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/network/coll_match.h"
#include "model/core/file.h"
#include "model/core/text.h"
#include "import/import.h"
#include "import/import_bench.h"

typedef enum dl_code parse_fn(const char *name, const char *text, size_t length,
                              const struct dl_bench_given *given, struct dl_bench *out,
                              struct dl_err *err);

static const struct dl_column columns[] = {
    {"library", "library", "", DL_COLUMN_STRING, 0, 0},
    {"lib_version", "version", "", DL_COLUMN_STRING, 0, 0},
    {"collective", "collective", "", DL_COLUMN_STRING, 0, 0},
    {"device", "device", "", DL_COLUMN_STRING, 0, 0},
    {"system", "system", "", DL_COLUMN_STRING, 0, 0},
    {"nodes", "nodes", "", DL_COLUMN_INTEGER, 0, 0},
    {"ranks", "ranks", "", DL_COLUMN_INTEGER, 0, 0},
    {"network", "network", "", DL_COLUMN_STRING, 0, 0},
    {"dtype", "type", "", DL_COLUMN_STRING, 0, 0},
    {"size_bytes", "size", "B", DL_COLUMN_NUMBER, 0, 12},
    {"time_us", "time", "us", DL_COLUMN_NUMBER, 0, 5},
    {"algbw_GBs", "algbw", "GB/s", DL_COLUMN_NUMBER, 0, 4},
    {"busbw_GBs", "busbw", "GB/s", DL_COLUMN_NUMBER, 0, 4},
    {"source", "source", "", DL_COLUMN_STRING, 0, 0},
    {"notes", "notes", "", DL_COLUMN_STRING, 0, 0},
    {"series", "series", "", DL_COLUMN_STRING, 0, 0},
};
enum { COLUMNS = sizeof columns / sizeof *columns };

struct input {
    struct dl_bench bench;
    const struct dl_import_asked *asked;
    const char *library, *source;
    int rows; /* DL_IMPORT_BOTH, ... */
};

static double rounded(struct dl_arena *arena, double value) {
    return strtod(dl_arena_printf(arena, "%.6g", value), NULL);
}

static enum dl_code find_collective(const char *name, int *op, struct dl_err *err) {
    *op = name == NULL ? -1 : dl_collective_op_find(name);
    if (name == NULL || *op >= 0) return DL_OK;
    const char *near = dl_suggest(name, dl_collective_op_names);
    return dl_fail(err, DL_ERR_USAGE,
                   "--collective: no collective '%.60s'%s%s; see 'dlmodel list collectives'", name,
                   near != NULL ? ", did you mean " : "", near != NULL ? near : "");
}

static enum dl_code check_library(const char *name, struct dl_err *err) {
    if (dl_library_find(name) >= 0) return DL_OK;
    const char *near = dl_suggest(name, dl_library_names);
    return dl_fail(err, DL_ERR_USAGE, "--library: no library '%.60s'%s%s", name,
                   near != NULL ? "; did you mean " : "", near != NULL ? near : "");
}

/* The chip of a device's printed name in small letters, the first word with a digit: "h100" of
 * "NVIDIA H100 80GB HBM3". */
static void chip_of(const char *printed, char *out, size_t size) {
    const char *digit = strpbrk(printed, "0123456789"), *from = digit;
    size_t length = 0;
    while (from != NULL && from > printed && from[-1] != ' ' && from[-1] != '-') from--;
    for (; from != NULL && *from != '\0' && length < size - 1 && strchr(" -", *from) == NULL;
         from++)
        out[length++] = (char)(*from >= 'A' && *from <= 'Z' ? *from - 'A' + 'a' : *from);
    out[length] = '\0';
}

/* Refuses RCCL results on a device that is not AMD's; warns where the printed chip differs from the
 * system's. */
static enum dl_code check_device(struct dl_context *context, const struct input *in, bool rccl,
                                 struct dl_err *err) {
    const char *path, *printed = in->bench.count > 0 ? in->bench.rows[0].device : NULL;
    struct dl_json *doc;
    struct dl_system system;
    char chip[32];
    struct dl_err unknown; /* a name of one's own, as a label of the rows */
    if (in->asked->system == NULL || dl_data_path(&context->data, DL_DATA_SYSTEM, in->asked->system,
                                                  context->arena, &path, &unknown) != DL_OK)
        return DL_OK;
    DL_TRY(dl_json_read(path, context->arena, &doc, err));
    DL_TRY(dl_json_load(doc, &dl_system_schema, context->arena, &system, err));
    const char *device = system.device_name != NULL ? system.device_name : "";
    if (rccl && strncmp(device, "mi", 2) != 0)
        return dl_fail(err, DL_ERR_USAGE,
                       "--system %.60s: the output is of RCCL, which runs on AMD devices; this "
                       "system's is %.60s",
                       in->asked->system, device);
    if (printed == NULL || in->asked->device != NULL) return DL_OK;
    chip_of(printed, chip, sizeof chip);
    const size_t length = strlen(chip);
    if (length > 0 && device[0] != '\0' && strncmp(device, chip, length < 4 ? length : 4) != 0)
        context->note(context, "warning: the output is of \"%.60s\", the device of %.60s is %.60s",
                      printed, in->asked->system, device);
    return DL_OK;
}

static enum dl_code read_files(struct dl_context *context, const struct dl_options *options,
                               parse_fn *parse, struct input *in, struct dl_err *err) {
    const struct dl_import_asked *asked = in->asked;
    struct dl_bench_given given = {
        .nodes = asked->nodes, .ranks = asked->ranks, .dtype = asked->dtype};
    in->bench.arena = context->arena;
    DL_TRY(dl_import_files(options, DL_MAX_POSITIONAL, err));
    DL_TRY(find_collective(asked->collective, &given.op, err));
    if (asked->library != NULL) in->library = asked->library;
    DL_TRY(check_library(in->library, err));
    in->rows = asked->rows;
    for (int i = 1; i < options->positional_count; i++) {
        char *text = NULL;
        size_t length = 0;
        if (parse != dl_torch_nccl_parse)
            DL_TRY(dl_data_read(&context->data, options->positional[i], 64u << 20, context->arena,
                                &text, &length, err));
        DL_TRY(parse(options->positional[i], text, length, &given, &in->bench, err));
    }
    /* what the output names, unless the user does */
    const char *said = in->bench.count > 0 ? in->bench.rows[0].library : NULL;
    const bool rccl = said != NULL && strcmp(said, "rccl") == 0; /* NCCL of AMD */
    if (said != NULL && asked->library == NULL) in->library = rccl ? "nccl" : said;
    DL_TRY(check_library(in->library, err));
    return check_device(context, in, rccl, err);
}

static bool is_wanted(const struct input *in, const struct dl_bench_row *row) {
    return in->rows == DL_IMPORT_BOTH || row->in_place == (in->rows == DL_IMPORT_IN_PLACE);
}

static const char *first_of(const char *a, const char *b) {
    return a != NULL ? a : b != NULL ? b : "";
}

/* Where the row stands in its tool's output. */
static const char *place_of(struct dl_arena *arena, const struct dl_bench_row *row, bool nccl) {
    if (nccl) return row->in_place ? "in place" : "out of place";
    return row->version != NULL ? dl_arena_printf(arena, "OSU %s", row->version) : "";
}

/* The position, and the tool's remarks on the row. */
static const char *notes_of(struct dl_arena *arena, const struct dl_bench_row *row,
                            const char *place) {
    struct dl_text text = {.arena = arena};
    dl_text_add(&text, place);
    if (row->notes != NULL) dl_text_printf(&text, "%s%s", text.length > 0 ? "; " : "", row->notes);
    if (row->wrong) dl_text_add(&text, "; failed the tool's own check");
    return dl_text_string(&text);
}

static void fill_row(struct dl_table *table, const struct input *in, const struct dl_bench_row *row,
                     bool nccl) {
    const struct dl_import_asked *asked = in->asked;
    const double alg = row->size_bytes / row->time_s,
                 bus = alg *
                       dl_collective_bus_factor((enum dl_collective_op)row->op, (double)row->ranks);
    union dl_cell *cells = dl_table_row(table);
    cells[0].string = in->library;
    /* OSU's own release is not the library's */
    cells[1].string = first_of(asked->library_version, nccl ? row->version : NULL);
    cells[2].string = dl_collective_op_names[row->op];
    cells[3].string = first_of(asked->device, row->device);
    cells[4].string = first_of(asked->system, NULL);
    cells[5].integer = row->nodes;
    cells[6].integer = row->ranks;
    cells[7].string = first_of(asked->network, NULL);
    cells[8].string = first_of(row->dtype, NULL);
    cells[9].number = row->size_bytes;
    cells[10].number = rounded(table->arena, row->time_s * 1e6);
    cells[11].number = rounded(table->arena, alg / 1e9);
    cells[12].number = rounded(table->arena, bus / 1e9);
    cells[13].string = in->source;
    cells[15].string = place_of(table->arena, row, nccl);
    cells[14].string = notes_of(table->arena, row, cells[15].string);
}

static void fill(struct dl_table *table, const struct input *in, bool nccl) {
    for (int i = 0; i < in->bench.count; i++) {
        if (is_wanted(in, &in->bench.rows[i])) fill_row(table, in, &in->bench.rows[i], nccl);
    }
}

/* ---- into a profile ---- */

static int by_bytes(const void *a, const void *b) {
    const struct dl_coll_sample *x = a, *y = b;
    if (x->bytes != y->bytes) return x->bytes < y->bytes ? -1 : 1;
    return x->time_s < y->time_s ? -1 : x->time_s > y->time_s;
}

/* Sizes measured several times become their median, with the range of three and more. */
static int merge_repeats(struct dl_coll_sample *samples, int count) {
    int out = 0;
    qsort(samples, (size_t)count, sizeof *samples, by_bytes);
    for (int i = 0, end; i < count; i = end) {
        end = i + 1;
        while (end < count && samples[end].bytes == samples[i].bytes) end++;
        const int n = end - i;
        struct dl_coll_sample merged = samples[i + n / 2];
        if (n % 2 == 0)
            merged.time_s = 0.5 * (samples[i + n / 2 - 1].time_s + samples[i + n / 2].time_s);
        merged.low_s = n >= 3 ? samples[i].time_s : NAN;
        merged.high_s = n >= 3 ? samples[end - 1].time_s : NAN;
        samples[out++] = merged;
    }
    return out;
}

/* New samples replace those of the same size; the rest stays. A fit without them is removed. */
static void merge_into(struct dl_coll_measured *m, const struct dl_coll_sample *fresh, int count,
                       struct dl_arena *arena) {
    struct dl_coll_sample *all =
        dl_arena_alloc(arena, (size_t)m->sample_count + (size_t)count, sizeof *all);
    int total = 0;
    for (int i = 0; i < m->sample_count; i++) {
        bool replaced = false;
        for (int k = 0; k < count; k++)
            replaced = replaced || fresh[k].bytes == m->samples[i].bytes;
        if (!replaced) all[total++] = m->samples[i];
    }
    memcpy(all + total, fresh, (size_t)count * sizeof *all);
    total += count;
    qsort(all, (size_t)total, sizeof *all, by_bytes);
    m->samples = all;
    m->sample_count = total;
    m->pieces = NULL;
    m->piece_count = 0;
}

static bool same_set(const struct dl_coll_measured *m, const struct input *in,
                     const struct dl_bench_row *row) {
    return strcmp(m->library, in->library) == 0 &&
           strcmp(m->operation, dl_collective_op_names[row->op]) == 0 && m->nodes == row->nodes &&
           m->ranks == row->ranks;
}

static bool is_sample(const struct input *in, const struct dl_bench_row *row) {
    return is_wanted(in, row) && !row->windowed && !row->wrong;
}

static void add_set(struct dl_system *system, const struct input *in, int first,
                    struct dl_arena *arena) {
    const struct dl_bench_row *lead = &in->bench.rows[first];
    struct dl_coll_sample *fresh = dl_arena_alloc(arena, (size_t)in->bench.count, sizeof *fresh);
    struct dl_coll_measured probe = {.library = in->library,
                                     .operation = dl_collective_op_names[lead->op],
                                     .nodes = lead->nodes,
                                     .ranks = lead->ranks};
    int count = 0;
    for (int i = first; i < in->bench.count; i++) {
        const struct dl_bench_row *row = &in->bench.rows[i];
        if (is_sample(in, row) && same_set(&probe, in, row))
            fresh[count++] = (struct dl_coll_sample){row->size_bytes, row->time_s, NAN, NAN};
    }
    count = merge_repeats(fresh, count);
    for (int i = 0; i < system->collective_count; i++) {
        if (same_set(&system->collectives[i], in, lead)) {
            merge_into(&system->collectives[i], fresh, count, arena);
            return;
        }
    }
    struct dl_coll_measured *grown =
        dl_arena_alloc(arena, (size_t)system->collective_count + 1, sizeof *grown);
    if (system->collective_count > 0)
        memcpy(grown, system->collectives, (size_t)system->collective_count * sizeof *grown);
    probe.library_version = in->asked->library_version != NULL ? in->asked->library_version
                            : strcmp(in->library, dl_library_names[DL_LIB_NCCL]) == 0
                                ? lead->version
                                : NULL;
    probe.source = "measured";
    probe.samples = fresh;
    probe.sample_count = count;
    grown[system->collective_count++] = probe;
    system->collectives = grown;
}

static enum dl_code write_profile(struct dl_context *context, const struct dl_options *options,
                                  struct input *in, struct dl_err *err) {
    const char *path;
    struct dl_json *doc, *again_doc;
    struct dl_system system, again;
    if (in->asked->path == NULL)
        return dl_fail(err, DL_ERR_USAGE, "--profile: give -o FILE for the new profile");
    DL_TRY(dl_data_path(&context->data, DL_DATA_SYSTEM, in->asked->profile, context->arena, &path,
                        err));
    DL_TRY(dl_json_read(path, context->arena, &doc, err));
    DL_TRY(dl_json_load(doc, &dl_system_schema, context->arena, &system, err));
    DL_TRY(dl_system_check(&system, doc, err));
    /* frameworks reduce in place */
    if (in->rows == DL_IMPORT_BOTH && strcmp(in->library, dl_library_names[DL_LIB_NCCL]) == 0)
        in->rows = DL_IMPORT_IN_PLACE;
    int used = 0, windowed = 0, wrong = 0, sets = 0;
    for (int i = 0; i < in->bench.count; i++) {
        const struct dl_bench_row *row = &in->bench.rows[i];
        bool first = is_sample(in, row);
        used += first;
        windowed += row->windowed;
        wrong += row->wrong;
        for (int k = 0; k < i && first; k++) {
            const struct dl_bench_row *before = &in->bench.rows[k];
            first = !(is_sample(in, before) && before->op == row->op &&
                      before->nodes == row->nodes && before->ranks == row->ranks);
        }
        if (!first) continue;
        sets++;
        add_set(&system, in, i, context->arena);
    }
    if (used == 0) {
        return dl_fail(err, DL_ERR_INPUT,
                       "no row is usable in a profile: %d measure several messages in flight, %d "
                       "failed the tool's check, --rows excludes the others",
                       windowed, wrong);
    }
    char *text = dl_json_text(&dl_system_schema, &system, context->arena);
    DL_TRY(dl_json_parse("new profile", text, strlen(text), context->arena, &again_doc, err));
    DL_TRY(dl_json_load(again_doc, &dl_system_schema, context->arena, &again, err));
    DL_TRY(dl_system_check(&again, again_doc, err));
    DL_TRY(context->output(options, text, err));
    context->note(
        context,
        "%d measured times of %d collectives and rank sets are in %s; predictions use them first",
        used, sets, in->asked->path);
    if (windowed > 0)
        context->note(
            context,
            "%d rows of bandwidth tests were skipped: they measure many messages in flight",
            windowed);
    if (wrong > 0)
        context->note(context,
                      "warning: %d rows failed the tool's own check of results and were skipped",
                      wrong);
    return DL_OK;
}

static enum dl_code import(struct dl_context *context, const struct dl_options *options,
                           parse_fn *parse, struct input *in, bool nccl, struct dl_err *err) {
    enum dl_format format = DL_FORMAT_CSV;
    struct dl_table table;
    DL_TRY(read_files(context, options, parse, in, err));
    if (in->asked->profile != NULL) return write_profile(context, options, in, err);
    if (dl_option_given(options, "format") || dl_option_given(options, "json"))
        DL_TRY(dl_output_format(options, &format, err));
    dl_table_init(&table, context->arena, columns, COLUMNS);
    fill(&table, in, nccl);
    if (format == DL_FORMAT_JSON) {
        struct dl_json_writer w;
        dl_jw_init(&w, context->arena, false);
        dl_jw_array(&w, NULL);
        dl_table_json(&table, &w);
        DL_TRY(context->output(options, dl_jw_text(&w), err));
    } else {
        DL_TRY(context->output(
            options, format == DL_FORMAT_CSV ? dl_table_csv(&table) : dl_table_text(&table), err));
    }
    if (in->asked->system == NULL)
        context->note(
            context,
            "the column system is empty: without --system NAME, compare cannot predict these rows");
    if (in->bench.damaged != NULL)
        context->note(context, "warning: damaged rows are left out: %s", in->bench.damaged);
    int wrong = 0;
    for (int i = 0; i < in->bench.count; i++) wrong += in->bench.rows[i].wrong;
    if (wrong > 0)
        context->note(context, "warning: %d rows failed the tool's own check of results", wrong);
    return DL_OK;
}

enum dl_code dl_import_nccl_tests(struct dl_context *context, const struct dl_options *options,
                                  const struct dl_import_asked *asked, struct dl_err *err) {
    struct input in = {.asked = asked, .library = "nccl", .source = "nccl-tests"};
    return import(context, options, dl_nccl_tests_parse, &in, true, err);
}

enum dl_code dl_import_osu(struct dl_context *context, const struct dl_options *options,
                           const struct dl_import_asked *asked, struct dl_err *err) {
    struct input in = {.asked = asked, .library = "mpi", .source = "OSU micro-benchmarks"};
    return import(context, options, dl_osu_parse, &in, false, err);
}

enum dl_code dl_import_torch_nccl(struct dl_context *context, const struct dl_options *options,
                                  const struct dl_import_asked *asked, struct dl_err *err) {
    struct input in = {.asked = asked, .library = "nccl", .source = "torch.profiler"};
    return import(context, options, dl_torch_nccl_parse, &in, false, err);
}
