/* data.c - loads devices, systems, workloads and frameworks, with --set and borrowed kernel
 * times. */
#include "model/catalog/data_internal.h"

#include <string.h>

#include "model/framework/gradient_sync.h"
#include "model/framework/read_keys.h"
#include "model/framework/release.h"
#include "model/network/collective.h"
#include "model/network/libraries/nccl.h"
#include "model/machine/topology.h"
#include "model/machine/what_if.h"
#include "model/engine/strategies/strategy.h"
#include "model/catalog/node_class.h"
#include "model/catalog/store.h"

static const char SUFFIX[] = ".json";

/* ---- devices ---- */

/* kernels/NAME.json next to the folder that holds the device's file. */
static const char *kernels_path(const char *device_path, const char *name, struct dl_arena *arena) {
    const char *slash = strrchr(device_path, '/');
    if (slash == NULL) return dl_arena_printf(arena, "../kernels/%s%s", name, SUFFIX);
    const char *above = slash;
    while (above > device_path && above[-1] != '/') above--;
    size_t folder = (size_t)(slash - above), data_length = (size_t)(above - device_path);
    if (folder == strlen("devices") && strncmp(above, "devices", folder) == 0)
        return dl_arena_printf(arena, "%.*skernels/%s%s", (int)data_length, device_path, name,
                               SUFFIX);
    return dl_arena_printf(arena, "%.*s/../kernels/%s%s", (int)(slash - device_path), device_path,
                           name, SUFFIX);
}

static enum dl_code take_kernel_models(struct dl_kernel_model *models, int count,
                                       const struct dl_json *doc, const char *prefix,
                                       struct dl_arena *arena, struct dl_err *err) {
    for (int i = 0; i < count; i++) {
        const char *where = dl_arena_printf(arena, "%skernel_models[%d]", prefix, i);
        DL_TRY(dl_kernel_model_check(&models[i], doc, where, err));
        DL_TRY(dl_kernel_model_pack(&models[i], arena, err));
    }
    return DL_OK;
}

static enum dl_code load_kernel_models(const struct dl_data *data, struct dl_device *device,
                                       const char *device_path, struct dl_arena *arena,
                                       struct dl_err *err) {
    const char *path = kernels_path(device_path, device->name, arena);
    if (dl_data_attachment(data, device_path) != NULL || !dl_data_exists(path)) return DL_OK;
    struct dl_json *doc = NULL;
    DL_TRY(dl_data_json(data, path, arena, &doc, err));
    struct dl_kernel_model_set *set = dl_arena_alloc(arena, 1, sizeof *set);
    DL_TRY(dl_json_load(doc, &dl_kernel_model_set_schema, arena, set, err));
    if (strcmp(set->device, device->name) != 0)
        return dl_json_fail(doc, "device", err, "expected \"%s\", as the file is named",
                            device->name);
    DL_TRY(take_kernel_models(set->kernel_models, set->kernel_model_count, doc, "", arena, err));
    device->kernel_models = set->kernel_models;
    device->kernel_model_count = set->kernel_model_count;
    return DL_OK;
}

/* The device as its file has it, with its own models; nothing is borrowed and nothing set. */
static enum dl_code load_device(const struct dl_data *data, const char *path, struct dl_json *doc,
                                struct dl_arena *arena, struct dl_device **out,
                                struct dl_err *err) {
    struct dl_device *device = dl_arena_alloc(arena, 1, sizeof *device);
    DL_TRY(dl_json_load(doc, &dl_device_schema, arena, device, err));
    DL_TRY(dl_device_check(device, doc, err));
    DL_TRY(
        take_kernel_models(device->kernel_models, device->kernel_model_count, doc, "", arena, err));
    if (device->kernel_model_count == 0) DL_TRY(load_kernel_models(data, device, path, arena, err));
    *out = device;
    return DL_OK;
}

