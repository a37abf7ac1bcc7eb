/* calibrate on GPUs, above the driver: the 16-bit and 8-bit numbers of the probes, the plan of
 * points, and the profile from samples. DeepBench samples of a real V100 (data/kernels, source
 * deepbench), in the format of the probes, stand in for a recorded calibration. Bandwidth and
 * launch times are made up and marked so. */
#include "calibrate/plan/cal_gpu_plan.h"
#include "calibrate/profile/cal_gpu.h"
#include "calibrate/fits/fit_kernel.h"
#include "model/catalog/data.h"
#include "model/statistics/stats.h"
#include "tests/check.h"
#include "tests/load_workload.h"
/* A file of the probes, which the library does not contain. */
#include "calibrate/probes/gpu/probe_gpu_number.c"

static const struct dl_kernel_facts PLAIN = {.precision = DL_FP32};

/* ---- numbers ---- */

static unsigned bits_of(enum dl_gpu_type type, double value) {
    unsigned char b[4] = {0};
    dl_gpu_encode(type, value, b);
    return (unsigned)b[0] | (unsigned)b[1] << 8;
}

/* By hand. fp16 of 1/3: 2^-2 x 1.333, 0.333 x 1024 = 341.3: exponent field -2 + 15 = 13, fraction
 * 341 = 0x155: 0x3555. bf16: field 125, 0.333 x 128 = 42.7: 43 = 0x2b: 0x3eab. E4M3 of 0.3: 2^-2 x
 * 1.2, 0.2 x 8 = 1.6: field 5, fraction 2: 0x2a. */
static void numbers_by_hand(void **state) {
    assert_int_equal(bits_of(DL_GPU_F16, 1.0 / 3), 0x3555);
    assert_int_equal(bits_of(DL_GPU_BF16, 1.0 / 3), 0x3eab);
    assert_int_equal(bits_of(DL_GPU_F8, 0.3), 0x2a);
    assert_int_equal(bits_of(DL_GPU_F16, 1.0), 0x3c00);
    assert_int_equal(bits_of(DL_GPU_F16, -2.0), 0xc000);
    assert_int_equal(bits_of(DL_GPU_F16, 0x1p-24), 0x0001); /* the smallest subnormal */
    assert_int_equal(bits_of(DL_GPU_F16, 65504.0), 0x7bff); /* the largest */
    assert_int_equal(bits_of(DL_GPU_F16, 2049.0), 0x6800);  /* a tie goes to the even 2048 */
    assert_int_equal(bits_of(DL_GPU_F16, 2051.0), 0x6802);  /* and to the even 2052 */
    assert_int_equal(bits_of(DL_GPU_F16, 1.99999), 0x4000); /* up to the next power of two */
    assert_int_equal(bits_of(DL_GPU_F8, 448.0), 0x7e);
    assert_int_equal(bits_of(DL_GPU_F8, 1000.0), 0x7e); /* no infinity */
    assert_int_equal(bits_of(DL_GPU_F8, 0x1p-9), 0x01);
    for (unsigned b = 0; b < 0x7c00; b++) { /* every finite fp16 goes there and back */
        const unsigned char in[2] = {(unsigned char)b, (unsigned char)(b >> 8)};
        assert_int_equal(bits_of(DL_GPU_F16, dl_gpu_decode(DL_GPU_F16, in)), b);
    }
    check_close(dl_gpu_round(DL_GPU_F32, 0.1), (double)0.1f, 0);
}

