/* Systems: nesting of links, checks across members, writing and reading back. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

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
    (void)state;
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
    (void)state;
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

struct refusal {
    const char *text, *key, *part;
};

static void check_refusals(const struct refusal *cases, size_t count) {
    for (size_t i = 0; i < count; i++) {
        struct dl_arena arena = {0};
        struct dl_system system;
        struct dl_err err = {0};
        assert_int_equal(load(&arena, cases[i].text, &system, &err), DL_ERR_INPUT);
        assert_string_equal(err.key, cases[i].key);
        check_contains(err.message, cases[i].part);
        assert_int_equal(err.line, 1);
        dl_arena_free(&arena);
    }
}

static void refusals(void **state) {
    (void)state;
    static const struct refusal cases[] = {
        {HEAD "\"nodes\":1,\"devices_per_node\":4}", "devices_per_node", "need links.intra"},
        {HEAD "\"nodes\":2,\"devices_per_node\":1}", "nodes", "need links.inter"},
        {"{\"format\":\"dlmodel-system\",\"version\":1,\"name\":\"x\",\"summary\":\"s\",\"nodes\":"
         "1,\"devices_per_"
         "node\":1}",
         "device", "expected device"},
        {HEAD "\"nodes\":1,\"devices_per_node\":1,\"links\":{\"inter\":{\"kind\":\"infinibad\","
              "\"latency_s\":1e-6}}}",
         "links.inter.kind", "nearest: infiniband"},
        {HEAD "\"nodes\":1,\"devices_per_node\":1,\"links\":{\"inter\":{\"kind\":\"infiniband\"}}}",
         "links.inter", "expected bandwidth_bytes_per_s or pieces"},
        {HEAD "\"nodes\":1,\"devices_per_node\":1,\"host\":{\"sockets\":2,\"cores\":1}}",
         "host.cores", "all sockets"},
        {HEAD "\"nodes\":1,\"devices_per_node\":1,\"collectives\":[{\"library\":\"nccl\","
              "\"operation\":\"all_reduce\","
              "\"nodes\":1,\"ranks\":2,\"samples\":[{\"bytes\":8,\"time_s\":1},{\"bytes\":8,\"time_"
              "s\":1}]}]}",
         "collectives[0].samples[1]", "more bytes"},
        {HEAD "\"nodes\":0,\"devices_per_node\":1}", "nodes", "expected"},
        {HEAD "\"nodes\":1,\"devices_per_node\":1,\"device_profile\":{\"name\":\"p\",\"summary\":"
              "\"s\",\"kind\":\"gpu\","
              "\"memory_bytes\":16e9,\"memory_bandwidth_bytes_per_s\":900e9,\"rates\":[]}}",
         "device", "not both"},
    };
    check_refusals(cases, sizeof cases / sizeof cases[0]);
}

static void refusals_of_links(void **state) {
    (void)state;
#define INTRA(members)                                                                             \
    "\"links\":{\"intra\":{\"kind\":\"nvlink2\",\"bandwidth_bytes_per_s\":1e11," members "}}}"
    static const struct refusal cases[] = {
        {HEAD "\"nodes\":1,\"devices_per_node\":2," INTRA(
             "\"edges\":[{\"from\":0,\"to\":2,\"links\":1}]"),
         "links.intra.edges[0].to", "devices_per_node = 2"},
        {HEAD "\"nodes\":1,\"devices_per_node\":2," INTRA(
             "\"edges\":[{\"from\":1,\"to\":1,\"links\":1}]"),
         "links.intra.edges[0].to", "two different devices"},
        {HEAD "\"nodes\":1,\"devices_per_node\":2," INTRA(
             "\"edges\":[{\"from\":0,\"to\":1,\"links\":1},{\"from\":1,\"to\":0,\"links\":1}]"),
         "links.intra.edges[1].to", "the same two devices"},
        {HEAD "\"nodes\":1,\"devices_per_node\":2," INTRA("\"cross_bandwidth_bytes_per_s\":6e9"),
         "links.intra.cross_bandwidth_bytes_per_s", "needs peer_group"},
        {HEAD "\"nodes\":1,\"devices_per_node\":2," INTRA("\"peer_group\":4"),
         "links.intra.peer_group", "at most"},
        {HEAD "\"nodes\":1,\"devices_per_node\":2," INTRA("\"distance\":\"FAR\""),
         "links.intra.distance", "PIX"},
        {HEAD "\"nodes\":1,\"devices_per_node\":2," INTRA(
             "\"pieces\":[{\"max_bytes\":9,\"alpha_s\":0,\"beta_s_per_byte\":0},"
             "{\"max_bytes\":9,\"alpha_s\":0,\"beta_s_per_byte\":0}]"),
         "links.intra.pieces[1].max_bytes", "more than"},
        {HEAD "\"nodes\":1,\"devices_per_node\":2," INTRA("\"sources\":{\"bandwidth\":\"mem\"}"),
         "links.intra.sources.bandwidth", "not a member"},
    };
    check_refusals(cases, sizeof cases / sizeof cases[0]);
}

static void profile_is_checked_in_place(void **state) {
    (void)state;
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
        cmocka_unit_test(refusals),
        cmocka_unit_test(refusals_of_links),
        cmocka_unit_test(profile_is_checked_in_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
