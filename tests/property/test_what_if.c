/* What-ifs act (F-WHAT-IF): every member that `schema system` and `schema device` document, set to
 * a better and a worse value on machines with samples, with a measured rate of NCCL, with a link
 * graph, with CPUs and on one with everything, moves some prediction, and the right way; or it
 * stands below with the reason why nothing follows from it. A new member is covered without a
 * further line.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "model/cli/data.h"
#include "model/collective/collective.h"
#include "model/hardware/what_if.h"
#include "model/parallel/strategy.h"
#include "model/predict/memory.h"
#include "model/predict/predict.h"
#include "model/search/checkpoint.h"
#include "model/search/limits.h"
#include "tests/check.h"

enum { FIELDS = 400, METRICS = 128, PATH = 192 };

/* Which way is better where the unit does not say (rates: more; times: less): +1, -1, or 0 where
 * that depends on the rest. */
static const struct {
    const char *part;
    int better;
} directions[] = {
    {"node_mtbf_s", 1},
    {"jitter_frac", -1},
    {"sockets", 0},
    {"devices_per_copy_link", -1},
    {"oversubscription", -1},
    {"together_ratio", -1},
    {"collective_slowdown_frac", -1},
    {"load_scale", -1},
    {"load_scale_8bit", -1},
    {"flash2_scale", -1},
    {"factor", -1},
    {"direct_conv_scale", -1},
    {"norm_scale", -1},
    {"context_bytes", -1},
    {"workspace_bytes", 0},
    {"nodes_share_host", -1},
    {"edges.0.from", 0},
    {"edges.0.to", 0},
    {"channels", 0},
    {"ranks", 0},
    {"collectives.0.nodes", 0},
    {"samples.0.bytes", 0},
    {"max_bytes", 0},
    {"nodes", 0},
    {"devices_per_node", 0},
};

/* Members that no prediction is asked for here, and who tests them. */
static const struct {
    const char *path, *why;
} elsewhere[] = {
    {"kernel_models", "numbers of a fit, not of the machine: test_kernel, test_kernel_model_tiles"},
    {"device_profile", "a device of its own: the walk over the device's schema"},
    {"samples.0.low_s", "an interval of a measured time: test_collective, spread"},
    {"samples.0.high_s", "an interval of a measured time: test_collective, spread"},
    {"library_version", "names what was measured; the rank set decides"},
    {"buffers", "names what was measured; the rank set decides"},
    {"edges.0.kind", "names the kind of a link; its rate is the link object's"},
    {"sockets", "names the host; peer_group says which devices share one"},
};

static const char *const system_names[] = {
    "dgx-a100-80", "azure-nc24rs-p100", "iris-v100", "stampede2-skx",
    "dgx-h100",    "lumi-mi250x",       "made",      NULL};
struct machine {
    const char *path;
    const struct dl_system *system;
    double metrics[METRICS];
};
static struct machine machines[8];
static int machine_count;

static struct dl_arena kept;
static const struct dl_workload *resnet, *bert, *gpt;
enum { FRAMEWORKS = 10 };
static const char *const framework_names[FRAMEWORKS] = {
    "horovod-tensorflow", "pytorch-ddp",           "tensorflow-ps", "tensorflow-mirrored",
    "mxnet-dist-sync",    "keras-multi-gpu",       "caffe-mlsl",    "megatron-core",
    "pytorch-fsdp2",      "tensorflow-multiworker"};
static const struct dl_framework *frameworks[FRAMEWORKS];
static char data_directory[4096], scratch[128];
static const char *directories[] = {scratch, data_directory};
static const struct dl_data plain = {.directories = directories, .directory_count = 2};

/* ---- what is predicted ---- */

struct sums {
    double *out;
    int count;
};

static void put(struct sums *s, double cost) {
    assert_true(s->count < METRICS);
    s->out[s->count++] = cost > 0 ? log(cost) : NAN;
}

static void put_plan(struct sums *s, const struct dl_system *system, const struct dl_workload *w,
                     const struct dl_framework *f, struct dl_plan plan) {
    struct dl_arena arena = {0};
    struct dl_err err = {0};
    struct dl_prediction p = {0};
    const bool done = dl_plan_complete(system, w, f, &plan, &err) == DL_OK &&
                      dl_predict(system, w, f, &plan, NULL, &arena, &p, &err) == DL_OK;
    put(s, done ? p.iteration_s : NAN);
    dl_arena_free(&arena);
}

