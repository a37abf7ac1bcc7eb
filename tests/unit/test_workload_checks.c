/* Every workload of data/ against published parameters, multiply-adds, gradient buckets and saved
 * activations. */
#include "model/core/csv.h"
#include "tests/check.h"
#include "tests/load_workload.h"

static const struct dl_kernel_facts PLAIN = {.precision = DL_FP32};

/* A row of data/model_checks.csv and how to build it; name NULL: why not. */
static const struct {
    const char *row, *name, *set, *why_not;
} rows[] = {
    {"alexnet_torchvision", "alexnet", NULL, NULL},
    {"alexnet_caffe_grouped", "alexnet_caffe", NULL, NULL},
    {"alexnet_paradl_ungrouped", NULL, NULL, "without biases, for comparison alone"},
    {"vgg16", "vgg16", NULL, NULL},
    {"vgg16_bn", "vgg16_bn", NULL, NULL},
    {"vgg16_paradl", NULL, NULL, "not the reference VGG-16, as its note says"},
    {"vgg19", "vgg19", NULL, NULL},
    {"googlenet_torchvision", "googlenet", NULL, NULL},
    {"googlenet_paper_5x5", NULL, NULL, "not a workload of this program"},
    {"inception_v3", "inception_v3", NULL, NULL},
    {"resnet18", "resnet18", NULL, NULL},
    {"resnet34", "resnet34", NULL, NULL},
    {"resnet50_v1.5", "resnet50", NULL, NULL},
    {"resnet50_v1", "resnet50_v1", NULL, NULL},
    {"resnet101_v1.5", "resnet101", NULL, NULL},
    {"resnet152_v1.5", "resnet152", NULL, NULL},
    {"resnext50_32x4d", "resnext50_32x4d", NULL, NULL},
    {"resnext101_32x8d", "resnext101_32x8d", NULL, NULL},
    {"densenet121", "densenet121", NULL, NULL},
    {"mobilenet_v1_1.0", "mobilenet_v1", NULL, NULL},
    {"mobilenet_v2_1.0", "mobilenet_v2", NULL, NULL},
    {"efficientnet_b0", "efficientnet_b0", NULL, NULL},
    {"squeezenet1_0", "squeezenet1_0", NULL, NULL},
    {"squeezenet1_1", "squeezenet1_1", NULL, NULL},
    {"vit_b_16", "vit_b_16", NULL, NULL},
    {"unet_original", "unet", "pad=0,channels=1,input=572x572", NULL},
    {"unet_same_512", "unet", NULL, NULL},
    {"ssd300_vgg16", "ssd300", NULL, NULL},
    {"cosmoflow_paradl_512", "cosmoflow_512", NULL, NULL},
    {"cosmoflow_paradl_256", "cosmoflow_256", NULL, NULL},
    {"cosmoflow_mlperf_hpc", NULL, NULL, "not a workload of this program"},
    {"bert_base", "bert_base", NULL, NULL},
    {"bert_base_pretrain_heads", "bert_base", "pretrain_heads=1", NULL},
    {"bert_large", "bert_large", NULL, NULL},
    {"bert_large_pretrain_heads", "bert_large", "pretrain_heads=1", NULL},
    {"gpt2_small", "gpt2", NULL, NULL},
    {"gpt2_medium", "gpt2_medium", NULL, NULL},
    {"gpt2_large", "gpt2_large", NULL, NULL},
    {"gpt2_xl", "gpt2_xl", NULL, NULL},
    {"gpt3_175b", "gpt3_175b", NULL, NULL},
    {"transformer_big", "transformer_big", NULL, NULL},
    {"transformer_base", "transformer_big", "hidden=512,ffn=2048,heads=8", NULL},
    {"gnmt_v2_4layer", "gnmt", NULL, NULL},
    {"dlrm_mlperf_criteo_tb", "dlrm", NULL, NULL},
    {"sd15_unet", "sd15_unet", NULL, NULL},
    {"sd21_unet", "sd21_unet", NULL, NULL},
    {"sd21_unet_768", "sd21_unet", "input=96x96", NULL},
    {"sdxl_unet", "sdxl_unet", NULL, NULL},
    {"dit_xl_2", "dit_xl_2", NULL, NULL},
    {"pixart_alpha", "pixart_alpha", NULL, NULL},
    {"sd3_medium", "sd3_medium", NULL, NULL},
    {"flux_1_dev", "flux_1_dev", NULL, NULL},
    {"clip_vit_l_14", "clip_vit_l_14", NULL, NULL},
    {"t5_large", "t5_large", NULL, NULL},
    {"t5_3b", "t5_3b", NULL, NULL},
    {"t5_11b", "t5_3b", "heads=128,ffn=65536", NULL},
    {"whisper_large_v3", "whisper_large_v3", NULL, NULL},
};

