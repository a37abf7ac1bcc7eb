/* cal_plan.c - the shapes of a CPU and of the network. GEMM and convolution shapes are those of
 * common networks (fully connected and projection layers, ResNet and VGG blocks), spread over four
 * decades of flop, so that the kernel-time models interpolate. */
#include "calibrate/plan/cal_plan.h"
#include "calibrate/plan/cal_gpu_plan.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const dl_cal_program_names[] = {"dlmodel-probe-cpu",  "dlmodel-probe-mpi",
                                            "dlmodel-probe-cuda", "dlmodel-probe-cudnn",
                                            "dlmodel-probe-nccl", NULL};

/* Start-up times as measured on a 2-core machine; over several hosts the launcher starts its
 * daemons first. */
const struct dl_cal_child_row dl_cal_children[] = {
    [DL_CAL_CPU] = {"cpu", DL_CAL_PROGRAM_CPU, DL_CAL_START_PLAIN, 1.0},
    [DL_CAL_GPU] = {"gpu", DL_CAL_PROGRAM_CUDA, DL_CAL_START_PLAIN, 2.0},
    [DL_CAL_CUDNN] = {"cudnn", DL_CAL_PROGRAM_CUDNN, DL_CAL_START_PLAIN, 3.0},
    /* spawns its ranks itself */
    [DL_CAL_NCCL] = {"nccl", DL_CAL_PROGRAM_NCCL, DL_CAL_START_PLAIN, 5.0},
    [DL_CAL_NCCL_NET] = {"nccl-net", DL_CAL_PROGRAM_NCCL, DL_CAL_START_HOSTS, 10.0},
    [DL_CAL_SHM] = {"shm", DL_CAL_PROGRAM_MPI, DL_CAL_START_LOCAL, 1.5},
    [DL_CAL_TCP] = {"tcp", DL_CAL_PROGRAM_MPI, DL_CAL_START_LOCAL, 1.5},
    [DL_CAL_NET] = {"net", DL_CAL_PROGRAM_MPI, DL_CAL_START_HOSTS, 6.0},
};

const struct dl_cal_probe dl_cal_probes[] = {
    {"gemm", "GEMM, OpenBLAS", DL_CAL_PROGRAM_CPU},
    {"matmul", "GEMM, oneDNN", DL_CAL_PROGRAM_CPU},
    {"conv", "convolution, three passes, oneDNN", DL_CAL_PROGRAM_CPU},
    {"stream", "memory bandwidth", DL_CAL_PROGRAM_CPU},
    {"concurrent", "devices of a few cores that compute concurrently (--cores)",
     DL_CAL_PROGRAM_CPU},
    {"write", "file write with fsync", DL_CAL_PROGRAM_CPU},
    {"read", "file read", DL_CAL_PROGRAM_CPU},
    {"pingpong", "MPI point-to-point", DL_CAL_PROGRAM_MPI},
    {"allreduce", "MPI all-reduce", DL_CAL_PROGRAM_MPI},
    {"allgather", "MPI all-gather, over nodes", DL_CAL_PROGRAM_MPI},
    {"broadcast", "MPI broadcast, over nodes", DL_CAL_PROGRAM_MPI},
    {"reducescatter", "MPI reduce-scatter, over nodes", DL_CAL_PROGRAM_MPI},
    {"alltoall", "MPI all-to-all, over nodes", DL_CAL_PROGRAM_MPI},
    {"gpu-pingpong", "MPI point-to-point, device buffers", DL_CAL_PROGRAM_MPI},
    {"gpu-allreduce", "MPI all-reduce, device buffers", DL_CAL_PROGRAM_MPI},
    {"gpu-gemm", "GEMM, cuBLAS", DL_CAL_PROGRAM_CUDA},
    {"gpu-batch", "batched GEMM, cuBLAS", DL_CAL_PROGRAM_CUDA},
    {"gpu-copy", "device memory bandwidth", DL_CAL_PROGRAM_CUDA},
    {"gpu-launch", "kernel launch cost and gap", DL_CAL_PROGRAM_CUDA},
    {"gpu-host", "copies between host and device", DL_CAL_PROGRAM_CUDA},
    {"gpu-update", "optimizer step (SGD with momentum), two cuBLAS calls", DL_CAL_PROGRAM_CUDA},
    {"gpu-conv", "convolution, three passes, cuDNN", DL_CAL_PROGRAM_CUDNN},
    {"gpu-norm", "batch normalization, cuDNN", DL_CAL_PROGRAM_CUDNN},
    {"gpu-act", "activation (relu), cuDNN", DL_CAL_PROGRAM_CUDNN},
    {"gpu-pool", "pooling, cuDNN", DL_CAL_PROGRAM_CUDNN},
    {"gpu-softmax", "softmax, cuDNN", DL_CAL_PROGRAM_CUDNN},
    {"gpu-layernorm", "layer normalization, cuDNN", DL_CAL_PROGRAM_CUDNN},
    {"gpu-attention", "attention, composed of cuBLAS and cuDNN calls", DL_CAL_PROGRAM_CUDNN},
    {"nccl-allreduce", "NCCL all-reduce", DL_CAL_PROGRAM_NCCL},
    {"nccl-reducescatter", "NCCL reduce-scatter", DL_CAL_PROGRAM_NCCL},
    {"nccl-allgather", "NCCL all-gather", DL_CAL_PROGRAM_NCCL},
    {"nccl-broadcast", "NCCL broadcast", DL_CAL_PROGRAM_NCCL},
    {"nccl-alltoall", "NCCL all-to-all", DL_CAL_PROGRAM_NCCL},
    {"nccl-sendrecv", "NCCL send and receive", DL_CAL_PROGRAM_NCCL},
    {.name = NULL},
};

