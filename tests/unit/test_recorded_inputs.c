/* Recorded results (recorded.h: a regression net, no oracle) of what a command is given: words of a
 * command line against a table with every kind of value, and names, files, attachments and --set
 * of every form by which data is found. What a store keeps is also what is read without one.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "model/catalog/command.h"
#include "model/catalog/data.h"
#include "model/catalog/store.h"
#include "tests/check.h"
#include "tests/recorded.h"

enum { LINES = 2500, LOADS = 400, FINDS = 300 };

static uint64_t seed;
static int upto(int count) { return (int)(check_random(&seed) % (uint64_t)count); }
static bool once_in(int count) { return upto(count) == 0; }

struct given {
    const char *text, *word;
    int choice;
    bool flag, is_given, is_max;
    double number;
    int64_t integer;
};
static const char *const colors[] = {"red", "green", "blue", NULL};
#define GIVEN(member) struct given, member
static const struct dl_option options[] = {
    {"text", 't', "TEXT", "Group", "a text", DL_TEXT_OF(GIVEN(text), .alias = "words")},
    {"word", 'w', "WORD", "Group", "a word", DL_WORD(GIVEN(word), .choices = colors)},
    {"color", 'c', "COLOR", "Group", "a choice", DL_CHOICE(GIVEN(choice), .choices = colors)},
    {"flag", 'f', NULL, "Group", "a flag", DL_FLAG(GIVEN(flag))},
    {"size", 's', "SIZE", "Group", "bytes",
     DL_NUMBER(GIVEN(number), .min = 1, .max = 1e12, .unit = DL_UNIT_BYTE,
               DL_GIVEN(GIVEN(is_given)))},
    {"count", 'n', "N", "Group", "a count",
     DL_INTEGER(GIVEN(integer), .min = 1, .max = 64, .unit = DL_UNIT_COUNT,
                DL_OR_WORD("max", GIVEN(is_max)))},
    {"set", 0, "KEY=VALUE", "Group", "what if", DL_REPEATED},
    {.name = NULL},
};
static const struct dl_option *const option_tables[] = {options, dl_output_options, NULL};

static const char *const pool[] = {"--text",
                                   "--text=a",
                                   "--words=b",
                                   "-t",
                                   "-tc",
                                   "--word",
                                   "--word=red",
                                   "--word=x",
                                   "-wgreen",
                                   "--color",
                                   "--color=blue",
                                   "--color=blu",
                                   "-c",
                                   "-cred",
                                   "--flag",
                                   "-f",
                                   "--flag=1",
                                   "-fn3",
                                   "--size=4KiB",
                                   "--size",
                                   "-s12",
                                   "--size=0",
                                   "--size=1e12",
                                   "--size=1.1TB",
                                   "--size=x",
                                   "--size=5s",
                                   "--count",
                                   "--count=1",
                                   "--count=64",
                                   "--count=65",
                                   "--count=0",
                                   "--count=2.5",
                                   "--count=max",
                                   "-nmax",
                                   "--set",
                                   "--set=a=1",
                                   "--set=b",
                                   "--json",
                                   "--csv",
                                   "--",
                                   "-",
                                   "-x",
                                   "--tex",
                                   "--siz=1",
                                   "--nothing",
                                   "red",
                                   "green",
                                   "3",
                                   "64k",
                                   "file.json",
                                   "",
                                   "-ff",
                                   "--=",
                                   "---",
                                   "-w",
                                   "red",
                                   "7"};

/* What the words that were parsed say, by the table and by name. */
static void record_parsed(const struct dl_options *out) {
    struct given given = {.choice = 7, .number = 0.5, .integer = 99};
    struct dl_err err = {0};
    double size = 3;
    int64_t whole = 5;
    int choice = 9;
    recorded_number("given", 1 + out->given_count + 10 * out->positional_count);
    for (int i = 0; i < out->positional_count; i++) recorded_text("positional", out->positional[i]);
    if (dl_options_bind(out, options, &given, &err) != DL_OK) recorded_error("bind", &err);
    recorded_text("text", given.text), recorded_text("word", given.word);
    recorded_number("choice", 1 + given.choice + 10 * given.flag);
    recorded_number("is given, is max", 1 + given.is_given + 2 * given.is_max);
    recorded_number("number", given.number), recorded_number("integer", (double)given.integer);
    err = (struct dl_err){0};
    if (dl_option_number(out, "size", DL_UNIT_BYTE, 2, 1e4, &size, &err) != DL_OK)
        recorded_error("size", &err);
    if (dl_option_integer(out, "count", 2, 32, &whole, &err) != DL_OK)
        recorded_error("count", &err);
    if (dl_option_choice(out, "text", colors, &choice, &err) != DL_OK)
        recorded_error("choice", &err);
    recorded_number("looked up", size + 7 * (double)whole + 1000 * choice);
    const struct dl_options fewer = dl_options_without(out, "set");
    recorded_number("without", 1 + fewer.given_count + 10 * dl_option_given(&fewer, "set"));
}

