/* Refusals of plans, letter for letter, each beside a plan at the edge that is taken; the table of
 * strategies; words that go to the user as they are in the code. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "model/workload/layer.h"
#include "tests/fake_transformer.h"
#include "tests/gradient_bench.h"

static struct dl_err err;

static enum dl_code complete(const struct dl_fake *f, const struct dl_workload *workload,
                             const struct dl_plan *plan) {
    struct dl_plan copy = *plan;
    memset(&err, 0, sizeof err);
    return dl_plan_complete(&f->system, workload, &f->framework, &copy, &err);
}

static void taken(const struct dl_fake *f, const struct dl_workload *workload,
                  const struct dl_plan *plan) {
    if (complete(f, workload, plan) != DL_OK) fail_msg("%s", err.message);
}

static void refused(const struct dl_fake *f, const struct dl_workload *workload,
                    const struct dl_plan *plan, const char *words) {
    assert_int_equal(complete(f, workload, plan), DL_ERR_USAGE);
    assert_string_equal(err.message, words);
}

/* Two nodes of four devices, 256 samples a device.
 * Kept whole: a list of refusals. */
static void devices_and_batches(void **state) {
    (void)state;
    struct dl_fake f;
    fake_make(&f);
    const struct dl_workload *w = &f.workload;
    struct dl_plan p = f.plan;
    p.nodes = -1, refused(&f, w, &p, "nodes: expected at least 1, got -1");
    p.nodes = 1, taken(&f, w, &p);
    p.devices_per_node = 4, taken(&f, w, &p);
    p.devices_per_node = 5;
    refused(&f, w, &p, "devices per node: system fake has 4, got 5");
    p.devices_per_node = 4, p.nodes = 25000000, taken(&f, w, &p);
    p.nodes = 25000001;
    refused(&f, w, &p, "nodes: expected at most 100000000 devices in all, got 25000001 nodes");
    p = f.plan, p.batch_per_device_samples = 0;
    refused(&f, w, &p, "give --batch-per-device or --global-batch");
    p.batch_per_device_samples = 7, p.global_batch_samples = 64;
    refused(&f, w, &p, "batch: 7 a device on 8 devices is not a global batch of 64");
    p.batch_per_device_samples = 0, p.global_batch_samples = 7;
    refused(&f, w, &p,
            "batch: 7 samples are fewer than 8 data-parallel ranks (scaling limit of data "
            "parallelism)");
    p.global_batch_samples = 8, taken(&f, w, &p);
    p.global_batch_samples = 8.8e7;
    refused(&f, w, &p, "batch: expected at most 1e7 samples a device, got 1.1e+07");
    p = f.plan, p.library = "smoke";
    refused(&f, w, &p, "library: no collective library 'smoke'");
    for (int i = 0; dl_library_names[i] != NULL; i++) {
        p.library = dl_library_names[i];
        taken(&f, w, &p);
    }
    p = f.plan, p.recompute = DL_RECOMPUTE_FULL;
    refused(&f, w, &p,
            "--recompute full: only transformers say which activations are kept; use selective or "
            "none");
    p.recompute = DL_RECOMPUTE_SELECTIVE, taken(&f, w, &p);
    p = f.plan, p.shard = 1, p.strategy = dl_strategy_find("spatial");
    refused(&f, w, &p,
            "--zero: goes with data, tensor, pipeline and expert parallelism of transformers; "
            "strategy spatial shards no states");
    p = f.plan;
    p.shard = 0, p.shard_group = 2;
    refused(&f, w, &p,
            "--zero-group: goes with sharded states: strategies zero1 to zero3, or --zero 1 to 3");
    p = f.plan, p.sequence_parallel = true;
    refused(&f, w, &p, "--sequence-parallel: goes with tensor parallelism");
    p = f.plan, p.blocking_launches = true;
    refused(&f, w, &p,
            "--blocking-launches: goes with tensor, pipeline or expert parallelism, or sharded "
            "states; strategy data has none");
    p = f.plan, p.micro_batch_samples = 64, taken(&f, w, &p);
    p.micro_batch_samples = 100;
    refused(&f, w, &p,
            "--micro-batch 100: the batch of 256 samples a device is not a multiple of it");
    p = f.plan, p.strategy = dl_strategy_find("expert");
    refused(&f, w, &p,
            "--strategy expert: fake has no mixture of experts; give one, e.g. --workload "
            "gpt:layers=24,hidden=1024,experts=8,topk=2, or take --strategy data");
    p = f.plan, p.expert_imbalance = 1;
    refused(&f, w, &p, "--expert-imbalance: fake has no mixture of experts");
    p.expert_imbalance = 1.5;
    refused(&f, w, &p,
            "--expert-imbalance 1.5: expected at most the 1 expert ranks, the share of one that "
            "takes every token");
    dl_arena_free(&f.arena);
}

