/* script.c - the text of a job script. Every value goes through dl_shell_quote, dl_sl_quote_option
 * or dl_sl_directive; no other text of users or site files gets into the script. The script 1 logs
 * its job id (job.jsonl), 2 sets up modules, files and environment, 3 inspects every node
 * (preflight) and monitors it, 4 starts helpers (parameter servers), 5 starts the training tasks, 6
 * stops the helpers and logs the exit status. */
#include "slurm/script/script.h"

#include <inttypes.h>
#include <string.h>

#include "model/core/text.h"
#include "slurm/script/quote.h"

struct builder {
    const struct dl_script *s;
    const struct dl_site_framework *own; /* may be NULL */
    struct dl_arena *arena;
    struct dl_text out;
};

static void add(struct builder *b, const char *more) { dl_text_add(&b->out, more); }

static void add_quoted(struct builder *b, const char *before, const char *value,
                       const char *after) {
    add(b, before);
    add(b, dl_shell_quote(b->arena, value));
    add(b, after);
}

static void add_integer(struct builder *b, const char *before, int64_t value, const char *after) {
    dl_text_printf(&b->out, "%s%" PRId64 "%s", before, value, after);
}

int64_t dl_script_tasks(const struct dl_script *s) {
    return s->launch->tasks == DL_TASKS_DEVICE ? s->run->devices_per_node : 1;
}

/* Divides the cores of a node evenly; one core per task if the site file has no number. */
int64_t dl_script_cores(const struct dl_script *s) {
    if (s->site->cores_per_node == DL_ABSENT) return 1;
    const int64_t share = s->site->cores_per_node / dl_script_tasks(s);
    return share < 1 ? 1 : share;
}

static const char *time_text(struct dl_arena *arena, double seconds) {
    const int64_t whole = (int64_t)seconds;
    return dl_arena_printf(arena, "%02d:%02d:%02d", (int)(whole / 3600), (int)(whole / 60 % 60),
                           (int)(whole % 60));
}

static enum dl_code directive(struct dl_text *out, const char *key, const char *value,
                              struct dl_err *err) {
    const char *inert = NULL;
    if (value == NULL) return DL_OK;
    DL_TRY(dl_sl_directive(out->arena, key, value, &inert, err));
    dl_text_printf(out, "#SBATCH --%s=%s\n", key, inert);
    return DL_OK;
}

enum dl_code dl_script_head(const struct dl_site *site, const char *job_name, struct dl_text *out,
                            struct dl_err *err) {
    dl_text_add(out, site->login_shell ? "#!/bin/bash -l\n" : "#!/bin/bash\n");
    DL_TRY(directive(out, "job-name", dl_sl_tame(out->arena, job_name), err));
    DL_TRY(directive(out, "partition", site->partition, err));
    DL_TRY(directive(out, "account", site->account, err));
    DL_TRY(directive(out, "qos", site->qos, err));
    DL_TRY(directive(out, "constraint", site->constraint, err));
    return directive(out, "reservation", site->reservation, err);
}

/* An option of the site file is copied as it is; it must be --name or --name=value. */
enum dl_code dl_script_options(const struct dl_site *site, struct dl_text *out,
                               struct dl_err *err) {
    for (int i = 0; i < site->option_count; i++) {
        const char *option = site->options[i], *inert = NULL;
        if (strncmp(option, "--", 2) != 0 || strcspn(option, "=") < 3) {
            return dl_fail(err, DL_ERR_INPUT,
                           "site '%.60s': options: expected \"--name=value\", got \"%.100s\"",
                           site->name, option);
        }
        DL_TRY(dl_sl_directive(out->arena, "options of the site", option, &inert, err));
        dl_text_printf(out, "#SBATCH %s\n", inert);
    }
    return DL_OK;
}