static void record_line(void) {
    static char copies[8][32];
    char *words[8];
    struct dl_options out;
    struct dl_err err = {0};
    const int count = upto(6);
    char title[300] = "";
    for (int i = 0; i < count; i++) {
        snprintf(copies[i], sizeof copies[i], "%s",
                 pool[upto((int)(sizeof pool / sizeof pool[0]))]);
        words[i] = copies[i];
        snprintf(title + strlen(title), sizeof title - strlen(title), "%.30s ", copies[i]);
    }
    recorded_case(title);
    if (dl_options_parse(option_tables, count, words, &out, &err) != DL_OK) {
        recorded_error("parse", &err);
    } else {
        record_parsed(&out);
    }
    recorded_end_case();
}

static void record_cell(void) {
    static const char *const cells[] = {"1", "0", "red", "x", "", "64", "max", "1e9", "true"};
    struct given given = {.choice = 7, .number = 0.5, .integer = 99};
    struct dl_err err = {0};
    const struct dl_option *option = &options[upto(7)];
    const char *cell = cells[upto(9)];
    recorded_case(option->name);
    const enum dl_code code = once_in(2) ? dl_option_store_cell(option, cell, &given, &err)
                                         : dl_option_store(option, cell, &given, &err);
    if (code != DL_OK) recorded_error("cell", &err);
    recorded_text("text", given.text), recorded_text("word", given.word);
    recorded_number("choice", 1 + given.choice + 10 * given.flag + 20 * given.is_max);
    recorded_number("number", given.number + (double)given.integer);
    recorded_number("repeatable", 1 + dl_option_repeatable(option));
    recorded_end_case();
}

static void lines(void **state) {
    (void)state;
    recorded_open("lines");
    seed = 31;
    for (int i = 0; i < LINES; i++) {
        if (i % 10 == 0)
            record_cell();
        else
            record_line();
    }
    recorded_close();
}

static char directory[4096];
static const char *directories[] = {directory};

/* A message without the place of the repository. */
static void record_message(const char *name, const struct dl_err *err) {
    char whole[2048], text[2048];
    dl_err_text(err, "dlmodel", whole, sizeof whole);
    const char *place = strstr(whole, directory);
    if (place == NULL)
        snprintf(text, sizeof text, "%s", whole);
    else
        snprintf(text, sizeof text, "%.*sdata%.1900s", (int)(place - whole), whole,
                 place + strlen(directory));
    recorded_text(name, text);
}

struct loaded {
    enum dl_data_kind kind;
    const char *name;
    bool with_store;
};

