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

/* A limit on the power is the row's own: others keep the system's file. F-POWER-CAP */
static void a_power_limit_is_the_rows_own(void **state) {
    struct dl_run_rows r;
    struct dl_err err = {0};
    const char text[] = HEAD ",power_limit_w\n" RUN ",300\n" RUN ",\n" RUN ",300\n";
    if (read_text(text, &test_arena, &r, &err) != DL_OK) fail_msg("%s", err.message);
    check_close(r.rows[0].system->device->power.power_limit_w, 300, 0);
    assert_string_equal(r.rows[0].system->name, r.rows[1].system->name);
    assert_true(isnan(r.rows[1].system->device->power.power_limit_w));
    assert_ptr_equal(r.rows[2].system, r.rows[0].system);
    assert_int_equal(read_text(HEAD ",power_limit_w\n" RUN ",-1\n", &test_arena, &r, &err),
                     DL_ERR_INPUT);
    assert_string_equal(err.key, "power_limit_w");
}

/* Megatron-Core's tables count the ranks of experts among those of data. */
/* The release and the rings of NCCL go into the row's copy of the system; a power limit stays. */
static void nccl_is_the_rows_own(void **state) {
    struct dl_run_rows r;
    struct dl_err err = {0};
    const char text[] = HEAD ",nccl_version,nccl_rings,power_limit_w\n" RUN ",2.3.7,8,\n" RUN
                             ",,,\n" RUN ",2.3.7,,300\n" RUN ",,4,\n" RUN ",1.3.4,,\n";
    if (read_text(text, &test_arena, &r, &err) != DL_OK) fail_msg("%s", err.message);
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
    assert_int_equal(read_text(HEAD ",nccl_rings\n" RUN ",0\n", &test_arena, &r, &err),
                     DL_ERR_INPUT);
    assert_string_equal(err.key, "nccl_rings");
}

static void experts_are_among_the_data_ranks(void **state) {
    struct dl_run_rows r;
    struct dl_err err = {0};
    const char text[] = HEAD ",strategy,dp,tp,pp,ep,expert_imbalance\n" RUN ",3d,8,2,1,4,3.5\n" RUN
                             ",3d,2,2,1,4,\n" RUN ",tensor,8,2,1,,\n";
    if (read_text(text, &test_arena, &r, &err) != DL_OK) fail_msg("%s", err.message);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(r.rows[i].plan.dp, i == 0 ? 8 : 2); /* with the experts, and without */
        assert_int_equal(r.rows[i].plan.ep, 4);
        assert_string_equal(r.rows[i].plan.strategy->name, "expert");
    }
    check_close(r.rows[0].plan.experts.imbalance_ratio, 3.5, 0);
    check_close(r.rows[1].plan.experts.imbalance_ratio, 0, 0);
    assert_string_equal(r.rows[2].plan.strategy->name, "data+tensor");
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
        struct dl_run_rows r;
        struct dl_err err = {0};
        const char *text =
            dl_arena_printf(&test_arena, HEAD ",%s\n" RUN ",%s\n", bad[i].column, bad[i].cell);
        assert_int_equal(read_text(text, &test_arena, &r, &err), DL_ERR_INPUT);
        if (strstr(err.message, bad[i].says) == NULL) fail_msg("%s", err.message);
        assert_int_equal(err.line, 2);
        assert_string_equal(err.key, bad[i].column);
    }
}

static void the_template_is_a_table(void **state) {
    struct dl_run_rows r;
    struct dl_err err = {0};
    if (read_text(dl_run_template(&test_arena), &test_arena, &r, &err) != DL_OK)
        fail_msg("%s", err.message);
    assert_int_equal(r.csv->row_count, 1);
    if (r.rows[0].why != NULL) fail_msg("%s", r.rows[0].why);
    struct dl_run_plan_column column;
    for (int i = 0; dl_run_plan_column(i, &column); i++)
        assert_true(dl_csv_column(r.csv, column.name) >= 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_power_limit_is_the_rows_own),
        cmocka_unit_test(nccl_is_the_rows_own),
        cmocka_unit_test(experts_are_among_the_data_ranks),
        cmocka_unit_test(bad_cells_have_a_place),
        cmocka_unit_test(the_template_is_a_table),
    };
    return cmocka_run_group_tests(tests, NULL, check_free);
}
