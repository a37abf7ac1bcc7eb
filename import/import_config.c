/* import_config.c - see the header. A member of the config is looked up among those of its model
 * type; an unknown one might change the work, so it is an error. */
#include "import/import_config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/core/file.h"
#include "import/import.h"
#include "import/json_stream.h"
#include "import/run/arguments.h"
#include "model/core/text.h"

struct reader {
    const struct dl_json *doc;
    struct dl_arena *arena;
    struct dl_config_model *model;
    bool skip_unknown;
    struct dl_text unknown; /* paths of unknown members */
    const char *first_unknown;
    struct dl_err *err;
};

static const struct dl_config_key *in_table(const struct dl_config_key *table, const char *key) {
    for (; table->keys != NULL; table++)
        if (dl_has_word(table->keys, key)) return table;
    return NULL;
}

const struct dl_config_key *dl_config_key_of(const struct dl_config_family *family,
                                             const char *key) {
    const struct dl_config_key *const tables[] = {family->keys, family->shared, family->base,
                                                  dl_config_ignored};
    for (int i = 0; i < 4; i++) {
        const struct dl_config_key *found = in_table(tables[i], key);
        if (found != NULL) return found;
    }
    return NULL;
}

static const char *suggest_key(const struct dl_config_family *family, const char *key,
                               struct dl_arena *arena) {
    const struct dl_config_key *const tables[] = {family->keys, family->shared, family->base};
    const char *names[4 * DL_CONFIG_KEYS];
    int count = 0;
    size_t length;
    for (int i = 0; i < 3; i++)
        for (const struct dl_config_key *k = tables[i]; k->keys != NULL; k++)
            for (const char *rest = k->keys, *word;
                 (word = dl_word_next(&rest, " ", &length)) != NULL;)
                if (count < 4 * DL_CONFIG_KEYS - 1)
                    names[count++] = dl_arena_strndup(arena, word, length);
    names[count] = NULL;
    return dl_suggest(key, names);
}

static struct dl_config_value *value_of(struct dl_config_model *m, const char *parameter) {
    for (int i = 0; i < m->value_count; i++)
        if (strcmp(m->values[i].parameter, parameter) == 0) return &m->values[i];
    return NULL;
}

static double number_of(struct dl_config_model *m, const char *parameter, double otherwise) {
    const struct dl_config_value *value = value_of(m, parameter);
    return value != NULL ? strtod(value->text, NULL) : otherwise;
}

static void drop_value(struct dl_config_model *m, const char *parameter) {
    struct dl_config_value *value = value_of(m, parameter);
    if (value == NULL) return;
    memmove(value, value + 1, (size_t)(&m->values[m->value_count] - (value + 1)) * sizeof *value);
    m->value_count--;
}

/* Two members for one parameter must agree. */
static enum dl_code set(struct reader *r, const char *path, const char *parameter, bool given,
                        const char *text) {
    struct dl_config_model *m = r->model;
    struct dl_config_value *value = value_of(m, parameter);
    /* the config gives both the channel count and the fraction of a head: the fraction wins */
    if (value != NULL && value->given && strcmp(parameter, "rotary") == 0 &&
        strstr(value->text, "head_dim") != NULL)
        return DL_OK;
    if (value != NULL && value->given && strcmp(value->text, text) != 0)
        return dl_json_fail(r->doc, path, r->err,
                            "expected %.40s as another member says, for the workload has one '%s'",
                            value->text, parameter);
    if (value == NULL && m->value_count == DL_CONFIG_VALUES)
        return dl_json_fail(r->doc, path, r->err, "more than %d values", DL_CONFIG_VALUES);
    if (value == NULL) value = &m->values[m->value_count++];
    *value = (struct dl_config_value){.parameter = parameter, .text = text, .given = given};
    return DL_OK;
}

static enum dl_code set_number(struct reader *r, const char *path, const char *parameter,
                               double number) {
    char text[DL_NUMBER_TEXT];
    dl_number_text(number, text);
    return set(r, path, parameter, true, dl_arena_strdup(r->arena, text));
}