static void judgement(void **state) {
    const struct dl_gpu_precision *fp32 = dl_gpu_precision_of(&(struct dl_point){.shape = "m=1"});
    const struct dl_gpu_precision *mixed =
        dl_gpu_precision_of(&(struct dl_point){.shape = "m=1 prec=mixed b=2"});
    struct dl_err err;
    assert_string_equal(mixed->name, "mixed");
    assert_null(dl_gpu_precision_of(&(struct dl_point){.shape = "m=1 prec=mixe"}));
    assert_int_equal(dl_gpu_judge(fp32, 1024, 1, 7, 10.00001, 10, &err), DL_OK);
    assert_int_equal(dl_gpu_judge(fp32, 1024, 1, 7, 10.001, 10, &err), DL_ERR_BACKEND);
    check_contains(err.message, "element 7");
    assert_int_equal(dl_gpu_judge(mixed, 1024, 1, 7, 10.005, 10, &err), DL_OK);
    assert_int_equal(dl_gpu_judge(mixed, 1024, 1, 7, 10.1, 10, &err), DL_ERR_BACKEND);
    assert_int_equal(dl_gpu_judge(fp32, 1024, 1, 7, NAN, 10, &err), DL_ERR_BACKEND);
}

/* ---- the plan ---- */

static size_t with(const struct dl_cal_plan *plan, const char *probe, const char *text) {
    size_t count = 0;
    for (size_t i = 0; i < plan->count; i++)
        count += strncmp(plan->points[i].probe, probe, strlen(probe)) == 0 &&
                 strstr(plan->points[i].shape, text) != NULL;
    return count;
}

static void make_plan(struct dl_cal_choice choice, struct dl_arena *arena,
                      struct dl_cal_plan *out) {
    struct dl_err err;
    choice.budget_s = NAN;
    choice.ranks = 2;
    choice.file_dir = ".";
    if (choice.nodes == 0) choice.nodes = 1;
    if (dl_cal_plan_make(&choice, arena, out, &err) != DL_OK) fail_msg("%s", err.message);
}

static void a_plan_fits_the_device(void **state) {
    struct dl_cal_plan pascal, volta, ampere, hopper, eight, none, quick;
    make_plan((struct dl_cal_choice){.gpus = 1, .capability = 52}, &test_arena, &pascal);
    make_plan((struct dl_cal_choice){.gpus = 1, .capability = 70}, &test_arena, &volta);
    make_plan((struct dl_cal_choice){.gpus = 1, .capability = 80}, &test_arena, &ampere);
    make_plan((struct dl_cal_choice){.gpus = 1, .capability = 90}, &test_arena, &hopper);
    make_plan((struct dl_cal_choice){.gpus = 8, .capability = 80, .nodes = 4}, &test_arena, &eight);
    make_plan((struct dl_cal_choice){.gpus = 0}, &test_arena, &none);
    make_plan((struct dl_cal_choice){.gpus = 8, .capability = 80, .quick = true}, &test_arena,
              &quick);
    assert_int_equal(with(&pascal, "gpu-", "prec="), 0);
    assert_true(with(&volta, "gpu-gemm", "prec=mixed") > 40 &&
                with(&volta, "gpu-", "prec=tf32") == 0);
    assert_true(with(&ampere, "gpu-conv", "prec=tf32") > 90 &&
                with(&ampere, "gpu-gemm", "prec=bf16") > 40);
    assert_int_equal(with(&ampere, "gpu-", "prec=fp8"), 0);
    assert_true(with(&hopper, "gpu-gemm", "prec=fp8") > 5);
    assert_int_equal(with(&none, "gpu-", ""), 0);
    assert_int_equal(with(&volta, "conv", ""), 0); /* not the CPU's */
    assert_int_equal(with(&volta, "nccl-", ""), 0);
    for (int ranks = 2; ranks <= 8; ranks++) {
        char text[32];
        snprintf(text, sizeof text, "bytes=8 ranks=%d", ranks);
        assert_true(with(&eight, "nccl-allreduce", text) > 0);
    }
    assert_true(with(&eight, "nccl-alltoall", "ranks=32 nodes=4") > 0 &&
                with(&eight, "nccl-allreduce", "ranks=16 nodes=2") > 0);
    assert_true(quick.count < eight.count / 2 && quick.expected_s <= 60);
    for (size_t i = 0; i < hopper.count; i++) { /* the journal could not tell two alike apart */
        for (size_t j = 0; j < i; j++) {
            assert_false(strcmp(hopper.points[i].probe, hopper.points[j].probe) == 0 &&
                         strcmp(hopper.points[i].shape, hopper.points[j].shape) == 0 &&
                         strcmp(hopper.points[i].pass, hopper.points[j].pass) == 0);
        }
    }
}

