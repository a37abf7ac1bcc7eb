/* cal_gpu_plan.c - the points of a GPU. Shapes follow a Halton sequence (Halton 1960), whose points
 * fill a box evenly whatever their number; each side is uniform in its logarithm between the
 * extremes of the workloads in data/. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "calibrate/plan/cal_gpu_plan.h"
#include "model/workload/layer.h"

static const char *const passes[] = {"fwd", "bwd_data", "bwd_filter"};
enum { WORKLOAD_BATCH = 32 };
/* of a drawn shape: at most a tenth of a second, 1 GB in fp32 */
static const double MAX_FLOP = 4e11, MAX_ELEMENTS = 2.5e8;

struct drawer {
    const struct dl_cal_choice *choice;
    const struct dl_cal_adder *adder;
};

static void add(const struct drawer *d, const char *probe, const char *shape, const char *pass,
                enum dl_cal_child child, double weight) {
    d->adder->add(d->adder->context, probe, shape, pass, child, weight);
}

/* Element `index` (from 1) of the van der Corput sequence in a base. */
static double radical_inverse(unsigned index, unsigned base) {
    double value = 0, digit = 1;
    for (; index > 0; index /= base) {
        digit /= base;
        value += digit * (index % base);
    }
    return value;
}

/* Between low and high, uniform in the logarithm; a multiple of `step`. */
static long between(double u, double low, double high, long step) {
    const double x = low * pow(high / low, u);
    const long rounded = lround(x / (double)step) * step;
    return rounded < step ? step : rounded;
}

/* Suffix of a shape in precision number `index`: "" for fp32, "-" if the device lacks it, NULL past
 * the last. */
static const char *precision_words(const struct dl_cal_choice *choice, int index, bool gemm) {
    static const struct {
        const char *words;
        int capability, until; /* supported from this, and below `until` */
        bool gemm_only;
    } rows[] = {{"", 0, 1000, false},
                {" prec=mixed", 53, 1000, false},
                {" prec=tf32", 80, 1000, false},
                {" prec=bf16", 80, 1000, true}};
    if (index >= (int)(sizeof rows / sizeof *rows)) return NULL;
    const bool has =
        choice->capability >= rows[index].capability && (gemm || !rows[index].gemm_only);
    return has ? rows[index].words : "-";
}

/* The same shape in every precision. */
static void add_precisions(const struct drawer *d, const char *probe, const char *shape,
                           const char *pass, bool gemm, double weight) {
    const char *words;
    for (int i = 0; (words = precision_words(d->choice, i, gemm)) != NULL; i++) {
        if (strcmp(words, "-") == 0) continue;
        add(d, probe, dl_arena_printf(d->adder->arena, "%s%s", shape, words), pass,
            gemm ? DL_CAL_GPU : DL_CAL_CUDNN, weight);
    }
}

/* gemm: m, n, k, A and B transposed. */
static void add_gemm(const struct drawer *d, const long gemm[5], double weight) {
    const long m = gemm[0], n = gemm[1], k = gemm[2], ta = gemm[3], tb = gemm[4];
    struct dl_arena *arena = d->adder->arena;
    add_precisions(d, "gpu-gemm",
                   dl_arena_printf(arena, "m=%ld n=%ld k=%ld ta=%ld tb=%ld", m, n, k, ta, tb),
                   "fwd", true, weight);
    if (d->choice->capability >= 89 && ta && !tb && m % 16 == 0 && n % 16 == 0 && k % 16 == 0)
        add(d, "gpu-gemm", dl_arena_printf(arena, "m=%ld n=%ld k=%ld ta=1 tb=0 prec=fp8", m, n, k),
            "fwd", DL_CAL_GPU, weight);
}

/* Fixed ones first: large squares for the rate (the first is the GEMM of every profile), then those
 * of fully connected and projection layers. */