static enum dl_code need_whole(struct reader *r, const char *path, const struct dl_json_node *n) {
    if (n->kind == DL_JSON_NUMBER && n->number >= 0 && n->number <= 1e15 &&
        n->number == floor(n->number))
        return DL_OK;
    return dl_json_fail(r->doc, path, r->err, "expected a whole number of at least 0");
}

static enum dl_code need_number(struct reader *r, const char *path, const struct dl_json_node *n,
                                double low, double high) {
    if (n->kind == DL_JSON_NUMBER && n->number >= low && n->number <= high) return DL_OK;
    return dl_json_fail(r->doc, path, r->err, "expected a number from %g to %g", low, high);
}

static enum dl_code need_flag(struct reader *r, const char *path, const struct dl_json_node *n) {
    if (n->kind == DL_JSON_BOOL) return DL_OK;
    return dl_json_fail(r->doc, path, r->err, "expected true or false");
}

static bool starts(const char *text, const char *with) {
    return strncmp(text, with, strlen(with)) == 0;
}

static enum dl_code take_activation(struct reader *r, const char *path,
                                    const struct dl_json_node *n) {
    const char *name = n->kind == DL_JSON_STRING ? n->string : "", *word = NULL;
    const bool gelu = starts(name, "gelu");
    if (r->model->family->gated)
        word = gelu                                                      ? "geglu"
               : strcmp(name, "silu") == 0 || strcmp(name, "swish") == 0 ? "swiglu"
                                                                         : NULL;
    else if (gelu || strcmp(name, "relu") == 0) /* the same traffic */
        word = "gelu";
    else if (strcmp(name, "relu2") == 0 || strcmp(name, "squared_relu") == 0)
        word = "relu2";
    const bool bert = strcmp(r->model->family->extends, "gpt") != 0;
    if (word == NULL || (bert && !gelu))
        return dl_json_fail(r->doc, path, r->err, "expected %s, found \"%.40s\"",
                            bert                      ? "\"gelu\""
                            : r->model->family->gated ? "\"silu\" or \"gelu\""
                                                      : "\"gelu\" or \"relu2\"",
                            name);
    return bert ? DL_OK : set(r, path, "mlp", true, word);
}

/* "sliding_attention" and "full_attention": all alike, or every so many layers a full one. */
static enum dl_code take_layer_types(struct reader *r, const char *path,
                                     const struct dl_json_node *n) {
    int full = 0, count = 0, every = 0;
    if (n->kind != DL_JSON_ARRAY) return dl_json_fail(r->doc, path, r->err, "expected a list");
    for (const struct dl_json_node *e = n->child; e != NULL; e = e->next, count++) {
        const char *name = e->kind == DL_JSON_STRING ? e->string : "";
        const bool whole = strcmp(name, "full_attention") == 0;
        if (!whole && strcmp(name, "sliding_attention") != 0 &&
            strcmp(name, "deepseek_sparse_attention") != 0)
            return dl_json_fail(r->doc, path, r->err,
                                "expected \"full_attention\" or \"sliding_attention\", found "
                                "\"%.40s\"",
                                name);
        full += whole;
        if (whole && every == 0) every = count + 1;
        if (every > 0 && whole != ((count + 1) % every == 0))
            return dl_json_fail(r->doc, path, r->err,
                                "expected a full layer every so many layers, found another order "
                                "at element %d",
                                count);
    }
    return set_number(r, path, "full_every", full == 0 ? 0 : every);
}

/* The config's `layers` come first. */
static enum dl_code take_places(struct reader *r, const struct dl_config_key *key, const char *path,
                                const struct dl_json_node *n) {
    const size_t layers = (size_t)number_of(r->model, "layers", 0);
    if (n->kind != DL_JSON_ARRAY || layers == 0 || layers > 10000)
        return dl_json_fail(r->doc, path, r->err,
                            "expected a list of layers, and num_hidden_layers");
    char *pattern = dl_arena_alloc(r->arena, layers + 1, 1);
    memset(pattern, key->parameter[0], layers);
    for (const struct dl_json_node *e = n->child; e != NULL; e = e->next) {
        DL_TRY(need_whole(r, path, e));
        if (e->number >= (double)layers)
            return dl_json_fail(r->doc, path, r->err, "expected numbers below %zu", layers);
        pattern[(size_t)e->number] = '*';
    }
    return set(r, path, "pattern", true, pattern);
}

