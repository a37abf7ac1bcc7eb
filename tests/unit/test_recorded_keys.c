/* Recorded results (recorded.h: a regression net, no oracle) of a few plans with every number,
 * switch and choice of a device, system and framework set once, as --set does.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "tests/any_case.h"
#include "tests/recorded_outcome.h"

/* A plan that keys are set for; the first few, whose devices have short files, also for keys of
 * systems and devices. */
static const struct setup {
    struct place place;
    const char *framework;
    struct dl_plan plan;
} setups[] = {
    {{"azure-nc24r-k80", "alexnet", 32}, "pytorch-ddp", {.nodes = 4}},
    {{"stampede2-knl", "lenet", 16}, "horovod-tensorflow", {.nodes = 2}},
    {{"aws-p2-8xlarge", NULL, 4},
     "megatron-core",
     {.nodes = 2, .tp = 2, .pp = 2, .micro_batch_samples = 2}},
    {{"azure-nc24r-k80", "lenet", 16}, "mxnet-dist-sync", {.nodes = 2}},
    {{"iris-v100", "lenet", 16}, "tensorflow-ps", {.nodes = 3}},
    {{"iris-v100", "lenet", 16}, "pytorch-dp", {.nodes = 1}},
    {{"iris-v100", "lenet", 16}, "cntk-1bit", {.nodes = 2}},
    {{"stampede2-knl", "lenet", 16}, "caffe-mlsl", {.nodes = 4}},
    {{"iris-v100", NULL, 4}, "deepspeed-zero3", {.nodes = 2}},
    {{"iris-v100", "alexnet", 8}, "mxnet-device", {.nodes = 1}},
    {{"iris-v100", "lenet", 16}, "tensorflow-mirrored", {.nodes = 1}},
    {{"iris-v100", "alexnet", 8}, "mxnet-dist-device-sync", {.nodes = 2}},
    {{"iris-v100", "lenet", 16}, "keras-multi-gpu", {.nodes = 1}},
    {{"iris-v100", "lenet", 16}, "ideal", {.nodes = 4}},
    {{"iris-v100", "resnet18", 8}, "chainermn", {.nodes = 3}},
    {{"iris-v100", "inception_v3", 4}, "pytorch-ddp", {.nodes = 2, .precision = DL_MIXED}},
    {{"iris-v100", NULL, 4}, "pytorch-fsdp", {.nodes = 2, .recompute = DL_RECOMPUTE_FULL}},
    {{"iris-v100", NULL, 8},
     "megatron-core",
     {.nodes = 4, .tp = 2, .sp = 2, .micro_batch_samples = 2}},
    {{"iris-v100", NULL, 8}, "jax-maxtext", {.nodes = 4, .tp = 4}},
};
enum { SETUPS = sizeof setups / sizeof setups[0], SETUPS_OF_SYSTEMS = 3 };

struct setting {
    const struct dl_data *data;
    enum dl_data_kind kind;
    const char *prefix;
};

/* The key of --set for the field: the first element of each list. */
static void key_of(const struct setting *s, const char *path, char *key, size_t size) {
    size_t length = (size_t)snprintf(key, size, "%s", s->prefix);
    for (const char *c = path; *c != '\0' && length + 4 < size; c++) {
        if (*c == '[')
            length += (size_t)snprintf(key + length, 4, ".0");
        else if (*c != ']')
            key[length++] = *c;
    }
    key[length] = '\0';
}

