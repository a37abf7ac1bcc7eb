/* Words of tables of kernel times, one at a time: headers, passes, timings, shapes, libraries;
 * kernels by hand. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "model/machine/kernel_columns.h"
#include <string.h>

#include "model/machine/kernel_match.h"
#include "tests/check.h"

static struct dl_kernel_row row_of(const char *text, struct dl_arena *arena) {
    struct dl_csv csv;
    struct dl_err err = {0};
    struct dl_kernel_row row;
    if (dl_csv_parse("t.csv", text, strlen(text), arena, &csv, &err) != DL_OK ||
        dl_kernel_row_read(&csv, 0, &row, &err) != DL_OK)
        fail_msg("%s: %s", text, err.message);
    return row;
}

static bool is_header(const char *text, struct dl_arena *arena) {
    struct dl_csv csv;
    struct dl_err err = {0};
    if (dl_csv_parse("t.csv", text, strlen(text), arena, &csv, &err) != DL_OK)
        fail_msg("%s", err.message);
    return dl_kernel_header(&csv);
}

static void headers(void **state) {
    (void)state;
    struct dl_arena arena = {0};
    assert_true(is_header("gpu,time_us\nX,1\n", &arena));
    assert_true(is_header("device,pass,time_ms\nX,fwd,1\n", &arena));
    assert_true(is_header("time_ms,device,pass\n1,X,fwd\n", &arena));
    assert_true(is_header("pass,time_ms,device\nfwd,1,X\n", &arena));
    assert_true(is_header("time_us,gpu\n1,X\n", &arena));
    assert_false(is_header("gpu,time_ms\nX,1\n", &arena));
    assert_false(is_header("time_us,x\n1,1\n", &arena));
    assert_false(is_header("pass,time_ms\nfwd,1\n", &arena));
    assert_false(is_header("device,time_ms\nX,1\n", &arena));
    assert_false(is_header("device,pass\nX,fwd\n", &arena));
    dl_arena_free(&arena);
}

/* A stream of 2 x 8 elements in rows, and what the words of its row make of it. */
static void streams_by_shape(void **state) {
    (void)state;
    static const struct {
        const char *op, *pass, *shape, *elements, *bytes;
        double read, write, extra; /* NAN: no kernel */
    } cases[] = {
        {"rms_norm", "fwd", "BT=2; hidden_size=8", "", "", 16, 16, 0},
        {"layer_norm", "bwd", "M=2; N=8", "", "", 64, 16, 0},
        {"softmax", "fwd", "T=2; H=8", "", "", 16, 16, 0},
        {"softmax", "fwd", "TT=2; H=8", "", "", NAN, NAN, 0}, /* another name */
        {"softmax", "fwd", "T=2; HH=8", "", "", NAN, NAN, 0},
        {"softmax", "fwd", "T=2", "", "", NAN, NAN, 0},
        {"fused_add_rms_norm", "bwd", "", "16", "", 48, 16, 0},
        {"add", "fwd", "2x8; 8", "", "", 24, 16, 0},
        {"add", "fwd", "2x8;8;", "", "", 24, 16, 0},
        {"add", "fwd", "2x8, 8", "16", "", 32, 16, 0}, /* no list of operands: by its elements */
        {"add", "fwd", "2x8 8", "16", "", 32, 16, 0},
        {"add", "fwd", "2xy", "16", "", 32, 16, 0},
        {"add", "fwd", "0", "16", "", 32, 16, 0},
        {"add", "bwd", "2x8; 8", "16", "", 32, 16, 0}, /* operands tell of the forward pass */
        {"gelu", "fwd", "2x8", "16", "", 16, 16, 0},
        {"gelu", "bwd", "2x8", "16", "", 32, 16, 0},
        {"gelu", "fwd", "2x8", "16", "100", 0, 16, 68},
        {"add tensor+tensor", "fwd", "2x8", "", "", 32, 16, 0}, /* the shape of one of two */
        {"add tensor+tensor", "fwd", "2x8; 2x8", "", "", 32, 16, 0},
        {"mul", "bwd", "", "16", "", NAN, NAN, 0}, /* its backward pass is other kernels */
        {"mul", "fwd", "", "16", "", 32, 16, 0},
        {"mul scalar", "fwd", "", "16", "", 16, 16, 0},
        {"dropout", "bwd", "", "16", "", 16, 16, 0},
        {"silu_and_mul", "fwd", "", "16", "", NAN, NAN, 0},
        {"copy_", "fwd", "2x8; 2x8", "", "", 16, 16, 0},
        {"add", "fwd", "", "", "", NAN, NAN, 0},
    };
    struct dl_arena arena = {0};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct dl_kernel_row row =
            row_of(dl_arena_printf(&arena,
                                   "gpu,op,pass,shape,elements,dtype,library,time_us,bytes_min\nX,%"
                                   "s,%s,\"%s\",%s,bf16,own,9,%s\n",
                                   cases[i].op, cases[i].pass, cases[i].shape, cases[i].elements,
                                   cases[i].bytes),
                   &arena);
        if (isnan(cases[i].read)) {
            check_contains(row.why, "neither bytes nor elements");
            continue;
        }
        if (row.why != NULL) fail_msg("case %zu: %s", i, row.why);
        check_close(row.kernel.read_elements, cases[i].read, 0);
        check_close(row.kernel.write_elements, cases[i].write, 0);
        check_close(row.kernel.extra_bytes, cases[i].extra, 0);
    }
    dl_arena_free(&arena);
}

