/* cal_submit.c - see the header. The job runs this program with the same options in the folder of
 * submission. Without a site, partition and account come from SBATCH_PARTITION and SBATCH_ACCOUNT,
 * which sbatch reads itself (manual page sbatch(1)). */
#include "calibrate/run/cal_submit.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "calibrate/run/cal_child.h"
#include "model/core/file.h"
#include "model/core/text.h"

static const double SBATCH_SILENCE_S = 60;
/* Time limit of the job: four times the usual 5 minutes of a full calibration, five times the
 * minute of a quick one. */
static const double FULL_S = 1200, QUICK_S = 300, NODES_FACTOR = 2, BUDGET_FACTOR = 2;

static bool printable(const char *text) {
    for (; *text != 0; text++) {
        if ((unsigned char)*text < ' ' || *text == 127) return false;
    }
    return true;
}

/* Text that sbatch reads as one word. */
static bool is_word(const char *text) {
    return text[0] != 0 && text[0] != '-' && strpbrk(text, " '\"\\#$`;") == NULL && printable(text);
}

/* Options that the job itself does not take; its output is added. */
static bool is_of_submission(const char *name) {
    static const char *const names[] = {"submit",    "dry-run", "site",
                                        "partition", "account", "output"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(name, names[i]) == 0) return true;
    }
    return false;
}

/* The site's file, of which strings of the top level are read; NULL: no site. */
static enum dl_code read_site(const struct dl_context *context, const struct dl_options *options,
                              struct dl_json **out, struct dl_err *err) {
    struct dl_arena *arena = context->arena;
    const char *given = dl_option_text(options, "site"),
               *name = given != NULL ? given : context->site;
    if (name == NULL) return DL_OK;
    if (dl_data_is_path(name)) return dl_json_read(name, arena, out, err);
    for (int i = 0; i < context->script_root_count; i++) {
        const char *path =
            dl_arena_printf(arena, "%s/slurm/sites/%s.json", context->script_roots[i], name);
        if (access(path, R_OK) == 0) return dl_json_read(path, arena, out, err);
    }
    return dl_fail(err, DL_ERR_USAGE,
                   "--site: unknown site '%.60s'; expected a file, or a site of 'dlmodel slurm'",
                   name);
}

/* "#SBATCH" lines for the partition and the other needs of the site. Names that sbatch would read
 * as more than a name are refused. */
static enum dl_code site_text(const struct dl_context *context, const struct dl_options *options,
                              const struct dl_json *site, const char **out, struct dl_err *err) {
    static const char *const keys[] = {"partition", "account", "qos", "constraint", "reservation"};
    *out = "";
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        const char *value = i < 2 ? dl_option_text(options, keys[i]) : NULL;
        if (value == NULL && site != NULL) value = dl_json_string(site, keys[i]);
        if (value == NULL) continue;
        if (!is_word(value))
            return dl_fail(err, DL_ERR_USAGE, "--%s: expected a name, got '%.60s'", keys[i], value);
        *out = dl_arena_printf(context->arena, "%s#SBATCH --%s=%s\n", *out, keys[i], value);
    }
    return DL_OK;
}

/* The GPUs of a node, as the site names them. */
static enum dl_code gpus_text(const struct dl_context *context, const struct dl_json *site,
                              int64_t gpus, const char **out, struct dl_err *err) {
    const char *gres = site != NULL ? dl_json_string(site, "gres") : NULL;
    *out = "";
    if (gpus <= 0) return DL_OK;
    if (gres != NULL && !is_word(gres))
        return dl_fail(err, DL_ERR_USAGE, "gres of the site: expected a name, got '%.60s'", gres);
    *out = gres != NULL
               ? dl_arena_printf(context->arena, "#SBATCH --gres=%s:%lld\n", gres, (long long)gpus)
               : dl_arena_printf(context->arena, "#SBATCH --gpus-per-node=%lld\n", (long long)gpus);
    return DL_OK;
}

