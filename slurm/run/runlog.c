/* runlog.c - see the header. A job may be killed during a write, or a disk may be full: every
 * complete line counts. */
#include "slurm/run/runlog.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/core/file.h"
#include "model/statistics/stats.h"
#include "model/core/text.h"

#define STRING(member, need, text)                                                                 \
    DL_FIELD(struct dl_runlog_line, member, STRING, .required = need, .help = text)
#define NUMBER(member, low, high, measure, text)                                                   \
    DL_FIELD(struct dl_runlog_line, member, NUMBER, DL_RANGE(low, high, measure), .help = text)
#define INTEGER(member, low, high, text)                                                           \
    DL_FIELD(struct dl_runlog_line, member, INTEGER, DL_RANGE(low, high, DL_UNIT_COUNT),           \
             .help = text)

static const struct dl_field line_fields[] = {
    STRING(event, true, "job, start, warmup, step, end, fail, look, watch, note or exit"),
    NUMBER(time_s, 0, 1e11, DL_UNIT_S, "seconds since 1970"),
    INTEGER(step, 0, 1e12, "number of the step, from 0, including warm-up"),
    NUMBER(step_s, 0, 1e6, DL_UNIT_S,
           "time of the step, on the slowest rank if ranks wait for each other"),
    NUMBER(samples_per_s, 0, 1e12, DL_UNIT_SAMPLE_PER_S, "throughput of the whole job"),
    NUMBER(cpu_s, 0, 1e9, DL_UNIT_S,
           "core time of the step over all threads of the process; the rest of a CPU's step is "
           "waiting"),
    NUMBER(core_s, 0, 1e3, DL_UNIT_S,
           "core time of a fixed GEMM after the step, which shows the speed of the core; in event "
           "end: "
           "the median"),
    NUMBER(load_s, 0, 1e6, DL_UNIT_S, "time of the step spent waiting for input"),
    NUMBER(peak_memory_bytes, 0, 1e15, DL_UNIT_BYTE, "per device, or per process on a CPU"),
    INTEGER(ranks, 1, 1e9, "training processes"),
    INTEGER(rank, 0, 1e9, "rank of the writer"),
    INTEGER(global_batch, 1, 1e9, "samples of all ranks per step"),
    INTEGER(threads, 1, 1e6, "threads per process"),
    INTEGER(parameters, 0, 1e15, "trainable parameters of the network as built"),
    INTEGER(status, -1, 1e6, "exit status"),
    STRING(job_id, false, "Slurm job id"),
    STRING(nodes, false, "nodes of the job"),
    STRING(node, false, "node of the writer"),
    STRING(text, false, "message"),
    STRING(framework, false, "mode of the benchmark program"),
    STRING(framework_version, false,
           "release of what synchronizes gradients: Horovod's, else the framework's"),
    STRING(network, false, "workload"),
    STRING(backend, false, "library that communicates the gradients"),
    STRING(precision, false, "arithmetic precision"),
    DL_FIELD(struct dl_runlog_line, versions, MAP,
             .count_offset = offsetof(struct dl_runlog_line, version_count),
             .help = "versions of the software"),
    NUMBER(load_average, 0, 1e6, DL_UNIT_NONE, "load average over the last minute"),
    NUMBER(others_frac, 0, 1, DL_UNIT_NONE,
           "share of the node's cores used by processes outside the job"),
    INTEGER(gpu_processes, 0, 1e6, "processes outside the job on the GPUs of the node"),
    NUMBER(clock_frac, 0, 2, DL_UNIT_NONE, "lowest GPU clock / its maximum"),
    NUMBER(free_memory_bytes, 0, 1e16, DL_UNIT_BYTE, "free memory of the node"),
    NUMBER(network_s, 0, 1e3, DL_UNIT_S, "round trip of a small TCP message to the first node"),
    NUMBER(write_bytes_per_s, 0, 1e14, DL_UNIT_BYTE_PER_S, "synced write to the folder of the run"),
    INTEGER(cores, 1, 1e6, "cores of the node"),
    {.key = NULL},
};
const struct dl_schema dl_runlog_schema = {.name = "dlmodel-runlog",
                                           .summary = "one line of a run's log",
                                           .size = sizeof(struct dl_runlog_line),
                                           .fields = line_fields};

static double larger(double a, double b) {
    return !dl_known(a) || b > a ? (dl_known(b) ? b : a) : a;
}
static double smaller(double a, double b) {
    return !dl_known(a) || b < a ? (dl_known(b) ? b : a) : a;
}

static const char *version_text(const struct dl_runlog_line *line, struct dl_arena *arena) {
    const char *text = "";
    for (int i = 0; i < line->version_count; i++) {
        text = dl_arena_printf(arena, "%s%s%s %s", text, i > 0 ? ", " : "", line->versions[i].key,
                               line->versions[i].text);
    }
    return text;
}

