/* compare_runs_files.c - system, framework in its release, and workload of a run; each file is read
 * once. */
#include <string.h>

#include "model/core/arena.h"
#include "model/framework/framework.h"
#include "model/framework/release.h"
#include "model/framework/settings.h"
#include "predict/compare/compare_runs.h"
#include "predict/compare/compare_runs_files.h"
#include "predict/compare/row_system.h"
#include "predict/compare/run_rates.h"

static const void *cached(const struct dl_run_rows *r, const char *key) {
    for (int i = 0; i < r->cache_count; i++) {
        if (strcmp(r->cache[i].key, key) == 0) return r->cache[i].object;
    }
    return NULL;
}

static void remember(struct dl_run_rows *r, const char *key, const void *object) {
    r->cache[r->cache_count++] = (struct dl_loaded_file){key, object};
}

static enum dl_code load_workload(struct dl_run_rows *r, const char *name, const char *input,
                                  int64_t mtp_layers, const struct dl_workload **out,
                                  struct dl_err *err) {
    const char *further = dl_arena_printf(r->arena, "%lld", (long long)mtp_layers),
               *key = dl_arena_printf(r->arena, "workload %s %s mtp %s", name, input, further);
    *out = cached(r, key);
    if (*out != NULL) return DL_OK;
    struct dl_data data = *r->data;
    const int given = data.override_count;
    data.training = true;
    if (input[0] != 0) dl_data_override(&data, "input", input, r->arena);
    if (mtp_layers > 0) dl_data_override(&data, DL_MTP_KEY, further, r->arena);
    DL_TRY(dl_data_workload(&data, name, r->arena, out, err));
    for (int i = 0; i < given; i++) r->data->overrides[i].used |= data.overrides[i].used;
    if (mtp_layers > 0 && !data.overrides[data.override_count - 1].used)
        return dl_workload_no_mtp(*out, err);
    if (input[0] != 0 && !data.overrides[given].used) {
        return dl_fail(err, DL_ERR_USAGE, "workload %s has no input \"%s\"", name, input);
    }
    remember(r, key, *out);
    return DL_OK;
}

/* The framework that a run used and, where it runs another one's kernels, that one (`from`). */
struct run_release {
    const struct dl_framework *plain, *from; /* their files as they are */
    struct dl_release_choice choice;
};

/* The remark that the run's version is not described and that another one's constants hold. */
static const char *release_remark(const struct dl_run_rows *r, const struct run_release *of,
                                  const char *version) {
    const char *which = of->choice.origin == DL_RELEASE_NEAREST ? "nearest"
                        : of->choice.release != NULL            ? "usual"
                                                                : "default";
    const char *release =
        of->choice.release != NULL ? of->choice.release->name : of->plain->release;
    return version[0] == '\0'
               ? dl_arena_printf(r->arena,
                                 "framework_version is empty: constants of %s's %s release %s",
                                 of->plain->name, which, release)
               : dl_arena_printf(r->arena,
                                 "no release of %s covers framework_version \"%s\": constants of "
                                 "its %s release %s",
                                 of->plain->name, version, which, release);
}

/* A framework's file as it is, without a release. */
static enum dl_code load_plain(struct dl_run_rows *r, const char *name,
                               const struct dl_framework **plain_out, struct dl_err *err) {
    const char *key = dl_arena_printf(r->arena, "framework %s", name);
    const struct dl_framework *plain = cached(r, key);
    if (plain == NULL) {
        struct dl_data data = *r->data;
        data.release = NULL;
        DL_TRY(dl_data_framework(&data, name, r->arena, &plain, err));
        remember(r, key, plain);
    }
    *plain_out = plain;
    return DL_OK;
}

static enum dl_code load_release(struct dl_run_rows *r, int row, struct run_release *out,
                                 struct dl_run_row *run, struct dl_err *err) {
    DL_TRY(load_plain(r, dl_run_cell(r, row, DL_RUN_FRAMEWORK), &out->plain, err));
    const char *from = out->plain->kernels.kernels_from, *given = r->data->release;
    if (from != NULL) DL_TRY(load_plain(r, from, &out->from, err));
    const char *version = given;
    if (given == NULL) DL_TRY(dl_run_checked_version(r, row, run, &version, err));
    const struct dl_release_facts facts = {
        .version = version,
        .workload = dl_run_cell(r, row, DL_RUN_WORKLOAD),
        .layout = dl_run_cell(r, row, DL_RUN_LAYOUT),
        .strategy = dl_run_cell(r, row, DL_RUN_STRATEGY),
        .precision = dl_precision_names[run->plan.precision],
        .compiler =
            run->plan.compiler == DL_COMPILER_OPEN ? "" : dl_compiler_names[run->plan.compiler],
    };
    dl_release_choose(out->plain, out->from, &facts, dl_device_architecture(run->system->device),
                      &out->choice);
    if (out->choice.origin == DL_RELEASE_DESCRIBED || out->choice.origin == DL_RELEASE_ONLY)
        return DL_OK;
    if (given != NULL && !dl_release_is_version(given))
        return dl_release_refuse(given, &out->plain, 1, r->arena, err);
    run->release_remark = release_remark(r, out, facts.version);
    return DL_OK;
}