/* Of each operation by its elements: what a fused kernel reads and writes an element, forward
 * and backward; -1: it has none. */
static void streams_by_elements(void **state) {
    (void)state;
    static const struct {
        const char *names[10];
        double forward_read, forward_write, backward_read, backward_write;
    } cases[] = {
        /* one tensor in, one out; backward the gradient and what was kept */
        {{"gelu", "GELU_", "relu", "relu_", "silu", "sigmoid", "tanh", "clamp_min", "clamp_min_"},
         1,
         1,
         2,
         1},
        /* backward 2R + 1W for the input and 2R for the weights */
        {{"rms_norm", "rmsnorm", "layer_norm", "layernorm", "native_layer_norm"}, 1, 1, 4, 1},
        {{"softmax"}, 1, 1, 2, 1},
        {{"fused_add_rms_norm"}, 2, 2, 3, 1}, /* and the sum in and out */
        {{"dropout"}, 1, 1, 1, 1},            /* the mask is drawn again */
        {{"add", "add_", "threshold_backward"}, 2, 1, 2, 1},
        {{"add tensor+tensor", "mul", "mul_", "mul tensor*tensor", "div", "div tensor/tensor"},
         2,
         1,
         -1,
         -1},
        {{"add scalar", "mul scalar", "div scalar", "neg", "rsqrt", "copy_"}, 1, 1, -1, -1},
        {{"silu_and_mul", "embedding lookup", "fp8 quantization with a given scale"},
         -1,
         -1,
         -1,
         -1}};
    struct dl_arena arena = {0};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int n = 0; n < 10 && cases[i].names[n] != NULL; n++)
            for (int back = 0; back < 2; back++) {
                const double read = back ? cases[i].backward_read : cases[i].forward_read,
                             write = back ? cases[i].backward_write : cases[i].forward_write;
                const struct dl_kernel_row row =
                    row_of(dl_arena_printf(&arena,
                                           "gpu,op,pass,elements,dtype,library,time_us,bytes_"
                                           "min\nX,%s,%s,10,bf16,own,9,\n",
                                           cases[i].names[n], back ? "bwd" : "fwd"),
                           &arena);
                if (read < 0) {
                    check_contains(row.why, "neither bytes nor elements");
                    continue;
                }
                assert_null(row.why);
                check_close(row.kernel.read_elements, 10 * read, 0);
                check_close(row.kernel.write_elements, 10 * write, 0);
            }
    dl_arena_free(&arena);
}