/* Reads what `device` and its lenders borrow kernel times from; `key`: where doc names it. */
static enum dl_code load_borrowed(const struct dl_data *data, struct dl_device *device,
                                  const struct dl_json *doc, const char *key,
                                  struct dl_arena *arena, struct dl_err *err) {
    struct dl_device *borrowed;
    for (int i = 0; device->kernel_models_from != NULL; i++, device = borrowed) {
        const char *path = NULL;
        struct dl_err unknown = {.message = "devices borrow from each other in a circle"};
        struct dl_json *borrowed_doc = NULL;
        if (i > 3 || dl_data_path(data, DL_DATA_DEVICE, device->kernel_models_from, arena, &path,
                                  &unknown) != DL_OK)
            return dl_json_fail(doc, key, err, "%s", unknown.message);
        DL_TRY(dl_data_json(data, path, arena, &borrowed_doc, err));
        DL_TRY(load_device(data, path, borrowed_doc, arena, &borrowed, err));
        device->borrowed = borrowed;
    }
    return DL_OK;
}

static enum dl_code device_of(const struct dl_data *data, const char *name, struct dl_arena *arena,
                              const void **out, struct dl_err *err) {
    const char *path = NULL;
    DL_TRY(dl_data_path(data, DL_DATA_DEVICE, name, arena, &path, err));
    struct dl_json *doc = NULL;
    DL_TRY(dl_data_json(data, path, arena, &doc, err));
    struct dl_device *measured = NULL, *device = NULL;
    DL_TRY(load_device(data, path, doc, arena, &measured, err));
    DL_TRY(load_borrowed(data, measured, doc, "kernel_models_from", arena, err));
    struct dl_selection selection, named;
    dl_data_select_named(data, DL_DATA_DEVICE, measured->name, NULL, arena, &named);
    dl_data_select(data, DL_DATA_DEVICE, "", false, arena, &selection);
    if (selection.count + named.count == 0) {
        *out = measured;
        return DL_OK;
    }
    DL_TRY(dl_json_set(doc, &dl_device_schema, named.list, named.count, err));
    DL_TRY(dl_json_set(doc, &dl_device_schema, selection.list, selection.count, err));
    dl_data_mark_used(&named);
    dl_data_mark_used(&selection);
    DL_TRY(load_device(data, path, doc, arena, &device, err));
    DL_TRY(load_borrowed(data, device, doc, "kernel_models_from", arena, err));
    dl_device_what_if(measured, device, arena);
    *out = device;
    return DL_OK;
}

enum dl_code dl_data_device(const struct dl_data *data, const char *name, struct dl_arena *arena,
                            const struct dl_device **out, struct dl_err *err) {
    const void *found;
    DL_TRY(dl_store_load(data, DL_DATA_DEVICE, name, device_of, arena, &found, err));
    *out = found;
    return DL_OK;
}

/* ---- systems ---- */

/* The overrides of a system in its document; *any: it took one, or its device may. */
static enum dl_code set_system(const struct dl_data *data, const struct dl_system *measured,
                               struct dl_json *doc, struct dl_arena *arena, bool *any,
                               struct dl_err *err) {
    struct dl_selection named, plain, device;
    const char *prefix = measured->has_profile ? "device_profile." : "";
    dl_data_select_named(data, DL_DATA_SYSTEM, measured->name, NULL, arena, &named);
    dl_data_select(data, DL_DATA_SYSTEM, "", true, arena, &plain);
    dl_data_select(data, DL_DATA_DEVICE, prefix, false, arena, &device);
    DL_TRY(dl_json_set(doc, &dl_system_schema, named.list, named.count, err));
    DL_TRY(dl_json_set(doc, &dl_system_schema, plain.list, plain.count, err));
    if (measured->has_profile)
        DL_TRY(dl_json_set(doc, &dl_system_schema, device.list, device.count, err));
    if (measured->has_profile) dl_data_mark_used(&device);
    const bool by_name = dl_data_mark_used(&named);
    *any = dl_data_mark_used(&plain) || by_name || device.count > 0;
    return DL_OK;
}