static enum dl_code read_members(struct reader *r, const struct dl_json_node *object,
                                 const char *prefix);

static void note_left_out(struct dl_config_model *model, const char *what) {
    const int room = (int)(sizeof model->left_out / sizeof model->left_out[0]);
    if (model->left_out_count < room) model->left_out[model->left_out_count++] = what;
}

/* Uses that set one parameter to a number. */
static enum dl_code take_number(struct reader *r, const struct dl_config_key *key, const char *path,
                                const struct dl_json_node *n) {
    switch (key->use) {
    case DL_CONFIG_DROPOUT:
        DL_TRY(need_number(r, path, n, 0, 0.999));
        return set_number(r, path, "dropout", n->number);
    case DL_CONFIG_FRACTION:
        DL_TRY(need_number(r, path, n, 1e-6, 1));
        return set(r, path, "rotary", true,
                   dl_arena_printf(r->arena, "floor(%.17g*head_dim)", n->number));
    case DL_CONFIG_RATIO:
        DL_TRY(need_number(r, path, n, 1e-6, 1e6));
        return set(r, path, key->parameter, true,
                   dl_arena_printf(r->arena, "%.17g*hidden", n->number));
    case DL_CONFIG_LENGTH:
        DL_TRY(need_whole(r, path, n));
        r->model->longest = n->number;
        return key->parameter == NULL ? DL_OK
                                      : set_number(r, path, key->parameter, n->number + key->only);
    case DL_CONFIG_SELECTED:
        DL_TRY(need_whole(r, path, n));
        note_left_out(r->model, "the indexer of sparse attention, whose selected keys "
                                "(index_topk) are read as a window of as many");
        return set_number(r, path, key->parameter, n->number);
    case DL_CONFIG_ONLY:
        if (n->kind == DL_JSON_NUMBER && n->number == key->only) return DL_OK;
        return dl_json_fail(r->doc, path, r->err, "expected %g", key->only);
    case DL_CONFIG_AUTO:
        if (n->kind == DL_JSON_STRING && strcmp(n->string, "auto") == 0) return DL_OK;
        /* fall through */
    default: DL_TRY(need_whole(r, path, n)); return set_number(r, path, key->parameter, n->number);
    }
}

/* Uses that are true or false. */
static enum dl_code take_flag(struct reader *r, const struct dl_config_key *key, const char *path,
                              const struct dl_json_node *n) {
    DL_TRY(need_flag(r, path, n));
    const char *const text = n->boolean ? "1" : "0", *const opposite = n->boolean ? "0" : "1";
    switch (key->use) {
    case DL_CONFIG_HALVES:
        DL_TRY(set(r, path, "proj_bias", true, text));
        /* Qwen2 has biases there, whatever this member holds */
        return n->boolean || value_of(r->model, "qkv_bias") == NULL
                   ? set(r, path, "qkv_bias", true, text)
                   : DL_OK;
    case DL_CONFIG_NO_BIAS:
        DL_TRY(set(r, path, "norm_bias", true, opposite));
        return set(r, path, "bias", true, opposite);
    case DL_CONFIG_TRUE:
        if (n->boolean) return DL_OK;
        return dl_json_fail(r->doc, path, r->err,
                            "expected true: what false does has no parameter in a workload");
    case DL_CONFIG_FALSE:
    case DL_CONFIG_WINDOWED:
        if (!n->boolean) return DL_OK;
        return dl_json_fail(r->doc, path, r->err,
                            "expected false: what true does has no parameter in a workload");
    default: return set(r, path, key->parameter, true, text);
    }
}

