/* file_kind.c - see the header. */
#include "import/file_kind.h"

#include <string.h>

#include "import/log.h"

enum { HEAD = 1 << 20 };

/* ---- binary forms ---- */

static bool starts(const char *bytes, size_t length, const char *magic, size_t size) {
    return length >= size && memcmp(bytes, magic, size) == 0;
}

static bool varint(const unsigned char **at, const unsigned char *end, uint64_t *out) {
    *out = 0;
    for (int shift = 0; *at < end && shift < 64; shift += 7) {
        const unsigned char byte = *(*at)++;
        *out |= (uint64_t)(byte & 127) << shift;
        if (byte < 128) return true;
    }
    return false;
}

/* The protobuf fields of the outermost message, in their order: whether field `wanted`, a message,
 * is among them and all before it are well formed. */
static bool has_field(const char *bytes, size_t length, uint64_t wanted) {
    const unsigned char *at = (const unsigned char *)bytes, *end = at + length;
    uint64_t tag, value;
    for (int fields = 0; fields < 64 && varint(&at, end, &tag); fields++) {
        if (tag >> 3 == 0 || tag >> 3 > 200) return false;
        if (tag == (wanted << 3 | 2)) return fields > 0 || bytes[0] == 8;
        if ((tag & 7) != 0 && (tag & 7) != 2) return false;
        if (!varint(&at, end, &value)) return false;
        if ((tag & 7) == 2 && value > (uint64_t)(end - at)) return false;
        if ((tag & 7) == 2) at += value;
    }
    return false;
}

/* A field 1 that is a number (ir_version), and a graph. */
static bool is_onnx(const char *bytes, size_t length) {
    return length > 2 && bytes[0] == 8 && has_field(bytes, length, 7);
}

/* A field 1 that is a number (schema version), then meta graphs. */
static bool is_saved_model(const char *bytes, size_t length) {
    return length > 3 && bytes[0] == 8 && bytes[1] == 1 && bytes[2] == 18;
}

static bool holds(const char *bytes, size_t length, const char *word) {
    const size_t size = strlen(word);
    for (const char *at = bytes; (at = memchr(at, word[0], length - (size_t)(at - bytes))) != NULL;
         at++) {
        if (size > length - (size_t)(at - bytes)) return false;
        if (memcmp(at, word, size) == 0) return true;
    }
    return false;
}

static const char *zip_kind(const char *bytes, size_t length) {
    static const char *const exported[] = {"serialized_exported_program", "archive_format",
                                           "models/model.json"};
    for (size_t i = 0; i < sizeof exported / sizeof exported[0]; i++)
        if (holds(bytes, length, exported[i])) return "pt2";
    if (holds(bytes, length, "data.pkl")) return "torch-save";
    return holds(bytes, length, "config.json") ? "keras" : NULL;
}

static const char *binary_kind(const char *bytes, size_t length) {
    if (starts(bytes, length, "PK\003\004", 4)) return zip_kind(bytes, length);
    if (starts(bytes, length, "\037\213", 2)) return "trace";
    if (starts(bytes, length, "SQLite format 3", 16)) return "trace"; /* of Nsight Systems */
    if (starts(bytes, length, "\211HDF\r\n\032\n", 8)) return "hdf5";
    if (length > 10 && starts(bytes + 2, length - 2, "\0\0\0\0\0\0{\"", 8)) return "safetensors";
    if (is_saved_model(bytes, length)) return "saved-model";
    return is_onnx(bytes, length) ? "onnx" : NULL;
}

/* ---- texts ---- */

/* Marks of a kind of file; the first row that has one counts. */
static const struct mark {
    const char *kind, *words[4];
} marks[] = {
    {"workload", {"\"dlmodel-workload\""}},
    {"environment", {"\nSLURM_JOB_NUM_NODES=", "\nSLURM_CPUS_ON_NODE="}},
    {"megatron", {"\nMODEL_ARGS:", " ........", "--num-layers", "--hidden-size"}},
    {"keras",
     {"\"class_name\": \"Functional\"", "\"class_name\": \"Sequential\"", "\"keras_version\""}},
    {"trace", {"\"traceEvents\"", "\"ph\": \"", "\"ph\":\""}},
    {"config", {"\"model_type\""}},
    {"deepspeed", {"\"train_micro_batch_size_per_gpu\"", "\"zero_optimization\""}},
    {"nccl-tests", {"# nThread", "nccl-tests version", "\"nccl_version\""}},
    {"osu", {"# OSU "}},
    {"accelerate", {"distributed_type:", "compute_environment:"}},
    {"composer", {"device_train_microbatch_size:", "global_train_batch_size:"}},
    {"maxtext", {"per_device_batch_size:", "base_emb_dim:", "base_config:"}},
    {"nemo", {"\ntrainer:", "\nmodel:", "tensor_model_parallel_size:"}},
    {"torchtitan", {"\n[model]", "\n[parallelism]", "\n[training]", "from torchtitan"}},
    {"launch", {"torchrun", "horovodrun", "#!/bin", "srun"}},
};

/* Measurements of a format of logs in front of what scripts hold too. */
static const char *text_kind(const char *text, size_t length, struct dl_arena *arena) {
    const size_t count = sizeof marks / sizeof marks[0];
    const char *kind = NULL;
    for (size_t i = 0; i < count && kind == NULL; i++)
        for (int k = 0; k < 4 && marks[i].words[k] != NULL; k++)
            if (strstr(text, marks[i].words[k]) != NULL) kind = marks[i].kind;
    const bool holds_plan =
        kind != NULL && (strcmp(kind, "workload") == 0 || strstr(text, " ........") != NULL);
    return !holds_plan && dl_log_known(text, length, arena) ? "log" : kind;
}

const char *dl_text_kind(const char *bytes, size_t length, struct dl_arena *arena) {
    const char *kind = binary_kind(bytes, length);
    if (kind != NULL || memchr(bytes, '\0', length) != NULL) return kind;
    const char *text = dl_arena_printf(arena, "\n%.*s", (int)length, bytes);
    return text_kind(text, length + 1, arena);
}

const char *dl_file_kind(const struct dl_data *data, const char *path, struct dl_arena *arena) {
    size_t length;
    const char *bytes = dl_data_head(data, path, HEAD, arena, &length);
    return bytes == NULL ? NULL : dl_text_kind(bytes, length, arena);
}