static void exact_layers_of_a_workload(void **state) {
    struct dl_workload vgg16, bert;
    struct dl_cal_plan plan;
    load_name("vgg16", NULL, 0, &test_arena, &vgg16);
    load_name("bert_base", NULL, 0, &test_arena, &bert);
    make_plan((struct dl_cal_choice){.gpus = 1,
                                     .capability = 70,
                                     .quick = true,
                                     .workload_name = "vgg16",
                                     .workload = &vgg16},
              &test_arena, &plan);
    /* conv4_1, 256 to 512 channels at 28 x 28: three passes, two precisions, once */
    assert_int_equal(with(&plan, "gpu-conv", "n=32 c=256 f=512 h=28 w=28 r=3 q=3 s=1 p=1 t=1"), 6);
    assert_true(with(&plan, "gpu-conv", "c=3 f=64 h=224 w=224") >= 4);
    make_plan((struct dl_cal_choice){.gpus = 1,
                                     .capability = 70,
                                     .quick = true,
                                     .workload_name = "bert_base",
                                     .workload = &bert},
              &test_arena, &plan);
    assert_true(with(&plan, "gpu-batch", "b=384") > 0); /* attention: 32 samples, 12 heads */
}

/* ---- the profile ---- */

struct replay {
    struct dl_arena arena;
    struct dl_cal_journal journal;
    struct dl_kernel_sample *published;
    size_t count, capacity;
};

static void add_sample(struct replay *r, const char *probe, const char *shape, const char *pass,
                       const char *precision, double time_s) {
    assert_true(r->journal.sample_count < r->capacity);
    r->journal.samples[r->journal.sample_count++] = (struct dl_raw_sample){.probe = probe,
                                                                           .shape = shape,
                                                                           .pass = pass,
                                                                           .precision = precision,
                                                                           .median_s = time_s,
                                                                           .low_s = time_s,
                                                                           .high_s = time_s,
                                                                           .repeats = 10,
                                                                           .drift_frac = NAN,
                                                                           .min_s = NAN,
                                                                           .load_average = NAN,
                                                                           .clock_hz = NAN,
                                                                           .power_w = NAN,
                                                                           .preempted = 0};
}

static void add_fact(struct replay *r, const char *key, const char *value) {
    r->journal.facts[r->journal.fact_count++] = (struct dl_cal_fact){key, value};
}

static const char *shape_text(struct dl_arena *arena, const struct dl_kernel_sample *s) {
    const struct dl_kernel *k = &s->kernel;
    const char *suffix = s->precision == DL_MIXED ? " prec=mixed" : "";
    if (k->op == DL_OP_GEMM)
        return dl_arena_printf(arena, "m=%.0f n=%.0f k=%.0f ta=%d tb=%d%s", k->m, k->n, k->k,
                               k->a_trans, k->b_trans, suffix);
    return dl_arena_printf(
        arena, "n=%.0f c=%.0f f=%.0f h=%.0f w=%.0f r=%.0f q=%.0f s=%.0f p=%.0f t=%.0f%s", k->batch,
        k->in_channels, k->out_channels, k->in[1], k->in[2], k->kernel[1], k->kernel[2],
        k->stride[1], k->pad[1], k->pad[2], suffix);
}

