/* import_nccl.c - printed output of nccl-tests (2.0 to 2.17): a header of comments, then a table
 * with a time out of place and one in place. Columns are found by name, because they differ
 * between releases and collectives. Several runs in one file are read. Format: the tool's own
 * output (NVIDIA/nccl-tests, src/common.cu). */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/network/coll_match.h"
#include "import/import_nccl.h"

static const struct {
    const char *name;
    enum dl_collective_op op;
} operations[] = {
    {"all_reduce", DL_COLL_ALL_REDUCE},
    {"all_gather", DL_COLL_ALL_GATHER},
    {"reduce_scatter", DL_COLL_REDUCE_SCATTER},
    {"alltoall", DL_COLL_ALL_TO_ALL},
    {"broadcast", DL_COLL_BROADCAST},
    {"sendrecv", DL_COLL_P2P},
    {"gather", DL_COLL_GATHER},
    {"scatter", DL_COLL_SCATTER},
    {"reduce", DL_COLL_REDUCE},
};

const char dl_nccl_cpu_times[] =
    "the times are those of the CPU (option -C 1), not of the collective: run the test without it";

/* The end of "2026-05-04", "12:30:00.123Z" or both in one, at `at`; NULL: no such word is here. */
static const char *clock_end(const char *at, const char *stop) {
    const char *end = at;
    int digits = 0, marks = 0;
    for (; end < stop && strchr(" \t", *end) == NULL; end++) {
        digits += *end >= '0' && *end <= '9';
        marks += *end == ':' || *end == '-';
        if (strchr("0123456789:-.,TZ+", *end) == NULL) return NULL;
    }
    return digits >= 6 && marks >= 2 && *at >= '0' && *at <= '9' ? end : NULL;
}

/* "12: " and " 3:#" of srun --label */
static const char *past_number(const char *at, const char *stop) {
    const char *label = at;
    while (label < stop && (*label == ' ' || (*label >= '0' && *label <= '9'))) label++;
    const bool number = label > at && label < stop && *label == ':';
    return number && (label + 1 == stop || label[1] == ' ' || label[1] == '#') ? label + 1 : at;
}

/* "[1,0]<stdout>:", "[2026-05-04 12:30:00] " */
static const char *past_bracket(const char *word, const char *stop) {
    if (word == stop || *word != '[') return word;
    const char *tag = memchr(word, ':', (size_t)(stop - word)),
               *close = memchr(word, ']', (size_t)(stop - word));
    if (tag != NULL && tag[-1] == '>') return tag + 1;
    return close != NULL && close + 1 < stop && close[1] == ' ' ? close + 1 : word;
}

/* "node1: " before a comment or a size */
static const char *past_host(const char *word, const char *stop) {
    const char *end = word;
    while (end < stop && strchr(": \t#", *end) == NULL) end++;
    if (end == word || end + 1 >= stop || *end != ':' || end[1] != ' ') return word;
    const char *next = end + 1;
    while (next < stop && *next == ' ') next++;
    return next < stop && (*next == '#' || (*next >= '0' && *next <= '9')) ? end + 1 : word;
}

/* The position after one prefix at `at`; `at` itself where there is no prefix. */
static const char *past_prefix(const char *at, const char *stop) {
    const char *next = past_number(at, stop), *word = at;
    if (next != at) return next;
    while (word < stop && *word == ' ') word++;
    const char *clock = clock_end(word, stop);
    if (clock != NULL) return clock;
    next = past_bracket(word, stop);
    if (next == word) next = past_host(word, stop);
    return next == word ? at : next;
}

const char *dl_bench_line(struct dl_bench_lines *l, struct dl_arena *arena) {
    if (l->at >= l->end) return NULL;
    const char *stop = memchr(l->at, '\n', (size_t)(l->end - l->at));
    if (stop == NULL) stop = l->end;
    const char *from = l->at;
    l->at = stop < l->end ? stop + 1 : stop;
    l->line++;
    for (const char *next; (next = past_prefix(from, stop)) != from;) from = next;
    char *copy = dl_arena_strndup(arena, from, (size_t)(stop - from));
    for (char *at = copy; *at != 0; at++)
        if (*at == '\r' || *at == '\t') *at = ' ';
    return copy;
}