/* Ranks over axes that a strategy has or not. */
static void axes(void **state) {
    (void)state;
    struct dl_fake f;
    fake_make(&f);
    const struct dl_workload *w = &f.workload;
    struct dl_plan p = f.plan;
    p.dp = 4, refused(&f, w, &p, "--dp 4 is not nodes x devices per node = 8");
    p.dp = 8, taken(&f, w, &p);
    p.strategy = dl_strategy_find("filter"), p.dp = 2;
    refused(&f, w, &p,
            "--dp: strategy filter does not split over it; leave it out, or take another "
            "--strategy");
    p.dp = 0, p.tp = 2;
    refused(&f, w, &p, "--tp 2 is not nodes x devices per node = 8");
    p.strategy = dl_strategy_find("data+filter"), p.dp = 3;
    refused(&f, w, &p, "dp 3 x tp 2 x pp 1 x sp 1 x ep 1 is not nodes x devices per node = 8");
    p.strategy = dl_strategy_find("spatial"), p.dp = p.tp = 0, p.sp = 3;
    refused(&f, w, &p, "--cp or --spatial 3 is not nodes x devices per node = 8");
    p.strategy = dl_strategy_find("pipeline"), p.sp = 0, p.pp = 3;
    struct dl_plan alone = p;
    alone.nodes = 1;
    if ((p.strategy->axes & DL_AXIS_DP) == 0)
        refused(&f, w, &alone, "--pp 3 is not nodes x devices per node = 4");
    static const struct {
        const char *axis;
        size_t offset;
    } closed[] = {{"tp", offsetof(struct dl_plan, tp)},
                  {"pp", offsetof(struct dl_plan, pp)},
                  {"cp or --spatial", offsetof(struct dl_plan, sp)},
                  {"ep", offsetof(struct dl_plan, ep)}};
    for (size_t i = 0; i < sizeof closed / sizeof *closed; i++) {
        p = f.plan;
        int64_t *ranks = (void *)((char *)&p + closed[i].offset);
        *ranks = 2;
        refused(&f, w, &p,
                dl_arena_printf(&f.arena,
                                "--%s: strategy data does not split over it; leave it out, or "
                                "take another --strategy",
                                closed[i].axis));
        *ranks = 1, taken(&f, w, &p);
    }
    dl_arena_free(&f.arena);
}

/* What a framework or its last release runs on.
 * Kept whole: a list of refusals. */
