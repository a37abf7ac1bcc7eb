/* Memory that runs out, wherever it does: each command must say so (exit status 5), or give the
 * very output that it gives otherwise.
 *
 * The linker sends every call of the arena's functions and of malloc, calloc and realloc here
 * (--wrap, tests.mk). A first run of a command counts the calls and tells places apart by who
 * called and who called that; then the command runs once for each place with that one call failing.
 * Nothing may crash, no text may lack a part, and nothing may be reported as another fault (a file
 * that is there as missing, a right number as wrong). In the sanitized pass leaks and wild reads
 * show too.
 */
#include <execinfo.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "model/core/csv_stream.h"
#include "model/core/name_hint.h"
#include "model/core/table.h"
#include "model/core/text.h"
#include "model/catalog/command.h"
#include "model/catalog/store.h"
#include "model/search/stages.h"
#include "model/framework/cost.h"
#include "model/framework/key_owners.h"
#include "tests/check.h"
#include "tests/fake.h"
#include "tests/rich_schema.h"

extern const struct dl_command dl_cmd_predict, dl_cmd_search, dl_cmd_explain, dl_cmd_compare,
    dl_cmd_list, dl_cmd_schema, dl_cmd_campaign, dl_cmd_advise;

enum { MOST_PLACES = 1 << 15, DEPTH = 5, SKIP = 3 /* fails, refused, the wrapper */ };

static struct {
    bool on;
    long calls, fail_at; /* calls from 1; fail_at 0: none fails, places are noted; -1: none */
    uint64_t places[MOST_PLACES]; /* a set: those that have failed already, in any command */
    long *first;                  /* calls at which a new place was met, when counting */
    long first_count, first_capacity;
} memory;

/* Whether this place is new; it is not afterwards. */
static bool is_new(uint64_t key) {
    size_t at = key % MOST_PLACES;
    for (; memory.places[at] != 0; at = (at + 1) % MOST_PLACES) {
        if (memory.places[at] == key) return false;
    }
    memory.places[at] = key;
    return true;
}

static __attribute__((noinline)) bool fails(void) {
    if (!memory.on) return false;
    memory.calls++;
    void *frames[SKIP + DEPTH] = {NULL};
    if (memory.fail_at != 0) {
        if (memory.calls == memory.fail_at && getenv("DL_SAY") != NULL)
            backtrace_symbols_fd(frames, backtrace(frames, SKIP + DEPTH), 1);
        return memory.calls == memory.fail_at;
    }
    memory.on = false; /* backtrace may allocate */
    const int count = backtrace(frames, SKIP + DEPTH);
    memory.on = true;
    uint64_t key = 14695981039346656037u;
    for (int i = SKIP; i < count; i++)
        key = (key ^ (uint64_t)(uintptr_t)frames[i]) * 1099511628211u;
    if (memory.first_count < memory.first_capacity && is_new(key | 1))
        memory.first[memory.first_count++] = memory.calls;
    return false;
}