static enum dl_code directives(struct builder *b, struct dl_err *err) {
    const struct dl_site *site = b->s->site;
    const struct dl_run_record *run = b->s->run;
    DL_TRY(dl_script_head(site, run->job_name, &b->out, err));
    if (b->s->trials != NULL && b->s->trials->is_array) {
        add_integer(b, "#SBATCH --array=0-", b->s->trials->count - 1, "");
        add_integer(b, "%", b->s->trials->slots, "\n");
    }
    add_integer(b, "#SBATCH --nodes=", run->nodes, "\n");
    add_integer(b, "#SBATCH --ntasks-per-node=", dl_script_tasks(b->s), "\n");
    add_integer(b, "#SBATCH --cpus-per-task=", dl_script_cores(b->s), "\n");
    if (site->gres != NULL) {
        DL_TRY(directive(
            &b->out, "gres",
            dl_arena_printf(b->arena, "%s:%" PRId64, site->gres, run->devices_per_node), err));
    }
    if (site->exclusive) add(b, "#SBATCH --exclusive\n");
    dl_text_printf(&b->out, "#SBATCH --time=%s\n", time_text(b->arena, b->s->time_limit_s));
    /* A requeued job would write twice into one folder; report the preempted job instead. */
    add(b, "#SBATCH --no-requeue\n#SBATCH --output=slurm-%j.out\n");
    return dl_script_options(site, &b->out, err);
}

static void assignments(struct builder *b) {
    const struct dl_script *s = b->s;
    add(b, "# One run of dlmodel slurm; every value is quoted.\nset -u -o pipefail\nexport "
           "LC_ALL=C\n");
    add_quoted(b, "run=", s->run_folder, "\n");
    add_quoted(b, "programs=", s->program_folder, "\n");
    add(b, "cd -- \"$run\" || exit 5\n"
           "say() { printf '%s\\n' \"$1\" >> \"$run/job.jsonl\"; }\n"
           "say \"{\\\"event\\\":\\\"job\\\",\\\"job_id\\\":\\\"${SLURM_JOB_ID:?not under Slurm: "
           "sbatch job.sh}\\\",\\\"nodes\\\":\\\"$SLURM_JOB_NODELIST\\\","
           "\\\"time_s\\\":$(date +%s)}\"\n"
           "watcher='' training='' helpers=()\n"
           "finish() {\n"
           "    status=$?\n"
           "    trap '' TERM\n"
           "    for p in ${helpers[@]+\"${helpers[@]}\"} $training $watcher; do kill \"$p\" 2> "
           "/dev/null; done\n"
           "    for ((i = 0; i < 50; i++)); do [ -n \"$(jobs -rp)\" ] || break; sleep 0.1; done\n"
           "    say \"{\\\"event\\\":\\\"exit\\\",\\\"status\\\":$status,\\\"time_s\\\":$(date "
           "+%s)}\"\n"
           "    exit \"$status\"\n"
           "}\n"
           "trap finish EXIT\ntrap 'exit 143' TERM\n");
}

