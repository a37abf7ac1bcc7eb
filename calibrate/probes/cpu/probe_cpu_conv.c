/* probe_cpu_conv.c - probe "conv": two-dimensional convolution by oneDNN, passes fwd, bwd_data,
 * bwd_filter, algorithm "direct", which frameworks request (unverified; "auto" takes Winograd for
 * some shapes). Shape "n= c= f= h= r= s= p=": batch, channels in and out, side, kernel, stride,
 * padding. No bias (its gradient is a separate kernel in the model). */
#include "calibrate/probes/cpu/probe_cpu.h"

#ifdef DL_HAVE_ONEDNN
#include <math.h>
#include <string.h>

#include "calibrate/probes/cpu/probe_cpu_dnnl.h"

struct conv {
    struct dl_dnnl_op op;
    enum { FORWARD, DATA, WEIGHTS } pass;
    dnnl_dim_t n, c, f, h, r, s, p, out;
};

static const char *unavailable(void) { return NULL; }

static void conv_close(void *state) {
    struct conv *c = state;
    dl_dnnl_end(&c->op);
}

struct tensors {
    dnnl_memory_desc_t x, w, y; /* any layout: the primitive chooses */
};

static enum dl_code describe(struct conv *c, struct tensors *any, struct tensors *plain,
                             struct dl_err *err) {
    const dnnl_dims_t x = {c->n, c->c, c->h, c->h}, w = {c->f, c->c, c->r, c->r},
                      y = {c->n, c->f, c->out, c->out};
    const dnnl_dims_t *dims[] = {&x, &w, &y};
    dnnl_memory_desc_t *free_form[] = {&any->x, &any->w, &any->y},
                       *indexed[] = {&plain->x, &plain->w, &plain->y};
    for (int i = 0; i < 3; i++) {
        DL_TRY(dl_dnnl_check(
            dnnl_memory_desc_init_by_tag(free_form[i], 4, *dims[i], dnnl_f32, dnnl_format_tag_any),
            "layout", err));
        DL_TRY(dl_dnnl_check(
            dnnl_memory_desc_init_by_tag(indexed[i], 4, *dims[i], dnnl_f32, dnnl_nchw), "layout",
            err));
    }
    return DL_OK;
}

static enum dl_code create(struct conv *c, const struct tensors *any, struct dl_err *err) {
    const dnnl_dims_t stride = {c->s, c->s}, pad = {c->p, c->p};
    const dnnl_alg_kind_t algorithm = dnnl_convolution_direct;
    dnnl_convolution_desc_t d;
    DL_TRY(dl_dnnl_check(dnnl_convolution_forward_desc_init(&d, dnnl_forward_training, algorithm,
                                                            &any->x, &any->w, NULL, &any->y, stride,
                                                            pad, pad),
                         "convolution", err));
    dnnl_primitive_desc_t *forward = c->pass == FORWARD ? &c->op.description : &c->op.hint;
    DL_TRY(dl_dnnl_check(dnnl_primitive_desc_create(forward, &d, NULL, c->op.engine, NULL),
                         "convolution", err));
    if (c->pass == FORWARD) return DL_OK;
    const dnnl_status_t status =
        c->pass == DATA ? dnnl_convolution_backward_data_desc_init(&d, algorithm, &any->x, &any->w,
                                                                   &any->y, stride, pad, pad)
                        : dnnl_convolution_backward_weights_desc_init(
                              &d, algorithm, &any->x, &any->w, NULL, &any->y, stride, pad, pad);
    DL_TRY(dl_dnnl_check(status, "backward convolution", err));
    return dl_dnnl_check(
        dnnl_primitive_desc_create(&c->op.description, &d, NULL, c->op.engine, c->op.hint),
        "backward convolution", err);
}

static enum dl_code setup(struct conv *c, struct dl_err *err) {
    struct tensors any, plain;
    DL_TRY(dl_dnnl_start(&c->op, err));
    DL_TRY(describe(c, &any, &plain, err));
    DL_TRY(create(c, &any, err));
    dnnl_memory_desc_t *d = c->op.plain_descriptions;
    if (c->pass == FORWARD) {
        d[0] = plain.x, d[1] = plain.w, d[2] = plain.y;
        const int which[] = {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST};
        const dnnl_query_t layouts[] = {dnnl_query_src_md, dnnl_query_weights_md,
                                        dnnl_query_dst_md};
        return dl_dnnl_prepare(&c->op, which, layouts, err);
    }
    if (c->pass == DATA) {
        d[0] = plain.y, d[1] = plain.w, d[2] = plain.x;
        const int which[] = {DNNL_ARG_DIFF_DST, DNNL_ARG_WEIGHTS, DNNL_ARG_DIFF_SRC};
        const dnnl_query_t layouts[] = {dnnl_query_diff_dst_md, dnnl_query_weights_md,
                                        dnnl_query_diff_src_md};
        return dl_dnnl_prepare(&c->op, which, layouts, err);
    }
    d[0] = plain.x, d[1] = plain.y, d[2] = plain.w;
    const int which[] = {DNNL_ARG_SRC, DNNL_ARG_DIFF_DST, DNNL_ARG_DIFF_WEIGHTS};
    const dnnl_query_t layouts[] = {dnnl_query_src_md, dnnl_query_diff_dst_md,
                                    dnnl_query_diff_weights_md};
    return dl_dnnl_prepare(&c->op, which, layouts, err);
}

