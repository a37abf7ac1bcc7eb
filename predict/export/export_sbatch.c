/* export_sbatch.c - a job script for Slurm that runs a plan: nodes, devices, wall time from the
 * prediction, and the framework's own arguments or configuration. */
#include <math.h>
#include <string.h>

#include "predict/export/export.h"

/* Time that a job takes besides training (start, last checkpoint), and its room over the slow end
 * of the interval: choices, not predictions. */
static const double START_S = 900, ROOM = 1.1;

/* "D-HH:MM:SS" */
static const char *wall_time(struct dl_arena *arena, double time_s) {
    const double minutes = ceil(time_s / 60);
    const int64_t all = (int64_t)minutes, days = all / 1440, hours = all / 60 % 24;
    return dl_arena_printf(arena, "%lld-%02lld:%02lld:00", (long long)days, (long long)hours,
                           (long long)(all % 60));
}

/* Letters, digits, dot, dash and underscore: a job name is not quoted. */
static const char *job_name(struct dl_arena *arena, const char *workload) {
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
    char *name = dl_arena_strndup(arena, workload, 40);
    for (char *c = name; c != NULL && *c != 0; c++) *c = strchr(plain, *c) != NULL ? *c : '-';
    return name;
}

/* By what the framework is configured: its own format. */
static const char *format_of(const struct dl_framework *framework) {
    if (strstr(framework->name, "fsdp") != NULL) return "torchtitan";
    return strncmp(framework->name, "deepspeed", 9) == 0 ? "deepspeed" : "megatron";
}

static const char *launch_of(const struct dl_plan *plan, struct dl_arena *arena) {
    return dl_arena_printf(arena,
                           "torchrun --nnodes %lld --nproc-per-node %lld --rdzv-backend c10d "
                           "--rdzv-id \"$SLURM_JOB_ID\" --rdzv-endpoint \"$head:29500\"",
                           (long long)plan->nodes, (long long)plan->devices_per_node);
}

/* What follows "torchrun --nnodes N --nproc-per-node N" of Megatron's command line. */
static const char *program_of(const char *command) {
    const char *program = strstr(command, "pretrain_");
    return program != NULL ? program : "";
}

enum dl_code dl_export_sbatch(const struct dl_export_request *request, struct dl_text *out,
                              struct dl_err *err) {
    const struct dl_prediction_row *row = request->row;
    const struct dl_plan *plan = row->plan;
    const struct dl_run_total total = dl_rows_total(row);
    const char *format = format_of(row->framework), *body;
    if (!dl_known(total.time_s))
        return dl_fail(
            err, DL_ERR_USAGE,
            "--export sbatch: give --tokens or --epochs: the wall time follows from them");
    if (!dl_known(row->workload->transformer_layers))
        return dl_fail(err, DL_ERR_USAGE,
                       "--export sbatch: for networks that are no transformers, 'dlmodel slurm "
                       "script' writes complete jobs");
    DL_TRY(dl_export_write(format, request, &body, err));
    const double slow_s =
        total.time_s * row->prediction->iteration_high_s / row->prediction->iteration_s;
    dl_text_printf(out,
                   "#!/bin/bash\n#SBATCH --job-name=%s\n#SBATCH --nodes=%lld\n"
                   "#SBATCH --ntasks-per-node=1\n#SBATCH --gpus-per-node=%lld\n"
                   "#SBATCH --exclusive\n#SBATCH --time=%s\n",
                   job_name(request->arena, row->workload->name), (long long)plan->nodes,
                   (long long)plan->devices_per_node,
                   wall_time(request->arena, ROOM * slow_s + START_S));
    dl_text_printf(out,
                   "# Predicted: %.0f iterations of %.4g s (80 %% interval %.4g to %.4g). The wall "
                   "time is that of the slow\n# end, 10 %% more and 15 minutes; partition, account "
                   "and environment are the site's.\nset -eu\n"
                   "head=$(scontrol show hostnames \"$SLURM_JOB_NODELIST\" | head -n 1)\n",
                   total.iteration_count, row->prediction->iteration_s,
                   row->prediction->iteration_low_s, row->prediction->iteration_high_s);
    const char *launch = launch_of(plan, request->arena);
    if (strcmp(format, "megatron") == 0) {
        dl_text_printf(out, "srun %s %s", launch, program_of(body));
        return DL_OK;
    }
    const bool titan = strcmp(format, "torchtitan") == 0;
    dl_text_printf(out,
                   "cat > \"job-$SLURM_JOB_ID.%s\" <<'END_OF_CONFIGURATION'\n%s"
                   "END_OF_CONFIGURATION\n",
                   titan ? "toml" : "json", body);
    if (titan)
        dl_text_printf(out,
                       "srun %s -m torchtitan.train --job.config_file \"job-$SLURM_JOB_ID.toml\"\n",
                       launch);
    else
        dl_text_printf(
            out, "srun %s train.py --deepspeed --deepspeed_config \"job-$SLURM_JOB_ID.json\"\n",
            launch);
    return DL_OK;
}
