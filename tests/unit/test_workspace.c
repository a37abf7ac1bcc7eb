/* Scratch memory and rounding, worked by hand. F-MEM-WORKSPACE, F-MEM-ROUNDING. */
#include "model/engine/memory.h"
#include "model/framework/workspace.h"
#include "tests/check.h"
#include "tests/fake.h"

static const double MIB = 1048576;

/* One 3x3 convolution, 64 to 64 channels on 56 x 56. */
static void make_conv(struct dl_fake *f, struct dl_layer *layer) {
    fake_make(f);
    f->device.workspace_bytes = NAN;
    *layer = (struct dl_layer){.name = "conv",
                               .kind = dl_layer_kind_find("conv"),
                               .groups = 1,
                               .tied_to = -1,
                               .in = {.dims = 2, .channels = 64, .size = {1, 56, 56}},
                               .out = {.dims = 2, .channels = 64, .size = {1, 56, 56}},
                               .window.kernel = {1, 3, 3},
                               .window.stride = {1, 1, 1},
                               .window.dilation = {1, 1, 1},
                               .window.pad = {0, 1, 1},
                               .parameter_elements = 36864,
                               .saved.elements = 64 * 56 * 56};
    f->workload.layers = layer;
    f->workload.layer_count = 1;
}

/* 56 / 4 = 14: 196 tiles an image, 32 images: 6272 tiles. 4 x 36 x (6272 x 64 + 6272 x 64 + 64 x
 * 64) = 116195328 bytes. */
static void winograd(void **state) {
    struct dl_fake f;
    struct dl_layer layer;
    make_conv(&f, &layer);
    check_close(dl_workspace_layer_bytes(&f.device, &layer, DL_FP32, 32), 116195328, 1e-12);
    /* Stride 2: the implicit product's table of 9 x 64 offsets of 4 bytes. */
    layer.window.stride[1] = layer.window.stride[2] = 2;
    check_close(dl_workspace_layer_bytes(&f.device, &layer, DL_FP32, 32), 2304, 1e-12);
    layer.kind = dl_layer_kind_find("dense");
    check_close(dl_workspace_layer_bytes(&f.device, &layer, DL_FP32, 32), 0, 0);
}

/* Matrix units: copies of both activations and of the weights in their layout, 2 x (2 x 32 x 200704
 * + 36864) bytes. */
static void matrix_units(void **state) {
    struct dl_fake f;
    struct dl_layer layer;
    make_conv(&f, &layer);
    struct dl_rate rates[] = {{DL_FP32, 0, 1e13, NULL, NAN}, {DL_FP16, 1, 1e14, NULL, NAN}};
    f.device.rates = rates;
    f.device.rate_count = 2;
    check_close(dl_workspace_layer_bytes(&f.device, &layer, DL_MIXED, 32), 25763840, 1e-12);
}

static int allocator(const char *name) {
    int row = 0;
    while (strcmp(dl_allocator_names[row], name) != 0) row++;
    return row;
}

/* A framework file that names no allocator has that of the framework whose kernels it runs; without
 * either none is known. */
static void a_framework_of_ones_own(void **state) {
    struct dl_framework own = {.memory = {.allocator = -1}};
    struct dl_framework from = {.memory = {.allocator = allocator("pytorch")}};
    assert_null(dl_memory_manager_of(&own));
    dl_framework_share_kernels(&own, &from);
    assert_ptr_equal(dl_memory_manager_of(&own), dl_memory_manager_of(&from));
    own.memory.allocator = allocator("mxnet");
    dl_framework_share_kernels(&own, &from);
    assert_string_equal(dl_memory_manager_of(&own)->source, "unverified");
    /* every row has a name, and the other way round */
    for (own.memory.allocator = 0; dl_allocator_names[own.memory.allocator] != NULL;
         own.memory.allocator++) {
        assert_non_null(dl_memory_manager_of(&own)->source);
        assert_true(dl_memory_manager_of(&own)->block_bytes > 0);
    }
}

/* Caffe's 8 MiB rule out Winograd's 111 MiB; TensorFlow's 4 GiB do not, PyTorch keeps 8320 KiB for
 * products besides. */
