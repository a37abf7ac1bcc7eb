/* cal_journal.c - see the header. */
#include "calibrate/run/cal_journal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "model/core/file.h"

#define STRING(type_, member, need, text)                                                          \
    {                                                                                              \
        .key = #member, .type = DL_FIELD_STRING, .offset = offsetof(type_, member),                \
        .required = need, .help = text                                                             \
    }

static const struct dl_field header_fields[] = {
    STRING(struct dl_cal_header, plan, true, "hash of the plan"),
    STRING(struct dl_cal_header, host, true, "host name and CPU"),
    STRING(struct dl_cal_header, started, true, "date and time"),
    STRING(struct dl_cal_header, load, false, "load average before the first sample"),
    STRING(struct dl_cal_header, only, false, "--only"),
    STRING(struct dl_cal_header, file_dir, false, "--file-dir"),
    DL_FIELD(struct dl_cal_header, ranks, INTEGER, .min = 1, .max = 1e6, .required = true,
             .help = "--ranks"),
    STRING(struct dl_cal_header, hostfile, false, "--hostfile"),
    STRING(struct dl_cal_header, launcher, false, "--launcher"),
    DL_FIELD(struct dl_cal_header, nodes, INTEGER, .min = 1, .max = 1e6, .help = "--nodes"),
    DL_FIELD(struct dl_cal_header, cores, INTEGER, .min = 1, .max = 4096, .help = "--cores"),
    DL_FIELD(struct dl_cal_header, virtual_nodes, INTEGER, .min = 1, .max = 1e4,
             .help = "--virtual-nodes"),
    STRING(struct dl_cal_header, workload, false, "--workload"),
    DL_FIELD(struct dl_cal_header, gpus, INTEGER, .min = 0, .max = 1e6,
             .help = "devices of the plan"),
    DL_FIELD(struct dl_cal_header, capability, INTEGER, .min = 0, .max = 1e4,
             .help = "their compute capability, times 10"),
    DL_FIELD(struct dl_cal_header, budget_s, NUMBER, .min = 0, .max = 1e7, .required = true,
             .help = "--budget"),
    DL_FIELD(struct dl_cal_header, quick, BOOL, .help = "--quick"),
    {.key = NULL},
};
static const struct dl_schema header_schema = {.name = "journal header",
                                               .summary = "origin and options of the journal",
                                               .size = sizeof(struct dl_cal_header),
                                               .fields = header_fields};

static const struct dl_field fact_fields[] = {
    STRING(struct dl_cal_fact, key, true, "name"),
    STRING(struct dl_cal_fact, value, true, "text"),
    {.key = NULL},
};
static const struct dl_schema fact_schema = {.name = "fact",
                                             .summary = "fact of a library or machine",
                                             .size = sizeof(struct dl_cal_fact),
                                             .fields = fact_fields};

static const struct dl_field report_fields[] = {
    STRING(struct dl_cal_report, name, true, "name of the probe"),
    STRING(struct dl_cal_report, unavailable, false, "why it cannot run"),
    {.key = NULL},
};
static const struct dl_schema report_schema = {.name = "probe",
                                               .summary = "whether a probe can run",
                                               .size = sizeof(struct dl_cal_report),
                                               .fields = report_fields};

