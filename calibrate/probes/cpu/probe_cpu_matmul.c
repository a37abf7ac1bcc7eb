/* probe_cpu_matmul.c - probe "matmul": the same GEMMs as "gemm" (column-major C[m,n] = op(A) op(B))
 * by oneDNN, which sees the transposed row-major GEMM C'[n,m] = op(B)' op(A)'. */
#include "calibrate/probes/cpu/probe_cpu.h"

#ifdef DL_HAVE_ONEDNN

#include "calibrate/probes/cpu/probe_cpu_dnnl.h"

struct matmul {
    struct dl_dnnl_op op;
    dnnl_dim_t m, n, k;
    bool ta, tb;
};

static const char *unavailable(void) { return NULL; }

static void matmul_close(void *state) {
    struct matmul *g = state;
    dl_dnnl_end(&g->op);
}

static enum dl_code setup(struct matmul *g, struct dl_err *err) {
    const dnnl_dims_t b = {g->n, g->k}, a = {g->k, g->m}, c = {g->n, g->m};
    const dnnl_dims_t b_strides = {g->tb ? 1 : g->k, g->tb ? g->n : 1},
                      a_strides = {g->ta ? 1 : g->m, g->ta ? g->k : 1}, c_strides = {g->m, 1};
    dnnl_memory_desc_t *d = g->op.plain_descriptions;
    DL_TRY(dl_dnnl_start(&g->op, err));
    DL_TRY(dl_dnnl_check(dnnl_memory_desc_init_by_strides(&d[0], 2, b, dnnl_f32, b_strides),
                         "layout", err));
    DL_TRY(dl_dnnl_check(dnnl_memory_desc_init_by_strides(&d[1], 2, a, dnnl_f32, a_strides),
                         "layout", err));
    DL_TRY(dl_dnnl_check(dnnl_memory_desc_init_by_strides(&d[2], 2, c, dnnl_f32, c_strides),
                         "layout", err));
    dnnl_matmul_desc_t product;
    DL_TRY(
        dl_dnnl_check(dnnl_matmul_desc_init(&product, &d[0], &d[1], NULL, &d[2]), "matmul", err));
    DL_TRY(dl_dnnl_check(
        dnnl_primitive_desc_create(&g->op.description, &product, NULL, g->op.engine, NULL),
        "matmul", err));
    const int which[] = {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST};
    const dnnl_query_t layouts[] = {dnnl_query_src_md, dnnl_query_weights_md, dnnl_query_dst_md};
    return dl_dnnl_prepare(&g->op, which, layouts, err);
}

static enum dl_code matmul_open(const struct dl_point *point, void *state, struct dl_err *err) {
    struct matmul *g = state;
    g->m = dl_point_number(point, "m", 0);
    g->n = dl_point_number(point, "n", 0);
    g->k = dl_point_number(point, "k", 0);
    g->ta = dl_point_number(point, "ta", 0) != 0;
    g->tb = dl_point_number(point, "tb", 0) != 0;
    return setup(g, err);
}

static double matmul_run(void *state, long calls, struct dl_err *err) {
    struct matmul *g = state;
    return dl_dnnl_run(&g->op, calls, err);
}

static enum dl_code matmul_verify(void *state, struct dl_err *err) {
    struct matmul *g = state;
    DL_TRY(dl_dnnl_result(&g->op, err));
    return dl_verify_product(g->op.plain[1], g->op.plain[0], g->op.plain[2],
                             (const long[]){g->m, g->n, g->k, g->ta, g->tb}, err);
}

static const char *matmul_implementation(const void *state) {
    const struct matmul *g = state;
    return g->op.implementation;
}

const struct dl_probe dl_probe_matmul = DL_PROBE(
    "matmul", "GEMM, oneDNN", 20e-6, unavailable, struct matmul, matmul_open, matmul_run,
    .verify = matmul_verify, .implementation = matmul_implementation, .close = matmul_close);
#else
static const char *unavailable(void) {
    return "built without oneDNN 2 (install libdnnl-dev and build again)";
}

const struct dl_probe dl_probe_matmul = {
    .name = "matmul", .summary = "GEMM, oneDNN", .unavailable = unavailable};
#endif