static void put_collective(struct sums *s, const struct dl_system *system, enum dl_library library,
                           int64_t nodes, double bytes, bool device) {
    struct dl_err err = {0};
    struct dl_collective_time t = {0};
    const struct dl_collective_request request = {.op = DL_COLL_ALL_REDUCE,
                                                  .library = library,
                                                  .nodes = nodes,
                                                  .ranks_per_node = system->devices_per_node,
                                                  .flows_per_adapter = 1,
                                                  .device_buffers = device,
                                                  .bytes = bytes};
    put(s, dl_collective_time(system, &request, &t, &err) == DL_OK ? t.time_s : NAN);
}

static void put_memory(struct sums *s, const struct dl_system *system, bool sharded) {
    struct dl_arena arena = {0};
    struct dl_err err = {0};
    struct dl_prediction p = {0};
    struct dl_checkpoint c = {0};
    struct dl_plan plan = {
        .nodes = sharded ? 40 : 2, .batch_per_device_samples = 2, .synthetic_input = true};
    const struct dl_framework *f = frameworks[sharded ? 8 : 1];
    const bool done = dl_plan_complete(system, resnet, f, &plan, &err) == DL_OK &&
                      dl_predict(system, resnet, f, &plan, NULL, &arena, &p, &err) == DL_OK;
    bool over = false; /* more nodes than there are */
    for (int i = 0; done && i < p.warning_count; i++)
        over = over || strstr(p.warnings[i], " are extrapolated") != NULL;
    put(s, over ? 2 : 1);
    put(s, done ? p.memory.total_bytes / p.memory.capacity_bytes : NAN);
    put(s, done && dl_checkpoint_plan(system, resnet, &plan, &p, 600, &c, &err) == DL_OK
               ? c.stretch_ratio
               : NAN);
    dl_arena_free(&arena);
}

static void predict_all(const struct dl_system *system, double *out) {
    static const int64_t nodes[] = {1, 2, 40};
    struct sums s = {out, 0};
    for (int i = 0; i < METRICS; i++) out[i] = NAN;
    for (int f = 0; f < FRAMEWORKS; f++)
        for (int n = 0; n < 3; n++) {
            const struct dl_plan plan = {.nodes = nodes[n],
                                         .batch_per_device_samples = 8,
                                         .precision = DL_FP32,
                                         .synthetic_input = true};
            put_plan(&s, system, resnet, frameworks[f], plan);
        }
    struct dl_plan plan = {.nodes = 2, .batch_per_device_samples = 4, .synthetic_input = true};
    plan.precision = DL_MIXED;
    put_plan(&s, system, bert, frameworks[1], plan);
    plan.precision = DL_BF16, plan.attention = DL_ATTENTION_FLASH;
    put_plan(&s, system, gpt, frameworks[7], plan);
    put_plan(&s, system, gpt, frameworks[8], plan);
    plan.precision = DL_FP8;
    put_plan(&s, system, gpt, frameworks[7], plan);
    plan = (struct dl_plan){.nodes = 16,
                            .batch_per_device_samples = 64,
                            .precision = DL_MIXED,
                            .sample_bytes = 1e6,
                            .dataset_samples = 1e5,
                            .decode_s_per_sample = 1e-4};
    for (int first = 0; first < 2; first++) {
        plan.first_epoch = first == 1;
        put_plan(&s, system, resnet, frameworks[1], plan);
        plan.decode_s_per_sample = 0.05;
        put_plan(&s, system, resnet, frameworks[0], plan);
    }
    for (int n = 0; n < 3; n++)
        for (double bytes = 1024; bytes < 2e10; bytes *= 64) {
            put_collective(&s, system, DL_LIB_NCCL, nodes[n], bytes, true);
            put_collective(&s, system, DL_LIB_MPI, nodes[n], bytes, false);
        }
    put_memory(&s, system, false);
    put_memory(&s, system, true);
}

/* ---- the walk ---- */

static bool idle; /* over the members with a reason alone; else those without */

struct finding {
    char path[PATH];
    struct dl_field field;
    bool acts, right, wrong, refused;
    char how[256];
};
static struct finding findings[FIELDS];
static int finding_count;

/* The path with 0 for the number of each element: one of each member, whichever list has it. */
static void general(const char *path, char out[PATH]) {
    size_t length = 0;
    for (bool number = false; *path != 0 && length + 1 < PATH; path++) {
        const bool digit = *path >= '0' && *path <= '9';
        if (digit && number) continue;
        number = digit && length > 0 && out[length - 1] == '.';
        out[length++] = number ? '0' : *path;
    }
    out[length] = 0;
}