/* Text of what was loaded; NULL: refused. *value: where it is. */
static const char *load(const struct dl_data *data, const struct loaded *l, struct dl_arena *arena,
                        const void **value, struct dl_err *err) {
    const struct dl_device *device;
    const struct dl_system *system;
    const struct dl_framework *framework;
    const struct dl_workload *workload;
    switch (l->kind) {
    case DL_DATA_DEVICE:
        if (dl_data_device(data, l->name, arena, &device, err) != DL_OK) return NULL;
        *value = device;
        return dl_arena_printf(arena, "%s %d %g", dl_json_text(&dl_device_schema, device, arena),
                               device->kernel_model_count, device->memory_bytes);
    case DL_DATA_SYSTEM:
        if (dl_data_system(data, l->name, arena, &system, err) != DL_OK) return NULL;
        *value = system;
        return dl_json_text(&dl_system_schema, system, arena);
    case DL_DATA_FRAMEWORK:
        if (dl_data_framework(data, l->name, arena, &framework, err) != DL_OK) return NULL;
        *value = framework;
        return dl_json_text(&dl_framework_schema, framework, arena);
    default:
        if (dl_data_workload(data, l->name, arena, &workload, err) != DL_OK) return NULL;
        *value = workload;
        return dl_arena_printf(arena, "%d %.12g %.12g", workload->layer_count, workload->parameters,
                               workload->forward_macs_per_sample);
    }
}

static void random_loaded(struct loaded *l, struct dl_data *data, struct dl_override *overrides) {
    static const char *const names[4][4] = {
        {"k80", "single-k80.json", "K80", "k8"},
        {"single-k80", "azure-nc24r-k80", "single-m40", "single"},
        {"lenet", "gpt:layers=2,hidden=64,heads=2,seq=16,vocab=100", "lenet:classes=5", "lenett"},
        {"pytorch-ddp", "horovod-tensorflow", "chainermn", "pytorch"}};
    static const enum dl_data_kind kinds[] = {DL_DATA_DEVICE, DL_DATA_SYSTEM, DL_DATA_WORKLOAD,
                                              DL_DATA_FRAMEWORK};
    static const char *const keys[] = {"device.memory_bytes",
                                       "memory",
                                       "system.nodes",
                                       "nodes",
                                       "framework.pytorch-ddp.memory.context",
                                       "framework.chainermn,pytorch*.memory.context_bytes",
                                       "framework.pytorch-ddp@1.12.memory.context",
                                       "framework.memory.context_bytes",
                                       "workload.classes",
                                       "classes",
                                       "links.inter.latency",
                                       "nothing",
                                       "framework.horovod*.tick_s"};
    static const char *const values[] = {"3", "2GB", "10us", "x", "1"};
    const int kind = upto(4);
    *l = (struct loaded){kinds[kind], names[kind][upto(once_in(4) ? 4 : 2)], false};
    data->override_count = upto(3);
    for (int i = 0; i < data->override_count; i++) {
        const char *key = keys[upto(13)], *value = values[upto(5)];
        overrides[i] = (struct dl_override){.key = key, .value = value};
    }
    if (once_in(4)) data->release = once_in(2) ? "1.12" : "2.1";
    if (once_in(6)) data->architecture = once_in(2) ? "ampere" : "volta";
    if (once_in(6)) data->kernels_release = "1.12";
    if (once_in(6)) data->training = true;
    if (once_in(8)) data->names_only = true;
}

static void record_load(struct dl_store *store) {
    struct dl_arena arena = {0};
    struct dl_err err = {0};
    struct dl_override overrides[2], again[2];
    struct dl_data data = {
        .directories = directories, .directory_count = 1, .overrides = overrides};
    struct loaded l;
    const void *first = NULL, *second = NULL, *fresh = NULL;
    random_loaded(&l, &data, overrides);
    memcpy(again, overrides, sizeof again);
    recorded_case(l.name);
    const char *without = load(&data, &l, &arena, &fresh, &err);
    if (without == NULL)
        record_message("refusal", &err);
    else
        recorded_text("what was read", without);
    for (int i = 0; i < data.override_count; i++) recorded_number("used", 1 + overrides[i].used);
    data.store = store, data.overrides = again;
    const char *with = load(&data, &l, &arena, &first, &err);
    assert_int_equal(with == NULL, without == NULL);
    if (with != NULL) {
        assert_string_equal(with, without);
        load(&data, &l, &arena, &second, &err);
        recorded_number("kept", 1 + (first == second) + 2 * dl_store_holds(store, first));
    }
    recorded_end_case();
    dl_arena_free(&arena);
}