static enum dl_code conv_open(const struct dl_point *point, void *state, struct dl_err *err) {
    struct conv *c = state;
    c->pass = strcmp(point->pass, "bwd_data") == 0     ? DATA
              : strcmp(point->pass, "bwd_filter") == 0 ? WEIGHTS
                                                       : FORWARD;
    c->n = dl_point_number(point, "n", 1);
    c->c = dl_point_number(point, "c", 1);
    c->f = dl_point_number(point, "f", 1);
    c->h = dl_point_number(point, "h", 1);
    c->r = dl_point_number(point, "r", 1);
    c->s = dl_point_number(point, "s", 1);
    c->p = dl_point_number(point, "p", 0);
    c->out = (c->h + 2 * c->p - c->r) / c->s + 1;
    return setup(c, err);
}

static double conv_run(void *state, long calls, struct dl_err *err) {
    struct conv *c = state;
    return dl_dnnl_run(&c->op, calls, err);
}

/* Index into a tensor of (.., channels, side, side). */
static size_t at(dnnl_dim_t a, dnnl_dim_t b, dnnl_dim_t y, dnnl_dim_t x, dnnl_dim_t channels,
                 dnnl_dim_t side) {
    return (size_t)(((a * channels + b) * side + y) * side + x);
}

/* One term of the sum for element (a, b, y, x) of the result: operands as plain[] holds them.
 * false: padding, or a position that the stride skips. `outer` counts what the sum runs over
 * besides the positions (i, j): channels, filters or samples. */
static bool term(const struct conv *c, const dnnl_dim_t e[4], dnnl_dim_t outer, dnnl_dim_t i,
                 dnnl_dim_t j, double *value) {
    const float *first = c->op.plain[0], *second = c->op.plain[1];
    if (c->pass == DATA) { /* dx = sum of dy w over filters and taps */
        const dnnl_dim_t y = e[2] + c->p - i, x = e[3] + c->p - j;
        if (y < 0 || x < 0 || y % c->s != 0 || x % c->s != 0 || y / c->s >= c->out ||
            x / c->s >= c->out)
            return false;
        *value = (double)first[at(e[0], outer, y / c->s, x / c->s, c->f, c->out)] *
                 (double)second[at(outer, e[1], i, j, c->c, c->r)];
        return true;
    }
    /* forward: taps (i, j) of output (y, x); weights: outputs (i, j) of tap (y, x) */
    const bool forward = c->pass == FORWARD;
    const dnnl_dim_t v = (forward ? e[2] * c->s + i : i * c->s + e[2]) - c->p,
                     u = (forward ? e[3] * c->s + j : j * c->s + e[3]) - c->p;
    if (v < 0 || u < 0 || v >= c->h || u >= c->h) return false;
    const size_t left = forward ? at(e[0], outer, v, u, c->c, c->h)
                                : at(outer, e[1], v, u, c->c, c->h),
                 right = forward ? at(e[1], outer, i, j, c->c, c->r)
                                 : at(outer, e[0], i, j, c->f, c->out);
    *value = (double)first[left] * (double)second[right];
    return true;
}

static double naive_sum(const struct conv *c, const dnnl_dim_t e[4], double *terms) {
    const dnnl_dim_t outer[] = {[FORWARD] = c->c, [DATA] = c->f, [WEIGHTS] = c->n};
    const dnnl_dim_t side = c->pass == WEIGHTS ? c->out : c->r;
    double sum = 0, value;
    for (dnnl_dim_t o = 0; o < outer[c->pass]; o++) {
        for (dnnl_dim_t i = 0; i < side; i++) {
            for (dnnl_dim_t j = 0; j < side; j++) {
                if (!term(c, e, o, i, j, &value)) continue;
                sum += value;
                *terms += 1;
            }
        }
    }
    return sum;
}

static enum dl_code conv_verify(void *state, struct dl_err *err) {
    struct conv *c = state;
    DL_TRY(dl_dnnl_result(&c->op, err));
    const dnnl_dim_t channels[] = {c->f, c->c, c->c}, sides[] = {c->out, c->h, c->r};
    const dnnl_dim_t outer = c->pass == WEIGHTS ? c->f : c->n, side = sides[c->pass],
                     inner = channels[c->pass];
    uint64_t random = 31;
    for (int t = 0; t < 8; t++) {
        const dnnl_dim_t a = (dnnl_dim_t)(dl_random_next(&random) % (uint64_t)outer);
        const dnnl_dim_t b = (dnnl_dim_t)(dl_random_next(&random) % (uint64_t)inner);
        const dnnl_dim_t y = (dnnl_dim_t)(dl_random_next(&random) % (uint64_t)side);
        const dnnl_dim_t x = (dnnl_dim_t)(dl_random_next(&random) % (uint64_t)side);
        double terms = 0;
        const double expected = naive_sum(c, (const dnnl_dim_t[]){a, b, y, x}, &terms);
        const double got = (double)c->op.plain[2][at(a, b, y, x, inner, side)];
        /* The library sums in another order: 1e-4 of the spread is far above rounding and far below
         * a wrong index. */
        if (!(fabs(got - expected) <= 1e-4 * (10 + sqrt(terms)))) {
            return dl_fail(err, DL_ERR_BACKEND, "wrong result: %g, expected %g", got, expected);
        }
    }
    return DL_OK;
}

static const char *conv_implementation(const void *state) {
    const struct conv *c = state;
    return c->op.implementation;
}

const struct dl_probe dl_probe_conv = DL_PROBE(
    "conv", "convolution, three passes, oneDNN", 20e-6, unavailable, struct conv, conv_open,
    conv_run, .verify = conv_verify, .implementation = conv_implementation, .close = conv_close);
#else
static const char *unavailable(void) {
    return "built without oneDNN 2 (install libdnnl-dev and build again)";
}

const struct dl_probe dl_probe_conv = {
    .name = "conv", .summary = "convolution, three passes, oneDNN", .unavailable = unavailable};
#endif