static struct finding *finding_of(const char *full) {
    char path[PATH];
    general(full, path);
    for (int i = 0; i < finding_count; i++)
        if (strcmp(findings[i].path, path) == 0) return &findings[i];
    assert_true(finding_count < FIELDS);
    struct finding *made = &findings[finding_count++];
    snprintf(made->path, sizeof made->path, "%s", path);
    return made;
}

static bool ends_with(const char *path, const char *part) {
    const size_t length = strlen(path), tail = strlen(part);
    return length >= tail && strcmp(path + length - tail, part) == 0 &&
           (length == tail || path[length - tail - 1] == '.');
}

static int better_of(const char *path, const struct dl_field *field) {
    for (size_t i = 0; i < sizeof directions / sizeof directions[0]; i++)
        if (ends_with(finding_of(path)->path, directions[i].part)) return directions[i].better;
    return field->unit == DL_UNIT_S || field->unit == DL_UNIT_S_PER_BYTE      ? -1
           : field->type == DL_FIELD_STRING || field->type == DL_FIELD_CHOICE ? 0
                                                                              : 1;
}

static const char *elsewhere_of(const char *path) {
    char any[PATH];
    general(path, any);
    for (size_t i = 0; i < sizeof elsewhere / sizeof elsewhere[0]; i++) {
        const char *at = strstr(any, elsewhere[i].path);
        const char after = at != NULL ? at[strlen(elsewhere[i].path)] : 'x';
        if (at != NULL && (at == any || at[-1] == '.') && (after == 0 || after == '.'))
            return elsewhere[i].why;
    }
    return NULL;
}

/* One value; `sense`: +1 larger than before, -1 smaller, 0 merely another. */
static void try_value(const char *path, const char *key, const struct dl_field *field,
                      const char *value, int sense) {
    struct finding *finding = finding_of(path);
    finding->field = *field;
    /* cores of a socket that its host does not have take turns */
    const bool cores =
        ends_with(path, "unit_count") && machines[0].system->device->kind == DL_DEVICE_CPU;
    const int better = cores ? 0 : sense * better_of(path, field);
    for (int m = 0; m < machine_count; m++) {
        struct dl_arena arena = {0};
        struct dl_err err = {0};
        struct dl_override set = {.key = key, .value = value};
        struct dl_data data = plain;
        const struct dl_system *system;
        double changed[METRICS];
        data.overrides = &set, data.override_count = 1;
        if (dl_data_system(&data, machines[m].path, &arena, &system, &err) != DL_OK) {
            finding->refused = true;
            assert_true(strlen(err.message) > 10);
            dl_arena_free(&arena);
            continue;
        }
        assert_true(set.used);
        predict_all(system, changed);
        for (int i = 0; i < METRICS; i++) {
            const double by = changed[i] - machines[m].metrics[i];
            if (isnan(changed[i]) != isnan(machines[m].metrics[i]))
                finding->acts = finding->right = true; /* became possible, or impossible */
            if (!(fabs(by) > 1e-9)) continue;
            finding->acts = true;
            if (better == 0 || by * better < 0) finding->right = true;
            if (better != 0 && by * better > 0.001 && !finding->wrong) {
                finding->wrong = true;
                snprintf(finding->how, sizeof finding->how, "%s=%s on %s: metric %d by %+.2g %%",
                         key, value, machines[m].path, i, 100 * expm1(by));
            }
        }
        dl_arena_free(&arena);
    }
}

static void try_number(const char *path, const char *key, const struct dl_field *field,
                       double now) {
    double values[2] = {now / 2, now * 2};
    char text[64];
    if (!dl_known(now) || !(now > 0)) {
        const bool small = field->unit == DL_UNIT_S || field->unit == DL_UNIT_S_PER_BYTE;
        values[0] = small ? 1e-7 : field->unit == DL_UNIT_NONE ? 0.1 : 1e8;
        values[1] = small ? 1e-2 : field->unit == DL_UNIT_NONE ? 3 : 1e12;
        if (field->type == DL_FIELD_INTEGER) values[0] = 1, values[1] = 4;
    }
    for (int i = 0; i < 2; i++) {
        double value = field->type == DL_FIELD_INTEGER ? floor(values[i]) : values[i];
        if (field->min < field->max) value = fmin(field->max, fmax(field->min, value));
        if (!(value < now) && !(value > now) && dl_known(now)) continue;
        snprintf(text, sizeof text, "%.12g", value);
        try_value(path, key, field, text, dl_known(now) ? (value > now ? 1 : -1) : 0);
    }
}

