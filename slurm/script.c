/* script.c - the text of a job script. Every value goes through dl_sl_quote, dl_sl_quote_option or
 * dl_sl_directive; nothing else of users or site files reaches the text. What the script does: 1
 * says to itself who it is (job.jsonl), 2 sets up modules, files and environment, 3 looks at every
 * node (preflight) and keeps watching it, 4 starts helpers (parameter servers), 5 starts the
 * training tasks, 6 ends the helpers and says how it ended.
 */
#include "slurm/script.h"

#include <inttypes.h>
#include <string.h>

#include "slurm/quote.h"

struct text {
    const struct dl_script *s;
    const struct dl_site_framework *own; /* may be NULL */
    struct dl_arena *arena;
    char *bytes;
    size_t length, capacity;
    bool failed;
};

static void add(struct text *t, const char *more) {
    const size_t length = more == NULL ? 0 : strlen(more);
    if (more == NULL) t->failed = true;
    if (t->failed) return;
    if (t->length + length + 1 > t->capacity) {
        const size_t capacity = 2 * (t->length + length) + 4096;
        char *grown = dl_arena_alloc(t->arena, capacity, 1);
        if (grown == NULL) {
            t->failed = true;
            return;
        }
        if (t->length > 0) memcpy(grown, t->bytes, t->length);
        t->bytes = grown;
        t->capacity = capacity;
    }
    memcpy(t->bytes + t->length, more, length + 1);
    t->length += length;
}

/* format has one %s; the value is quoted. */
static void add_quoted(struct text *t, const char *before, const char *value, const char *after) {
    add(t, before);
    add(t, dl_sl_quote(t->arena, value));
    add(t, after);
}

static void add_integer(struct text *t, const char *before, int64_t value, const char *after) {
    add(t, dl_arena_printf(t->arena, "%s%" PRId64 "%s", before, value, after));
}

int64_t dl_script_tasks(const struct dl_script *s) {
    return s->launch->tasks == DL_TASKS_DEVICE ? s->run->devices_per_node : 1;
}

/* The cores of a node are shared evenly; one core where the site does not say how many there are.
 */
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

static enum dl_code directive(struct text *t, const char *key, const char *value,
                              struct dl_err *err) {
    const char *inert = NULL;
    if (value == NULL) return DL_OK;
    DL_TRY(dl_sl_directive(t->arena, key, value, &inert, err));
    add(t, dl_arena_printf(t->arena, "#SBATCH --%s=%s\n", key, inert));
    return DL_OK;
}

/* An option of the site file stands as it is, which must be one option: --name or --name=value. */
static enum dl_code free_option(struct text *t, const char *option, struct dl_err *err) {
    const char *inert = NULL;
    if (strncmp(option, "--", 2) != 0 || strcspn(option, "=") < 3) {
        return dl_fail(err, DL_ERR_INPUT,
                       "site '%.60s': options: expected \"--name=value\", got \"%.100s\"",
                       t->s->site->name, option);
    }
    DL_TRY(dl_sl_directive(t->arena, "options of the site", option, &inert, err));
    add(t, dl_arena_printf(t->arena, "#SBATCH %s\n", inert));
    return DL_OK;
}

static enum dl_code directives(struct text *t, struct dl_err *err) {
    const struct dl_site *site = t->s->site;
    const struct dl_run_record *run = t->s->run;
    add(t, site->login_shell ? "#!/bin/bash -l\n" : "#!/bin/bash\n");
    DL_TRY(directive(t, "job-name", dl_sl_tame(t->arena, run->job_name), err));
    DL_TRY(directive(t, "partition", site->partition, err));
    DL_TRY(directive(t, "account", site->account, err));
    DL_TRY(directive(t, "qos", site->qos, err));
    DL_TRY(directive(t, "constraint", site->constraint, err));
    DL_TRY(directive(t, "reservation", site->reservation, err));
    add_integer(t, "#SBATCH --nodes=", run->nodes, "\n");
    add_integer(t, "#SBATCH --ntasks-per-node=", dl_script_tasks(t->s), "\n");
    add_integer(t, "#SBATCH --cpus-per-task=", dl_script_cores(t->s), "\n");
    if (site->gres != NULL) {
        DL_TRY(directive(
            t, "gres", dl_arena_printf(t->arena, "%s:%" PRId64, site->gres, run->devices_per_node),
            err));
    }
    if (site->exclusive) add(t, "#SBATCH --exclusive\n");
    add(t,
        dl_arena_printf(t->arena, "#SBATCH --time=%s\n", time_text(t->arena, t->s->time_limit_s)));
    /* A requeued job would measure twice into one folder; the one that was preempted is reported
     * instead. */
    add(t, "#SBATCH --no-requeue\n#SBATCH --output=slurm-%j.out\n");
    for (int i = 0; i < site->option_count; i++) DL_TRY(free_option(t, site->options[i], err));
    return DL_OK;
}

