/* megatron_internal.h - what the files of the Megatron reader share. For those files alone. */
#ifndef DL_IMPORT_RUN_MEGATRON_INTERNAL_H
#define DL_IMPORT_RUN_MEGATRON_INTERNAL_H

#include "import/run/imported_run.h"

struct dl_megatron_reader {
    struct dl_run *run;
    struct dl_arguments *a;
    struct dl_plan_words *out;
    struct dl_err *err;
    double layers, hidden, heads, seq, tp, pp, cp, ep, micro, batch;
    int virtual_stages; /* 0: one */
    bool plain_norm;    /* layer norm, with which gpt: has biases, dropout and a tied head */
    bool recipe;        /* a recipe holds the model and decides what the file does not say */
};

/* Numbers from 0 to what is believed. */
enum dl_code dl_megatron_number(struct dl_megatron_reader *r, const char *names, double *inout);
/* DL_ERR_INPUT: "expected EXPECTED, found ...". */
enum dl_code dl_megatron_unknown(struct dl_megatron_reader *r, const char *names,
                                 const char *expected);
/* The pattern of layers of a hybrid, and the sizes of its Mamba layers; nothing of other models. */
enum dl_code dl_megatron_hybrid(struct dl_megatron_reader *r);
/* The workload. */
enum dl_code dl_megatron_model(struct dl_megatron_reader *r);

#endif
