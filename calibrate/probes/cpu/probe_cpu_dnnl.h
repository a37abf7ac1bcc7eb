/* probe_cpu_dnnl.h - shared by the two oneDNN probes. C API 2.x. */
#ifndef DL_CALIBRATE_PROBES_CPU_PROBE_CPU_DNNL_H
#define DL_CALIBRATE_PROBES_CPU_PROBE_CPU_DNNL_H

#include <oneapi/dnnl/dnnl.h>

#include "calibrate/probes/cpu/probe_cpu.h"

enum { DL_DNNL_ARGS = 3 };

/* One primitive with its memory objects. plain[i]: the same tensor in plain (row-major) layout. */
struct dl_dnnl_op {
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    dnnl_primitive_desc_t hint, description;
    dnnl_primitive_t primitive;
    dnnl_exec_arg_t args[DL_DNNL_ARGS];
    float *plain[DL_DNNL_ARGS];
    size_t counts[DL_DNNL_ARGS];
    dnnl_memory_desc_t plain_descriptions[DL_DNNL_ARGS];
    char implementation[96];
};

/* DL_ERR_BACKEND naming the call. */
enum dl_code dl_dnnl_check(dnnl_status_t status, const char *call, struct dl_err *err);

enum dl_code dl_dnnl_start(struct dl_dnnl_op *op, struct dl_err *err);
/* Creates the primitive from op->description with tensors args[i] = {which} in the layouts that it
 * prefers, and fills them with random numbers through plain[i]; the last is the result. */
enum dl_code dl_dnnl_prepare(struct dl_dnnl_op *op, const int which[DL_DNNL_ARGS],
                             const dnnl_query_t layouts[DL_DNNL_ARGS], struct dl_err *err);
double dl_dnnl_run(struct dl_dnnl_op *op, long calls, struct dl_err *err);
/* The result into plain[DL_DNNL_ARGS - 1]. */
enum dl_code dl_dnnl_result(struct dl_dnnl_op *op, struct dl_err *err);
void dl_dnnl_end(struct dl_dnnl_op *op);

#endif