static void export_map(struct builder *b, const struct dl_map_entry *entries, int count) {
    for (int i = 0; i < count; i++) {
        /* bash would run a key that is no variable name as a command: skip it. */
        const char *key = entries[i].key;
        if (strspn(key, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_") !=
                strlen(key) ||
            *key == 0)
            continue;
        if (*key >= '0' && *key <= '9') continue;
        dl_text_printf(&b->out, "export %s=", key);
        add_quoted(b, "", entries[i].text, "\n");
    }
}

static void setup(struct builder *b) {
    const struct dl_site *site = b->s->site;
    const struct dl_site_framework *own = b->own;
    for (int i = 0; i < site->module_count; i++)
        add_quoted(b, "module load ", site->modules[i], " || exit 6\n");
    for (int i = 0; own != NULL && i < own->module_count; i++)
        add_quoted(b, "module load ", own->modules[i], " || exit 6\n");
    /* set +u: files of a site, such as virtual environments, may use unset variables. */
    for (int i = 0; i < site->setup_count; i++)
        add_quoted(b, "set +u; . ", site->setup[i], " || exit 6; set -u\n");
    for (int i = 0; own != NULL && i < own->setup_count; i++)
        add_quoted(b, "set +u; . ", own->setup[i], " || exit 6; set -u\n");
    add(b, "export OMP_NUM_THREADS=\"${SLURM_CPUS_PER_TASK:-1}\" PYTHONUNBUFFERED=1 "
           "DLMODEL_RUN=\"$run\"\n");
    if (site->interface != NULL) {
        static const char *const names[] = {"GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME",
                                            "HOROVOD_GLOO_IFACE", "OMPI_MCA_btl_tcp_if_include",
                                            "DMLC_INTERFACE",     "DLMODEL_INTERFACE"};
        for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
            dl_text_printf(&b->out, "export %s=", names[i]);
            add_quoted(b, "", site->interface, "\n");
        }
    }
    for (int i = 0; i < b->s->launch->environment_count; i++) {
        const char *entry = b->s->launch->environment[i];
        const int name = (int)strcspn(entry, "=");
        dl_text_printf(&b->out, "export %.*s=", name, entry);
        add_quoted(b, "", entry + name + 1, "\n");
    }
    export_map(b, site->environment, site->environment_count);
    if (own != NULL) export_map(b, own->environment, own->environment_count);
}

/* Inspects each node before the run, and starts a monitor on each for its duration. */
static void preflight(struct builder *b) {
    /* Variables that affect speed, by name: schedulers and users keep credentials in the rest
     * (SLURM_JWT, TF_VAR_...). Only the owner reads the file. */
    add(b,
        "speed_variables='PATH LD_LIBRARY_PATH PYTHONPATH VIRTUAL_ENV LOADEDMODULES "
        "SLURM_CLUSTER_NAME SLURM_JOB_ID SLURM_JOB_PARTITION SLURM_JOB_NODELIST "
        "SLURM_JOB_NUM_NODES SLURM_NTASKS SLURM_NTASKS_PER_NODE SLURM_CPUS_PER_TASK "
        "SLURM_CPUS_ON_NODE SLURM_GPUS_ON_NODE SLURM_MEM_PER_NODE SLURM_CPU_BIND "
        "SLURM_DISTRIBUTION SLURM_HINT TF_CPP_MIN_LOG_LEVEL TF_GPU_THREAD_MODE "
        "TF_GPU_THREAD_COUNT TF_FORCE_GPU_ALLOW_GROWTH TF_ENABLE_ONEDNN_OPTS TF_XLA_FLAGS "
        "XLA_FLAGS MXNET_CUDNN_AUTOTUNE_DEFAULT MXNET_ENGINE_TYPE TORCH_NCCL_ASYNC_ERROR_HANDLING "
        "DLMODEL_SITE DLMODEL_DATA'\n"
        "speed_variables+=\" $(compgen -e | grep -E "
        "'^(OMP|KMP|MKL|NCCL|GLOO|HOROVOD|OMPI_MCA|UCX|FI|CUDA)_' | "
        "grep -viE 'token|key|secret|pass|cred|auth|jwt|cookie' | tr '\\n' ' ')\"\n"
        "(umask 077; for name in $speed_variables; do [ -z \"${!name+x}\" ] || "
        "printf '%s=%s\\n' \"$name\" \"${!name}\"; done | sort > \"$run/environment.txt\")\n");
    add(b, "preflight=(python3 \"$programs/preflight.py\" --run=\"$run\" --script=$$)\n"
           "on_nodes=(srun --overlap --ntasks=\"$SLURM_JOB_NUM_NODES\" --ntasks-per-node=1 "
           "--cpus-per-task=1 --mem=0 --mpi=none --input=none)\n"
           "timeout -k 10 300 \"${on_nodes[@]}\" \"${preflight[@]}\" --look || say "
           "'{\"event\":\"note\",\"text\":\"preflight failed\"}'\n"
           "\"${on_nodes[@]}\" \"${preflight[@]}\" --watch &\nwatcher=$!\n");
}

