/* Calibration across nodes, without nodes: hosts of an allocation, command lines of launchers, slow
 * nodes, drift, and what changed between two profiles. */
#define _DEFAULT_SOURCE /* setenv */
#include "calibrate/report/cal_compare.h"
#include "calibrate/run/cal_nodes.h"
#include "model/core/file.h"
#include "model/statistics/stats.h"
#include "tests/check.h"
#include "tests/fake.h"

static const char *joined(const char **words, size_t count) {
    const char *text = "";
    assert_non_null(words);
    for (size_t i = 0; i < count; i++)
        text = dl_arena_printf(&test_arena, "%s%s%s", text, i > 0 ? " " : "", words[i]);
    return text;
}

static void words_of_launchers(void **state) {
    const char *hosts[] = {"a", "b", "c"};
    struct dl_cal_tools tools = {.mpirun = "/bin/mpirun", .srun = "/bin/srun", .open_mpi = true};
    struct dl_cal_launch launch = {.tools = &tools, .hosts = hosts, .host_count = 3};
    size_t count;
    const char **words = dl_cal_launch_words(&launch, hosts, 3, 1, &test_arena, &count);
    assert_string_equal(
        joined(words, count),
        "/bin/mpirun --allow-run-as-root --host a,b,c --map-by ppr:1:node --bind-to none -np 3");
    tools.open_mpi = false;
    words = dl_cal_launch_words(&launch, hosts + 1, 2, 1, &test_arena, &count);
    assert_string_equal(joined(words, count), "/bin/mpirun -hosts b,c -ppn 1 -n 2");
    launch.slurm = launch.pmix = true;
    words = dl_cal_launch_words(&launch, hosts, 2, 1, &test_arena, &count);
    assert_string_equal(
        joined(words, count),
        "/bin/srun --mpi=pmix --nodes 2 --ntasks 2 --ntasks-per-node 1 --nodelist a,b "
        "--kill-on-bad-exit=1");
    launch.launcher = "/opt/run -H {hosts}  -n={ranks} 'two words' --plain";
    words = dl_cal_launch_words(&launch, hosts, 3, 1, &test_arena, &count);
    assert_string_equal(joined(words, count), "/opt/run -H a,b,c -n=3 two words --plain");
    assert_int_equal(count, 6); /* the quoted one is one word */
    assert_true(dl_cal_launch_chooses(&launch));
    launch.launcher = "/opt/run -n {ranks}";
    assert_false(dl_cal_launch_chooses(&launch)); /* it has no {hosts} to exclude a node */
}

/* Inside an allocation, the ranks of this node start as if there were none. */
static void local_ranks_stay_on_this_node(void **state) {
    const struct dl_cal_tools tools = {.mpirun = "/bin/mpirun"};
    size_t count;
    unsetenv("PBS_JOBID"), unsetenv("PBS_NODEFILE"), unsetenv("SLURM_JOBID"),
        unsetenv("SLURM_NODELIST");
    unsetenv("SLURM_JOB_NODELIST"), unsetenv("SLURM_JOB_ID");
    const char **words = dl_cal_local_words(&tools, 2, false, 1, &test_arena, &count);
    assert_string_equal(joined(words, count), "/bin/mpirun -np 2");
    setenv("SLURM_JOB_ID", "7", 1);
    words = dl_cal_local_words(&tools, 2, false, 1, &test_arena, &count);
    unsetenv("SLURM_JOB_ID");
    check_contains(joined(words, count), "/env -u SLURM_JOB_ID -u SLURM_JOBID ");
    check_contains(joined(words, count), " /bin/mpirun -np 2");
}

static void hosts_of_a_file(void **state) {
    const char text[] = "# nodes of this week\nn1 slots=2\n\n n2:4\nn1 slots=2\nn3 # the new one\n";
    char directory[128];
    struct dl_err err = {0};
    struct dl_cal_tools tools = {.mpirun = "/bin/mpirun", .open_mpi = true};
    struct dl_cal_launch launch;
    assert_true(check_directory(directory, sizeof directory));
    const char *path = dl_arena_printf(&test_arena, "%s/hosts", directory);
    assert_int_equal(dl_file_write(path, text, sizeof text - 1, &err), DL_OK);
    struct dl_cal_choice choice = {.nodes = 3, .hostfile = path};
    assert_int_equal(dl_cal_launch_find(&choice, &tools, &test_arena, &launch, &err), DL_OK);
    assert_int_equal(launch.host_count, 3);
    assert_string_equal(launch.hosts[0], "n1");
    assert_string_equal(launch.hosts[1], "n2");
    assert_string_equal(launch.hosts[2], "n3");
    choice.nodes = 4;
    assert_int_equal(dl_cal_launch_find(&choice, &tools, &test_arena, &launch, &err), DL_ERR_USAGE);
    check_contains(err.message, "only 3 hosts");
    choice.hostfile = NULL;
    unsetenv("SLURM_JOB_NODELIST");
    unsetenv("PBS_NODEFILE");
    assert_int_equal(dl_cal_launch_find(&choice, &tools, &test_arena, &launch, &err), DL_ERR_USAGE);
    check_contains(err.message, "--hostfile");
    choice.launcher = "run {ranks}"; /* knows its hosts */
    assert_int_equal(dl_cal_launch_find(&choice, &tools, &test_arena, &launch, &err), DL_OK);
    assert_null(launch.hosts);
    assert_int_equal(launch.host_count, 4);
}

