/* probe_cpu.h - the probes of dlmodel-probe-cpu. One file each. All cores that the process may use
 * work together: they are one device. */
#ifndef DL_CALIBRATE_PROBES_CPU_PROBE_CPU_H
#define DL_CALIBRATE_PROBES_CPU_PROBE_CPU_H

#include "calibrate/probes/common/probe_common.h"

extern const struct dl_probe dl_probe_gemm, dl_probe_matmul, dl_probe_conv, dl_probe_stream,
    dl_probe_write, dl_probe_read, dl_probe_beside;

/* Give each worker thread that there is now a core of its own, round and round. */
void dl_spread_threads(void);

/* "--cores N" as first words: starts the program anew on N cores, with the words behind; returns
 * without them. */
void dl_probe_cpu_cores(int argc, char **argv);
/* "--busy ...": works beside another of this program; the exit status. -1: not asked for. */
int dl_probe_cpu_busy(int argc, char **argv);

/* Facts of the libraries; nothing without them. */
void dl_openblas_facts(void);
void dl_onednn_facts(void);

#endif