static void take_node(struct dl_runlog *log, const struct dl_runlog_line *line) {
    if (strcmp(line->event, "look") == 0) {
        log->looks++;
        log->load_before = larger(log->load_before, line->load_average);
        log->others_before_frac = larger(log->others_before_frac, line->others_frac);
        log->network_s = larger(log->network_s, line->network_s);
        log->write_bytes_per_s = smaller(log->write_bytes_per_s, line->write_bytes_per_s);
    } else {
        log->watches++;
        log->others_during_frac = larger(log->others_during_frac, line->others_frac);
    }
    log->clock_frac = smaller(log->clock_frac, line->clock_frac);
    if (line->gpu_processes != DL_ABSENT && line->gpu_processes > log->gpu_processes)
        log->gpu_processes = line->gpu_processes;
}

static void take(struct dl_runlog *log, const struct dl_runlog_line *line, struct dl_arena *arena) {
    const char *event = line->event;
    if (strcmp(event, "step") == 0 && dl_known(line->step_s) && line->step_s > 0) {
        if (line->core_s > 0) log->core_readings_s[log->core_reading_count++] = line->core_s;
        log->steps[log->step_count++] = line->step_s;
    } else if (strcmp(event, "warmup") == 0)
        log->warmup_count++;
    else if (strcmp(event, "look") == 0 || strcmp(event, "watch") == 0)
        take_node(log, line);
    else if (strcmp(event, "start") == 0) {
        /* an operator may requeue the job: only its last attempt counts */
        log->step_count = log->core_reading_count = log->warmup_count = 0;
        log->ended = false;
        log->started = true;
        log->ranks = line->ranks;
        log->global_batch = line->global_batch;
        log->versions = version_text(line, arena);
        log->framework_version = line->framework_version;
    } else if (strcmp(event, "end") == 0) {
        log->ended = true;
        log->peak_memory_bytes = larger(log->peak_memory_bytes, line->peak_memory_bytes);
        log->core_s = larger(log->core_s, line->core_s);
    } else if (strcmp(event, "fail") == 0) {
        /* the first failure causes the others */
        if (log->failure == NULL) log->failure = line->text;
    } else if (strcmp(event, "job") == 0) {
        log->job_id = line->job_id;
        log->nodes = line->nodes;
        log->exited = false; /* it began again */
        log->exit_status = DL_ABSENT;
    } else if (strcmp(event, "exit") == 0) {
        log->exited = true;
        log->exit_status = line->status;
    }
}

static enum dl_code read_file(const char *path, struct dl_arena *arena, struct dl_runlog *log,
                              struct dl_err *err) {
    enum { MAX_BYTES = 64 << 20 };
    char *text = NULL;
    size_t length = 0, lines = 1;
    DL_TRY(dl_file_read(path, MAX_BYTES, arena, &text, &length, err));
    for (size_t i = 0; i < length; i++) lines += text[i] == '\n';
    const size_t room = (size_t)log->step_count + lines;
    double *steps = dl_arena_alloc(arena, room, sizeof *steps),
           *cores = dl_arena_alloc(arena, room, sizeof *cores);
    if (log->step_count > 0) memcpy(steps, log->steps, (size_t)log->step_count * sizeof *steps);
    if (log->core_reading_count > 0)
        memcpy(cores, log->core_readings_s, (size_t)log->core_reading_count * sizeof *cores);
    log->steps = steps;
    log->core_readings_s = cores;
    for (size_t at = 0; at < length;) {
        const char *newline = memchr(text + at, '\n', length - at);
        const size_t end = newline != NULL ? (size_t)(newline - text) : length;
        struct dl_json *doc = NULL;
        struct dl_runlog_line line;
        struct dl_err bad = {0};
        if (end > at) {
            /* A number that was cut can still be a number: a line without its end is not trusted.
             */
            enum dl_code code = newline == NULL
                                    ? DL_ERR_INPUT
                                    : dl_json_parse(path, text + at, end - at, arena, &doc, &bad);
            if (code == DL_OK) code = dl_json_load(doc, &dl_runlog_schema, arena, &line, &bad);
            if (code == DL_ERR_SYSTEM) { /* the line may be sound */
                *err = bad;
                return code;
            }
            if (code == DL_OK)
                take(log, &line, arena);
            else
                log->damaged_lines++;
        }
        at = end + 1;
    }
    return DL_OK;
}