static void load_v100(struct replay *r) {
    static const char *const files[] = {"deepbench_gemm", "deepbench_conv"};
    struct dl_err err = {0};
    *r = (struct replay){.capacity = 4096};
    r->journal.header =
        (struct dl_cal_header){.started = "2018-06-01T00:00:00Z", .choice.budget_s = 200};
    r->journal.samples = dl_arena_alloc(&r->arena, r->capacity, sizeof *r->journal.samples);
    r->journal.facts = dl_arena_alloc(&r->arena, 32, sizeof *r->journal.facts);
    r->published = dl_arena_alloc(&r->arena, r->capacity, sizeof *r->published);
    for (int f = 0; f < 2; f++) {
        struct dl_kernel_samples part;
        const char *path =
            dl_arena_printf(&r->arena, "%s/data/kernels/%s.csv", check_root(), files[f]);
        const struct dl_device v100 = {.name = "v100_sxm2_16"};
        if (dl_fit_read_samples(path, &v100, &r->arena, &part, &err) != DL_OK)
            fail_msg("%s", err.message);
        for (size_t i = 0; i < part.count; i++) {
            const struct dl_kernel_sample *sample = &part.rows[i];
            const struct dl_kernel *k = &sample->kernel;
            /* no shape of the probe */
            if (k->op == DL_OP_CONV && k->stride[1] != k->stride[2]) continue;
            r->published[r->count++] = *sample;
            add_sample(r, k->op == DL_OP_GEMM ? "gpu-gemm" : "gpu-conv",
                       shape_text(&r->arena, sample), dl_pass_names[k->pass],
                       dl_precision_names[sample->precision], sample->time_s);
        }
    }
    /* made up, except the copy: 739 GB/s (v100-bandwidthtest in data/SOURCES.md) */
    add_sample(r, "gpu-copy", "bytes=268435456", "copy", "fp32", 2 * 268435456.0 / 739e9);
    add_sample(r, "gpu-launch", "n=32", "train", "fp32", 4e-6);
    add_sample(r, "gpu-launch", "n=32", "queue", "fp32", 3e-6);
    add_sample(r, "gpu-host", "bytes=67108864", "h2d_pinned", "fp32", 67108864 / 11e9);
    add_sample(r, "gpu-host", "bytes=67108864", "d2h_pinned", "fp32", 67108864 / 12e9);
    add_fact(r, "gpu", "Tesla V100 (DeepBench's samples replayed)");
    add_fact(r, "gpu_count", "4");
    add_fact(r, "gpu_capability", "70");
    add_fact(r, "gpu_units", "80");
    add_fact(r, "gpu_l2_bytes", "6291456");
    add_fact(r, "gpu_memory_bytes", "1.6945e+10");
    add_fact(r, "gpu_peak_bytes_per_s", "8.98048e+11");
    add_fact(r, "nccl", "2.4.8");
}

static const struct dl_cal_run RUN = {.host = {.name = "node7",
                                               .kernel = "Linux",
                                               .cpu = "Test CPU",
                                               .sockets = 2,
                                               .cores = 40,
                                               .memory_bytes = 4e11,
                                               .last_cache_bytes = 5e7,
                                               .clock_hz = 2e9},
                                      .finished = "2018-06-01T00:03:00Z",
                                      .load_after = 1,
                                      .seconds = 180};

static void make_profile(struct replay *r, struct dl_system *out) {
    struct dl_err err = {0};
    struct dl_json *doc;
    char *text;
    if (dl_cal_profile(&r->journal, &RUN, &r->arena, out, &err) != DL_OK)
        fail_msg("%s", err.message);
    if (dl_cal_profile_text(out, "local.json", &r->arena, &text, &err) != DL_OK)
        fail_msg("%s %s", err.key, err.message);
    if (dl_json_parse("local.json", text, strlen(text), &r->arena, &doc, &err) != DL_OK ||
        dl_json_load(doc, &dl_system_schema, &r->arena, out, &err) !=
            DL_OK) /* as predict reads it */
        fail_msg("%s", err.message);
    for (int i = 0; i < out->profile.kernel_model_count; i++) {
        if (dl_kernel_model_pack(&out->profile.kernel_models[i], &r->arena, &err) != DL_OK)
            fail_msg("%s", err.message);
    }
}

