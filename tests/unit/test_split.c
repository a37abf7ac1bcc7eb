/* Layers at the shape of one of several devices, worked by hand: F-FILTER, F-CHANNEL, F-SPATIAL,
 * F-HALO, F-GROUPS, and F-CONV-WORKSPACE. */
#include "model/machine/kernel.h"
#include "model/engine/split.h"
#include "model/framework/workspace.h"
#include "model/workload/layer.h"
#include "tests/check.h"
#include "tests/load_workload.h"

static struct dl_workload split_of(const struct dl_workload *whole, const struct dl_split *split,
                                   struct dl_arena *arena, const bool **is_split) {
    struct dl_workload out;
    bool *flags = dl_arena_alloc(arena, (size_t)whole->layer_count, sizeof *flags);
    dl_split_layers(whole, split, flags);
    dl_split_workload(whole, split, flags, arena, &out);
    *is_split = flags;
    return out;
}

static void filters_and_channels(void **state) {
    struct dl_workload whole;
    const bool *is_split;
    load_name("vgg16", NULL, 0, &test_arena, &whole);
    const struct dl_split filter = {DL_SPLIT_FILTER, 4, {1, 1, 1}},
                          channel = {DL_SPLIT_CHANNEL, 4, {1, 1, 1}};
    struct dl_workload local = split_of(&whole, &filter, &test_arena, &is_split);
    const struct dl_layer *conv = find_layer(&local, "stage2.unit.0.conv"); /* 64 -> 128 filters */
    assert_true(conv->in.channels == 64 && conv->out.channels == 32);
    assert_true(conv->parameter_elements == 32 * 64 * 9 + 32);
    assert_true(is_split[conv - local.layers]);
    local = split_of(&whole, &channel, &test_arena, &is_split);
    conv = find_layer(&local, "stage2.unit.0.conv");
    assert_true(conv->in.channels == 16 && conv->out.channels == 128);
    assert_true(conv->parameter_elements == 128 * 16 * 9 + 128); /* the bias is whole */
    assert_false(is_split[0]); /* three input channels do not go round */
    const char *layer;
    assert_true(dl_split_limit(&whole, DL_SPLIT_FILTER, 3, &layer) == 64);
    assert_true(dl_split_limit(&whole, DL_SPLIT_CHANNEL, 3, &layer) == 64);
    assert_true(dl_split_limit(&whole, DL_SPLIT_SPATIAL, 1, &layer) == 14);
    assert_string_equal(layer, "stage5.unit.0.conv");
}

/* Of a network that is split: sums over its layers, tied weights once. */
static void totals(void **state) {
    static const struct dl_split splits[] = {{DL_SPLIT_FILTER, 4, {1, 1, 1}},
                                             {DL_SPLIT_CHANNEL, 2, {1, 1, 1}},
                                             {DL_SPLIT_SPATIAL, 4, {1, 2, 2}}};
    for (size_t i = 0; i < sizeof splits / sizeof *splits; i++) {
        struct dl_workload whole;
        const bool *is_split;
        load_name("vgg16", NULL, 0, &test_arena, &whole);
        struct dl_layer *own = dl_arena_alloc(&test_arena, (size_t)whole.layer_count, sizeof *own);
        memcpy(own, whole.layers, (size_t)whole.layer_count * sizeof *own);
        own[whole.layer_count - 2].tied_to = 0;
        whole.layers = own;
        const struct dl_workload local = split_of(&whole, &splits[i], &test_arena, &is_split);
        double parameters = 0, macs = 0, saved = 0;
        for (int k = 0; k < local.layer_count; k++) {
            if (k != whole.layer_count - 2) parameters += local.layers[k].parameter_elements;
            macs += local.layers[k].forward_macs, saved += local.layers[k].saved.elements;
        }
        assert_true(own[whole.layer_count - 2].parameter_elements > 0);
        check_close(local.parameters, parameters, 1e-12);
        check_close(local.forward_macs_per_sample, macs, 1e-12);
        check_close(local.activation_elements_per_sample, saved, 1e-12);
        assert_true(macs < whole.forward_macs_per_sample);
    }
}

