/* import_trace_nccl.c - `dlmodel import torch-nccl`: collectives in traces of torch.profiler. A
 * kernel of NCCL carries what was sent ("Collective name", "In msg nelems", "Group size"), or the
 * operator record_param_comms with its "External id" does (older releases of PyTorch).
 *
 * A kernel's time includes the wait for ranks that come later: a call's time is the median of a
 * trace, and of the traces of several ranks the least. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "import/import_bench.h"
#include "import/import_trace_reader.h"

/* What identifies equal calls. */
struct call {
    int op;
    const char *dtype;
    double bytes, ranks, nodes;
};
struct timed { /* a kernel; external: to find the operator that has its call */
    struct call call;
    bool known;
    double external, dur_us;
};
struct operator_call { /* record_param_comms */
    struct call call;
    double external;
};
struct collected {
    const struct dl_bench_given *given;
    struct dl_records kernels, operators;
    int unknown; /* calls of another kind: send, barrier */
};

/* ---- one call ---- */

/* PyTorch's names: allreduce, _allgather_base, reduce_scatter_tensor_coalesced, all_to_allv, ... */
static int op_of(const char *name) {
    static const struct {
        const char *word;
        int op;
    } all[] = {{"allreduce", DL_COLL_ALL_REDUCE},
               {"all_reduce", DL_COLL_ALL_REDUCE},
               {"allgather", DL_COLL_ALL_GATHER},
               {"all_gather", DL_COLL_ALL_GATHER},
               {"reduce_scatter", DL_COLL_REDUCE_SCATTER},
               {"all_to_all", DL_COLL_ALL_TO_ALL},
               {"alltoall", DL_COLL_ALL_TO_ALL},
               {"broadcast", DL_COLL_BROADCAST},
               {"reduce", DL_COLL_REDUCE}};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        if (strstr(name, all[i].word) != NULL) return all[i].op;
    return -1;
}

/* As PyTorch prints types: "Float", "BFloat16", "float32", "torch.bfloat16". NULL: another. */
static const char *dtype_of(const char *name, double *bytes) {
    static const struct {
        const char *theirs, *ours;
        double bytes;
    } all[] = {{"Float", "float", 4},       {"float32", "float", 4},    {"BFloat16", "bfloat16", 2},
               {"bfloat16", "bfloat16", 2}, {"Half", "half", 2},        {"float16", "half", 2},
               {"Double", "double", 8},     {"float64", "double", 8},   {"Long", "int64", 8},
               {"int64", "int64", 8},       {"Int", "int32", 4},        {"int32", "int32", 4},
               {"Byte", "uint8", 1},        {"uint8", "uint8", 1},      {"Char", "int8", 1},
               {"int8", "int8", 1},         {"Bool", "uint8", 1},       {"bool", "uint8", 1},
               {"Float8_e4m3fn", "fp8", 1}, {"float8_e4m3fn", "fp8", 1}};
    if (strncmp(name, "torch.", 6) == 0) name += 6;
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        if (strcmp(all[i].theirs, name) == 0) return *bytes = all[i].bytes, all[i].ours;
    return NULL;
}

/* Nodes of a group from its list of ranks; a list that is cut short: as few as hold the group. */
static double nodes_of(const char *list, double ranks, double per_node) {
    double count = 0, listed = 0, last = -1;
    for (const char *at = list + strcspn(list, "0123456789"); *at != '\0';
         at += strcspn(at, "0123456789")) {
        char *end;
        const double node = floor(strtod(at, &end) / per_node);
        count += node != last;
        listed++;
        last = node;
        at = end;
    }
    return listed == ranks ? count : ceil(ranks / per_node);
}

