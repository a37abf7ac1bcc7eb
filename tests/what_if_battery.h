/* what_if_battery.h - for test_what_if: the figures that a what-if of a machine may move, and a
 * machine whose files have every member. `resnet`, `bert`, `gpt`, `experts` and
 * `frameworks` are set by the test.
 */
#ifndef TESTS_WHAT_IF_BATTERY_H
#define TESTS_WHAT_IF_BATTERY_H

#include "model/network/collective.h"
#include "model/engine/strategies/strategy.h"
#include "model/engine/predict.h"
#include "model/search/checkpoint.h"
#include "tests/check.h"

enum { METRICS = 128, FRAMEWORKS = 10 };
static const struct dl_workload *resnet, *bert, *gpt, *experts;
static const char *const framework_names[FRAMEWORKS] = {
    "horovod-tensorflow", "pytorch-ddp",           "tensorflow-ps", "tensorflow-mirrored",
    "mxnet-dist-sync",    "keras-multi-gpu",       "caffe-mlsl",    "megatron-core",
    "pytorch-fsdp2",      "tensorflow-multiworker"};
static const struct dl_framework *frameworks[FRAMEWORKS];

struct sums {
    double *out;
    int count;
};

static void put(struct sums *s, double cost) {
    assert_true(s->count < METRICS);
    s->out[s->count++] = cost > 0 ? log(cost) : NAN;
}

static void put_plan(struct sums *s, const struct dl_system *system, const struct dl_workload *w,
                     const struct dl_framework *f, struct dl_plan plan) {
    struct dl_arena arena = {0};
    struct dl_err err = {0};
    struct dl_prediction p = {0};
    const bool done = dl_plan_complete(system, w, f, &plan, &err) == DL_OK &&
                      dl_predict(&(struct dl_predict_request){system, w, f, &plan, NULL, &arena},
                                 &p, &err) == DL_OK;
    put(s, done ? p.iteration_s : NAN);
    dl_arena_free(&arena);
}

static void put_collective(struct sums *s, const struct dl_system *system, enum dl_library library,
                           int64_t nodes, double bytes, bool device) {
    struct dl_err err = {0};
    struct dl_collective_time t = {0};
    const struct dl_collective_request request = {.op = DL_COLL_ALL_REDUCE,
                                                  .library = library,
                                                  .nodes = nodes,
                                                  .ranks_per_node = system->devices_per_node,
                                                  .flows_per_adapter = 1,
                                                  .device_buffers = device,
                                                  .bytes = bytes};
    put(s, dl_collective_time(system, &request, &t, &err) == DL_OK ? t.time_s : NAN);
}

static void put_memory(struct sums *s, const struct dl_system *system, bool sharded) {
    struct dl_arena arena = {0};
    struct dl_err err = {0};
    struct dl_prediction p = {0};
    struct dl_checkpoint c = {0};
    struct dl_plan plan = {
        .nodes = sharded ? 40 : 2, .batch_per_device_samples = 2, .input.synthetic = true};
    const struct dl_framework *f = frameworks[sharded ? 8 : 1];
    const bool done =
        dl_plan_complete(system, resnet, f, &plan, &err) == DL_OK &&
        dl_predict(&(struct dl_predict_request){system, resnet, f, &plan, NULL, &arena}, &p,
                   &err) == DL_OK;
    const struct dl_checkpoint_way way = {.interval_s = 600};
    bool over = false; /* more nodes than there are */
    for (int i = 0; done && i < p.warning_count; i++)
        over = over || strstr(p.warnings[i], " are extrapolated") != NULL;
    put(s, over ? 2 : 1);
    put(s, done ? p.memory.total_bytes / p.memory.capacity_bytes : NAN);
    const bool saved =
        done && dl_checkpoint_plan(system, resnet, &plan, &p, &way, &c, &err) == DL_OK;
    put(s, saved ? c.stretch_ratio : NAN);
    put(s, saved ? 1 / c.two_level_goodput_frac : NAN);
    dl_arena_free(&arena);
}

static void predict_all(const struct dl_system *system, double *out) {
    static const int64_t nodes[] = {1, 2, 40};
    struct sums s = {out, 0};
    for (int i = 0; i < METRICS; i++) out[i] = NAN;
    for (int f = 0; f < FRAMEWORKS; f++)
        for (int n = 0; n < 3; n++) {
            const struct dl_plan plan = {.nodes = nodes[n],
                                         .batch_per_device_samples = 8,
                                         .precision = DL_FP32,
                                         .input.synthetic = true};
            put_plan(&s, system, resnet, frameworks[f], plan);
        }
    struct dl_plan plan = {.nodes = 2, .batch_per_device_samples = 4, .input.synthetic = true};
    plan.precision = DL_MIXED;
    put_plan(&s, system, bert, frameworks[1], plan);
    plan.precision = DL_BF16, plan.attention = DL_ATTENTION_FLASH;
    put_plan(&s, system, gpt, frameworks[7], plan);
    put_plan(&s, system, gpt, frameworks[8], plan);
    put_plan(&s, system, experts, frameworks[8], plan);
    plan.precision = DL_FP8;
    put_plan(&s, system, gpt, frameworks[7], plan);
    put_plan(&s, system, experts, frameworks[8], plan);
    plan = (struct dl_plan){.nodes = 16,
                            .batch_per_device_samples = 64,
                            .precision = DL_MIXED,
                            .input.sample_bytes = 1e6,
                            .input.dataset_samples = 1e5,
                            .input.decode_s_per_sample = 1e-4};
    for (int first = 0; first < 2; first++) {
        plan.input.first_epoch = first == 1;
        put_plan(&s, system, resnet, frameworks[1], plan);
        plan.input.decode_s_per_sample = 0.05;
        put_plan(&s, system, resnet, frameworks[0], plan);
    }
    for (int n = 0; n < 3; n++)
        for (double bytes = 1024; bytes < 2e10; bytes *= 64) {
            put_collective(&s, system, DL_LIB_NCCL, nodes[n], bytes, true);
            put_collective(&s, system, DL_LIB_MPI, nodes[n], bytes, false);
        }
    put_memory(&s, system, false);
    put_memory(&s, system, true);
}

