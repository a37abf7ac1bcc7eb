/* data_set.c - which --set belong to a document, and their application. */
#include "model/catalog/data_internal.h"

#include <string.h>

#include "model/framework/read_keys.h"

static bool has_prefix(const char *key, const char *prefix) {
    return strncmp(key, prefix, strlen(prefix)) == 0;
}

static bool has_any_prefix(const char *key) {
    for (size_t i = 0; i < (size_t)dl_data_kind_count; i++)
        if (has_prefix(key, dl_data_kinds[i].prefix)) return true;
    return false;
}

static void selection_add(struct dl_selection *selection, struct dl_arena *arena,
                          struct dl_override *origin, const char *prefix, const char *replacement) {
    const char *key = dl_arena_printf(arena, "%s%s", replacement, origin->key + strlen(prefix));
    selection->list[selection->count] = (struct dl_override){.key = key, .value = origin->value};
    selection->origin[selection->count++] = origin;
}

/* Whether a comma-separated list of names, of which one may end in '*', holds the name. */
static bool list_names(const char *list, size_t length, const char *name) {
    for (const char *at = list, *end = list + length; at < end;) {
        const char *comma = memchr(at, ',', (size_t)(end - at));
        const size_t part = (size_t)((comma != NULL ? comma : end) - at);
        const bool any = part > 0 && at[part - 1] == '*';
        if (strncmp(at, name, any ? part - 1 : part) == 0 && (any || name[part] == 0)) return true;
        at += part + 1;
    }
    return false;
}

/* What follows "NAMES." or "NAMES@RELEASE." in a key that names objects, where these include
 * `object` (in that release; NULL: keys without one); NULL where they do not. */
static const char *named_key(const char *key, const char *object, const char *release) {
    const char *at = strchr(key, '@'), *dot = at != NULL ? strrchr(key, '.') : strchr(key, '.');
    if (dot == NULL || dot[1] == 0 || (at != NULL && dot < at) || (at != NULL) != (release != NULL))
        return NULL;
    if (release != NULL &&
        (strncmp(at + 1, release, (size_t)(dot - at - 1)) != 0 || release[dot - at - 1] != 0))
        return NULL;
    return list_names(key, (size_t)((at != NULL ? at : dot) - key), object) ? dot + 1 : NULL;
}

void dl_data_select_named(const struct dl_data *data, enum dl_data_kind kind, const char *object,
                          const char *release, struct dl_arena *arena, struct dl_selection *out) {
    const char *prefix = dl_data_kinds[kind].prefix;
    size_t room = (size_t)(data->override_count > 0 ? data->override_count : 0);
    *out = (struct dl_selection){.list = dl_arena_alloc(arena, room, sizeof *out->list),
                                 .origin = dl_arena_alloc(arena, room, sizeof *out->origin)};
    for (int i = 0; i < data->override_count; i++) {
        struct dl_override *o = &data->overrides[i];
        const char *key =
            has_prefix(o->key, prefix) ? named_key(o->key + strlen(prefix), object, release) : NULL;
        if (key == NULL) continue;
        out->list[out->count] = (struct dl_override){.key = key, .value = o->value};
        out->origin[out->count++] = o;
    }
}

void dl_data_select(const struct dl_data *data, enum dl_data_kind kind, const char *replacement,
                    bool bare, struct dl_arena *arena, struct dl_selection *out) {
    size_t room = (size_t)(data->override_count > 0 ? data->override_count : 0);
    *out = (struct dl_selection){.list = dl_arena_alloc(arena, room, sizeof *out->list),
                                 .origin = dl_arena_alloc(arena, room, sizeof *out->origin)};
    for (int i = 0; i < data->override_count; i++) {
        struct dl_override *override = &data->overrides[i];
        if (has_prefix(override->key, dl_data_kinds[kind].prefix))
            selection_add(out, arena, override, dl_data_kinds[kind].prefix, replacement);
        else if (bare && !has_any_prefix(override->key))
            selection_add(out, arena, override, "", "");
    }
}

bool dl_data_mark_used(const struct dl_selection *selection) {
    bool any = false;
    for (int i = 0; i < selection->count; i++) {
        if (!selection->list[i].used) continue;
        selection->origin[i]->used = any = true;
    }
    return any;
}

enum dl_code dl_data_set_document(const struct dl_data *data, enum dl_data_kind kind,
                                  struct dl_json *doc, const struct dl_schema *schema,
                                  struct dl_arena *arena, struct dl_err *err) {
    struct dl_selection selection;
    dl_data_select(data, kind, "", true, arena, &selection);
    DL_TRY(dl_json_set(doc, schema, selection.list, selection.count, err));
    dl_data_mark_used(&selection);
    return DL_OK;
}

enum dl_code dl_data_set_framework(const struct dl_data *data, const char *name,
                                   const char *release, struct dl_json *doc, struct dl_arena *arena,
                                   struct dl_err *err) {
    struct dl_selection selection;
    dl_data_select_named(data, DL_DATA_FRAMEWORK, name, release, arena, &selection);
    DL_TRY(dl_json_set(doc, dl_framework_schema_of(NULL, arena), selection.list, selection.count,
                       err));
    dl_data_mark_used(&selection);
    return DL_OK;
}

void dl_data_override(struct dl_data *data, const char *key, const char *value,
                      struct dl_arena *arena) {
    const size_t given = (size_t)data->override_count;
    struct dl_override *all = dl_arena_alloc(arena, given + 1, sizeof *all);
    if (given > 0) memcpy(all, data->overrides, given * sizeof *all);
    all[given] = (struct dl_override){.key = key, .value = value};
    data->overrides = all;
    data->override_count++;
}

void dl_data_ignore_unread(const struct dl_data *data, const struct dl_framework *framework,
                           const bool *was_used) {
    const char *prefix = dl_data_kinds[DL_DATA_FRAMEWORK].prefix;
    for (int i = 0; i < data->override_count; i++) {
        struct dl_override *o = &data->overrides[i];
        const size_t skip = has_prefix(o->key, prefix) ? strlen(prefix) : 0;
        if (dl_framework_ignores(framework, o->key + skip)) o->used = was_used[i];
    }
}