int dl_bench_tokens(char *line, char **tokens) {
    int count = 0;
    for (char *at = line; *at != 0;) {
        at += strspn(at, " ");
        if (*at == 0) break;
        if (count < DL_BENCH_TOKENS) tokens[count] = at;
        count++;
        at += strcspn(at, " ");
        if (*at != 0) *at++ = 0;
    }
    return count;
}

bool dl_bench_number(const char *token, double *out) {
    char *end;
    if (token[0] == 0 || token[strspn(token, "0123456789.eE+-")] != 0) return false;
    *out = strtod(token, &end);
    return *end == 0 && isfinite(*out) && *out >= 0;
}

struct dl_bench_row *dl_bench_add(struct dl_bench *b) {
    b->rows = dl_arena_grow(b->arena, b->rows, (size_t)b->count, sizeof *b->rows);
    return &b->rows[b->count++];
}

/* "all_reduce_perf" in a line; longer names are listed before those that end them. */
int dl_nccl_operation(const char *text) {
    const char *at = strstr(text, "_perf");
    for (; at != NULL; at = strstr(at + 1, "_perf")) {
        for (size_t i = 0; i < sizeof operations / sizeof *operations; i++) {
            const size_t length = strlen(operations[i].name);
            if ((size_t)(at - text) >= length &&
                strncmp(at - length, operations[i].name, length) == 0)
                return (int)operations[i].op;
        }
    }
    return -1;
}

void dl_nccl_add_host(struct dl_nccl_reader *r, const char *host) {
    for (int64_t i = 0; i < r->host_count; i++)
        if (strcmp(r->hosts[i], host) == 0) return;
    if (r->host_count < DL_NCCL_HOSTS_MAX) r->hosts[r->host_count++] = host;
}

/* "Rank  0 Group  0 Pid 1234 on  node1 device  0 [0x07] NVIDIA A100-SXM4-40GB" */
static enum dl_code read_rank(struct dl_nccl_reader *r, const char *text) {
    struct dl_arena *arena = r->out->arena;
    const char *on = strstr(text, " on "), *device = strstr(text, " device "),
               *bracket = strrchr(text, ']');
    r->ranks++;
    if (on == NULL || device == NULL || device < on) return DL_OK;
    on += strspn(on + 4, " ") + 4;
    dl_nccl_add_host(r, dl_arena_strndup(arena, on, strcspn(on, " ")));
    if (bracket == NULL || bracket < device) return DL_OK;
    const char *name = bracket + 1 + strspn(bracket + 1, " ");
    size_t length = strlen(name);
    while (length > 0 && name[length - 1] == ' ') length--;
    r->device = dl_arena_strndup(arena, name, length);
    return DL_OK;
}

static void read_header(struct dl_nccl_reader *r, char **tokens, int count) {
    struct dl_nccl_columns c = {.count = count,
                                .size = -1,
                                .type = -1,
                                .time = {-1, -1},
                                .alg = {-1, -1},
                                .bus = {-1, -1},
                                .wrong = {-1, -1}};
    int times = 0;
    for (int i = 0; i < count && i < DL_BENCH_TOKENS; i++) {
        const int last = times > 0 ? times - 1 : 0;
        if (strcmp(tokens[i], "size") == 0) c.size = i;
        if (strcmp(tokens[i], "type") == 0) c.type = i;
        const bool of_cpu = strcmp(tokens[i], "cputime") == 0;
        c.of_cpu = c.of_cpu || of_cpu;
        c.clock = c.clock || strcmp(tokens[i], "timestamp") == 0;
        if ((of_cpu || strcmp(tokens[i], "time") == 0) && times < 2) c.time[times++] = i;
        if (strcmp(tokens[i], "algbw") == 0) c.alg[last] = i;
        if (strcmp(tokens[i], "busbw") == 0) c.bus[last] = i;
        if (strcmp(tokens[i], "#wrong") == 0 || strcmp(tokens[i], "error") == 0) c.wrong[last] = i;
    }
    if (c.size >= 0 && c.time[0] >= 0) r->columns = c;
}

