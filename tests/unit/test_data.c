/* Finding and loading data files: search path, names, --set, borrowed kernel times, chains of
 * workloads. */
#include "model/catalog/data_internal.h"
#include "model/core/file.h"
#include "tests/check.h"

struct world {
    char first[64], second[64]; /* two data directories */
    const char *directories[2];
    struct dl_data data;
    struct dl_arena arena;
    struct dl_err err;
};

static void put(const char *directory, const char *path, const char *text) {
    char full[256];
    snprintf(full, sizeof full, "%s/%s", directory, path);
    assert_int_equal(dl_file_write(full, text, strlen(text), NULL), DL_OK);
}

static const char *device_text(char *out, size_t size, const char *name, const char *more) {
    snprintf(out, size,
             "{\"format\":\"dlmodel-device\",\"version\":1,\"name\":\"%s\",\"summary\":\"s\","
             "\"source\":\"mem\","
             "\"kind\":\"gpu\",\"memory_bytes\":16e9,\"memory_bandwidth_bytes_per_s\":9e11,"
             "\"rates\":[{\"precision\":\"fp32\",\"unit\":\"vector\",\"peak_flop_per_s\":1e13}]%s}",
             name, more);
    return out;
}

static const char *system_text(char *out, size_t size, const char *name, const char *device) {
    snprintf(
        out, size,
        "{\"format\":\"dlmodel-system\",\"version\":1,\"name\":\"%s\",\"summary\":\"s\",\"source\":"
        "\"mem\","
        "\"nodes\":4,\"devices_per_node\":2,%s,\"host\":{\"memory_bytes\":1e11},"
        "\"links\":{\"intra\":{\"kind\":\"nvlink2\",\"bandwidth_bytes_per_s\":1e11,"
        "\"edges\":[{\"from\":0,\"to\":1,\"links\":3}]},"
        "\"inter\":{\"kind\":\"infiniband\",\"bandwidth_bytes_per_s\":1.2e10,\"latency_s\":1e-6}}}",
        name, device);
    return out;
}

/* With the names of release 0.1; data/kernels has today's. */
static const char SURFACES[] =
    "{\"format\":\"dlmodel-surfaces\",\"version\":1,\"device\":\"alpha\",\"source\":\"mem\","
    "\"surfaces\":[{\"op\":\"gemm\","
    "\"pass\":\"fwd\",\"precision\":\"fp32\",\"latency_s\":1e-5,\"rate_flop_per_s\":9e12,"
    "\"bandwidth_bytes_per_s\":7e11,"
    "\"sigma_log\":0.1,\"samples\":3,\"source\":\"mem\"}]}";

static int setup(void **state) {
    struct world *world = calloc(1, sizeof *world);
    char text[2048];
    if (world == NULL || !check_directory(world->first, sizeof world->first) ||
        !check_directory(world->second, sizeof world->second))
        return -1;
    static const char *const folders[] = {"devices", "systems", "workloads", "frameworks",
                                          "kernels"};
    for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++) {
        char path[128];
        snprintf(path, sizeof path, "%s/%s", world->second, folders[i]);
        if (dl_file_mkdirs(path, NULL) != DL_OK) return -1;
        snprintf(path, sizeof path, "%s/%s", world->first, folders[i]);
        /* the first directory lacks the other kinds */
        if (i < 2 && dl_file_mkdirs(path, NULL) != DL_OK) return -1;
    }
    put(world->second, "devices/alpha.json", device_text(text, sizeof text, "alpha", ""));
    put(world->second, "devices/beta.json",
        device_text(text, sizeof text, "beta", ",\"kernel_models_from\":\"alpha\""));
    put(world->second, "devices/lost.json",
        device_text(text, sizeof text, "lost", ",\"kernel_models_from\":\"alfa\""));
    put(world->first, "devices/alpine.json", device_text(text, sizeof text, "alpine", ""));
    put(world->second, "kernels/alpha.json", SURFACES);
    put(world->second, "systems/one.json",
        system_text(text, sizeof text, "one", "\"device\":\"alpha\""));
    put(world->second, "systems/two.json",
        system_text(text, sizeof text, "two", "\"device\":\"gamma\""));
    put(world->second, "systems/.hidden.json", "{}");
    put(world->second, "systems/notes.txt", "not a system");
    world->directories[0] = world->first;
    world->directories[1] = world->second;
    world->data = (struct dl_data){.directories = world->directories, .directory_count = 2};
    *state = world;
    return 0;
}

