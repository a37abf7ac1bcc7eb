/* import_osu.c - printed output of the OSU micro-benchmarks (releases 5 to 7): a title, a heading,
 * then one line a size. Sizes of allgather, alltoall, gather and scatter are per rank there; here
 * they become the whole buffer.
 */
#include <math.h>
#include <string.h>

#include "model/network/coll_match.h"
#include "import/import_bench.h"

/* Words of the titles; the first match counts, so longer ones come first. */
static const struct title {
    const char *words;
    int op;
    bool per_rank, bandwidth;
    const char *why;
} titles[] = {
    {"Non-blocking", -1, false, false,
     "non-blocking tests print the overlap, not the time of a collective"},
    {"Barrier", -1, false, false, "a barrier has no size"},
    {"Bi-Directional", -1, false, false,
     "bandwidth of both directions together is not the time of a message"},
    {"Message Rate", -1, false, false,
     "message rates of several pairs are not the time of a message"},
    {"Allreduce", DL_COLL_ALL_REDUCE, false, false, NULL},
    {"Allgather", DL_COLL_ALL_GATHER, true, false, NULL},
    {"All-to-All", DL_COLL_ALL_TO_ALL, true, false, NULL},
    {"Alltoall", DL_COLL_ALL_TO_ALL, true, false, NULL},
    {"Reduce_scatter", DL_COLL_REDUCE_SCATTER, false, false, NULL},
    {"Reduce-Scatter", DL_COLL_REDUCE_SCATTER, false, false, NULL},
    {"Broadcast", DL_COLL_BROADCAST, false, false, NULL},
    {"Bcast", DL_COLL_BROADCAST, false, false, NULL},
    {"Reduce", DL_COLL_REDUCE, false, false, NULL},
    {"Gather", DL_COLL_GATHER, true, false, NULL},
    {"Scatter", DL_COLL_SCATTER, true, false, NULL},
    {"Bandwidth", DL_COLL_P2P, false, true, NULL},
    {"Latency", DL_COLL_P2P, false, false, NULL},
};

struct reader {
    const char *name, *version, *dtype, *library;
    const struct dl_bench_given *given;
    struct dl_bench *out;
    struct dl_err *err;
    const struct title *title;
    bool heading;
    int line, rows;
};

/* "# OSU MPI-CUDA Allreduce Latency Test v5.9" */
static enum dl_code read_title(struct reader *r, const char *text) {
    const char *version = strstr(text, " v");
    r->title = NULL;
    r->heading = false;
    for (size_t i = 0; i < sizeof titles / sizeof *titles && r->title == NULL; i++) {
        if (strstr(text, titles[i].words) != NULL) r->title = &titles[i];
    }
    if (r->title == NULL)
        return dl_fail_at(r->err, r->name, r->line, 1, NULL, "no test that is known: %.80s", text);
    if (r->title->why != NULL)
        return dl_fail_at(r->err, r->name, r->line, 1, NULL, "cannot use %.60s: %s", text,
                          r->title->why);
    r->library = strstr(text, "RCCL ") != NULL   ? "rccl"
                 : strstr(text, "NCCL ") != NULL ? "nccl"
                                                 : NULL;
    if (version != NULL) {
        r->version = dl_arena_strndup(r->out->arena, version + 2, strcspn(version + 2, " "));
    }
    return DL_OK;
}

static enum dl_code read_comment(struct reader *r, const char *line) {
    const char *text = line + 1 + strspn(line + 1, " ");
    if (strncmp(text, "OSU ", 4) == 0) return read_title(r, text);
    if (strncmp(text, "Datatype: ", 10) == 0) {
        const char *type =
            text + 10 +
            (strncmp(text + 10, "MPI_", 4) == 0 || strncmp(text + 10, "nccl", 4) == 0 ? 4 : 0);
        char *copy = dl_arena_strndup(r->out->arena, type, strcspn(type, " ."));
        for (char *at = copy; *at != 0; at++)
            *at = (char)(*at >= 'A' && *at <= 'Z' ? *at - 'A' + 'a' : *at);
        r->dtype = copy;
    }
    if (strncmp(text, "Size ", 5) == 0) {
        if (r->title == NULL)
            return dl_fail_at(r->err, r->name, r->line, 1, NULL,
                              "expected a title '# OSU ... Test v...' before the table");
        const bool bandwidth = strstr(text, "Bandwidth") != NULL;
        if (bandwidth != r->title->bandwidth)
            return dl_fail_at(r->err, r->name, r->line, 1, NULL,
                              "the heading does not fit the title of the test");
        if (strstr(text, "Latency(ms)") != NULL)
            return dl_fail_at(r->err, r->name, r->line, 1, NULL, "expected latencies in us");
        r->heading = true;
    }
    return DL_OK;
}