enum { SETS = 8 };

/* "a=1,b=2" into overrides; `copy` keeps the text. */
static int split_sets(const char *text, char *copy, size_t size, struct dl_override *out) {
    int count = 0;
    if (text == NULL) return 0;
    snprintf(copy, size, "%s", text);
    for (char *part = copy; part != NULL && count < SETS;) {
        char *comma = strchr(part, ',');
        if (comma != NULL) *comma++ = '\0';
        char *equals = strchr(part, '=');
        if (equals == NULL) fail_msg("no '=' in %s", text);
        *equals = '\0';
        out[count++] = (struct dl_override){.key = part, .value = equals + 1};
        part = comma;
    }
    return count;
}

static void load_set(const char *name, const char *set, struct dl_arena *arena,
                     struct dl_workload *out) {
    char copy[128];
    struct dl_override overrides[SETS];
    int count = split_sets(set, copy, sizeof copy, overrides);
    load_name(name, overrides, count, arena, out);
}

static void every_row_of_model_checks(void **state) {
    struct dl_err err = {0};
    struct dl_csv csv;
    char path[512];
    int checked = 0;
    snprintf(path, sizeof path, "%s/data/model_checks.csv", check_root());
    if (dl_csv_read(path, &test_arena, &csv, &err) != DL_OK) fail_msg("%s", err.message);
    int model = dl_csv_column(&csv, "model"), params = dl_csv_column(&csv, "params");
    int macs = dl_csv_column(&csv, "fwd_gmacs");
    for (int r = 0; r < csv.row_count; r++) {
        size_t i = 0;
        double parameters, gmacs;
        struct dl_workload w;
        while (i < sizeof rows / sizeof rows[0] && strcmp(rows[i].row, csv.rows[r][model]) != 0)
            i++;
        if (i == sizeof rows / sizeof rows[0])
            fail_msg("row '%s' has no workload", csv.rows[r][model]);
        if (rows[i].name == NULL) {
            assert_non_null(rows[i].why_not);
            continue;
        }
        assert_int_equal(dl_csv_number(&csv, r, params, &parameters, &err), DL_OK);
        assert_int_equal(dl_csv_number(&csv, r, macs, &gmacs, &err), DL_OK);
        load_set(rows[i].name, rows[i].set, &test_arena, &w);
        if (w.parameters != parameters) {
            fail_msg("%s: %.0f parameters, expected %.0f", rows[i].row, w.parameters, parameters);
        }
        if (dl_known(gmacs) && fabs(w.forward_macs_per_sample / (gmacs * 1e9) - 1.0) > 1e-3) {
            fail_msg("%s: %.6f G multiply-adds, expected %.6f", rows[i].row,
                     w.forward_macs_per_sample / 1e9, gmacs);
        }
        checked++;
    }
    assert_int_equal(checked, 53);
}

/* Relatives of the contract's networks, each a few parameters of one file: torchvision's
 * num_params, and multiply-adds of its documentation to the two decimals printed there. */
static void relatives(void **state) {
    static const struct {
        const char *name;
        double parameters, gmacs;
    } kin[] = {
        {"vgg11", 132863336, 7.61},
        {"vgg13", 133047848, 11.31},
        {"densenet161", 28681000, 7.73},
        {"densenet169", 14149480, 3.36},
        {"densenet201", 20013928, 4.29},
        {"vit_b_32", 88224232, 4.41},
        {"vit_l_16", 304326632, 61.55},
        {"vit_l_32", 306535400, 15.38},
        {"wide_resnet50_2", 68883240, 11.40},
        {"wide_resnet101_2", 126886696, 22.75},
        {"resnext101_64x4d", 83455272, 15.46},
    };
    for (size_t i = 0; i < sizeof kin / sizeof kin[0]; i++) {
        struct dl_workload w;
        load_set(kin[i].name, NULL, &test_arena, &w);
        check_close(w.parameters, kin[i].parameters, 0);
        check_close(w.forward_macs_per_sample * 1e-9, kin[i].gmacs, 0.005 / kin[i].gmacs);
    }
}

/* With the auxiliary classifiers: notes of model_checks.csv. */
static void auxiliary_classifiers(void **state) {
    struct dl_workload w;
    load_set("inception_v3", "aux=1", &test_arena, &w);
    check_close(w.parameters, 27161264, 0);
    load_set("googlenet", "aux=1", &test_arena, &w);
    check_close(w.parameters, 13004888, 0);
}

enum { BUCKETS = 16 };

/* PyTorch DDP: tensors in reverse registration order; a bucket closes when it reaches its limit, 1
 * MiB for the first and 25 MiB for the others. Sizes in bytes at 4 bytes an element. */