static void groups(void **state) {
    struct dl_workload whole;
    const bool *is_split;
    load_name("resnext50_32x4d", NULL, 0, &test_arena, &whole);
    const struct dl_split split = {DL_SPLIT_FILTER, 8, {1, 1, 1}},
                          fine = {DL_SPLIT_FILTER, 64, {1, 1, 1}};
    /* 128 filters in 32 groups */
    const struct dl_layer *before = find_layer(&whole, "layer1.0.conv2");
    assert_true(before->groups == 32 && before->in.channels == 128);
    struct dl_workload local = split_of(&whole, &split, &test_arena, &is_split);
    const struct dl_layer *after = find_layer(&local, "layer1.0.conv2");
    assert_true(after->groups == 4 && after->in.channels == 16 && after->out.channels == 16);
    assert_true(after->parameter_elements == before->parameter_elements / 8);
    local = split_of(&whole, &fine, &test_arena, &is_split); /* two devices share a group */
    after = find_layer(&local, "layer1.0.conv2");
    assert_true(after->groups == 1 && after->in.channels == 4 && after->out.channels == 2);
}

static void halos(void **state) {
    struct dl_workload whole;
    const bool *is_split;
    load_name("resnet50", NULL, 0, &test_arena, &whole);
    const struct dl_split rows = {DL_SPLIT_SPATIAL, 4, {1, 4, 1}},
                          both = {DL_SPLIT_SPATIAL, 4, {1, 2, 2}};
    /* 3x3, 64 channels, 56x56 */
    const struct dl_layer *conv = find_layer(&whole, "layer1.0.conv2");
    /* a row up, a row down */
    assert_true(dl_split_halo_elements(conv, &rows, 1, false) == 2 * 64 * 56);
    assert_true(dl_split_halo_elements(conv, &rows, 2, false) == 0);
    /* In two dimensions the second carries the corners of the first: docs/theory.md. */
    const double two = dl_split_halo_elements(conv, &both, 1, false) +
                       dl_split_halo_elements(conv, &both, 2, false);
    assert_true(two == 2 * 64 * (28 + 28) + 4 * 64);
    /* reach 7, stride 2 */
    assert_true(dl_split_halo_elements(find_layer(&whole, "conv1"), &rows, 1, false) ==
                5 * 3 * 224);
    assert_true(dl_split_halo_elements(find_layer(&whole, "layer1.0.conv1"), &rows, 1, false) == 0);
    struct dl_workload local = split_of(&whole, &rows, &test_arena, &is_split);
    const struct dl_layer *own = find_layer(&local, "layer1.0.conv2");
    assert_true(own->out.size[1] == 14 && own->out.size[2] == 56 &&
                own->parameter_elements == conv->parameter_elements);
    assert_false(is_split[find_layer(&local, "fc") - local.layers]);
    assert_true(fabs(local.parameters - whole.parameters) < 1);
    double grid[DL_DIMS];
    assert_true(dl_split_grid(&whole, 4, 1, grid) && grid[1] == 4);
    assert_true(dl_split_grid(&whole, 16, 3, grid) && grid[1] == 4 && grid[2] == 4);
    assert_false(dl_split_grid(&whole, 8, 1, grid)); /* layer4 has 7 rows */
}

static void workspace(void **state) {
    const double in[DL_DIMS] = {1, 8, 8}, three[DL_DIMS] = {1, 3, 3}, one[DL_DIMS] = {1, 1, 1},
                 pad[DL_DIMS] = {0, 1, 1};
    const struct dl_kernel conv =
        dl_kernel_conv(DL_FORWARD, &(struct dl_conv_shape){2, 32, 16, 1, in, three, one, pad, one});
    /* 36 numbers for each of 4 tiles of 48 channels and 2 samples, and for each of 512 filters */
    assert_true(dl_kernel_workspace_bytes(&conv, 4) == 4 * (36.0 * 4 * 48 * 2 + 36 * 512));
    const struct dl_kernel pointwise =
        dl_kernel_conv(DL_FORWARD, &(struct dl_conv_shape){2, 32, 16, 1, in, one, one, one, one});
    assert_true(dl_kernel_workspace_bytes(&pointwise, 4) == 0);
    const struct dl_kernel first =
        dl_kernel_conv(DL_FORWARD, &(struct dl_conv_shape){2, 3, 16, 1, in, three, one, pad, one});
    assert_true(dl_kernel_workspace_bytes(&first, 4) == 0);
}