/* Column-major GEMMs as frameworks call them: forward (out, tokens, in) transposes A, backward data
 * (in, tokens, out) neither operand, backward weights (in, out, tokens) B. */
struct gemm_row {
    int m, n, k;
    bool ta, tb, quick, matmul;
};
static const struct gemm_row gemms[] = {
    {16, 16, 16, false, false, true, true},       {64, 64, 64, true, false, true, false},
    {256, 256, 256, false, false, true, true},    {512, 512, 512, false, true, true, false},
    {1024, 1024, 1024, true, false, true, true},  {1536, 1536, 1536, false, false, true, true},
    {1000, 32, 2048, true, false, true, false},   {2048, 32, 1000, false, false, true, false},
    {2048, 1000, 32, false, true, true, false},   {768, 512, 768, true, false, true, true},
    {768, 512, 3072, false, false, true, false},  {3072, 512, 768, true, false, true, false},
    {768, 3072, 512, false, true, true, false},   {128, 128, 64, true, false, true, false},
    {64, 128, 128, false, false, true, false},    {4096, 8, 1024, true, false, true, false},
    {128, 1024, 4096, false, true, true, false},  {333, 77, 555, false, false, true, false},
    {32, 32, 4096, true, false, false, false},    {4096, 64, 4096, true, false, false, true},
    {4096, 64, 4096, false, false, false, false}, {4096, 4096, 64, false, true, false, true},
    {2048, 2048, 2048, true, false, false, true}, {1024, 16, 1024, true, false, false, false},
    {1024, 1024, 16, false, true, false, false},  {1024, 128, 1024, false, false, false, true},
    {2560, 64, 2560, true, false, false, true},   {5124, 35, 700, true, false, false, false},
    {700, 1000, 9, false, true, false, false},    {200, 200, 2000, false, false, false, true},
};