static const char *python_of(const struct builder *b) {
    return b->own != NULL && b->own->python != NULL ? b->own->python : b->s->site->python;
}

/* The command as a bash array: container, interpreter, program, options. */
static void program(struct builder *b) {
    const struct dl_script *s = b->s;
    const struct dl_run_record *run = s->run;
    const struct dl_site_container *image = b->own != NULL && b->own->has_container
                                                ? &b->own->container
                                            : s->site->has_container ? &s->site->container
                                                                     : NULL;
    add(b, "program=(\n");
    if (image != NULL) {
        add_quoted(b, "    ", dl_site_runtimes[image->runtime], " exec\n");
        for (int i = 0; i < image->option_count; i++)
            add_quoted(b, "    ", image->options[i], "\n");
        add(b, "    --bind \"$run\" --bind \"$programs\" --\n");
        add_quoted(b, "    ", image->image, "\n");
    }
    if (s->launch->program == NULL) {
        for (int i = 0; i < run->command_count; i++) add_quoted(b, "    ", run->command[i], "\n");
        add(b, ")\n");
        return;
    }
    add_quoted(b, "    ", python_of(b), " ");
    add_quoted(b, "\"$programs/\"", s->trials != NULL ? s->trials->program : s->launch->program,
               "\n    --run=\"$run\"");
    const struct {
        const char *key, *value;
    } words[] = {
        {"mode", s->launch->mode},     {"network", "network.json"},
        {"precision", run->precision}, {"optimizer", run->optimizer},
        {"dataset", run->dataset},     {"device", dl_site_devices[s->site->device]},
        {"backend", run->backend},     {"binary", b->own != NULL ? b->own->program : NULL},
    };
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (words[i].value == NULL) continue;
        add(b, " ");
        add(b, dl_sl_quote_option(b->arena, words[i].key, words[i].value));
    }
    add_integer(b, "\n    --batch=", run->batch_per_device, "");
    add_integer(b, " --devices=", run->devices_per_node, "");
    add_integer(b, " --steps=", run->steps, "");
    add_integer(b, " --warmup=", run->warmup_steps, "");
    if (run->tp != DL_ABSENT) add_integer(b, " --tp=", run->tp, "");
    if (run->pp != DL_ABSENT) add_integer(b, " --pp=", run->pp, "");
    add(b, run->profile ? " --profile\n)\n" : "\n)\n");
}

static void binding(struct builder *b) {
    const struct dl_site *site = b->s->site;
    const char *mpi = b->own != NULL && b->own->mpi != NULL ? b->own->mpi : site->mpi;
    const struct {
        const char *key, *value;
    } words[] = {
        {"mpi", b->s->launch->mpi ? mpi : "none"},
        {"cpu-bind", site->binding.cpu_bind},
        {"mem-bind", site->binding.mem_bind},
        {"gpu-bind", site->device == DL_SITE_GPU ? site->binding.gpu_bind : NULL},
        {"hint", site->binding.hint},
        {"distribution", site->binding.distribution},
    };
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (words[i].value == NULL) continue;
        add(b, " ");
        add(b, dl_sl_quote_option(b->arena, words[i].key, words[i].value));
    }
}

/* Helpers share the nodes with the workers and end with them. If a helper ends first, the workers
 * would wait for it until the time limit: the job is terminated unless they end within a minute. */
