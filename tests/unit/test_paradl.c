/* ParaDL's published projections, from its published inputs. Source: key "paradl"
 * (TruongThaoNguyen/paraDL-analysis, logs of data_vgg, data_resnet, filter_vgg and channel_vgg
 * scaling projections): seconds of an epoch of 1,280,000 samples. */
#include "model/engine/paradl.h"
#include "tests/check.h"

static const double DATASET = 1280000;

/* VGG-16 at 226x226: per-sample seconds of its convolutions as ParaDL shares the measured total
 * out, elements of their outputs. */
static const struct {
    double compute_s, outputs;
} vgg[] = {{4.34765322602e-05, 3268864}, {9.27499354885e-04, 3268864}, {4.6375648711e-04, 1634432},
           {9.27512974219e-04, 1634432}, {4.7202796272e-04, 831744},   {9.4405592544e-04, 831744},
           {9.4405592544e-04, 831744},   {4.88843300624e-04, 430592},  {9.77686601249e-04, 430592},
           {9.77686601249e-04, 430592},  {2.61781761582e-04, 115200},  {2.61781761582e-04, 115200},
           {2.61781761582e-04, 115200}};
enum { CONVOLUTIONS = sizeof vgg / sizeof vgg[0] };

/* Links of ABCI as the tool has them, by devices in a ring. */
static struct dl_paradl_link ring(double devices) {
    if (devices <= 4) return (struct dl_paradl_link){9e-6, 2e-11};
    return (struct dl_paradl_link){devices <= 68    ? 30.31e-6
                                   : devices <= 136 ? 30.49e-6
                                                    : 30.98e-6,
                                   8e-11};
}

static void near(double got, double published) {
    if (!(fabs(got - published) < 0.01 * published))
        fail_msg("%g s, published %g s", got, published);
}

static void data_projections(void **state) {
    static const struct {
        double weight_bytes, sample_s, each, p, compute_s, comm_s;
    } rows[] = {{679205632, 0.008245589, 32, 2, 5277.17696, 272.0422528},
                {679205632, 0.008245589, 32, 4, 2638.58848, 204.3016896},
                {679205632, 0.008245589, 32, 8, 1319.29424, 477.5656424},
                {679205632, 0.008245589, 32, 64, 164.91178, 69.2462169},
                {679205632, 0.008245589, 32, 1024, 10.30698625, 6.8780742},
                {90936064, 0.003119502, 64, 4, 998.24064, 13.9104096},
                {90936064, 0.003119502, 64, 8, 499.12032, 32.8884724},
                {90936064, 0.003119502, 64, 128, 31.19502, 3.48234795},
                {90936064, 0.003119502, 64, 512, 7.798755, 1.84731651}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct dl_paradl_layer layer = {.compute_s = rows[i].sample_s,
                                              .weight_bytes = rows[i].weight_bytes};
        const struct dl_paradl_request request = {.layers = &layer,
                                                  .layer_count = 1,
                                                  .dataset_samples = DATASET,
                                                  .batch_samples = rows[i].each * rows[i].p,
                                                  .replicas = rows[i].p,
                                                  .parts = 1,
                                                  .across = ring(rows[i].p)};
        const struct dl_paradl_time t = dl_paradl_epoch(&request);
        near(t.compute_s, rows[i].compute_s);
        near(t.comm_s, rows[i].comm_s);
    }
}

/* Filter and channel parallelism have the same projections. */
static void filter_projections(void **state) {
    static const struct {
        double p, compute_s, comm_s;
    } rows[] = {{2, 5465.10787204, 2155.10112},   {4, 2920.48484805, 3253.71168},
                {8, 1648.17333606, 15318.41304},  {16, 1012.01758007, 16767.2124},
                {32, 693.939702069, 18059.01528}, {64, 534.90076307, 19839.72312}};
    struct dl_paradl_layer layers[CONVOLUTIONS + 1];
    double rest_s = 0.008245589;
    for (int i = 0; i < CONVOLUTIONS; i++) {
        layers[i] = (struct dl_paradl_layer){
            .compute_s = vgg[i].compute_s, .output_bytes = 4 * vgg[i].outputs, .split = true};
        rest_s -= vgg[i].compute_s;
    }
    layers[CONVOLUTIONS] = (struct dl_paradl_layer){.compute_s = rest_s};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct dl_paradl_request request = {.layers = layers,
                                                  .layer_count = CONVOLUTIONS + 1,
                                                  .dataset_samples = DATASET,
                                                  .batch_samples = 32,
                                                  .replicas = 1,
                                                  .parts = rows[i].p,
                                                  .inside = ring(rows[i].p)};
        const struct dl_paradl_time t = dl_paradl_epoch(&request);
        near(t.compute_s, rows[i].compute_s);
        near(t.comm_s, rows[i].comm_s);
    }
}

/* p1 = 1 and p2 = 1 of data+filter; F-PARADL by hand: two layers, p = 2 x 2. */
static void by_hand(void **state) {
    const struct dl_paradl_layer layers[] = {
        {.compute_s = 1, .update_s = 4, .output_bytes = 100, .weight_bytes = 40, .split = true},
        {.compute_s = 2, .update_s = 1, .output_bytes = 10, .weight_bytes = 60}};
    struct dl_paradl_request r = {.layers = layers,
                                  .layer_count = 2,
                                  .dataset_samples = 16,
                                  .batch_samples = 8,
                                  .replicas = 2,
                                  .parts = 2,
                                  .inside = {1, 0.01},
                                  .across = {2, 0.1}};
    const struct dl_paradl_time t = dl_paradl_epoch(&r);
    /* 2 iterations, 4 samples a group */
    assert_true(fabs(t.compute_s - 2 * 4 * (0.5 + 2)) < 1e-12);
    assert_true(fabs(t.update_s - 2 * (2 + 1)) < 1e-12);
    assert_true(fabs(t.comm_s - (2 * 3 * 1 * (1 + 4 * 100 * 0.01 / 2) +
                                 2 * 2 * 1 * (2 + 100 * 0.1 / 2))) < 1e-12);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(data_projections),
                                       cmocka_unit_test(filter_projections),
                                       cmocka_unit_test(by_hand)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