static enum dl_code take_mixed(struct reader *r, const struct dl_config_key *key, const char *path,
                               const struct dl_json_node *n) {
    const char *fault = NULL, *pattern = dl_config_pattern(
                                  n, key->parameter[0], &r->model->listed_layers, r->arena, &fault);
    if (pattern == NULL) return dl_json_fail(r->doc, path, r->err, "%s", fault);
    return set(r, path, "pattern", true, pattern);
}

/* Uses of a text, a list or a null. */
static enum dl_code take_other(struct reader *r, const struct dl_config_key *key, const char *path,
                               const struct dl_json_node *n) {
    const char *text = n->kind == DL_JSON_STRING ? n->string : "";
    switch (key->use) {
    case DL_CONFIG_EMPTY:
        if (n->kind == DL_JSON_ARRAY && n->child_count == 0) return DL_OK;
        return dl_json_fail(r->doc, path, r->err, "expected an empty list");
    case DL_CONFIG_INSIDE:
        if (n->kind == DL_JSON_OBJECT) return read_members(r, n, path);
        return dl_json_fail(r->doc, path, r->err, "expected an object");
    case DL_CONFIG_NORM:
        if (strstr(text, "layernorm") != NULL)
            return set(r, path, key->parameter, true, "layernorm");
        if (strstr(text, "rmsnorm") != NULL) return set(r, path, key->parameter, true, "rmsnorm");
        return dl_json_fail(r->doc, path, r->err, "expected a layernorm or an rmsnorm");
    case DL_CONFIG_MIXED: return take_mixed(r, key, path, n);
    case DL_CONFIG_POSITION:
        return set(r, path, "pos", true, strcmp(text, "rope") == 0 ? "rope" : "none");
    default: /* NOTED */
        if (!(n->kind == DL_JSON_NUMBER && n->number == 0) &&
            !(n->kind == DL_JSON_BOOL && !n->boolean))
            note_left_out(r->model, key->parameter);
        return DL_OK;
    }
}

static enum dl_code take(struct reader *r, const struct dl_config_key *key, const char *path,
                         const struct dl_json_node *n) {
    if (n->kind == DL_JSON_NULL) return DL_OK; /* as if absent */
    switch (key->use) {
    case DL_CONFIG_PLACES: /* by read_places */
    case DL_CONFIG_IGNORED: return DL_OK;
    case DL_CONFIG_ACTIVATION: return take_activation(r, path, n);
    case DL_CONFIG_LAYERS: return take_layer_types(r, path, n);
    case DL_CONFIG_EMPTY:
    case DL_CONFIG_INSIDE:
    case DL_CONFIG_NORM:
    case DL_CONFIG_MIXED:
    case DL_CONFIG_POSITION:
    case DL_CONFIG_NOTED: return take_other(r, key, path, n);
    case DL_CONFIG_FLAG:
    case DL_CONFIG_HALVES:
    case DL_CONFIG_NO_BIAS:
    case DL_CONFIG_TRUE:
    case DL_CONFIG_FALSE:
    case DL_CONFIG_WINDOWED: return take_flag(r, key, path, n);
    default: return take_number(r, key, path, n);
    }
}

static enum dl_code read_members(struct reader *r, const struct dl_json_node *object,
                                 const char *prefix) {
    for (const struct dl_json_node *n = object->child; n != NULL; n = n->next) {
        const struct dl_config_key *key = dl_config_key_of(r->model->family, n->key);
        const char *path =
            prefix[0] == '\0' ? n->key : dl_arena_printf(r->arena, "%.100s.%.100s", prefix, n->key);
        if (key != NULL) {
            DL_TRY(take(r, key, path, n));
        } else if (n->kind != DL_JSON_NULL) {
            dl_text_printf(&r->unknown, "%s%s", r->unknown.length > 0 ? ", " : "", path);
            if (r->first_unknown == NULL) r->first_unknown = path;
        }
    }
    return DL_OK;
}