static void libraries(void **state) {
    (void)state;
    static const struct {
        const char *op, *library, *why;
        enum dl_variant variant;
    } cases[] = {
        {"rms_norm", "vLLM 0.6", NULL, DL_VARIANT_ENGINE},
        {"rmsnorm", "vLLM", NULL, DL_VARIANT_ENGINE},
        {"layer_norm", "vLLM", NULL, DL_VARIANT_ENGINE},
        {"silu_and_mul", "vLLM", NULL, DL_VARIANT_ENGINE},
        {"gelu", "vLLM", NULL, DL_VARIANT_ENGINE},
        {"softmax", "vLLM", NULL, DL_VARIANT_PLAIN},
        {"gelu", "torch", NULL, DL_VARIANT_PLAIN},
        {"gelu", "cudnn", NULL, DL_VARIANT_VENDOR},
        {"softmax", "cudnn", NULL, DL_VARIANT_VENDOR},
        {"rms_norm", "torch", "several kernels", DL_VARIANT_PLAIN},
        {"rms_norm", "huggingface", "several kernels", DL_VARIANT_PLAIN},
        {"rms_norm", "liger", NULL, DL_VARIANT_PLAIN},
        {"rms_norm", "triton", NULL, DL_VARIANT_PLAIN},
        {"fused_add_rms_norm", "triton", NULL, DL_VARIANT_PLAIN},
        {"fused_add_rms_norm", "liger 0.5", "several kernels", DL_VARIANT_PLAIN},
        {"fused_add_rms_norm", "liger fused_add", NULL, DL_VARIANT_PLAIN},
        {"fused_add_rms_norm", "vLLM fused_add", NULL, DL_VARIANT_ENGINE},
        {"fused_add_rms_norm", "torch", "several kernels", DL_VARIANT_PLAIN},
        {"layer_norm", "huggingface", NULL, DL_VARIANT_PLAIN},
        {"sort", "torch", "no kernel of this operation", DL_VARIANT_PLAIN},
    };
    struct dl_arena arena = {0};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct dl_kernel_row row = row_of(
            dl_arena_printf(
                &arena,
                "gpu,op,pass,elements,dtype,library,time_us,bytes_min\nX,%s,fwd,16,bf16,%s,9,64\n",
                cases[i].op, cases[i].library),
            &arena);
        if (cases[i].why != NULL) {
            if (row.why == NULL) fail_msg("case %zu", i);
            check_contains(row.why, cases[i].why);
        } else {
            if (row.why != NULL) fail_msg("case %zu: %s", i, row.why);
            assert_int_equal(row.kernel.variant, cases[i].variant);
        }
    }
    check_contains(
        row_of(
            "gpu,op,pass,elements,dtype,library,time_us,bytes_min\nX,gelu,fwd_bwd,16,bf16,own,9,\n",
            &arena)
            .why,
        "forward and backward in one time");
    dl_arena_free(&arena);
}

static void passes_types_and_timings(void **state) {
    (void)state;
    static const struct {
        const char *pass, *dtype, *timing, *time;
        enum dl_pass expected;
        enum dl_precision precision;
        bool by_call;
        const char *why;
    } cases[] = {
        {"fwd", "fp16", "", "9", DL_FORWARD, DL_FP16, false, NULL},
        {"bwd", "bf16", "events around one call", "9", DL_BACKWARD_DATA, DL_BF16, true, NULL},
        {"bwd_data", "fp32", "do_bench", "9", DL_BACKWARD_DATA, DL_FP32, true, NULL},
        {"bwd_weights", "tf32", "layer hook", "9", DL_BACKWARD_WEIGHTS, DL_TF32, true, NULL},
        {"update", "fp32", "cudagraph", "9", DL_UPDATE, DL_FP32, false, NULL},
        {"fwd", "", "", "9", DL_FORWARD, DL_FP32, false, NULL}, /* counted in elements: fp32 */
        {"fwd", "int8", "", "9", DL_FORWARD, DL_FP32, false, "none of training's"},
        {"fwd", "fp32", "", "", DL_FORWARD, DL_FP32, false, "no time is given"},
    };
    struct dl_arena arena = {0};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct dl_kernel_row row =
            row_of(dl_arena_printf(&arena,
                                   "gpu,op,pass,elements,dtype,library,time_us,timing,bytes_min\nX,"
                                   "relu,%s,16,%s,own,%s,%s,64\n",
                                   cases[i].pass, cases[i].dtype, cases[i].time, cases[i].timing),
                   &arena);
        assert_int_equal(row.kernel.pass, cases[i].expected);
        assert_int_equal(row.precision, cases[i].precision);
        assert_int_equal(row.by_call, cases[i].by_call);
        if (cases[i].why == NULL)
            assert_null(row.why);
        else
            check_contains(row.why, cases[i].why);
    }
    dl_arena_free(&arena);
}