static int ddp_buckets(const struct dl_workload *w, double *bytes) {
    int count = 0;
    double limit = 1048576.0, size = 0.0;
    for (int i = w->layer_count - 1; i >= 0; i--) {
        for (int p = w->layers[i].parameter_count - 1; p >= 0; p--) {
            size += 4.0 * w->layers[i].parameters[p].elements;
            if (size < limit) continue;
            if (count < BUCKETS) bytes[count++] = size;
            size = 0.0;
            limit = 25.0 * 1048576.0;
        }
    }
    if (size > 0.0 && count < BUCKETS) bytes[count++] = size;
    return count;
}

/* Test vectors that were computed from the torchvision models themselves: tensors, total and
 * buckets in MiB. */
static const struct {
    const char *name, *set;
    int tensors;
    double total_mib;
    int count;
    double mib[10];
} buckets[] = {
    {"alexnet", NULL, 16, 233.08, 4, {15.63, 64.02, 144.02, 9.42}},
    {"vgg16", NULL, 32, 527.79, 6, {15.63, 64.02, 392.02, 27.01, 27.01, 2.12}},
    {"googlenet", NULL, 173, 25.27, 2, {3.91, 21.36}},
    {"inception_v3", "aux=1", 292, 103.61, 5, {7.82, 25.81, 26.03, 25.76, 18.19}},
    {"resnet18", NULL, 62, 44.59, 3, {1.96, 27.52, 15.12}},
    {"resnet50", NULL, 161, 97.49, 5, {7.82, 30.04, 25.04, 25.32, 9.27}},
    {"resnet101", NULL, 314, 169.94, 8, {7.82, 30.04, 25.04, 26.57, 25.57, 25.57, 25.14, 4.19}},
    {"resnet152",
     NULL,
     467,
     229.62,
     10,
     {7.82, 30.04, 25.04, 26.57, 25.57, 25.57, 25.57, 25.57, 25.33, 12.54}},
    {"resnext50_32x4d", NULL, 161, 95.48, 5, {7.82, 25.17, 25.17, 26.62, 10.69}},
    {"densenet121", NULL, 364, 30.44, 3, {3.91, 25.02, 1.51}},
    {"mobilenet_v2", NULL, 158, 13.37, 2, {4.89, 8.48}},
    {"squeezenet1_1", NULL, 52, 4.71, 2, {1.96, 2.76}},
};

static void gradient_buckets_of_pytorch(void **state) {
    for (size_t i = 0; i < sizeof buckets / sizeof buckets[0]; i++) {
        struct dl_workload w;
        double bytes[BUCKETS];
        load_set(buckets[i].name, buckets[i].set, &test_arena, &w);
        int count = ddp_buckets(&w, bytes);
        if (w.parameter_tensors != buckets[i].tensors || count != buckets[i].count) {
            fail_msg("%s: %d tensors in %d buckets, expected %d in %d", w.name, w.parameter_tensors,
                     count, buckets[i].tensors, buckets[i].count);
        }
        double total_mib = w.parameters * 4.0 / 1048576.0;
        if (fabs(total_mib - buckets[i].total_mib) > 0.0051) {
            fail_msg("%s: %.3f MiB in all, expected %.2f", w.name, total_mib, buckets[i].total_mib);
        }
        for (int b = 0; b < count; b++) { /* the table rounds to 0.01 MiB */
            double mib = bytes[b] / 1048576.0;
            if (fabs(mib - buckets[i].mib[b]) > 0.0051) {
                fail_msg("%s: bucket %d has %.3f MiB, expected %.2f", w.name, b, mib,
                         buckets[i].mib[b]);
            }
        }
    }
}

/* ResNet-50 has 53 batch norms: 159 buffers, 53 173 elements with the counters (PyTorch). */
static void buffers_of_resnet50(void **state) {
    struct dl_workload w;
    load_set("resnet50", NULL, &test_arena, &w);
    check_close(w.buffer_elements, 53173, 0);
}

/* Korthikanti et al. 2205.05198, table 2: a layer keeps s*b*h*(34 + 5*a*s/h) bytes at 16 bit. */
static void transformer_layer_keeps_what_the_paper_says(void **state) {
    static const char *const sets[] = {"layers=6,hidden=1024,heads=16,seq=1024",
                                       "layers=6,hidden=4096,heads=32,seq=2048",
                                       "layers=6,hidden=768,heads=12,seq=128"};
    for (int i = 0; i < 3; i++) {
        struct dl_workload w;
        double bytes = 0.0;
        int layers = 0;
        load_set("gpt", sets[i], &test_arena, &w);
        /* One inner layer; its own input (the LN input) is the output of the one before, its output
         * of the next. */
        for (int l = 0; l < w.layer_count; l++) {
            if (strncmp(w.layers[l].name, "h.2.", 4) != 0) continue;
            bytes += 2.0 * w.layers[l].saved.elements + w.layers[l].saved.bytes;
            layers++;
        }
        assert_int_equal(layers, 12);
        check_close(bytes, w.sequence * w.hidden * (34.0 + 5.0 * w.heads * w.sequence / w.hidden),
                    0.02);
    }
}

