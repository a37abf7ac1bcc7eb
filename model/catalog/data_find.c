/* data_find.c - lists data files by kind, and finds the path of one. Apart from json.c and
 * file.c, the only file of model/ that touches the file system. */
#include "model/catalog/data_internal.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "model/core/file.h"
#include "model/core/hash.h"
#include "model/core/name_hint.h"
#include "model/core/synonym.h"
#include "model/catalog/node_class.h"
#include "model/catalog/store.h"
#include "model/core/text.h"

static const char SUFFIX[] = ".json";
static const char LOCAL[] = "local";

const struct dl_data_kind_words dl_data_kinds[] = {
    [DL_DATA_DEVICE] = {"device", "devices", "device."},
    [DL_DATA_SYSTEM] = {"system", "systems", "system."},
    [DL_DATA_WORKLOAD] = {"workload", "workloads", "workload."},
    [DL_DATA_FRAMEWORK] = {"framework", "frameworks", "framework."},
    [DL_DATA_LAYERS] = {"layer time", "layers", "layers."},
};
const int dl_data_kind_count = sizeof dl_data_kinds / sizeof dl_data_kinds[0];

bool dl_data_is_path(const char *name) {
    return strchr(name, '/') != NULL || dl_ends_in(name, SUFFIX);
}

bool dl_data_exists(const char *path) {
    struct stat status;
    return stat(path, &status) == 0 || errno == EACCES;
}

struct names {
    struct dl_arena *arena;
    const char **list;
    size_t count, capacity;
};

static void names_add(struct names *names, const char *name) {
    if (names->count + 1 >= names->capacity) {
        size_t capacity = names->capacity == 0 ? 64 : 2 * names->capacity;
        const char **list = dl_arena_alloc(names->arena, capacity, sizeof *list);
        for (size_t i = 0; i < names->count; i++) list[i] = names->list[i];
        names->list = list;
        names->capacity = capacity;
    }
    names->list[names->count++] = name;
}

static void names_of_directory(struct names *names, const char *path) {
    DIR *directory = opendir(path);
    if (directory == NULL) return;
    for (const struct dirent *entry; (entry = readdir(directory)) != NULL;) {
        if (entry->d_name[0] == '.' || !dl_ends_in(entry->d_name, SUFFIX)) continue;
        const char *name = dl_arena_strndup(names->arena, entry->d_name,
                                            strlen(entry->d_name) - (sizeof SUFFIX - 1));
        names_add(names, name);
    }
    closedir(directory);
}

