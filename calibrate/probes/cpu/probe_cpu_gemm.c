/* probe_cpu_gemm.c - probe "gemm": sgemm of OpenBLAS, column-major, beta = 0, as a framework calls
 * it. Shape "m= n= k= ta= tb=". OpenBLAS chooses its kernels by CPU (OPENBLAS_CORETYPE overrides);
 * the name is a fact of the profile, because an unknown CPU falls back to slower ones. */
#include "calibrate/probes/cpu/probe_cpu.h"

#ifdef DL_HAVE_OPENBLAS
#include <cblas.h>
#include <stdio.h>
#include <stdlib.h>

char *openblas_get_config(void);
char *openblas_get_corename(void);
int openblas_get_num_threads(void);

struct gemm {
    int m, n, k;
    bool ta, tb;
    float *a, *b, *c;
};

static const char *unavailable(void) { return NULL; }

static void gemm_close(void *state) {
    struct gemm *g = state;
    free(g->a);
    free(g->b);
    free(g->c);
}

static void multiply(const struct gemm *g) {
    cblas_sgemm(CblasColMajor, g->ta ? CblasTrans : CblasNoTrans, g->tb ? CblasTrans : CblasNoTrans,
                g->m, g->n, g->k, 1.0f, g->a, g->ta ? g->k : g->m, g->b, g->tb ? g->n : g->k, 0.0f,
                g->c, g->m);
}

/* Binds the threads and lets the clocks rise. Once per process; the sample reports a lack of
 * memory. */
static void settle_threads(void) {
    static bool settled;
    enum { SIDE = 768 };
    static const double SETTLE_S = 0.2;
    struct gemm g = {.m = SIDE, .n = SIDE, .k = SIDE};
    if (settled) return;
    settled = true;
    dl_spread_threads();
    g.a = calloc(SIDE * SIDE, sizeof *g.a);
    g.b = calloc(SIDE * SIDE, sizeof *g.b);
    g.c = calloc(SIDE * SIDE, sizeof *g.c);
    for (const double start = dl_now_s();
         g.a != NULL && g.b != NULL && g.c != NULL && dl_now_s() - start < SETTLE_S;)
        multiply(&g);
    free(g.a);
    free(g.b);
    free(g.c);
}

static enum dl_code gemm_open(const struct dl_point *point, void *state, struct dl_err *err) {
    struct gemm *g = state;
    settle_threads();
    g->m = (int)dl_point_number(point, "m", 0);
    g->n = (int)dl_point_number(point, "n", 0);
    g->k = (int)dl_point_number(point, "k", 0);
    g->ta = dl_point_number(point, "ta", 0) != 0;
    g->tb = dl_point_number(point, "tb", 0) != 0;
    const size_t m = (size_t)g->m, n = (size_t)g->n, k = (size_t)g->k;
    g->a = malloc(m * k * sizeof *g->a);
    g->b = malloc(k * n * sizeof *g->b);
    g->c = malloc(m * n * sizeof *g->c);
    if (g->a == NULL || g->b == NULL || g->c == NULL)
        return dl_fail(err, DL_ERR_SYSTEM, "out of memory for a GEMM with %s", point->shape);
    dl_fill_random(g->a, m * k, 1);
    dl_fill_random(g->b, k * n, 2);
    dl_fill_random(g->c, m * n, 3);
    return DL_OK;
}

static double gemm_run(void *state, long calls, struct dl_err *err) {
    (void)err;
    const struct gemm *g = state;
    const double start = dl_now_s();
    for (long i = 0; i < calls; i++) multiply(g);
    return dl_now_s() - start;
}

static enum dl_code gemm_verify(void *state, struct dl_err *err) {
    const struct gemm *g = state;
    return dl_verify_product(g->a, g->b, g->c, (const long[]){g->m, g->n, g->k, g->ta, g->tb}, err);
}

static const char *gemm_implementation(const void *state) {
    (void)state;
    static char text[64];
    snprintf(text, sizeof text, "openblas:%s", openblas_get_corename());
    return text;
}

void dl_openblas_facts(void) {
    char text[32];
    dl_print_fact("openblas", openblas_get_config());
    dl_print_fact("openblas_core", openblas_get_corename());
    snprintf(text, sizeof text, "%d", openblas_get_num_threads());
    dl_print_fact("openblas_threads", text);
}

const struct dl_probe dl_probe_gemm =
    DL_PROBE("gemm", "GEMM, OpenBLAS", 20e-6, unavailable, struct gemm, gemm_open, gemm_run,
             .verify = gemm_verify, .implementation = gemm_implementation, .close = gemm_close);
#else
static const char *unavailable(void) {
    return "built without OpenBLAS (install libopenblas-dev and build again)";
}

void dl_openblas_facts(void) {}

const struct dl_probe dl_probe_gemm = {
    .name = "gemm", .summary = "GEMM, OpenBLAS", .unavailable = unavailable};
#endif
