/* cmd_calibrate.c - `dlmodel calibrate`: reads the options, runs the plan into a journal, and
 * replaces the old profile once the new one is complete. */
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "calibrate/report/cal_compare.h"
#include "calibrate/fits/cal_kernels.h"
#include "calibrate/probes/common/load_average.h"
#include "calibrate/profile/cal_profile.h"
#include "calibrate/report/cal_report.h"
#include "calibrate/run/cal_run.h"
#include "calibrate/run/cal_submit.h"
#include "model/catalog/command.h"
#include "model/core/file.h"
#include "process/child.h"

#define CHOICE(member) struct dl_cal_choice, member

static const struct dl_option calibrate_options[] = {
    {"quick", 0, NULL, "Measuring",
     "measure fewer shapes and smaller messages; takes at most a minute", DL_FLAG(CHOICE(quick))},
    {"budget", 0, "SECONDS", "Measuring",
     "time for all samples, 0.1 to 1e6 s; default 200, 20 with --quick; twice that with --nodes",
     DL_NUMBER(CHOICE(budget_s), .unit = DL_UNIT_S, .min = 0.1, .max = 1e6)},
    {"only", 0, "PROBE,...", "Measuring",
     "measure these probes only (plus memory bandwidth and one GEMM, which every profile needs);\n"
     "reuse the other samples of this machine's current profile",
     DL_TEXT(CHOICE(only))},
    {"nodes", 0, "N", "Measuring",
     "also measure the network between N nodes of this allocation, one MPI rank per node; default "
     "1",
     DL_INTEGER(CHOICE(nodes), .min = 1, .max = 100000)},
    {"hostfile", 0, "FILE", "Measuring",
     "file with one node name per line; default: the nodes of the Slurm or PBS allocation",
     DL_TEXT(CHOICE(hostfile))},
    {"launcher", 0, "CMD", "Measuring",
     "command that starts one rank per node; {hosts} and {ranks} are substituted;\n"
     "default: srun in a Slurm allocation, else mpirun",
     DL_TEXT(CHOICE(launcher))},
    {"cores", 0, "N", "Measuring",
     "use N cores per device and measure how much they slow each other down;\n"
     "default: all cores that this process may use (taskset, Slurm's binding)",
     NULL},
    {"virtual-nodes", 0, "N", "Measuring",
     "emulate N nodes with one device each on this host (a Slurm test bed)",
     DL_INTEGER(CHOICE(virtual_nodes), .min = 1, .max = 10000)},
    {"gpus", 0, "N", "Measuring",
     "number of GPUs to measure on this node; default: all visible ones; 0: none",
     DL_INTEGER(CHOICE(gpus), .min = 0, .max = 64)},
    {"workload", 0, "NAME", "Measuring",
     "on GPUs, also measure the exact layers of this workload, with a batch of 32",
     DL_TEXT(CHOICE(workload_name))},
    {"submit", 0, NULL, "Measuring",
     "submit the calibration as a Slurm job of --nodes nodes; with --dry-run, print its script",
     NULL},
    {"site", 0, "NAME|FILE", "Measuring",
     "with --submit: the site whose partition, account, qos, constraint and GPUs (gres) the job "
     "asks "
     "for; default: as for 'dlmodel slurm'",
     NULL},
    {"partition", 0, "NAME", "Measuring",
     "with --submit: partition of the job; default: that of the site", NULL},
    {"account", 0, "NAME", "Measuring",
     "with --submit: account of the job; default: that of the site", NULL},
    {"ranks", 0, "N", "Measuring", "number of MPI ranks on this node, 2 to 1024; default 2",
     DL_INTEGER(CHOICE(ranks), .min = 2, .max = 1024)},
    {"file-dir", 0, "DIR", "Measuring",
     "directory for the file probes; default: that of the profile", DL_TEXT(CHOICE(file_dir))},
    {"resume", 0, NULL, "Measuring", "continue an unfinished calibration, with the same options",
     NULL},
    {"compare", 0, "FILE", "Measuring",
     "measure nothing; list what changed from FILE, an older profile, to the current one", NULL},
    {"dry-run", 0, NULL, "Measuring", "print the plan and the expected time; measure nothing",
     NULL},
    {"list", 0, NULL, "Measuring", "list the probes and whether they can run here", NULL},
    {"kernels", 0, "CSV", "Kernels",
     "fit the kernel-time models of --device to published samples in CSV (and in FILE...)", NULL},
    {"device", 0, "NAME", "Kernels",
     "device whose samples are fitted; 'dlmodel list devices' shows the names", NULL},
    {"format", 0, "table|csv|json", "Output",
     "table: a summary; csv: the samples; json: the profile", NULL},
    {"json", 0, NULL, "Output", "same as --format json", NULL},
    {"csv", 0, NULL, "Output", "same as --format csv", NULL},
    {"output", 'o', "FILE", "Output",
     "write the profile (with --kernels: the kernel-time models) to FILE; default: the profile "
     "'local'",
     NULL},
    {"help", 'h', NULL, "Output", "show this help", NULL},
    {.name = NULL},
};
static const struct dl_option *const tables[] = {calibrate_options, NULL};
static const char *const examples[] = {
    "dlmodel calibrate --quick",
    "dlmodel calibrate --dry-run",
    "dlmodel calibrate --submit --nodes 4 --dry-run",
    "dlmodel calibrate --quick --nodes 4 --hostfile hosts --dry-run",
    "dlmodel calibrate --list",
    "dlmodel calibrate --kernels data/kernels/deepbench_gemm.csv --device v100_sxm2_16",
    NULL,
};