/* The device in force and what is derived; `measured`: without what-ifs (F-WHAT-IF); NULL: none. */
static enum dl_code complete_system(const struct dl_data *data, const struct dl_json *doc,
                                    const struct dl_system *measured, struct dl_arena *arena,
                                    struct dl_system *system, struct dl_err *err) {
    struct dl_device *profile = &system->profile;
    if (system->has_profile) {
        DL_TRY(take_kernel_models(profile->kernel_models, profile->kernel_model_count, doc,
                                  "device_profile.", arena, err));
        DL_TRY(load_borrowed(data, profile, doc, "device_profile.kernel_models_from", arena, err));
        if (measured != NULL && measured->has_profile)
            dl_device_what_if(&measured->profile, profile, arena);
        system->device = profile;
    } else {
        const char *path;
        struct dl_err unknown;
        if (dl_data_path(data, DL_DATA_DEVICE, system->device_name, arena, &path, &unknown) !=
            DL_OK)
            return dl_json_fail(doc, "device", err, "%s", unknown.message);
        DL_TRY(dl_data_device(data, system->device_name, arena, &system->device, err));
    }
    if (system->has_intra) dl_topology_fill(&system->intra, system->devices_per_node);
    system->as_measured = measured;
    if (measured != NULL) dl_system_what_if(measured, system, arena);
    dl_nccl_prepare(system);
    dl_coll_measured_fill(system, arena);
    return DL_OK;
}

/* The document of a system as its file has it, or that of usual nodes of a device. */
static enum dl_code system_file(const struct dl_data *data, const char *name,
                                struct dl_arena *arena, struct dl_json **doc, struct dl_err *err) {
    const char *path = NULL, *text = NULL;
    struct dl_node_class of;
    if (!dl_node_class_is(name) || dl_data_attachment(data, name) != NULL) {
        DL_TRY(dl_data_path(data, DL_DATA_SYSTEM, name, arena, &path, err));
        return dl_data_json(data, path, arena, doc, err);
    }
    DL_TRY(dl_node_class_find(data, name, arena, &of, err));
    DL_TRY(dl_node_class_text(data, name, &of, arena, &text, err));
    return dl_json_parse(name, text, strlen(text), arena, doc, err);
}

enum { SYSTEM_EXTENDS = 8 }; /* longest chain */

/* The document with what it takes from the systems that it extends, each of which is checked on its
 * own, so that a fault is reported in its own file. */
static enum dl_code system_json(const struct dl_data *data, const char *name,
                                struct dl_arena *arena, struct dl_json **out, struct dl_err *err) {
    struct dl_json *docs[SYSTEM_EXTENDS + 1];
    int count = 0;
    for (const char *next = name; next != NULL; next = dl_json_string(docs[count++], "extends")) {
        struct dl_err unknown = {.code = DL_OK};
        if (count > SYSTEM_EXTENDS)
            return dl_json_fail(docs[0], "extends", err, "expected a chain of at most %d systems",
                                SYSTEM_EXTENDS);
        const enum dl_code code =
            system_file(data, next, arena, &docs[count], count == 0 ? err : &unknown);
        if (code != DL_OK && unknown.code == DL_ERR_USAGE)
            return dl_json_fail(docs[count - 1], "extends", err, "%s", unknown.message);
        if (code != DL_OK && count > 0) *err = unknown;
        if (code != DL_OK) return code;
        for (int i = 0; i < count; i++)
            if (strcmp(dl_json_name(docs[i]), dl_json_name(docs[count])) == 0)
                return dl_json_fail(docs[count - 1], "extends", err, "'%.60s' extends itself",
                                    next);
    }
    for (int i = count - 2; i >= 0; i--) {
        struct dl_system *base = dl_arena_alloc(arena, 1, sizeof *base);
        DL_TRY(dl_json_load(docs[i + 1], &dl_system_schema, arena, base, err));
        DL_TRY(dl_system_check(base, docs[i + 1], err));
        dl_system_extend(docs[i], docs[i + 1]);
    }
    *out = docs[0];
    return DL_OK;
}