#define OBJECT(member, schema, text)                                                               \
    {                                                                                              \
        .key = #member, .type = DL_FIELD_OBJECT, .offset = offsetof(struct dl_cal_line, member),   \
        .count_offset = offsetof(struct dl_cal_line, has_##member), .child = schema, .help = text  \
    }
static const struct dl_field line_fields[] = {
    OBJECT(header, &header_schema, "first line of a journal"),
    OBJECT(sample, &dl_raw_sample_schema, "a finished sample"),
    OBJECT(fact, &fact_schema, "a fact of a library or machine"),
    OBJECT(probe, &report_schema, "whether a probe can run"),
    OBJECT(skipped, &report_schema, "a point that this machine cannot run"),
    {.key = NULL},
};
static const struct dl_schema line_schema = {.name = "journal line",
                                             .summary = "a line of a journal or of a probe",
                                             .size = sizeof(struct dl_cal_line),
                                             .fields = line_fields};

enum { MAX_BYTES = 16 << 20 };

enum dl_code dl_cal_line_parse(const char *name, int line_number, const char *text, size_t length,
                               struct dl_arena *arena, struct dl_cal_line *out,
                               struct dl_err *err) {
    struct dl_json *doc = NULL;
    struct dl_err inner = {0};
    enum dl_code code = dl_json_parse(name, text, length, arena, &doc, &inner);
    if (code == DL_OK) code = dl_json_load(doc, &line_schema, arena, out, &inner);
    if (code == DL_OK) {
        const int members =
            out->has_header + out->has_sample + out->has_fact + out->has_probe + out->has_skipped;
        if (members == 1 && (!out->has_sample || out->sample.median_s > 0)) return DL_OK;
        return dl_fail_at(err, name, line_number, 1, NULL,
                          "expected a header, a sample with a time, or a fact");
    }
    if (code == DL_ERR_INPUT)
        return dl_fail_at(err, name, line_number, inner.col, inner.key, "%s", inner.message);
    if (err != NULL) *err = inner;
    return code;
}

static void keep_sample(struct dl_cal_journal *j, const struct dl_raw_sample *sample,
                        struct dl_arena *arena) {
    j->samples = dl_arena_grow(arena, j->samples, j->sample_count, sizeof *j->samples);
    j->samples[j->sample_count++] = *sample;
}

static void keep_fact(struct dl_cal_journal *j, const char *key, const char *value,
                      struct dl_arena *arena) {
    for (size_t i = 0; i < j->fact_count; i++) {
        if (strcmp(j->facts[i].key, key) != 0) continue;
        j->facts[i].value = dl_arena_strdup(arena, value);
        return;
    }
    j->facts = dl_arena_grow(arena, j->facts, j->fact_count, sizeof *j->facts);
    j->facts[j->fact_count++] =
        (struct dl_cal_fact){dl_arena_strdup(arena, key), dl_arena_strdup(arena, value)};
}

static enum dl_code keep_line(struct dl_cal_journal *j, const struct dl_cal_line *line, int number,
                              struct dl_arena *arena, struct dl_err *err) {
    if ((number == 1) != line->has_header || line->has_probe || line->has_skipped) {
        return dl_fail_at(err, j->path, number, 1, NULL, "%s",
                          number == 1 ? "expected the header of a journal"
                                      : "expected a sample or a fact");
    }
    if (line->has_header) j->header = line->header;
    if (line->has_sample) {
        keep_sample(j, &line->sample, arena);
        return DL_OK;
    }
    if (line->has_fact) {
        keep_fact(j, line->fact.key, line->fact.value, arena);
        return DL_OK;
    }
    return DL_OK;
}

enum dl_code dl_cal_journal_read(const char *path, struct dl_arena *arena,
                                 struct dl_cal_journal *out, struct dl_err *err) {
    char *text;
    size_t length;
    int number = 0;
    *out = (struct dl_cal_journal){.path = path, .fd = -1};
    DL_TRY(dl_file_read(path, MAX_BYTES, arena, &text, &length, err));
    for (size_t at = 0; at < length;) {
        const char *newline = memchr(text + at, '\n', length - at);
        if (newline == NULL) break;
        const size_t size = (size_t)(newline - text) - at;
        struct dl_cal_line line;
        number++;
        DL_TRY(dl_cal_line_parse(path, number, text + at, size, arena, &line, err));
        DL_TRY(keep_line(out, &line, number, arena, err));
        at += size + 1;
        out->good_bytes = at;
    }
    if (number == 0)
        return dl_fail_at(err, path, 0, 0, NULL, "the journal is empty; start without --resume");
    return DL_OK;
}

static enum dl_code failed(const struct dl_cal_journal *j, const char *what, struct dl_err *err) {
    return dl_fail(err, DL_ERR_SYSTEM, "%.400s: cannot %s the journal: %s", j->path, what,
                   strerror(errno));
}

/* The kernel releases the lock when the process ends. */
static enum dl_code open_locked(struct dl_cal_journal *j, struct dl_err *err) {
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    j->fd = open(j->path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (j->fd < 0) return failed(j, "open", err);
    if (fcntl(j->fd, F_SETLK, &lock) == 0) return DL_OK;
    const bool busy = errno == EACCES || errno == EAGAIN;
    const enum dl_code code =
        busy
            ? dl_fail(err, DL_ERR_SYSTEM,
                      "%.400s: another calibration is writing this journal; wait for it or stop it",
                      j->path)
            : failed(j, "lock", err);
    close(j->fd);
    j->fd = -1;
    return code;
}

static enum dl_code append(struct dl_cal_journal *j, const char *text, size_t length,
                           struct dl_err *err) {
    for (size_t done = 0; done < length;) {
        const ssize_t put = write(j->fd, text + done, length - done);
        if (put < 0 && errno == EINTR) continue;
        if (put <= 0) return failed(j, "write", err);
        done += (size_t)put;
    }
    if (fsync(j->fd) != 0 && errno != EINVAL && errno != ENOTSUP) return failed(j, "sync", err);
    j->good_bytes += length;
    return DL_OK;
}

static enum dl_code append_line(struct dl_cal_journal *j, struct dl_json_writer *w,
                                struct dl_err *err) {
    const char *line = dl_arena_printf(w->arena, "%s\n", w->text);
    return append(j, line, strlen(line), err);
}

static void text_member(struct dl_json_writer *w, const char *key, const char *value) {
    if (value != NULL) dl_jw_string(w, key, value);
}

static void number_member(struct dl_json_writer *w, const char *key, double value) {
    if (dl_known(value)) dl_jw_number(w, key, value);
}

static void count_member(struct dl_json_writer *w, const char *key, int64_t value) {
    if (value != DL_ABSENT) dl_jw_integer(w, key, value);
}

enum dl_code dl_cal_journal_create(const char *path, const struct dl_cal_header *header,
                                   struct dl_arena *arena, struct dl_cal_journal *out,
                                   struct dl_err *err) {
    *out = (struct dl_cal_journal){.path = path, .fd = -1, .header = *header};
    DL_TRY(open_locked(out, err));
    if (ftruncate(out->fd, 0) != 0) return failed(out, "empty", err);
    struct dl_json_writer w;
    dl_jw_init(&w, arena, true);
    dl_jw_object(&w, NULL);
    dl_jw_object(&w, "header");
    dl_jw_string(&w, "plan", header->plan);
    dl_jw_string(&w, "host", header->host);
    dl_jw_string(&w, "started", header->started);
    text_member(&w, "load", header->load);
    text_member(&w, "only", header->only);
    text_member(&w, "file_dir", header->file_dir);
    text_member(&w, "hostfile", header->hostfile);
    text_member(&w, "launcher", header->launcher);
    text_member(&w, "workload", header->workload);
    if (header->gpus > 0) dl_jw_integer(&w, "gpus", header->gpus);
    if (header->gpus > 0) dl_jw_integer(&w, "capability", header->capability);
    dl_jw_integer(&w, "ranks", header->ranks);
    if (header->nodes > 1) dl_jw_integer(&w, "nodes", header->nodes);
    if (header->cores > 0) dl_jw_integer(&w, "cores", header->cores);
    if (header->virtual_nodes > 0) dl_jw_integer(&w, "virtual_nodes", header->virtual_nodes);
    dl_jw_number(&w, "budget_s", header->budget_s);
    dl_jw_bool(&w, "quick", header->quick);
    dl_jw_end(&w);
    dl_jw_end(&w);
    return append_line(out, &w, err);
}

enum dl_code dl_cal_journal_continue(struct dl_cal_journal *journal, struct dl_err *err) {
    DL_TRY(open_locked(journal, err));
    if (ftruncate(journal->fd, (off_t)journal->good_bytes) != 0) return failed(journal, "cut", err);
    if (lseek(journal->fd, 0, SEEK_END) < 0) return failed(journal, "position", err);
    return DL_OK;
}

enum dl_code dl_cal_journal_sample(struct dl_cal_journal *journal,
                                   const struct dl_raw_sample *sample, struct dl_arena *arena,
                                   struct dl_err *err) {
    struct dl_json_writer w;
    dl_jw_init(&w, arena, true);
    dl_jw_object(&w, NULL);
    dl_jw_object(&w, "sample");
    dl_jw_string(&w, "probe", sample->probe);
    dl_jw_string(&w, "shape", sample->shape);
    text_member(&w, "pass", sample->pass);
    text_member(&w, "precision", sample->precision);
    text_member(&w, "implementation", sample->implementation);
    dl_jw_number(&w, "median_s", sample->median_s);
    dl_jw_number(&w, "low_s", sample->low_s);
    dl_jw_number(&w, "high_s", sample->high_s);
    if (sample->clock_hz > 0) dl_jw_number(&w, "clock_hz", sample->clock_hz);
    if (sample->power_w > 0) dl_jw_number(&w, "power_w", sample->power_w);
    number_member(&w, "min_s", sample->min_s);
    number_member(&w, "drift_frac", sample->drift_frac);
    number_member(&w, "load_average", sample->load_average);
    count_member(&w, "repeats", sample->repeats);
    count_member(&w, "outliers", sample->outliers);
    count_member(&w, "preempted", sample->preempted);
    dl_jw_end(&w);
    dl_jw_end(&w);
    DL_TRY(append_line(journal, &w, err));
    keep_sample(journal, sample, arena);
    return DL_OK;
}

enum dl_code dl_cal_journal_fact(struct dl_cal_journal *journal, const char *key, const char *value,
                                 struct dl_arena *arena, struct dl_err *err) {
    const char *known = dl_cal_journal_find(journal, key);
    if (known != NULL && strcmp(known, value) == 0) return DL_OK;
    struct dl_json_writer w;
    dl_jw_init(&w, arena, true);
    dl_jw_object(&w, NULL);
    dl_jw_object(&w, "fact");
    dl_jw_string(&w, "key", key);
    dl_jw_string(&w, "value", value);
    dl_jw_end(&w);
    dl_jw_end(&w);
    DL_TRY(append_line(journal, &w, err));
    keep_fact(journal, key, value, arena);
    return DL_OK;
}

static bool same(const char *a, const char *b) {
    return a != NULL && b != NULL && strcmp(a, b) == 0;
}

bool dl_cal_journal_has(const struct dl_cal_journal *journal, const struct dl_cal_point *point) {
    for (size_t i = 0; i < journal->sample_count; i++) {
        const struct dl_raw_sample *s = &journal->samples[i];
        if (same(s->probe, point->probe) && same(s->shape, point->shape) &&
            same(s->pass, point->pass))
            return true;
    }
    return false;
}

const char *dl_cal_journal_find(const struct dl_cal_journal *journal, const char *key) {
    for (size_t i = 0; i < journal->fact_count; i++) {
        if (strcmp(journal->facts[i].key, key) == 0) return journal->facts[i].value;
    }
    return NULL;
}

void dl_cal_journal_close(struct dl_cal_journal *journal, bool remove_file) {
    if (remove_file) unlink(journal->path);
    if (journal->fd >= 0) close(journal->fd);
    journal->fd = -1;
}
