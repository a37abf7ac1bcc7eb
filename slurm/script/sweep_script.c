/* sweep_script.c - the script of a job array that searches a sweep: one part a task. The task that
 * finds all parts joins them; parts are written atomically, so that it finds them whole, and two
 * tasks that join concurrently write the same file. */
#include <inttypes.h>

#include "slurm/script/quote.h"
#include "slurm/script/script.h"

enum dl_code dl_sweep_script_text(const struct dl_sweep_script *s, struct dl_arena *arena,
                                  const char **out, struct dl_err *err) {
    struct dl_text t = {.arena = arena};
    const int64_t seconds = (int64_t)s->time_limit_s;
    DL_TRY(dl_script_head(s->site, s->job_name, &t, err));
    dl_text_printf(&t,
                   "#SBATCH --nodes=1\n#SBATCH --ntasks=1\n#SBATCH --cpus-per-task=1\n"
                   "#SBATCH --time=%02" PRId64 ":%02" PRId64 ":%02" PRId64 "\n"
                   "#SBATCH --array=0-%" PRId64 "\n#SBATCH --output=slurm-%%A_%%a.out\n",
                   seconds / 3600, seconds / 60 % 60, seconds % 60, s->parts - 1);
    DL_TRY(dl_script_options(s->site, &t, err));
    dl_text_printf(&t,
                   "# A sweep of dlmodel search; every value is quoted.\nset -u\nexport LC_ALL=C\n"
                   "cd -- %s || exit 5\nparts=%" PRId64 "\n",
                   dl_shell_quote(arena, s->folder), s->parts);
    dl_text_printf(&t, "program=%s\nsearch=(", dl_shell_quote(arena, s->program));
    for (int i = 0; i < s->word_count; i++)
        dl_text_printf(&t, "%s%s", i > 0 ? " " : "", dl_shell_quote(arena, s->words[i]));
    dl_text_add(&t,
                ")\n\"$program\" search ${search[@]+\"${search[@]}\"} --sweep sweep.csv --shard "
                "\"${SLURM_ARRAY_TASK_ID:?not a job array: sbatch job.sh}/$parts\" --csv -o "
                "\"part-$SLURM_ARRAY_TASK_ID.csv\" || exit\n"
                "files=()\n"
                "for ((i = 0; i < parts; i++)); do\n"
                "    [ -f \"part-$i.csv\" ] || exit 0\n"
                "    files+=(\"part-$i.csv\")\n"
                "done\n"
                "exec \"$program\" merge \"${files[@]}\" -o result.csv\n");
    *out = dl_text_string(&t);
    return DL_OK;
}