struct job {
    struct dl_context *context;
    const struct dl_options *options;
    enum dl_format format;
    const char *profile_path, *journal_path;
    const char *identity; /* host and CPU */
    struct dl_cal_run run;
    struct dl_cal_plan plan;
    struct dl_cal_tools tools;
    struct dl_cal_launch launch;
    struct dl_cal_journal journal;
};

static const char *directory_of(const char *path, struct dl_arena *arena) {
    return dirname(dl_arena_strdup(arena, path));
}

/* The journal lies next to the profile; next to the default profile when this one goes to a device
 * or a pipe. */
static enum dl_code find_paths(struct job *job, struct dl_err *err) {
    const char *given = dl_option_text(job->options, "output"), *own = job->context->profile_path;
    struct stat info;
    if (given == NULL && own == NULL)
        return dl_fail(err, DL_ERR_USAGE, "no place for the profile; set HOME or give -o FILE");
    job->profile_path = given != NULL ? given : own;
    const bool special = strcmp(job->profile_path, "-") == 0 ||
                         (stat(job->profile_path, &info) == 0 && !S_ISREG(info.st_mode));
    if (special && stat(job->profile_path, &info) == 0 && S_ISDIR(info.st_mode)) {
        return dl_fail(err, DL_ERR_SYSTEM,
                       "%.400s: is a directory; expected a file for the profile",
                       job->profile_path);
    }
    const char *base = !special ? job->profile_path : own != NULL ? own : "dlmodel-local.json";
    job->journal_path = dl_arena_printf(job->context->arena, "%s.journal", base);
    return DL_OK;
}

static int64_t gpus_here(const struct job *job) {
    const double count = dl_cal_tool_fact(&job->tools, "gpu_count");
    return dl_known(count) ? (int64_t)count : 0;
}