static enum dl_code check_ranks(const struct reader *r, const struct dl_bench_row *row) {
    if (row->ranks < 1)
        return dl_fail(r->err, DL_ERR_USAGE,
                       "%.200s: OSU's output does not say how many ranks; give --ranks", r->name);
    if (row->nodes < 1)
        return dl_fail(r->err, DL_ERR_USAGE,
                       "%.200s: OSU's output does not say how many nodes; give --nodes", r->name);
    if (row->ranks < row->nodes)
        return dl_fail(r->err, DL_ERR_USAGE, "--ranks: fewer ranks (%lld) than nodes (%lld)",
                       (long long)row->ranks, (long long)row->nodes);
    return DL_OK;
}

/* `value`: a latency in us, or a bandwidth in MB/s. */
static enum dl_code add_row(struct reader *r, double size, double value) {
    const struct title *title = r->title;
    struct dl_bench_row *row = dl_bench_add(r->out);
    const int op = r->given->op >= 0 ? r->given->op : title->op;
    const int64_t usual_ranks = op == DL_COLL_P2P ? 2 : 0;
    *row = (struct dl_bench_row){.op = op,
                                 .version = r->version,
                                 .dtype = r->given->dtype != NULL ? r->given->dtype : r->dtype,
                                 .ranks = r->given->ranks > 0 ? r->given->ranks : usual_ranks,
                                 .nodes = r->given->nodes,
                                 .library = r->library,
                                 .windowed = title->bandwidth,
                                 .line = r->line};
    DL_TRY(check_ranks(r, row));
    row->size_bytes = title->per_rank ? size * (double)row->ranks : size;
    row->time_s = title->bandwidth ? size / (value * 1e6) : value * 1e-6;
    if (!(row->time_s > 0))
        return dl_fail_at(r->err, r->name, r->line, 1, "Size", "a bandwidth needs a size above 0");
    row->alg_bytes_per_s = row->size_bytes / row->time_s;
    row->bus_bytes_per_s = row->alg_bytes_per_s *
                           dl_collective_bus_factor((enum dl_collective_op)op, (double)row->ranks);
    if (title->per_rank) row->notes = dl_arena_printf(r->out->arena, "%.0f bytes per rank", size);
    if (title->bandwidth) row->notes = "many messages in flight";
    r->rows++;
    return DL_OK;
}

static enum dl_code read_row(struct reader *r, char *line) {
    char *tokens[DL_BENCH_TOKENS];
    double size, value;
    const int count = dl_bench_tokens(line, tokens);
    if (count == 0 || !r->heading) return DL_OK;
    /* another program's line: neither a size first, nor a pair with a number */
    if (tokens[0][strspn(tokens[0], "0123456789")] != 0 &&
        (count != 2 || !dl_bench_number(tokens[1], &value)))
        return DL_OK;
    if (count < 2)
        return dl_fail_at(r->err, r->name, r->line, 1, NULL,
                          "expected a size and a value: the line is cut off");
    if (!dl_bench_number(tokens[0], &size) || !(size <= DL_BENCH_MOST_BYTES) || size != floor(size))
        return dl_fail_at(r->err, r->name, r->line, 1, "Size",
                          "expected a size in bytes, found \"%.40s\"", tokens[0]);
    if (!dl_bench_number(tokens[1], &value) ||
        !(value >= DL_BENCH_LEAST_US && value <= DL_BENCH_MOST_US)) {
        return dl_fail_at(r->err, r->name, r->line, 1,
                          r->title->bandwidth ? "Bandwidth" : "Latency",
                          "expected a number above 0, found \"%.40s\"", tokens[1]);
    }
    return add_row(r, size, value);
}

enum dl_code dl_osu_parse(const char *name, const char *text, size_t length,
                          const struct dl_bench_given *given, struct dl_bench *out,
                          struct dl_err *err) {
    struct dl_bench_lines lines = {.at = text, .end = text + length};
    struct reader r = {.name = name, .given = given, .out = out, .err = err};
    bool heading = false;
    for (const char *line; (line = dl_bench_line(&lines, out->arena)) != NULL;) {
        char *copy = dl_arena_strdup(out->arena, line + strspn(line, " "));
        r.line = lines.line;
        if (copy[0] == '#')
            DL_TRY(read_comment(&r, copy));
        else
            DL_TRY(read_row(&r, copy));
        heading = heading || r.heading;
    }
    if (!heading)
        return dl_fail_at(err, name, 0, 0, NULL,
                          "expected the output of an OSU micro-benchmark: no title '# OSU ... "
                          "Test' with a heading '# Size ...'");
    if (r.rows == 0)
        return dl_fail_at(err, name, r.line, 1, NULL,
                          "expected a row of the table below the heading: the run printed none");
    return DL_OK;
}
