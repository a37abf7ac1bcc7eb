/* gpt: with all its keys, the named language models against published parameter counts, and the
 * multiply-adds that model flop count. */
#include "model/workload/layer.h"
#include "tests/check.h"
#include "tests/load_workload.h"

/* "layers=2,mlp=swiglu" */
static enum dl_code load_keys(const char *keys, struct dl_arena *arena, struct dl_workload *out,
                              struct dl_err *err) {
    struct dl_override o[32];
    int count = 0;
    char *text = dl_arena_strdup(arena, keys), *save = NULL;
    for (char *part = strtok_r(text, ",", &save); part != NULL; part = strtok_r(NULL, ",", &save)) {
        char *equals = strchr(part, '=');
        assert_true(equals != NULL && count < 32);
        *equals = '\0';
        o[count++] = (struct dl_override){.key = part, .value = equals + 1};
    }
    char path[512];
    struct dl_json *doc = NULL;
    snprintf(path, sizeof path, "%s/data/workloads/gpt.json", check_root());
    assert_int_equal(dl_json_read(path, arena, &doc, err), DL_OK);
    const struct dl_json *docs[] = {doc};
    DL_TRY(dl_workload_build(docs, 1, o, count, arena, out, err));
    for (int i = 0; i < count; i++)
        if (!o[i].used) fail_msg("gpt has no %s", o[i].key);
    return DL_OK;
}

static void load(const char *keys, struct dl_arena *arena, struct dl_workload *out) {
    struct dl_err err = {0};
    memset(out, 0, sizeof *out);
    if (load_keys(keys, arena, out, &err) != DL_OK) fail_msg("%s: %s", keys, err.message);
}

/* Parameters as published (data/SOURCES.md); active ones by hand from the same sizes: all but the
 * experts that a token does not go to. */
static void published_parameters(void **state) {
    static const struct {
        const char *name;
        double parameters, active, seq;
    } models[] = {
        {"llama2_7b", 6738415616, 6738415616, 4096},
        {"llama2_13b", 13015864320, 13015864320, 4096},
        {"llama2_70b", 68976648192, 68976648192, 4096},
        {"llama3_8b", 8030261248, 8030261248, 8192},
        {"llama3_70b", 70553706496, 70553706496, 8192},
        {"llama3_405b", 405853388800, 405853388800, 8192},
        {"mistral_7b", 7241732096, 7241732096, 8192},
        /* 32 layers, 6 of 8 experts of 3 x 4096 x 14336 idle */
        {"mixtral_8x7b", 46702792704, 46702792704 - 32.0 * 6 * 3 * 4096 * 14336, 4096},
        {"mixtral_8x22b", 140620634112, 140620634112 - 56.0 * 6 * 3 * 6144 * 16384, 4096},
        {"qwen2_7b", 7615616512, 7615616512, 4096},
        {"qwen2_72b", 72706203648, 72706203648, 4096},
        {"qwen3_30b_a3b", 30532122624, 30532122624 - 48.0 * 120 * 3 * 2048 * 768, 4096},
        {"qwen3_235b_a22b", 235093634560, 235093634560 - 94.0 * 120 * 3 * 4096 * 1536, 4096},
        {"deepseek_v3", 671026419200, 671026419200 - 58.0 * 248 * 3 * 7168 * 2048, 4096},
        /* 3.2 G + 12.5 G, 9.4 G + 331.6 G */
        {"nemotron4_15b", 2.0 * 256000 * 6144 + 12483047424, 15628775424, 4096},
        {"nemotron4_340b", 2.0 * 256000 * 18432 + 331592011776, 341029195776, 4096},
        {"mpt_7b", 6649286656, 6649286656, 2048},
        {"mpt_30b", 29957200896, 29957200896, 8192},
        {"gpt_oss_120b", 116829156672,
         116829156672 - 36.0 * 124 * (2880.0 * 5760 + 5760 + 2880.0 * 2880 + 2880), 4096},
    };
    for (size_t i = 0; i < sizeof models / sizeof models[0]; i++) {
        struct dl_workload w;
        load_name(models[i].name, NULL, 0, &test_arena, &w);
        if (w.parameters != models[i].parameters)
            fail_msg("%s: %.0f parameters", models[i].name, w.parameters);
        check_close(w.active_parameters, models[i].active, 1e-12);
        check_close(w.sequence, models[i].seq, 0);
    }
}

/* Every kind of layer that the keys choose, by its parameters: l = 3, h = 64, 4 heads of 16, 2 for
 * keys, f = 96, V = 100, 32 tokens. */