/* 2 x 3 x 8 x 8 with 4 filters of 3 x 3, padded: 2 x 2 x 4 x 64 x 27 operations. */
static void convolutions_without_a_size(void **state) {
    (void)state;
    static const char header[] = "gpu,pass,n,c,d,h,w,k,kd,r,s,stride_d,stride_h,stride_w,pad_d,pad_"
                                 "h,pad_w,groups,transposed,dtype,time_us\n";
    static const struct {
        const char *row, *why;
    } cases[] = {
        {"X,fwd,2,3,,8,8,4,,3,3,,1,1,,1,1,1,0,fp32,5\n", NULL},
        {"X,fwd,,3,,8,8,4,,3,3,,1,1,,1,1,1,0,fp32,5\n", "not given"},
        {"X,fwd,2,3,,8,8,4,,3,3,,1,1,,1,1,1,1,fp32,5\n", "transposed convolution"},
        {"X,fwd,2,3,,8,8,4,,3,3,,1,1,,1,1,,0,fp32,5\n", NULL}, /* one group unless it says */
        {"X,fwd,2,3,,8,8,4,,3,3,,,,,1,1,,0,fp32,5\n", NULL},   /* a stride of 1 unless it says */
    };
    struct dl_arena arena = {0};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct dl_kernel_row row =
            row_of(dl_arena_printf(&arena, "%s%s", header, cases[i].row), &arena);
        if (cases[i].why != NULL) {
            check_contains(row.why, cases[i].why);
            continue;
        }
        assert_null(row.why);
        check_close(row.kernel.flop, 2.0 * 2 * 4 * 64 * 27, 0);
        assert_int_equal(row.kernel.variant, DL_VARIANT_PLAIN);
    }
    assert_int_equal(
        row_of(dl_arena_printf(&arena, "%sX,fwd,2,3,1,8,8,4,,3,3,,1,1,,1,1,1,0,fp32,5\n", header),
               &arena)
            .kernel.variant,
        DL_VARIANT_VOLUME);
    assert_int_equal(
        row_of(dl_arena_printf(&arena, "%sX,fwd,2,4,,8,8,4,,3,3,,1,1,,1,1,4,0,fp32,5\n", header),
               &arena)
            .kernel.variant,
        DL_VARIANT_DEPTHWISE);
    dl_arena_free(&arena);
}