static void loads(void **state) {
    (void)state;
    struct dl_store *store = dl_store_open();
    recorded_open("loads");
    seed = 32;
    for (int i = 0; i < LOADS; i++) record_load(store);
    recorded_close();
    dl_store_close(store);
}

static void record_find(void) {
    static const char *const names[] = {"k80",       "V100",    "dgx",          "iris-v100",
                                        "resnet",    "horovod", "nothing-like", "./k80.json",
                                        "a/b",       "local",   "table.csv",    "x.json",
                                        "pytorch-d", "lenet",   "dgx-a100-80",  ""};
    struct dl_arena arena = {0};
    struct dl_err err = {0};
    char inside[4200];
    const struct dl_attachment attachments[] = {
        {.name = "x.json", .text = "{\"a\": 1}", .length = 8},
        {.name = "table.csv", .text = "a,b\n1,2\n3", .length = 9}};
    struct dl_data data = {.directories = directories, .attachments = attachments};
    data.directory_count = once_in(8) ? 0 : 1;
    data.attachment_count = upto(3);
    data.names_only = once_in(3);
    data.local_profile = once_in(3) ? "/nowhere/local.json" : NULL;
    const char *name = names[upto(16)], *path = NULL;
    const enum dl_data_kind kind = (enum dl_data_kind)upto(DL_DATA_FRAMEWORK + 1);
    struct dl_csv csv;
    struct dl_json *doc;
    char *text;
    size_t length;
    uint64_t hash = 0;
    recorded_case(name);
    if (dl_data_path(&data, kind, name, &arena, &path, &err) != DL_OK)
        record_message("path", &err);
    else
        recorded_text("path", strncmp(path, directory, strlen(directory)) == 0
                                  ? path + strlen(directory)
                                  : path);
    recorded_number("attached", 1 + (dl_data_attachment(&data, name) != NULL));
    snprintf(inside, sizeof inside, "%s/devices/k80.json", directory);
    const char *file = once_in(4) ? inside : name;
    if (dl_data_read(&data, file, 4000, &arena, &text, &length, &err) != DL_OK)
        record_message("text", &err);
    else
        recorded_number("bytes", (double)length);
    if (dl_data_hash(&data, file, &arena, &hash, &err) != DL_OK)
        record_message("hash", &err);
    else
        recorded_number("hash", (double)(hash >> 16));
    if (dl_data_csv(&data, file, &arena, &csv, &err) != DL_OK)
        record_message("table", &err);
    else
        recorded_number("rows", 1 + csv.row_count);
    if (dl_data_json(&data, file, &arena, &doc, &err) != DL_OK)
        record_message("document", &err);
    else
        recorded_number("document", (double)(dl_json_hash(doc) >> 16));
    recorded_end_case();
    dl_arena_free(&arena);
}

static void finds(void **state) {
    (void)state;
    recorded_open("finds");
    seed = 33;
    for (int i = 0; i < FINDS; i++) record_find();
    for (int kind = DL_DATA_DEVICE; kind <= DL_DATA_FRAMEWORK; kind++) {
        struct dl_arena arena = {0};
        struct dl_err err = {0};
        const char *const twice[] = {directory, directory};
        const struct dl_data data = {
            .directories = twice, .directory_count = 2, .local_profile = "/x/local.json"};
        const char **names;
        uint32_t all_names = 0;
        recorded_case("names");
        assert_int_equal(dl_data_names(&data, (enum dl_data_kind)kind, &arena, &names, &err),
                         DL_OK);
        for (int i = 0; names[i] != NULL; i++) all_names = recorded_hash(all_names, names[i]);
        recorded_text_hash("names", all_names, names[0]);
        recorded_end_case();
        dl_arena_free(&arena);
    }
    recorded_close();
}

static int find_data(void **state) {
    (void)state;
    snprintf(directory, sizeof directory, "%s/data", check_root());
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(lines), cmocka_unit_test(finds),
                                       cmocka_unit_test(loads)};
    return cmocka_run_group_tests(tests, find_data, NULL);
}
