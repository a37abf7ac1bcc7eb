/* probe_cpu_dnnl.c - oneDNN: engine, layouts, execution. Tensors stay in the layout that the
 * primitive prefers, as frameworks keep them between layers: samples exclude the time of reorders.
 */
#ifdef DL_HAVE_ONEDNN
#include "calibrate/probes/cpu/probe_cpu_dnnl.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum dl_code dl_dnnl_check(dnnl_status_t status, const char *call, struct dl_err *err) {
    if (status == dnnl_success) return DL_OK;
    if (status == dnnl_out_of_memory)
        return dl_fail(err, DL_ERR_SYSTEM, "oneDNN: %s: out of memory", call);
    return dl_fail(err, DL_ERR_BACKEND, "oneDNN: %s failed with status %d", call, (int)status);
}

enum dl_code dl_dnnl_start(struct dl_dnnl_op *op, struct dl_err *err) {
    DL_TRY(dl_dnnl_check(dnnl_engine_create(&op->engine, dnnl_cpu, 0), "engine", err));
    return dl_dnnl_check(dnnl_stream_create(&op->stream, op->engine, dnnl_stream_default_flags),
                         "stream", err);
}

static enum dl_code reorder(struct dl_dnnl_op *op, dnnl_memory_t from, dnnl_memory_t to,
                            struct dl_err *err) {
    const dnnl_memory_desc_t *source = NULL, *target = NULL;
    dnnl_primitive_desc_t description = NULL;
    dnnl_primitive_t primitive = NULL;
    dnnl_memory_get_memory_desc(from, &source);
    dnnl_memory_get_memory_desc(to, &target);
    enum dl_code code =
        dl_dnnl_check(dnnl_reorder_primitive_desc_create(&description, source, op->engine, target,
                                                         op->engine, NULL),
                      "reorder", err);
    if (code == DL_OK)
        code =
            dl_dnnl_check(dnnl_primitive_create(&primitive, description), "reorder primitive", err);
    if (code == DL_OK) {
        const dnnl_exec_arg_t args[2] = {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}};
        code = dl_dnnl_check(dnnl_primitive_execute(primitive, op->stream, 2, args), "reorder run",
                             err);
        if (code == DL_OK) code = dl_dnnl_check(dnnl_stream_wait(op->stream), "wait", err);
    }
    if (primitive != NULL) dnnl_primitive_destroy(primitive);
    if (description != NULL) dnnl_primitive_desc_destroy(description);
    return code;
}

/* Between plain[i] and the tensor of args[i]. */
static enum dl_code transfer(struct dl_dnnl_op *op, int i, bool out, struct dl_err *err) {
    dnnl_memory_t plain = NULL;
    DL_TRY(dl_dnnl_check(
        dnnl_memory_create(&plain, &op->plain_descriptions[i], op->engine, op->plain[i]), "memory",
        err));
    const enum dl_code code = out ? reorder(op, op->args[i].memory, plain, err)
                                  : reorder(op, plain, op->args[i].memory, err);
    dnnl_memory_destroy(plain);
    return code;
}

enum dl_code dl_dnnl_prepare(struct dl_dnnl_op *op, const int which[DL_DNNL_ARGS],
                             const dnnl_query_t layouts[DL_DNNL_ARGS], struct dl_err *err) {
    const char *name = NULL;
    if (dnnl_primitive_desc_query(op->description, dnnl_query_impl_info_str, 0, &name) !=
        dnnl_success)
        name = "unknown";
    snprintf(op->implementation, sizeof op->implementation, "onednn:%s", name);
    DL_TRY(dl_dnnl_check(dnnl_primitive_create(&op->primitive, op->description), "primitive", err));
    for (int i = 0; i < DL_DNNL_ARGS; i++) {
        const dnnl_memory_desc_t *layout =
            dnnl_primitive_desc_query_md(op->description, layouts[i], 0);
        op->args[i].arg = which[i];
        DL_TRY(dl_dnnl_check(
            dnnl_memory_create(&op->args[i].memory, layout, op->engine, DNNL_MEMORY_ALLOCATE),
            "memory", err));
        op->counts[i] = dnnl_memory_desc_get_size(&op->plain_descriptions[i]) / sizeof(float);
        op->plain[i] = malloc(op->counts[i] * sizeof(float));
        if (op->plain[i] == NULL) return dl_fail(err, DL_ERR_SYSTEM, "out of memory");
        dl_fill_random(op->plain[i], op->counts[i], (uint64_t)i + 1);
        DL_TRY(transfer(op, i, false, err));
    }
    dl_spread_threads(); /* the transfers have started them */
    return DL_OK;
}

double dl_dnnl_run(struct dl_dnnl_op *op, long calls, struct dl_err *err) {
    const double start = dl_now_s();
    for (long i = 0; i < calls; i++) {
        dnnl_status_t status =
            dnnl_primitive_execute(op->primitive, op->stream, DL_DNNL_ARGS, op->args);
        if (status == dnnl_success) status = dnnl_stream_wait(op->stream);
        if (dl_dnnl_check(status, "execute", err) != DL_OK) return NAN;
    }
    return dl_now_s() - start;
}

enum dl_code dl_dnnl_result(struct dl_dnnl_op *op, struct dl_err *err) {
    return transfer(op, DL_DNNL_ARGS - 1, true, err);
}

void dl_dnnl_end(struct dl_dnnl_op *op) {
    for (int i = 0; i < DL_DNNL_ARGS; i++) {
        if (op->args[i].memory != NULL) dnnl_memory_destroy(op->args[i].memory);
        free(op->plain[i]);
    }
    if (op->primitive != NULL) dnnl_primitive_destroy(op->primitive);
    if (op->description != NULL) dnnl_primitive_desc_destroy(op->description);
    if (op->hint != NULL) dnnl_primitive_desc_destroy(op->hint);
    if (op->stream != NULL) dnnl_stream_destroy(op->stream);
    if (op->engine != NULL) dnnl_engine_destroy(op->engine);
}

void dl_onednn_facts(void) {
    char text[64];
    const dnnl_version_t *v = dnnl_version();
    snprintf(text, sizeof text, "%d.%d.%d", v->major, v->minor, v->patch);
    dl_print_fact("onednn", text);
}
#else
#include "calibrate/probes/cpu/probe_cpu.h"

void dl_onednn_facts(void) {}
#endif