static enum dl_code system_of(const struct dl_data *data, const char *name, struct dl_arena *arena,
                              const void **out, struct dl_err *err) {
    struct dl_json *doc = NULL;
    DL_TRY(system_json(data, name, arena, &doc, err));
    struct dl_system *system = dl_arena_alloc(arena, 1, sizeof *system),
                     *measured = dl_arena_alloc(arena, 1, sizeof *measured);
    DL_TRY(dl_json_load(doc, &dl_system_schema, arena, measured, err));
    if (data->override_count == 0) {
        DL_TRY(dl_system_check(measured, doc, err));
        DL_TRY(dl_node_class_lend(data, arena, measured, err));
        DL_TRY(complete_system(data, doc, NULL, arena, measured, err));
        *out = measured;
        return DL_OK;
    }
    bool any = false;
    DL_TRY(set_system(data, measured, doc, arena, &any, err));
    struct dl_data unset = *data;
    unset.override_count = 0;
    struct dl_err ignored = {.code = DL_OK}; /* what-ifs may complete a file */
    if (!any || dl_system_check(measured, doc, &ignored) != DL_OK ||
        dl_node_class_lend(&unset, arena, measured, &ignored) != DL_OK ||
        complete_system(&unset, doc, NULL, arena, measured, &ignored) != DL_OK)
        measured = NULL;
    DL_TRY(dl_json_load(doc, &dl_system_schema, arena, system, err));
    DL_TRY(dl_system_check(system, doc, err));
    DL_TRY(dl_node_class_lend(data, arena, system, err));
    DL_TRY(complete_system(data, doc, measured, arena, system, err));
    *out = system;
    return DL_OK;
}

enum dl_code dl_data_system(const struct dl_data *data, const char *name, struct dl_arena *arena,
                            const struct dl_system **out, struct dl_err *err) {
    const void *found;
    DL_TRY(dl_store_load(data, DL_DATA_SYSTEM, name, system_of, arena, &found, err));
    *out = found;
    return DL_OK;
}

enum dl_code dl_data_system_alone(const struct dl_data *data, const char *name,
                                  struct dl_arena *arena, const struct dl_system **out,
                                  struct dl_err *err) {
    struct dl_json *doc = NULL;
    struct dl_system *system = dl_arena_alloc(arena, 1, sizeof *system);
    DL_TRY(system_json(data, name, arena, &doc, err));
    DL_TRY(dl_json_load(doc, &dl_system_schema, arena, system, err));
    DL_TRY(dl_system_check(system, doc, err));
    *out = system;
    return DL_OK;
}

/* ---- workloads ---- */

/* "layers=24,hidden=1024" into overrides; room for one a comma. */
static enum dl_code parse_parameters(const char *name, const char *text, struct dl_arena *arena,
                                     struct dl_override **out, int *count_out, struct dl_err *err) {
    size_t room = 1;
    for (const char *at = text; *at != '\0'; at++) room += *at == ',';
    struct dl_override *list = dl_arena_alloc(arena, room, sizeof *list);
    int count = 0;
    for (const char *at = text;; at++) {
        size_t length = strcspn(at, ",");
        const char *equals = memchr(at, '=', length);
        if (equals == NULL || equals == at || equals + 1 == at + length)
            return dl_fail(err, DL_ERR_USAGE, "workload \"%s\": expected NAME:KEY=VALUE,KEY=VALUE",
                           name);
        list[count].key = dl_arena_strndup(arena, at, (size_t)(equals - at));
        list[count].value = dl_arena_strndup(arena, equals + 1, (size_t)(at + length - equals - 1));
        for (int i = 0; i < count; i++)
            if (strcmp(list[i].key, list[count].key) == 0)
                return dl_fail(err, DL_ERR_USAGE, "workload \"%s\": %s is given twice", name,
                               list[i].key);
        count++;
        at += length;
        if (*at == '\0') break;
    }
    *out = list;
    *count_out = count;
    return DL_OK;
}

/* A workload file, or what an importer makes of a file in another form. */
static enum dl_code workload_json(const struct dl_data *data, const char *path,
                                  struct dl_arena *arena, struct dl_json **doc,
                                  struct dl_err *err) {
    const char *text = NULL;
    if (data->import_workload != NULL && !dl_data_is_inside(data, path))
        DL_TRY(data->import_workload(data, path, arena, &text, err));
    if (text == NULL) return dl_data_json(data, path, arena, doc, err);
    return dl_json_parse(path, text, strlen(text), arena, doc, err);
}

/* The document of `name` and those that it extends, nearest first; one more than allowed, so that
 * the builder sees it.
 */
