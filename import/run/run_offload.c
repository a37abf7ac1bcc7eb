/* run_offload.c - states and weights in host memory, in the words of DeepSpeed's JSON and of FSDP,
 * as --offload. States on NVMe are not modelled: their arguments stay unused. */
#include <strings.h>

#include "import/run/run_table.h"

/* Whether one of the arguments is "cpu". */
static bool on_host(struct dl_arguments *a, const char *const *names) {
    bool found = false;
    for (; *names != NULL; names++) {
        const char *device = dl_arguments_peek(a, *names);
        if (device == NULL || strcasecmp(device, "cpu") != 0) continue;
        (void)dl_arguments_find(a, *names);
        found = true;
    }
    return found;
}

/* DeepSpeed copies from pageable memory unless the file pins it. */
static void note_host(struct dl_arguments *a) {
    if (!dl_arguments_flag(a, "zero_optimization.offload_optimizer.pin_memory|"
                              "zero_optimization.offload_param.pin_memory"))
        dl_arguments_note(a, "offload without pin_memory: pageable copies are slower and not "
                             "modelled; predicted as pinned");
    dl_arguments_note(a, "DeepSpeedCPUAdam: its step is predicted as that of PyTorch's Adam on the "
                         "host, which passes over the states more often");
}

enum dl_code dl_run_offload_deepspeed(struct dl_run *run, const char *stage) {
    static const char *const states[] = {"zero_optimization.offload_optimizer.device",
                                         "deepspeed_config.offload_optimizer_device",
                                         "offload_optimizer_device", NULL},
                             *const shards[] = {"zero_optimization.offload_param.device",
                                                "deepspeed_config.offload_param_device",
                                                "offload_param_device", NULL};
    static const char ratio[] = "zero_optimization.offload_optimizer.ratio";
    struct dl_arguments *a = &run->arguments;
    const bool sharded = stage != NULL && stage[0] >= '1', last = sharded && stage[0] == '3';
    double frac = 1;
    if (!sharded) return DL_OK;
    const bool old = dl_arguments_flag(a, "zero_optimization.cpu_offload"),
               optimizer = on_host(a, states) || old,
               params = last && (on_host(a, shards) ||
                                 dl_arguments_flag(a, "zero_optimization.cpu_offload_params"));
    if (last && optimizer && !params) DL_TRY(dl_arguments_number(a, ratio, 0, 1, &frac, run->err));
    if (!optimizer && !params) return DL_OK;
    if (!optimizer)
        dl_arguments_note(a, "offload_param without offload_optimizer: predicted with gradients "
                             "and optimizer states on the host too");
    note_host(a);
    if (!(frac > 0)) return DL_OK;
    dl_plan_words_add(run->out, "offload", params ? "weights" : "optimizer");
    if (frac < 1) dl_plan_words_add(run->out, "offload-fraction", "%.6g", frac);
    return DL_OK;
}

void dl_run_offload_fsdp(struct dl_run *run, const char *names, int stage) {
    if (stage < 2 || !dl_arguments_flag(&run->arguments, names)) return;
    dl_plan_words_add(run->out, "offload", stage == 3 ? "weights" : "optimizer");
    if (stage == 2)
        dl_arguments_note(&run->arguments,
                          "offload of FSDP that keeps gathered weights: predicted as --offload "
                          "optimizer, with weights copied back once a step");
}