static void deepbench_rows(void **state) {
    (void)state;
    struct dl_arena arena = {0};
    struct dl_csv csv;
    struct dl_err err = {0};
    struct dl_kernel_row row = row_of("device,precision,pass,time_ms,m,n,k,a_trans,b_trans\nV100,"
                                      "fp16_in_32_math,bwd_data,2,8,4,2,T,N\n",
                                      &arena);
    assert_int_equal(row.precision, DL_MIXED);
    assert_true(row.kernel.a_trans && !row.kernel.b_trans);
    check_close(row.measured_s, 2e-3, 1e-15);
    check_close(row.kernel.flop, 2 * 8 * 4 * 2, 0);
    row = row_of("device,precision,pass,time_ms,m,n,k,a_trans,b_trans\nV100,fp32,fwd,2,8,,2,N,N\n",
                 &arena);
    check_contains(row.why, "a size is not given");
    row = row_of("device,precision,pass,time_ms,m,n,k,a_trans,b_trans\nV100,fp32,fwd,,8,4,2,N,N\n",
                 &arena);
    check_contains(row.why, "no time is given");
    /* in any order of columns */
    static const char *const orders[] = {
        "m,device,precision,pass,time_ms,n,k,a_trans,b_trans\n8,V100,"
        "fp32,fwd,2,4,2,N,T\n",
        "device,m,n,k,precision,pass,time_ms,a_trans,b_trans\nV100,8,4,"
        "2,fp32,fwd,2,N,T\n"};
    for (int i = 0; i < 2; i++) {
        row = row_of(orders[i], &arena);
        assert_null(row.why);
        check_close(row.kernel.flop, 2 * 8 * 4 * 2, 0);
        assert_true(!row.kernel.a_trans && row.kernel.b_trans);
        assert_string_equal(row.device, "V100");
    }
    row = row_of("s_filter_w,device,precision,pass,time_ms,w,h,c,n,k,r_filter_h,pad_w,pad_h,"
                 "stride_w,stride_h\n3,V100,fp32,fwd,2,9,8,4,2,5,3,1,1,1,1\n",
                 &arena);
    assert_int_equal(row.kernel.op, DL_OP_CONV);
    check_close(row.kernel.flop, 2.0 * 2 * 5 * 72 * 4 * 9, 0);
    row = row_of("device,precision,pass,time_ms,hidden\nV100,fp32,fwd,1,8\n", &arena);
    check_contains(row.why, "recurrent");
    static const char *const wrong[] = {"V100,fp31,fwd,2,8,4,2,T,N\n",
                                        "V100,fp32,sideways,2,8,4,2,T,N\n"};
    for (int i = 0; i < 2; i++) {
        const char *text = dl_arena_printf(
            &arena, "device,precision,pass,time_ms,m,n,k,a_trans,b_trans\n%s", wrong[i]);
        assert_int_equal(dl_csv_parse("t.csv", text, strlen(text), &arena, &csv, &err), DL_OK);
        assert_int_equal(dl_kernel_row_read(&csv, 0, &row, &err), DL_ERR_INPUT);
        assert_int_equal(err.line, 2);
        assert_string_equal(err.key, i == 0 ? "precision" : "pass");
    }
    assert_string_equal(dl_kernel_match_device("V100"), "v100_sxm2_16");
    assert_string_equal(dl_kernel_match_device("TitanX"), "titanx_maxwell");
    assert_string_equal(dl_kernel_match_device("a10"), "a10");
    assert_null(dl_kernel_match_device("AMD_MI25"));
    dl_arena_free(&arena);
}

/* Winograd on 2 x 8 x 8 outputs: 8 tiles of 36 numbers, of 32 inputs, 16 outputs, and 32 x 16
 * filters; 4 B each. */
static void workspace_of_winograd(void **state) {
    (void)state;
    const double in[DL_DIMS] = {1, 8, 8}, kernel[DL_DIMS] = {1, 3, 3}, one[DL_DIMS] = {1, 1, 1},
                 pad[DL_DIMS] = {0, 1, 1};
    struct dl_kernel plain = dl_kernel_conv(DL_FORWARD, 2, 32, 16, 1, in, kernel, one, pad, one),
                     k = plain;
    check_close(dl_kernel_workspace_bytes(&plain, 4), 4 * 36 * (8 * 32 + 8 * 16 + 32 * 16), 1e-12);
    k.op = DL_OP_GEMM;
    check_close(dl_kernel_workspace_bytes(&k, 4), 0, 0);
    k = plain, k.groups = 2;
    check_close(dl_kernel_workspace_bytes(&k, 4), 0, 0);
    k = plain, k.kernel[0] = 3;
    check_close(dl_kernel_workspace_bytes(&k, 4), 0, 0);
    k = plain, k.in_channels = 31;
    check_close(dl_kernel_workspace_bytes(&k, 4), 0, 0);
    for (int d = 1; d < DL_DIMS; d++) {
        k = plain, k.kernel[d] = 5;
        check_close(dl_kernel_workspace_bytes(&k, 4), 0, 0);
        k = plain, k.stride[d] = 2;
        check_close(dl_kernel_workspace_bytes(&k, 4), 0, 0);
        k = plain, k.dilation[d] = 2;
        check_close(dl_kernel_workspace_bytes(&k, 4), 0, 0);
    }
}