static void frameworks(void **state) {
    (void)state;
    struct dl_fake f;
    fake_make(&f);
    const struct dl_workload *w = &f.workload;
    struct dl_plan p = f.plan;
    f.framework.trains = DL_TRAINS_TRANSFORMERS;
    refused(&f, w, &p, "fake is made for language models; fake is none");
    f.framework.trains = 0;
    static const char *const ages[] = {"kepler", "maxwell", "pascal", "volta",    "turing",
                                       "ampere", "ada",     "hopper", "blackwell"};
    for (int last = 0; last < 9; last++) {
        for (int now = 0; now < 9; now++) {
            f.framework.last_architecture = ages[last], f.device.architecture = ages[now];
            if (now <= last)
                taken(&f, w, &p);
            else
                refused(&f, w, &p,
                        dl_arena_printf(&f.arena,
                                        "fake: its last release runs on GPUs up to %s; fake-gpu "
                                        "is %s",
                                        ages[last], ages[now]));
        }
    }
    f.device.architecture = NULL;
    refused(&f, w, &p,
            "fake: its last release runs on GPUs up to blackwell; fake-gpu is of another vendor");
    f.device.architecture = "volta", f.framework.last_architecture = NULL;
    p.precision = DL_FP8;
    refused(&f, w, &p,
            "--precision fp8: frameworks cast linear layers, not convolutions; use bf16 for fake");
    f.workload.family = NULL, f.framework.transformer.casts = -1;
    refused(&f, w, &p,
            "fake does not train in fp8: its file states no casts; megatron-core, pytorch-fsdp2 "
            "and jax-maxtext do");
    f.framework.transformer.casts = 0, taken(&f, w, &p);
    p = f.plan, f.framework.host.single_node = true;
    refused(&f, w, &p, "fake runs inside one node: use --nodes 1");
    p.nodes = 1, taken(&f, w, &p);
    f.framework.host.single_node = false, p = f.plan;
    p.backup_workers = 1;
    refused(&f, w, &p,
            "fake: backup workers belong to TensorFlow's synchronous parameter servers: use "
            "--framework tensorflow-ps");
    p.backup_workers = 0, p.servers = 1;
    refused(&f, w, &p,
            "--servers: fake has no parameter servers; tensorflow-ps, mxnet-dist-sync and "
            "mxnet-dist-device-sync have");
    f.framework.behaviour = dl_framework_behaviour_find("parameter-server");
    taken(&f, w, &p);
    p.backup_workers = 1, taken(&f, w, &p);
    p.backup_workers = 2;
    refused(&f, w, &p, "--backup-workers 2: at most 1 of 2 nodes, one worker each, can be spare");
    p = f.plan, f.framework.behaviour = dl_framework_behaviour_find("replicated");
    refused(&f, w, &p,
            "fake: one process drives the GPUs of one node: use --nodes 1 or pytorch-ddp");
    f.framework.behaviour = dl_framework_behaviour_find("central-weights");
    refused(&f, w, &p, "fake: one process drives the GPUs of one node: use --nodes 1");
    p.nodes = 1, taken(&f, w, &p);
    f.framework.sync.cpu_library = DL_LIB_MPI, f.device.kind = DL_DEVICE_CPU;
    refused(&f, w, &p, "fake: needs GPUs");
    f.framework.behaviour = dl_framework_behaviour_find("replicated");
    refused(&f, w, &p, "fake: needs GPUs");
    f.framework.behaviour = dl_framework_behaviour_find("bucketed"), taken(&f, w, &p);
    f.framework.sync.cpu_library = -1;
    refused(&f, w, &p, "fake needs GPUs; fake has CPUs only");
    f.device.kind = DL_DEVICE_GPU, f.framework.sync.library = DL_LIB_MLSL;
    refused(&f, w, &p, "fake runs on CPUs; fake has GPUs");
    dl_arena_free(&f.arena);
}

/* Transformers: 24 layers, 16 heads, 1024 tokens; two nodes of four devices.
 * Kept whole: a list of refusals. */