static enum dl_code read_call(const struct dl_trace_reader *r, const struct collected *all,
                              const struct dl_json_node *args, struct call *out, bool *known) {
    const double given_ranks = (double)all->given->ranks,
                 world = given_ranks > 0 ? given_ranks : r->ranks,
                 nodes = (double)all->given->nodes;
    double width = 0;
    *out = (struct call){.op = op_of(dl_trace_text(dl_json_get(args, "Collective name"))),
                         .ranks = dl_json_number_of(dl_json_get(args, "Group size"))};
    out->dtype = dtype_of(dl_trace_text(dl_json_get(args, "dtype")), &width);
    out->bytes = width * fmax(dl_json_number_of(dl_json_get(args, "In msg nelems")),
                              dl_json_number_of(dl_json_get(args, "Out msg nelems")));
    *known = out->op >= 0 && out->dtype != NULL && out->bytes >= 1 &&
             out->bytes <= DL_BENCH_MOST_BYTES && out->ranks >= 2 && out->ranks <= 1e7;
    if (!*known) return DL_OK;
    if (!(nodes >= 1) || !(world >= nodes))
        return dl_fail(r->err, DL_ERR_USAGE,
                       "%.200s: a trace does not say how ranks lie on nodes; give --nodes and, "
                       "where it has no distributedInfo before its events, --ranks of the job",
                       r->name);
    out->nodes = nodes_of(dl_trace_text(dl_json_get(args, "Process Group Ranks")), out->ranks,
                          ceil(world / nodes));
    return DL_OK;
}

static enum dl_code read_event(struct dl_trace_reader *r, const struct dl_json_node *n, int index) {
    struct collected *all = r->owner;
    const struct dl_json_node *args = dl_json_get(n, "args");
    const char *name = dl_trace_text(dl_json_get(n, "name"));
    const bool kernel = strcmp(dl_trace_text(dl_json_get(n, "cat")), "kernel") == 0 &&
                        strncmp(name, "nccl", 4) == 0,
               operator= strcmp(name, "record_param_comms") == 0;
    struct timed timed = {.external = dl_json_number_of(dl_json_get(args, "External id")),
                          .dur_us = dl_json_number_of(dl_json_get(n, "dur"))};
    if ((!kernel && !operator) || strcmp(dl_trace_text(dl_json_get(n, "ph")), "X") != 0)
        return DL_OK;
    const bool has = dl_trace_text(dl_json_get(args, "Collective name"))[0] != '\0';
    if (has) {
        DL_TRY(read_call(r, all, args, &timed.call, &timed.known));
        if (!timed.known && kernel) all->unknown++;
    }
    if (kernel && (timed.known || !has)) {
        if (!(timed.dur_us >= DL_BENCH_LEAST_US && timed.dur_us <= DL_BENCH_MOST_US))
            return dl_fail_at(r->err, r->name, 0, 0, NULL,
                              "event %d ('%.60s'): expected a duration above 0 and up to 1e12 us",
                              index, name);
        dl_records_add(&all->kernels, &timed);
    } else if (operator&& timed.known) {
        dl_records_add(&all->operators, &(struct operator_call){timed.call, timed.external});
    }
    return DL_OK;
}

/* ---- all calls ---- */

static int by_external(const void *a, const void *b) {
    const double x = ((const struct operator_call *)a)->external,
                 y = ((const struct operator_call *)b)->external;
    return x < y ? -1 : x > y;
}

static int compare_calls(const struct call *a, const struct call *b) {
    if (a->op != b->op) return a->op < b->op ? -1 : 1;
    if (a->nodes != b->nodes) return a->nodes < b->nodes ? -1 : 1;
    if (a->ranks != b->ranks) return a->ranks < b->ranks ? -1 : 1;
    if (a->bytes != b->bytes) return a->bytes < b->bytes ? -1 : 1;
    return strcmp(a->dtype, b->dtype);
}

static int by_call(const void *a, const void *b) {
    const struct timed *x = a, *y = b;
    if (x->known != y->known) return x->known ? -1 : 1;
    const int order = x->known ? compare_calls(&x->call, &y->call) : 0;
    return order != 0 ? order : x->dur_us < y->dur_us ? -1 : x->dur_us > y->dur_us;
}