/* Columns by name wherever they stand, the first too. */
static void columns_in_any_place(void **state) {
    (void)state;
    static const char *const tables[] = {"m,op,x\n64,gemm,1\n", "op,m,x\ngemm,64,1\n",
                                         "x,op,m\n1,gemm,64\n"};
    struct dl_arena arena = {0};
    struct dl_csv csv;
    struct dl_err err = {0};
    double number;
    for (int i = 0; i < 3; i++) {
        assert_int_equal(dl_csv_parse("t.csv", tables[i], strlen(tables[i]), &arena, &csv, &err),
                         DL_OK);
        assert_int_equal(dl_kernel_number(&csv, 0, "m", &number, &err), DL_OK);
        assert_true(number == 64);
        assert_int_equal(dl_kernel_number(&csv, 0, "n", &number, &err), DL_OK);
        assert_true(isnan(number));
        assert_int_equal(dl_kernel_deepbench_op(&csv, 0, &err), DL_OK);
    }
    static const char *const wrong[] = {"m,op,x\n-1,norm,1\n", "op,m,x\nnorm,-1,1\n"};
    for (int i = 0; i < 2; i++) {
        assert_int_equal(dl_csv_parse("t.csv", wrong[i], strlen(wrong[i]), &arena, &csv, &err),
                         DL_OK);
        assert_int_equal(dl_kernel_number(&csv, 0, "m", &number, &err), DL_ERR_INPUT);
        assert_int_equal(dl_kernel_deepbench_op(&csv, 0, &err), DL_ERR_INPUT);
    }
    assert_int_equal(dl_csv_parse("t.csv", "x\n1\n", 4, &arena, &csv, &err), DL_OK);
    assert_int_equal(dl_kernel_deepbench_op(&csv, 0, &err), DL_OK);
    dl_arena_free(&arena);
}

/* Bytes of a table: of them the elements written, as many as the bytes can hold; in any type. */
static void streams_by_bytes(void **state) {
    (void)state;
    static const struct {
        const char *type;
        double bytes, elements, written, extra;
    } cases[] = {{"fp32", 4000, 100, 100, 3600},   {"fp32", 4000, 1000, 1000, 0},
                 {"fp32", 4000, 1001, 1000, 0},    {"fp32", 4000, 1, 1, 3996},
                 {"bf16", 4000, 1001, 1001, 1998}, {"bf16", 4000, 9000, 2000, 0},
                 {"fp32", 4000, 0, 0, 4000},       {"fp32", 2, 1, 0.5, 0}};
    struct dl_arena arena = {0};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct dl_kernel_row row =
            row_of(dl_arena_printf(&arena,
                                   "gpu,op,pass,elements,dtype,library,time_us,bytes_min\n"
                                   "X,gelu,fwd,%g,%s,own,9,%g\n",
                                   cases[i].elements, cases[i].type, cases[i].bytes),
                   &arena);
        assert_null(row.why);
        check_close(row.kernel.read_elements, 0, 0);
        check_close(row.kernel.write_elements, cases[i].written, 1e-12);
        check_close(row.kernel.extra_bytes, cases[i].extra, 1e-12);
        check_close(row.measured_s, 9e-6, 1e-12);
    }
    dl_arena_free(&arena);
}