static void transformers(void **state) {
    (void)state;
    struct gpt g;
    gpt_make(&g, NULL, 0);
    struct dl_fake *f = &g.f;
    const struct dl_workload *w = &g.workload;
    struct dl_plan base = f->plan, p;
    base.strategy = dl_strategy_find("3d");
    base.tp = base.pp = base.sp = base.ep = base.dp = 0;
    base.batch_per_device_samples = 4;
    p = base, p.tp = 2, p.pp = 1, taken(f, w, &p);
    p.shard = 1, p.shard_group = 3;
    refused(f, w, &p,
            "--zero-group 3 does not divide the 4 ranks that hold the same parameters; nearest is "
            "2");
    p.shard_group = 4, taken(f, w, &p);
    p.shard_group = 5;
    refused(f, w, &p,
            "--zero-group 5 does not divide the 4 ranks that hold the same parameters; nearest is "
            "4");
    p.shard = 0, p.shard_group = 2;
    refused(f, w, &p,
            "--zero-group: goes with sharded states: --zero 1 to 3, or strategy zero1 to zero3");
    f->framework.shards = false, p.shard = 1;
    refused(f, w, &p,
            "fake does not shard states; take --framework pytorch-fsdp2, deepspeed-zero1 to "
            "deepspeed-zero3, megatron-core or ideal");
    f->framework.splits_layers = false;
    refused(f, w, &p,
            "fake does not split layers over devices; take --framework megatron-core, "
            "pytorch-fsdp2 or ideal");
    f->framework.shards = f->framework.splits_layers = true;
    p = base, p.tp = 1, p.sequence_parallel = true;
    refused(f, w, &p, "--sequence-parallel: goes with tensor parallelism, --tp 2 or more");
    p.tp = 2, taken(f, w, &p);
    p = base, p.tp = 1, p.pp = 2, p.virtual_stages = 2;
    refused(f, w, &p, "--virtual-stages: goes with --schedule interleaved");
    p.virtual_stages = 1, taken(f, w, &p);
    p.schedule = DL_INTERLEAVED, p.virtual_stages = 2, taken(f, w, &p);
    p.virtual_stages = 5;
    refused(f, w, &p,
            "--virtual-stages 5 does not divide the 12 layers of a stage of gpt; nearest is 4");
    p.virtual_stages = 13;
    refused(f, w, &p,
            "--virtual-stages 13: gpt has only 12 layers of a stage (scaling limit); at most 12");
    f->framework.transformer.uneven_parts = true, p.virtual_stages = 5, taken(f, w, &p);
    p.virtual_stages = 12, taken(f, w, &p);
    p.virtual_stages = 13;
    refused(f, w, &p,
            "--virtual-stages 13: gpt has only 12 layers of a stage (scaling limit); at most 12");
    f->framework.transformer.uneven_parts = false;
    p.pp = 1, p.virtual_stages = 2;
    refused(f, w, &p, "--schedule interleaved needs a pipeline: --pp 2 or more");
    p = base, p.tp = 1, p.pp = 2, p.micro_batch_samples = 3;
    refused(f, w, &p,
            "--micro-batch 3 does not divide the 8 samples of each of 4 data ranks; nearest "
            "--global-batch is 36");
    p.micro_batch_samples = 4, taken(f, w, &p);
    p.micro_batch_samples = 20;
    refused(f, w, &p,
            "--micro-batch 20 does not divide the 8 samples of each of 4 data ranks; nearest "
            "--global-batch is 80");
    p = base, p.tp = 1, p.sp = 8, taken(f, w, &p);
    p = base, p.strategy = dl_strategy_find("expert"), p.tp = 1;
    refused(f, w, &p,
            "--strategy expert: gpt has no mixture of experts; give one, e.g. --workload "
            "gpt:layers=24,hidden=1024,experts=8,topk=2, or take --strategy 3d");
    p = base, p.tp = 2, p.expert_tp = 3;
    refused(f, w, &p, "--etp 3: expected 1, or the 2 tensor ranks of the other layers");
    p.expert_tp = 2, taken(f, w, &p);
    p.expert_tp = 1, p.mapping = DL_MAP_PIPELINE_INSIDE;
    refused(f, w, &p, "--etp 1: goes with --mapping data-inside");
    p.mapping = 0, taken(f, w, &p);
    dl_arena_free(&f->arena);
}

/* A mixture of 8 experts on eight devices. */
static void experts(void **state) {
    (void)state;
    struct gpt g;
    struct dl_override moe[] = {{.key = "experts", .value = "8"}, {.key = "topk", .value = "2"}};
    gpt_make(&g, moe, 2);
    struct dl_fake *f = &g.f;
    const struct dl_workload *w = &g.workload;
    struct dl_plan base = f->plan, p;
    base.strategy = dl_strategy_find("expert");
    base.tp = base.pp = base.sp = base.ep = base.dp = 0;
    base.batch_per_device_samples = 8;
    p = base, p.tp = 1, p.ep = 2, p.shard = 1, p.shard_group = 2;
    refused(f, w, &p,
            "--zero-group: not together with expert ranks; leave out --ep or --zero-group");
    p.ep = 1, taken(f, w, &p);
    p = base, p.ep = 8, p.tp = 1, taken(f, w, &p);
    f->system.nodes = 64, p.nodes = 3, p.ep = 3;
    refused(f, w, &p, "--ep 3 does not divide the 8 experts of gpt; nearest is 2");
    p.nodes = 4, p.ep = 16;
    refused(f, w, &p, "--ep 16: gpt has only 8 experts (scaling limit); at most 8");
    dl_arena_free(&f->arena);
}