static int teardown(void **state) {
    struct world *world = *state;
    char command[256];
    snprintf(command, sizeof command, "rm -rf '%s' '%s'", world->first, world->second);
    int rc = system(command);
    dl_arena_free(&world->arena);
    free(world);
    return rc;
}

static void unknown_names(void **state) {
    struct world *world = *state;
    const char *path;
    assert_int_equal(
        dl_data_path(&world->data, DL_DATA_DEVICE, "alpa", &world->arena, &path, &world->err),
        DL_ERR_USAGE);
    check_contains(world->err.message, "did you mean \"alpha\"");
    assert_int_equal(
        dl_data_path(&world->data, DL_DATA_DEVICE, "", &world->arena, &path, &world->err),
        DL_ERR_USAGE);
    assert_int_equal(dl_data_path(&world->data, DL_DATA_DEVICE, "qqqqqqqqqqqq", &world->arena,
                                  &path, &world->err),
                     DL_ERR_USAGE);
    check_contains(world->err.message, "dlmodel list devices");
    assert_int_equal(
        dl_data_path(&world->data, DL_DATA_FRAMEWORK, "x", &world->arena, &path, &world->err),
        DL_ERR_USAGE);
    check_contains(world->err.message, "--data");
    /* A name inside a file is the file's fault. */
    const struct dl_system *system;
    assert_int_equal(dl_data_system(&world->data, "two", &world->arena, &system, &world->err),
                     DL_ERR_INPUT);
    assert_string_equal(world->err.key, "device");
    check_contains(world->err.file, "systems/two.json");
    const struct dl_device *device;
    assert_int_equal(dl_data_device(&world->data, "lost", &world->arena, &device, &world->err),
                     DL_ERR_INPUT);
    assert_string_equal(world->err.key, "kernel_models_from");
}

static void local_profile(void **state) {
    struct world *world = *state;
    char text[2048], path[128];
    const struct dl_system *system;
    assert_int_equal(dl_data_system(&world->data, "local", &world->arena, &system, &world->err),
                     DL_ERR_USAGE);
    check_contains(world->err.message, "dlmodel calibrate");
    put(world->first, "mine.json",
        system_text(
            text, sizeof text, "local",
            "\"device_profile\":{\"name\":\"p\",\"summary\":\"s\",\"kind\":\"gpu\","
            "\"memory_bytes\":8e9,\"memory_bandwidth_bytes_per_s\":5e11,\"kernel_models_from\":"
            "\"alpha\","
            "\"rates\":[{\"precision\":\"fp32\",\"unit\":\"vector\",\"peak_flop_per_s\":2e13}]}"));
    snprintf(path, sizeof path, "%s/mine.json", world->first);
    world->data.local_profile = path;
    const char **names;
    dl_data_names(&world->data, DL_DATA_SYSTEM, &world->arena, &names);
    assert_string_equal(names[0], "local");
    struct dl_override set[] = {{.key = "device.memory_bandwidth", .value = "1TB/s"}};
    world->data.overrides = set;
    world->data.override_count = 1;
    assert_int_equal(dl_data_system(&world->data, "local", &world->arena, &system, &world->err),
                     DL_OK);
    assert_true(set[0].used);
    assert_ptr_equal(system->device, &system->profile);
    check_close(system->device->memory_bandwidth_bytes_per_s, 1e12, 0);
    assert_string_equal(system->device->borrowed->name, "alpha");
    assert_int_equal(system->device->borrowed->kernel_model_count, 1);
    /* a what-if bandwidth scales the profile's own models too */
    put(world->first, "mine.json",
        system_text(
            text, sizeof text, "local",
            "\"device_profile\":{\"name\":\"p\",\"summary\":\"s\",\"kind\":\"gpu\","
            "\"memory_bytes\":8e9,\"memory_bandwidth_bytes_per_s\":5e11,\"kernel_models\":["
            "{\"op\":\"gemm\",\"pass\":\"fwd\",\"precision\":\"fp32\",\"latency_s\":1e-5,"
            "\"rate_flop_per_s\":9e12,\"bandwidth_bytes_per_s\":4e11,\"sigma_log\":0.1,"
            "\"samples\":3,\"source\":\"mem\"}],"
            "\"rates\":[{\"precision\":\"fp32\",\"unit\":\"vector\",\"peak_flop_per_s\":2e13}]}"));
    assert_int_equal(dl_data_system(&world->data, "local", &world->arena, &system, &world->err),
                     DL_OK);
    check_close(system->device->kernel_models[0].bandwidth_bytes_per_s, 8e11, 1e-12);
    check_close(system->device->kernel_models[0].rate_flop_per_s, 9e12, 1e-12);
}