static void keys_change_what_they_say(void **state) {
    const double h = 64, f = 96, embedding = 100 * h, qkv = h * 128, proj = h * h;
    const double plain = embedding + 3 * (qkv + proj + 2 * h * f) + h * 7;
    static const char base[] =
        "layers=3,hidden=64,heads=4,kv_heads=2,ffn=96,vocab=100,seq=32,bias=0,";
    const struct {
        const char *keys;
        double parameters;
    } cases[] = {
        {"mlp=gelu,norm=rmsnorm,pos=none,tied=1", plain},
        {"mlp=relu2,norm=rmsnorm,pos=alibi,tied=1", plain},
        {"mlp=gelu,norm=rmsnorm,pos=rope,tied=1", plain},
        {"mlp=gelu,norm=rmsnorm,pos=learned,tied=1", plain + 32 * h},
        {"mlp=gelu,norm=rmsnorm,pos=none,tied=0", plain + embedding},
        {"mlp=gelu,norm=layernorm,pos=none,tied=1", plain}, /* norms without bias, too */
        {"mlp=gelu,norm=layernorm,norm_bias=1,pos=none,tied=1", plain + 7 * h},
        {"mlp=swiglu,norm=rmsnorm,pos=none,tied=1", plain + 3 * h * f},
        {"mlp=geglu,norm=rmsnorm,pos=none,tied=1", plain + 3 * h * f},
        {"mlp=gelu,norm=rmsnorm,pos=none,tied=1,qkv_bias=1", plain + 3 * 128},
        {"mlp=gelu,norm=rmsnorm,pos=none,tied=1,proj_bias=1", plain + 3 * h},
        {"mlp=gelu,norm=rmsnorm,pos=none,tied=1,head_norm=1", plain + 3 * 32},
        {"mlp=gelu,norm=rmsnorm,pos=none,tied=1,sinks=1", plain + 3 * 4},
        {"mlp=gelu,norm=rmsnorm,pos=none,tied=1,post_norm=1", plain + 6 * h},
        {"mlp=gelu,norm=rmsnorm,pos=none,tied=1,parallel=1", plain},
        /* F-MTP: a layer, the projection 2h -> h and three norms; embedding and head are shared */
        {"mlp=gelu,norm=rmsnorm,pos=none,tied=1,mtp_layers=1",
         plain + qkv + proj + 2 * h * f + 2 * h * h + 5 * h},
        {"mlp=gelu,norm=rmsnorm,pos=none,tied=0,mtp_layers=2",
         plain + embedding + 2 * (qkv + proj + 2 * h * f + 2 * h * h + 5 * h)},
        {"mlp=gelu,norm=rmsnorm,pos=none,tied=1,head_dim=8", plain - 3 * (qkv + proj) / 2},
        /* layer 0 is dense; 4 experts of width 32, gated, and 2 shared ones with a gate */
        {"mlp=swiglu,norm=rmsnorm,pos=none,tied=1,experts=4,expert_ffn=32,dense_layers=1,"
         "shared_experts=2,shared_gate=1",
         plain - 4 * h * f + h * f + 2 * (4 * h + 4 * 3 * h * 32 + 3 * h * 64 + h)},
        /* every second layer has experts: the second of three */
        {"mlp=gelu,norm=rmsnorm,pos=none,tied=1,experts=4,moe_every=2,router_bias=1",
         plain - 2 * h * f + 4 * h + 4 + 4 * 2 * h * f},
        /* latent: queries by way of 24, keys and values of 40, 4 turning of 20 channels, values
         * 12 */
        {"mlp=gelu,norm=rmsnorm,pos=rope,tied=1,q_rank=24,kv_rank=40,rotary=4,head_dim=20,"
         "value_dim=12",
         plain - 3 * (qkv + proj) + 3 * (h * 24 + 24 + 24 * 80 + h * 44 + 40 + 40 * 112 + 48 * h)},
        {"mlp=gelu,norm=rmsnorm,pos=rope,tied=1,kv_rank=40,rotary=4,head_dim=20,value_dim=12",
         plain - 3 * (qkv + proj) + 3 * (h * 80 + h * 44 + 40 + 40 * 112 + 48 * h)},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct dl_workload w;
        char keys[400];
        snprintf(keys, sizeof keys, "%s%s", base, cases[i].keys);
        load(keys, &test_arena, &w);
        if (w.parameters != cases[i].parameters)
            fail_msg("%s: %.0f parameters, expected %.0f", keys, w.parameters, cases[i].parameters);
    }
}

/* Two images of 4 x 4 pixels, patches of 2: 4 patches and a class token each, 2 tower layers of
 * width 8, then 2 layers of the model. Tower: patches 8*3*4, class 8, positions 5*8, norms 3*16 and
 * 2*16, attention 4*(64 + 8), MLP 2*8*32 + 40; projector 8*16 + 16 and 16*16 + 16. */
