/* cal_submit.c - see the header. The job runs this program with the same options in the folder of
 * submission. Partition and account come from SBATCH_PARTITION and SBATCH_ACCOUNT, which sbatch
 * reads itself (manual page sbatch(1)). */
#include "calibrate/run/cal_submit.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

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
        if (strcmp(o->name, "submit") == 0 || strcmp(o->name, "dry-run") == 0 ||
            strcmp(o->name, "output") == 0)
            continue;
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
    const char *devices =
        choice->gpus > 0
            ? dl_arena_printf(arena, "#SBATCH --gpus-per-node=%lld\n", (long long)choice->gpus)
            : "";
    *out = dl_arena_printf(arena,
                           "#!/bin/sh\n#SBATCH --job-name=dlmodel-calibrate\n#SBATCH "
                           "--nodes=%lld\n#SBATCH --ntasks-per-node=1\n"
                           "#SBATCH --exclusive\n%s#SBATCH --time=%.0f\n#SBATCH "
                           "--output=dlmodel-calibrate-%%j.log\nexec %s\n",
                           (long long)choice->nodes, devices != NULL ? devices : "",
                           ceil(limit_s / 60), command);
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
