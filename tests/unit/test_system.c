/* Systems: nesting of links, checks across members, writing and reading back. */
#include "model/machine/system.h"
#include "tests/check.h"

#define HEAD                                                                                       \
    "{\"format\":\"dlmodel-system\",\"version\":1,\"name\":\"x\",\"summary\":\"s\",\"source\":"    \
    "\"mem\",\"device\":"                                                                          \
    "\"d\","
#define INTER                                                                                      \
    "\"inter\":{\"kind\":\"infiniband\",\"bandwidth_bytes_per_s\":12e9,\"latency_s\":1e-6,"        \
    "\"rdma\":true}"

static enum dl_code load(struct dl_arena *arena, const char *text, struct dl_system *system,
                         struct dl_err *err) {
    struct dl_json *doc = NULL;
    DL_TRY(dl_json_parse("x.json", text, strlen(text), arena, &doc, err));
    DL_TRY(dl_json_load(doc, &dl_system_schema, arena, system, err));
    return dl_system_check(system, doc, err);
}

static void links_nest(void **state) {
    struct dl_arena arena = {0};
    struct dl_system system;
    struct dl_err err = {0};
    assert_int_equal(load(&arena, HEAD "\"nodes\":4,\"devices_per_node\":1,\"links\":{" INTER "}}",
                          &system, &err),
                     DL_OK);
    assert_string_equal(system.name, "x"); /* the links' slice leaves the rest alone */
    assert_true(system.has_links && system.has_inter && !system.has_intra);
    assert_true(system.inter.rdma && !system.inter.gpudirect);
    check_close(system.inter.bandwidth_bytes_per_s, 12e9, 0);
    assert_true(system.inter.adapters_per_node == DL_ABSENT);
    check_nan(system.intra.bandwidth_bytes_per_s);
    assert_false(system.has_host || system.has_fabric || system.has_storage || system.has_profile);
    assert_int_equal(system.nodes, 4);
    check_nan(system.jitter_frac);
    dl_arena_free(&arena);
}

static void reads_back_what_it_writes(void **state) {
    static const char text[] = HEAD
        "\"nodes\":2,\"devices_per_node\":3,"
        "\"host\":{\"cpu\":\"c\",\"cores\":28,\"memory_bytes\":1e11,\"sources\":{\"cores\":\"mem\"}"
        "},"
        "\"links\":{\"intra\":{\"kind\":\"nvlink2\",\"bandwidth_bytes_per_s\":1.345e11,\"peer_to_"
        "peer\":true,"
        "\"edges\":[{\"from\":0,\"to\":1,\"links\":2},{\"from\":1,\"to\":2,\"links\":1},{\"from\":"
        "0,\"to\":2,\"links\":"
        "1}]}," INTER
        "},\"fabric\":{\"topology\":\"fat-tree\",\"oversubscription\":1.5,\"nodes_per_leaf\":24},"
        "\"collectives\":[{\"library\":\"nccl\",\"operation\":\"all_reduce\",\"nodes\":1,\"ranks\":"
        "3,"
        "\"samples\":[{\"bytes\":8,\"time_s\":1e-5},{\"bytes\":16,\"time_s\":1.1e-5,\"low_s\":1e-5,"
        "\"high_s\":1.2e-5}],"
        "\"pieces\":[{\"max_bytes\":1e6,\"alpha_s\":1e-5,\"beta_s_per_byte\":1e-10}]}],"
        "\"measurement\":{\"driver\":\"1.2\",\"load\":0.25}}";
    struct dl_arena arena = {0};
    struct dl_system a, b;
    struct dl_err err = {0};
    assert_int_equal(load(&arena, text, &a, &err), DL_OK);
    char *written = dl_json_text(&dl_system_schema, &a, &arena);
    assert_non_null(written);
    check_contains(written, "\"links\"");
    assert_int_equal(load(&arena, written, &b, &err), DL_OK);
    assert_int_equal(b.intra.edge_count, 3);
    assert_int_equal(b.intra.edges[0].links, 2);
    check_close(b.intra.bandwidth_bytes_per_s, 1.345e11, 0);
    check_close(b.fabric.oversubscription, 1.5, 0);
    assert_int_equal(b.host.cores, 28);
    assert_string_equal(b.host.sources[0].text, "mem");
    assert_int_equal(b.collective_count, 1);
    assert_int_equal(b.collectives[0].sample_count, 2);
    check_close(b.collectives[0].samples[1].high_s, 1.2e-5, 0);
    check_nan(b.collectives[0].samples[0].low_s);
    check_close(b.collectives[0].pieces[0].beta_s_per_byte, 1e-10, 0);
    assert_int_equal(b.calibration.measurement_count, 2);
    assert_string_equal(dl_json_text(&dl_system_schema, &b, &arena), written);
    dl_arena_free(&arena);
}

static void profile_is_checked_in_place(void **state) {
    static const char text[] =
        "{\"format\":\"dlmodel-system\",\"version\":1,\"name\":\"x\",\"summary\":\"s\",\"nodes\":1,"
        "\"devices_per_node\":1,\"device_profile\":{\"name\":\"p\",\"summary\":\"s\",\"kind\":"
        "\"tpu\","
        "\"memory_bytes\":16e9,\"memory_bandwidth_bytes_per_s\":900e9,"
        "\"rates\":[{\"precision\":\"fp32\",\"unit\":\"vector\",\"peak_flop_per_s\":1e12}]}}";
    struct dl_arena arena = {0};
    struct dl_system system;
    struct dl_err err = {0};
    assert_int_equal(load(&arena, text, &system, &err), DL_ERR_INPUT);
    assert_string_equal(err.key, "device_profile.kind");
    dl_arena_free(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(links_nest),
        cmocka_unit_test(reads_back_what_it_writes),

        cmocka_unit_test(profile_is_checked_in_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
