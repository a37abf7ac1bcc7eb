/* Every refusal of a system, a link, a device and a kernel-time model: the member that is to blame
 * and every word; next to each a case that passes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "model/machine/kernel_model.h"
#include "tests/check.h"
#include "tests/fake.h"

static struct dl_err err;
static struct dl_arena arena;
static struct dl_json *doc;

static int setup(void **state) {
    static const char text[] = "{\"name\":\"x\"}";
    (void)state;
    return dl_json_parse("x.json", text, sizeof text - 1, &arena, &doc, &err) == DL_OK ? 0 : -1;
}
static int teardown(void **state) {
    (void)state;
    dl_arena_free(&arena);
    return 0;
}

#define refused(call, member, words)                                                               \
    do {                                                                                           \
        memset(&err, 0, sizeof err);                                                               \
        assert_int_equal(call, DL_ERR_INPUT);                                                      \
        assert_string_equal(err.key, member);                                                      \
        assert_string_equal(err.message, words);                                                   \
    } while (0)
#define passes(call)                                                                               \
    do {                                                                                           \
        if ((call) != DL_OK) fail_msg("%s: %s", err.key, err.message);                             \
    } while (0)

static void systems(void **state) {
    (void)state;
    struct dl_fake f;
    fake_make(&f);
    struct dl_system *s = &f.system, base;
    s->price_per_node_hour = NAN;
    s->intra.domain_nodes = s->inter.domain_nodes = DL_ABSENT;
    passes(dl_system_check(s, doc, &err));
    base = *s;
    s->device_name = NULL;
    refused(dl_system_check(s, doc, &err), "device",
            "expected device (a name of data/devices) or device_profile");
    *s = base, s->has_profile = true;
    refused(dl_system_check(s, doc, &err), "device", "give device or device_profile, not both");
    s->device_name = NULL, s->profile = f.device, s->profile.rate_count = 0;
    refused(dl_system_check(s, doc, &err), "device_profile.rates", "expected at least one rate");
    s->profile.rate_count = 1;
    passes(dl_system_check(s, doc, &err));
    *s = base, s->price_per_node_hour = 2;
    refused(dl_system_check(s, doc, &err), "price_currency", "expected the currency of the price");
    *s = base, s->has_intra = false;
    refused(dl_system_check(s, doc, &err), "devices_per_node",
            "several devices in a node need links.intra");
    s->devices_per_node = 2;
    refused(dl_system_check(s, doc, &err), "devices_per_node",
            "several devices in a node need links.intra");
    *s = base, s->has_inter = false, s->nodes = 2;
    refused(dl_system_check(s, doc, &err), "nodes", "several nodes need links.inter");
    *s = base, s->intra.bandwidth_bytes_per_s = NAN;
    refused(dl_system_check(s, doc, &err), "links.intra",
            "expected bandwidth_bytes_per_s or pieces");
    *s = base, s->inter.bandwidth_bytes_per_s = NAN;
    refused(dl_system_check(s, doc, &err), "links.inter",
            "expected bandwidth_bytes_per_s or pieces");
    s->has_inter = false, s->nodes = 1;
    passes(dl_system_check(s, doc, &err));
    *s = base, s->host.sockets = 29;
    refused(dl_system_check(s, doc, &err), "host.cores",
            "expected the cores of all sockets together");
    s->host.sockets = 28;
    passes(dl_system_check(s, doc, &err));
    dl_arena_free(&f.arena);
}

/* Where a number is from: members that are there, in words. */
static void sources_of_members(void **state) {
    (void)state;
    struct dl_fake f;
    fake_make(&f);
    struct dl_system *s = &f.system;
    struct dl_map_entry entry = {.key = "none", .text = "paper", .number = NAN};
    struct dl_fabric *fabric = &s->fabric;
    s->price_per_node_hour = NAN, s->has_fabric = s->has_storage = true;
    const struct {
        const char *path, *member;
        struct dl_map_entry **list;
        int *count;
    } places[] = {
        {"sources.", "nodes", &s->sources, &s->source_count},
        {"host.sources.", "cores", &s->host.sources, &s->host.source_count},
        {"fabric.sources.", "nodes_per_leaf", &fabric->sources, &fabric->source_count},
        {"storage.sources.", "read_bytes_per_s", &s->storage.sources, &s->storage.source_count},
        {"links.intra.sources.", "latency_s", &s->intra.sources, &s->intra.source_count},
        {"links.inter.sources.", "rdma", &s->inter.sources, &s->inter.source_count}};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        char where[80];
        *places[i].list = &entry, *places[i].count = 1;
        entry = (struct dl_map_entry){.key = "none", .text = "paper", .number = NAN};
        snprintf(where, sizeof where, "%snone", places[i].path);
        refused(dl_system_check(s, doc, &err), where,
                "not a member of this object, so it cannot have a source");
        snprintf(where, sizeof where, "%s%s", places[i].path, places[i].member);
        entry.key = places[i].member;
        passes(dl_system_check(s, doc, &err));
        entry.text = "";
        refused(dl_system_check(s, doc, &err), where, "expected a key of data/SOURCES.md");
        entry.text = "paper", entry.number = 3;
        refused(dl_system_check(s, doc, &err), where, "expected a key of data/SOURCES.md");
        *places[i].count = 0;
    }
    dl_arena_free(&f.arena);
}