/* Options that are not given again keep their values from the journal. */
static enum dl_code read_choice(struct job *job, bool resumed, struct dl_cal_choice *choice,
                                struct dl_err *err) {
    const struct dl_options *o = job->options;
    const char *no_gpu = dl_cal_unavailable_probe(&job->tools, "gpu-gemm");
    *choice = resumed ? job->journal.header.choice
                      : (struct dl_cal_choice){.budget_s = NAN,
                                               .ranks = 2,
                                               .nodes = 1,
                                               .gpus = no_gpu == NULL ? gpus_here(job) : 0};
    DL_TRY(dl_options_bind(o, calibrate_options, choice, err));
    DL_TRY(dl_option_integer(o, "cores", 1, job->run.host.allowed, &choice->cores, err));
    const double capability = dl_cal_tool_fact(&job->tools, "gpu_capability");
    if (!resumed)
        choice->capability = choice->gpus > 0 && dl_known(capability) ? (int64_t)capability : 0;
    if (choice->gpus > 0 && no_gpu != NULL)
        return dl_fail(err, DL_ERR_BACKEND, "--gpus %lld: %s", (long long)choice->gpus, no_gpu);
    if (choice->gpus > gpus_here(job))
        return dl_fail(err, DL_ERR_USAGE, "--gpus %lld: only %lld are visible here",
                       (long long)choice->gpus, (long long)gpus_here(job));
    if (choice->nodes == 1 && (choice->hostfile != NULL || choice->launcher != NULL) &&
        !dl_option_given(o, "resume"))
        return dl_fail(err, DL_ERR_USAGE,
                       "--hostfile and --launcher go with --nodes N, where N is at least 2");
    if (choice->file_dir == NULL)
        choice->file_dir = directory_of(job->journal_path, job->context->arena);
    return DL_OK;
}

static const char *hash_text(const struct job *job) {
    return dl_arena_printf(job->context->arena, "%016llx", (unsigned long long)job->plan.hash);
}

static enum dl_code check_resumed(const struct job *job, struct dl_err *err) {
    const struct dl_cal_header *h = &job->journal.header;
    if (strcmp(h->host, job->identity) != 0) {
        return dl_fail(
            err, DL_ERR_INPUT,
            "%.300s was started on '%.100s', this is '%.100s'; start again without --resume",
            job->journal_path, h->host, job->identity);
    }
    if (strcmp(h->plan, hash_text(job)) != 0) {
        return dl_fail(
            err, DL_ERR_INPUT,
            "%.300s was started with other options or by another version of dlmodel; give "
            "the same options, or start again without --resume",
            job->journal_path);
    }
    return DL_OK;
}

/* Choice, old journal, plan. */
static enum dl_code prepare(struct job *job, bool *go_on, struct dl_err *err) {
    struct dl_cal_choice choice;
    DL_TRY(find_paths(job, err));
    const bool there = access(job->journal_path, F_OK) == 0;
    *go_on = there && dl_option_given(job->options, "resume");
    if (*go_on) {
        struct dl_err bad;
        const enum dl_code code =
            dl_cal_journal_read(job->journal_path, job->context->arena, &job->journal, &bad);
        if (code != DL_OK && job->journal.good_bytes > 0) {
            *err = bad;
            return code;
        }
        *go_on = code == DL_OK; /* killed before the first line was complete: nothing to resume */
    }
    DL_TRY(read_choice(job, *go_on, &choice, err));
    /* A process that is bound to a part of the host cannot keep the rest busy. */
    const bool whole = job->run.host.allowed == job->run.host.cores;
    choice.devices = choice.cores > 0 && whole ? job->run.host.cores / choice.cores : 0;
    if (choice.workload_name != NULL)
        DL_TRY(dl_data_workload(&job->context->data, choice.workload_name, job->context->arena,
                                &choice.workload, err));
    DL_TRY(dl_cal_plan_make(&choice, job->context->arena, &job->plan, err));
    if (*go_on) return check_resumed(job, err);
    if (dl_option_given(job->options, "resume"))
        job->context->note(job->context, "no unfinished calibration; starting a new one");
    return DL_OK;
}