static void helpers(struct builder *b) {
    if (b->s->run->profile && b->s->run->nodes == 1)
        return; /* one device: no gradient synchronization */
    if (b->s->launch->helpers != DL_HELPERS_NONE) {
        add(b, "gone() {\n    sleep 60\n    say \"{\\\"event\\\":\\\"fail\\\",\\\"text\\\":\\\"the "
               "$1 ended before the workers\\\"}\"\n    kill -TERM $$\n}\n");
    }
    switch (b->s->launch->helpers) {
    case DL_HELPERS_PS:
        add(b,
            "{ \"${on_nodes[@]}\" \"${program[@]}\" --role=ps; gone server; } &\nhelpers+=($!)\n");
        break;
    case DL_HELPERS_KVSTORE:
        add(b, "{ srun --overlap --nodes=1 --ntasks=1 --cpus-per-task=1 --mem=0 --mpi=none "
               "--input=none \"${program[@]}\" --role=scheduler; gone scheduler; } &\n"
               "helpers+=($!)\n{ \"${on_nodes[@]}\" \"${program[@]}\" --role=server; gone server; "
               "} &\nhelpers+=($!)\n");
        break;
    case DL_HELPERS_NONE: break;
    }
}

static void launch(struct builder *b) {
    const struct dl_script *s = b->s;
    add(b, "srun --overlap --kill-on-bad-exit=1 --input=none --mem=0");
    add_integer(b, " --ntasks=", s->run->nodes * dl_script_tasks(s), "");
    add_integer(b, " --ntasks-per-node=", dl_script_tasks(s), "");
    add_integer(b, " --cpus-per-task=", dl_script_cores(s), " \\\n   ");
    binding(b);
    add(b, " -- \"${program[@]}\" &\n"
           "training=$!\nwait \"$training\"\n"); /* so that traps run while srun does */
}

/* srun of one trial, on one device; DLMODEL_TRIAL_START: time of its submission. */
static void launch_trial(struct builder *b, const char *trial) {
    add(b, "DLMODEL_TRIAL_START=\"$(date +%s.%N)\" srun --exact --kill-on-bad-exit=1 "
           "--input=none --mem=0 --nodes=1 --ntasks=1");
    add_integer(b, " --cpus-per-task=", dl_script_cores(b->s), " \\\n       ");
    binding(b);
    dl_text_printf(&b->out, " -- \"${program[@]}\" --trial=\"%s\" &\n", trial);
}

/* A step starts when a slot is free. */
static void launch_trials(struct builder *b) {
    const struct dl_script_trials *t = b->s->trials;
    if (t->is_array) {
        launch_trial(b, "$SLURM_ARRAY_TASK_ID");
        add(b, "training=$!\nwait \"$training\"\n");
        return;
    }
    add(b, "steps=() failed=0\n");
    add_integer(b, "for ((trial = 0; trial < ", t->count, "; trial++)); do\n");
    add_integer(b, "    while ((${#steps[@]} >= ", t->slots, ")); do\n");
    add(b, "        wait -n \"${steps[@]}\" || failed=1\n        live=()\n"
           "        for p in \"${steps[@]}\"; do kill -0 \"$p\" 2> /dev/null && live+=(\"$p\"); "
           "done\n"
           "        steps=(${live[@]+\"${live[@]}\"})\n    done\n    ");
    launch_trial(b, "$trial");
    add(b, "    steps+=($!)\n    helpers+=($!)\ndone\n"
           "for p in \"${steps[@]}\"; do wait \"$p\" || failed=1; done\n(exit \"$failed\")\n");
}

enum dl_code dl_script_text(const struct dl_script *script, struct dl_arena *arena,
                            const char **out, struct dl_err *err) {
    struct builder b = {.s = script,
                        .own = dl_site_framework_find(script->site, script->run->framework),
                        .arena = arena,
                        .out = {.arena = arena}};
    DL_TRY(directives(&b, err));
    assignments(&b);
    setup(&b);
    program(&b);
    preflight(&b);
    helpers(&b);
    if (script->trials != NULL)
        launch_trials(&b);
    else
        launch(&b);
    *out = dl_text_string(&b.out);
    return DL_OK;
}
