/* probe_cpu.c - dlmodel-probe-cpu: the table of its probes. */
#include "calibrate/probes/cpu/probe_cpu.h"

#include <sys/resource.h>

static const struct dl_probe *const probes[] = {
    &dl_probe_gemm,  &dl_probe_matmul, &dl_probe_conv,       &dl_probe_stream,
    &dl_probe_write, &dl_probe_read,   &dl_probe_concurrent, NULL,
};

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