static enum dl_code open_journal(struct job *job, bool go_on, struct dl_err *err) {
    struct dl_arena *arena = job->context->arena;
    if (go_on) return dl_cal_journal_continue(&job->journal, err);
    DL_TRY(dl_file_mkdirs(directory_of(job->journal_path, arena), err));
    const double load = dl_load_average();
    const struct dl_cal_header header = {
        .plan = hash_text(job),
        .host = job->identity,
        .started = dl_cal_time_text(arena),
        .load = dl_known(load) ? dl_arena_printf(arena, "%.2f", load) : NULL,
        .choice = job->plan.choice};
    if (load > 0.5 * (double)job->run.host.cores) {
        job->context->note(
            job->context,
            "warning: load average %.1f on %lld cores: other processes disturb the samples", load,
            (long long)job->run.host.cores);
    }
    return dl_cal_journal_create(job->journal_path, &header, arena, &job->journal, err);
}

/* With --only: reuses the samples of the other probes from the current profile, if it is of this
 * machine. */
static enum dl_code add_old_samples(struct job *job, struct dl_err *err) {
    struct dl_json *doc;
    struct dl_system old;
    struct dl_err ignored;
    if (job->plan.choice.only == NULL || access(job->profile_path, R_OK) != 0) return DL_OK;
    if (dl_json_read(job->profile_path, job->context->arena, &doc, &ignored) != DL_OK ||
        dl_json_load(doc, &dl_system_schema, job->context->arena, &old, &ignored) != DL_OK ||
        old.calibration.measured_on == NULL ||
        strcmp(old.calibration.measured_on, job->run.host.name) != 0) {
        return DL_OK;
    }
    for (int i = 0; i < old.calibration.sample_count; i++) {
        const struct dl_raw_sample *s = &old.calibration.samples[i];
        const struct dl_cal_point same = {.probe = s->probe, .shape = s->shape, .pass = s->pass};
        if (dl_cal_chosen(&job->plan.choice, s->probe) || dl_cal_journal_has(&job->journal, &same))
            continue;
        DL_TRY(dl_cal_journal_sample(&job->journal, s, job->context->arena, err));
    }
    return DL_OK;
}

static void show_sample(void *context, const struct dl_raw_sample *sample, size_t done,
                        size_t all) {
    const struct job *job = context;
    char time_text[32];
    if (!job->context->progress || job->context->verbosity < 0) return;
    dl_units_format(sample->median_s, DL_UNIT_S, time_text, sizeof time_text);
    fprintf(stderr, "\r%4zu of %zu  %-9s %-10s %-38.38s %-10s", done, all, sample->probe,
            sample->pass, sample->shape, time_text);
    if (done >= all) fputc('\n', stderr);
    fflush(stderr);
}

static void show_warning(void *context, const char *text) {
    const struct job *job = context;
    job->context->note(job->context, "warning: %s", text);
}

static enum dl_code finish(struct job *job, struct dl_err *err) {
    struct dl_arena *arena = job->context->arena;
    struct dl_system profile;
    char *text;
    DL_TRY(add_old_samples(job, err));
    job->run.finished = dl_cal_time_text(arena);
    job->run.load_after = dl_load_average();
    DL_TRY(dl_cal_profile(&job->journal, &job->run, arena, &profile, err));
    DL_TRY(dl_cal_profile_text(&profile, job->profile_path, arena, &text, err));
    DL_TRY(dl_file_write(job->profile_path, text, strlen(text), err));
    if (strcmp(job->profile_path, "-") == 0) return DL_OK;
    const char *shown = job->format == DL_FORMAT_JSON ? text
                        : job->format == DL_FORMAT_CSV
                            ? dl_cal_samples_csv(&profile, arena)
                            : dl_cal_summary(&profile, job->profile_path, job->run.seconds, arena);
    return job->context->output(NULL, shown, err);
}

