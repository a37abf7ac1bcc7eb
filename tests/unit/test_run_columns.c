/* Columns of a table of runs that are plan options: what a cell does to the plan, what a bad cell
 * and a missing column say, and that the template is a table that the reader takes. */
#include "model/engine/strategies/strategy.h"
#include "predict/compare/compare_runs.h"
#include "tests/check.h"

static struct dl_data data_of(struct dl_arena *arena) {
    const char *root = getenv("DLMODEL_ROOT");
    const char **directories = dl_arena_alloc(arena, 1, sizeof *directories);
    directories[0] = dl_arena_printf(arena, "%s/data", root != NULL ? root : ".");
    return (struct dl_data){.directories = directories, .directory_count = 1};
}

static struct dl_data data;

static enum dl_code read_text(const char *text, struct dl_arena *arena, struct dl_run_rows *out,
                              struct dl_err *err) {
    struct dl_csv *csv = dl_arena_alloc(arena, 1, sizeof *csv);
    data = data_of(arena);
    DL_TRY(dl_csv_parse("runs.csv", text, strlen(text), arena, csv, err));
    return dl_run_rows_read(&data, csv, arena, out, err);
}

#define HEAD "id,source,system,framework,workload,nodes,devices_per_node,global_batch,metric,value"
#define RUN "a,s,dgx-a100-80,megatron,gpt2,2,8,64,iteration,1"

static void every_option_is_a_column(void **state) {
    struct dl_arena arena = {0};
    struct dl_run_rows r;
    struct dl_err err = {0};
    const char text[] = HEAD
        ",strategy,dp,tp,pp,cp,micro_batch,recompute,sequence_parallel,virtual_stages,schedule,"
        "zero,attention,mapping,compiler,library,data,servers\n" RUN
        ",3d,2,4,2,1,2,full,1,3,interleaved,1,flash,pipeline-inside,xla,nccl,real,4\n" RUN
        ",,,,,,,,0,,,,,,,,,\n" RUN ",zero3,16,1,1,1,,none,0,,,3,,,inductor,,synthetic,\n";
    if (read_text(text, &arena, &r, &err) != DL_OK) fail_msg("%s", err.message);
    const struct dl_plan *p = &r.rows[0].plan;
    assert_null(r.rows[0].why);
    assert_int_equal(p->dp, 2);
    assert_int_equal(p->tp, 4);
    assert_int_equal(p->pp, 2);
    assert_int_equal(p->sp, 1);
    assert_int_equal(p->recompute, DL_RECOMPUTE_FULL);
    assert_false(p->recompute_open);
    assert_true(p->sequence_parallel);
    assert_int_equal(p->virtual_stages, 3);
    assert_int_equal(p->schedule, DL_INTERLEAVED);
    assert_int_equal(p->shard, 1);
    assert_int_equal(p->attention, DL_ATTENTION_FLASH);
    assert_int_equal(p->mapping, DL_MAP_PIPELINE_INSIDE);
    assert_int_equal(p->compiler, DL_COMPILER_XLA);
    assert_string_equal(p->library, "nccl");
    assert_int_equal(p->parameter_servers.count, 4);
    assert_false(p->input.synthetic);
    check_close(p->micro_batch_samples, 2, 0);
    p = &r.rows[1].plan; /* empty: as if there were no such column */
    assert_true(p->recompute_open);
    assert_false(p->sequence_parallel);
    assert_int_equal(p->dp, 0);
    assert_int_equal(p->compiler, DL_COMPILER_OPEN);
    assert_int_equal(p->attention, DL_ATTENTION_OPEN);
    assert_null(p->library);
    assert_true(p->input.synthetic);
    p = &r.rows[2].plan; /* the strategy shards already */
    assert_int_equal(p->shard, 0);
    assert_int_equal(p->compiler, DL_COMPILER_INDUCTOR);
    dl_arena_free(&arena);
}

/* A limit on the power is the row's own: others keep the system's file. F-POWER-CAP */
static void a_power_limit_is_the_rows_own(void **state) {
    struct dl_arena arena = {0};
    struct dl_run_rows r;
    struct dl_err err = {0};
    const char text[] = HEAD ",power_limit_w\n" RUN ",300\n" RUN ",\n" RUN ",300\n";
    if (read_text(text, &arena, &r, &err) != DL_OK) fail_msg("%s", err.message);
    check_close(r.rows[0].system->device->power.power_limit_w, 300, 0);
    assert_string_equal(r.rows[0].system->name, r.rows[1].system->name);
    assert_true(isnan(r.rows[1].system->device->power.power_limit_w));
    assert_ptr_equal(r.rows[2].system, r.rows[0].system);
    assert_int_equal(read_text(HEAD ",power_limit_w\n" RUN ",-1\n", &arena, &r, &err),
                     DL_ERR_INPUT);
    assert_string_equal(err.key, "power_limit_w");
    dl_arena_free(&arena);
}