/* Rows that name a reason have no kernel: nothing is made of what is missing or not modelled. */
static void rows_without_a_kernel(void **state) {
    (void)state;
    static const struct {
        const char *text, *why;
    } cases[] = {
        {"gpu,pass,m,n,k,batch,dtype,time_us\nX,fwd,8,,8,1,bf16,9\n", "a size is not given"},
        {"gpu,pass,m,n,k,batch,dtype,time_us\nX,bwd,8,8,8,1,bf16,9\n", "several GEMMs in one time"},
        {"gpu,pass,heads_q,batch,seq_q,seq_kv,head_dim_qk,dtype,time_us\nX,fwd,8,1,64,,64,bf16,9\n",
         "a size is not given"},
        {"gpu,op,pass,n,c,h,w,k,r,s,stride_h,stride_w,dtype,time_us\n"
         "X,conv,fwd,2,8,9,9,8,3,3,1,1,fp32,7\n",
         NULL},
        {"gpu,op,pass,n,c,h,w,k,r,s,stride_h,stride_w,dtype,time_us\n"
         "X,conv,fwd,2,,9,9,8,3,3,1,1,fp32,7\n",
         "a size is not given"},
        {"gpu,op,pass,n,c,h,w,k,r,s,stride_h,stride_w,dtype,transposed,time_us\n"
         "X,conv,fwd,2,8,9,9,8,3,3,1,1,fp32,1,7\n",
         "transposed convolution"},
        {"gpu,op,pass,n,c,h,w,k,r,s,stride_h,stride_w,dtype,transposed,time_us\n"
         "X,conv,fwd,2,8,9,9,8,3,3,1,1,fp32,0,7\n",
         NULL},
        {"gpu,op,pass,shape,dtype,library,time_us\nX,sort,fwd,8,bf16,own,9\n",
         "no kernel of this operation is described"},
        {"gpu,op,pass,shape,dtype,library,time_us\nX,gelu,fwd_bwd,8,bf16,own,9\n",
         "forward and backward in one time"}};
    struct dl_arena arena = {0};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct dl_kernel_row row = row_of(cases[i].text, &arena);
        if (cases[i].why == NULL) {
            assert_null(row.why);
            assert_true(row.kernel.flop > 0);
            continue;
        }
        assert_string_equal(row.why, cases[i].why);
        check_close(row.kernel.flop + row.kernel.read_elements + row.kernel.write_elements, 0, 0);
        check_close(row.kernel.launches, 0, 0);
    }
    dl_arena_free(&arena);
}

/* Columns of DeepBench and the files that they are; other names are files already. */
static void deepbench_devices(void **state) {
    (void)state;
    static const char *const names[][2] = {{"V100", "v100_sxm2_16"},
                                           {"P100", "p100_pcie16"},
                                           {"T4", "t4"},
                                           {"1080Ti", "gtx1080ti"},
                                           {"TitanXp", "titanxp"},
                                           {"TitanX_Pascal", "titanx_pascal"},
                                           {"M40", "m40"},
                                           {"TitanX", "titanx_maxwell"},
                                           {"KNL7250", "knl7250"},
                                           {"h100_sxm", "h100_sxm"},
                                           {"M4", "M4"},
                                           {"TitanX_", "TitanX_"}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        assert_string_equal(dl_kernel_match_device(names[i][0]), names[i][1]);
    assert_null(dl_kernel_match_device("AMD_MI25"));
    assert_null(dl_kernel_match_device("AMD_VegaFE"));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(headers),
                                       cmocka_unit_test(streams_by_shape),
                                       cmocka_unit_test(streams_by_elements),
                                       cmocka_unit_test(libraries),
                                       cmocka_unit_test(passes_types_and_timings),
                                       cmocka_unit_test(convolutions_without_a_size),
                                       cmocka_unit_test(deepbench_rows),
                                       cmocka_unit_test(deepbench_devices),
                                       cmocka_unit_test(rows_without_a_kernel),
                                       cmocka_unit_test(streams_by_bytes),
                                       cmocka_unit_test(columns_in_any_place),
                                       cmocka_unit_test(workspace_of_winograd)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