static void try_words(const char *path, const char *key, const struct dl_field *field) {
    static const char *const words[] = {
        "ethernet", "loopback",  "infiniband",   "pcie3",   "nvswitch", "shm",  "PIX",
        "SYS",      "dragonfly", "fat-tree",     "2.4.8",   "2.18.3",   "ring", "tree",
        "LL",       "Simple",    "intel",        "mpich-3", "mpi",      "nccl", "broadcast",
        "volta",    "ampere",    "v100_sxm2_16", NULL};
    for (int i = 0; words[i] != NULL && !finding_of(path)->acts; i++)
        try_value(path, key, field, words[i], 0);
}

static void walk(const struct dl_schema *schema, const char *object, const char *path,
                 const char *prefix);

/* A member of the machine that is walked over; `at` NULL: the file does not have it. */
static void visit(const struct dl_field *field, const char *object, const char *path,
                  const char *prefix) {
    const char *at = object != NULL ? object + field->offset : NULL;
    char key[2 * PATH + 16];
    snprintf(key, sizeof key, "%s%s", prefix, path);
    switch (field->type) {
    case DL_FIELD_OBJECT: walk(field->child, at, path, prefix); break;
    case DL_FIELD_LIST: {
        const int count =
            at != NULL ? *(const int *)(const void *)(object + field->count_offset) : 0;
        for (int i = 0; i<count; i += count> 1 ? count - 1 : 1) { /* the first and the last */
            char element[2 * PATH + 16];
            snprintf(element, sizeof element, "%s.%d", path, i);
            walk(field->child,
                 *(const char *const *)(const void *)at + (size_t)i * field->child->size, element,
                 prefix);
        }
        break;
    }
    case DL_FIELD_NUMBER:
        try_number(path, key, field, at != NULL ? *(const double *)(const void *)at : NAN);
        break;
    case DL_FIELD_INTEGER: {
        const int64_t now = at != NULL ? *(const int64_t *)(const void *)at : DL_ABSENT;
        try_number(path, key, field, now == DL_ABSENT ? NAN : (double)now);
        break;
    }
    case DL_FIELD_BOOL:
        try_value(path, key, field, "true", 0);
        try_value(path, key, field, "false", 0);
        break;
    case DL_FIELD_CHOICE:
        for (int i = 0; field->choices[i] != NULL; i++)
            try_value(path, key, field, field->choices[i], 0);
        break;
    default: try_words(path, key, field);
    }
}

static void walk(const struct dl_schema *schema, const char *object, const char *path,
                 const char *prefix) {
    for (const struct dl_field *f = schema->fields; f->type != DL_FIELD_END; f++) {
        char below[2 * PATH];
        snprintf(below, sizeof below, "%s%s%s", path, *path != 0 ? "." : "", f->key);
        const bool inner = f->type == DL_FIELD_OBJECT || f->type == DL_FIELD_LIST;
        const bool reason = dl_what_if_reason(below) != NULL;
        if (elsewhere_of(below) != NULL || (reason && (!idle || inner))) continue;
        if (inner || reason == idle) visit(f, object, below, prefix);
    }
}

static int check_findings(void) {
    int wrong = 0;
    for (int i = 0; i < finding_count; i++) {
        const struct finding *f = &findings[i];
        if (f->acts && f->right && !f->wrong) continue;
        if (!f->acts && f->refused && better_of(f->path, &f->field) == 0) continue; /* a message */
        if (!f->acts)
            print_message("%s: no effect anywhere%s\n", f->path, f->refused ? ", or refused" : "");
        else
            print_message("%s: wrong way%s %s\n", f->path, f->right ? "" : " alone", f->how);
        wrong++;
    }
    print_message("%d members, %d without the right effect\n", finding_count, wrong);
    return wrong;
}

/* Around each machine in turn, because members and their values differ. */
static void every_member_of(const struct dl_schema *schema, bool device) {
    static struct machine all[8];
    const int count = machine_count;
    memcpy(all, machines, sizeof all);
    finding_count = 0;
    memset(findings, 0, sizeof findings);
    for (int m = 0; m < count; m++) {
        machines[0] = all[m];
        machine_count = 1;
        const void *object = all[m].system;
        if (device) object = all[m].system->device;
        walk(schema, object, "", device ? "device." : "system.");
    }
    memcpy(machines, all, sizeof all);
    machine_count = count;
    if (!idle) assert_int_equal(check_findings(), 0);
}

