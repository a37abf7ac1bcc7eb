/* Devices: peaks by precision, and what a device file must not say. */
#include "model/machine/device.h"
#include "tests/check.h"

static const char HEAD[] = "{\"format\":\"dlmodel-device\",\"version\":1,\"name\":\"x\","
                           "\"summary\":\"s\",\"kind\":\"gpu\","
                           "\"memory_bytes\":16e9,\"memory_bandwidth_bytes_per_s\":900e9";
static const char RATES[] =
    ",\"rates\":[{\"precision\":\"fp32\",\"unit\":\"vector\",\"peak_flop_per_s\":15.7e12}]";

static enum dl_code load(struct dl_arena *arena, const char *text, struct dl_device *device,
                         char *message, size_t size) {
    struct dl_json *doc = NULL;
    struct dl_err err = {0};
    enum dl_code code = dl_json_parse("x.json", text, strlen(text), arena, &doc, &err);
    if (code == DL_OK) code = dl_json_load(doc, &dl_device_schema, arena, device, &err);
    if (code == DL_OK) code = dl_device_check(device, doc, &err);
    dl_err_text(&err, "test", message, size);
    return code;
}

static void peaks(void **state) {
    struct dl_rate v100[] = {{DL_FP32, 0, 15.7e12, NULL, NAN},
                             {DL_FP16, 0, 31.4e12, NULL, NAN},
                             {DL_FP16, 1, 125e12, NULL, NAN}};
    struct dl_device device = {.rates = v100, .rate_count = 3};
    check_close(dl_device_peak(&device, DL_FP32), 15.7e12, 0);
    check_close(dl_device_peak(&device, DL_MIXED), 125e12, 0);
    check_close(dl_device_peak(&device, DL_FP16), 125e12, 0);
    check_nan(dl_device_peak(&device, DL_TF32));
    check_nan(dl_device_peak(&device, DL_BF16));
    check_nan(dl_device_peak(&device, DL_FP8));
}

static void peaks_without_matrix_units(void **state) {
    struct dl_rate p100[] = {{DL_FP32, 0, 9.3e12, NULL, NAN}, {DL_FP16, 0, 18.7e12, NULL, NAN}};
    struct dl_device device = {.rates = p100, .rate_count = 2};
    check_close(dl_device_peak(&device, DL_FP16), 18.7e12, 0);
    check_close(dl_device_peak(&device, DL_MIXED), 9.3e12, 0); /* 16-bit storage, fp32 arithmetic */
    device.rate_count = 1;
    check_close(dl_device_peak(&device, DL_FP16), 9.3e12, 0);
    device.rate_count = 0;
    check_nan(dl_device_peak(&device, DL_FP32));
}

static void absent_members_are_unknown(void **state) {
    struct dl_arena arena = {0};
    struct dl_device device;
    char text[1024], message[1500];
    snprintf(text, sizeof text, "%s%s}", HEAD, RATES);
    assert_int_equal(load(&arena, text, &device, message, sizeof message), DL_OK);
    check_close(device.memory_bytes, 16e9, 0);
    check_nan(device.memory_efficiency);
    check_nan(device.kernel_latency_s);
    assert_true(device.unit_count == DL_ABSENT);
    assert_null(device.kernel_models_from);
    assert_int_equal(device.kernel_model_count, 0);
    dl_arena_free(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(peaks),
        cmocka_unit_test(peaks_without_matrix_units),

        cmocka_unit_test(absent_members_are_unknown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