static void assignments(struct text *t) {
    const struct dl_script *s = t->s;
    add(t, "# One run of dlmodel slurm; every value is quoted.\nset -u -o pipefail\nexport "
           "LC_ALL=C\n");
    add_quoted(t, "run=", s->run_folder, "\n");
    add_quoted(t, "programs=", s->program_folder, "\n");
    add(t, "cd -- \"$run\" || exit 5\n"
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

static void export_map(struct text *t, const struct dl_map_entry *entries, int count) {
    for (int i = 0; i < count; i++) {
        /* A key that is no name of a variable would be a word of its own to bash. */
        const char *key = entries[i].key;
        if (strspn(key, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_") !=
                strlen(key) ||
            *key == 0)
            continue;
        if (*key >= '0' && *key <= '9') continue;
        add(t, dl_arena_printf(t->arena, "export %s=", key));
        add_quoted(t, "", entries[i].text, "\n");
    }
}

static void setup(struct text *t) {
    const struct dl_site *site = t->s->site;
    const struct dl_site_framework *own = t->own;
    for (int i = 0; i < site->module_count; i++)
        add_quoted(t, "module load ", site->modules[i], " || exit 6\n");
    for (int i = 0; own != NULL && i < own->module_count; i++)
        add_quoted(t, "module load ", own->modules[i], " || exit 6\n");
    /* Files of a site may use unset variables (virtual environments do). */
    for (int i = 0; i < site->setup_count; i++)
        add_quoted(t, "set +u; . ", site->setup[i], " || exit 6; set -u\n");
    for (int i = 0; own != NULL && i < own->setup_count; i++)
        add_quoted(t, "set +u; . ", own->setup[i], " || exit 6; set -u\n");
    add(t, "export OMP_NUM_THREADS=\"${SLURM_CPUS_PER_TASK:-1}\" PYTHONUNBUFFERED=1 "
           "DLMODEL_RUN=\"$run\"\n");
    if (site->interface != NULL) {
        static const char *const names[] = {"GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME",
                                            "HOROVOD_GLOO_IFACE", "OMPI_MCA_btl_tcp_if_include",
                                            "DMLC_INTERFACE",     "DLMODEL_INTERFACE"};
        for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
            add(t, dl_arena_printf(t->arena, "export %s=", names[i]));
            add_quoted(t, "", site->interface, "\n");
        }
    }
    for (int i = 0; i < t->s->launch->environment_count; i++) {
        const char *entry = t->s->launch->environment[i];
        const int name = (int)strcspn(entry, "=");
        add(t, dl_arena_printf(t->arena, "export %.*s=", name, entry));
        add_quoted(t, "", entry + name + 1, "\n");
    }
    export_map(t, site->environment, site->environment_count);
    if (own != NULL) export_map(t, own->environment, own->environment_count);
}

/* One look at each node before, and a process on each node that looks on during the run. */
static void preflight(struct text *t) {
    /* What decides speed, and nothing that could be a secret. */
    add(t, "env | grep -E "
           "'^(SLURM|OMP|KMP|MKL|NCCL|GLOO|HOROVOD|OMPI|UCX|FI|CUDA|TF|MXNET|DMLC|TORCH|DLMODEL)_|^"
           "(PATH|LD_LIBRARY_PATH|"
           "PYTHONPATH|LOADEDMODULES|VIRTUAL_ENV)=' | sort > \"$run/environment.txt\"\n");
    add(t, "preflight=(python3 \"$programs/preflight.py\" --run=\"$run\")\n"
           "on_nodes=(srun --overlap --ntasks=\"$SLURM_JOB_NUM_NODES\" --ntasks-per-node=1 "
           "--cpus-per-task=1 --mem=0 --mpi=none --input=none)\n"
           "\"${on_nodes[@]}\" \"${preflight[@]}\" --look || say "
           "'{\"event\":\"note\",\"text\":\"preflight failed\"}'\n"
           "\"${on_nodes[@]}\" \"${preflight[@]}\" --watch &\nwatcher=$!\n");
}

static const char *python_of(const struct text *t) {
    return t->own != NULL && t->own->python != NULL ? t->own->python : t->s->site->python;
}

/* The command as an array: container, interpreter, program, its options. */
static void program(struct text *t) {
    const struct dl_script *s = t->s;
    const struct dl_run_record *run = s->run;
    const struct dl_site_container *image = t->own != NULL && t->own->has_container
                                                ? &t->own->container
                                            : s->site->has_container ? &s->site->container
                                                                     : NULL;
    add(t, "program=(\n");
    if (image != NULL) {
        add_quoted(t, "    ", dl_site_runtimes[image->runtime], " exec\n");
        for (int i = 0; i < image->option_count; i++)
            add_quoted(t, "    ", image->options[i], "\n");
        add(t, "    --bind \"$run\" --bind \"$programs\" --\n");
        add_quoted(t, "    ", image->image, "\n");
    }
    if (s->launch->program == NULL) {
        for (int i = 0; i < run->command_count; i++) add_quoted(t, "    ", run->command[i], "\n");
        add(t, ")\n");
        return;
    }
    add_quoted(t, "    ", python_of(t), " ");
    add_quoted(t, "\"$programs/\"", s->launch->program, "\n    --run=\"$run\"");
    const struct {
        const char *key, *value;
    } words[] = {
        {"mode", s->launch->mode},     {"network", "network.json"},
        {"precision", run->precision}, {"optimizer", run->optimizer},
        {"dataset", run->dataset},     {"device", dl_site_devices[s->site->device]},
        {"backend", run->backend},     {"binary", t->own != NULL ? t->own->program : NULL},
    };
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (words[i].value == NULL) continue;
        add(t, " ");
        add(t, dl_sl_quote_option(t->arena, words[i].key, words[i].value));
    }
    add_integer(t, "\n    --batch=", run->batch_per_device, "");
    add_integer(t, " --devices=", run->devices_per_node, "");
    add_integer(t, " --steps=", run->steps, "");
    add_integer(t, " --warmup=", run->warmup_steps, "");
    if (run->tp != DL_ABSENT) add_integer(t, " --tp=", run->tp, "");
    if (run->pp != DL_ABSENT) add_integer(t, " --pp=", run->pp, "");
    add(t, run->profile ? " --profile\n)\n" : "\n)\n");
}

static void binding(struct text *t) {
    const struct dl_site *site = t->s->site;
    const char *mpi = t->own != NULL && t->own->mpi != NULL ? t->own->mpi : site->mpi;
    const struct {
        const char *key, *value;
    } words[] = {
        {"mpi", t->s->launch->mpi ? mpi : "none"},
        {"cpu-bind", site->cpu_bind},
        {"mem-bind", site->mem_bind},
        {"gpu-bind", site->device == DL_SITE_GPU ? site->gpu_bind : NULL},
        {"hint", site->hint},
        {"distribution", site->distribution},
    };
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (words[i].value == NULL) continue;
        add(t, " ");
        add(t, dl_sl_quote_option(t->arena, words[i].key, words[i].value));
    }
}