static void every_member_of_a_system(void **state) {
    (void)state;
    idle = false;
    every_member_of(&dl_system_schema, false);
}

static void every_member_of_a_device(void **state) {
    (void)state;
    idle = false;
    every_member_of(&dl_device_schema, true);
}

/* A reason that the program gives for a member without effect holds. */
static void reasons_hold(void **state) {
    (void)state;
    for (int device = 0; device < 2; device++) {
        idle = true;
        every_member_of(device ? &dl_device_schema : &dl_system_schema, device == 1);
        for (int i = 0; i < finding_count; i++)
            if (findings[i].acts) fail_msg("%s acts, against its reason", findings[i].path);
        assert_true(finding_count > 4);
    }
}

/* Elasticities have the sign of their resource, and those of a link agree with what `--set` does
 * to the prediction. */
static void elasticities_agree(void **state) {
    (void)state;
    for (int m = 0; m < machine_count; m++) {
        struct dl_arena arena = {0};
        struct dl_err err = {0};
        static struct dl_limits limits;
        struct dl_plan plan = {.nodes = 2, .batch_per_device_samples = 8, .synthetic_input = true};
        const struct dl_system *system = machines[m].system;
        const struct dl_framework *f = frameworks[system->device->kind == DL_DEVICE_CPU ? 0 : 1];
        if (dl_plan_complete(system, resnet, f, &plan, &err) != DL_OK ||
            dl_limits_of(system, resnet, f, &plan, &arena, &limits, &err) != DL_OK)
            fail_msg("%s: %s", system->name, err.message);
        for (int i = 0; i < limits.elasticity_count; i++) {
            const struct dl_elasticity *e = &limits.elasticity[i];
            const bool latency = strstr(e->resource, "latency") != NULL;
            if (latency ? e->value < -1e-3 : e->value > 1e-3)
                fail_msg("%s: elasticity of %s is %g", system->name, e->resource, e->value);
        }
        dl_arena_free(&arena);
    }
}

/* ---- a machine that has every member ---- */

static const char MADE_DEVICE[] =
    "{\"format\":\"dlmodel-device\",\"version\":1,\"name\":\"made\",\"summary\":\"s\","
    "\"kind\":\"gpu\",\"vendor\":\"nvidia\",\"architecture\":\"volta\",\"memory_bytes\":16e9,"
    "\"memory_bandwidth_bytes_per_s\":9e11,\"memory_efficiency\":0.8,\"l2_bytes\":6e6,"
    "\"unit_count\":80,\"clock_hz\":1.5e9,\"tdp_w\":300,\"kernel_latency_s\":5e-6,"
    "\"kernel_gap_s\":1e-6,\"collective_slowdown_frac\":0.2,\"load_scale\":1.1,"
    "\"load_scale_8bit\":1.1,\"flash2_scale\":1.2,\"launch_s\":5e-6,\"context_bytes\":5e8,"
    "\"workspace_bytes\":1e9,\"kernel_models_from\":\"v100_sxm2_16\",\"direct_conv_scale\":1.2,"
    "\"norm_scale\":1.3,\"works\":[{\"work\":\"batchnorm\",\"pass\":\"fwd\",\"precision\":\"fp32\","
    "\"factor\":1.2}],\"rates\":[{\"precision\":\"fp32\",\"unit\":\"vector\","
    "\"peak_flop_per_s\":1.5e13,\"sustained_flop_per_s\":1.3e13},{\"precision\":\"fp16\","
    "\"unit\":\"matrix\",\"peak_flop_per_s\":1.2e14}]}";