/* Megatron-Core's tables count the ranks of experts among those of data. */
/* The release and the rings of NCCL go into the row's copy of the system; a power limit stays. */
static void nccl_is_the_rows_own(void **state) {
    struct dl_arena arena = {0};
    struct dl_run_rows r;
    struct dl_err err = {0};
    const char text[] = HEAD ",nccl_version,nccl_rings,power_limit_w\n" RUN ",2.3.7,8,\n" RUN
                             ",,,\n" RUN ",2.3.7,,300\n" RUN ",,4,\n" RUN ",1.3.4,,\n";
    if (read_text(text, &arena, &r, &err) != DL_OK) fail_msg("%s", err.message);
    const struct dl_system *file = r.rows[1].system;
    assert_string_equal(r.rows[0].system->software.nccl_version, "2.3.7");
    assert_int_equal(r.rows[0].system->software.nccl_rings, 8);
    assert_true(r.rows[0].system->nccl.ready && r.rows[0].system->nccl.number == 307);
    assert_string_not_equal(file->software.nccl_version, "2.3.7");
    assert_int_equal(file->software.nccl_rings, DL_ABSENT);
    assert_true(isnan(r.rows[0].system->device->power.power_limit_w));
    check_close(r.rows[2].system->device->power.power_limit_w, 300, 0);
    assert_string_equal(r.rows[2].system->software.nccl_version, "2.3.7");
    assert_int_equal(r.rows[2].system->software.nccl_rings, DL_ABSENT);
    assert_string_equal(r.rows[3].system->software.nccl_version, file->software.nccl_version);
    assert_int_equal(r.rows[3].system->software.nccl_rings, 4);
    check_contains(r.rows[4].why, "nccl_version \"1.3.4\" is no release of NCCL 2");
    assert_int_equal(read_text(HEAD ",nccl_rings\n" RUN ",0\n", &arena, &r, &err), DL_ERR_INPUT);
    assert_string_equal(err.key, "nccl_rings");
    dl_arena_free(&arena);
}

static void experts_are_among_the_data_ranks(void **state) {
    struct dl_arena arena = {0};
    struct dl_run_rows r;
    struct dl_err err = {0};
    const char text[] = HEAD ",strategy,dp,tp,pp,ep,expert_imbalance\n" RUN ",3d,8,2,1,4,3.5\n" RUN
                             ",3d,2,2,1,4,\n" RUN ",tensor,8,2,1,,\n";
    if (read_text(text, &arena, &r, &err) != DL_OK) fail_msg("%s", err.message);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(r.rows[i].plan.dp, i == 0 ? 8 : 2); /* with the experts, and without */
        assert_int_equal(r.rows[i].plan.ep, 4);
        assert_string_equal(r.rows[i].plan.strategy->name, "expert");
    }
    check_close(r.rows[0].plan.experts.imbalance_ratio, 3.5, 0);
    check_close(r.rows[1].plan.experts.imbalance_ratio, 0, 0);
    assert_string_equal(r.rows[2].plan.strategy->name, "data+tensor");
    dl_arena_free(&arena);
}

static void bad_cells_have_a_place(void **state) {
    static const struct {
        const char *column, *cell, *says;
    } bad[] = {
        {"tp", "two", "number"},
        {"tp", "0", "number in [1"},
        {"zero", "4", "[0, 3]"},
        {"recompute", "some", "none, selective, full"},
        {"sequence_parallel", "yes", "1 or 0"},
        {"blocking_launches", "on", "1 or 0"},
        {"data", "imaginary", "synthetic or real"},
        {"compiler", "gcc", "xla"},
        {"virtual_stages", "1.5", "whole number"},
        {"expert_imbalance", "0.5", "number in [1"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct dl_arena arena = {0};
        struct dl_run_rows r;
        struct dl_err err = {0};
        const char *text =
            dl_arena_printf(&arena, HEAD ",%s\n" RUN ",%s\n", bad[i].column, bad[i].cell);
        assert_int_equal(read_text(text, &arena, &r, &err), DL_ERR_INPUT);
        if (strstr(err.message, bad[i].says) == NULL) fail_msg("%s", err.message);
        assert_int_equal(err.line, 2);
        assert_string_equal(err.key, bad[i].column);
        dl_arena_free(&arena);
    }
}

static void all_missing_columns_are_named(void **state) {
    struct dl_arena arena = {0};
    struct dl_run_rows r;
    struct dl_err err = {0};
    assert_int_equal(
        read_text("id,source,workload,nodes,metric\na,s,gpt2,1,iteration\n", &arena, &r, &err),
        DL_ERR_INPUT);
    static const char *const missing[] = {"system", "framework", "devices_per_node", "value"};
    for (int i = 0; i < 4; i++) {
        if (strstr(err.message, missing[i]) == NULL) fail_msg("%s", err.message);
    }
    dl_arena_free(&arena);
}

static void the_template_is_a_table(void **state) {
    struct dl_arena arena = {0};
    struct dl_run_rows r;
    struct dl_err err = {0};
    if (read_text(dl_run_template(&arena), &arena, &r, &err) != DL_OK) fail_msg("%s", err.message);
    assert_int_equal(r.csv->row_count, 1);
    if (r.rows[0].why != NULL) fail_msg("%s", r.rows[0].why);
    struct dl_run_plan_column column;
    for (int i = 0; dl_run_plan_column(i, &column); i++)
        assert_true(dl_csv_column(r.csv, column.name) >= 0);
    dl_arena_free(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_option_is_a_column),
        cmocka_unit_test(a_power_limit_is_the_rows_own),
        cmocka_unit_test(nccl_is_the_rows_own),
        cmocka_unit_test(experts_are_among_the_data_ranks),
        cmocka_unit_test(bad_cells_have_a_place),
        cmocka_unit_test(all_missing_columns_are_named),
        cmocka_unit_test(the_template_is_a_table),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
