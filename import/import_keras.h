/* import_keras.h - layers of a Keras model as a workload: values with their shapes, and the layers
 * that are written for them. */
#ifndef DL_IMPORT_IMPORT_KERAS_H
#define DL_IMPORT_IMPORT_KERAS_H

#include "model/core/json_node.h"
#include "model/core/text.h"

enum { DL_KERAS_RANK = 4, DL_KERAS_INPUTS = 64 };

/* What a layer gives, without the batch; channels are the last dimension. */
struct dl_keras_value {
    const char *item; /* layer of the workload that holds it */
    int rank;
    double dims[DL_KERAS_RANK];
    double pad[DL_KERAS_RANK - 1]; /* of a padding before it: both ends, for the next window */
    bool image;                    /* held as channels and extents, not as a sequence or vector */
    bool pooled;                   /* held as an image of one pixel */
};
struct dl_keras_call {                                   /* a layer with what it reads */
    const struct dl_json_node *layer, *config, *options; /* options: of the call; NULL */
    const char *class, *name;                            /* name: in the workload */
    struct dl_keras_value in[DL_KERAS_INPUTS];
    int count;
};
struct dl_keras {
    const struct dl_json *document;
    const char *path;
    struct dl_arena *arena;
    struct dl_err *err;
    struct dl_text layers; /* of the workload, as JSON */
    int written;
    bool transformer, cnn, rnn;
    const char *remarks[16];
    int remark_count;
};

/* DL_ERR_INPUT at the place of a node of the document. */
enum dl_code dl_keras_fail(const struct dl_keras *k, const struct dl_json_node *at, const char *key,
                           const char *format, ...) __attribute__((format(printf, 4, 5)));
void dl_keras_remark(struct dl_keras *k, const char *text);
const struct dl_json_node *dl_keras_member(const struct dl_json_node *object, const char *key);
/* "": none, or no text. */
const char *dl_keras_word(const struct dl_json_node *object, const char *key);
double dl_keras_number(const struct dl_json_node *object, const char *key, double otherwise);
bool dl_keras_flag(const struct dl_json_node *object, const char *key, bool otherwise);

struct dl_keras_source {
    const char *path; /* for messages */
    const char *json;
    size_t length;
    const char *name; /* of the workload; NULL: of the model */
};
/* The JSON of a model as the text of a workload. */
enum dl_code dl_keras_text(const struct dl_keras_source *source, struct dl_arena *arena,
                           struct dl_keras *k, const char **out, struct dl_err *err);

/* ---- for the files of layers ---- */

typedef enum dl_code dl_keras_layer_fn(struct dl_keras *k, struct dl_keras_call *call,
                                       struct dl_keras_value *out);
dl_keras_layer_fn dl_keras_dense, dl_keras_embedding, dl_keras_attention, dl_keras_lstm,
    dl_keras_merge, dl_keras_dropout, dl_keras_normalize, dl_keras_flatten, dl_keras_reshape,
    dl_keras_pass;
/* A layer of the workload, whose geometry may follow before its end. */
struct dl_json_writer dl_keras_begin(struct dl_keras *k, const char *name, const char *kind,
                                     const struct dl_keras_value *in, int count);
void dl_keras_end(struct dl_keras *k, struct dl_json_writer *w);
/* One without geometry; its value has the shape of the first input. */
void dl_keras_plain(struct dl_keras *k, const char *name, const char *kind,
                    const struct dl_keras_value *in, int count, struct dl_keras_value *out);
/* A convolution of single pixels. */
void dl_keras_write_pointwise(struct dl_keras *k, const char *name, const struct dl_keras_value *in,
                              double filters, bool bias, struct dl_keras_value *out);
const char *dl_keras_join(struct dl_keras *k, const char *name, const char *part); /* "name.part" */
double dl_keras_channels(const struct dl_keras_value *v);
/* The value as a vector or sequence: a pooled image loses its extents. */
struct dl_keras_value dl_keras_vector_of(struct dl_keras *k, const char *name,
                                         const struct dl_keras_value *v);
/* The activation that a layer with weights has. */
enum dl_code dl_keras_finish(struct dl_keras *k, const struct dl_keras_call *call,
                             struct dl_keras_value *inout);

/* One call of a layer that is not a nested model. */
enum dl_code dl_keras_layer(struct dl_keras *k, struct dl_keras_call *call,
                            struct dl_keras_value *out);

#endif