static void limits(void **state) {
    struct dl_fake f;
    struct dl_layer layer;
    make_conv(&f, &layer);
    f.framework.memory.allocator = allocator("caffe");
    f.framework.memory.conv_workspace_bytes = 8 * MIB;
    check_close(dl_workspace_bytes(&f.device, &f.workload, &f.framework, DL_FP32, 32), 2304, 1e-12);
    f.framework.memory.allocator = allocator("tensorflow");
    f.framework.memory.conv_workspace_bytes = 4096 * MIB;
    check_close(dl_workspace_bytes(&f.device, &f.workload, &f.framework, DL_FP32, 32), 116195328,
                1e-12);
    /* 14 GiB */
    check_close(dl_workspace_bytes(&f.device, &f.workload, &f.framework, DL_FP32, 4096), 2304,
                1e-12);
    f.framework.memory.allocator = allocator("pytorch");
    f.framework.memory.conv_workspace_bytes = NAN;
    check_close(dl_workspace_bytes(&f.device, &f.workload, &f.framework, DL_FP32, 32),
                116195328 + 2 * 8320 * 1024, 1e-12);
    f.framework.memory.allocator = -1;
    check_close(dl_workspace_bytes(&f.device, &f.workload, &f.framework, DL_FP32, 32), 116195328,
                1e-12);
    f.device.kind = DL_DEVICE_CPU;
    assert_true(isnan(dl_workspace_bytes(&f.device, &f.workload, &f.framework, DL_FP32, 32)));
}

/* 32 x 200704 x 4 = 25690112 B = 24.5 MiB: PyTorch takes 26 MiB, TensorFlow (multiples of 256) adds
 * nothing. One image of 802816 B is a multiple of 512; 3 bytes of masks more make it 803328. */
static void rounding(void **state) {
    struct dl_fake f;
    struct dl_layer layer;
    make_conv(&f, &layer);
    f.framework.memory.allocator = allocator("pytorch");
    check_close(dl_rounding_bytes(&f.workload, &f.framework, DL_FP32, 32), 26 * MIB - 25690112,
                1e-12);
    layer.saved.bytes = 3;
    check_close(dl_rounding_bytes(&f.workload, &f.framework, DL_FP32, 1), 803328 - 802819, 1e-12);
    layer.saved.bytes = 0;
    f.framework.memory.allocator = allocator("tensorflow");
    check_close(dl_rounding_bytes(&f.workload, &f.framework, DL_FP32, 32), 0, 0);
    f.framework.memory.allocator = -1;
    layer.saved.bytes = 3;
    check_close(dl_rounding_bytes(&f.workload, &f.framework, DL_FP32, 1), 0, 0);
}

/* Steps in workspace and rounding: the largest batch fits, one more does not. */
static void largest_batch_with_steps(void **state) {
    struct dl_fake f;
    struct dl_layer layer;
    make_conv(&f, &layer);
    const int allocators[] = {allocator("pytorch"), allocator("caffe"), allocator("mxnet"), -1};
    for (size_t i = 0; i < sizeof allocators / sizeof allocators[0]; i++) {
        struct dl_memory m;
        f.framework.memory.allocator = allocators[i];
        f.device.memory_bytes = 3e9 + 1e8 * (double)i;
        const double batch =
            dl_memory_max_batch(&f.system, &f.workload, &f.framework, &f.plan, NULL);
        assert_true(batch > 1 && batch == floor(batch));
        dl_memory_compute(&f.system, &f.workload, &f.framework, &f.plan, batch, &m, NULL);
        assert_true(m.total_bytes <= f.device.memory_bytes);
        dl_memory_compute(&f.system, &f.workload, &f.framework, &f.plan, batch + 1, &m, NULL);
        assert_true(m.total_bytes > f.device.memory_bytes);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(winograd), cmocka_unit_test(matrix_units),
        cmocka_unit_test(limits),   cmocka_unit_test(a_framework_of_ones_own),
        cmocka_unit_test(rounding), cmocka_unit_test(largest_batch_with_steps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