/* Before 2.9 in steps of 100. */
const char *dl_nccl_version(struct dl_arena *arena, double code) {
    if (!(code >= 1000 && code <= 1000000)) return NULL;
    const int number = (int)code, major = number >= 10000 ? 10000 : 1000;
    return dl_arena_printf(arena, "%d.%d.%d", number / major, number % major / 100, number % 100);
}

/* "nccl-library=22805" */
static void read_library(struct dl_nccl_reader *r, const char *line) {
    static const char key[] = "nccl-library=";
    const char *at = strstr(line, key);
    if (strstr(line, "rccl-tests") != NULL) r->library = "rccl";
    if (at == NULL || r->version != NULL) return;
    r->version = dl_nccl_version(r->out->arena, (double)strtol(at + sizeof key - 1, NULL, 10));
}

static enum dl_code read_comment(struct dl_nccl_reader *r, char *line) {
    char *tokens[DL_BENCH_TOKENS];
    char *text = line + 1 + strspn(line + 1, " #");
    const int op = dl_nccl_operation(text);
    const char *version = strstr(line, "NCCL version ");
    if (op >= 0) r->op = op;
    if (version != NULL) {
        if (version > line && version[-1] == 'R') r->library = "rccl";
        version += strlen("NCCL version ");
        r->version = dl_arena_strndup(r->out->arena, version + strspn(version, ": "),
                                      strcspn(version + strspn(version, ": "), " +-"));
    }
    read_library(r, line);
    if (strncmp(text, "nThread", 7) == 0) { /* another run */
        r->ranks = r->host_count = 0;
        r->columns.count = 0;
    }
    if (strncmp(text, "Rank ", 5) == 0) return read_rank(r, text);
    if (strncmp(text, "size ", 5) == 0) {
        const int count = dl_bench_tokens(text, tokens);
        read_header(r, tokens, count);
    }
    return DL_OK;
}

enum dl_code dl_nccl_bad(const struct dl_nccl_reader *r, const char *key, const char *message,
                         const char *found) {
    return dl_fail_at(r->err, r->name, r->line, 1, key, "%s%s%.40s%s", message,
                      found != NULL ? ", found \"" : "", found != NULL ? found : "",
                      found != NULL ? "\"" : "");
}

/* The ratio of bus bandwidth to algorithm bandwidth depends on ranks and collective: it exposes
 * a wrong guess. */
static enum dl_code check_factor(const struct dl_nccl_reader *r, const struct dl_bench_row *row) {
    const double expected =
        dl_collective_bus_factor((enum dl_collective_op)row->op, (double)row->ranks);
    const double found = row->bus_bytes_per_s / row->alg_bytes_per_s;
    if (!(row->alg_bytes_per_s >= 1e9) || (fabs(found - expected) <= 0.03 * expected)) return DL_OK;
    /* the tool counts (n-1)/n there */
    if (row->op == DL_COLL_GATHER || row->op == DL_COLL_SCATTER) return DL_OK;
    return dl_fail_at(
        r->err, r->name, r->line, 1, "busbw",
        "bus bandwidth is %.3g times the algorithm bandwidth, but %s of %lld ranks has %.3g; "
        "give --collective or --ranks",
        found, dl_collective_op_names[row->op], (long long)row->ranks, expected);
}

/* Facts of the run that the output or the options must provide. */
static enum dl_code check_run(const struct dl_nccl_reader *r, const struct dl_bench_row *row) {
    if (row->op < 0)
        return dl_nccl_bad(r, NULL, "the output does not name the collective; give --collective",
                           NULL);
    if (row->ranks < 1)
        return dl_nccl_bad(r, NULL, "the output lists no ranks; give --ranks", NULL);
    if (row->nodes < 1)
        return dl_nccl_bad(r, NULL, "the output lists no hosts; give --nodes", NULL);
    if (row->ranks < row->nodes)
        return dl_fail_at(r->err, r->name, r->line, 1, NULL, "fewer ranks (%lld) than nodes (%lld)",
                          (long long)row->ranks, (long long)row->nodes);
    return DL_OK;
}