static double kernels_s(const struct dl_device *device, const struct dl_workload *w,
                        enum dl_precision precision, double batch) {
    double sum = 0;
    for (int layer = 0; layer < w->layer_count; layer++) {
        for (int pass = DL_FORWARD; pass <= DL_BACKWARD_WEIGHTS; pass++) {
            struct dl_kernel kernels[DL_LAYER_KERNELS];
            const int count = w->layers[layer].kind->kernels(&w->layers[layer], &PLAIN,
                                                             (enum dl_pass)pass, batch, kernels);
            for (int i = 0; i < count; i++) {
                struct dl_kernel_time t;
                if (kernels[i].op == DL_OP_STREAM) continue;
                dl_kernel_time(device, precision, &kernels[i], &t);
                sum += t.time_s;
            }
        }
    }
    return sum;
}

/* The fits of calibrate against the samples that they come from, and against the fits of
 * data/kernels from the same samples, which know the datasheet. */
static void a_v100_replayed(void **state) {
    struct replay r;
    struct dl_system profile;
    struct dl_err err;
    load_v100(&r);
    make_profile(&r, &profile);
    const struct dl_device *d = &profile.profile;
    assert_int_equal(d->kind, DL_DEVICE_GPU);
    assert_string_equal(d->architecture, "volta");
    assert_int_equal(profile.devices_per_node, 4);
    assert_true(profile.has_intra && profile.intra.assumed); /* no NVML, no NCCL: PCIe */
    check_close(profile.intra.bandwidth_bytes_per_s, 12e9, 1e-9);
    assert_int_equal(d->unit_count, 80);
    check_close(d->memory_bandwidth_bytes_per_s * d->memory_efficiency, 739e9, 1e-6);
    check_close(d->kernel_latency_s, 4e-6, 1e-9);
    check_close(d->launch_s, 3e-6, 1e-9);
    check_close(profile.host.copy_bandwidth_bytes_per_s, 11e9, 1e-9);
    double best[2] = {0, 0}; /* fp32, mixed: largest flop / time of the table itself */
    for (size_t i = 0; i < r.count; i++) {
        const struct dl_kernel_sample *s = &r.published[i];
        if (s->kernel.op == DL_OP_GEMM)
            best[s->precision == DL_MIXED] =
                fmax(best[s->precision == DL_MIXED], s->kernel.flop / s->time_s);
    }
    assert_int_equal(d->rate_count, 2);
    check_close(d->rates[0].peak_flop_per_s, best[0], 1e-9);
    check_close(dl_device_peak(d, DL_MIXED), best[1], 1e-9);
    assert_int_equal(d->rates[1].unit, 1);
    double *errors = dl_arena_alloc(&r.arena, r.count, sizeof *errors),
           *scratch = dl_arena_alloc(&r.arena, r.count, sizeof *scratch);
    for (size_t i = 0; i < r.count; i++) {
        struct dl_kernel_time t;
        dl_kernel_time(d, r.published[i].precision, &r.published[i].kernel, &t);
        assert_string_equal(t.origin, "fitted");
        errors[i] = fabs(t.time_s / r.published[i].time_s - 1);
    }
    /* in-sample; the fits' own cross-validation is in `measurement` */
    assert_true(dl_median(errors, r.count, scratch) < 0.05);
    const char *const directories[] = {dl_arena_printf(&r.arena, "%s/data", check_root())};
    const struct dl_data data = {.directories = directories, .directory_count = 1};
    const struct dl_device *known;
    if (dl_data_device(&data, "v100_sxm2_16", &r.arena, &known, &err) != DL_OK)
        fail_msg("%s", err.message);
    static const char *const workloads[] = {"resnet50", "vgg16", "alexnet"};
    for (int i = 0; i < 3; i++) {
        struct dl_workload w;
        load_name(workloads[i], NULL, 0, &r.arena, &w);
        check_close(kernels_s(d, &w, DL_FP32, 32), kernels_s(known, &w, DL_FP32, 32), 0.10);
        check_close(kernels_s(d, &w, DL_MIXED, 64), kernels_s(known, &w, DL_MIXED, 64), 0.12);
    }
    dl_arena_free(&r.arena);
}