static void add_gemms(const struct drawer *d) {
    static const long fixed[][5] = {
        {4096, 4096, 4096, 1, 0}, {1024, 1024, 1024, 1, 0}, {256, 256, 256, 1, 0},
        {64, 64, 64, 1, 0},       {8192, 8192, 4096, 1, 0}, {2048, 4096, 2048, 0, 0},
        {1000, 64, 2048, 1, 0},   {2048, 64, 1000, 0, 0},   {2048, 1000, 64, 0, 1},
        {768, 4096, 768, 1, 0},   {768, 4096, 3072, 0, 0},  {3072, 768, 4096, 0, 1},
        {4096, 32, 25088, 1, 0}};
    const unsigned drawn = d->choice->quick ? 12 : 40;
    for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++) add_gemm(d, fixed[i], i == 0 ? 3 : 1);
    for (unsigned i = 1, taken = 0; taken < drawn; i++) {
        const long step = i % 4 == 0 ? 1 : 16; /* every fourth is unaligned */
        const long m = between(radical_inverse(i, 2), 16, 16384, step),
                   n = between(radical_inverse(i, 3), 8, 8192, step),
                   k = between(radical_inverse(i, 5), 16, 8192, step);
        if (2.0 * (double)m * (double)n * (double)k > MAX_FLOP) continue;
        taken++;
        /* forward, backward data, backward weights */
        add_gemm(d, (const long[]){m, n, k, i % 3 == 1, i % 3 == 2}, 1);
    }
    static const long batches[][6] = {{512, 512, 64, 1, 0, 192},  {64, 512, 512, 0, 0, 192},
                                      {64, 512, 512, 0, 1, 192},  {128, 128, 64, 1, 0, 384},
                                      {1024, 1024, 64, 1, 0, 96}, {64, 1024, 1024, 0, 0, 96}};
    for (size_t i = 0; i < sizeof batches / sizeof *batches && (!d->choice->quick || i < 4); i++) {
        const long *b = batches[i];
        add_precisions(d, "gpu-batch",
                       dl_arena_printf(d->adder->arena, "m=%ld n=%ld k=%ld ta=%ld tb=%ld b=%ld",
                                       b[0], b[1], b[2], b[3], b[4], b[5]),
                       "fwd", true, 1);
    }
}

/* conv: batch, channels, filters, side of the image and of the kernel, stride, pad. */
static void add_convolution(const struct drawer *d, const long conv[7]) {
    const char *shape =
        dl_arena_printf(d->adder->arena, "n=%ld c=%ld f=%ld h=%ld r=%ld s=%ld p=%ld", conv[0],
                        conv[1], conv[2], conv[3], conv[4], conv[5], conv[6]);
    for (int pass = 0; pass < 3; pass++) {
        /* No framework computes the gradient of the input images. */
        if (conv[1] > 3 || pass != 1) add_precisions(d, "gpu-conv", shape, passes[pass], false, 1);
    }
}

static void add_convolutions(const struct drawer *d) {
    static const long fixed[][7] = {{32, 3, 64, 224, 7, 2, 3},   {32, 64, 64, 56, 3, 1, 1},
                                    {32, 64, 256, 56, 1, 1, 0},  {32, 128, 128, 28, 3, 1, 1},
                                    {32, 256, 256, 14, 3, 1, 1}, {32, 512, 512, 7, 3, 1, 1},
                                    {32, 256, 512, 56, 1, 2, 0}, {32, 1024, 256, 14, 1, 1, 0},
                                    {16, 3, 64, 224, 3, 1, 1},   {16, 256, 256, 56, 3, 1, 1}};
    static const long kernels[] = {1, 3, 3, 1, 3, 5, 1, 3, 7, 3};
    const unsigned drawn = d->choice->quick ? 4 : 36;
    for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++) add_convolution(d, fixed[i]);
    for (unsigned i = 1, taken = 0; taken < drawn; i++) {
        const long n = between(radical_inverse(i, 2), 4, 128, 4),
                   c = between(radical_inverse(i, 3), 16, 2048, 8),
                   f = between(radical_inverse(i, 5), 16, 2048, 8),
                   h = between(radical_inverse(i, 7), 7, 112, 1);
        const long r = kernels[i % 10], s = i % 7 == 3 ? 2 : 1, out = (h - 1) / s + 1;
        const double flop = 2.0 * (double)(n * f) * (double)(out * out) * (double)(c * r * r);
        if (flop > MAX_FLOP || flop < 1e7 ||
            (double)(n * (c + f)) * (double)(h * h) > MAX_ELEMENTS || r > h)
            continue;
        taken++;
        add_convolution(d, (const long[]){n, c, f, h, r, s, r / 2});
    }
}