static void measured_collectives(void **state) {
    (void)state;
    struct dl_fake f;
    fake_make(&f);
    struct dl_system *s = &f.system;
    struct dl_coll_sample samples[] = {{8, 1e-5, NAN, NAN}, {16, 1e-5, NAN, NAN}};
    struct dl_piece pieces[] = {{1e3, 1e-6, 1e-9}, {1e6, 1e-6, 1e-9}, {1e7, 1e-6, 1e-9}};
    const struct dl_coll_measured good = {.library = "mpi",
                                          .operation = "broadcast",
                                          .nodes = 2,
                                          .ranks = 2,
                                          .samples = samples,
                                          .sample_count = 2,
                                          .pieces = pieces,
                                          .piece_count = 3};
    struct dl_coll_measured list[] = {good, good};
    s->price_per_node_hour = NAN;
    s->collectives = list, s->collective_count = 2;
    passes(dl_system_check(s, doc, &err));
    list[1].ranks = 1;
    refused(dl_system_check(s, doc, &err), "collectives[1]",
            "expected at least one rank on each node");
    list[1].ranks = 3;
    passes(dl_system_check(s, doc, &err));
    struct dl_coll_sample other[] = {{8, 1e-5, NAN, NAN}, {16, 1e-5, NAN, NAN}};
    list[1].samples = other;
    for (int i = 0; i < 2; i++) {
        char where[80];
        snprintf(where, sizeof where, "collectives[1].samples[%d]", i);
        other[i].time_s = 0;
        refused(dl_system_check(s, doc, &err), where, "expected bytes and a time_s above 0");
        other[i].time_s = 1e-5, other[i].bytes = NAN;
        refused(dl_system_check(s, doc, &err), where, "expected bytes and a time_s above 0");
        other[i].bytes = 8 * (i + 1);
    }
    other[1].bytes = 8;
    refused(dl_system_check(s, doc, &err), "collectives[1].samples[1]",
            "expected more bytes than the sample before");
    other[1].bytes = 8.5;
    passes(dl_system_check(s, doc, &err));
    struct dl_piece wrong[] = {{1e3, 1e-6, 1e-9}, {1e6, 1e-6, 1e-9}, {1e6, 1e-6, 1e-9}};
    list[1].pieces = wrong;
    refused(dl_system_check(s, doc, &err), "collectives[1].pieces[2].max_bytes",
            "expected more than that of the piece before");
    wrong[1].max_bytes = 1e3;
    refused(dl_system_check(s, doc, &err), "collectives[1].pieces[1].max_bytes",
            "expected more than that of the piece before");
    dl_arena_free(&f.arena);
}

