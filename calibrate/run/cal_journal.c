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

#define CHOICE(member, type_, ...)                                                                 \
    DL_FIELD_IN(struct dl_cal_header, choice, member, type_, __VA_ARGS__)
static const struct dl_field header_fields[] = {
    STRING(struct dl_cal_header, plan, true, "hash of the plan"),
    STRING(struct dl_cal_header, host, true, "host name and CPU"),
    STRING(struct dl_cal_header, started, true, "date and time"),
    STRING(struct dl_cal_header, load, false, "load average before the first sample"),
    CHOICE(only, STRING, .help = "--only"),
    CHOICE(file_dir, STRING, .help = "--file-dir"),
    CHOICE(ranks, INTEGER, .min = 1, .max = 1e6, .required = true, .help = "--ranks"),
    CHOICE(hostfile, STRING, .help = "--hostfile"),
    CHOICE(launcher, STRING, .help = "--launcher"),
    CHOICE(nodes, INTEGER, .min = 1, .max = 1e6, .has_fallback = true, .fallback = 1,
           .help = "--nodes"),
    CHOICE(cores, INTEGER, .max = 4096, .has_fallback = true, .help = "--cores"),
    CHOICE(virtual_nodes, INTEGER, .max = 1e4, .has_fallback = true, .help = "--virtual-nodes"),
    {.key = "workload",
     .type = DL_FIELD_STRING,
     .offset = offsetof(struct dl_cal_header, choice.workload_name),
     .help = "--workload"},
    CHOICE(gpus, INTEGER, .max = 1e6, .has_fallback = true, .help = "devices of the plan"),
    CHOICE(capability, INTEGER, .max = 1e4, .has_fallback = true,
           .help = "their compute capability, times 10"),
    CHOICE(budget_s, NUMBER, .min = 0, .max = 1e7, .required = true, .help = "--budget"),
    CHOICE(quick, BOOL, .help = "--quick"),
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
    if (line->has_sample) keep_sample(j, &line->sample, arena);
    if (line->has_fact) keep_fact(j, line->fact.key, line->fact.value, arena);
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

static enum dl_code append_line(struct dl_cal_journal *j, const struct dl_cal_line *line,
                                struct dl_arena *arena, struct dl_err *err) {
    const char *text = dl_json_line(&line_schema, line, arena);
    return append(j, text, strlen(text), err);
}

enum dl_code dl_cal_journal_create(const char *path, const struct dl_cal_header *header,
                                   struct dl_arena *arena, struct dl_cal_journal *out,
                                   struct dl_err *err) {
    *out = (struct dl_cal_journal){.path = path, .fd = -1, .header = *header};
    DL_TRY(open_locked(out, err));
    if (ftruncate(out->fd, 0) != 0) return failed(out, "empty", err);
    return append_line(out, &(struct dl_cal_line){.header = *header, .has_header = true}, arena,
                       err);
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
    DL_TRY(append_line(journal, &(struct dl_cal_line){.sample = *sample, .has_sample = true}, arena,
                       err));
    keep_sample(journal, sample, arena);
    return DL_OK;
}

enum dl_code dl_cal_journal_fact(struct dl_cal_journal *journal, const char *key, const char *value,
                                 struct dl_arena *arena, struct dl_err *err) {
    const char *known = dl_cal_journal_find(journal, key);
    if (known != NULL && strcmp(known, value) == 0) return DL_OK;
    DL_TRY(append_line(journal, &(struct dl_cal_line){.fact = {key, value}, .has_fact = true},
                       arena, err));
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