/* The same framework for runs without a release. */
static void assume_release(struct dl_run_rows *r, struct dl_run_row *run) {
    const char *release = run->framework->release != NULL ? run->framework->release : "",
               *key = dl_arena_printf(r->arena, "framework %s release %s assumed",
                                      run->framework->name, release);
    const struct dl_framework *known = cached(r, key);
    if (known == NULL) {
        struct dl_framework *assumed = dl_arena_alloc(r->arena, 1, sizeof *assumed);
        *assumed = *run->framework;
        assumed->loaded.release_assumed = true;
        known = assumed;
        remember(r, key, known);
    }
    run->framework = known;
}

/* The framework with the constants of the run's release. */
static enum dl_code load_framework(struct dl_run_rows *r, int row, struct dl_run_row *run,
                                   struct dl_err *err) {
    struct run_release of = {0};
    DL_TRY(load_release(r, row, &of, run, err));
    run->framework = of.plain;
    if (of.choice.release == NULL && of.choice.kernels == NULL) return DL_OK;
    const char *name = dl_run_cell(r, row, DL_RUN_FRAMEWORK),
               *release = of.choice.release != NULL ? of.choice.release->name : NULL,
               *kernels = of.choice.kernels != NULL ? of.choice.kernels->name : NULL;
    const char *key =
        dl_arena_printf(r->arena, "framework %s release %s kernels %s", name,
                        release != NULL ? release : "", kernels != NULL ? kernels : "");
    run->framework = cached(r, key);
    if (run->framework != NULL) return DL_OK;
    struct dl_data data = *r->data;
    data.release = release;
    data.kernels_release = kernels;
    DL_TRY(dl_data_framework(&data, name, r->arena, &run->framework, err));
    remember(r, key, run->framework);
    return DL_OK;
}

/* "real" and "synthetic" are origins of the samples, not sizes. */
static bool names_data(const char *input) {
    return strcmp(input, "real") == 0 || strcmp(input, "synthetic") == 0;
}

static enum dl_code load_system(struct dl_run_rows *r, int row, struct dl_run_row *run,
                                struct dl_err *err) {
    const char *name = dl_run_cell(r, row, DL_RUN_SYSTEM);
    struct dl_row_machine said = {.nccl_version = dl_run_cell(r, row, DL_RUN_NCCL_VERSION)};
    double rings;
    DL_TRY(dl_run_number(r, row, DL_RUN_POWER_LIMIT, &said.power_limit_w, err));
    DL_TRY(dl_run_number(r, row, DL_RUN_NCCL_RINGS, &rings, err));
    said.nccl_rings = dl_known(rings) ? (int64_t)rings : 0;
    const char *key = dl_arena_printf(r->arena, "system %s limit %g nccl %s rings %g", name,
                                      said.power_limit_w, said.nccl_version, rings);
    run->system = cached(r, key);
    if (run->system != NULL) return DL_OK;
    DL_TRY(dl_row_system(r->data, name, &said, r->arena, &run->system, &run->why, err));
    if (run->system != NULL) remember(r, key, run->system);
    return DL_OK;
}

enum dl_code dl_run_load_files(struct dl_run_rows *r, int row, struct dl_run_row *run,
                               struct dl_err *err) {
    const char *input = dl_run_cell(r, row, DL_RUN_INPUT);
    DL_TRY(load_system(r, row, run, err));
    if (run->why != NULL) return DL_OK;
    DL_TRY(load_framework(r, row, run, err));
    const char *workload =
        dl_framework_workload(run->framework, dl_run_cell(r, row, DL_RUN_WORKLOAD));
    run->release = run->framework;
    if (run->release_remark != NULL) assume_release(r, run);
    DL_TRY(dl_settings_apply(&run->plan, r->arena, &run->system, &run->framework, err));
    DL_TRY(load_workload(r, workload, names_data(input) ? "" : input, run->plan.tokens.mtp_layers,
                         &run->workload, err));
    return dl_plan_network(&run->plan, r->arena, &run->workload, err);
}