/* Helpers run beside the workers on the same nodes and end with them. When one ends first, the
 * workers would wait for it until the time limit: unless they end within a minute, the job is
 * ended. */
static void helpers(struct text *t) {
    if (t->s->run->profile && t->s->run->nodes == 1) return; /* one device, no exchange */
    if (t->s->launch->helpers != DL_HELPERS_NONE) {
        add(t, "gone() {\n    sleep 60\n    say \"{\\\"event\\\":\\\"fail\\\",\\\"text\\\":\\\"the "
               "$1 ended before the workers\\\"}\"\n    kill -TERM $$\n}\n");
    }
    switch (t->s->launch->helpers) {
    case DL_HELPERS_PS:
        add(t,
            "{ \"${on_nodes[@]}\" \"${program[@]}\" --role=ps; gone server; } &\nhelpers+=($!)\n");
        break;
    case DL_HELPERS_KVSTORE:
        add(t, "{ srun --overlap --nodes=1 --ntasks=1 --cpus-per-task=1 --mem=0 --mpi=none "
               "--input=none \"${program[@]}\" --role=scheduler; gone scheduler; } &\n"
               "helpers+=($!)\n{ \"${on_nodes[@]}\" \"${program[@]}\" --role=server; gone server; "
               "} &\nhelpers+=($!)\n");
        break;
    case DL_HELPERS_NONE: break;
    }
}

static void launch(struct text *t) {
    const struct dl_script *s = t->s;
    add(t, "srun --overlap --kill-on-bad-exit=1 --input=none --mem=0");
    add_integer(t, " --ntasks=", s->run->nodes * dl_script_tasks(s), "");
    add_integer(t, " --ntasks-per-node=", dl_script_tasks(s), "");
    add_integer(t, " --cpus-per-task=", dl_script_cores(s), " \\\n   ");
    binding(t);
    add(t, " -- \"${program[@]}\" &\n"
           "training=$!\nwait \"$training\"\n"); /* a signal must not wait for srun */
}

enum dl_code dl_script_text(const struct dl_script *script, struct dl_arena *arena,
                            const char **out, struct dl_err *err) {
    struct text t = {.s = script,
                     .own = dl_site_framework_find(script->site, script->run->framework),
                     .arena = arena};
    DL_TRY(directives(&t, err));
    assignments(&t);
    setup(&t);
    program(&t);
    preflight(&t);
    helpers(&t);
    launch(&t);
    if (t.failed) return dl_fail(err, DL_ERR_SYSTEM, "out of memory");
    *out = t.bytes;
    return DL_OK;
}
