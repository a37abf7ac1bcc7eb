/* probe_cpu.c - dlmodel-probe-cpu: the table of its probes. */
#include "calibrate/probes/cpu/probe_cpu.h"

#include <math.h>
#include <sys/resource.h>

static const struct dl_probe *const probes[] = {
    &dl_probe_gemm,  &dl_probe_matmul, &dl_probe_conv,       &dl_probe_stream,
    &dl_probe_write, &dl_probe_read,   &dl_probe_concurrent, NULL,
};

enum dl_code dl_verify_product(const float *a, const float *b, const float *c, const long sizes[5],
                               struct dl_err *err) {
    const size_t m = (size_t)sizes[0], n = (size_t)sizes[1], k = (size_t)sizes[2];
    uint64_t random = 12345;
    for (int t = 0; t < 16; t++) {
        const size_t i = dl_random_next(&random) % m, j = dl_random_next(&random) % n;
        double sum = 0;
        for (size_t l = 0; l < k; l++)
            sum += (double)a[sizes[3] != 0 ? l + i * k : i + l * m] *
                   (double)b[sizes[4] != 0 ? j + l * n : l + j * k];
        const double got = (double)c[i + j * m];
        /* rounding grows as sqrt(k) for random operands */
        if (!(fabs(got - sum) <= 1e-5 * (10 + sqrt((double)k))))
            return dl_fail(err, DL_ERR_BACKEND, "wrong result at (%zu, %zu): %g, expected %g", i, j,
                           got, sum);
    }
    return DL_OK;
}

static void facts(void) {
    dl_openblas_facts();
    dl_onednn_facts();
    dl_print_fact("priority", getpriority(PRIO_PROCESS, 0) < 0 ? "raised" : "normal");
}

int main(int argc, char **argv) {
    const int busy = dl_probe_cpu_busy(argc, argv);
    if (busy >= 0) return busy;
    dl_probe_cpu_cores(argc, argv);
    return dl_probe_main(argc, argv, probes, false, facts);
}