/* F-HALO: rows beyond the stride that a window reaches, over the part of the other dimensions; rows
 * of a dimension that was exchanged before count there (corners). Windows shorter than their stride
 * reach nothing. */
static void random_halos(void **state) {
    uint64_t seed = 27;
    for (int n = 0; n < 2000; n++) {
        struct dl_layer layer = {.in = {.dims = 3, .channels = 8}, .out = {.channels = 5}};
        struct dl_split split = {.kind = DL_SPLIT_SPATIAL, .parts = 1};
        for (int d = 0; d < DL_DIMS; d++) {
            layer.window.kernel[d] = (double)(check_random(&seed) % 5);
            layer.window.stride[d] = 1 + (double)(check_random(&seed) % 3);
            layer.window.dilation[d] = 1 + (double)(check_random(&seed) % 2);
            layer.in.size[d] = 5 + (double)(check_random(&seed) % 9);
            layer.out.size[d] = 3 + (double)(check_random(&seed) % 4);
            split.grid[d] = 1 + (double)(check_random(&seed) % 3);
        }
        for (int dim = 0; dim < DL_DIMS; dim++) {
            for (int output = 0; output < 2; output++) {
                const struct dl_shape *shape = output ? &layer.out : &layer.in;
                double rows = 0, area = shape->channels;
                for (int d = 0; d < DL_DIMS; d++) {
                    const double taps = layer.window.kernel[d] > 0 ? layer.window.kernel[d] : 1;
                    double over =
                        (taps - 1) * layer.window.dilation[d] + 1 - layer.window.stride[d];
                    if (over < 0) over = 0;
                    if (d == dim)
                        rows = output ? ceil(over / layer.window.stride[d]) : over;
                    else
                        area *= ceil(shape->size[d] / split.grid[d]) +
                                (d < dim && split.grid[d] > 1 ? over : 0);
                }
                check_close(dl_split_halo_elements(&layer, &split, dim, output == 1),
                            split.grid[dim] > 1 ? rows * area : 0, 1e-12);
            }
        }
    }
}

/* A convolution of random extents; groups 0 and 1 are none. */
static struct dl_layer random_conv(uint64_t *seed, struct dl_parameter parameters[2]) {
    static const double groups[] = {0, 1, 2, 3, 6};
    struct dl_layer layer = {.name = "c", .kind = &dl_layer_conv, .tied_to = -1};
    layer.groups = groups[check_random(seed) % 5];
    layer.in = (struct dl_shape){3, 12 * (double)(1 + check_random(seed) % 3), {0}};
    layer.out = (struct dl_shape){3, 12 * (double)(1 + check_random(seed) % 3), {0}};
    for (int d = 0; d < DL_DIMS; d++) {
        layer.window.kernel[d] = 1 + (double)(check_random(seed) % 4);
        layer.window.stride[d] = 1 + (double)(check_random(seed) % 3);
        layer.window.dilation[d] = 1 + (double)(check_random(seed) % 2);
        layer.window.pad[d] = (double)(check_random(seed) % 2);
        layer.in.size[d] = 12 + (double)(check_random(seed) % 9);
        layer.out.size[d] = 4 + (double)(check_random(seed) % 9);
    }
    layer.in_elements = 1 + (double)(check_random(seed) % 1000);
    layer.forward_macs = 1 + (double)(check_random(seed) % 1000);
    layer.saved.elements = 1 + (double)(check_random(seed) % 1000);
    layer.saved.bytes = 1 + (double)(check_random(seed) % 1000);
    layer.saved.own_elements = 1 + (double)(check_random(seed) % 1000);
    parameters[0] = (struct dl_parameter){"weight", 1 + (double)(check_random(seed) % 1000)};
    parameters[1] = (struct dl_parameter){"bias", 1 + (double)(check_random(seed) % 1000)};
    layer.parameters = parameters, layer.parameter_count = 2;
    layer.parameter_elements = parameters[0].elements + parameters[1].elements;
    return layer;
}