struct conv_row {
    int n, c, f, h, r, s, p;
    bool quick;
};
static const struct conv_row convs[] = {
    {8, 3, 64, 224, 7, 2, 3, true},    {8, 64, 64, 56, 1, 1, 0, true},
    {8, 64, 64, 56, 3, 1, 1, true},    {8, 64, 256, 56, 1, 1, 0, true},
    {8, 256, 128, 56, 1, 2, 0, true},  {8, 128, 128, 28, 3, 1, 1, true},
    {8, 512, 128, 28, 1, 1, 0, true},  {8, 256, 256, 14, 3, 1, 1, true},
    {8, 1024, 256, 14, 1, 1, 0, true}, {8, 512, 512, 7, 3, 1, 1, true},
    {8, 512, 2048, 7, 1, 1, 0, true},  {1, 128, 128, 28, 3, 1, 1, true},
    {2, 32, 32, 14, 3, 1, 1, true},    {4, 96, 256, 27, 5, 1, 2, true},
    {8, 256, 64, 56, 1, 1, 0, false},  {8, 128, 128, 56, 3, 2, 1, false},
    {8, 128, 512, 28, 1, 1, 0, false}, {8, 256, 1024, 14, 1, 1, 0, false},
    {8, 512, 512, 14, 3, 2, 1, false}, {8, 2048, 512, 7, 1, 1, 0, false},
    {2, 3, 64, 224, 3, 1, 1, false},   {2, 64, 64, 224, 3, 1, 1, false},
    {2, 256, 256, 56, 3, 1, 1, false}, {4, 512, 512, 28, 3, 1, 1, false},
    {1, 64, 256, 56, 1, 1, 0, false},  {32, 256, 256, 14, 3, 1, 1, false},
    {32, 64, 64, 56, 3, 1, 1, false},  {16, 192, 192, 17, 7, 1, 3, false},
    {16, 48, 64, 35, 5, 1, 2, false},  {8, 3, 96, 227, 11, 4, 0, false},
};

static const char *const passes[] = {"fwd", "bwd_data", "bwd_filter"};

/* Default budgets. */
static const double QUICK_S = 20, FULL_S = 200;
static const double NODES_FACTOR = 2; /* of the budget with several nodes */
static const double WARM_FRAC = 0.35; /* warm-up and verification, on top of the shares */

struct builder {
    struct dl_cal_plan *plan;
    struct dl_arena *arena;
    bool base;
};

/* Every profile needs memory bandwidth and one large GEMM: they are measured regardless of --only.
 */
static const char base_gemm[] = "m=1024 n=1024 k=1024 ";

static void add(struct builder *b, const char *probe, const char *shape, const char *pass,
                enum dl_cal_child child, double weight) {
    const bool of_device = b->plan->choice.gpus < 1 ? child == DL_CAL_CPU : child == DL_CAL_GPU;
    const bool base = b->base && (strcmp(probe, "stream") == 0 || strcmp(probe, "gpu-copy") == 0 ||
                                  (of_device && strstr(shape, base_gemm) == shape));
    if (!base && !dl_cal_chosen(&b->plan->choice, probe)) return;
    b->plan->points =
        dl_arena_grow(b->arena, b->plan->points, b->plan->count, sizeof *b->plan->points);
    b->plan->points[b->plan->count++] = (struct dl_cal_point){probe, shape, pass, child, weight};
}

static void add_gemms(struct builder *b) {
    const bool quick = b->plan->choice.quick;
    for (size_t i = 0; i < sizeof gemms / sizeof *gemms; i++) {
        const struct gemm_row *g = &gemms[i];
        if (quick && !g->quick) continue;
        const char *shape =
            dl_arena_printf(b->arena, "m=%d n=%d k=%d ta=%d tb=%d", g->m, g->n, g->k, g->ta, g->tb);
        add(b, "gemm", shape, "fwd", DL_CAL_CPU, 1);
        if (g->matmul || !quick) add(b, "matmul", shape, "fwd", DL_CAL_CPU, 1);
    }
}

static void add_convolutions(struct builder *b) {
    for (size_t i = 0; i < sizeof convs / sizeof *convs; i++) {
        const struct conv_row *c = &convs[i];
        if (b->plan->choice.quick && !c->quick) continue;
        const char *shape = dl_arena_printf(b->arena, "n=%d c=%d f=%d h=%d r=%d s=%d p=%d", c->n,
                                            c->c, c->f, c->h, c->r, c->s, c->p);
        for (int pass = 0; pass < 3; pass++) {
            /* No framework computes the gradient of the input images. */
            if (c->c > 3 || pass != 1) add(b, "conv", shape, passes[pass], DL_CAL_CPU, 1);
        }
    }
}

/* One device alone, then concurrently with all others of the host. The arrays exceed the caches. */
static void add_concurrent(struct builder *b) {
    const int64_t devices = b->plan->choice.devices;
    for (int64_t count = 1; devices > 1; count = devices) {
        add(b, "concurrent",
            dl_arena_printf(b->arena, "m=512 n=512 k=512 ta=0 tb=0 devices=%lld", (long long)count),
            "gemm", DL_CAL_CPU, 3);
        add(b, "concurrent",
            dl_arena_printf(b->arena, "bytes=67108864 devices=%lld", (long long)count), "copy",
            DL_CAL_CPU, 3);
        if (count == devices) break;
    }
}