static enum dl_code read_places(struct reader *r, const struct dl_json_node *object) {
    for (const struct dl_json_node *n = object->child; n != NULL; n = n->next) {
        const struct dl_config_key *key = dl_config_key_of(r->model->family, n->key);
        if (key != NULL && key->use == DL_CONFIG_PLACES && n->kind != DL_JSON_NULL)
            DL_TRY(take_places(r, key, n->key, n));
    }
    return DL_OK;
}

/* A member of the family that is one slip away. */
static const char *near_key(struct reader *r, const char *key) {
    const char *near = suggest_key(r->model->family, key, r->arena);
    return near != NULL && dl_one_slip(key, near) ? near : NULL;
}

static enum dl_code refuse_unknown(struct reader *r) {
    const char *all = dl_text_string(&r->unknown), *near = near_key(r, r->first_unknown);
    if (all[0] == '\0') return DL_OK;
    if (r->skip_unknown) {
        r->model->skipped = all;
        return DL_OK;
    }
    return dl_json_fail(r->doc, r->first_unknown, r->err,
                        "no such member of a config of type %s is known%s%s%s%s%.400s; "
                        "--skip-unknown leaves it out",
                        r->model->type, near != NULL ? "; did you mean '" : "",
                        near != NULL ? near : "", near != NULL ? "'?" : "",
                        strchr(all, ',') != NULL ? "; all of these are not: " : "",
                        strchr(all, ',') != NULL ? all : "");
}

/* The first member that sets a parameter. */
static const char *key_of(const struct dl_config_family *family, const char *parameter,
                          struct dl_arena *arena) {
    const struct dl_config_key *const tables[] = {family->keys, family->shared, family->base};
    for (int i = 0; i < 3; i++)
        for (const struct dl_config_key *k = tables[i]; k->keys != NULL; k++)
            if (k->parameter != NULL && strcmp(k->parameter, parameter) == 0)
                return dl_arena_strndup(arena, k->keys, strcspn(k->keys, " "));
    return parameter;
}

/* Those of layers with a state. */
static enum dl_code finish_state(struct reader *r) {
    struct dl_config_model *m = r->model;
    const double expand = number_of(m, "ssm_expand", 2), listed = m->listed_layers;
    drop_value(m, "ssm_expand");
    if (value_of(m, "ssm_heads") != NULL && value_of(m, "ssm_head_dim") == NULL)
        DL_TRY(set(r, "", "ssm_head_dim", true,
                   dl_arena_printf(r->arena, "%.15g*hidden/ssm_heads", expand)));
    if (listed > 0 && value_of(m, "layers") == NULL) DL_TRY(set_number(r, "", "layers", listed));
    if (listed > 0 && number_of(m, "layers", 0) != listed)
        return dl_json_fail(r->doc, "num_hidden_layers", r->err,
                            "expected the %.0f layers of the list of their kinds", listed);
    if (m->family->shared_mlp && number_of(m, "experts", 0) < 2 &&
        value_of(m, "shared_ffn") != NULL) {
        drop_value(m, "ffn");
        DL_TRY(set_number(r, "", "ffn", number_of(m, "shared_ffn", 0)));
        drop_value(m, "shared_ffn");
    }
    return DL_OK;
}