/* F-FILTER, F-CHANNEL, F-GROUPS by counting: p parts share g groups of i inputs and o outputs each.
 * Whole groups go round as far as there are enough of them; otherwise one device has one group, and
 * of its inputs or outputs no more than a part of all. A weight joins an input and an output of the
 * same group. */
static void random_channels(void **state) {
    uint64_t seed = 31;
    for (int n = 0; n < 2000; n++) {
        struct dl_parameter parameters[2];
        const struct dl_layer whole = random_conv(&seed, parameters);
        const struct dl_workload network = {.layers = &whole, .layer_count = 1};
        const bool filter = check_random(&seed) % 2 == 0;
        const int parts = 2 + (int)(check_random(&seed) % 7);
        const struct dl_split split = {
            filter ? DL_SPLIT_FILTER : DL_SPLIT_CHANNEL, parts, {1, 1, 1}};
        const bool *is_split;
        const struct dl_workload own = split_of(&network, &split, &test_arena, &is_split);
        const struct dl_layer *local = &own.layers[0];
        const int g = whole.groups > 1 ? (int)whole.groups : 1, i = (int)whole.in.channels / g,
                  o = (int)whole.out.channels / g;
        int groups = 1, in = i, out = o;
        if (g == 1) {
            if (filter) out = (o + parts - 1) / parts;
            if (!filter) in = (i + parts - 1) / parts;
        } else if (g >= parts) {
            groups = (g + parts - 1) / parts, in = groups * i, out = groups * o;
        } else {
            const int of_out = (g * o + parts - 1) / parts, of_in = (g * i + parts - 1) / parts;
            if (filter && of_out < out) out = of_out;
            if (!filter && of_in < in) in = of_in;
        }
        assert_true(is_split[0]);
        check_close(local->groups, g == 1 ? whole.groups : groups, 0);
        check_close(local->in.channels, in, 0);
        check_close(local->out.channels, out, 0);
        check_close(local->requested.hidden, out, 0);
        const double weights = (double)in * out / groups / ((double)g * i * o);
        check_close(local->parameters[0].elements, parameters[0].elements * weights, 1e-12);
        check_close(local->parameters[1].elements,
                    parameters[1].elements * out / whole.out.channels, 1e-12);
        check_close(local->parameter_elements,
                    local->parameters[0].elements + local->parameters[1].elements, 1e-12);
        check_close(own.parameters, local->parameter_elements, 1e-12);
        check_close(local->forward_macs, whole.forward_macs * weights, 1e-12);
        check_close(local->in_elements, whole.in_elements * in / whole.in.channels, 1e-12);
        check_close(local->saved.elements, whole.saved.elements, 0);
    }
}

/* F-SPATIAL: a device has a part of the outputs in each dimension of the grid, the first of three
 * as any; of the inputs it has those from the first to the last row that the windows of its outputs
 * reach, without the padding of both ends. Other layers have a part of their inputs. */