/* Selective recomputation drops the 5*a*s^2 part, and flash attention never has it: 34*s*h remains.
 */
static void recomputing_attention_leaves_34_sh(void **state) {
    for (int flash = 0; flash < 2; flash++) {
        struct dl_workload w;
        double bytes = 0.0;
        load_set("gpt", flash ? "flash=1,layers=4" : "layers=4", &test_arena, &w);
        for (int l = 0; l < w.layer_count; l++) {
            const struct dl_layer *layer = &w.layers[l];
            if (strncmp(layer->name, "h.1.", 4) != 0) continue;
            bytes += 2.0 * layer->saved.elements + layer->saved.bytes;
            if (!flash && layer->recomputable)
                bytes -= 2.0 * layer->saved.own_elements + layer->saved.bytes;
        }
        check_close(bytes, 34.0 * w.sequence * w.hidden, 0.02);
    }
}

static void gpt_says_its_sizes(void **state) {
    struct dl_workload w;
    load_set("gpt", "layers=16,hidden=2048,seq=512", &test_arena, &w);
    check_close(w.transformer_layers, 16, 0);
    check_close(w.heads, 32, 0); /* hidden / 64 when left out */
    check_close(w.sequence, 512, 0);
    check_close(w.vocabulary, 51200, 0);
    check_close(w.input_bytes_per_sample, 512 * 8, 0);
    load_set("resnet50", NULL, &test_arena, &w);
    check_nan(w.transformer_layers);
    check_close(w.epoch_samples, 1281167, 0);
}

/* Forward flop of the kernels are twice the multiply-adds, and each backward pass repeats them but
 * for first layers. */
static void kernels_do_the_work_of_the_counts(void **state) {
    static const struct {
        const char *name, *set;
    } nets[] = {
        {"alexnet", NULL},
        {"resnet50", NULL},
        {"inception_v3", NULL},
        {"mobilenet_v2", NULL},
        {"efficientnet_b0", NULL},
        {"unet", NULL},
        {"cosmoflow_256", NULL},
        {"bert_base", NULL},
        {"gpt2", NULL},
        {"transformer_big", NULL},
        {"gnmt", NULL},
        {"dlrm", NULL},
        {"vit_b_16", NULL},
        /* a fused kernel computes the scores again */
        {"sd15_unet", "flash=0"},
        {"pixart_alpha", "flash=0"},
        {"whisper_large_v3", "flash=0"},
    };
    for (size_t i = 0; i < sizeof nets / sizeof nets[0]; i++) {
        struct dl_workload w;
        double flop[3] = {0.0, 0.0, 0.0}, free_flop = 0.0, batch = 4.0;
        load_set(nets[i].name, nets[i].set, &test_arena, &w);
        for (int l = 0; l < w.layer_count; l++) {
            const struct dl_layer *layer = &w.layers[l];
            if (layer->first) free_flop += 2.0 * batch * layer->forward_macs;
            for (int pass = 0; pass < 3; pass++) {
                struct dl_kernel kernels[DL_LAYER_KERNELS];
                int count = layer->kind->kernels(layer, &PLAIN, (enum dl_pass)pass, batch, kernels);
                assert_in_range(count, 0, DL_LAYER_KERNELS);
                for (int k = 0; k < count; k++) {
                    assert_true(kernels[k].read_elements >= 0.0 &&
                                kernels[k].write_elements >= 0.0);
                    assert_true(kernels[k].launches >= 0.0);
                    if (kernels[k].op != DL_OP_STREAM) flop[pass] += kernels[k].flop;
                }
            }
        }
        check_close(flop[0], 2.0 * batch * w.forward_macs_per_sample, 1e-9);
        check_close(flop[1] + flop[2], 2.0 * flop[0] - free_flop, 1e-9);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_row_of_model_checks),
        cmocka_unit_test(relatives),
        cmocka_unit_test(auxiliary_classifiers),
        cmocka_unit_test(gradient_buckets_of_pytorch),
        cmocka_unit_test(buffers_of_resnet50),
        cmocka_unit_test(transformer_layer_keeps_what_the_paper_says),
        cmocka_unit_test(recomputing_attention_leaves_34_sh),
        cmocka_unit_test(gpt_says_its_sizes),
        cmocka_unit_test(kernels_do_the_work_of_the_counts),

    };
    return cmocka_run_group_tests(tests, NULL, check_free);
}