/* Numbers of one half of a row; DL_ERR_INPUT: it is damaged. */
static enum dl_code read_half(struct dl_nccl_reader *r, char **tokens, int half, double *time_us,
                              double *alg, double *bus) {
    const struct dl_nccl_columns *c = &r->columns;
    const char *found = tokens[c->time[half]];
    if (strcmp(found, "N/A") == 0) return DL_OK; /* this collective has no such variant */
    if (!dl_bench_number(found, time_us) ||
        !(*time_us >= DL_BENCH_LEAST_US && *time_us <= DL_BENCH_MOST_US))
        return dl_nccl_bad(r, "time", "expected a time in microseconds", found);
    if (c->alg[half] < 0 || !dl_bench_number(tokens[c->alg[half]], alg))
        return dl_nccl_bad(r, "algbw", "expected a bandwidth in GB/s",
                           c->alg[half] < 0 ? NULL : tokens[c->alg[half]]);
    if (c->bus[half] < 0 || !dl_bench_number(tokens[c->bus[half]], bus))
        return dl_nccl_bad(r, "busbw", "expected a bandwidth in GB/s",
                           c->bus[half] < 0 ? NULL : tokens[c->bus[half]]);
    return DL_OK;
}

enum dl_code dl_nccl_add(struct dl_nccl_reader *r, const struct dl_nccl_time *time) {
    struct dl_bench_row *row = dl_bench_add(r->out);
    *row = (struct dl_bench_row){.op = r->given->op >= 0 ? r->given->op : r->op,
                                 .version = r->version,
                                 .device = r->device,
                                 .library = r->library,
                                 .dtype = time->type,
                                 .ranks = r->given->ranks > 0 ? r->given->ranks : r->ranks,
                                 .nodes = r->given->nodes > 0 ? r->given->nodes : r->host_count,
                                 .size_bytes = time->size_bytes,
                                 .time_s = time->time_us * 1e-6,
                                 .alg_bytes_per_s = time->alg_gb_per_s * 1e9,
                                 .bus_bytes_per_s = time->bus_gb_per_s * 1e9,
                                 .in_place = time->in_place,
                                 .wrong = time->wrong,
                                 .line = r->line};
    DL_TRY(check_run(r, row));
    r->rows++;
    return check_factor(r, row);
}

static enum dl_code add_row(struct dl_nccl_reader *r, char **tokens, double size, int half) {
    const struct dl_nccl_columns *c = &r->columns;
    struct dl_nccl_time time = {.size_bytes = size, .in_place = half == 1};
    double wrong = 0;
    if (strcmp(tokens[c->time[half]], "N/A") == 0) return DL_OK;
    DL_TRY(read_half(r, tokens, half, &time.time_us, &time.alg_gb_per_s, &time.bus_gb_per_s));
    const bool checked = c->wrong[half] >= 0 && dl_bench_number(tokens[c->wrong[half]], &wrong);
    time.wrong = checked && wrong >= 1; /* "error" is a deviation (1e-7), "#wrong" a count */
    time.type = c->type >= 0 ? dl_arena_strdup(r->out->arena, tokens[c->type]) : NULL;
    return dl_nccl_add(r, &time);
}

/* Another program's line among the output: it does not begin with a size, nor does it have the
 * table's number of columns with a number where the time stands. */
static bool is_foreign(const struct dl_nccl_columns *c, char **tokens, int count) {
    double time_us;
    if (count == 0 || c->count == 0) return true;
    if (tokens[0][strspn(tokens[0], "0123456789")] == 0) return false;
    return (count != c->count && !c->clock) || !dl_bench_number(tokens[c->time[0]], &time_us);
}

void dl_nccl_leave_out(struct dl_nccl_reader *r) {
    if (r->first.code == DL_OK) r->first = *r->err;
    dl_text_printf(&r->damaged, "%s%d", r->damaged.length > 0 ? ", " : "", r->line);
}