static void add_messages(struct builder *b, const char *pass, enum dl_cal_child child) {
    const bool quick = b->plan->choice.quick;
    static const char *const probes[] = {"pingpong", "allreduce"};
    const long largest = quick ? 64L << 20 : 256L << 20;
    for (int i = 0; i < 2; i++) {
        for (long bytes = 8; bytes <= largest; bytes *= quick ? 4 : 2) {
            const long shown = quick && bytes * 4 > largest && bytes < largest ? largest : bytes;
            const char *shape = dl_arena_printf(b->arena, "bytes=%ld ranks=%lld", shown,
                                                (long long)b->plan->choice.ranks);
            add(b, probes[i], shape, pass, child, shown >= 16L << 20 ? 2 : 1);
        }
    }
}

/* Sizes from 8 bytes up to `largest`, each `factor` times the previous one. */
static void add_sizes(struct builder *b, const char *probe, int64_t ranks, long factor,
                      long largest, double weight) {
    for (long bytes = 8; bytes <= largest; bytes *= factor) {
        const long shown = bytes * factor > largest ? largest : bytes;
        const char *shape =
            dl_arena_printf(b->arena, "bytes=%ld ranks=%lld", shown, (long long)ranks);
        add(b, probe, shape, "net", DL_CAL_NET, shown >= 4L << 20 ? 2 * weight : weight);
    }
}

/* Over the network, one rank per node: all-reduce over rank sets of 2, 3, 4, 8, 16, ... and all
 * nodes, the other collectives over all. The largest message takes about a second on a slow network
 * (1 Gb/s). */
static void add_network(struct builder *b) {
    static const char *const others[] = {"allgather", "broadcast", "reducescatter", "alltoall"};
    const bool quick = b->plan->choice.quick;
    const int64_t nodes = b->plan->choice.nodes;
    const long largest = quick ? 16L << 20 : 128L << 20;
    if (nodes < 2) return;
    add_sizes(b, "pingpong", 2, 2, largest, 1);
    for (int64_t ranks = 2; ranks <= nodes; ranks = ranks < 4 ? ranks + 1 : 2 * ranks) {
        add_sizes(b, "allreduce", ranks, quick ? 4 : 2, largest, 1);
        if (ranks > 3 && ranks < nodes && 2 * ranks > nodes)
            add_sizes(b, "allreduce", nodes, quick ? 4 : 2, largest, 1);
    }
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        add_sizes(b, others[i], nodes, quick ? 8 : 4, largest, 1);
}

static void add_of_gpu(void *context, const char *probe, const char *shape, const char *pass,
                       enum dl_cal_child child, double weight) {
    add(context, probe, shape, pass, child, weight);
}

/* Where GPUs are the devices, the CPU does not train: its arithmetic is measured only if --only
 * names it. */
static void add_all(struct builder *b) {
    const bool quick = b->plan->choice.quick;
    const struct dl_cal_adder adder = {b, b->arena, add_of_gpu};
    if (b->plan->choice.gpus < 1 || b->plan->choice.only != NULL) {
        add_gemms(b);
        add_convolutions(b);
    }
    dl_cal_gpu_points(&b->plan->choice, &adder);
    const char *arrays = quick ? "bytes=67108864" : "bytes=268435456";
    add(b, "stream", arrays, "copy", DL_CAL_CPU, 4);
    add(b, "stream", arrays, "triad", DL_CAL_CPU, 4);
    add_concurrent(b);
    const char *file = quick ? "bytes=67108864" : "bytes=268435456";
    add(b, "write", file, "write", DL_CAL_CPU, 5);
    add(b, "read", file, "read", DL_CAL_CPU, 5);
    add_messages(b, "shm", DL_CAL_SHM);
    /* a stand-in for the network, which is not measured */
    if (b->plan->choice.nodes < 2) add_messages(b, "tcp", DL_CAL_TCP);
    add_network(b);
}

