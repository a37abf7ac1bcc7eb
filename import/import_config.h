/* import_config.h - a Hugging Face config.json as a workload: the parameters of `gpt` or
 * `bert_base` that its members set. */
#ifndef DL_IMPORT_IMPORT_CONFIG_H
#define DL_IMPORT_IMPORT_CONFIG_H

#include "model/core/json_node.h"

enum { DL_CONFIG_VALUES = 64, DL_CONFIG_KEYS = 64 };

/* What a member of a config does. */
enum dl_config_use {
    DL_CONFIG_NUMBER,     /* the parameter's value, a whole number of at least 0; null: none */
    DL_CONFIG_FLAG,       /* the parameter is 1 or 0 */
    DL_CONFIG_DROPOUT,    /* the parameter is a probability; several must agree */
    DL_CONFIG_ACTIVATION, /* the word of `mlp`: of a gated one "silu" is swiglu */
    DL_CONFIG_FRACTION,   /* part of each head that turns */
    DL_CONFIG_RATIO,      /* ffn / hidden */
    DL_CONFIG_HALVES,     /* qkv_bias and proj_bias */
    DL_CONFIG_NO_BIAS,    /* true: neither layers nor norms have a bias */
    DL_CONFIG_NORM,       /* the word of `norm` in a name like "low_precision_layernorm" */
    DL_CONFIG_SELECTED,   /* keys that an index selects for each query: read as a window */
    DL_CONFIG_WINDOWED,   /* whether the window is in force; true is not known */
    DL_CONFIG_LAYERS,     /* list of "sliding_attention" and "full_attention" */
    DL_CONFIG_MIXED,    /* which layers have attention, state, MLP; parameter: letter of a state */
    DL_CONFIG_PLACES,   /* numbers of the layers with attention; parameter as above */
    DL_CONFIG_AUTO,     /* NUMBER, or "auto": none */
    DL_CONFIG_POSITION, /* "rope", or another word for none */
    DL_CONFIG_LENGTH,   /* longest sequence */
    DL_CONFIG_ONLY,     /* a number that must be the one given */
    DL_CONFIG_TRUE,     /* false would change the work in a way that is not known */
    DL_CONFIG_FALSE,    /* true would change the work in a way that is not known */
    DL_CONFIG_EMPTY,    /* a list that must be empty */
    DL_CONFIG_INSIDE,   /* an object with members of the same table */
    DL_CONFIG_NOTED,    /* left out of the workload, with a note */
    DL_CONFIG_IGNORED   /* changes nothing that is modelled */
};

struct dl_config_key {
    const char *keys; /* members, with blanks between */
    enum dl_config_use use;
    const char *parameter;
    double only; /* ONLY; of LENGTH: rows that are not tokens */
};

/* A model type: the workload it extends, its fixed settings, the members of its config. */
struct dl_config_family {
    const char *model_type, *extends;
    const char *const *always; /* "mlp=swiglu", NULL-terminated */
    bool gated;
    /* its own; of several families: more and less common; each ended by NULL keys */
    const struct dl_config_key *keys, *shared, *base;
    const char *const *needs; /* parameters that the config must set, NULL-terminated */
    /* the MLP of every token is that of the shared expert, also where there are no experts */
    bool shared_mlp;
};
extern const struct dl_config_family dl_config_families[]; /* ended by a NULL model_type */
extern const struct dl_config_family dl_config_llama_like;
/* Other names of a model type; ended by NULL. */
struct dl_config_alias {
    const char *types, *family;
};
extern const struct dl_config_alias dl_config_aliases[];
extern const struct dl_config_key dl_config_ignored[]; /* of every family */
/* What a member does; NULL: the family has none of that name. */
const struct dl_config_key *dl_config_key_of(const struct dl_config_family *family,
                                             const char *key);

struct dl_config_value {
    const char *parameter, *text;
    bool given; /* by the config, not by its family */
};

struct dl_config_model {
    const struct dl_config_family *family;
    struct dl_config_value values[DL_CONFIG_VALUES];
    int value_count;
    double longest;          /* sequence; NAN: unknown */
    double listed_layers;    /* of which the config lists the kind; 0: none */
    const char *left_out[4]; /* parts of the model that the workload has not */
    int left_out_count;
    const char *type;    /* of the config, where it is not the family's */
    bool by_members;     /* the type is not known, its members are those of a Llama */
    const char *skipped; /* unknown members, with skip_unknown; NULL: none */
};

/* Reads a config; skip_unknown: members that are not known are left out. DL_ERR_INPUT with the
 * place of a model type or of a member that is not known, or of a value that the workload cannot
 * express. */
enum dl_code dl_config_parse(const char *name, const char *text, size_t length, bool skip_unknown,
                             struct dl_arena *arena, struct dl_config_model *out,
                             struct dl_err *err);
/* The part of a config that describes the text model and its family; *out NULL: DL_ERR_INPUT that
 * names the layer that has no kind, or the model type. */
enum dl_code dl_config_find(const struct dl_json *document, struct dl_config_model *model,
                            struct dl_arena *arena, const struct dl_json_node **out,
                            struct dl_err *err);
/* F-MIXED-STACK: the letters of `pattern` from a config's list or word; NULL: *fault says why. Once
 * over, where they repeat. `letter`: of a layer with a state. */
const char *dl_config_pattern(const struct dl_json_node *node, char letter, double *layers_out,
                              struct dl_arena *arena, const char **fault);

/* Values of the vision tower (F-TOWER), or its name among what is left out. DL_ERR_INPUT: a member
 * of vision_config that is no whole number. */
enum dl_code dl_config_vision(const struct dl_json *document, struct dl_arena *arena,
                              struct dl_config_model *model, struct dl_err *err);
/* The workload file. */
const char *dl_config_text(const struct dl_config_model *model, const char *name,
                           struct dl_arena *arena);

#endif