/* The command of the job: all options except those that submit it. */
static enum dl_code command_text(const struct dl_context *context, const struct dl_options *options,
                                 const char *profile, const char **out, struct dl_err *err) {
    struct dl_arena *arena = context->arena;
    const char *text = dl_arena_printf(
        arena, "%s calibrate",
        dl_shell_quote(arena, context->program[0] != 0 ? context->program : "dlmodel"));
    for (int i = 0; i < options->given_count; i++) {
        const struct dl_option *o = options->given[i].option;
        const char *value = options->given[i].value;
        if (is_of_submission(o->name)) continue;
        if (value != NULL && !printable(value))
            return dl_fail(err, DL_ERR_USAGE, "--%s: expected text without control characters",
                           o->name);
        text = value == NULL ? dl_arena_printf(arena, "%s --%s", text, o->name)
                             : dl_arena_printf(arena, "%s --%s %s", text, o->name,
                                               dl_shell_quote(arena, value));
    }
    *out = dl_arena_printf(arena, "%s -o %s", text, dl_shell_quote(arena, profile));
    return DL_OK;
}

static enum dl_code script_text(const struct dl_context *context, const struct dl_options *options,
                                const struct dl_cal_choice *choice, const char *profile,
                                const char **out, struct dl_err *err) {
    struct dl_arena *arena = context->arena;
    const char *command = NULL;
    DL_TRY(command_text(context, options, profile, &command, err));
    double limit_s = (choice->quick ? QUICK_S : FULL_S) * (choice->nodes > 1 ? NODES_FACTOR : 1);
    if (dl_known(choice->budget_s))
        limit_s = fmax(limit_s, BUDGET_FACTOR * choice->budget_s + QUICK_S);
    struct dl_json *site = NULL;
    const char *needs, *devices;
    DL_TRY(read_site(context, options, &site, err));
    DL_TRY(site_text(context, options, site, &needs, err));
    DL_TRY(gpus_text(context, site, choice->gpus, &devices, err));
    *out = dl_arena_printf(arena,
                           "#!/bin/sh\n#SBATCH --job-name=dlmodel-calibrate\n#SBATCH "
                           "--nodes=%lld\n#SBATCH --ntasks-per-node=1\n"
                           "#SBATCH --exclusive\n%s%s#SBATCH --time=%.0f\n#SBATCH "
                           "--output=dlmodel-calibrate-%%j.log\nexec %s\n",
                           (long long)choice->nodes, needs, devices, ceil(limit_s / 60), command);
    return DL_OK;
}

static enum dl_code hear(void *context, const char *line, size_t length, struct dl_err *err) {
    (void)err;
    char *out = context;
    snprintf(out, 256, "%.*s", (int)(length < 255 ? length : 255), line);
    return DL_OK;
}

enum dl_code dl_cal_submit(struct dl_context *context, const struct dl_options *options,
                           const struct dl_cal_choice *choice, struct dl_err *err) {
    struct dl_arena *arena = context->arena;
    struct dl_child_ending ending;
    char answer[256] = "";
    const char *profile = dl_option_text(options, "output"), *script;
    if (profile == NULL) profile = context->profile_path;
    if (profile == NULL || strcmp(profile, "-") == 0)
        return dl_fail(err, DL_ERR_USAGE, "--submit needs -o FILE for the profile");
    if (!printable(profile))
        return dl_fail(err, DL_ERR_USAGE, "-o: expected a file name without control characters");
    DL_TRY(script_text(context, options, choice, profile, &script, err));
    if (dl_option_given(options, "dry-run")) return context->output(NULL, script, err);
    const char *sbatch = dl_cal_find_program("sbatch", arena);
    if (sbatch == NULL)
        return dl_fail(err, DL_ERR_BACKEND,
                       "--submit: sbatch is not in PATH; run on a login node of a Slurm cluster, "
                       "or omit --submit");
    const char *path = dl_arena_printf(arena, "%s.sbatch", profile);
    DL_TRY(dl_file_write(path, script, strlen(script), err));
    const char *const argv[] = {sbatch, "--parsable", path, NULL};
    DL_TRY(dl_cal_child_run(argv, SBATCH_SILENCE_S, hear, answer, &ending, err));
    if (ending.exit_status != 0)
        return dl_fail(err, DL_ERR_BACKEND, "sbatch refused %.200s: %.300s", path,
                       ending.last_words);
    return context->output(
        NULL,
        dl_arena_printf(arena, "submitted job %s; when it has ended: dlmodel predict --system %s\n",
                        answer, profile),
        err);
}