static enum dl_code read_chain(const struct dl_data *data, const char *name, struct dl_arena *arena,
                               const struct dl_json **docs, int *count_out, struct dl_err *err) {
    int count = 0;
    for (const char *next = name; next != NULL && count <= DL_WORKLOAD_EXTENDS;) {
        const char *path;
        struct dl_err unknown;
        enum dl_code code =
            dl_data_path(data, DL_DATA_WORKLOAD, next, arena, &path, count == 0 ? err : &unknown);
        if (code != DL_OK)
            return count == 0
                       ? code
                       : dl_json_fail(docs[count - 1], "extends", err, "%s", unknown.message);
        struct dl_json *doc = NULL;
        DL_TRY(workload_json(data, path, arena, &doc, err));
        docs[count++] = doc;
        DL_TRY(dl_workload_extends(doc, arena, &next, err));
    }
    *count_out = count;
    return DL_OK;
}

static enum dl_code unknown_parameter(const struct dl_workload *workload, const char *name,
                                      const char *base, const char *key, struct dl_err *err) {
    const char *names[256];
    int count = 0;
    for (; count < workload->value_count && count < 255; count++)
        names[count] = workload->values[count].key;
    names[count] = NULL;
    const char *near = dl_suggest(key, names);
    return dl_fail(err, DL_ERR_USAGE, "workload \"%s\": \"%s\" has no parameter \"%s\"%s%s%s", name,
                   base, key, near != NULL ? "; did you mean \"" : "", near != NULL ? near : "",
                   near != NULL ? "\"?" : "");
}

static enum dl_code workload_of(const struct dl_data *data, const char *name,
                                struct dl_arena *arena, const void **out, struct dl_err *err) {
    const char *colon = dl_data_is_path(name) ? NULL : strchr(name, ':');
    const char *base = colon == NULL ? name : dl_arena_strndup(arena, name, (size_t)(colon - name));
    struct dl_override *parameters = NULL;
    int parameter_count = 0;
    if (colon != NULL)
        DL_TRY(parse_parameters(name, colon + 1, arena, &parameters, &parameter_count, err));
    const struct dl_json *docs[DL_WORKLOAD_EXTENDS + 1];
    int doc_count = 0;
    DL_TRY(read_chain(data, base, arena, docs, &doc_count, err));

    struct dl_selection set;
    dl_data_select(data, DL_DATA_WORKLOAD, "", true, arena, &set);
    const int room = parameter_count + set.count + 1;
    struct dl_override *all = dl_arena_alloc(arena, (size_t)room, sizeof *all);
    struct dl_workload *workload = dl_arena_alloc(arena, 1, sizeof *workload);
    for (int i = 0; i < parameter_count; i++) all[i] = parameters[i];
    for (int i = 0; i < set.count; i++) all[parameter_count + i] = set.list[i];
    /* First, so that the user's values override it; a workload without the parameter ignores it. */
    if (data->training) {
        for (int i = room - 1; i > 0; i--) all[i] = all[i - 1];
        all[0] = (struct dl_override){.key = "pretrain_heads", .value = "1"};
    }
    const int given = data->training ? room : room - 1;
    DL_TRY(dl_workload_build(docs, doc_count, all, given, arena, workload, err));
    if (data->training) all++;
    for (int i = 0; i < parameter_count; i++)
        if (!all[i].used) return unknown_parameter(workload, name, base, all[i].key, err);
    for (int i = 0; i < set.count; i++) set.list[i].used = all[parameter_count + i].used;
    dl_data_mark_used(&set);
    *out = workload;
    return DL_OK;
}

enum dl_code dl_data_workload(const struct dl_data *data, const char *name, struct dl_arena *arena,
                              const struct dl_workload **out, struct dl_err *err) {
    const void *found;
    DL_TRY(dl_store_load(data, DL_DATA_WORKLOAD, name, workload_of, arena, &found, err));
    *out = found;
    return DL_OK;
}

/* ---- frameworks ---- */

static enum dl_code read_framework(const struct dl_data *data, const char *name,
                                   struct dl_arena *arena, struct dl_json **doc,
                                   struct dl_framework **out, struct dl_err *err) {
    const char *path = NULL;
    DL_TRY(dl_data_path(data, DL_DATA_FRAMEWORK, name, arena, &path, err));
    DL_TRY(dl_data_json(data, path, arena, doc, err));
    *out = dl_arena_alloc(arena, 1, sizeof **out);
    DL_TRY(dl_framework_load(*doc, arena, *out, err));
    DL_TRY(dl_framework_release_check(*out, *doc, err));
    DL_TRY(dl_framework_keys_check(*out, *doc, arena, err));
    if (data->override_count == 0) return DL_OK;
    DL_TRY(dl_data_set_framework(data, (*out)->name, NULL, *doc, arena, err));
    return dl_framework_load(*doc, arena, *out, err);
}