void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_malloc(size_t size) { return fails() ? NULL : __real_malloc(size); }
void *__real_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size) {
    return fails() ? NULL : __real_calloc(count, size);
}
void *__real_realloc(void *old, size_t size);
void *__wrap_realloc(void *old, size_t size);
void *__wrap_realloc(void *old, size_t size) { return fails() ? NULL : __real_realloc(old, size); }
static __attribute__((noinline)) bool refused(struct dl_arena *arena) {
    const bool now = fails();
    arena->failed = arena->failed || now; /* as the arena says it */
    return now;
}
void *__real_dl_arena_alloc(struct dl_arena *arena, size_t count, size_t bytes_each);
void *__wrap_dl_arena_alloc(struct dl_arena *arena, size_t count, size_t bytes_each);
void *__wrap_dl_arena_alloc(struct dl_arena *arena, size_t count, size_t bytes_each) {
    return refused(arena) ? NULL : __real_dl_arena_alloc(arena, count, bytes_each);
}
char *__real_dl_arena_strdup(struct dl_arena *arena, const char *text);
char *__wrap_dl_arena_strdup(struct dl_arena *arena, const char *text);
char *__wrap_dl_arena_strdup(struct dl_arena *arena, const char *text) {
    return text == NULL || refused(arena) ? NULL : __real_dl_arena_strdup(arena, text);
}
char *__real_dl_arena_strndup(struct dl_arena *arena, const char *text, size_t length);
char *__wrap_dl_arena_strndup(struct dl_arena *arena, const char *text, size_t length);
char *__wrap_dl_arena_strndup(struct dl_arena *arena, const char *text, size_t length) {
    return refused(arena) ? NULL : __real_dl_arena_strndup(arena, text, length);
}
char *__wrap_dl_arena_printf(struct dl_arena *arena, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
char *__wrap_dl_arena_printf(struct dl_arena *arena, const char *format, ...) {
    if (refused(arena)) return NULL;
    va_list arguments;
    va_start(arguments, format);
    const int length = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    assert_true(length >= 0);
    char *text = __real_dl_arena_alloc(arena, (size_t)length + 1, 1);
    if (text == NULL) return NULL;
    va_start(arguments, format);
    vsnprintf(text, (size_t)length + 1, format, arguments);
    va_end(arguments);
    return text;
}

static struct dl_arena arena; /* of a run */

/* What a command wrote; kept outside of the arena, whose end is part of what is tested. */
static struct {
    char *text;
    size_t length;
} output;

/* As the program: nothing is shown that may lack a part. */
static enum dl_code take_output(const struct dl_options *options, const char *text,
                                struct dl_err *err) {
    (void)options;
    if (text == NULL || arena.failed) return dl_fail(err, DL_ERR_SYSTEM, "out of memory");
    const size_t length = strlen(text);
    output.text = __real_realloc(output.text, output.length + length + 1);
    assert_non_null(output.text);
    memcpy(output.text + output.length, text, length + 1);
    output.length += length;
    return DL_OK;
}
static void drop_note(const struct dl_context *context, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static void drop_note(const struct dl_context *context, const char *format, ...) {
    (void)context;
    (void)format;
}

static sigjmp_buf crash;
static void crashed(int number) {
    (void)number;
    siglongjmp(crash, 1);
}

/* One run with the allocation `fail_at` failing. */
static enum dl_code run(const struct dl_command *command, int word_count, char **words,
                        long fail_at, struct dl_err *err) {
    static struct dl_options options;
    char data[4096];
    const char *directories[] = {data};
    const struct dl_command *const commands[] = {command, NULL};
    snprintf(data, sizeof data, "%s/data", check_root());
    struct dl_context context = {.data = {.directories = directories, .directory_count = 1},
                                 .program = "",
                                 .verbosity = -1,
                                 .commands = commands,
                                 .arena = &arena,
                                 .output = take_output,
                                 .note = drop_note};
    *err = (struct dl_err){.code = DL_OK};
    free(output.text);
    output.text = NULL;
    output.length = 0;
    assert_int_equal(dl_options_parse(command->options, word_count, words, &options, err), DL_OK);
    dl_arena_free(&arena); /* of a test that was cut off */
    memory.calls = 0;
    memory.fail_at = fail_at;
    memory.on = true;
    enum dl_code code = DL_ERR_BACKEND;
    if (sigsetjmp(crash, 1) == 0)
        code = command->run(&context, &options, err);
    else
        snprintf(err->message, sizeof err->message, "crash");
    memory.on = false;
    if (strcmp(err->message, "crash") == 0) return DL_ERR_BACKEND;
    if (arena.failed) code = dl_fail(err, DL_ERR_SYSTEM, "out of memory");
    dl_arena_free(&arena);
    return code;
}

static int wrong;

static void check_command(const struct dl_command *command, const char *line) {
    char text[512], *words[32];
    int count = 0;
    long first[8192];
    struct dl_err err;
    snprintf(text, sizeof text, "%s", line);
    for (char *word = strtok(text, " "); word != NULL; word = strtok(NULL, " "))
        words[count++] = word;
    memory.first = first;
    memory.first_count = 0;
    memory.first_capacity = sizeof first / sizeof first[0];
    if (run(command, count, words, 0, &err) != DL_OK)
        fail_msg("%s %s: %s %s", command->name, line, err.key, err.message);
    char *expected = output.text;
    output.text = NULL;
    assert_true(memory.first_count < memory.first_capacity);
    if (getenv("DL_SAY") != NULL)
        print_message("%s %s: %ld places of %ld calls\n", command->name, line, memory.first_count,
                      memory.calls);
    for (long i = 0; i < memory.first_count; i++) {
        const enum dl_code code = run(command, count, words, first[i], &err);
        const bool same =
            code == DL_OK && output.text != NULL && strcmp(output.text, expected) == 0;
        if (same || (code == DL_ERR_SYSTEM && strstr(err.message, "out of memory") != NULL))
            continue;
        print_message("%s %s: allocation %ld: status %d, \"%s\"%s\n", command->name, line, first[i],
                      (int)code, err.message, code == DL_OK ? ", other output" : "");
        wrong++;
    }
    free(expected);
}

#define LINES(...)                                                                                 \
    (const char *const[]) { __VA_ARGS__, NULL }
static void check_lines(const struct dl_command *command, const char *const *lines) {
    struct sigaction old, catch_it = {.sa_handler = crashed};
    sigemptyset(&catch_it.sa_mask);
    sigaction(SIGSEGV, &catch_it, &old);
    wrong = 0;
    for (; *lines != NULL; lines++) check_command(command, *lines);
    free(output.text);
    output.text = NULL;
    sigaction(SIGSEGV, &old, NULL);
    assert_int_equal(wrong, 0);
}

static void predict(void **state) {
    (void)state;
    check_lines(
        &dl_cmd_predict,
        LINES("--system iris-v100 --workload alexnet --framework pytorch-ddp --nodes 2 --json "
              "--set system.name=x --set device.memory=20GB",
              "--system dgx1-v100 --workload gpt:layers=2,hidden=256,heads=4,seq=128,vocab=512 "
              "--framework megatron --tp 2 --pp 2 --dp 2 --micro-batch 1",
              "--system dgx-a100-80 --workload "
              "gpt:layers=2,hidden=256,heads=4,seq=128,vocab=512,experts=4 --framework megatron "
              "--ep 2 --recompute full",
              "--system abci-v100 --workload alexnet --framework ideal --strategy all --nodes 1",
              "--system dgx1-v100 --workload resnet50 --framework all --nodes 2 --batch-per-device "
              "max --input real --first-epoch",
              "--mixed-nodes dgx1-v100:1,dgx1-p100:2 --split balanced --workload vgg16 --framework "
              "horovod-tensorflow",
              "--system stampede2-skx --workload googlenet --framework caffe-mlsl --nodes 4",
              "--system iris-v100 --workload vgg16 --framework pytorch-ddp --assume paradl "
              "--strategy data+filter --nodes 4 --batch-per-device 1 --csv"));
}

static void explain(void **state) {
    (void)state;
    check_lines(
        &dl_cmd_explain,
        LINES("--system iris-v100 --workload vgg16 --framework pytorch-ddp --nodes 2",
              "--system iris-v100 --workload vgg16 --framework horovod-pytorch --nodes 2 --json",
              "--system dgx1-v100 --workload gpt:layers=2,hidden=256,heads=4,seq=128,vocab=512 "
              "--framework megatron --tp 2 --pp 2 --dp 2 --micro-batch 1",
              "--system dgx1-v100 --workload vgg16 --framework pytorch-ddp --batch-per-device 4096",
              "--system abci-v100 --workload vgg16 --framework pytorch-ddp --strategy "
              "data+pipeline --pp 2 --micro-batch 8",
              "--system abci-v100 --workload vgg16 --framework pytorch-ddp --strategy data+spatial "
              "--sp 2"));
}

static void search(void **state) {
    (void)state;
    check_lines(
        &dl_cmd_search,
        LINES("--system dgx-a100-80 --workload gpt:layers=2,hidden=256,heads=4,seq=128,vocab=512 "
              "--framework megatron --nodes 1 --global-batch 8 --threads 1 --csv",
              "--system iris-v100 --workload alexnet --framework pytorch-ddp --nodes 1 "
              "--global-batch 64 --threads 1 --csv",
              "--system abci-v100 --workload lenet --framework chainermn --nodes 1 "
              "--global-batch 8 --threads 1 --pareto --csv",
              "--heterogeneous iris-v100:1,das5-titanx:1 --framework pytorch-ddp --workload lenet "
              "--global-batch 64 --csv",
              "--heterogeneous iris-v100:1,das5-titanx:2 --framework horovod-tensorflow --jobs "
              "lenet,alexnet --csv",
              "--heterogeneous iris-v100:1,das5-titanx:1 --place parts --framework mxnet-dist-sync "
              "--workload lenet --global-batch 64 --csv",
              "--heterogeneous iris-v100:1,das5-titanx:1 --place stages --framework pytorch-ddp "
              "--workload lenet --global-batch 64 --csv"));
}

static void compare(void **state) {
    (void)state;
    char line[400];
    snprintf(line, sizeof line, "%s/data/runs/intel_caffe.csv --rows --csv", check_root());
    check_lines(&dl_cmd_compare, LINES(line));
}

static void campaign(void **state) {
    (void)state;
    check_lines(&dl_cmd_campaign,
                LINES("--system iris-v100 --nodes 2 --workload lenet --framework pytorch-ddp "
                      "--until-step 200 --search asha --trials 9 --csv",
                      "--system iris-v100 --nodes 1 --workload lenet --framework pytorch-ddp "
                      "--until-step 200 --search hyperband --trials 9 --csv",
                      "--system iris-v100 --nodes 1 --workload lenet --framework pytorch-ddp "
                      "--epochs 1 --space batch=32,64 --space lr=0.1,0.03 --csv"));
}

static void advise(void **state) {
    (void)state;
    check_lines(&dl_cmd_advise,
                LINES("--system iris-v100 --workload lenet --framework pytorch-ddp --nodes 1 "
                      "--least-gain 1000 --json", /* every change, none combined */
                      "--system iris-v100 --workload lenet --framework pytorch-ddp --gpus 1 "
                      "--allow model --least-gain 60 --json", /* few changes, combined */
                      "--system iris-v100 --workload lenet --framework pytorch-ddp --rewrite "
                      "kernels"));
}

static void others(void **state) {
    (void)state;
    check_lines(&dl_cmd_list, LINES("systems", "workloads --json", "frameworks --csv", "devices"));
    check_lines(&dl_cmd_schema, LINES("system", "workload", "framework --json"));
}

/* ---- functions by themselves: every single allocation, whoever asked for it ---- */

static char scratch_path[160];

static void say(struct dl_text *out, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void say(struct dl_text *out, const char *format, ...) {
    char line[400];
    const bool on = memory.on;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    memory.on = false;
    dl_text_add(out, line);
    memory.on = on;
}

static void say_rows(struct dl_text *out, const struct dl_csv *csv) {
    for (int r = 0; r < csv->row_count; r++)
        for (int c = 0; c < csv->column_count; c++) say(out, "%s|", csv->rows[r][c]);
}

static enum dl_code made(const char *text, struct dl_text *out, struct dl_err *err) {
    if (text == NULL) return dl_fail(err, DL_ERR_SYSTEM, "out of memory");
    say(out, "%s", text);
    return DL_OK;
}

static enum dl_code csv_whole(struct dl_arena *own, struct dl_text *out, struct dl_err *err) {
    static const char text[] = "a,b\n1,\"x,\"\"y\"\"\"\n\n2,z\n";
    struct dl_csv csv, rows;
    DL_TRY(dl_csv_parse("t.csv", text, strlen(text), own, &csv, err));
    say_rows(out, &csv);
    DL_TRY(dl_csv_parse_rows(&csv, "3,4\n5,6", 7, 9, 0, own, &rows, err));
    say_rows(out, &rows);
    return DL_OK;
}

static enum dl_code csv_parts(struct dl_arena *own, struct dl_text *out, struct dl_err *err) {
    struct dl_csv_stream stream;
    struct dl_csv rows;
    bool regular;
    (void)own;
    DL_TRY(dl_csv_open(scratch_path, &stream, &regular, err));
    enum dl_code code;
    while ((code = dl_csv_next(&stream, &rows, err)) == DL_OK && rows.row_count > 0)
        say_rows(out, &rows);
    dl_csv_close(&stream);
    return code;
}

static enum dl_code files(struct dl_arena *own, struct dl_text *out, struct dl_err *err) {
    char *text;
    size_t length;
    DL_TRY(dl_file_read(scratch_path, 1000, own, &text, &length, err));
    say(out, "%zu %s", length, text);
    DL_TRY(dl_file_read("/dev/null", 1000, own, &text, &length, err));
    say(out, "%zu %s", length, text);
    return DL_OK;
}

static enum dl_code documents(struct dl_arena *own, struct dl_text *out, struct dl_err *err) {
    static const char text[] =
        "{\"format\": \"dlmodel-rich\", \"version\": 1, \"title\": \"a\\u00e9\", \"count\": 3, "
        "\"numbers\": [1, 2.5, -3e5], \"items\": [{\"name\": \"x\", \"points\": [1, 2]}, "
        "{\"name\": "
        "\"y\"}], \"shapes\": [\"2*h\", 3], \"words\": \"one\", \"facts\": {\"k\": 1, \"l\": true, "
        "\"m\": \"n\"}}";
    struct dl_override set[] = {{.key = "title", .value = "changed"},
                                {.key = "numbers", .value = "4,5"},
                                {.key = "facts.new", .value = "word"},
                                {.key = "links.inter.bandwidth", .value = "1GB/s"},
                                {.key = "items.1.alpha", .value = "1us"}};
    static const char *const place[] = {"count", NULL};
    struct dl_json *doc;
    struct rich rich;
    DL_TRY(dl_json_parse("rich.json", text, strlen(text), own, &doc, err));
    DL_TRY(dl_json_load(doc, &rich_schema, own, &rich, err));
    DL_TRY(made(dl_json_text(&rich_schema, &rich, own), out, err));
    DL_TRY(made(dl_json_with_number(doc, place, 7, own), out, err));
    DL_TRY(dl_json_set(doc, &rich_schema, set, 5, err));
    DL_TRY(dl_json_load(doc, &rich_schema, own, &rich, err));
    DL_TRY(made(dl_json_text(&rich_schema, &rich, own), out, err));
    const char *const *keys = dl_json_keys(&rich_schema, own);
    for (int i = 0; keys != NULL && keys[i] != NULL; i++) say(out, "%s ", keys[i]);
    return keys != NULL ? DL_OK : dl_fail(err, DL_ERR_SYSTEM, "out of memory");
}

/* What is refused is refused for that, or for want of memory. */
static enum dl_code refusals(struct dl_arena *own, struct dl_text *out, struct dl_err *err) {
    static const char twice[] = "{\"a\":1,\"b\":2,\"c\":3,\"d\":4,\"e\":5,\"f\":6,\"g\":7,\"h\":8,"
                                "\"i\":9,\"j\":1,\"k\":2,\"l\":3,\"m\":4,\"n\":5,\"o\":6,\"p\":7,"
                                "\"q\":8,\"a\":9}",
                      other[] = "{\"format\": \"dlmodel-rich\", \"version\": 1, \"titel\": 1}";
    struct dl_json *doc;
    struct rich rich;
    enum dl_code code = dl_json_parse("t.json", twice, strlen(twice), own, &doc, err);
    if (code != DL_ERR_INPUT) return code;
    say(out, "%s", err->message);
    DL_TRY(dl_json_parse("t.json", other, strlen(other), own, &doc, err));
    code = dl_json_load(doc, &rich_schema, own, &rich, err);
    if (code != DL_ERR_INPUT) return code;
    say(out, "%s", err->message);
    return DL_OK;
}

static enum dl_code tables(struct dl_arena *own, struct dl_text *out, struct dl_err *err) {
    static const struct dl_column columns[] = {{"g.a", "a", "s", DL_COLUMN_NUMBER, 0, 0},
                                               {"g.h.b", "b", NULL, DL_COLUMN_STRING, 0, 0},
                                               {"c", "c", NULL, DL_COLUMN_INTEGER, 0, 0}};
    struct dl_table table;
    dl_table_init(&table, own, columns, 3);
    for (int i = 0; i < 20; i++) {
        union dl_cell *row = dl_table_row(&table);
        if (row == NULL) return dl_fail(err, DL_ERR_SYSTEM, "out of memory");
        row[0].number = i / 3.0, row[1].string = "a long text, with a comma", row[2].integer = i;
    }
    DL_TRY(made(dl_table_render(&table, DL_FORMAT_TEXT), out, err));
    DL_TRY(made(dl_table_render(&table, DL_FORMAT_CSV), out, err));
    DL_TRY(made(dl_table_render(&table, DL_FORMAT_JSON), out, err));
    DL_TRY(made(dl_table_cell_text(&table, 1, 0, own), out, err));
    table.row_count = 0;
    DL_TRY(made(dl_table_csv_part(&table, false), out, err));
    return made(dl_shell_quote(own, "it's"), out, err);
}

static bool one_second(const void *data, int from, int to, int kind, int64_t n, int behind,
                       struct dl_stage_cost *out) {
    (void)data, (void)kind, (void)behind;
    *out = (struct dl_stage_cost){(double)(to - from) / (double)n, (double)(to - from)};
    return true;
}

static enum dl_code stages(struct dl_arena *own, struct dl_text *out, struct dl_err *err) {
    const struct dl_stages_request request = {
        .pieces = 3, .kinds = 2, .nodes = {1, 2}, .cost = one_second};
    struct dl_stages *found;
    int count;
    DL_TRY(dl_stages_place(&request, own, &found, &count, err));
    for (int i = 0; i < count; i++) say(out, "%g %d;", found[i].time_s, found[i].count);
    return DL_OK;
}

static enum dl_code load_text(const struct dl_data *data, const char *name, struct dl_arena *own,
                              const void **out, struct dl_err *err) {
    (void)data;
    *out = dl_arena_strdup(own, name);
    return *out != NULL ? DL_OK : dl_fail(err, DL_ERR_SYSTEM, "out of memory");
}

static enum dl_code stores(struct dl_arena *own, struct dl_text *out, struct dl_err *err) {
    struct dl_data data = {.store = dl_store_open()};
    enum dl_code code = data.store != NULL ? DL_OK : dl_fail(err, DL_ERR_SYSTEM, "out of memory");
    for (int i = 0; i < 4 && code == DL_OK; i++) {
        const void *text = NULL;
        code = dl_store_load(&data, DL_DATA_SYSTEM, i % 2 == 0 ? "one" : "two", load_text, own,
                             &text, err);
        if (code == DL_OK) say(out, "%s", (const char *)text);
    }
    dl_store_close(data.store);
    return code;
}

/* A name is hinted at as far as memory reaches; what is wrong is said in any case. */
static enum dl_code hints(struct dl_arena *own, struct dl_text *out, struct dl_err *err) {
    static const char *const names[] = {"alpha-one", "alpha-two", "beta", NULL};
    (void)out;
    if (dl_name_hint("system", "systems", "alpha", names, own, err) != DL_ERR_USAGE)
        return DL_ERR_BACKEND;
    check_contains(err->message, "no system \"alpha\"");
    return DL_OK;
}

/* Times of all layers, made and remembered. */
static enum dl_code costs(struct dl_arena *own, struct dl_text *out, struct dl_err *err) {
    struct dl_cost_memo memo = {.arena = own};
    struct dl_cost cost = {0};
    struct dl_fake f;
    memory.on = false;
    fake_make(&f);
    memory.on = true;
    enum dl_code code = DL_OK;
    for (int i = 0; i < 2 && code == DL_OK; i++)
        code = dl_cost_recall(&memo, &f.device, &f.workload, &f.framework, &f.plan, 8, own, &cost,
                              err);
    if (code == DL_OK) say(out, "%.17g", cost.layers[3].forward.time_s);
    dl_arena_free(&f.arena);
    return code;
}

/* Owners of three keys, and what every behaviour sends. */
static enum dl_code behaviours(struct dl_arena *own, struct dl_text *out, struct dl_err *err) {
    const struct dl_gradient gradients[] = {{2, 1e6, 4e6, 1}, {1, 2e6, 8e6, 2}, {0, 1e3, 4e3, 3}};
    struct dl_key_owners owners;
    struct dl_fake f;
    memory.on = false;
    fake_make(&f);
    memory.on = true;
    const struct dl_gradient_sync_request r = {.system = &f.system,
                                               .workload = &f.workload,
                                               .framework = &f.framework,
                                               .plan = &f.plan,
                                               .gradients = gradients,
                                               .gradient_count = 3,
                                               .total_bytes = 12.004e6,
                                               .parameter_bytes = 12.004e6,
                                               .backward_end_s = 3,
                                               .library = DL_LIB_NCCL,
                                               .arena = own};
    enum dl_code code = dl_key_owners_of(&r, &owners, err);
    if (code == DL_OK) say(out, "%d %d;", owners.owner_of[0], owners.owner_of[2]);
    for (int i = 0; dl_framework_behaviours[i] != NULL && code == DL_OK; i++) {
        struct dl_gradient_sync sync = {0};
        code = dl_framework_behaviours[i]->synchronize(&r, &sync, err);
        for (int m = 0; m < sync.message_count && code == DL_OK; m++)
            say(out, "%.17g %.17g;", sync.messages[m].ready_s, sync.messages[m].duration_s);
    }
    dl_arena_free(&f.arena);
    return code;
}

static const struct {
    const char *name;
    enum dl_code (*call)(struct dl_arena *, struct dl_text *, struct dl_err *);
    long least; /* allocations */
} functions[] = {
    {"csv_whole", csv_whole, 10}, {"csv_parts", csv_parts, 8},   {"files", files, 3},
    {"documents", documents, 40}, {"refusals", refusals, 4},     {"tables", tables, 10},
    {"stages", stages, 10},       {"stores", stores, 4},         {"hints", hints, 5},
    {"costs", costs, 3},          {"behaviours", behaviours, 15}};

/* Nothing else, and of a file which one. */
static bool says_so(const char *message) {
    const char *const of[] = {"t.csv", "rich.json", "t.json", scratch_path, "/dev/null"};
    char text[300];
    if (strcmp(message, "out of memory") == 0) return true;
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        snprintf(text, sizeof text, "%s: out of memory", of[i]);
        if (strcmp(message, text) == 0) return true;
    }
    return false;
}

static void check_function(size_t f) {
    static const char table[] = "a,\"b\nc\"\n1,2\n3,4\n";
    char *volatile expected = NULL, folder[128];
    struct dl_err err = {0};
    assert_true(check_directory(folder, sizeof folder));
    snprintf(scratch_path, sizeof scratch_path, "%s/t.csv", folder);
    assert_int_equal(dl_file_write(scratch_path, table, strlen(table), &err), DL_OK);
    for (long at = 0, total = 0; at <= total; at++) {
        struct dl_arena own = {0}, kept = {0};
        struct dl_text out = {.arena = &kept};
        err = (struct dl_err){.code = DL_OK};
        memory.calls = 0;
        memory.fail_at = at > 0 ? at : -1;
        memory.on = true;
        enum dl_code code = DL_ERR_BACKEND;
        if (sigsetjmp(crash, 1) == 0) code = functions[f].call(&own, &out, &err);
        memory.on = false;
        const char *text = dl_text_string(&out);
        assert_non_null(text);
        if (at == 0) {
            if (code != DL_OK || memory.calls < functions[f].least)
                fail_msg("%s: %d %s, %ld allocations", functions[f].name, (int)code, err.message,
                         memory.calls);
            expected = strdup(text);
            total = memory.calls;
        } else if (!(code == DL_OK && strcmp(text, expected) == 0) &&
                   !(code == DL_ERR_SYSTEM && says_so(err.message))) {
            print_message("%s: allocation %ld: status %d, \"%s\"%s\n", functions[f].name, at,
                          (int)code, err.message, code == DL_OK ? ", other output" : "");
            wrong++;
        }
        dl_arena_free(&own);
        dl_arena_free(&kept);
    }
    free(expected);
    unlink(scratch_path), rmdir(folder);
}

static void functions_by_themselves(void **state) {
    struct sigaction old, catch_it = {.sa_handler = crashed};
    (void)state;
    sigemptyset(&catch_it.sa_mask);
    sigaction(SIGSEGV, &catch_it, &old);
    wrong = 0;
    for (size_t f = 0; f < sizeof functions / sizeof *functions; f++) check_function(f);
    sigaction(SIGSEGV, &old, NULL);
    assert_int_equal(wrong, 0);
}

int main(void) {
    setvbuf(stdout, NULL, _IONBF, 0);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(predict),  cmocka_unit_test(explain),
        cmocka_unit_test(search),   cmocka_unit_test(others),
        cmocka_unit_test(campaign), cmocka_unit_test(compare),
        cmocka_unit_test(advise),   cmocka_unit_test(functions_by_themselves)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