static void pipelines(void **state) {
    (void)state;
    struct dl_fake f;
    fake_make(&f); /* 4 layers */
    const struct dl_workload *w = &f.workload;
    struct dl_plan p = f.plan;
    p.strategy = dl_strategy_find("pipeline"), p.nodes = 1, p.pp = 4;
    taken(&f, w, &p);
    p.assume = DL_ASSUME_PARADL;
    refused(&f, w, &p, "--assume paradl: for strategies data, filter, channel and their products");
    p.assume = 0, p.sequence_parallel = true;
    refused(&f, w, &p, "--sequence-parallel: goes with tensor parallelism");
    p.sequence_parallel = false, p.schedule = DL_INTERLEAVED;
    refused(&f, w, &p,
            "--pp 4: fake has 4 layers for 8 parts of the pipeline; nearest is --pp 2 (scaling "
            "limit)");
    p.pp = p.devices_per_node = 2, p.batch_per_device_samples = 9, taken(&f, w, &p);
    p.micro_batch_samples = 6;
    refused(&f, w, &p,
            "--schedule interleaved: 3 micro-batches are no multiple of --pp 2; nearest is "
            "--micro-batch 4.5");
    p.schedule = DL_1F1B, taken(&f, w, &p);
    p.micro_batch_samples = 7;
    refused(&f, w, &p, "--micro-batch 7 does not divide the 18 samples of a pipeline");
    p.micro_batch_samples = 18, taken(&f, w, &p);
    p.micro_batch_samples = 19;
    refused(&f, w, &p,
            "--micro-batch 19: a pipeline has 18 samples an iteration; nearest is --micro-batch "
            "18");
    dl_arena_free(&f.arena);
}

/* One convolution of 3 x 3 over 8 x 8 positions: 6 filters of 4 channels.
 * Kept whole: a list of refusals. */
static void splits(void **state) {
    (void)state;
    struct dl_fake f;
    fake_make(&f);
    int from[] = {-1};
    struct dl_parameter weight = {.name = "weight", .elements = 6 * 4 * 9};
    struct dl_layer conv = {.name = "c1",
                            .kind = &dl_layer_conv,
                            .inputs = from,
                            .input_count = 1,
                            .in = {.dims = 2, .channels = 4, .size = {1, 8, 8}},
                            .out = {.dims = 2, .channels = 6, .size = {1, 8, 8}},
                            .kernel = {1, 3, 3},
                            .stride = {1, 1, 1},
                            .groups = 1,
                            .parameters = &weight,
                            .parameter_count = 1,
                            .tied_to = -1};
    struct dl_workload net = f.workload;
    net.layers = &conv, net.layer_count = 1, net.name = "net", net.input = conv.in;
    static const struct {
        const char *strategy, *option, *things;
        double most;
    } cases[] = {{"filter", "tp", "filters", 6}, {"channel", "tp", "input channels", 4}};
    for (int i = 0; i < 2; i++) {
        struct dl_plan p = f.plan;
        p.strategy = dl_strategy_find(cases[i].strategy);
        p.tp = (int64_t)cases[i].most;
        if (p.strategy->check(&f.system, &net, &f.framework, &p, &err) != DL_OK)
            fail_msg("%s", err.message);
        p.tp++;
        assert_int_equal(p.strategy->check(&f.system, &net, &f.framework, &p, &err), DL_ERR_USAGE);
        assert_string_equal(
            err.message,
            dl_arena_printf(&f.arena,
                            "--tp %d: layer c1 of net has %.0f %s to share; nearest is --tp %.0f "
                            "(scaling limit)",
                            (int)p.tp, cases[i].most, cases[i].things, cases[i].most));
        assert_int_equal(p.strategy->check(&f.system, &f.workload, &f.framework, &p, &err),
                         DL_ERR_USAGE);
        assert_string_equal(
            err.message,
            dl_arena_printf(&f.arena,
                            "--tp: strategy %s splits convolutions, and fake has none that can be "
                            "split; take 'tensor' or 'pipeline'",
                            cases[i].strategy));
        p.micro_batch_samples = 1;
        assert_int_equal(p.strategy->check(&f.system, &net, &f.framework, &p, &err), DL_ERR_USAGE);
        assert_string_equal(err.message,
                            dl_arena_printf(&f.arena,
                                            "--micro-batch: strategy %s takes its whole batch at "
                                            "once",
                                            cases[i].strategy));
        p.sequence_parallel = true;
        assert_int_equal(p.strategy->check(&f.system, &net, &f.framework, &p, &err), DL_ERR_USAGE);
        assert_string_equal(err.message, "--sequence-parallel: goes with tensor parallelism");
    }
    struct dl_plan p = f.plan;
    p.strategy = dl_strategy_find("mlsl-hybrid"), p.tp = 2;
    assert_int_equal(p.strategy->check(&f.system, &net, &f.framework, &p, &err), DL_ERR_USAGE);
    assert_string_equal(err.message,
                        "strategy mlsl-hybrid is for CPU nodes; fake has GPUs: take data+filter");
    /* 8 x 8 positions: 11 parts are no grid, 8 x 1 and 4 x 2 are */
    p.strategy = dl_strategy_find("spatial"), p.sp = 8;
    if (p.strategy->check(&f.system, &net, &f.framework, &p, &err) != DL_OK)
        fail_msg("%s", err.message);
    p.sp = 11;
    assert_int_equal(p.strategy->check(&f.system, &net, &f.framework, &p, &err), DL_ERR_USAGE);
    assert_string_equal(err.message, "--spatial 11: no grid of so many parts fits all layers of "
                                     "net; nearest is --spatial 10 (scaling limit)");
    dl_arena_free(&f.arena);
}