static void vision_tower(void **state) {
    static const char plain[] = "layers=2,hidden=16,heads=2,seq=12,vocab=32,mlp=gelu,norm=rmsnorm",
                      images[] = ",vision_layers=2,vision_hidden=8,vision_heads=2,vision_pixels=4,"
                                 "vision_patch=2,images=2";
    struct dl_workload without, with;
    char keys[400];
    load(plain, &test_arena, &without);
    snprintf(keys, sizeof keys, "%s%s", plain, images);
    load(keys, &test_arena, &with);
    const double layer = 2 * 16 + 4 * (64 + 8) + 2 * 8 * 32 + 40,
                 tower = 8 * 3 * 4 + 8 + 5 * 8 + 2 * 16 + 2 * layer,
                 projector = 8 * 16 + 16 + 16 * 16 + 16;
    check_close(with.parameters - without.parameters, tower + projector, 0);
    /* 8 patches; 10 tokens in the layers, each sees the 5 of its image; 8 tokens projected */
    check_close(with.forward_macs_per_sample - without.forward_macs_per_sample,
                8 * 8 * 12 + 2 * 10 * (4 * 64 + 2 * 8 * 32 + 2 * 8 * 5) + 8 * (8 * 16 + 16 * 16),
                0);
    assert_int_equal(with.stack.count, 2);
    assert_string_equal(with.layers[with.stack.first].name, "h.0.ln_1");
    assert_string_equal(with.layers[with.stack.lead].name, "vision.0.ln_1");
    assert_int_equal(with.stack.own, with.stack.first);
}

static void defaults(void **state) {
    struct dl_workload w;
    load("layers=1,hidden=4096,mlp=swiglu,norm=rmsnorm,pos=rope", &test_arena, &w);
    check_close(find_layer(&w, "h.0.mlp.fc1")->out.channels, 2 * 11008, 0); /* Llama's rule */
    check_close(find_layer(&w, "h.0.mlp.fc1")->parameter_count, 1, 0);      /* no bias */
    check_close(find_layer(&w, "logits")->tied_to, -1, 0);
    check_close(w.heads, 64, 0);
    load("layers=1,hidden=1024", &test_arena, &w);
    check_close(find_layer(&w, "h.0.mlp.fc1")->out.channels, 4096, 0);
    check_close(find_layer(&w, "h.0.mlp.fc1")->parameter_count, 2, 0);
    assert_true(find_layer(&w, "logits")->tied_to >= 0);
    for (int i = 0; i < w.value_count; i++)
        if (strcmp(w.values[i].key, "mlp") == 0) assert_string_equal(w.values[i].text, "gelu");
}

/* Layers that see a window: all but every second one. */
static void windows(void **state) {
    struct dl_workload w;
    load("layers=4,hidden=64,seq=32,vocab=10,window=8,full_every=2", &test_arena, &w);
    check_close(find_layer(&w, "h.0.attn.core")->attention.window, 8, 0);
    check_close(find_layer(&w, "h.1.attn.core")->attention.window, 0, 0);
    check_close(find_layer(&w, "h.2.attn.core")->attention.window, 8, 0);
    load("layers=4,hidden=64,seq=32,vocab=10,window=8", &test_arena, &w);
    check_close(find_layer(&w, "h.3.attn.core")->attention.window, 8, 0);
}

/* Llama 3 8B at 8192 tokens: 6 flop for each of the 7504924672 weights of matrices (all but the
 * embedding and the 65 norms) and token, and 12 x 32 layers x 4096 channels x 4096.5 keys a
 * token. */
static void model_flop(void **state) {
    struct dl_workload w;
    load_name("llama3_8b", NULL, 0, &test_arena, &w);
    const double weights = 8030261248.0 - 128256.0 * 4096 - 65 * 4096;
    check_close(weights, 7504658432.0, 0);
    check_close(6 * w.model_macs_per_sample / 8192, 6 * weights + 12.0 * 32 * 4096 * 4096.5, 1e-12);
    check_close(w.forward_macs_per_sample / 8192, weights + 2.0 * 32 * 4096 * 8192, 1e-12);
    load_name("mixtral_8x7b", NULL, 0, &test_arena, &w); /* 2 of 8 experts, nothing for capacity */
    check_close(w.model_macs_per_sample / 4096,
                w.active_parameters - 32000.0 * 4096 - 65 * 4096 + 2.0 * 32 * 4096 * 2048.5, 1e-12);
}

