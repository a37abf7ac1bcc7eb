/* probe_cpu.h - the probes of dlmodel-probe-cpu, one file each. All cores that the process may use
 * are one device. */
#ifndef DL_CALIBRATE_PROBES_CPU_PROBE_CPU_H
#define DL_CALIBRATE_PROBES_CPU_PROBE_CPU_H

#include "calibrate/probes/common/probe_common.h"

extern const struct dl_probe dl_probe_gemm, dl_probe_matmul, dl_probe_conv, dl_probe_stream,
    dl_probe_write, dl_probe_read, dl_probe_concurrent;

/* Binds each existing worker thread to a core, round-robin. */
void dl_spread_threads(void);

/* With "--cores N" as first arguments: binds to N cores and executes the program again with the
 * remaining arguments. Returns if they are absent. */
void dl_probe_cpu_cores(int argc, char **argv);
/* With "--busy ...": computes concurrently with a measuring process; returns the exit status. -1:
 * not given. */
int dl_probe_cpu_busy(int argc, char **argv);

/* Compares 16 random elements of C = A B, stored by columns, with sums in double precision. sizes:
 * m, n, k, A and B transposed. DL_ERR_BACKEND: they differ by more than rounding. */
enum dl_code dl_verify_product(const float *a, const float *b, const float *c, const long sizes[5],
                               struct dl_err *err);

/* Print facts of the libraries; nothing without them. */
void dl_openblas_facts(void);
void dl_onednn_facts(void);

#endif