static void add_layers(const struct drawer *d) {
    static const char *const shapes[] = {"n=32 c=64 h=56", "n=32 c=256 h=14", "n=32 c=64 h=112",
                                         "n=8 c=512 h=7", "n=32 c=256 h=56"};
    static const char *const rows[] = {"n=32 c=1000 h=1", "n=98304 c=512 h=1",
                                       "n=12288 c=1024 h=1"};
    static const char *const tokens[] = {"n=4096 c=768", "n=16384 c=1024", "n=2048 c=4096"};
    static const char *const heads[] = {"n=8 heads=12 q=512 d=64", "n=32 heads=12 q=128 d=64",
                                        "n=8 heads=16 q=1024 d=64"};
    static const char *const kinds[] = {"gpu-norm", "gpu-act", "gpu-pool"};
    for (int pass = 0; pass < 2; pass++) {
        for (size_t i = 0; i < sizeof shapes / sizeof *shapes && (!d->choice->quick || i < 3);
             i++) {
            for (size_t kind = 0; kind < 3; kind++)
                add_precisions(d, kinds[kind], shapes[i], passes[pass], false, 1);
        }
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
            add_precisions(d, "gpu-softmax", rows[i], passes[pass], false, 1);
        for (size_t i = 0; i < sizeof tokens / sizeof *tokens; i++)
            add_precisions(d, "gpu-layernorm", tokens[i], passes[pass], false, 1);
        for (size_t i = 0; i < sizeof heads / sizeof *heads && (!d->choice->quick || i < 2); i++)
            add_precisions(d, "gpu-attention", heads[i], passes[pass], false, 1);
    }
}

static void add_memory(const struct drawer *d) {
    static const char *const moves[] = {"copy", "axpy", "scale"},
                             *const ways[] = {"h2d_pinned", "d2h_pinned", "h2d_pageable",
                                              "d2h_pageable"},
                             *const costs[] = {"queue", "train", "wait"};
    struct dl_arena *arena = d->adder->arena;
    for (int i = 0; i < 3; i++) {
        for (long bytes = 1l << 18; bytes <= 1l << 28; bytes *= d->choice->quick ? 32 : 4)
            add(d, "gpu-copy", dl_arena_printf(arena, "bytes=%ld", bytes), moves[i], DL_CAL_GPU, 1);
        add(d, "gpu-launch", "n=32", costs[i], DL_CAL_GPU, 1);
    }
    for (int i = 0; i < 4; i++) {
        for (long bytes = 1l << 16; bytes <= 1l << 26; bytes *= 32)
            add(d, "gpu-host", dl_arena_printf(arena, "bytes=%ld", bytes), ways[i], DL_CAL_GPU, 1);
    }
    for (long bytes = 1l << 20; bytes <= 1l << 26; bytes *= 8)
        add(d, "gpu-update", dl_arena_printf(arena, "bytes=%ld", bytes), "momentum", DL_CAL_GPU, 1);
}

/* ---- exact layers of a workload ---- */

static bool same_sizes(const double *a, const double *b) {
    for (int i = 0; i < DL_DIMS; i++) {
        if (a[i] != b[i]) return false;
    }
    return true;
}