/* Bandwidth by hand: an all-reduce of 64 MiB over 4 ranks in 1 ms has a bus bandwidth of 2 x 3/4 x
 * 67108864 / 1e-3 = 100.7 GB/s. */
static void topology_and_collectives(void **state) {
    struct replay r;
    struct dl_system profile;
    load_v100(&r);
    add_fact(&r, "gpu_links", "0-1:2 0-2:1 0-3:1 1-2:1 1-3:1 2-3:2");
    add_fact(&r, "gpu_link_kind", "nvlink2");
    add_fact(&r, "nic_0", "mlx5_0 infiniband 100 Gb/s PIX");
    add_fact(&r, "nic_1", "mlx5_1 infiniband 100 Gb/s SYS");
    add_fact(&r, "nic_2", "eno1 ethernet 1 Gb/s SYS");
    add_fact(&r, "gpudirect", "nvidia_peermem");
    /* before any NCCL sample: device 0 has 2 + 1 + 1 links of 20 GB/s */
    make_profile(&r, &profile);
    assert_true(profile.intra.assumed);
    check_close(profile.intra.bandwidth_bytes_per_s, 80e9, 1e-9);
    for (int i = 0; i < 4; i++) {
        /* not in order: --resume */
        static const char *const bytes[] = {"67108864", "8", "65536", "1048576"};
        static const double time_s[] = {1e-3, 20e-6, 21e-6, 35e-6};
        add_sample(&r, "nccl-allreduce", dl_arena_printf(&r.arena, "bytes=%s ranks=4", bytes[i]),
                   "gpu", "fp32", time_s[i]);
        add_sample(&r, "nccl-allreduce", dl_arena_printf(&r.arena, "bytes=%s ranks=2", bytes[i]),
                   "gpu", "fp32", 0.7 * time_s[i]);
        add_sample(&r, "nccl-sendrecv", dl_arena_printf(&r.arena, "bytes=%s ranks=2", bytes[i]),
                   "gpu", "fp32", 0.6 * time_s[i]);
    }
    make_profile(&r, &profile);
    assert_string_equal(profile.intra.kind, "nvlink2");
    assert_false(profile.intra.assumed);
    check_close(profile.intra.bandwidth_bytes_per_s, 100.663296e9, 1e-9);
    check_close(profile.intra.latency_s, 12e-6, 1e-9);
    assert_int_equal(profile.intra.edge_count, 6);
    assert_int_equal(profile.intra.edges[0].links, 2);
    assert_int_equal(profile.collective_count, 3);
    const struct dl_coll_measured *c = &profile.collectives[0];
    assert_string_equal(c->library, "nccl");
    assert_string_equal(c->library_version, "2.4.8");
    assert_int_equal(c->sample_count, 4);
    check_close(c->samples[0].bytes, 8, 0);
    check_close(c->samples[3].time_s, 1e-3, 1e-9);
    assert_string_equal(profile.inter.kind, "infiniband");
    assert_int_equal(profile.inter.adapters_per_node, 2);
    check_close(profile.inter.bandwidth_bytes_per_s, 0.92 * 12.5e9, 1e-9); /* nobody measured it */
    assert_true(profile.inter.assumed && profile.inter.rdma && profile.inter.gpudirect);
    assert_string_equal(profile.inter.distance, "PIX");
    /* measured between two nodes */
    add_sample(&r, "nccl-sendrecv", "bytes=8 ranks=2 nodes=2", "gpu-net", "fp32", 5e-6);
    add_sample(&r, "nccl-sendrecv", "bytes=67108864 ranks=2 nodes=2", "gpu-net", "fp32",
               67108864 / 11e9);
    make_profile(&r, &profile);
    assert_false(profile.inter.assumed);
    check_close(profile.inter.bandwidth_bytes_per_s, 11e9, 1e-6);
    check_close(profile.inter.latency_s, 5e-6, 1e-9);
    dl_arena_free(&r.arena);
}

