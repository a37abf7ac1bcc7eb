/* Configs of Hugging Face: the workload of each model type has the parameters that the model has,
 * and what a workload cannot say is an error with its place. */
#include "model/core/file.h"
#include "import/import_config.h"
#include "tests/check.h"
#include "tests/load_workload.h"

/* Builds what a config says, on top of what it extends. */
static void build_model(const char *text, size_t length, struct dl_arena *arena,
                        struct dl_workload *w, struct dl_config_model *model) {
    struct dl_err err = {0};
    struct dl_json *docs[2];
    char path[512];
    if (dl_config_parse("config.json", text, length, false, arena, model, &err) != DL_OK)
        fail_msg("%s: %s", err.key, err.message);
    const char *made = dl_config_text(model, "made", arena);
    snprintf(path, sizeof path, "%s/data/workloads/%s.json", check_root(), model->family->extends);
    assert_int_equal(dl_json_parse("made", made, strlen(made), arena, &docs[0], &err), DL_OK);
    assert_int_equal(dl_json_read(path, arena, &docs[1], &err), DL_OK);
    const struct dl_json *const chain[] = {docs[0], docs[1]};
    if (dl_workload_build(chain, 2, NULL, 0, arena, w, &err) != DL_OK)
        fail_msg("%s: %s", err.key, err.message);
}

/* Parameters as published (data/SOURCES.md), or of the models whose sizes these configs are:
 * Qwen1.5-MoE-A2.7B, Gemma 2 2B, Phi-3 mini, Pythia 1B. gpt_oss has 4 of its 36 layers. */
static void families(void **state) {
    static const struct {
        const char *file;
        double parameters, tokens;
    } cases[] = {
        {"llama", 8030261248, 8192},
        {"mixtral", 46702792704, 4096},
        {"qwen2", 7615616512, 4096},
        {"qwen2_moe", 14315784192, 8192},
        {"qwen3_moe", 30532122624, 4096},
        {"deepseek_v3", 671026419200, 4096},
        {"gpt_oss", (116829156672 - 2.0 * 201088 * 2880 - 2880) / 9 + 2.0 * 201088 * 2880 + 2880,
         4096},
        {"gemma2", 2614341888, 8192},
        {"phi3", 3821079552, 4096},
        {"nemotron", 15628775424, 4096},
        {"gpt_neox", 1011781632, 2048},
        {"gpt2", 124439808, 1024},
        {"mpt", 6649286656, 2048},
        {"bert", 109482240, 128},
        /* as in test_layers_state; Bamba: 29 (4096 (2 x 8192 + 2 x 128 + 128) + 5 (8192 + 256) +
         * 3 x 128 + 8192 + 8192 x 4096) + 3 x 4096 x 128 (48 + 32) + 32 (3 x 4096 x 14336 + 8192) +
         * 2 x 128256 x 4096 + 4096 */
        {"mamba2", 2702599680, 1024},
        {"nemotron_h", 8100852736, 8192},
        {"qwen3_next", 79674391296, 4096},
        {"minimax", 456089655296, 4096},
        {"granitemoehybrid", 32207337984, 4096},
        {"falcon_h1", 33642221312, 4096},
        {"bamba", 9780235392, 4096},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct dl_config_model model;
        struct dl_workload w;
        char path[512], *text;
        size_t length;
        snprintf(path, sizeof path, "%s/tests/fixtures/config/%s.json", check_root(),
                 cases[i].file);
        assert_int_equal(dl_file_read(path, 1 << 20, &test_arena, &text, &length, NULL), DL_OK);
        build_model(text, length, &test_arena, &w, &model);
        assert_string_equal(model.family->model_type, cases[i].file);
        if (w.parameters != cases[i].parameters)
            fail_msg("%s: %.0f parameters, expected %.0f", cases[i].file, w.parameters,
                     cases[i].parameters);
        check_close(w.sequence, cases[i].tokens, 0);
    }
}

#define LLAMA                                                                                      \
    "'hidden_size':64,'num_hidden_layers':6,'num_attention_heads':4,'intermediate_size':96,"       \
    "'vocab_size':100"

static void build_text(const char *text, struct dl_arena *arena, struct dl_workload *w,
                       struct dl_config_model *model) {
    text = quoted(text, arena);
    build_model(text, strlen(text), arena, w, model);
}

static void members_change_the_work(void **state) {
    struct dl_config_model model;
    struct dl_workload w;
    build_text("{'model_type':'gemma3_text'," LLAMA ",'head_dim':16,'sliding_window':8,"
               "'sliding_window_pattern':3}",
               &test_arena, &w, &model);
    check_close(find_layer(&w, "h.1.attn.core")->attention.window, 8, 0);
    check_close(find_layer(&w, "h.2.attn.core")->attention.window, 0, 0);
    build_text("{'model_type':'llama'," LLAMA ",'attention_bias':true,'partial_rotary_factor':0.5,"
               "'rope_scaling':null,'num_key_value_heads':2}",
               &test_arena, &w, &model);
    check_close(find_layer(&w, "h.0.attn.rope")->attention.rotary, 8, 0);
    check_close(find_layer(&w, "h.0.attn.qkv")->parameter_elements, 64 * 128 + 128, 0);
    check_close(find_layer(&w, "h.0.attn.proj")->parameter_elements, 64 * 64 + 64, 0);
    check_close(find_layer(&w, "h.0.mlp.fc1")->parameter_elements, 64 * 192, 0);
    /* a window that is not in force */
    build_text("{'model_type':'qwen3'," LLAMA ",'sliding_window':8,'use_sliding_window':false}",
               &test_arena, &w, &model);
    check_close(find_layer(&w, "h.0.attn.core")->attention.window, 0, 0);
    check_close(find_layer(&w, "h.0.attn.norm")->parameter_elements, 32, 0);
    build_text("{'model_type':'mpt','d_model':64,'n_layers':2,'n_heads':4,'vocab_size':100,"
               "'max_seq_len':32,'expansion_ratio':2,'attn_config':{'kv_n_heads':1}}",
               &test_arena, &w, &model);
    check_close(find_layer(&w, "h.0.mlp.fc1")->out.channels, 128, 0);
    check_close(find_layer(&w, "h.0.attn.core")->attention.kv_heads, 1, 0);
    build_text("{'model_type':'mpt','d_model':64,'n_layers':2,'n_heads':4,'vocab_size':100,"
               "'max_seq_len':32,'attn_config':{'alibi':false},'learned_pos_emb':true}",
               &test_arena, &w, &model);
    check_close(find_layer(&w, "wpe")->parameter_elements, 32 * 64, 0);
}