static bool same_kernel(const struct dl_kernel *a, const struct dl_kernel *b) {
    return a->op == b->op && a->pass == b->pass && a->m == b->m && a->n == b->n && a->k == b->k &&
           a->count == b->count && a->a_trans == b->a_trans && a->b_trans == b->b_trans &&
           a->batch == b->batch && a->in_channels == b->in_channels &&
           a->out_channels == b->out_channels && a->groups == b->groups &&
           same_sizes(a->in, b->in) && same_sizes(a->kernel, b->kernel) &&
           same_sizes(a->stride, b->stride) && same_sizes(a->pad, b->pad);
}

static void add_kernel(const struct drawer *d, const struct dl_kernel *k) {
    struct dl_arena *arena = d->adder->arena;
    if (k->op == DL_OP_GEMM && k->count > 1) {
        add_precisions(d, "gpu-batch",
                       dl_arena_printf(arena, "m=%.0f n=%.0f k=%.0f ta=%d tb=%d b=%.0f", k->m, k->n,
                                       k->k, k->a_trans, k->b_trans, k->count),
                       "fwd", true, 1);
    } else if (k->op == DL_OP_GEMM) {
        add_precisions(d, "gpu-gemm",
                       dl_arena_printf(arena, "m=%.0f n=%.0f k=%.0f ta=%d tb=%d", k->m, k->n, k->k,
                                       k->a_trans, k->b_trans),
                       "fwd", true, 1);
    } else if (k->op == DL_OP_CONV && k->stride[1] == k->stride[2] &&
               k->pass <= DL_BACKWARD_WEIGHTS) {
        const char *depth =
            k->in[0] > 1 ? dl_arena_printf(arena, " d=%.0f z=%.0f", k->in[0], k->kernel[0]) : "";
        add_precisions(d, "gpu-conv",
                       dl_arena_printf(arena,
                                       "n=%.0f c=%.0f f=%.0f h=%.0f w=%.0f r=%.0f q=%.0f s=%.0f "
                                       "p=%.0f t=%.0f g=%.0f e=%.0f%s",
                                       k->batch, k->in_channels, k->out_channels, k->in[1],
                                       k->in[2], k->kernel[1], k->kernel[2], k->stride[1],
                                       k->pad[1], k->pad[2], k->groups, k->dilation[1], depth),
                       passes[k->pass], false, 1);
    }
}

/* Each kernel once, however many layers launch it. */
static void add_workload(const struct drawer *d) {
    enum { MOST = 1024 };
    const struct dl_workload *w = d->choice->workload;
    struct dl_kernel *seen = w == NULL ? NULL : dl_arena_alloc(d->adder->arena, MOST, sizeof *seen);
    const struct dl_kernel_facts facts = dl_kernel_facts_plain(DL_FP32);
    int count = 0;
    for (int layer = 0; seen != NULL && layer < w->layer_count; layer++) {
        for (int pass = DL_FORWARD; pass <= DL_BACKWARD_WEIGHTS; pass++) {
            struct dl_kernel kernels[DL_LAYER_KERNELS];
            const int found = w->layers[layer].kind->kernels(
                &w->layers[layer], &facts, (enum dl_pass)pass, WORKLOAD_BATCH, kernels);
            for (int i = 0; i < found; i++) {
                bool known = kernels[i].op == DL_OP_STREAM || count == MOST;
                for (int j = 0; j < count && !known; j++)
                    known = same_kernel(&seen[j], &kernels[i]);
                if (known) continue;
                seen[count++] = kernels[i];
                add_kernel(d, &kernels[i]);
            }
        }
    }
}

/* ---- collectives ---- */

