/* Tables of kernel times by GPU: what a row of each kind becomes. */
#include "model/machine/kernel_match.h"
#include "tests/check.h"

static struct dl_kernel_row first_row(const char *text, struct dl_arena *arena) {
    struct dl_csv csv;
    struct dl_err err = {0};
    struct dl_kernel_row row;
    if (dl_csv_parse("t.csv", text, strlen(text), arena, &csv, &err) != DL_OK ||
        dl_kernel_row_read(&csv, 0, &row, &err) != DL_OK)
        fail_msg("%s", err.message);
    assert_true(dl_kernel_header(&csv));
    return row;
}

static void products(void **state) {
    struct dl_kernel_row row = first_row("gpu,pass,batch,m,n,k,dtype_a,library,time_us,timing\n"
                                         "B200,fwd,3,8,4,2,fp4,cuBLAS,12.5,cudagraph\n",
                                         &test_arena);
    assert_string_equal(row.device, "B200");
    assert_int_equal(row.precision, DL_NVFP4);
    assert_true(row.why == NULL && !row.by_call);
    check_close(row.measured_s, 12.5e-6, 1e-12);
    check_close(row.kernel.flop, 2 * 3 * 8 * 4 * 2, 0);
    row = first_row("gpu,pass,batch,m,n,k,dtype_a,library,time_us,timing\n"
                    "B200,fwd,1,8,4,2,int8,x,1,\n",
                    &test_arena);
    check_contains(row.why, "none of training's");
}

static void attention(void **state) {
    const char *text = "gpu,pass,batch,heads_q,heads_kv,seq_q,seq_kv,head_dim_qk,head_dim_v,causal,"
                       "window,dtype,kv_dtype,library,time_us,timing\n"
                       "H100,bwd,2,8,2,16,16,64,64,1,,bf16,,FlashAttention-3,100,\n";
    const struct dl_kernel_row row = first_row(text, &test_arena);
    assert_true(row.why == NULL);
    assert_int_equal(row.kernel.op, DL_OP_ATTENTION);
    assert_int_equal(row.kernel.pass, DL_BACKWARD_DATA);
    assert_int_equal(row.kernel.variant, DL_VARIANT_PLAIN);
    check_close(row.kernel.flop, 2 * 16 * 136 * 5 * 64, 0); /* 16 x 17 / 2 pairs */
}

static void streams(void **state) {
    static const char header[] =
        "gpu,op,pass,shape,elements,dtype,library,time_us,bytes_min,timing\n";
    static const struct {
        const char *row;
        double read, write, extra;
        enum dl_work work;
        enum dl_variant variant;
        bool by_call;
    } cases[] = {
        {"X,rms_norm,bwd,M=4; H=8,,bf16,liger,9,,do_bench\n", 64, 32, 0, DL_WORK_RMSNORM,
         DL_VARIANT_PLAIN, true},
        {"X,rms_norm,bwd,4x8,32,bf16,pytorch,9,,\n", 128, 32, 0, DL_WORK_RMSNORM, DL_VARIANT_PLAIN,
         false}, /* 2R + 1W for the input, 2R for the weights */
        {"X,rms_norm,bwd,4x8,32,bf16,cudnn,9,,\n", 64, 32, 0, DL_WORK_RMSNORM, DL_VARIANT_VENDOR,
         false},
        {"X,layer_norm,bwd,4x8,32,bf16,torch_compile,9,,\n", 128, 32, 0, DL_WORK_LAYERNORM,
         DL_VARIANT_COMPILED, false},
        {"X,threshold_backward,bwd,4x8; 4x8,32,bf16,torch,9,,\n", 64, 32, 0, DL_WORK_ANY,
         DL_VARIANT_PLAIN, false},
        {"X,add,fwd,4x8; 8,32,bf16,torch,9,,\n", 40, 32, 0, DL_WORK_ANY, DL_VARIANT_STRIDED, false},
        {"X,add,fwd,4x8; 4x8,32,bf16,torch,9,,\n", 64, 32, 0, DL_WORK_ANY, DL_VARIANT_PLAIN, false},
        {"X,add tensor+tensor,fwd,4x8,32,fp32,torch,9,,\n", 64, 32, 0, DL_WORK_ANY,
         DL_VARIANT_PLAIN, false},
        {"X,mul,fwd,4x8; 1,32,bf16,torch,9,,\n", 33, 32, 0, DL_WORK_ANY, DL_VARIANT_PLAIN, false},
        {"X,copy_,fwd,4x8; 4x8,32,bf16,torch,9,,\n", 32, 32, 0, DL_WORK_ANY, DL_VARIANT_STRIDED,
         false},
        {"X,gelu,fwd,4x8,32,fp32,torch,9,256,\n", 0, 32, 128, DL_WORK_ACTIVATION, DL_VARIANT_PLAIN,
         false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct dl_kernel_row row =
            first_row(dl_arena_printf(&test_arena, "%s%s", header, cases[i].row), &test_arena);
        assert_true(row.why == NULL);
        check_close(row.kernel.read_elements, cases[i].read, 0);
        check_close(row.kernel.write_elements, cases[i].write, 0);
        check_close(row.kernel.extra_bytes, cases[i].extra, 0);
        assert_int_equal(row.kernel.work, cases[i].work);
        assert_int_equal(row.kernel.variant, cases[i].variant);
        assert_int_equal(row.by_call, cases[i].by_call);
        const bool norm =
            row.kernel.work == DL_WORK_RMSNORM || row.kernel.work == DL_WORK_LAYERNORM;
        check_close(row.kernel.m, norm ? 4 : 0, 0); /* rows */
    }
    check_contains(
        first_row(dl_arena_printf(&test_arena, "%sX,rms_norm,fwd,M=4; H=8,,bf16,huggingface,9,,\n",
                                  header),
                  &test_arena)
            .why,
        "several kernels");
    check_contains(first_row(dl_arena_printf(&test_arena, "%sX,silu,fwd,4x8,32,bf16,%s,9,128,\n",
                                             header, "torch eager (Hugging Face)"),
                             &test_arena)
                       .why,
                   "several kernels");
}

static void convolutions(void **state) {
    const char *text = "gpu,pass,n,c,d,h,w,k,kd,r,s,stride_d,stride_h,stride_w,pad_d,pad_h,pad_w,"
                       "dil_d,dil_h,dil_w,groups,transposed,dtype,time_us,timing\n"
                       "X,bwd_weights,2,3,,8,8,4,,3,3,,2,2,,1,1,,1,1,1,0,tf32,5,events around one "
                       "call\n";
    const struct dl_kernel_row row = first_row(text, &test_arena);
    assert_true(row.why == NULL && row.by_call);
    assert_int_equal(row.precision, DL_TF32);
    assert_int_equal(row.kernel.pass, DL_BACKWARD_WEIGHTS);
    check_close(row.kernel.flop, 2.0 * 2 * 4 * 16 * 3 * 9, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(products), cmocka_unit_test(attention),
                                       cmocka_unit_test(streams), cmocka_unit_test(convolutions)};
    return cmocka_run_group_tests(tests, NULL, check_free);
}