static const char MADE_SYSTEM[] =
    "{\"format\":\"dlmodel-system\",\"version\":1,\"name\":\"made\",\"summary\":\"s\","
    "\"device\":\"made\",\"nodes\":64,\"devices_per_node\":4,\"jitter_frac\":0.05,"
    "\"node_mtbf_s\":1e6,\"restart_s\":300,\"nccl_version\":\"2.18.3\",\"mpi\":\"openmpi-4.1\","
    "\"host\":{\"sockets\":2,\"cores\":32,\"memory_bytes\":1e11,"
    "\"memory_bandwidth_bytes_per_s\":1e11,\"copy_bandwidth_bytes_per_s\":1e10,"
    "\"pageable_bandwidth_bytes_per_s\":5e9,\"devices_per_copy_link\":2},"
    "\"links\":{\"intra\":{\"kind\":\"pcie3\",\"bandwidth_bytes_per_s\":1e10,\"latency_s\":4e-6,"
    "\"peer_group\":2,\"cross_bandwidth_bytes_per_s\":6e9,\"peer_to_peer\":true},"
    "\"inter\":{\"kind\":\"ethernet\",\"bandwidth_bytes_per_s\":3e9,\"latency_s\":1e-5,"
    "\"adapters_per_node\":2,\"rdma\":false,\"nccl_bandwidth_bytes_per_s\":2e9,"
    "\"gpudirect\":false,\"distance\":\"SYS\",\"per_message_cpu_s\":2e-6,\"pieces\":["
    "{\"max_bytes\":65536,\"alpha_s\":2e-5,\"beta_s_per_byte\":6e-10},"
    "{\"max_bytes\":1e12,\"alpha_s\":4e-5,\"beta_s_per_byte\":4e-10}]}},"
    "\"fabric\":{\"topology\":\"fat-tree\",\"oversubscription\":2,\"nodes_per_leaf\":16,"
    "\"hop_latency_s\":5e-7},"
    "\"storage\":{\"kind\":\"nvme\",\"read_bytes_per_s\":3e8,\"write_bytes_per_s\":2e8,"
    "\"total_read_bytes_per_s\":4e9,\"total_write_bytes_per_s\":3e9,\"open_s\":1e-4},"
    "\"collectives\":[{\"library\":\"nccl\",\"operation\":\"all_reduce\",\"nodes\":1,\"ranks\":4,"
    "\"samples\":[{\"bytes\":1024,\"time_s\":3e-5},{\"bytes\":268435456,\"time_s\":0.05}],"
    "\"pieces\":[{\"max_bytes\":1e10,\"alpha_s\":3e-5,\"beta_s_per_byte\":2e-10},"
    "{\"max_bytes\":1e12,\"alpha_s\":3e-5,\"beta_s_per_byte\":3e-10}]}]}";

static bool write_text(const char *name, const char *text) {
    char path[256];
    snprintf(path, sizeof path, "%s/%s", scratch, name);
    FILE *file = fopen(path, "w");
    return file != NULL && fputs(text, file) >= 0 && fclose(file) == 0;
}

static int load(void **state) {
    (void)state;
    struct dl_err err = {0};
    char folder[256];
    snprintf(data_directory, sizeof data_directory, "%s/data", check_root());
    if (!check_directory(scratch, sizeof scratch)) return -1;
    snprintf(folder, sizeof folder, "%s/systems", scratch);
    if (mkdir(folder, 0700) != 0) return -1;
    snprintf(folder, sizeof folder, "%s/devices", scratch);
    if (mkdir(folder, 0700) != 0) return -1;
    if (!write_text("devices/made.json", MADE_DEVICE) ||
        !write_text("systems/made.json", MADE_SYSTEM))
        return -1;
    if (dl_data_workload(&plain, "resnet50", &kept, &resnet, &err) != DL_OK ||
        dl_data_workload(&plain, "bert_base", &kept, &bert, &err) != DL_OK ||
        dl_data_workload(&plain, "gpt:layers=4,hidden=1024,heads=16,seq=1024,vocab=1024", &kept,
                         &gpt, &err) != DL_OK)
        return -1;
    for (int f = 0; f < FRAMEWORKS; f++)
        if (dl_data_framework(&plain, framework_names[f], &kept, &frameworks[f], &err) != DL_OK)
            return -1;
    for (int i = 0; system_names[i] != NULL; i++) {
        struct machine *m = &machines[machine_count++];
        m->path = system_names[i];
        if (dl_data_system(&plain, m->path, &kept, &m->system, &err) != DL_OK) {
            print_message("%s: %s: %s\n", m->path, err.key, err.message);
            return -1;
        }
        predict_all(m->system, m->metrics);
    }
    return 0;
}

static int unload(void **state) {
    (void)state;
    char path[256];
    snprintf(path, sizeof path, "%s/systems/made.json", scratch), unlink(path);
    snprintf(path, sizeof path, "%s/devices/made.json", scratch), unlink(path);
    snprintf(path, sizeof path, "%s/systems", scratch), rmdir(path);
    snprintf(path, sizeof path, "%s/devices", scratch), rmdir(path);
    rmdir(scratch);
    dl_arena_free(&kept);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_member_of_a_system), cmocka_unit_test(every_member_of_a_device),
        cmocka_unit_test(reasons_hold), cmocka_unit_test(elasticities_agree)};
    return cmocka_run_group_tests(tests, load, unload);
}