static uint64_t hash_text(uint64_t hash, const char *text) { /* FNV-1a */
    for (const char *c = text != NULL ? text : "";; c++) {
        hash = (hash ^ (unsigned char)*c) * UINT64_C(1099511628211);
        if (*c == 0) return hash;
    }
}

/* Scales the weights to shares that add up to the budget; sets hash and expected time. */
static void assign_shares(struct dl_cal_plan *plan, struct dl_arena *arena) {
    double weights = 0;
    bool used[DL_CAL_CHILDREN] = {false};
    for (size_t i = 0; i < plan->count; i++) weights += plan->points[i].share_s;
    uint64_t hash = hash_text(UINT64_C(14695981039346656037), plan->choice.file_dir);
    hash = hash_text(hash_text(hash, plan->choice.hostfile), plan->choice.launcher);
    for (size_t i = 0; i < plan->count; i++) {
        struct dl_cal_point *p = &plan->points[i];
        p->share_s *= plan->choice.budget_s / weights;
        used[p->child] = true;
        const char *share = dl_arena_printf(arena, "%.6g", p->share_s);
        hash = hash_text(hash_text(hash_text(hash_text(hash, p->probe), p->shape), p->pass), share);
    }
    plan->hash = hash;
    plan->expected_s = plan->count == 0 ? 0 : plan->choice.budget_s * (1 + WARM_FRAC);
    for (int i = 0; i < DL_CAL_CHILDREN; i++) {
        if (used[i]) plan->expected_s += dl_cal_children[i].start_s;
    }
}

static bool names(const char *only, const char *probe) {
    const size_t length = strlen(probe);
    for (const char *at = only; at != NULL; at = strchr(at, ',')) {
        if (*at == ',') at++;
        if (strncmp(at, probe, length) == 0 && (at[length] == 0 || at[length] == ',')) return true;
    }
    return false;
}

/* "beside" is the older name of the probe "concurrent". */
bool dl_cal_chosen(const struct dl_cal_choice *choice, const char *probe) {
    if (choice->only == NULL) return true;
    if (strcmp(probe, "concurrent") == 0 && names(choice->only, "beside")) return true;
    return names(choice->only, probe);
}

static enum dl_code check_names(const char *only, struct dl_arena *arena, struct dl_err *err) {
    const char *all[DL_CAL_PROBES_MAX + 1];
    int count = 0;
    for (; dl_cal_probes[count].name != NULL; count++) all[count] = dl_cal_probes[count].name;
    all[count] = NULL;
    for (const char *at = only; at != NULL;) {
        const char *comma = strchr(at, ',');
        const char *name =
            dl_arena_strndup(arena, at, comma != NULL ? (size_t)(comma - at) : strlen(at));
        bool known = strcmp(name, "beside") == 0;
        for (int i = 0; i < count; i++) known = known || strcmp(all[i], name) == 0;
        if (!known) {
            const char *near = dl_suggest(name, all);
            return dl_fail(
                err, DL_ERR_USAGE,
                "--only: unknown probe '%.60s'%s%s%s; 'dlmodel calibrate --list' shows all", name,
                near != NULL ? "; did you mean '" : "", near != NULL ? near : "",
                near != NULL ? "'" : "");
        }
        at = comma != NULL ? comma + 1 : NULL;
    }
    return DL_OK;
}

enum dl_code dl_cal_plan_make(const struct dl_cal_choice *choice, struct dl_arena *arena,
                              struct dl_cal_plan *out, struct dl_err *err) {
    DL_TRY(check_names(choice->only, arena, err));
    struct builder b = {.plan = out, .arena = arena, .base = choice->only != NULL};
    *out = (struct dl_cal_plan){.choice = *choice};
    if (isnan(out->choice.budget_s))
        out->choice.budget_s =
            (choice->quick ? QUICK_S : FULL_S) * (choice->nodes > 1 ? NODES_FACTOR : 1);
    add_all(&b);
    assign_shares(out, arena);
    return DL_OK;
}

double dl_cal_shape_number(const char *shape, const char *key) {
    const size_t length = strlen(key);
    for (const char *at = shape; at != NULL && *at != 0; at = strchr(at, ' ')) {
        if (*at == ' ') at++;
        if (strncmp(at, key, length) == 0 && at[length] == '=')
            return strtod(at + length + 1, NULL);
    }
    return NAN;
}