/* Kernels without a call of their own take that of their operator. */
static void join(struct collected *all) {
    struct timed *kernels = all->kernels.list;
    dl_records_sort(&all->operators, by_external);
    for (int64_t i = 0; i < all->kernels.count; i++) {
        const struct operator_call wanted = {.external = kernels[i].external}, *found;
        if (kernels[i].known || all->operators.count == 0 || isnan(wanted.external)) continue;
        found = bsearch(&wanted, all->operators.list, (size_t)all->operators.count, sizeof *found,
                        by_external);
        if (found == NULL) continue;
        kernels[i].call = found->call;
        kernels[i].known = true;
    }
    dl_records_sort(&all->kernels, by_call);
}

/* The row of the same call in another rank's trace keeps the shorter time. */
static void add_row(struct dl_bench *out, const struct call *call, double time_s, int64_t calls) {
    struct dl_bench_row row = {.op = call->op,
                               .dtype = call->dtype,
                               .nodes = (int64_t)call->nodes,
                               .ranks = (int64_t)call->ranks,
                               .size_bytes = call->bytes,
                               .time_s = time_s,
                               .library = "nccl"};
    row.notes = dl_arena_printf(out->arena,
                                "median of %lld calls in a training, with the wait for "
                                "late ranks",
                                (long long)calls);
    for (int i = 0; i < out->count; i++) {
        struct dl_bench_row *b = &out->rows[i];
        if (b->op != row.op || b->nodes != row.nodes || b->ranks != row.ranks ||
            b->size_bytes != row.size_bytes || strcmp(b->dtype, row.dtype) != 0)
            continue;
        if (time_s < b->time_s) *b = row;
        return;
    }
    *dl_bench_add(out) = row;
}

static enum dl_code add_rows(const struct dl_trace_reader *r, const struct collected *all,
                             struct dl_bench *out) {
    const struct timed *k = all->kernels.list;
    int64_t end, rows = 0;
    for (int64_t i = 0; i < all->kernels.count && k[i].known; i = end, rows++) {
        for (end = i + 1; end < all->kernels.count && k[end].known &&
                          compare_calls(&k[i].call, &k[end].call) == 0;)
            end++;
        add_row(out, &k[i].call, 0.5e-6 * (k[(i + end - 1) / 2].dur_us + k[(i + end) / 2].dur_us),
                end - i);
    }
    if (rows > 0) return DL_OK;
    return dl_fail_at(r->err, r->name, 0, 0, NULL,
                      "expected kernels of NCCL with \"Collective name\" and \"In msg nelems\", or "
                      "operators record_param_comms with the same \"External id\": %lld kernels of "
                      "NCCL, %lld such operators, %d calls of another kind",
                      (long long)all->kernels.count, (long long)all->operators.count, all->unknown);
}

enum dl_code dl_torch_nccl_parse(const char *name, const char *text, size_t length,
                                 const struct dl_bench_given *given, struct dl_bench *out,
                                 struct dl_err *err) {
    struct collected all = {.given = given,
                            .kernels.record_bytes = sizeof(struct timed),
                            .operators.record_bytes = sizeof(struct operator_call)};
    struct dl_trace_reader r = {.name = name,
                                .arena = out->arena,
                                .err = err,
                                .core_s = NAN,
                                .ranks = NAN,
                                .event = read_event,
                                .owner = &all};
    (void)text, (void)length; /* read event by event */
    if (dl_trace_is_sqlite(name))
        return dl_fail_at(err, name, 0, 0, NULL,
                          "expected a trace of torch.profiler, found a database");
    enum dl_code code = dl_trace_read(&r);
    if (code == DL_OK) {
        join(&all);
        code = add_rows(&r, &all, out);
    }
    dl_records_free(&all.kernels);
    dl_records_free(&all.operators);
    return code;
}