/* Node 2 takes twice as long as the others with every partner; node 0 is fast with 1 alone, and
 * therefore not slow. */
static void a_node_that_is_slow_with_every_partner(void **state) {
    const struct dl_cal_pair pairs[] = {{1e6, 8e-3, 0, 1},  {1e6, 16e-3, 0, 2},  {1e6, 12e-3, 0, 3},
                                        {1e6, 16e-3, 1, 2}, {1e6, 8.1e-3, 1, 3}, {1e6, 16e-3, 2, 3},
                                        {8, 10e-6, 0, 1},   {8, 11e-6, 0, 2},    {8, 20e-6, 2, 3}};
    double slow[4];
    assert_int_equal(dl_cal_slow_nodes(pairs, 9, 4, slow, &test_arena), 1);
    check_close(slow[2], 16e-3 / 8.05e-3, 1e-12); /* the median of 8, 8, 16 and 8.1 ms is 8.05 */
    assert_true(slow[0] == 0 && slow[1] == 0 && slow[3] == 0);
    /* of two, nobody knows which */
    assert_int_equal(dl_cal_slow_nodes(pairs, 1, 2, slow, &test_arena), 0);
    assert_int_equal(dl_cal_slow_nodes(pairs, 0, 4, slow, &test_arena), 0);
}

/* Twelve samples: the second six are 10 % longer than the first, or not. */
static void drift_of_samples(void **state) {
    double x[12], scratch[12];
    for (int i = 0; i < 12; i++) x[i] = 1.0 + 0.001 * (i % 3) + (i < 6 ? 0 : 0.1);
    check_close(dl_drift_frac(x, 12, scratch), 1.101 / 1.001 - 1, 1e-12);
    for (int i = 0; i < 12; i++) x[i] = 1.0 + 0.1 * (i % 3);
    assert_true(isnan(dl_drift_frac(x, 12, scratch)));
    assert_true(isnan(dl_drift_frac(x, 11, scratch))); /* too few to say */
}

static void what_changed_between_two_profiles(void **state) {
    struct dl_fake f;
    int changed = 0;
    fake_make(&f);
    struct dl_raw_sample old_samples[] = {{.probe = "gemm",
                                           .shape = "m=1",
                                           .pass = "fwd",
                                           .median_s = 1e-3,
                                           .low_s = 0.99e-3,
                                           .high_s = 1.01e-3},
                                          {.probe = "stream",
                                           .shape = "b=1",
                                           .pass = "copy",
                                           .median_s = 2e-3,
                                           .low_s = 1.5e-3,
                                           .high_s = 2.5e-3}};
    struct dl_raw_sample new_samples[] = {old_samples[0], old_samples[1]};
    new_samples[0].median_s = 1.2e-3, new_samples[0].low_s = 1.19e-3,
    new_samples[0].high_s = 1.21e-3;
    new_samples[1].median_s = 2.2e-3; /* within the interval of before */
    struct dl_map_entry old_facts[] = {
        {"kernel", "6.1", NAN}, {"openblas", "0.3.21", NAN}, {"load_before", "0.1", NAN}};
    struct dl_map_entry new_facts[] = {
        {"kernel", "6.5", NAN}, {"openblas", "0.3.21", NAN}, {"load_before", "9.9", NAN}};
    struct dl_system before = f.system, now = f.system;
    before.calibration.samples = old_samples, now.calibration.samples = new_samples;
    before.calibration.sample_count = now.calibration.sample_count = 2;
    before.calibration.measurement = old_facts, now.calibration.measurement = new_facts;
    before.calibration.measurement_count = now.calibration.measurement_count = 3;
    const char *text = dl_cal_compare(&before, &before, DL_FORMAT_TEXT, &test_arena, &changed);
    check_contains(text, "0 of these changed");
    assert_int_equal(changed, 0);
    now.inter.bandwidth_bytes_per_s *= 0.9;
    now.inter.latency_s *= 1.01;
    text = dl_cal_compare(&before, &now, DL_FORMAT_CSV, &test_arena, &changed);
    /* kernel, bandwidth, GEMMs; the load is no property of the machine */
    assert_int_equal(changed, 3);
    check_contains(text, "kernel,6.1,6.5");
    check_contains(text, "links.inter bandwidth");
    check_contains(text, "time of gemm fwd");
    assert_null(strstr(text, "load_before"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_of_launchers),
        cmocka_unit_test(local_ranks_stay_on_this_node),
        cmocka_unit_test(hosts_of_a_file),
        cmocka_unit_test(a_node_that_is_slow_with_every_partner),
        cmocka_unit_test(drift_of_samples),
        cmocka_unit_test(what_changed_between_two_profiles),
    };
    return cmocka_run_group_tests(tests, NULL, check_free);
}