static void add_sizes(const struct drawer *d, const char *probe, int64_t ranks, int64_t nodes,
                      long factor, enum dl_cal_child child) {
    const long largest = d->choice->quick ? 64l << 20 : 256l << 20;
    for (long bytes = 8; bytes <= largest; bytes *= factor) {
        const long shown = bytes * factor > largest ? largest : bytes;
        const char *shape =
            nodes > 1
                ? dl_arena_printf(d->adder->arena, "bytes=%ld ranks=%lld nodes=%lld", shown,
                                  (long long)ranks, (long long)nodes)
                : dl_arena_printf(d->adder->arena, "bytes=%ld ranks=%lld", shown, (long long)ranks);
        add(d, probe, shape, nodes > 1 ? "gpu-net" : "gpu", child, shown >= 16l << 20 ? 2 : 1);
    }
}

/* MPI between device buffers: two GPUs of this node, and one GPU on each of 2, 4, ... nodes. */
static void add_mpi(const struct drawer *d) {
    static const char *const probes[] = {"gpu-pingpong", "gpu-allreduce"};
    const long largest = d->choice->quick ? 16l << 20 : 128l << 20;
    for (int i = 0; i < 2; i++) {
        for (long bytes = 8; bytes <= largest; bytes *= 8) {
            if (d->choice->gpus > 1)
                add(d, probes[i],
                    dl_arena_printf(d->adder->arena, "bytes=%ld ranks=%lld", bytes,
                                    (long long)d->choice->ranks),
                    "shm", DL_CAL_SHM, 1);
            for (int64_t n = 2; n <= d->choice->nodes; n = i == 0 ? d->choice->nodes + 1 : 2 * n)
                add(d, probes[i],
                    dl_arena_printf(d->adder->arena, "bytes=%ld ranks=%lld", bytes, (long long)n),
                    "net", DL_CAL_NET, 1);
        }
    }
}

static const char *const less_frequent[] = {"nccl-reducescatter", "nccl-allgather",
                                            "nccl-broadcast", "nccl-alltoall"};

static void add_less_frequent(const struct drawer *d, int64_t ranks, int64_t nodes,
                              enum dl_cal_child child) {
    const long factor = d->choice->quick ? 8 : 4;
    for (size_t i = 0; i < sizeof less_frequent / sizeof *less_frequent; i++)
        add_sizes(d, less_frequent[i], ranks, nodes, factor, child);
    add_sizes(d, "nccl-sendrecv", 2, nodes > 1 ? 2 : 1, 4, child);
}

/* Between the GPUs of one node. */
static void add_collectives(const struct drawer *d) {
    const int64_t gpus = d->choice->gpus;
    const bool quick = d->choice->quick;
    for (int64_t ranks = 2; ranks <= gpus; ranks++) {
        if (!quick || ranks == 2 || ranks == gpus || ranks == 4)
            add_sizes(d, "nccl-allreduce", ranks, 1, quick ? 4 : 2, DL_CAL_NCCL);
    }
    if (gpus > 1) add_less_frequent(d, gpus, 1, DL_CAL_NCCL);
}

static void add_collectives_between_nodes(const struct drawer *d) {
    const int64_t gpus = d->choice->gpus, nodes = d->choice->nodes;
    for (int64_t n = 2; n <= nodes; n = n < 4 ? n + 1 : 2 * n) {
        add_sizes(d, "nccl-allreduce", n * gpus, n, d->choice->quick ? 4 : 2, DL_CAL_NCCL_NET);
        /* one device of each node */
        if (gpus > 1) add_sizes(d, "nccl-allreduce", n, n, 4, DL_CAL_NCCL_NET);
    }
    if (nodes > 1) add_less_frequent(d, nodes * gpus, nodes, DL_CAL_NCCL_NET);
}

void dl_cal_gpu_points(const struct dl_cal_choice *choice, const struct dl_cal_adder *adder) {
    const struct drawer d = {choice, adder};
    if (choice->gpus < 1) return;
    add_gemms(&d);
    add_memory(&d);
    add_convolutions(&d);
    add_layers(&d);
    add_workload(&d);
    add_collectives(&d);
    add_collectives_between_nodes(&d);
    add_mpi(&d);
}