static enum dl_code measure(struct job *job, bool go_on, struct dl_err *err) {
    const double start = dl_clock_s();
    const struct dl_cal_progress progress = {job, show_sample, show_warning};
    struct dl_arena *arena = job->context->arena;
    DL_TRY(open_journal(job, go_on, err));
    dl_signals_begin();
    const struct dl_cal_job all = {.plan = &job->plan,
                                   .tools = &job->tools,
                                   .launch = job->plan.choice.nodes > 1 ? &job->launch : NULL,
                                   .journal = &job->journal,
                                   .progress = &progress};
    enum dl_code code = dl_cal_measure(&all, arena, err);
    dl_signals_end();
    job->run.seconds = dl_clock_s() - start;
    job->run.resumed = go_on;
    if (code == DL_OK) code = finish(job, err);
    /* A journal that cannot become a profile stays: --resume can complete it once the cause is
     * gone. */
    dl_cal_journal_close(&job->journal, code == DL_OK);
    return code;
}

/* At least one probe of --only must be able to run: the base samples alone are not what was
 * requested. */
static enum dl_code check_only(const struct job *job, struct dl_err *err) {
    const char *reason = NULL;
    for (int i = 0; job->plan.choice.only != NULL && dl_cal_probes[i].name != NULL; i++) {
        if (!dl_cal_chosen(&job->plan.choice, dl_cal_probes[i].name)) continue;
        if (job->tools.probes[i].unavailable == NULL) return DL_OK;
        reason = job->tools.probes[i].unavailable;
    }
    return reason == NULL
               ? DL_OK
               : dl_fail(err, DL_ERR_BACKEND, "--only %.100s: %s", job->plan.choice.only, reason);
}

static enum dl_code read_profile(const char *path, struct dl_arena *arena, struct dl_system *out,
                                 struct dl_err *err) {
    struct dl_json *doc;
    DL_TRY(dl_json_read(path, arena, &doc, err));
    DL_TRY(dl_json_load(doc, &dl_system_schema, arena, out, err));
    return dl_system_check(out, doc, err);
}

/* The current profile is the one that calibrate writes here; with -o, that file. */
static enum dl_code compare(struct job *job, struct dl_err *err) {
    struct dl_arena *arena = job->context->arena;
    struct dl_system before, now;
    int changed;
    DL_TRY(find_paths(job, err));
    DL_TRY(read_profile(dl_option_text(job->options, "compare"), arena, &before, err));
    if (access(job->profile_path, F_OK) != 0) {
        return dl_fail(
            err, DL_ERR_SYSTEM,
            "%.300s: no profile to compare with; run 'dlmodel calibrate' first, or give -o FILE",
            job->profile_path);
    }
    DL_TRY(read_profile(job->profile_path, arena, &now, err));
    const char *text = dl_cal_compare(&before, &now, job->format, arena, &changed);
    return job->context->output(NULL, text, err);
}

/* A profile needs the rate of a GEMM; fail before measuring for minutes. */
static enum dl_code check_possible(const struct job *job, struct dl_err *err) {
    bool gemm = false;
    for (size_t i = 0; i < job->plan.count; i++) {
        const struct dl_cal_point *p = &job->plan.points[i];
        const bool is_gemm = strcmp(p->probe, "gemm") == 0 || strcmp(p->probe, "matmul") == 0 ||
                             strcmp(p->probe, "gpu-gemm") == 0;
        gemm = gemm || (is_gemm && dl_cal_unavailable(&job->tools, p) == NULL);
    }
    if (gemm && job->plan.choice.nodes > 1 && job->tools.program[DL_CAL_PROGRAM_MPI] == NULL) {
        return dl_fail(err, DL_ERR_BACKEND,
                       "--nodes %lld: dlmodel-probe-mpi is missing: built without MPI (install "
                       "libopenmpi-dev and rebuild)",
                       (long long)job->plan.choice.nodes);
    }
    DL_TRY(check_only(job, err));
    if (gemm) return DL_OK;
    return dl_fail(err, DL_ERR_BACKEND, "no arithmetic probe can run here: %s",
                   job->tools.program[DL_CAL_PROGRAM_CPU] == NULL
                       ? "dlmodel-probe-cpu was not found; set DLMODEL_LIBEXEC to its directory"
                       : "dlmodel was built without OpenBLAS and oneDNN; install them with "
                         "'make deps' and rebuild");
}