static enum dl_code check_strategy(const struct dl_framework *framework, const struct dl_json *doc,
                                   struct dl_err *err) {
    if (framework->strategy == NULL || dl_strategy_find(framework->strategy) != NULL) return DL_OK;
    return dl_json_fail(doc, "strategy", err,
                        "no such strategy '%s'; see 'dlmodel list strategies'",
                        framework->strategy);
}

/* The facts of the framework whose kernels another one runs, in the release that the run selects;
 * one step only. */
static enum dl_code share_kernels(const struct dl_data *data, struct dl_framework *framework,
                                  const struct dl_json *doc, struct dl_arena *arena,
                                  struct dl_err *err) {
    struct dl_json *from_doc = NULL;
    struct dl_framework *from = NULL;
    const enum dl_code code =
        read_framework(data, framework->kernels.kernels_from, arena, &from_doc, &from, err);
    if (code == DL_ERR_USAGE)
        return dl_json_fail(doc, "kernels_from", err, "no framework '%s'",
                            framework->kernels.kernels_from);
    DL_TRY(code);
    const char *name = data->kernels_release != NULL ? data->kernels_release : data->release;
    const struct dl_framework_release *release =
        dl_framework_release_for(from, name, data->architecture);
    if (release != NULL) {
        DL_TRY(dl_framework_release_set(from, release, from_doc, arena, err));
        DL_TRY(dl_data_set_framework(data, from->name, release->name, from_doc, arena, err));
        DL_TRY(dl_framework_load(from_doc, arena, from, err));
    }
    dl_framework_share_kernels(framework, from);
    return DL_OK;
}

static enum dl_code framework_of(const struct dl_data *data, const char *name,
                                 struct dl_arena *arena, const void **out, struct dl_err *err) {
    struct dl_json *doc = NULL;
    struct dl_framework *framework = NULL;
    DL_TRY(read_framework(data, name, arena, &doc, &framework, err));
    const struct dl_schema *schema = dl_framework_schema_of(NULL, arena);
    const struct dl_framework_release *release =
        dl_framework_release_for(framework, data->release, data->architecture);
    if (release != NULL) {
        DL_TRY(dl_framework_release_set(framework, release, doc, arena, err));
        DL_TRY(dl_data_set_framework(data, framework->name, release->name, doc, arena, err));
    }
    bool *was_used = dl_arena_alloc(arena, (size_t)data->override_count + 1, sizeof *was_used);
    for (int i = 0; i < data->override_count; i++) was_used[i] = data->overrides[i].used;
    DL_TRY(dl_data_set_document(data, DL_DATA_FRAMEWORK, doc, schema, arena, err));
    if (release != NULL || data->override_count > 0) /* the document may have changed */
        DL_TRY(dl_framework_load(doc, arena, framework, err));
    framework->loaded.as = dl_arena_strdup(arena, name);
    framework->errors.intervals = data->intervals;
    DL_TRY(dl_framework_resolve(framework, doc, err));
    dl_data_ignore_unread(data, framework, was_used);
    DL_TRY(check_strategy(framework, doc, err));
    if (framework->kernels.kernels_from != NULL)
        DL_TRY(share_kernels(data, framework, doc, arena, err));
    DL_TRY(dl_data_optimizer(data, framework, doc, arena, err));
    DL_TRY(dl_data_host_counts(data, framework, doc, arena, err));
    if (!dl_known(framework->host.dispatch_s)) framework->host.dispatch_s = 0;
    *out = framework;
    return DL_OK;
}

enum dl_code dl_data_framework(const struct dl_data *data, const char *name, struct dl_arena *arena,
                               const struct dl_framework **out, struct dl_err *err) {
    const void *found;
    DL_TRY(dl_store_load(data, DL_DATA_FRAMEWORK, name, framework_of, arena, &found, err));
    *out = found;
    return DL_OK;
}