static double work_factor(const struct dl_device *d, int work) {
    double factor = NAN;
    for (int i = 0; i < d->work_count; i++) {
        if ((int)d->works[i].work == work) factor = d->works[i].factor;
    }
    return factor;
}

/* Streams at 400 GB/s, rows of layer normalization three times as slow, updates at 300 GB/s. */
static void add_streams(struct replay *r) {
    for (int i = 0; i < 6; i++) {
        const double n = 1e6 * (1 << i); /* numbers */
        const char *cube = dl_arena_printf(&r->arena, "n=%d c=15625 h=8", 1 << i),
                   *rows = dl_arena_printf(&r->arena, "n=%d c=1000", 1000 << i);
        add_sample(r, "gpu-act", cube, "fwd", "fp32", 4e-6 + 2 * 4 * n / 400e9);
        add_sample(r, "gpu-norm", cube, "fwd", "fp32", 4e-6 + 3 * 4 * n / 400e9);
        if (i < 3)
            add_sample(r, "gpu-layernorm", rows, "fwd", "fp32", 3 * (4e-6 + 2 * 4 * n / 400e9));
    }
    for (int i = 0; i < 3; i++)
        add_sample(r, "gpu-update", dl_arena_printf(&r->arena, "bytes=%d", 4000000 << 2 * i),
                   "momentum", "fp32", 6 * (double)(4000000 << 2 * i) / 300e9);
}

/* F-KERNEL-WORK. The factors say how much slower a kind of work is; predictions for such layers
 * take them, and others keep the plain model. */
static void kinds_of_work_have_their_own_factor(void **state) {
    struct replay r;
    struct dl_system profile;
    load_v100(&r);
    add_streams(&r);
    make_profile(&r, &profile);
    const struct dl_device *d = &profile.profile;
    const double factor = work_factor(d, DL_WORK_LAYERNORM);
    check_close(factor, 3, 0.25);
    struct dl_kernel stream = dl_kernel_stream(DL_FORWARD, 0, 2e6, 2e6);
    struct dl_kernel_time plain, own, update;
    dl_kernel_time(d, DL_FP32, &stream, &plain);
    stream.work = DL_WORK_LAYERNORM;
    dl_kernel_time(d, DL_FP32, &stream, &own);
    check_close(own.time_s / plain.time_s, factor, 1e-12);
    check_close(own.time_s, 3 * (4e-6 + 4e6 * 4 / 400e9), 0.15);
    stream = dl_kernel_stream(DL_UPDATE, 0, 20e6, 10e6); /* 120 MB at the update's own 300 GB/s */
    dl_kernel_time(d, DL_FP32, &stream, &update);
    assert_string_equal(update.origin, "fitted");
    check_close(update.time_s, 400e-6, 0.1);
    dl_arena_free(&r.arena);
}

/* F-KERNEL-WORK. Attention takes 1.5 times what its parts, scores, softmax and context, are
 * predicted to take; scores and context are 2 x 2 x 96 x 512 x 512 x 64 flop. */