/* DL_ERR_INPUT: damaged. */
static enum dl_code check_row(struct dl_nccl_reader *r, char **tokens, int count, double *size) {
    const struct dl_nccl_columns *c = &r->columns;
    double time_us, alg, bus;
    if (count != c->count && !(c->clock && count > c->count))
        return dl_fail_at(r->err, r->name, r->line, 1, NULL,
                          "expected %d columns as in the heading, found %d: the line is cut off or "
                          "mixed with another",
                          c->count, count);
    if (!dl_bench_number(tokens[c->size], size) || !(*size <= DL_BENCH_MOST_BYTES) ||
        *size != floor(*size))
        return dl_nccl_bad(r, "size", "expected a size in bytes", tokens[c->size]);
    for (int half = 0; half < 2; half++)
        if (c->time[half] >= 0) DL_TRY(read_half(r, tokens, half, &time_us, &alg, &bus));
    return DL_OK;
}

static enum dl_code read_row(struct dl_nccl_reader *r, char *line) {
    char *tokens[DL_BENCH_TOKENS];
    double size;
    const int count = dl_bench_tokens(line, tokens);
    if (is_foreign(&r->columns, tokens, count)) return DL_OK;
    if (r->columns.of_cpu) return dl_nccl_bad(r, "cputime", dl_nccl_cpu_times, NULL);
    if (check_row(r, tokens, count, &size) != DL_OK) {
        dl_nccl_leave_out(r);
        return DL_OK;
    }
    for (int half = 0; half < 2; half++)
        if (r->columns.time[half] >= 0) DL_TRY(add_row(r, tokens, size, half));
    return DL_OK;
}

static enum dl_code read_printed(struct dl_nccl_reader *r, const char *text, size_t length) {
    struct dl_bench_lines lines = {.at = text, .end = text + length};
    struct dl_arena *arena = r->out->arena;
    bool header = false;
    for (const char *line; (line = dl_bench_line(&lines, arena)) != NULL;) {
        char *copy = dl_arena_strdup(arena, line + strspn(line, " "));
        r->line = lines.line;
        const bool version =
            strncmp(copy, "NCCL version ", 13) == 0 || strncmp(copy, "RCCL version ", 13) == 0;
        if (copy[0] != '#' && !version) {
            DL_TRY(read_row(r, copy));
            /* the command line of a job's log */
            if (r->rows == 0 && r->op < 0) r->op = dl_nccl_operation(line);
            continue;
        }
        DL_TRY(read_comment(r, copy));
        header = header || r->columns.count > 0;
    }
    if (header) return DL_OK;
    return dl_fail_at(r->err, r->name, 0, 0, NULL,
                      "expected the output of nccl-tests: no heading '# size count type ... "
                      "time algbw busbw'");
}

enum dl_code dl_nccl_tests_parse(const char *name, const char *text, size_t length,
                                 const struct dl_bench_given *given, struct dl_bench *out,
                                 struct dl_err *err) {
    struct dl_nccl_reader *r = dl_arena_alloc(out->arena, 1, sizeof *r);
    *r = (struct dl_nccl_reader){
        .name = name, .given = given, .out = out, .err = err, .op = dl_nccl_operation(name)};
    r->damaged = (struct dl_text){.arena = out->arena};
    size_t start = 0;
    while (start < length && strchr(" \t\r\n", text[start]) != NULL && text[start] != 0) start++;
    DL_TRY(start < length && text[start] == '{' ? dl_nccl_read_json(r, text, length)
                                                : read_printed(r, text, length));
    if (r->rows == 0 && r->first.code != DL_OK) {
        *err = r->first;
        return err->code;
    }
    if (r->rows == 0)
        return dl_fail_at(err, name, r->line, 1, NULL,
                          "expected a row of the table below the heading: the run printed none");
    if (r->damaged.length > 0)
        out->damaged = dl_arena_printf(
            out->arena, "%s%s%s: lines %s", out->damaged != NULL ? out->damaged : "",
            out->damaged != NULL ? "; " : "", name, dl_text_string(&r->damaged));
    return DL_OK;
}