static int by_name(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

enum dl_code dl_runlog_read(const char *folder, struct dl_arena *arena, struct dl_runlog *log,
                            struct dl_err *err) {
    enum { MAX_FILES = 20000 };
    *log = (struct dl_runlog){.exit_status = DL_ABSENT,
                              .ranks = DL_ABSENT,
                              .global_batch = DL_ABSENT,
                              .peak_memory_bytes = NAN,
                              .core_s = NAN,
                              .load_before = NAN,
                              .others_before_frac = NAN,
                              .others_during_frac = NAN,
                              .clock_frac = NAN,
                              .network_s = NAN,
                              .write_bytes_per_s = NAN,
                              .versions = ""};
    DIR *dir = opendir(folder);
    if (dir == NULL)
        return dl_fail(err, DL_ERR_INPUT, "%.400s: cannot open: %s", folder, strerror(errno));
    const char **names = dl_arena_alloc(arena, MAX_FILES, sizeof *names);
    for (const struct dirent *entry = readdir(dir); entry != NULL && log->files < MAX_FILES;
         entry = readdir(dir)) {
        if (!dl_ends_in(entry->d_name, ".jsonl") || entry->d_name[0] == '.') continue;
        names[log->files++] = dl_arena_strdup(arena, entry->d_name);
    }
    closedir(dir);
    qsort(names, (size_t)log->files, sizeof *names, by_name);
    for (int i = 0; i < log->files; i++) {
        const char *path = dl_arena_printf(arena, "%s/%s", folder, names[i]);
        DL_TRY(read_file(path, arena, log, err));
    }
    return DL_OK;
}

void dl_run_summarize(const double *steps, int count, struct dl_arena *arena,
                      struct dl_run_summary *out) {
    *out = (struct dl_run_summary){.median_s = NAN,
                                   .quartile_s = NAN,
                                   .mean_s = NAN,
                                   .low_s = NAN,
                                   .high_s = NAN,
                                   .mad_s = NAN};
    double *sorted = dl_arena_alloc(arena, (size_t)count + 1, sizeof *sorted),
           *away = dl_arena_alloc(arena, (size_t)count + 1, sizeof *away);
    if (count < 1) return;
    memcpy(sorted, steps, (size_t)count * sizeof *sorted);
    dl_sort(sorted, (size_t)count);
    const double middle = dl_quantile_sorted(sorted, (size_t)count, 0.5);
    for (int i = 0; i < count; i++) away[i] = fabs(sorted[i] - middle);
    dl_sort(away, (size_t)count);
    out->mad_s = dl_quantile_sorted(away, (size_t)count, 0.5);
    /* Equal steps have no deviation: keep all. */
    const double limit = out->mad_s > 0 ? 3.5 * 1.4826 * out->mad_s : (double)INFINITY;
    double sum = 0;
    int first = -1, last = -1;
    for (int i = 0; i < count; i++) {
        if (fabs(sorted[i] - middle) > limit) continue;
        if (first < 0) first = i;
        last = i;
        sum += sorted[i];
    }
    out->kept = last - first + 1;
    out->outliers = count - out->kept;
    out->low_s = sorted[first];
    out->high_s = sorted[last];
    out->mean_s = sum / out->kept;
    out->median_s = dl_quantile_sorted(sorted + first, (size_t)out->kept, 0.5);
    out->quartile_s = sorted[first + (out->kept - 1) / 4];
}

void dl_runlog_summarize(const struct dl_runlog *log, struct dl_arena *arena,
                         struct dl_run_summary *out, int *cold) {
    double *scratch = dl_arena_alloc(arena, (size_t)log->step_count + 1, sizeof *scratch);
    *cold = (int)dl_warmup_samples(log->steps, (size_t)log->step_count, scratch);
    dl_run_summarize(log->steps + *cold, log->step_count - *cold, arena, out);
}

/* 90th percentile of the readings of the core's speed by the 10th; 1 where they are too few. */
static double core_spread(const struct dl_runlog *log, struct dl_arena *arena) {
    enum { FEWEST = 8 };
    const int count = log->core_reading_count;
    double *sorted = count < FEWEST ? NULL : dl_arena_alloc(arena, (size_t)count, sizeof *sorted);
    if (sorted == NULL) return 1;
    memcpy(sorted, log->core_readings_s, (size_t)count * sizeof *sorted);
    dl_sort(sorted, (size_t)count);
    return sorted[(count - 1) * 9 / 10] / sorted[(count - 1) / 10];
}

const char *dl_runlog_disturbance(const struct dl_runlog *log, struct dl_arena *arena) {
    /* share of the node's cores: above what daemons and the monitor itself use */
    enum { NOTICEABLE_PCT = 5 };
    const char *text = NULL;
    if (log->gpu_processes > 0)
        text = dl_arena_printf(arena, "%d processes of other jobs on the GPUs",
                               (int)log->gpu_processes);
    const struct {
        const char *when;
        double frac;
    } used[] = {{"before", log->others_before_frac}, {"during", log->others_during_frac}};
    for (int i = 0; i < 2; i++) {
        if (!(100 * used[i].frac > NOTICEABLE_PCT)) continue;
        text = dl_arena_printf(
            arena, "%s%sother processes used %.0f %% of a node's cores %s the run",
            text != NULL ? text : "", text != NULL ? "; " : "", 100 * used[i].frac, used[i].when);
    }
    /* readings on an otherwise idle core differ by up to 15 % */
    static const double STEADY = 1.3;
    const double spread = core_spread(log, arena);
    if (spread > STEADY) {
        text = dl_arena_printf(
            arena,
            "%s%sthe speed of the core changed by a factor of %.2g (other guests of "
            "the machine, or its clock)",
            text != NULL ? text : "", text != NULL ? "; " : "", spread);
    }
    if (log->clock_frac < 0.9) {
        text = dl_arena_printf(arena, "%s%sGPU clock at %.0f %% of its maximum",
                               text != NULL ? text : "", text != NULL ? "; " : "",
                               100 * log->clock_frac);
    }
    return text;
}