static void attention_has_a_factor_over_its_parts(void **state) {
    struct replay r;
    struct dl_system profile;
    load_v100(&r);
    add_streams(&r);
    make_profile(&r, &profile);
    const struct dl_device *d = &profile.profile;
    const struct dl_raw_sample attention = {.probe = "gpu-attention",
                                            .shape = "n=8 heads=12 q=512 d=64",
                                            .pass = "fwd",
                                            .precision = "fp32"};
    check_close(dl_cal_gpu_work(&attention), 4.0 * 96 * 512 * 512 * 64, 0);
    double parts_s = 0;
    struct dl_kernel scores = dl_kernel_gemm(DL_FORWARD, 512, 512, 64, 96),
                     context = dl_kernel_gemm(DL_FORWARD, 64, 512, 512, 96),
                     soft = dl_kernel_stream(DL_FORWARD, 0, 96.0 * 512 * 512, 96.0 * 512 * 512);
    scores.a_trans = true;
    soft.flop = 10 * soft.read_elements;
    const struct dl_kernel *const parts[] = {&scores, &soft, &context};
    for (int i = 0; i < 3; i++) {
        struct dl_kernel_time time;
        dl_kernel_time(d, DL_FP32, parts[i], &time);
        parts_s += time.time_s;
    }
    add_sample(&r, attention.probe, attention.shape, "fwd", "fp32", 1.5 * parts_s);
    add_sample(&r, attention.probe, "n=8 heads=12 q=512 d=64 ", "fwd", "fp32", 1.5 * parts_s);
    make_profile(&r, &profile);
    check_close(work_factor(d, DL_WORK_ATTENTION), 1.5, 1e-9);
    dl_arena_free(&r.arena);
}

static void a_device_needs_bandwidth(void **state) {
    struct replay r;
    struct dl_system profile;
    struct dl_err err = {0};
    load_v100(&r);
    for (size_t i = 0; i < r.journal.sample_count; i++) {
        if (strcmp(r.journal.samples[i].probe, "gpu-copy") == 0)
            r.journal.samples[i].probe = "gpu-nothing";
    }
    assert_int_equal(dl_cal_profile(&r.journal, &RUN, &r.arena, &profile, &err), DL_ERR_BACKEND);
    check_contains(err.message, "gpu-copy");
    dl_arena_free(&r.arena);
}

/* By hand: 2 x 64 x 32 x 16 x 3 flop; a 3x3 convolution of 8 x 8 with padding 1: 2 x 2 x 4 x 64 x 3
 * x 9; normalization forward of 2 x 3 x 16 numbers in 2 bytes: 3 x 96 x 2. */
static void work_of_gpu_samples(void **state) {
    check_close(dl_cal_gpu_work(&(struct dl_raw_sample){
                    .probe = "gpu-batch", .shape = "m=64 n=32 k=16 b=3", .pass = "fwd"}),
                196608, 0);
    check_close(dl_cal_gpu_work(&(struct dl_raw_sample){
                    .probe = "gpu-conv", .shape = "n=2 c=3 f=4 h=8 r=3 s=1 p=1", .pass = "fwd"}),
                27648, 0);
    check_close(
        dl_cal_gpu_work(&(struct dl_raw_sample){
            .probe = "gpu-norm", .shape = "n=2 c=3 h=4", .pass = "fwd", .precision = "mixed"}),
        576, 0);
    check_close(dl_cal_gpu_work(&(struct dl_raw_sample){
                    .probe = "gpu-copy", .shape = "bytes=400", .pass = "axpy"}),
                1200, 0);
    check_close(dl_cal_gpu_work(&(struct dl_raw_sample){
                    .probe = "gpu-layernorm", .shape = "n=10 c=100", .pass = "bwd_data"}),
                3 * 4000 + 80, 0);
    check_close(dl_cal_gpu_work(&(struct dl_raw_sample){
                    .probe = "gpu-update", .shape = "bytes=400", .pass = "momentum"}),
                2400, 0);
    check_nan(dl_cal_gpu_work(
        &(struct dl_raw_sample){.probe = "gemm", .shape = "m=1 n=1 k=1", .pass = "fwd"}));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_by_hand),
        cmocka_unit_test(judgement),
        cmocka_unit_test(a_plan_fits_the_device),
        cmocka_unit_test(exact_layers_of_a_workload),
        cmocka_unit_test(a_v100_replayed),
        cmocka_unit_test(topology_and_collectives),
        cmocka_unit_test(kinds_of_work_have_their_own_factor),
        cmocka_unit_test(attention_has_a_factor_over_its_parts),
        cmocka_unit_test(a_device_needs_bandwidth),
        cmocka_unit_test(work_of_gpu_samples),
    };
    return cmocka_run_group_tests(tests, NULL, check_free);
}
