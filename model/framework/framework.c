/* framework.c - the table of behaviours, releases, and checks across the members of a framework.
 * Its fields are in framework_fields.c. */
#include "model/framework/framework.h"

#include <string.h>

#include "model/network/collective.h"
#include "model/framework/capabilities.h"
#include "model/framework/gradient_sync.h"
#include "model/framework/release.h"
#include "model/framework/settings.h"

const char *const dl_framework_status_names[] = {"maintained", "retired",      "in-house",
                                                 "lossy",      "asynchronous", NULL};

extern const struct dl_framework_behaviour dl_fw_bucketed, dl_fw_tensor_fusion, dl_fw_concatenated,
    dl_fw_parameter_server, dl_fw_kvstore_device, dl_fw_kvstore_server, dl_fw_central_weights,
    dl_fw_per_layer, dl_fw_ideal, dl_fw_replicated, dl_fw_quantized, dl_fw_top_k, dl_fw_local_steps,
    dl_fw_sufficient_factors, dl_fw_chainermn;

const struct dl_framework_behaviour *const dl_framework_behaviours[] = {
    &dl_fw_bucketed,        &dl_fw_tensor_fusion,
    &dl_fw_concatenated,    &dl_fw_parameter_server,
    &dl_fw_kvstore_device,  &dl_fw_kvstore_server,
    &dl_fw_central_weights, &dl_fw_per_layer,
    &dl_fw_ideal,           &dl_fw_replicated,
    &dl_fw_quantized,       &dl_fw_top_k,
    &dl_fw_local_steps,     &dl_fw_sufficient_factors,
    &dl_fw_chainermn,       NULL,
};

const struct dl_framework_behaviour *dl_framework_behaviour_find(const char *name) {
    for (int i = 0; dl_framework_behaviours[i] != NULL; i++) {
        const struct dl_framework_behaviour *row = dl_framework_behaviours[i];
        if (strcmp(row->name, name) == 0) return row;
        if (row->old_name != NULL && strcmp(row->old_name, name) == 0) return row;
    }
    return NULL;
}

bool dl_framework_takes_8_bits(const struct dl_framework *framework) {
    return framework->transformer.casts >= 0 || dl_framework_is_bound(framework);
}

bool dl_framework_is_bound(const struct dl_framework *framework) {
    return framework->behaviour->is_bound;
}

const struct dl_framework *dl_framework_bound(const struct dl_framework *const *list, int count) {
    for (int i = 0; i < count; i++) {
        if (dl_framework_is_bound(list[i])) return list[i];
    }
    return NULL;
}

const struct dl_framework *dl_framework_default(const struct dl_framework *const *list, int count,
                                                enum dl_framework_default what) {
    for (int i = 0; i < count; i++) {
        if (list[i]->default_for == (int)what) return list[i];
    }
    return NULL;
}

const struct dl_framework_release *dl_framework_release_find(const struct dl_framework *framework,
                                                             const char *name) {
    for (int i = 0; i < framework->release_count; i++) {
        if (strcmp(framework->releases[i].name, name) == 0) return &framework->releases[i];
    }
    return NULL;
}

/* The release that the map names for the architecture or what that begins with; NULL: none. */
static const struct dl_framework_release *release_on(const struct dl_framework *framework,
                                                     const struct dl_map_entry *map, int count,
                                                     const char *architecture) {
    for (int i = 0; i < count && architecture != NULL; i++) {
        if (strncmp(architecture, map[i].key, strlen(map[i].key)) == 0)
            return dl_framework_release_find(framework, map[i].text);
    }
    return NULL;
}

const struct dl_framework_release *dl_framework_release_for(const struct dl_framework *framework,
                                                            const char *name,
                                                            const char *architecture) {
    if (name != NULL) return dl_framework_release_find(framework, name);
    return release_on(framework, framework->device_releases.entries,
                      framework->device_releases.count, architecture);
}

const char *dl_framework_usual_version(const struct dl_framework *framework,
                                       const char *architecture) {
    const struct dl_framework_release *release = release_on(
        framework, framework->run_releases.entries, framework->run_releases.count, architecture);
    if (release == NULL) release = dl_framework_release_for(framework, NULL, architecture);
    return release != NULL && release->version_count > 0 ? release->versions[0] : NULL;
}

/* NULL: it inherits from the file's own members. dl_framework_release_check refuses circles and
 * unknown names. */
static const struct dl_framework_release *parent_of(const struct dl_framework *framework,
                                                    const struct dl_framework_release *release) {
    return dl_framework_release_find(framework, release->from);
}

enum dl_code dl_framework_release_set(const struct dl_framework *framework,
                                      const struct dl_framework_release *release,
                                      struct dl_json *doc, struct dl_arena *arena,
                                      struct dl_err *err) {
    const struct dl_framework_release *parent = parent_of(framework, release);
    if (parent != NULL) DL_TRY(dl_framework_release_set(framework, parent, doc, arena, err));
    struct dl_override *list = dl_arena_alloc(arena, (size_t)release->set_count + 2, sizeof *list);
    for (int i = 0; i < release->set_count; i++)
        list[i] = (struct dl_override){.key = release->set[i].key, .value = release->set[i].text};
    list[release->set_count] = (struct dl_override){.key = "release", .value = release->name};
    return dl_json_set(doc, dl_framework_schema_of(NULL, arena), list, release->set_count + 1, err);
}