/* Kept whole: a list of refusals. */
static void links(void **state) {
    (void)state;
    struct dl_fake f;
    fake_make(&f);
    struct dl_link link = f.system.intra;
    link.domain_nodes = DL_ABSENT;
#define CHECK dl_link_check(&link, 4, doc, "links.intra", &err)
    passes(CHECK);
    link.kind = "nvlink22";
    refused(CHECK, "links.intra.kind", "no such kind of link \"nvlink22\"; nearest: nvlink2");
    link.kind = "carrier pigeon";
    refused(CHECK, "links.intra.kind", "no such kind of link \"carrier pigeon\"");
    static const char *const kinds[] = {"nvlink1",    "nvlink2",  "nvlink3", "nvlink4",  "nvlink5",
                                        "nvswitch",   "infinity", "pcie2",   "pcie3",    "pcie4",
                                        "pcie5",      "qpi",      "upi",     "shm",      "xbus",
                                        "infiniband", "efa",      "aries",   "omnipath", "ethernet",
                                        "slingshot",  "loopback"};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        link.kind = kinds[i];
        passes(CHECK);
    }
    static const char *const distances[] = {"PIX", "PXB", "PHB", "NODE", "SYS"};
    for (size_t i = 0; i < sizeof distances / sizeof *distances; i++) {
        link.distance = distances[i];
        passes(CHECK);
    }
    link.distance = "FAR";
    refused(CHECK, "links.intra.distance", "expected PIX, PXB, PHB, NODE or SYS, found \"FAR\"");
    link.distance = NULL, link.cross_bandwidth_bytes_per_s = 1e9;
    refused(CHECK, "links.intra.cross_bandwidth_bytes_per_s", "needs peer_group as well");
    link.peer_group = 5;
    refused(CHECK, "links.intra.peer_group", "expected at most devices_per_node = 4");
    link.peer_group = 4, link.domain_nodes = 2;
    refused(CHECK, "links.intra.domain_nodes", "needs a switch: kind nvswitch");
    link.kind = "nvswitch";
    passes(CHECK);
    link.bandwidth_bytes_per_s = NAN;
    refused(CHECK, "links.intra", "expected bandwidth_bytes_per_s or pieces");
    struct dl_piece pieces[] = {{1e3, 1e-6, 1e-9}, {1e3, 1e-6, 1e-9}};
    link.pieces = pieces, link.piece_count = 1;
    passes(CHECK);
    link.piece_count = 2;
    refused(CHECK, "links.intra.pieces[1].max_bytes",
            "expected more than that of the piece before");
    link.piece_count = 1;
    struct dl_edge edges[] = {{0, 1, 1, "nvlink2"}, {2, 1, 1, "nvlink2"}, {3, 0, 1, "nvlink2"}};
    link.edges = edges, link.edge_count = 3;
    passes(CHECK);
    for (int i = 0; i < 3; i++) {
        const struct dl_edge good = edges[i];
        char where[80], words[80];
        snprintf(where, sizeof where, "links.intra.edges[%d].to", i);
        edges[i].to = edges[i].from;
        refused(CHECK, where, "an edge joins two different devices");
        edges[i].to = 4;
        refused(CHECK, where, "expected devices below devices_per_node = 4");
        edges[i] = good, edges[i].from = 4;
        refused(CHECK, where, "expected devices below devices_per_node = 4");
        for (int j = 0; j < i; j++) {
            snprintf(words, sizeof words,
                     "the same two devices as edges[%d]; give their links together", j);
            edges[i].from = edges[j].from, edges[i].to = edges[j].to;
            refused(CHECK, where, words);
            edges[i].from = edges[j].to, edges[i].to = edges[j].from;
            refused(CHECK, where, words);
        }
        edges[i] = good;
    }
    passes(CHECK);
    dl_arena_free(&f.arena);
}

static void devices(void **state) {
    (void)state;
    struct dl_fake f;
    fake_make(&f);
    struct dl_rate rates[] = {{.precision = DL_FP32, .peak_flop_per_s = 1e13},
                              {.precision = DL_FP16, .peak_flop_per_s = 2e13},
                              {.precision = DL_FP16, .unit = 1, .peak_flop_per_s = 8e13}};
    struct dl_device *d = &f.device;
    d->rates = rates, d->rate_count = 3;
    passes(dl_device_check(d, doc, &err));
    rates[2].unit = 0;
    refused(dl_device_check(d, doc, &err), "rates[2].precision",
            "expected one rate for each precision and unit; rates[1] has the same");
    rates[1].precision = DL_FP32;
    refused(dl_device_check_at(d, doc, "device_profile", &err), "device_profile.rates[1].precision",
            "expected one rate for each precision and unit; rates[0] has the same");
    rates[1].precision = DL_MIXED;
    refused(dl_device_check(d, doc, &err), "rates[1].precision",
            "mixed is not a rate of its own; give the fp16 rate");
    d->rate_count = 0;
    refused(dl_device_check(d, doc, &err), "rates", "expected at least one rate");
    d->rate_count = 1, d->kernel_models_from = d->name;
    refused(dl_device_check(d, doc, &err), "kernel_models_from",
            "expected another device: a device cannot borrow from itself");
    refused(dl_device_check_at(d, doc, "device_profile", &err), "device_profile.kernel_models_from",
            "expected another device: a device cannot borrow from itself");
    d->kernel_models_from = "other", d->context_bytes = d->memory_bytes;
    refused(dl_device_check(d, doc, &err), "context_bytes", "expected less than memory_bytes");
    d->context_bytes = d->memory_bytes - 1;
    passes(dl_device_check(d, doc, &err));
    d->context_bytes = NAN;
    passes(dl_device_check(d, doc, &err));
    struct dl_map_entry entry = {.key = "rate", .text = "paper", .number = NAN};
    d->sources = &entry, d->source_count = 1;
    refused(dl_device_check_at(d, doc, "device_profile", &err), "device_profile.sources.rate",
            "not a member of this object, so it cannot have a source");
    assert_string_equal(dl_device_kernels_name(d), "other");
    d->kernel_models_from = NULL;
    assert_string_equal(dl_device_kernels_name(d), "fake-gpu");
    assert_string_equal(dl_device_architecture(d), "volta");
    d->architecture = NULL;
    assert_string_equal(dl_device_architecture(d), "");
    dl_arena_free(&f.arena);
}

