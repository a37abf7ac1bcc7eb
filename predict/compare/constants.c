/* constants.c - see constants.h. */
#include "predict/compare/constants.h"

#include <string.h>

#include "model/core/hash.h"
#include "model/core/file.h"

enum { MAX_PARTS = 12, MAX_CONSTANTS = 200 };

#define C(member, type, ...) DL_FIELD(struct dl_constant, member, type, __VA_ARGS__)
static const struct dl_field constant_fields[] = {
    C(key, STRING, .required = true,
      .help = "as --set takes it, with the object's name: framework.megatron.dispatch_s"),
    C(low, NUMBER, DL_RANGE(0, 1e15, DL_UNIT_NONE), .required = true,
      .help = "smallest value that physics allows"),
    C(high, NUMBER, DL_RANGE(1e-15, 1e15, DL_UNIT_NONE), .required = true,
      .help = "largest value that physics allows"),
    C(why, STRING, .required = true, .help = "what the constant stands for"),
    {.key = NULL},
};
static const struct dl_schema constant_schema = {.name = "constant",
                                                 .summary = "a constant fitted to training runs",
                                                 .size = sizeof(struct dl_constant),
                                                 .fields = constant_fields};
static const struct dl_field file_fields[] = {
    {.key = "constants",
     .type = DL_FIELD_LIST,
     .offset = offsetof(struct dl_constants, list),
     .count_offset = offsetof(struct dl_constants, count),
     .child = &constant_schema,
     .required = true,
     .help = "scalars chosen by looking at training runs"},
    {.key = NULL},
};
const struct dl_schema dl_constants_schema = {
    .name = "dlmodel-constants",
    .summary = "constants that compare --fit-constants and --generalize refit to training runs",
    .size = sizeof(struct dl_constants),
    .fields = file_fields,
    .top_level = true,
};

/* Where a constant is: its kind of file, the objects' names and the members that lead to it. */
struct place {
    enum dl_data_kind kind;
    const char *names;                /* list between commas */
    const char *parts[MAX_PARTS + 1]; /* for dl_json_number_at */
};

static bool split_members(char *text, const char **parts, int count) {
    for (char *at = text; at != NULL && count < MAX_PARTS;) {
        char *dot = strchr(at, '.');
        if (dot != NULL) *dot++ = 0;
        parts[count++] = at;
        at = dot;
    }
    parts[count] = NULL;
    return count < MAX_PARTS;
}

/* false: not a key that names an object. */
static bool place_of(const char *key, struct dl_arena *arena, struct place *out) {
    static const struct {
        const char *prefix;
        enum dl_data_kind kind;
    } kinds[] = {{"framework.", DL_DATA_FRAMEWORK},
                 {"device.", DL_DATA_DEVICE},
                 {"system.", DL_DATA_SYSTEM}};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        const size_t length = strlen(kinds[i].prefix);
        if (strncmp(key, kinds[i].prefix, length) != 0) continue;
        char *names = dl_arena_strdup(arena, key + length);
        char *at = strchr(names, '@'), *dot = at != NULL ? strrchr(names, '.') : strchr(names, '.');
        if (dot == NULL) return false;
        *dot = 0;
        int count = 0;
        *out = (struct place){.kind = kinds[i].kind, .names = names};
        if (at != NULL) {
            *at = 0;
            out->parts[count++] = "releases";
            out->parts[count++] = at + 1;
            out->parts[count++] = "set";
        }
        return split_members(dot + 1, out->parts, count);
    }
    return false;
}

/* The document of the object of that number in the list; NULL in *out after the last. */
static enum dl_code object_doc(const struct dl_data *data, const struct place *place, int number,
                               struct dl_arena *arena, struct dl_json **out, struct dl_err *err) {
    const char *at = place->names, *path = NULL;
    *out = NULL;
    for (; number > 0 && at != NULL; number--) {
        at = strchr(at, ',');
        at = at == NULL ? NULL : at + 1;
    }
    if (at == NULL) return DL_OK;
    const char *name = dl_arena_strndup(arena, at, strcspn(at, ","));
    DL_TRY(dl_data_path(data, place->kind, name, arena, &path, err));
    return dl_json_read(path, arena, out, err);
}

static enum dl_code read_value(const struct dl_data *data, const struct dl_json *file, int index,
                               struct dl_arena *arena, struct dl_constant *c, struct dl_err *err) {
    const char *where = dl_arena_printf(arena, "constants[%d].key", index);
    struct place place;
    struct dl_json *doc = NULL;
    struct dl_err inner = {0};
    size_t begin, end;
    if (!place_of(c->key, arena, &place))
        return dl_json_fail(file, where, err, "expected KIND.NAME.KEY, got \"%s\"", c->key);
    const enum dl_code code = object_doc(data, &place, 0, arena, &doc, &inner);
    if (code != DL_OK) return dl_json_fail(file, where, err, "%s", inner.message);
    if (!dl_json_number_at(doc, place.parts, &c->value, &begin, &end))
        return dl_json_fail(file, where, err, "%s has no number there", dl_json_name(doc));
    if (!(c->low < c->high) || !(c->value >= c->low && c->value <= c->high))
        return dl_json_fail(file, where, err, "%g of %s is outside [%g, %g]", c->value,
                            dl_json_name(doc), c->low, c->high);
    return DL_OK;
}

enum dl_code dl_constants_read(const struct dl_data *data, struct dl_arena *arena,
                               struct dl_constants *out, struct dl_err *err) {
    *out = (struct dl_constants){.hash = DL_HASH_START};
    const char *path = dl_data_file(data, "constants.json", arena);
    if (path == NULL) return DL_OK;
    struct dl_json *doc = NULL;
    DL_TRY(dl_json_read(path, arena, &doc, err));
    DL_TRY(dl_json_load(doc, &dl_constants_schema, arena, out, err));
    out->path = path;
    out->hash = DL_HASH_START;
    for (int i = 0; i < out->count; i++) {
        struct dl_constant *c = &out->list[i];
        DL_TRY(read_value(data, doc, i, arena, c, err));
        out->hash = dl_hash_bytes(out->hash, c->key, strlen(c->key));
        out->hash = dl_hash_bytes(out->hash, &c->low, sizeof c->low);
        out->hash = dl_hash_bytes(out->hash, &c->high, sizeof c->high);
        out->hash = dl_hash_bytes(out->hash, &c->value, sizeof c->value);
    }
    return DL_OK;
}

enum dl_code dl_constants_write(const struct dl_data *data, const struct dl_constant *constant,
                                double value, struct dl_arena *arena, struct dl_err *err) {
    struct place place;
    if (!place_of(constant->key, arena, &place))
        return dl_fail(err, DL_ERR_INPUT, "%s: expected KIND.NAME.KEY", constant->key);
    for (int i = 0;; i++) {
        struct dl_json *doc = NULL;
        DL_TRY(object_doc(data, &place, i, arena, &doc, err));
        if (doc == NULL) return DL_OK;
        const char *text = dl_json_with_number(doc, place.parts, value, arena);
        if (text == NULL)
            return dl_json_fail(doc, place.parts[0], err, "%s: no number there", constant->key);
        DL_TRY(dl_file_write(dl_json_name(doc), text, strlen(text), err));
    }
}
