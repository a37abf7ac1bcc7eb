/* probe_cpu.h - the probes of dlmodel-probe-cpu. One file each. All cores of the node work together: they are one device. */
#ifndef DL_CALIBRATE_PROBE_CPU_H
#define DL_CALIBRATE_PROBE_CPU_H

#include "calibrate/probe_common.h"

extern const struct dl_probe dl_probe_gemm, dl_probe_matmul, dl_probe_conv, dl_probe_stream, dl_probe_write, dl_probe_read;

/* Give each worker thread that there is now a core of its own, round and round. */
void dl_spread_threads(void);

/* Facts of the libraries; nothing without them. */
void dl_openblas_facts(void);
void dl_onednn_facts(void);

#endif