static void random_extents(void **state) {
    uint64_t seed = 37;
    for (int n = 0; n < 2000; n++) {
        struct dl_parameter parameters[2];
        struct dl_layer whole = random_conv(&seed, parameters);
        const bool convolves = check_random(&seed) % 2 == 0;
        if (!convolves) whole.kind = &dl_layer_maxpool;
        const int input = -1;
        whole.inputs = &input, whole.input_count = 1;
        struct dl_split split = {.kind = DL_SPLIT_SPATIAL, .parts = 1};
        for (int d = 0; d < DL_DIMS; d++) {
            split.grid[d] = 1 + (double)(check_random(&seed) % 3);
            split.parts *= split.grid[d];
        }
        const struct dl_workload network = {
            .layers = &whole, .layer_count = 1, .input_bytes_per_sample = 600};
        const bool *is_split;
        const struct dl_workload own = split_of(&network, &split, &test_arena, &is_split);
        const struct dl_layer *local = &own.layers[0];
        double share = 1;
        assert_int_equal(is_split[0], split.parts > 1);
        check_close(own.input_bytes_per_sample, 600 / split.parts, 1e-12);
        for (int d = 0; d < DL_DIMS; d++) {
            const int parts = (int)split.grid[d], all = (int)whole.out.size[d],
                      out = (all + parts - 1) / parts;
            double in = (double)(((int)whole.in.size[d] + parts - 1) / parts);
            if (convolves) { /* the last row of the last window, from the first one of the first */
                const double last = (out - 1) * whole.window.stride[d] +
                                    (whole.window.kernel[d] - 1) * whole.window.dilation[d] -
                                    whole.window.pad[d];
                in = last - whole.window.pad[d] + 1;
                if (in < 1) in = 1;
            }
            check_close(local->out.size[d], out, 0);
            check_close(local->in.size[d], parts > 1 ? in : whole.in.size[d], 0);
            share *= (double)out / all;
        }
        check_close(local->in_elements, whole.in_elements * share, 1e-12);
        check_close(local->forward_macs, whole.forward_macs * share, 1e-12);
        check_close(local->saved.elements, whole.saved.elements * share, 1e-12);
        check_close(local->saved.bytes, whole.saved.bytes * share, 1e-12);
        check_close(local->saved.own_elements, whole.saved.own_elements * share, 1e-12);
        check_close(local->parameter_elements, whole.parameter_elements, 0);
    }
}

/* A layer with the weights of another, whichever that is, is not split by them; one with as many
 * channels as parts is, with one less it is not. Spatially none is behind one that is whole, none
 * with fewer positions than parts, in or out, and none that mixes positions. */
static void which_layers(void **state) {
    uint64_t seed = 41;
    struct dl_parameter parameters[2];
    static const int before[] = {-1, 0, 1, 2};
    bool is_split[4];
    for (int i = 0; i < 200; i++) {
        struct dl_layer layers[4];
        for (int k = 0; k < 4; k++) {
            layers[k] = random_conv(&seed, parameters);
            layers[k].inputs = &before[k], layers[k].input_count = 1;
            for (int d = 0; d < DL_DIMS; d++) layers[k].in.size[d] = layers[k].out.size[d] = 8;
        }
        const struct dl_workload whole = {.layers = layers, .layer_count = 4};
        layers[1].tied_to = 0, layers[3].tied_to = 2;
        layers[0].in.channels = 4, layers[0].out.channels = 4;
        layers[2].in.channels = 3, layers[2].out.channels = 4;
        for (int filter = 0; filter < 2; filter++) {
            const struct dl_split split = {
                filter ? DL_SPLIT_FILTER : DL_SPLIT_CHANNEL, 4, {1, 1, 1}};
            dl_split_layers(&whole, &split, is_split);
            assert_true(is_split[0]);
            assert_false(is_split[1]);
            assert_int_equal(is_split[2], filter);
            assert_false(is_split[3]);
        }
        const int at = i % 4, dim = i / 4 % DL_DIMS;
        struct dl_split grid = {DL_SPLIT_SPATIAL, 8, {1, 1, 1}};
        grid.grid[dim] = 8;
        dl_split_layers(&whole, &grid, is_split);
        for (int k = 0; k < 4; k++) assert_true(is_split[k]);
        if (i % 3 == 0)
            layers[at].in.size[dim] = 7;
        else if (i % 3 == 1)
            layers[at].out.size[dim] = 7;
        else
            layers[at].kind = &dl_layer_dense;
        dl_split_layers(&whole, &grid, is_split);
        for (int k = 0; k < 4; k++) assert_int_equal(is_split[k], k < at);
        grid.parts = 1, grid.grid[dim] = 1;
        dl_split_layers(&whole, &grid, is_split);
        for (int k = 0; k < 4; k++) assert_false(is_split[k]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(filters_and_channels),
                                       cmocka_unit_test(totals),
                                       cmocka_unit_test(groups),
                                       cmocka_unit_test(halos),
                                       cmocka_unit_test(random_halos),
                                       cmocka_unit_test(random_channels),
                                       cmocka_unit_test(random_extents),
                                       cmocka_unit_test(which_layers),
                                       cmocka_unit_test(workspace)};
    return cmocka_run_group_tests(tests, NULL, check_free);
}