static void errors(void **state) {
    static const struct {
        const char *text, *key, *message;
    } cases[] = {
        {"[]", "", "'model_type'"},
        {"{'model_type':1}", "model_type", "'model_type'"},
        {"{'model_type':'lama'}", "model_type", "did you mean 'llama'?"},
        {"{'model_type':'llama'}", "", "expected 'hidden_size'"},
        {"{'model_type':'llama','hidden_sise':1}", "hidden_sise", "did you mean 'hidden_size'?"},
        {"{'model_type':'llama','hidden_size':1.5}", "hidden_size", "whole number"},
        {"{'model_type':'llama','hidden_size':'64'}", "hidden_size", "whole number"},
        {"{'model_type':'llama','hidden_act':'relu'}", "hidden_act", "\"silu\" or \"gelu\""},
        {"{'model_type':'nemotron','hidden_act':'silu'}", "hidden_act", "\"gelu\" or \"relu2\""},
        {"{'model_type':'bert','hidden_act':'relu2'}", "hidden_act", "\"gelu\""},
        {"{'model_type':'bert','type_vocab_size':3}", "type_vocab_size", "expected 2"},
        {"{'model_type':'llama','tie_word_embeddings':1}", "tie_word_embeddings", "true or false"},
        {"{'model_type':'llama','mlp_bias':'yes'}", "mlp_bias", "true or false"},
        {"{'model_type':'gpt2','add_cross_attention':true}", "add_cross_attention", "false"},
        {"{'model_type':'qwen2','use_sliding_window':true}", "use_sliding_window", "false"},
        {"{'model_type':'gpt2','attn_pdrop':0.1,'resid_pdrop':0.2}", "resid_pdrop", "0.1"},
        {"{'model_type':'qwen3_moe','mlp_only_layers':[3]}", "mlp_only_layers", "empty"},
        {"{'model_type':'gpt_oss','layer_types':['full_attention','sliding_attention']}",
         "layer_types", "element 1"},
        {"{'model_type':'gpt_oss','layer_types':['linear_attention']}", "layer_types", "linear"},
        {"{'model_type':'nemotron_h','hybrid_override_pattern':'M-X'}", "hybrid_override_pattern",
         "found 'X'"},
        {"{'model_type':'nemotron_h','hidden_size':8,'num_attention_heads':1,'vocab_size':8,"
         "'num_hidden_layers':3,'hybrid_override_pattern':'M-'}",
         "num_hidden_layers", "expected the 2 layers"},
        {"{'model_type':'granitemoehybrid','layer_types':['mamba','window']}", "layer_types",
         "\"window\""},
        {"{'model_type':'bamba','num_hidden_layers':2,'attn_layer_indices':[2]}",
         "attn_layer_indices", "below 2"},
        {"{'model_type':'jamba','mamba_dt_rank':256,'mamba_d_state':16}", "mamba_dt_rank",
         "selective scan"},
        {"{'model_type':'mpt','attn_config':{'qk_ln':true}}", "attn_config.qk_ln", "false"},
        {"{'model_type':'mpt','attn_config':3}", "attn_config", "an object"},
        {"{'model_type':'mpt','norm_type':'none'}", "norm_type", "layernorm"},
        {"{'model_type':'nemotron','partial_rotary_factor':2}", "partial_rotary_factor", "to 1"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct dl_config_model model;
        struct dl_err err = {0};
        const char *text = quoted(cases[i].text, &test_arena);
        assert_int_equal(
            dl_config_parse("config.json", text, strlen(text), false, &test_arena, &model, &err),
            DL_ERR_INPUT);
        assert_int_equal(err.line, 1);
        if (strcmp(err.key, cases[i].key) != 0 || strstr(err.message, cases[i].message) == NULL)
            fail_msg("%s: %s: %s", cases[i].text, err.key, err.message);
    }
}

static void unknown_members_can_be_skipped(void **state) {
    struct dl_config_model model;
    const char *text =
        quoted("{'model_type':'llama'," LLAMA ",'odd':[1],'other':{'a':2}}", &test_arena);
    assert_int_equal(
        dl_config_parse("config.json", text, strlen(text), true, &test_arena, &model, NULL), DL_OK);
    assert_non_null(strchr(model.skipped, ','));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(families),
        cmocka_unit_test(members_change_the_work),
        cmocka_unit_test(errors),
        cmocka_unit_test(unknown_members_can_be_skipped),
    };
    return cmocka_run_group_tests(tests, NULL, check_free);
}