static void strategies(void **state) {
    (void)state;
    enum { DP = DL_AXIS_DP, TP = DL_AXIS_TP, PP = DL_AXIS_PP, SP = DL_AXIS_SP, EP = DL_AXIS_EP };
    static const struct {
        const char *name;
        enum dl_split_way way;
        int shard;
        unsigned axes, inside;
    } rows[] = {{"data", DL_WAY_DATA, 0, DP, 0},
                {"spatial", DL_WAY_SPATIAL, 0, SP, 0},
                {"filter", DL_WAY_FILTER, 0, TP, 0},
                {"channel", DL_WAY_CHANNEL, 0, TP, 0},
                {"data+filter", DL_WAY_FILTER, 0, DP | TP, TP},
                {"data+channel", DL_WAY_CHANNEL, 0, DP | TP, TP},
                {"data+spatial", DL_WAY_SPATIAL, 0, DP | SP, SP},
                {"mlsl-hybrid", DL_WAY_MLSL, 0, DP | TP, TP},
                {"zero1", DL_WAY_TRANSFORMER, 1, DP, 0},
                {"zero2", DL_WAY_TRANSFORMER, 2, DP, 0},
                {"zero3", DL_WAY_TRANSFORMER, 3, DP, 0},
                {"tensor", DL_WAY_TRANSFORMER, 0, TP, 0},
                {"data+tensor", DL_WAY_TRANSFORMER, 0, DP | TP | SP, TP},
                {"3d", DL_WAY_TRANSFORMER, 0, DP | TP | PP | SP, TP},
                {"expert", DL_WAY_TRANSFORMER, 0, DP | TP | PP | SP | EP, EP}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct dl_strategy *s = dl_strategy_find(rows[i].name);
        if (s == NULL) fail_msg("no strategy %s", rows[i].name);
        assert_string_equal(s->name, rows[i].name);
        assert_int_equal(s->way, rows[i].way);
        assert_int_equal(s->shard, rows[i].shard);
        assert_int_equal(s->axes, rows[i].axes);
        assert_int_equal(s->inside, rows[i].inside);
        assert_true(s->check != NULL && s->predict != NULL && strlen(s->summary) > 10);
    }
    assert_null(dl_strategy_find("")), assert_null(dl_strategy_find("Data"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(devices_and_batches),
        cmocka_unit_test(axes),
        cmocka_unit_test(frameworks),
        cmocka_unit_test(transformers),
        cmocka_unit_test(experts),
        cmocka_unit_test(pipelines),
        cmocka_unit_test(splits),
        cmocka_unit_test(strategies),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