static void kernel_models(void **state) {
    (void)state;
    double numbers[24] = {0}, lengths[11];
    const char *names[] = {"batch", "taps"};
    for (int i = 0; i < 11; i++) lengths[i] = 1;
    const struct dl_kernel_model good = {.op = DL_OP_CONV,
                                         .lengths = lengths,
                                         .length_count = 2,
                                         .points = numbers,
                                         .point_count = 6,
                                         .weights = numbers,
                                         .weight_count = 3,
                                         .domain_low = numbers,
                                         .domain_high = numbers,
                                         .domain_low_count = 2,
                                         .domain_high_count = 2,
                                         .features = names,
                                         .feature_count = 2};
    struct dl_kernel_model m = good;
#undef CHECK
#define CHECK dl_kernel_model_check(&m, doc, "kernel_models[3]", &err)
    passes(CHECK);
    m.feature_count = 0;
    passes(CHECK);
    m.feature_count = 1;
    refused(CHECK, "kernel_models[3]", "features and lengths must have the same count");
    m = good, names[1] = "seen";
    refused(CHECK, "kernel_models[3]", "no feature of conv is called \"seen\"");
    m.op = DL_OP_ATTENTION, names[0] = "long_side";
    refused(CHECK, "kernel_models[3]", "no feature of attention is called \"long_side\"");
    names[0] = "batch", names[1] = "taps", m = good, m.point_count = 5;
    refused(CHECK, "kernel_models[3]", "points has 5 numbers, expected lengths x weights = 2 x 3");
    m = good, m.domain_low_count = 1;
    refused(CHECK, "kernel_models[3]",
            "domain_low, domain_high and lengths must have the same count");
    m = good, m.domain_high_count = 1;
    refused(CHECK, "kernel_models[3]",
            "domain_low, domain_high and lengths must have the same count");
    m = good, m.domain_low_count = m.domain_high_count = 1;
    refused(CHECK, "kernel_models[3]",
            "domain_low, domain_high and lengths must have the same count");
    m = good, lengths[1] = 0;
    refused(CHECK, "kernel_models[3]", "lengths must be positive, found 0");
    lengths[1] = 1, lengths[0] = -2;
    refused(CHECK, "kernel_models[3]", "lengths must be positive, found -2");
    lengths[0] = 1, m.feature_count = 0;
    m.length_count = m.domain_low_count = m.domain_high_count = 10;
    m.weight_count = 2, m.point_count = 20;
    passes(CHECK);
    m.length_count = m.domain_low_count = m.domain_high_count = 11, m.point_count = 22;
    refused(CHECK, "kernel_models[3]", "expected at most 10 lengths, found 11");
    m = (struct dl_kernel_model){.op = DL_OP_GEMM}; /* a base alone */
    passes(CHECK);
    assert_int_equal(dl_kernel_model_pack(&m, &arena, &err), DL_OK);
    assert_null(m.packed);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(systems), cmocka_unit_test(sources_of_members),
        cmocka_unit_test(links),   cmocka_unit_test(measured_collectives),
        cmocka_unit_test(devices), cmocka_unit_test(kernel_models)};
    return cmocka_run_group_tests(tests, setup, teardown);
}
