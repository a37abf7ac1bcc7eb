/* What-ifs act (F-WHAT-IF): every member that `schema system` and `schema device` document, set to
 * a better and a worse value on machines with samples, with a measured rate of NCCL, with a link
 * graph, with CPUs and on one with everything, moves some prediction, and the right way; or it
 * stands below with the reason why nothing follows from it. A new member is covered without a
 * further line.
 */
#include <sys/stat.h>

#include "model/catalog/data.h"
#include "model/machine/what_if.h"
#include "model/search/limits.h"
#include "tests/check.h"
#include "tests/what_if_battery.h"

enum { MAX_WORDS = 64, FIELDS = 400, PATH = 192 };

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
    {"attention_scale", -1},
    {"flash2_scale", -1},
    {"grouped_scale", -1},
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
    {"price_per_node_hour", "money, not time: test_energy, cli/advice"},
    {"host_w", "power, not time: test_energy"},
    {"pue", "power, not time: test_energy"},
    {"idle_w", "power, and time under a limit: test_energy, test_power_cap"},
    {"load_w", "power, and time under a limit: test_energy, test_power_cap"},
    {"nccl_rings", "TCP where a connection is limited: test_nccl, connections_of_rings"},
    {"sockets_per_ring", "TCP where a connection is limited: test_nccl, connections_of_rings"},
    {"power_limit_w", "it acts below the rated power alone: test_power_cap"},
    {"triton_attention_scale", "attention of llm-foundry's releases, which the battery has not"},
    {"unequal_conv_scale", "1x7 convolutions, which the battery has not: test_kernel_scale"},
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
static char data_directory[4096], scratch[128];
static const char *directories[] = {scratch, data_directory};
static const struct dl_data plain = {.directories = directories, .directory_count = 2};

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
    const int most = idle ? 2 : MAX_WORDS;
    for (int i = 0; i < most && words[i] != NULL && !finding_of(path)->acts; i++)
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
    idle = false;
    every_member_of(&dl_system_schema, false);
}

static void every_member_of_a_device(void **state) {
    idle = false;
    every_member_of(&dl_device_schema, true);
}

/* A reason that the program gives for a member without effect holds. */
static void reasons_hold(void **state) {
    for (int device = 0; device < 2; device++) {
        idle = true;
        every_member_of(device ? &dl_device_schema : &dl_system_schema, device == 1);
        for (int i = 0; i < finding_count; i++)
            if (findings[i].acts) fail_msg("%s acts, against its reason", findings[i].path);
        assert_true(finding_count > 4);
    }
}

/* Iteration time of the plan with KEY=VALUE; NAN: it cannot be asked for. */
static double with_set(const char *machine, const char *key, double value,
                       const struct dl_framework *f, const struct dl_plan *plan) {
    struct dl_arena arena = {0};
    struct dl_prediction p = {.iteration_s = NAN};
    const struct dl_system *system;
    struct dl_data data = plain;
    char text[64];
    struct dl_override set = {.key = key, .value = text};
    snprintf(text, sizeof text, "%.17g", value);
    data.overrides = &set, data.override_count = 1;
    if (dl_data_system(&data, machine, &arena, &system, NULL) != DL_OK ||
        dl_predict(&(struct dl_predict_request){system, resnet, f, plan, NULL, &arena}, &p, NULL) !=
            DL_OK)
        p.iteration_s = NAN;
    dl_arena_free(&arena);
    return p.iteration_s;
}

/* What the elasticity is by `--set` of the one number. */
static double elasticity_by_set(const struct machine *m, const char *resource,
                                const struct dl_framework *f, const struct dl_plan *plan) {
    const struct dl_system *s = m->system;
    const struct {
        const char *resource, *key;
        double now;
    } numbers[] = {
        {"links.inter.bandwidth", "links.inter.bandwidth", s->inter.bandwidth_bytes_per_s},
        {"memory bandwidth", "device.memory_bandwidth", s->device->memory_bandwidth_bytes_per_s},
        {"host.copy_bandwidth", "host.copy_bandwidth", s->host.copy_bandwidth_bytes_per_s},
    };
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        if (strcmp(numbers[i].resource, resource) == 0)
            return log(with_set(m->path, numbers[i].key, numbers[i].now * 1.01, f, plan) /
                       with_set(m->path, numbers[i].key, numbers[i].now / 1.01, f, plan)) /
                   (2 * log(1.01));
    return NAN;
}

/* Elasticities have the sign of their resource, and are what `--set` of its number gives. */
static void elasticities_agree(void **state) {
    int compared = 0;
    for (int m = 0; m < machine_count; m++) {
        struct dl_arena arena = {0};
        struct dl_err err = {0};
        static struct dl_limits limits;
        struct dl_plan plan = {.nodes = 2, .batch_per_device_samples = 8, .input.synthetic = true};
        const struct dl_system *system = machines[m].system;
        const struct dl_framework *f = frameworks[system->device->kind == DL_DEVICE_CPU ? 0 : 1];
        if (dl_plan_complete(system, resnet, f, &plan, &err) != DL_OK ||
            dl_limits_of(&(struct dl_predict_request){.system = system,
                                                      .workload = resnet,
                                                      .framework = f,
                                                      .plan = &plan,
                                                      .arena = &arena},
                         &limits, &err) != DL_OK)
            fail_msg("%s: %s", system->name, err.message);
        for (int i = 0; i < limits.elasticity_count; i++) {
            const struct dl_elasticity *e = &limits.elasticity[i];
            const bool latency = strstr(e->resource, "latency") != NULL;
            if (latency ? e->value < -1e-3 : e->value > 1e-3)
                fail_msg("%s: elasticity of %s is %g", system->name, e->resource, e->value);
            const double by_set = elasticity_by_set(&machines[m], e->resource, f, &plan);
            if (!dl_known(by_set)) continue;
            compared++;
            if (fabs(by_set - e->value) > 1e-6)
                fail_msg("%s: elasticity of %s is %g, by --set %g", system->name, e->resource,
                         e->value, by_set);
        }
        dl_arena_free(&arena);
    }
    assert_true(compared >= 2 * machine_count);
}

/* ---- a machine that has every member ---- */

static bool write_text(const char *name, const char *text) {
    char path[256];
    snprintf(path, sizeof path, "%s/%s", scratch, name);
    FILE *file = fopen(path, "w");
    return file != NULL && fputs(text, file) >= 0 && fclose(file) == 0;
}

static int load(void **state) {
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
                         &gpt, &err) != DL_OK ||
        dl_data_workload(&plain,
                         "gpt:layers=4,hidden=1024,heads=16,seq=1024,vocab=1024,"
                         "experts=8,topk=2",
                         &kept, &experts, &err) != DL_OK)
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