const char *dl_framework_workload(const struct dl_framework *framework, const char *name) {
    const struct dl_framework_release *release =
        dl_framework_release_find(framework, framework->release);
    for (; release != NULL; release = parent_of(framework, release)) {
        for (int i = 0; i < release->workload_count; i++) {
            if (strcmp(release->workloads[i].key, name) == 0) return release->workloads[i].text;
        }
    }
    for (int i = 0; i < framework->workload_count; i++) {
        if (strcmp(framework->workloads[i].key, name) == 0) return framework->workloads[i].text;
    }
    return framework->shared != NULL ? dl_framework_workload(framework->shared, name) : name;
}

void dl_framework_share_kernels(struct dl_framework *framework, const struct dl_framework *from) {
    struct dl_framework_kernels *own = &framework->kernels;
    const struct dl_framework_kernels *theirs = &from->kernels;
    int *const choices[] = {&own->layernorm,     &own->gelu,
                            &own->dropout,       &own->softmax,
                            &own->batchnorm,     &own->pooling,
                            &own->bias,          &own->loss,
                            &own->sums,          &own->fusion,
                            &own->mixed_fusion,  &own->layout,
                            &own->mixed_layout,  &own->mixed_policy,
                            &own->weight_copies, &own->aligned_gemm,
                            &own->weight_decay,  &own->mixed_batchnorm,
                            &own->compiler,      &own->compiled_fusion,
                            &own->attention};
    double *const numbers[] = {&own->head_copies, &own->score_kernels, &own->norm_small_kernels};
    for (size_t i = 0; i < sizeof choices / sizeof choices[0]; i++) {
        const size_t at = (size_t)((char *)choices[i] - (char *)own);
        if (*choices[i] < 0) *choices[i] = *(const int *)(const void *)((const char *)theirs + at);
    }
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        const size_t at = (size_t)((char *)numbers[i] - (char *)own);
        if (!dl_known(*numbers[i]))
            *numbers[i] = *(const double *)(const void *)((const char *)theirs + at);
    }
    framework->shared = from;
    if (own->optimizer_kernels == NULL) own->optimizer_kernels = theirs->optimizer_kernels;
    if (framework->host.host_counts == NULL) framework->host.host_counts = from->host.host_counts;
    if (!dl_known(framework->host.dispatch_s)) framework->host.dispatch_s = from->host.dispatch_s;
    if (framework->memory.allocator < 0) framework->memory.allocator = from->memory.allocator;
}

static const struct dl_field *field_of(const char *key) {
    const struct dl_field *field = dl_framework_schema.fields;
    while (field->key != NULL && strcmp(field->key, key) != 0) field++;
    return field->key != NULL ? field : NULL;
}

/* A number used by a behaviour must not be NAN: its loops would not end. */
static enum dl_code check_required(const struct dl_framework *framework, const struct dl_json *doc,
                                   struct dl_err *err) {
    const char *const *key = framework->behaviour->required;
    for (; key != NULL && *key != NULL; key++) {
        const struct dl_field *field = field_of(*key);
        if (field == NULL)
            return dl_json_fail(doc, *key, err,
                                "behaviour %s requires a member that no framework "
                                "has",
                                framework->behaviour->name);
        const double *value = (const void *)((const char *)framework + field->offset);
        if (dl_known(*value)) continue;
        char expected[160];
        dl_field_expected(field, expected, sizeof expected);
        return dl_json_fail(doc, *key, err, "expected %s (%s): behaviour %s requires it", expected,
                            field->help, framework->behaviour->name);
    }
    return DL_OK;
}

static enum dl_code check_launch(const struct dl_framework *framework, const struct dl_json *doc,
                                 struct dl_err *err) {
    for (int i = 0; framework->has_launch && i < framework->launch.environment_count; i++) {
        const char *entry = framework->launch.environment[i];
        const size_t name = strspn(entry, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_"
                                          "0123456789");
        if (name == 0 || entry[name] != '=' || (entry[0] >= '0' && entry[0] <= '9'))
            return dl_json_fail(doc, "launch.environment", err,
                                "expected NAME=VALUE, got \"%.60s\"", entry);
    }
    return DL_OK;
}

enum dl_code dl_framework_resolve(struct dl_framework *framework, const struct dl_json *doc,
                                  struct dl_err *err) {
    const struct dl_framework_behaviour *behaviour = framework->behaviour;
    DL_TRY(check_required(framework, doc, err));
    DL_TRY(dl_framework_capabilities_check(framework, doc, err));
    DL_TRY(dl_settings_check(framework, doc, err));
    if (behaviour->check != NULL) DL_TRY(behaviour->check(framework, doc, err));
    return check_launch(framework, doc, err);
}