static int by_name(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

void dl_data_names(const struct dl_data *data, enum dl_data_kind kind, struct dl_arena *arena,
                   const char ***names_out) {
    struct names names = {.arena = arena};
    for (int i = 0; i < data->directory_count; i++) {
        const char *path =
            dl_arena_printf(arena, "%s/%s", data->directories[i], dl_data_kinds[kind].folder);
        names_of_directory(&names, path);
    }
    if (kind == DL_DATA_SYSTEM && dl_data_has_profile(data)) names_add(&names, LOCAL);
    if (names.list == NULL) {
        names.list = dl_arena_alloc(arena, 1, sizeof *names.list);
    }
    qsort(names.list, names.count, sizeof *names.list, by_name);
    size_t kept = 0;
    for (size_t i = 0; i < names.count; i++)
        if (kept == 0 || strcmp(names.list[i], names.list[kept - 1]) != 0)
            names.list[kept++] = names.list[i];
    names.list[kept] = NULL;
    *names_out = names.list;
}

/* The name of a file that people write otherwise; NULL: none, or several. */
static const char *other_name(const struct dl_data *data, enum dl_data_kind kind, const char *name,
                              struct dl_arena *arena) {
    const char **names = NULL, *found = dl_name_synonym(name);
    const bool named = kind == DL_DATA_FRAMEWORK || kind == DL_DATA_WORKLOAD;
    if (named && found != NULL) return found;
    found = NULL;
    dl_data_names(data, kind, arena, &names);
    for (; *names != NULL; names++) {
        if (!dl_same_name(name, *names)) continue;
        if (found != NULL) return NULL;
        found = *names;
    }
    return found;
}

static enum dl_code unknown_name(const struct dl_data *data, enum dl_data_kind kind,
                                 const char *name, struct dl_arena *arena, struct dl_err *err) {
    const char **names = NULL, **devices = NULL;
    dl_data_names(data, kind, arena, &names);
    const char *word = dl_data_kinds[kind].word;
    if (names[0] == NULL)
        return dl_fail(err, DL_ERR_USAGE,
                       "no %s \"%s\": there is no %s file in %s; give the data folder with --data",
                       word, name, word,
                       data->directory_count > 0 ? data->directories[0] : "any data directory");
    const char *advice = dl_name_advice(name);
    if (advice != NULL)
        return dl_fail(err, DL_ERR_USAGE, "no %s \"%s\": give %s", word, name, advice);
    dl_data_names(data, DL_DATA_DEVICE, arena, &devices);
    for (; kind == DL_DATA_SYSTEM && *devices != NULL; devices++)
        if (dl_same_name(name, *devices))
            return dl_fail(err, DL_ERR_USAGE,
                           "no system \"%s\": it is a device; give -s 1x%s, or NxDEVICE for N of "
                           "them (host and links of the usual node), or --set device=%s for a "
                           "system with other devices",
                           name, *devices, *devices);
    const enum dl_code code =
        dl_name_hint(word, dl_data_kinds[kind].folder, name, names, arena, err);
    if (kind == DL_DATA_WORKLOAD)
        return dl_fail(err, code,
                       "%s; a model of your own: --workload FILE with an ONNX, torch.export or "
                       "Keras model or a config.json",
                       dl_arena_strdup(arena, err->message));
    return code;
}

const char *dl_data_file(const struct dl_data *data, const char *name, struct dl_arena *arena) {
    for (int i = 0; i < data->directory_count; i++) {
        const char *path = dl_arena_printf(arena, "%s/%s", data->directories[i], name);
        if (dl_data_exists(path)) return path;
    }
    return NULL;
}

static const char *in_directories(const struct dl_data *data, enum dl_data_kind kind,
                                  const char *name, struct dl_arena *arena) {
    return dl_data_file(
        data, dl_arena_printf(arena, "%s/%s%s", dl_data_kinds[kind].folder, name, SUFFIX), arena);
}

bool dl_data_is_loose(const struct dl_data *data, enum dl_data_kind kind, const char *name) {
    struct dl_arena scratch = {0};
    struct stat status;
    if (kind != DL_DATA_WORKLOAD || data->names_only || stat(name, &status) != 0) return false;
    const bool loose = in_directories(data, kind, name, &scratch) == NULL;
    dl_arena_free(&scratch);
    return loose;
}

/* The config.json of a folder; else the path. */
static const char *config_of(const struct dl_data *data, const char *path, struct dl_arena *arena) {
    struct stat status;
    const bool folder = !data->names_only && stat(path, &status) == 0 && S_ISDIR(status.st_mode);
    return folder ? dl_arena_printf(arena, "%s/config.json", path) : path;
}

enum dl_code dl_data_path(const struct dl_data *data, enum dl_data_kind kind, const char *name,
                          struct dl_arena *arena, const char **path_out, struct dl_err *err) {
    const char *path = NULL;
    if (dl_data_is_path(name) || dl_data_attachment(data, name) != NULL) {
        path = dl_arena_strdup(arena, name);
    } else if (kind == DL_DATA_SYSTEM && dl_node_class_is(name)) {
        struct dl_node_class of;
        DL_TRY(dl_node_class_find(data, name, arena, &of, err));
        return dl_data_path(data, kind, of.node, arena, path_out, err);
    } else if (kind == DL_DATA_SYSTEM && strcmp(name, LOCAL) == 0 && dl_data_has_profile(data)) {
        path = data->local_profile;
    } else if (kind == DL_DATA_SYSTEM && strcmp(name, LOCAL) == 0) {
        return dl_fail(
            err, DL_ERR_USAGE,
            "this machine has no profile yet: run `dlmodel calibrate`, or name a system");
    }
    if (path == NULL && *name != '\0') path = in_directories(data, kind, name, arena);
    if (path == NULL && dl_data_is_loose(data, kind, name)) path = dl_arena_strdup(arena, name);
    const char *other = path == NULL ? other_name(data, kind, name, arena) : NULL;
    if (other != NULL) return dl_data_path(data, kind, other, arena, path_out, err);
    if (path == NULL) return unknown_name(data, kind, name, arena, err);
    *path_out = kind == DL_DATA_WORKLOAD ? config_of(data, path, arena) : path;
    return DL_OK;
}

const struct dl_attachment *dl_data_attachment(const struct dl_data *data, const char *name) {
    for (int i = 0; i < data->attachment_count; i++)
        if (strcmp(data->attachments[i].name, name) == 0) return &data->attachments[i];
    return NULL;
}

bool dl_data_has_profile(const struct dl_data *data) {
    return dl_data_attachment(data, LOCAL) != NULL ||
           (data->local_profile != NULL && dl_data_exists(data->local_profile));
}

/* The path below the data directory, without "/../"; NULL: the file is elsewhere. */
static const char *below_directory(const struct dl_data *data, const char *path) {
    for (int i = 0; i < data->directory_count; i++) {
        const size_t length = strlen(data->directories[i]);
        if (strncmp(path, data->directories[i], length) == 0 && path[length] == '/' &&
            strstr(path + length, "/../") == NULL)
            return path + length + 1;
    }
    return NULL;
}

static bool is_profile(const struct dl_data *data, const char *path) {
    return data->local_profile != NULL && strcmp(path, data->local_profile) == 0;
}

bool dl_data_is_inside(const struct dl_data *data, const char *path) {
    return below_directory(data, path) != NULL || is_profile(data, path);
}

const char *dl_data_shown_path(const struct dl_data *data, const char *path) {
    const char *below = below_directory(data, path);
    return below != NULL ? below : is_profile(data, path) ? LOCAL : path;
}

enum dl_code dl_data_read(const struct dl_data *data, const char *path, size_t most_bytes,
                          struct dl_arena *arena, char **text, size_t *length, struct dl_err *err) {
    const struct dl_attachment *sent = dl_data_attachment(data, path);
    if (sent == NULL && data->names_only && !dl_data_is_inside(data, path))
        return dl_fail(
            err, DL_ERR_USAGE,
            "\"%.200s\": files are not read here; send its text among the files of the request",
            path);
    if (sent == NULL) return dl_file_read(path, most_bytes, arena, text, length, err);
    if (sent->length > most_bytes)
        return dl_fail_at(err, path, 0, 0, NULL, "expected a file of at most %zu bytes",
                          most_bytes);
    *length = sent->length;
    *text = dl_arena_strndup(arena, sent->text, sent->length);
    return DL_OK;
}

const char *dl_data_head(const struct dl_data *data, const char *path, size_t most,
                         struct dl_arena *arena, size_t *length) {
    const struct dl_attachment *sent = dl_data_attachment(data, path);
    struct stat status;
    if (sent != NULL) {
        *length = sent->length < most ? sent->length : most;
        return sent->text;
    }
    if ((data->names_only && !dl_data_is_inside(data, path)) || stat(path, &status) != 0 ||
        !S_ISREG(status.st_mode))
        return NULL;
    char *bytes = dl_arena_alloc(arena, most + 1, 1);
    *length = dl_file_part(path, 0, bytes, most);
    return bytes;
}

static enum dl_code hash_of(const struct dl_data *data, const char *path, struct dl_arena *arena,
                            const void **out, struct dl_err *err) {
    struct dl_arena scratch = {0};
    char *text = NULL;
    size_t length = 0;
    uint64_t *hash = dl_arena_alloc(arena, 1, sizeof *hash);
    const enum dl_code code = dl_data_read(data, path, 64u << 20, &scratch, &text, &length, err);
    if (code == DL_OK) *hash = dl_hash_bytes(DL_HASH_START, text, length);
    dl_arena_free(&scratch);
    *out = hash;
    return code;
}

enum dl_code dl_data_hash(const struct dl_data *data, const char *path, struct dl_arena *arena,
                          uint64_t *out, struct dl_err *err) {
    const void *hash;
    DL_TRY(dl_store_load(data, DL_DATA_HASH, path, hash_of, arena, &hash, err));
    *out = *(const uint64_t *)hash;
    return DL_OK;
}

enum dl_code dl_data_json(const struct dl_data *data, const char *path, struct dl_arena *arena,
                          struct dl_json **out, struct dl_err *err) {
    char *text;
    size_t length;
    if (dl_data_attachment(data, path) == NULL && !data->names_only)
        return dl_json_read(path, arena, out, err);
    DL_TRY(dl_data_read(data, path, DL_JSON_BYTES, arena, &text, &length, err));
    return dl_json_parse(path, text, length, arena, out, err);
}

enum dl_code dl_data_csv(const struct dl_data *data, const char *path, struct dl_arena *arena,
                         struct dl_csv *out, struct dl_err *err) {
    char *text;
    size_t length;
    DL_TRY(dl_data_read(data, path, DL_CSV_BYTES, arena, &text, &length, err));
    DL_TRY(dl_csv_parse(path, text, length, arena, out, err));
    out->text = text;
    out->text_bytes = length;
    return DL_OK;
}