static void overrides_reach_their_document(void **state) {
    struct world *world = *state;
    struct dl_override set[] = {
        {.key = "links.inter.bandwidth", .value = "25GB/s"},
        {.key = "nodes", .value = "64"},
        {.key = "device.memory", .value = "32GiB"},
        {.key = "host.memory", .value = "1TiB"},
        {.key = "system.devices_per_node", .value = "2"},
        {.key = "framework.cycle", .value = "1ms"},
        {.key = "seq", .value = "128"},
    };
    world->data.overrides = set;
    world->data.override_count = 7;
    const struct dl_system *system;
    assert_int_equal(dl_data_system(&world->data, "one", &world->arena, &system, &world->err),
                     DL_OK);
    check_close(system->inter.bandwidth_bytes_per_s, 25e9, 0);
    assert_int_equal(system->nodes, 64);
    check_close(system->host.memory_bytes, 1099511627776.0, 0);
    check_close(system->device->memory_bytes, 34359738368.0, 0);
    for (int i = 0; i < 5; i++) assert_true(set[i].used);
    assert_false(set[5].used);                           /* of a framework */
    assert_false(set[6].used);                           /* of a workload */
    assert_int_equal(system->intra.ring_channels[2], 3); /* derived members are filled */
    struct dl_override wrong[] = {{.key = "device.memory", .value = "32GB/s"}};
    world->data.overrides = wrong;
    world->data.override_count = 1;
    assert_int_equal(dl_data_system(&world->data, "one", &world->arena, &system, &world->err),
                     DL_ERR_USAGE);
}

/* Keys that name objects change these alone. */
static void overrides_of_named_objects(void **state) {
    struct world *world = *state;
    const struct dl_device *alpha, *beta, *alpine;
    struct dl_override set[] = {{.key = "device.alpha.memory", .value = "32GB"},
                                {.key = "device.gamma,bet*.memory", .value = "64GB"},
                                {.key = "device.alph.memory", .value = "1GB"}};
    world->data.overrides = set;
    world->data.override_count = 3;
    assert_int_equal(dl_data_device(&world->data, "alpha", &world->arena, &alpha, &world->err),
                     DL_OK);
    assert_int_equal(dl_data_device(&world->data, "beta", &world->arena, &beta, &world->err),
                     DL_OK);
    assert_int_equal(dl_data_device(&world->data, "alpine", &world->arena, &alpine, &world->err),
                     DL_OK);
    check_close(alpha->memory_bytes, 32e9, 0);
    check_close(beta->memory_bytes, 64e9, 0);
    check_close(alpine->memory_bytes, 16e9, 0);
    assert_true(set[0].used && set[1].used && !set[2].used);
}

static void kernel_times_follow_the_device(void **state) {
    struct world *world = *state;
    const struct dl_device *device;
    assert_int_equal(dl_data_device(&world->data, "alpha", &world->arena, &device, &world->err),
                     DL_OK);
    assert_int_equal(device->kernel_model_count, 1);
    check_close(device->kernel_models[0].rate_flop_per_s, 9e12, 0);
    assert_null(device->borrowed);
    assert_int_equal(dl_data_device(&world->data, "beta", &world->arena, &device, &world->err),
                     DL_OK);
    assert_int_equal(device->kernel_model_count, 0);
    assert_string_equal(device->borrowed->name, "alpha");
    assert_int_equal(device->borrowed->kernel_model_count, 1);
    /* A what-if capacity keeps the measured times; a what-if bandwidth scales its part of them. */
    struct dl_override set[] = {{.key = "device.memory", .value = "80GB"}};
    world->data.overrides = set;
    world->data.override_count = 1;
    assert_int_equal(dl_data_device(&world->data, "alpha", &world->arena, &device, &world->err),
                     DL_OK);
    assert_int_equal(device->kernel_model_count, 1);
    const double measured = device->kernel_models[0].bandwidth_bytes_per_s;
    set[0].key = "device.memory_bandwidth";
    set[0].value = "2TB/s";
    assert_int_equal(dl_data_device(&world->data, "alpha", &world->arena, &device, &world->err),
                     DL_OK);
    assert_int_equal(device->kernel_model_count, 1);
    check_close(device->memory_bandwidth_bytes_per_s, 2e12, 0);
    check_close(device->kernel_models[0].bandwidth_bytes_per_s, measured * 2e12 / 9e11, 1e-12);
    check_close(device->kernel_models[0].rate_flop_per_s, 9e12, 1e-12);
}

