/* submit_sweep.c - `dlmodel slurm submit --sweep FILE --parts N`: a job array that searches every
 * row of a table. The folder is complete before sbatch is called. */
#include <string.h>

#include "model/core/csv.h"
#include "model/core/file.h"
#include "slurm/commands/slurm_internal.h"
#include "slurm/script/quote.h"

enum { MAX_BYTES = 64 << 20 };

/* Not more parts than rows: a part of none would search nothing. */
static enum dl_code read_sweep(const char *path, struct dl_arena *arena, int64_t *parts,
                               const char **text, size_t *length, struct dl_err *err) {
    struct dl_csv csv;
    char *bytes;
    DL_TRY(dl_file_read(path, MAX_BYTES, arena, &bytes, length, err));
    DL_TRY(dl_csv_parse(path, bytes, *length, arena, &csv, err));
    if (csv.row_count == 0)
        return dl_fail_at(err, path, 1, 1, NULL, "expected a row below the header");
    if (*parts > csv.row_count) *parts = csv.row_count;
    *text = bytes;
    return DL_OK;
}

enum dl_code dl_slurm_submit_sweep(struct dl_context *context, const struct dl_options *options,
                                   struct dl_err *err) {
    struct dl_arena *arena = context->arena;
    struct dl_slurm_choice choice = {.parts = 4};
    const char *sweep = NULL, *folder = NULL, *job_id = NULL, *script, *base, *path;
    const struct dl_site *site;
    size_t length;
    DL_TRY(dl_site_load(context, dl_option_text(options, "site"), &site, err));
    choice.site = *site;
    choice.time_limit_s = site->time_limit_s;
    DL_TRY(dl_slurm_bind(options, &choice, err));
    DL_TRY(read_sweep(choice.sweep, arena, &choice.parts, &sweep, &length, err));
    DL_TRY(dl_slurm_absolute(arena, dl_slurm_folder(options, site), &base, err));
    const char *name = dl_sl_tame(arena, choice.name != NULL ? choice.name : "sweep");
    const bool dry = dl_option_given(options, "dry-run");
    if (dry)
        folder = dl_arena_printf(arena, "%s/%s", base, name);
    else {
        const char *made = name;
        DL_TRY(dl_file_mkdirs(base, err));
        DL_TRY(dl_slurm_make_folder(base, &made, arena, &folder, err));
    }
    const struct dl_sweep_script s = {.site = &choice.site,
                                      .job_name = name,
                                      .folder = folder,
                                      .program = context->program,
                                      .words = options->positional + 1,
                                      .word_count = options->positional_count - 1,
                                      .parts = choice.parts,
                                      .time_limit_s = choice.time_limit_s};
    DL_TRY(dl_sweep_script_text(&s, arena, &script, err));
    if (dry) return context->output(options, script, err);
    path = dl_arena_printf(arena, "%s/sweep.csv", folder);
    DL_TRY(dl_file_write(path, sweep, length, err));
    path = dl_arena_printf(arena, "%s/job.sh", folder);
    DL_TRY(dl_file_write(path, script, strlen(script), err));
    DL_TRY(dl_slurm_sbatch(folder, arena, &job_id, err));
    context->note(context, "when all %lld parts of job %s are done, the result is %s/result.csv",
                  (long long)s.parts, job_id, folder);
    return context->output(options, dl_arena_printf(arena, "%s %s\n", job_id, folder), err);
}