static void wrong_values(void **state) {
    static const struct {
        const char *keys, *message;
    } cases[] = {
        {"mlp=swigul",
         "expected gelu, relu2, swiglu or geglu, found \"swigul\"; did you mean 'swiglu'?"},
        {"norm=rope", "expected layernorm or rmsnorm, found \"rope\""},
        {"pos=2", "expected learned, rope, alibi or none, found \"2\""},
        {"pos=1+1", "expected learned, rope, alibi or none"},
        {"layers=swiglu2", "no parameter or argument 'swiglu2'"},
        {"kv_heads=3", "heads"},
        {"experts=4,topk=5", "at most the number of experts"},
        {"tied=2", "expected 0 or 1, found 2 from \"tied\""},
        {"tied=2,layers=4", "2 does not fit"},
        {"tied=0.5", "expected 0 or 1"},
        {"experts=-1", "expected a whole number of experts"},
        {"experts=2.5", "expected a whole number of experts"},
        {"layers=4,experts=4,dense_layers=5", "expected at most all layers"},
        {"layers=4,experts=4,dense_layers=-1", "expected at most all layers"},
        {"experts=4,shared_experts=-1", "expected at least 0"},
        {"experts=4,capacity=-0.5", "expected at least 0, where no token is dropped"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct dl_workload w;
        struct dl_err err = {0};
        if (load_keys(cases[i].keys, &test_arena, &w, &err) == DL_OK) fail_msg("%s", cases[i].keys);
        assert_int_equal(err.code, DL_ERR_USAGE);
        if (strstr(err.message, cases[i].message) == NULL)
            fail_msg("%s: %s", cases[i].keys, err.message);
    }
}

/* Words belong to parameters that exist, and are no parameters themselves. */
static void choices_of_a_file(void **state) {
    static const struct {
        const char *choices, *key, *message;
    } cases[] = {
        {"[{'parameter':'other','words':['a']}]", "choices[0].parameter", "no parameter 'other'"},
        {"[{'parameter':'kind','words':['a','size']}]", "choices[0].words[1]",
         "name of a parameter"},
        {"[{'parameter':'kind','words':['a-b']}]", "choices[0].words[0]", "letters"},
        {"[{'parameter':'kind','words':['b']}]", "parameters.kind", "expected b, found \"a\""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct dl_workload w;
        struct dl_err err;
        char text[600];
        snprintf(text, sizeof text,
                 "{'format':'dlmodel-workload','version':1,'name':'t','summary':'s','source':'x',"
                 "'choices':%s,'parameters':{'kind':'a','size':3},'input':{'tokens':'size'},"
                 "'layers':[{'kind':'embedding','rows':9,'out':'kind == a ? 4 : 5'}]}",
                 cases[i].choices);
        assert_int_equal(load_text(text, NULL, 0, &test_arena, &w, &err), DL_ERR_INPUT);
        if (strstr(err.key, cases[i].key) == NULL || strstr(err.message, cases[i].message) == NULL)
            fail_msg("%s: %s: %s", cases[i].choices, err.key, err.message);
    }
}

/* A value outside of a limit is at fault, where it stands; a limit of no parameter is, or one whose
 * expression is none. */
static void limits_of_a_file(void **state) {
    static const struct {
        const char *limits, *key, *message;
    } cases[] = {
        {"[{'parameter':'size','holds':'size > 3','expected':'more'}]", "parameters.size",
         "expected more, found 3 from \"3\""},
        {"[{'parameter':'size','holds':'size > 2','expected':'more'},"
         "{'parameter':'half','holds':'half > 2','expected':'much'}]",
         "parameters.half", "expected much, found 1.5 from \"size/2\""},
        {"[{'parameter':'other','holds':'size > 3','expected':'more'}]", "limits[0].parameter",
         "no parameter 'other'"},
        {"[{'parameter':'size','holds':'other > 3','expected':'more'}]", "limits[0].holds",
         "no parameter or argument 'other'"},
        {"[{'parameter':'size','holds':'size > 2','expected':'more'}]", "", ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct dl_workload w;
        struct dl_err err = {0};
        char text[600];
        snprintf(text, sizeof text,
                 "{'format':'dlmodel-workload','version':1,'name':'t','summary':'s','source':'x',"
                 "'limits':%s,'parameters':{'half':'size/2','size':3},'input':{'tokens':'size'},"
                 "'layers':[{'kind':'embedding','rows':9,'out':4}]}",
                 cases[i].limits);
        const enum dl_code code = load_text(text, NULL, 0, &test_arena, &w, &err);
        assert_int_equal(code, cases[i].key[0] == 0 ? DL_OK : DL_ERR_INPUT);
        if (code != DL_OK && (strstr(err.key, cases[i].key) == NULL ||
                              strstr(err.message, cases[i].message) == NULL))
            fail_msg("%s: %s: %s", cases[i].limits, err.key, err.message);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(published_parameters),
        cmocka_unit_test(keys_change_what_they_say),
        cmocka_unit_test(vision_tower),
        cmocka_unit_test(defaults),
        cmocka_unit_test(windows),
        cmocka_unit_test(model_flop),
        cmocka_unit_test(wrong_values),
        cmocka_unit_test(choices_of_a_file),
        cmocka_unit_test(limits_of_a_file),
    };
    return cmocka_run_group_tests(tests, NULL, check_free);
}