/* A machine without a GPU or a build without CUDA is not an error, but deserves a note. */
static void note_gpus(const struct job *job) {
    if (job->plan.choice.gpus == 0 && !dl_option_given(job->options, "gpus") &&
        job->plan.choice.only == NULL)
        job->context->note(job->context, "no GPU is measured: %s",
                           dl_cal_unavailable_probe(&job->tools, "gpu-gemm"));
}

static enum dl_code calibrate(struct dl_context *context, const struct dl_options *options,
                              struct dl_err *err) {
    struct job job = {.context = context, .options = options, .journal = {.fd = -1}};
    bool go_on;
    DL_TRY(dl_output_format(options, &job.format, err));
    if (dl_option_given(options, "kernels"))
        return dl_cal_kernels(context, options, job.format, err);
    if (options->positional_count > 0)
        return dl_fail(err, DL_ERR_USAGE,
                       "unexpected argument '%.100s'; only --kernels takes files",
                       options->positional[0]);
    if (dl_option_given(options, "device"))
        return dl_fail(err, DL_ERR_USAGE,
                       "--device goes with --kernels; calibrate measures this machine");
    if (dl_option_given(options, "compare")) return compare(&job, err);
    dl_cal_host_read(context->arena, &job.run.host);
    job.identity = dl_arena_printf(context->arena, "%s, %s", job.run.host.name, job.run.host.cpu);
    if (dl_option_given(options, "list")) {
        DL_TRY(dl_cal_survey(context->program, context->arena, &job.tools, err));
        return context->output(NULL, dl_cal_probe_list(&job.tools, job.format, context->arena),
                               err);
    }
    if (dl_option_given(options, "submit")) {
        struct dl_cal_choice choice = {.budget_s = NAN, .nodes = 1};
        DL_TRY(dl_options_bind(options, calibrate_options, &choice, err));
        return dl_cal_submit(context, options, &choice, err);
    }
    DL_TRY(dl_cal_survey(context->program, context->arena, &job.tools, err));
    DL_TRY(prepare(&job, &go_on, err));
    note_gpus(&job);
    if (dl_option_given(options, "dry-run")) {
        return context->output(
            NULL, dl_cal_plan_text(&job.plan, &job.tools, &job.journal, job.format, context->arena),
            err);
    }
    if (job.plan.choice.nodes > 1)
        DL_TRY(dl_cal_launch_find(&job.plan.choice, &job.tools, context->arena, &job.launch, err));
    DL_TRY(check_possible(&job, err));
    return measure(&job, go_on, err);
}

const struct dl_command dl_cmd_calibrate = {
    .name = "calibrate",
    .summary = "measure this machine and write its profile",
    .usage = "[options]",
    .purpose =
        "Measures GEMMs, convolutions, memory bandwidth, MPI messages and file access on this "
        "node with probe programs, fits models to the samples, and writes the profile 'local', "
        "which predict uses by default. On a machine with GPUs, when dlmodel was built with CUDA, "
        "the GPUs are the devices: calibrate measures GEMMs, convolutions, normalization, "
        "attention and other layers in every precision that they support, the optimizer step, "
        "host-device copies, kernel launches, and NCCL and MPI transfers between them. --list "
        "shows which probes can run here and why the others cannot. With --nodes N, inside a "
        "Slurm or PBS allocation or with --hostfile, calibrate also measures the network: it "
        "tries every pair of nodes first, and names and drops a node that does not answer or is "
        "slow with every partner. Finished samples are kept in PROFILE.journal, so that --resume "
        "continues after Ctrl-C or a crash. The new profile replaces the old one only when it is "
        "complete.",
    .examples = examples,
    .options = tables,
    .run = calibrate,
};