/* The predictions of each plan with the key set. */
static void record_key(const struct setting *s, const char *path, const char *value) {
    static char name[SETUPS][64];
    char key[600];
    key_of(s, path, key, sizeof key);
    const bool few = s->kind == DL_DATA_SYSTEM && strncmp(path, "host.", 5) != 0;
    for (int i = 0; i < (few ? SETUPS_OF_SYSTEMS : SETUPS); i++) {
        struct dl_err err = {0};
        struct dl_arena arena = {0};
        struct dl_override override = {.key = key, .value = value};
        const struct setup *setup = &setups[i];
        const struct dl_system *system = system_named(setup->place.system);
        const struct dl_framework *framework = framework_named(setup->framework);
        struct dl_data data = *s->data;
        data.overrides = &override, data.override_count = 1;
        const enum dl_code code =
            s->kind == DL_DATA_FRAMEWORK
                ? dl_data_framework(&data, framework->name, &arena, &framework, &err)
                : dl_data_system(&data, system->name, &arena, &system, &err);
        struct dl_plan plan = setup->plan;
        plan.batch_per_device_samples = setup->place.batch_samples;
        plan.optimizer = DL_MOMENTUM;
        snprintf(name[i], sizeof name[i], "%s", setup->framework);
        if (code != DL_OK)
            recorded_text(name[i], override.used ? "refused" : "not used");
        else
            record_outcome(name[i], system,
                           setup->place.workload != NULL ? workload_named(setup->place.workload)
                                                         : all.workloads[all.workload_count - 2],
                           framework, &plan);
        dl_arena_free(&arena);
    }
}

/* A number inside the range that hardly any file has. */
static double number_within(const struct dl_field *f) {
    const double share = 0.6;
    if (f->type == DL_FIELD_INTEGER) return floor(fmin(1 + 4 * share, f->max));
    if (f->max > 0 && f->min > 0) return f->min * pow(fmin(f->max, 1e18) / f->min, share);
    if (f->max > 1) return pow(fmin(f->max, 1e18), share);
    if (f->unit == DL_UNIT_S) return 1e-4 * share;
    return f->max > f->min ? f->min + share * (f->max - f->min) : share;
}

/* Some fields of numbers take whole ones alone. */
static bool is_taken(const struct setting *s, const char *key, const char *value) {
    struct dl_err err = {0};
    struct dl_arena arena = {0};
    struct dl_override override = {.key = key, .value = value};
    struct dl_data data = *s->data;
    const struct dl_system *system;
    const struct dl_framework *framework;
    data.overrides = &override, data.override_count = 1;
    const enum dl_code code =
        s->kind == DL_DATA_FRAMEWORK
            ? dl_data_framework(&data, setups[0].framework, &arena, &framework, &err)
            : dl_data_system(&data, setups[0].place.system, &arena, &system, &err);
    dl_arena_free(&arena);
    return code == DL_OK;
}

static void visit(void *context, const char *path, const struct dl_field *f, int depth) {
    const struct setting *s = context;
    char title[500], value[64];
    (void)depth;
    if (f->type != DL_FIELD_NUMBER && f->type != DL_FIELD_INTEGER && f->type != DL_FIELD_BOOL &&
        f->type != DL_FIELD_CHOICE)
        return;
    if (strncmp(path, "kernel_models", 13) == 0 || strncmp(path, "samples", 7) == 0)
        return; /* in other files, or in none of these systems */
    snprintf(title, sizeof title, "%s%s", s->prefix, path);
    recorded_case(title);
    if (f->type == DL_FIELD_BOOL)
        record_key(s, path, "true"), record_key(s, path, "false");
    else if (f->type == DL_FIELD_CHOICE)
        for (int i = 0; i < 4 && f->choices[i] != NULL; i++) record_key(s, path, f->choices[i]);
    else {
        char key[600];
        key_of(s, path, key, sizeof key);
        const double number = number_within(f);
        snprintf(value, sizeof value, "%.9g", number);
        if (!is_taken(s, key, value)) snprintf(value, sizeof value, "%.9g", floor(1 + number));
        record_key(s, path, value);
    }
    recorded_end_case();
}

static void keys(void **state) {
    (void)state;
    char directory[4096];
    const char *directories[] = {directory};
    snprintf(directory, sizeof directory, "%s/data", check_root());
    const struct dl_data data = {.directories = directories, .directory_count = 1};
    struct setting of_device = {&data, DL_DATA_SYSTEM, "device."},
                   of_system = {&data, DL_DATA_SYSTEM, "system."},
                   of_framework = {&data, DL_DATA_FRAMEWORK, "framework."};
    recorded_open("keys");
    dl_schema_visit(&dl_device_schema, visit, &of_device);
    dl_schema_visit(&dl_system_schema, visit, &of_system);
    dl_schema_visit(&dl_framework_schema, visit, &of_framework);
    recorded_close();
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(keys)};
    return cmocka_run_group_tests(tests, catalog_load, catalog_free);
}