static void kernel_times_of_another_device(void **state) {
    struct world *world = *state;
    const struct dl_device *device;
    put(world->second, "kernels/beta.json", SURFACES); /* says "alpha" */
    assert_int_equal(dl_data_device(&world->data, "beta", &world->arena, &device, &world->err),
                     DL_ERR_INPUT);
    assert_string_equal(world->err.key, "device");
    check_contains(world->err.file, "kernels/beta.json");
    assert_string_equal(world->err.message, "expected \"beta\", as the file is named");
}

static void workload_names_with_parameters(void **state) {
    struct world *world = *state;
    char root[512];
    snprintf(root, sizeof root, "%s/data", check_root());
    const char *directories[] = {root};
    struct dl_data data = {.directories = directories, .directory_count = 1};
    const struct dl_workload *workload;
    assert_int_equal(dl_data_workload(&data, "gpt:layers=2,hidden=128,heads=2,seq=64,vocab=1000",
                                      &world->arena, &workload, &world->err),
                     DL_OK);
    check_close(workload->transformer_layers, 2, 0);
    check_close(workload->hidden, 128, 0);
    check_close(workload->vocabulary, 1000, 0);
    static const struct {
        const char *name, *part;
    } cases[] = {
        {"gpt:layers=2,colour=3", "colour"},
        {"gpt:layers", "KEY=VALUE"},
        {"gpt:", "KEY=VALUE"},
        {"gpt:=3", "KEY=VALUE"},
        {"gpt:layers=", "KEY=VALUE"},
        {"gpt:layers=2,", "KEY=VALUE"},
        {"gpt:layers=2,layers=3", "twice"},
        {"gptt:layers=2", "did you mean \"gpt"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(
            dl_data_workload(&data, cases[i].name, &world->arena, &workload, &world->err),
            DL_ERR_USAGE);
        check_contains(world->err.message, cases[i].part);
    }
    struct dl_override set[] = {{.key = "workload.seq", .value = "32"},
                                {.key = "nodes", .value = "3"}};
    data.overrides = set;
    data.override_count = 2;
    assert_int_equal(dl_data_workload(&data, "gpt:layers=2,hidden=128,seq=64", &world->arena,
                                      &workload, &world->err),
                     DL_OK);
    check_close(workload->sequence, 32, 0); /* --set after the name */
    assert_true(set[0].used);
    assert_false(set[1].used);
}

static void workload_chains(void **state) {
    struct world *world = *state;
    const struct dl_workload *workload;
    put(world->second, "workloads/a.json",
        "{\"format\":\"dlmodel-workload\",\"version\":1,\"name\":\"a\",\"summary\":\"s\","
        "\"source\":\"mem\","
        "\"extends\":\"b\"}");
    assert_int_equal(dl_data_workload(&world->data, "a", &world->arena, &workload, &world->err),
                     DL_ERR_INPUT);
    assert_string_equal(world->err.key, "extends");
    put(world->second, "workloads/b.json",
        "{\"format\":\"dlmodel-workload\",\"version\":1,\"name\":\"b\",\"summary\":\"s\","
        "\"source\":\"mem\","
        "\"extends\":\"a\"}");
    assert_int_equal(dl_data_workload(&world->data, "a", &world->arena, &workload, &world->err),
                     DL_ERR_INPUT);
}

int main(void) {
#define TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(unknown_names),
        TEST(local_profile),
        TEST(overrides_reach_their_document),
        TEST(overrides_of_named_objects),
        TEST(kernel_times_follow_the_device),
        TEST(kernel_times_of_another_device),
        TEST(workload_names_with_parameters),
        TEST(workload_chains),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