static const char MADE_DEVICE[] =
    "{\"format\":\"dlmodel-device\",\"version\":1,\"name\":\"made\",\"summary\":\"s\","
    "\"kind\":\"gpu\",\"vendor\":\"nvidia\",\"architecture\":\"volta\",\"memory_bytes\":16e9,"
    "\"memory_bandwidth_bytes_per_s\":9e11,\"memory_efficiency\":0.8,\"l2_bytes\":6e6,"
    "\"unit_count\":80,\"clock_hz\":1.5e9,\"tdp_w\":300,\"kernel_latency_s\":5e-6,"
    "\"kernel_gap_s\":1e-6,\"collective_slowdown_frac\":0.2,\"load_scale\":1.1,"
    "\"attention_scale\":1.1,\"flash2_scale\":1.2,\"launch_s\":5e-6,"
    "\"context_bytes\":5e8,"
    "\"workspace_bytes\":1e9,\"kernel_models_from\":\"v100_sxm2_16\",\"direct_conv_scale\":1.2,"
    "\"norm_scale\":1.3,\"works\":[{\"work\":\"batchnorm\",\"pass\":\"fwd\",\"precision\":\"fp32\","
    "\"factor\":1.2}],\"rates\":[{\"precision\":\"fp32\",\"unit\":\"vector\","
    "\"peak_flop_per_s\":1.5e13,\"sustained_flop_per_s\":1.3e13},{\"precision\":\"fp16\","
    "\"unit\":\"matrix\",\"peak_flop_per_s\":1.2e14}]}";
static const char MADE_SYSTEM[] =
    "{\"format\":\"dlmodel-system\",\"version\":1,\"name\":\"made\",\"summary\":\"s\","
    "\"device\":\"made\",\"nodes\":64,\"devices_per_node\":4,\"jitter_frac\":0.05,"
    "\"node_mtbf_s\":1e6,\"restart_s\":300,\"nccl_version\":\"2.18.3\",\"mpi\":\"openmpi-4.1\","
    "\"host\":{\"sockets\":2,\"cores\":32,\"memory_bytes\":1e11,"
    "\"memory_bandwidth_bytes_per_s\":1e11,\"copy_bandwidth_bytes_per_s\":1e10,"
    "\"pageable_bandwidth_bytes_per_s\":5e9,\"devices_per_copy_link\":2},"
    "\"links\":{\"intra\":{\"kind\":\"pcie3\",\"bandwidth_bytes_per_s\":1e10,\"latency_s\":4e-6,"
    "\"peer_group\":2,\"cross_bandwidth_bytes_per_s\":6e9,\"peer_to_peer\":true},"
    "\"inter\":{\"kind\":\"ethernet\",\"bandwidth_bytes_per_s\":3e9,\"latency_s\":1e-5,"
    "\"adapters_per_node\":2,\"rdma\":false,\"nccl_bandwidth_bytes_per_s\":2e9,"
    "\"gpudirect\":false,\"distance\":\"SYS\",\"per_message_cpu_s\":2e-6,\"pieces\":["
    "{\"max_bytes\":65536,\"alpha_s\":2e-5,\"beta_s_per_byte\":6e-10},"
    "{\"max_bytes\":1e12,\"alpha_s\":4e-5,\"beta_s_per_byte\":4e-10}]}},"
    "\"fabric\":{\"topology\":\"fat-tree\",\"oversubscription\":2,\"nodes_per_leaf\":16,"
    "\"hop_latency_s\":5e-7},"
    "\"storage\":{\"kind\":\"nvme\",\"read_bytes_per_s\":3e8,\"write_bytes_per_s\":2e8,"
    "\"total_read_bytes_per_s\":4e9,\"total_write_bytes_per_s\":3e9,\"open_s\":1e-4,"
    "\"local_write_bytes_per_s\":5e8,\"local_recovery_frac\":0.7},"
    "\"collectives\":[{\"library\":\"nccl\",\"operation\":\"all_reduce\",\"nodes\":1,\"ranks\":4,"
    "\"samples\":[{\"bytes\":1024,\"time_s\":3e-5},{\"bytes\":268435456,\"time_s\":0.05}],"
    "\"pieces\":[{\"max_bytes\":1e10,\"alpha_s\":3e-5,\"beta_s_per_byte\":2e-10},"
    "{\"max_bytes\":1e12,\"alpha_s\":3e-5,\"beta_s_per_byte\":3e-10}]}]}";

#endif