/* Parameters that follow from several members. */
static enum dl_code finish(struct reader *r) {
    struct dl_config_model *m = r->model;
    if (value_of(m, "qk_nope") != NULL) {
        DL_TRY(set_number(r, "qk_nope_head_dim", "head_dim",
                          number_of(m, "qk_nope", 0) + number_of(m, "rotary", 0)));
        drop_value(m, "qk_nope");
    }
    if (value_of(m, "alibi") != NULL || value_of(m, "learned") != NULL) {
        const bool alibi = number_of(m, "alibi", 0) != 0, learned = number_of(m, "learned", 1) != 0;
        drop_value(m, "alibi");
        drop_value(m, "learned");
        DL_TRY(set(r, "", "pos", true, alibi ? "alibi" : learned ? "learned" : "none"));
    }
    if (in_table(m->family->keys, "use_sliding_window") != NULL) drop_value(m, "window");
    if (value_of(m, "embedded") != NULL) {
        if (number_of(m, "embedded", 0) != number_of(m, "hidden", 0))
            return dl_json_fail(r->doc, "word_embed_proj_dim", r->err,
                                "expected the hidden size: the model projects its embedding, for "
                                "which no workload has a layer");
        drop_value(m, "embedded");
    }
    if (value_of(m, "qk_norm") != NULL) drop_value(m, "head_norm");
    if (value_of(m, "window") == NULL) drop_value(m, "full_every");
    for (int i = 0; m->family->needs[i] != NULL; i++)
        if (value_of(m, m->family->needs[i]) == NULL)
            return dl_json_fail(r->doc, "", r->err, "expected '%s'",
                                key_of(m->family, m->family->needs[i], r->arena));
    /* a model reads up to its longest sequence; people train on shorter ones */
    const bool seq = strcmp(m->family->extends, "gpt") == 0 && dl_known(m->longest);
    if (seq) DL_TRY(set_number(r, "", "seq", m->longest <= 8192 ? m->longest : 4096));
    return DL_OK;
}

enum dl_code dl_config_parse(const char *name, const char *text, size_t length, bool skip_unknown,
                             struct dl_arena *arena, struct dl_config_model *out,
                             struct dl_err *err) {
    struct dl_json *doc = NULL;
    const struct dl_json_node *text_model;
    char *plain = dl_arena_strndup(arena, text, length);
    dl_json_plain_numbers(plain, strlen(plain));
    DL_TRY(dl_json_parse(name, plain, strlen(plain), arena, &doc, err));
    *out = (struct dl_config_model){.longest = NAN};
    struct reader r = {
        .doc = doc, .arena = arena, .model = out, .skip_unknown = skip_unknown, .err = err};
    r.unknown = (struct dl_text){.arena = arena};
    DL_TRY(dl_config_find(doc, out, arena, &text_model, err));
    for (int i = 0; out->family->always[i] != NULL; i++) {
        const char *pair = out->family->always[i], *equals = strchr(pair, '=');
        DL_TRY(
            set(&r, "", dl_arena_strndup(arena, pair, (size_t)(equals - pair)), false, equals + 1));
    }
    DL_TRY(dl_config_vision(doc, arena, out, err));
    DL_TRY(read_members(&r, text_model, ""));
    const struct dl_json_node *tie = dl_json_member(doc->root, "tie_word_embeddings", 19);
    if (text_model != doc->root && tie != NULL && tie->kind == DL_JSON_BOOL &&
        dl_json_member(text_model, "tie_word_embeddings", 19) == NULL)
        DL_TRY(set(&r, "tie_word_embeddings", "tied", true, tie->boolean ? "1" : "0"));
    DL_TRY(read_places(&r, text_model));
    DL_TRY(refuse_unknown(&r));
    DL_TRY(finish_state(&r));
    return finish(&r);
}

const char *dl_config_text(const struct dl_config_model *m, const char *name,
                           struct dl_arena *arena) {
    struct dl_json_writer w;
    dl_jw_init(&w, arena, false);
    dl_jw_object(&w, NULL);
    dl_jw_string(&w, "format", "dlmodel-workload");
    dl_jw_integer(&w, "version", 1);
    dl_jw_string(&w, "name", name);
    dl_jw_string(&w, "summary",
                 dl_arena_printf(arena, "%s, imported from its config.json", m->type));
    dl_jw_string(&w, "source", "imported");
    dl_jw_string(&w, "extends", m->family->extends);
    dl_jw_object(&w, "parameters");
    for (int i = 0; i < m->value_count; i++) {
        char *end;
        const double number = strtod(m->values[i].text, &end);
        if (*end == '\0')
            dl_jw_number(&w, m->values[i].parameter, number);
        else
            dl_jw_string(&w, m->values[i].parameter, m->values[i].text);
    }
    return dl_jw_text(&w);
}
